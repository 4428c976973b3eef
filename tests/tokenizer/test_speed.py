"""Encoding is linear: a megabyte takes about a second. The bounds are those of a slow, busy machine."""

from __future__ import annotations

import time

import pytest

from akunu.tokenizer import Tokenizer

from .vocabularies import REAL, data_file, real

SOME = ("llama-spm", "qwen2", "gpt-2")


def seconds(tokenizer: Tokenizer, text: str) -> float:
    start = time.process_time()
    ids = tokenizer.encode(text, add_special=False)
    took = time.process_time() - start
    assert ids
    return took


@pytest.mark.parametrize(
    "name",
    [name if name in SOME else pytest.param(name, marks=pytest.mark.long) for name in REAL],
)
def test_a_megabyte_of_prose_takes_seconds_at_most(name: str) -> None:
    text = data_file("text/tinyshakespeare.txt").read_text()
    assert seconds(real(name), text) < 10


@pytest.mark.table
@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("unit", ["a", " ", "\n", "ab", "!?", "日本", "<|im_end|>"])
def test_one_long_run_takes_no_longer(name: str, unit: str) -> None:
    assert seconds(real(name), unit * (300_000 // len(unit))) < 15


def test_a_vocabulary_of_150k_tokens_is_built_in_about_a_second() -> None:
    path = data_file("vocab/ggml-vocab-qwen2.gguf")
    start = time.process_time()
    Tokenizer.from_gguf(path)
    assert time.process_time() - start < 5
