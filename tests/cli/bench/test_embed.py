"""The table of bench/embed.py: rates, ratios and cosines of programs that take turns."""

from __future__ import annotations

import random

import numpy as np

from bench import embed

TEXTS = ["a", "b"]


def program(angle: float, seconds: list[float], cpu_factor: float = 2) -> embed.Run:
    """Vectors at an angle to [1, 0], and the times of one call after the other."""
    vectors = np.asarray([[np.cos(angle), np.sin(angle)]] * len(TEXTS), np.float32)
    left = [9.0, *seconds]  # the first call does not count

    def run(_: list[str]) -> tuple[embed.Vectors, embed.Times]:
        return vectors, (used := left.pop(0), cpu_factor * used)

    return run


def line(exact: embed.Run | None) -> list[str]:
    ours, theirs = program(0.0, [1, 2, 1]), program(0.02, [3, 4, 2], cpu_factor=1)
    (found,) = embed.compare(TEXTS, ours, {"other": theirs}, 3, random.Random(0), exact)
    return found.split()


def test_ratios_are_medians_of_the_rounds() -> None:
    assert line(None)[:5] == ["2.0", "other", "0.7", "2.00", "1.00"]


def test_cosines_are_to_each_other_or_to_what_is_exact() -> None:
    assert line(None)[5:] == ["0.9998000"]
    assert line(program(0.01, []))[5:] == ["0.9999500", "0.9999500"]


def test_texts_have_the_lengths_with_what_a_tokenizer_adds() -> None:
    assert [len(text.split()) for text in embed.texts_of([16, 128, 3])] == [14, 126, 1]
