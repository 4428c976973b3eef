"""Vocabularies for tests: the real ones of the shared data, and small made ones."""

from __future__ import annotations

import functools

from akunu.tokenizer import Tokenizer
from missing import data as data_file

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
REAL = (
    "llama-spm",
    "phi-3",
    "llama-bpe",
    "qwen2",
    "gpt-2",
    "starcoder",
    "deepseek-llm",
    "gemma-4",
    "bert-bge",
)


@functools.cache
def real(name: str) -> Tokenizer:
    return Tokenizer.from_gguf(data_file(f"vocab/ggml-vocab-{name}.gguf"))


def inputs_and_ids(name: str) -> list[tuple[str, list[int]]]:
    """The published test inputs and their ids: 46, of Gemma 4 45."""
    path = data_file(f"vocab/ggml-vocab-{name}.gguf.inp")
    inputs = path.read_bytes().decode().split("\n__ggml_vocab_test__\n")[:-1]
    lines = path.with_suffix(".out").read_text().split("\n")
    assert len(inputs) == (45 if name == "gemma-4" else 46)
    return [(text, [int(i) for i in line.split()]) for text, line in zip(inputs, lines, strict=False)]


def metadata(model: str, tokens: list[tuple[str, int, float]], **keys: object) -> dict[str, object]:
    """GGUF metadata of (text, type, score) tokens; `keys` are ``tokenizer.ggml.KEY``."""
    texts, types, scores = (list(column) for column in zip(*tokens, strict=True))
    found: dict[str, object] = {
        "tokenizer.ggml.model": model,
        "tokenizer.ggml.tokens": texts,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.scores": scores,
    }
    found.update({f"tokenizer.ggml.{name}": value for name, value in keys.items()})
    return found


BYTES: list[tuple[str, int, float]] = [(f"<0x{value:02X}>", BYTE, 0.0) for value in range(256)]
SPECIALS: list[tuple[str, int, float]] = [
    ("<unk>", UNKNOWN, 0.0),
    ("<s>", CONTROL, 0.0),
    ("</s>", CONTROL, 0.0),
]


def spm(
    pieces: dict[str, float], more: list[tuple[str, int, float]] | None = None, **keys: object
) -> Tokenizer:
    """A SentencePiece BPE tokenizer: specials 0 to 2, bytes 3 to 258, then `pieces`, then `more`."""
    tokens = [*SPECIALS, *BYTES, *((text, NORMAL, score) for text, score in pieces.items()), *(more or [])]
    return Tokenizer.from_metadata(metadata("llama", tokens, **keys))


def byte_level(
    merges: list[str], more: list[tuple[str, int]] | None = None, pre: str = "gpt-2", **keys: object
) -> Tokenizer:
    """A byte-level tokenizer: the 256 bytes, the results of `merges`, then `more`."""
    from akunu.tokenizer.bytelevel import CHAR_OF_BYTE

    tokens = [(char, NORMAL, 0.0) for char in CHAR_OF_BYTE]
    tokens += [(merge.replace(" ", ""), NORMAL, 0.0) for merge in merges]
    tokens += [(text, kind, 0.0) for text, kind in more or []]
    return Tokenizer.from_metadata(metadata("gpt2", tokens, merges=merges, pre=pre, **keys))
