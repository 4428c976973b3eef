"""Rows of the table for ops that keep a state of each sequence: recurrences, delta nets, Mamba-2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .case import BOTH, Case, case

__all__ = ["delta_rule", "gated_norm", "recurrence", "ssm_scan"]


def recurrence() -> Iterator[Case]:
    # From the beginning, one that goes on, drafts behind it and before it, more rows than a stash has.
    begins, on, drafted, long = (0, 0, 5, 0), (40, 40, 1, 0), (61, 65, 4, 3), (30, 32, 90, 32)
    for dim in (1, 33, 96, 300):
        yield case("recur", dim=dim, spans=(begins,))
        yield case("recur", dim=dim, spans=(on, drafted, begins, long))
        yield case("recur", dim=dim, spans=(on, (7, 7, 1, 0)), step=3)
        yield case("recur", dim=dim, spans=(on, (0, 0, 1, 0), begins), stopped=(0, 2))
    for formats in (("q8",), BOTH):
        yield case("recur", dim=320, spans=(on, drafted, begins), formats=formats)


def _state_steps() -> tuple[Any, ...]:
    """Prompts that end anywhere in a chunk, sequences side by side, drafts refused or across a border."""
    whole = (((0, 100, 0),),)
    chunks = tuple(((at, 7, 0),) for at in range(0, 70, 7))
    sequences = (
        ((0, 40, 0), (0, 1, 0), (0, 64, 0), (0, 31, 3)),
        ((40, 1, 0), None, (64, 70, 0), (29, 1, 0)),
        ((41, 30, 0), (1, 5, 0), (134, 1, 0), (30, 1, 0)),
    )
    drafts = (
        ((0, 28, 0), (0, 90, 0)),
        ((28, 12, 11), (90, 33, 32)),  # the state is at 29 and at 91
        ((38, 1, 0), (100, 20, 10)),  # 9 of both were right
        ((39, 30, 29), (112, 1, 0)),
        ((40, 1, 0), (113, 20, 15)),
        ((41, 30, 0), (128, 1, 0)),
    )
    return whole, chunks, sequences, drafts


def delta_rule() -> Iterator[Case]:
    drafts = _state_steps()[3]
    chain = (((0, 63, 0), (0, 31, 0)), ((63, 1, 0), (31, 1, 0)), ((64, 1, 0), (32, 1, 0)))
    for steps in _state_steps():
        for channels, taps, bias in ((1, 2, False), (33, 4, True), (96, 3, False), (100, 8, True)):
            yield case("short_conv", channels=channels, taps=taps, bias=bias, steps=steps)
            yield case("short_conv", channels=channels, taps=taps, bias=bias, steps=steps, activation=None)
            yield case(
                "short_conv",
                channels=channels,
                taps=taps,
                bias=bias,
                steps=steps,
                activation=None,
                gated=True,
            )
        for heads, dims in (((1, 1), (4, 4)), ((2, 6), (20, 36)), ((2, 4), (128, 128)), ((1, 2), (256, 252))):
            for grouped in (True, False):
                yield case("delta_rule", heads=heads, dims=dims, grouped=grouped, steps=steps)
        for formats in (("q8",), BOTH):
            yield case("delta_rule", heads=(2, 4), dims=(64, 96), formats=formats, steps=steps)
    yield case("short_conv", channels=40, taps=4, steps=chain, chain=5)
    yield case("delta_rule", heads=(1, 2), dims=(32, 48), steps=chain, chain=5)
    for stopped in ((0,), (1,)):
        yield case("short_conv", channels=40, taps=4, steps=drafts, stopped=stopped)
        yield case("delta_rule", heads=(1, 2), dims=(32, 48), steps=drafts, stopped=stopped)


def ssm_scan() -> Iterator[Case]:
    for steps in _state_steps():
        for heads, dims, block in (
            ((1, 1), (4, 4), 1),
            ((2, 6), (20, 36), 3),
            ((1, 8), (128, 64), 8),
            ((2, 4), (252, 256), 1),
        ):
            yield case("ssm_scan", heads=heads, dims=dims, block=block, steps=steps)
    chain = (((0, 63, 0), (0, 31, 0)), ((63, 1, 0), (31, 1, 0)), ((64, 1, 0), (32, 1, 0)))
    yield case("ssm_scan", heads=(1, 2), dims=(32, 48), steps=chain, chain=5)
    for stopped in ((0,), (1,)):
        yield case("ssm_scan", heads=(1, 2), dims=(32, 48), steps=_state_steps()[3], stopped=stopped)


def gated_norm() -> Iterator[Case]:
    for rows, groups, dim in ((1, 1, 33), (3, 2, 100), (1, 8, 512), (40, 1, 1536)):
        yield case("gated_norm", rows=rows, groups=groups, dim=dim)
    for formats in (("q8",), BOTH):
        yield case("gated_norm", rows=3, groups=3, dim=64, formats=formats)
