"""What a smaller type of cache or weights costs, in perplexity, on ember's own stories."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from export import export, read_gguf
from render import TEMPLATE_PATH

import akunu

STORIES = 8  # of some 300 tokens


@pytest.fixture(scope="module")
def f32_path(ember_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Float weights: activations stay unrounded, whose int8 noise is larger than what is measured here."""
    path = tmp_path_factory.mktemp("ember") / "ember-f32.gguf"
    export(read_gguf(ember_path), "F32", path, TEMPLATE_PATH.parent / "tokenizer.json")
    return path


@pytest.fixture(scope="module")
def stories(f32_path: Path) -> Iterator[list[str]]:
    start = "Once upon a time"
    with akunu.load(f32_path, progress=False) as model:
        yield [
            start + model.generate(start, max_tokens=300, temperature=0.8, seed=seed).text
            for seed in range(STORIES)
        ]


def nll(path: Path, stories: list[str], kv_dtype: str) -> float:
    with akunu.load(path, kv_dtype=kv_dtype, progress=False) as model:
        sizes = [len(model.tokenize(s)) - 1 for s in stories]
        total = sum(math.log(model.perplexity(s)) * n for s, n in zip(stories, sizes, strict=True))
    return total / sum(sizes)


def test_a_quantised_cache_keeps_the_perplexity(f32_path: Path, stories: list[str]) -> None:
    change = math.exp(nll(f32_path, stories, "q8_0") - nll(f32_path, stories, "f16")) - 1
    assert 0 < abs(change) < 1e-3  # 0 would mean that the setting does nothing
