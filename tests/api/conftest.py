"""A model over the fake engine, with a real tokenizer of 3 special tokens, 256 bytes, and a few words."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from akunu.api.model import Model
from akunu.tokenizer import Tokenizer

from .fakes import FakeEngine, hashed

WORDS = ["\u2581the", "hello", " \u2581", "<|turn|>", "END", "ab", "bc", "é!"]
TOKENS = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *WORDS]
END = 2


def word(text: str) -> int:
    """Id of a word of the vocabulary."""
    return 259 + WORDS.index(text)


def as_bytes(text: str | bytes) -> list[int]:
    """Ids that spell `text` byte by byte."""
    return [3 + byte for byte in (text.encode() if isinstance(text, str) else text)]


def metadata(**sampling: float) -> dict[str, object]:
    kinds = [2, 3, 3, *([6] * 256), *[3 if text == "<|turn|>" else 1 for text in WORDS]]
    return {
        "general.architecture": "llama",
        "general.name": "fake",
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": TOKENS,
        "tokenizer.ggml.scores": [0.0] * len(TOKENS),
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.add_space_prefix": False,
        "tokenizer.ggml.eos_token_id": END,
        "tokenizer.chat_template": "{% for m in messages %}<|turn|>{{ m.content }}{% endfor %}<|turn|>",
        **{f"general.sampling.{key}": value for key, value in sampling.items()},
    }


def make_model(next_token=None, **engine) -> Model:
    """A model whose engine is fake; without `next_token`, each token depends on all before it."""
    vocab = len(TOKENS)
    next_token = next_token or hashed(vocab, first=3)
    fake = FakeEngine(next_token, vocab=vocab, **engine)
    return wrap(fake, metadata())


def wrap(engine: FakeEngine, data: dict[str, object]) -> Model:
    """A model of an engine and the metadata of its file."""
    config = SimpleNamespace(vocab_size=engine.vocab, arch="llama", drafter=None)
    tokenizer = Tokenizer.from_metadata(data) if data else None
    return Model(engine, tokenizer, config, data, Path("fake.gguf"))


@pytest.fixture
def model() -> Model:
    return make_model()
