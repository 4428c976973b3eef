"""What a smaller cache and int8 activations cost, in perplexity, on ember's own stories."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

import akunu

STORIES = 8  # of some 300 tokens


def write(source: Path, kind: str, folder: Path) -> Path:
    """A file's weights as another type."""
    path = folder / f"{source.stem}-{kind}.gguf"
    akunu.convert(source, path, kind.lower(), progress=False)
    return path


@pytest.fixture(scope="module")
def f32_path(ember_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Float weights: activations stay unrounded, whose int8 noise is larger than what is measured here."""
    return write(ember_path, "F32", tmp_path_factory.mktemp("ember"))


@pytest.fixture(scope="module")
def stories(f32_path: Path) -> Iterator[list[str]]:
    start = "Once upon a time"
    with akunu.load(f32_path, progress=False) as model:
        told = model.generate(start, n=STORIES, max_tokens=300, temperature=0.8, seed=0)
        yield [start + story.text for story in told]


def nll(path: Path, stories: list[str], kv_dtype: str) -> float:
    with akunu.load(path, kv_dtype=kv_dtype, progress=False) as model:
        sizes = [len(model.tokenize(s)) - 1 for s in stories]
        total = sum(math.log(model.perplexity(s)) * n for s, n in zip(stories, sizes, strict=True))
    return total / sum(sizes)


def test_a_quantised_cache_keeps_the_perplexity(f32_path: Path, stories: list[str]) -> None:
    change = math.exp(nll(f32_path, stories, "q8_0") - nll(f32_path, stories, "f16")) - 1
    assert 0 < abs(change) < 1e-3  # 0 would mean that the setting does nothing


LONG = [
    pytest.param(kind, marks=pytest.mark.long) for kind in ("Q8_0", "F16", "Q4_0", "Q6_K", "IQ4_NL", "BF16")
]


@pytest.mark.parametrize("kind", ["Q4_K_M", *LONG])
def test_rounded_activations_keep_the_perplexity(
    kind: str, f32_path: Path, stories: list[str], tmp_path: Path
) -> None:
    """Against the same weights as F32, whose activations are not rounded."""
    weights = write(f32_path, kind, tmp_path)
    change = math.exp(nll(weights, stories, "f16") - nll(write(weights, "F32", tmp_path), stories, "f16")) - 1
    assert abs(change) < (1e-4 if kind in ("F16", "BF16") else 2e-3)
