"""Adapters: y += scale·B·(A·x), each row with the adapter of its sequence, or none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..problem import Problem
from .attention import rows_of
from .common import EXACT_NMSE, FORMAT, Traits, normal

__all__ = ["lora"]

HEAD = 64


def _padded(size: int) -> int:
    return -(-size // 64) * 64


def lora(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    ranks: Sequence[int],
    rows: Sequence[int],
    n: int,
    k: int,
    stride: int = 0,
    gather: Sequence[int] = (),
    half: bool = False,
) -> None:
    """Adapters of these ranks; `rows` has each row's adapter, or -1. One of rank 0 adds nothing.

    `half`: rows are F16 where the device multiplies such.
    """
    most = max(ranks)
    slot = HEAD + _padded(most * k * 2) + _padded(most * n * 2)
    arena = np.zeros((len(ranks), slot), np.uint8)
    scales = np.float32(rng.uniform(0.5, 2, len(ranks)))
    a = [np.float16(normal(rng, rank, k)) for rank in ranks]
    b = [np.float16(normal(rng, rank, n)) for rank in ranks]
    for i, rank in enumerate(ranks):
        arena[i, :4] = np.frombuffer(np.uint32(rank).tobytes(), np.uint8)
        arena[i, 4:8] = np.frombuffer(scales[i].tobytes(), np.uint8)
        arena[i, HEAD : HEAD + rank * k * 2] = a[i].reshape(-1).view(np.uint8)
        begin = HEAD + _padded(most * k * 2)
        arena[i, begin : begin + rank * n * 2] = b[i].reshape(-1).view(np.uint8)
    choices = np.zeros((len(rows), 2), np.uint32)
    own = np.float32(rng.uniform(0.5, 2, len(rows)))
    choices[:, 0] = np.array(rows) + 1
    choices[:, 1] = own.view(np.uint32)
    taken = list(gather) if gather else list(range(len(rows)))
    stride = stride or n
    x, y = normal(rng, len(taken), k), normal(rng, len(taken), stride)
    fmt = dev.matmul_input("q8_0") if half else "f32"
    fmt = "f16" if fmt == "f16" else "f32"
    if fmt == "f16":
        x = x.astype(np.float16)
    adapters = p.input("adapters", arena.view(np.uint32))
    t = p.output("t", len(taken), most)
    which = rows_of(p, "rows", list(range(len(rows))), [0] * len(rows))
    chosen = p.input("choices", choices)
    gathered = p.input("logit_rows", np.array(taken, np.uint32)) if gather else None
    params = dict(
        rows=len(taken),
        n=n,
        k=k,
        max_rank=most,
        slot_words=slot // 4,
        y_stride=stride,
        gather=bool(gather),
        format=FORMAT[fmt],
    )
    p.run("lora_a", p.input("x", x), adapters, t, which, chosen, gathered, **params)
    p.run("lora_b", t, adapters, p.inout("y", y), which, chosen, gathered, **params)
    p.bytes, p.flops = 2 * most * (k + n), 2 * len(taken) * most * (k + n)
    if not p.checking:
        return
    expected = y.astype(np.float64)
    for i, row in enumerate(taken):
        if (adapter := rows[row]) >= 0:
            products = x[i].astype(np.float64) @ a[adapter].astype(np.float64).T
            expected[i, :n] += products @ b[adapter].astype(np.float64) * scales[adapter] * own[row]
    p.expect("y", expected, EXACT_NMSE)
