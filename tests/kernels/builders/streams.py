"""Sums of rows, several residual streams, and gates of which most become 0."""

from __future__ import annotations

import numpy as np

from ..problem import Problem
from .common import EXACT_NMSE, Traits, normal


def add_rows(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    rows: int,
    dim: int,
    scale: float = 1.0,
    accumulate: bool = False,
    matched: bool = False,
    floor: float = 0.0,
    sigma: float = 1.0,
) -> None:
    x, like, y = normal(rng, rows, dim, sigma=sigma), normal(rng, rows, dim), normal(rng, rows, dim)
    p.run(
        "add_rows",
        p.input("x", x),
        p.input("like", like) if matched else None,
        p.inout("y", y),
        rows=rows,
        dim=dim,
        accumulate=accumulate,
        matched=matched,
        scale=scale,
        floor=floor,
    )
    p.bytes = rows * dim * (8 + 4 * matched + 4 * accumulate)
    if p.checking:
        wide = x.astype(np.float64) * np.float32(scale)
        if matched:
            found = np.maximum((x.astype(np.float64) ** 2).mean(1), floor)
            wide *= np.sqrt((like.astype(np.float64) ** 2).mean(1) / found)[:, None]
        p.expect("y", wide + (y if accumulate else 0), EXACT_NMSE)


def all_reduce(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    rows: int,
    dim: int,
    accumulate: bool = False,
    gather: bool = False,
    stride: int = 0,
    in_place: bool = False,
) -> None:
    """A device that shares its model with no other: the sum, and all rows, are its own."""
    x, y = normal(rng, rows, dim), normal(rng, rows, stride or dim)
    if in_place:
        y[:, :dim] = x
    whole = p.inout("y", y)
    p.run(
        "all_reduce",
        whole if in_place else p.input("x", x),
        whole,
        rows=rows,
        dim=dim,
        accumulate=accumulate,
        gather=gather,
        x_stride=y.shape[1] if in_place else dim,
        y_stride=y.shape[1],
    )
    p.bytes = rows * dim * (8 + 4 * accumulate)
    if p.checking:
        wide = y.astype(np.float64)
        wide[:, :dim] = x + (wide[:, :dim] if accumulate else 0)
        p.expect("y", wide, EXACT_NMSE)


def mix_streams(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    rows: int,
    dim: int,
    streams: int,
    active: int = 0,
    correct: bool = False,
    scaled: bool = False,
    room: int = 0,
) -> None:
    """`room`: rows that a stream has besides those of the step."""
    held = normal(rng, streams, rows + room, dim)
    hidden, gates = normal(rng, rows, dim), normal(rng, rows, streams)
    weights = normal(rng, *((streams, streams) if correct else (streams,) * 3))
    scales = normal(rng, dim)
    p.run(
        "mix_streams",
        p.inout("streams", held),
        p.inout("hidden", hidden),
        p.input("gates", gates),
        p.input("weights", weights),
        p.input("scales", scales) if scaled else None,
        rows=rows,
        dim=dim,
        streams=streams,
        stride=(rows + room) * dim,
        active=active,
        correct=correct,
        scaled=scaled,
    )
    p.bytes = 8 * rows * dim * (streams + 1)
    if p.checking:
        wide, t = held[:, :rows].astype(np.float64), np.tanh(gates.astype(np.float64))
        factors = t @ weights.astype(np.float64).swapaxes(-1, -2)
        if correct:
            made = wide + (1 + factors).T[..., None] * (hidden - wide[active])
        else:
            made = wide + np.einsum("jri,ird->jrd", factors, wide)
        expected = held.astype(np.float64)
        expected[:, :rows] = made
        p.expect("streams", expected, EXACT_NMSE)
        p.expect("hidden", made[active] * (scales if scaled else 1), EXACT_NMSE)


def sparsify(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    rows: int,
    n: int,
    deviations: float = 1.6448536,
    mean: float = 0.0,
) -> None:
    x = normal(rng, rows, n) + np.float32(mean)
    p.run("sparsify", p.inout("x", x), rows=rows, n=n, deviations=deviations)
    p.bytes = 8 * rows * n
    if p.checking:
        wide = x.astype(np.float64)
        cut = wide.mean(1, keepdims=True) + np.float32(deviations) * wide.std(1, keepdims=True)
        p.expect("x", np.maximum(wide - cut, 0), EXACT_NMSE)
