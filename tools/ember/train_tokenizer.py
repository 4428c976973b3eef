"""Train the tokenizer: byte-level BPE with the ``qwen2`` pre-tokenizer, so that every digit is a token.

    python -m tools.ember.train_tokenizer --out tools/ember/tokenizer.json

The result is kept beside this file: a model is of use only with the tokenizer it was trained with.
"""

from __future__ import annotations

import argparse
import json
import re
from itertools import islice
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from tools.ember.corpus import samples
from tools.ember.render import CONTROL_TOKENS, TAG_TOKENS, pieces

VOCAB_SIZE = 4096
# the pattern of Qwen2's tokenizer.json, which GGUF readers know by the name "qwen2"
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def train(documents: int, seed: int = 0) -> Tokenizer:
    """A tokenizer trained on the first ``documents`` of the corpus."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    added = [AddedToken(t, special=True, normalized=False) for t in CONTROL_TOKENS]
    added += [AddedToken(t, special=False, normalized=False) for t in TAG_TOKENS]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=added,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    special = re.compile("|".join(map(re.escape, CONTROL_TOKENS + TAG_TOKENS)))
    texts = (
        part
        for sample in islice(samples(seed), documents)
        for text, _ in pieces(sample)
        for part in special.split(text)
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def vocabulary(tokenizer: Tokenizer) -> tuple[list[str], list[str], list[int]]:
    """Tokens by id, merges by rank, and GGUF token types (1 normal, 3 control, 4 user-defined, 5 unused)."""
    state: dict[str, Any] = json.loads(tokenizer.to_str())
    ids = tokenizer.get_vocab(with_added_tokens=True)
    tokens = [f"<|unused_{i}|>" for i in range(VOCAB_SIZE)]
    types = [5] * VOCAB_SIZE
    for token, index in ids.items():
        tokens[index] = token
        types[index] = 3 if token in CONTROL_TOKENS else 4 if token in TAG_TOKENS else 1
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in state["model"]["merges"]]
    return tokens, merges, types


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=60_000)
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    train(args.documents).save(str(args.out))


if __name__ == "__main__":
    main()
