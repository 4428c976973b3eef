"""The vocabulary: byte-level BPE, then the control tokens and timestamps in Whisper's order.

Only to make it anew:

    python -m tools.ember_speech.tokens --out tools/ember_speech/tokens.json

The tokens are kept beside this file, each in hexadecimal, in the order of their merges: the first 256 are the
bytes in GPT-2's order, as in the vocabularies of OpenAI's tiktoken files.
"""

from __future__ import annotations

import argparse
import json
import re
from itertools import islice, pairwise
from pathlib import Path

from tools.ember_speech.sentences import sentences

TEXT_TOKENS = 2048
TIMESTAMPS = 1501
PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+"
"""GPT-2's, as far as ASCII goes; no token has two digits."""
PATH = Path(__file__).parent / "tokens.json"


class Vocabulary:
    """Ids of texts, and of what steers the model. `end` is the first id that is no text."""

    def __init__(self, path: Path = PATH) -> None:
        self.tokens: list[bytes] = [bytes.fromhex(token) for token in json.loads(path.read_text())]
        self._ranks = {token: rank for rank, token in enumerate(self.tokens)}
        self._words: dict[str, tuple[int, ...]] = {}
        self.end = len(self.tokens)
        # one language, whose token is end + 2
        self.start = self.end + 1
        self.before, self.no_speech, self.no_timestamps = (self.end + n for n in (6, 7, 8))
        self.zero = self.end + 9
        self.size = self.zero + TIMESTAMPS

    def word(self, word: str) -> tuple[int, ...]:
        """Ids of a word with its marks and the space before it, cut as GPT-2 does."""
        if word not in self._words:
            self._words[word] = tuple(
                i for piece in re.findall(PATTERN, " " + word) for i in self._merged(piece.encode())
            )
        return self._words[word]

    def _merged(self, piece: bytes) -> list[int]:
        parts = [bytes([byte]) for byte in piece]
        while len(parts) > 1:
            ranks = [self._ranks.get(a + b, self.end) for a, b in pairwise(parts)]
            at = min(range(len(ranks)), key=ranks.__getitem__)
            if ranks[at] == self.end:
                break
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return [self._ranks[part] for part in parts]

    def text(self, ids: list[int]) -> str:
        """Without control tokens."""
        return b"".join(self.tokens[i] for i in ids if i < self.end).decode("utf-8", "replace")


def train(count: int) -> list[bytes]:
    """The tokens of the first `count` sentences of the training."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    one_digit = PATTERN.replace("[0-9]+", "[0-9]")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(one_digit), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    alphabet = {chr(code): byte for code, byte in _gpt2_bytes()}
    trainer = trainers.BpeTrainer(
        vocab_size=TEXT_TOKENS, initial_alphabet=list(alphabet), show_progress=False, max_token_length=10
    )
    tokenizer.train_from_iterator((" " + s.text for s in islice(sentences("tokens"), count)), trainer)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    first = [bytes([byte]) for byte in alphabet.values()]
    return first + [bytes(alphabet[c] for c in "".join(pair)) for pair in merges]


def _gpt2_bytes() -> list[tuple[int, int]]:
    """Pairs of GPT-2's character for a byte and the byte, by character."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return sorted([(byte, byte) for byte in shown] + [(256 + n, byte) for n, byte in enumerate(hidden)])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=PATH)
    parser.add_argument("--sentences", type=int, default=60_000)
    args = parser.parse_args()
    args.out.write_text(json.dumps([token.hex() for token in train(args.sentences)], indent=0) + "\n")


if __name__ == "__main__":
    main()
