"""The router of experts, products with the weights of the experts that it chose, and logits of clusters."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .. import reference as ref
from ..problem import Problem, Weight
from ..weights import is_float, random_weight, whole_weight
from .common import ACTIVATION, EXACT_NMSE, F16_TILE_NMSE, Traits, act_bytes, normal
from .common import formats as format_bits
from .matmul import matmul_input, row_bound

GATING = {"softmax": 0, "sigmoid": 1, "softmax_chosen": 2, "sqrt_softplus": 3}


def _best(scores: ref.F64, n: int) -> npt.NDArray[np.int64]:
    """The places of the n greatest, best first; of equal ones the first."""
    return np.argsort(-scores, kind="stable")[:n]


def _gates(logits: ref.F64, gating: str) -> ref.F64:
    if gating == "sigmoid":
        return 1 / (1 + np.exp(-logits))
    if gating == "sqrt_softplus":
        return np.sqrt(np.logaddexp(0, logits))
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


def route(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    rows: int,
    experts: int,
    chosen: int,
    gating: str = "softmax",
    biased: bool = False,
    groups: tuple[int, int, int] = (0, 0, 0),
    renormalise: bool = True,
    sum_eps: float = 0.0,
    sum_min: float = 0.0,
    scale: float = 1.0,
    own_scale: bool = False,
    ties: bool = False,
) -> None:
    """`groups`: how many, how many of them are used, and of how many scores a group's score is the sum."""
    # Apart by more than roundings are, or equal.
    logits = np.stack([rng.permutation(experts) for _ in range(rows)]) // (experts // 8 if ties else 1)
    logits = (logits * (8.0 / experts)).astype(np.float32)
    choice_bias, own = (normal(rng, experts) * 1e-3).astype(np.float32), 1 + np.abs(normal(rng, experts))
    ids, weights = np.zeros((rows, chosen), np.uint32), np.zeros((rows, chosen))
    n_groups, used, top = groups
    for r in range(rows):
        x = logits[r].astype(np.float64)
        gates = x if gating == "softmax_chosen" else _gates(x, gating)
        scores = gates + (choice_bias if biased else 0)
        if n_groups:
            parts = scores.reshape(n_groups, -1)
            best = _best(np.sort(parts, axis=1)[:, -top:].sum(axis=1), used)
            keep = np.isin(np.arange(n_groups), best).repeat(experts // n_groups)
            scores = np.where(keep, scores, -np.inf)
        ids[r] = _best(scores, chosen)
        w = gates[ids[r]]
        if gating == "softmax_chosen":
            w = _gates(w, "softmax")
        if renormalise:
            w = w / max(w.sum() + sum_eps, sum_min)
        weights[r] = w * scale * (own[ids[r]] if own_scale else 1)
    p.run(
        "route",
        p.input("logits", logits),
        p.input("choice_bias", choice_bias) if biased else None,
        p.input("expert_scale", own.astype(np.float32)) if own_scale else None,
        p.output("ids", rows, chosen, dtype=np.uint32),
        p.output("weights", rows, chosen),
        rows=rows,
        experts=experts,
        chosen=chosen,
        gating=GATING[gating],
        groups=n_groups,
        groups_used=used,
        group_top=top,
        renormalise=renormalise,
        sum_eps=sum_eps,
        sum_min=sum_min,
        scale=scale,
        has_choice_bias=biased,
        has_expert_scale=own_scale,
    )
    p.bytes, p.flops = rows * (4.0 * experts + 8 * chosen), 4.0 * rows * experts
    if p.checking:
        p.expect("ids", ids)
        p.expect("weights", weights, EXACT_NMSE)


def _choices(
    rng: np.random.Generator, rows: int, experts: int, chosen: int, kind: str
) -> npt.NDArray[np.uint32]:
    """[rows, chosen]: "any", or "few", the same ones for all rows, "one", of which most rows have it."""
    if kind == "few":
        ids = np.tile(rng.permutation(experts)[:chosen], (rows, 1))
    else:
        ids = np.stack([rng.permutation(experts)[:chosen] for _ in range(rows)])
    if kind == "one":
        for row in ids[: rows - rows // 4]:
            row[row == experts - 1] = row[0]
            row[0] = experts - 1
    return ids.astype(np.uint32)


def _weights(rng: np.random.Generator, dtype: str, experts: int, n: int, k: int) -> Weight:
    return dataclasses.replace(random_weight(rng, dtype, experts * n, k), rows=n, experts=experts)


def _bound(dev: Traits, dtype: str, fmt: str, rows: int, k: int) -> float:
    """A bound of the error: for several rows, tiles of a GPU hold weights as F16, and Q4_K's scales, too."""
    if fmt != "f16" or is_float(dtype):
        return EXACT_NMSE
    if rows == 1:
        return row_bound(dev, dtype, k)
    return 1.5 * F16_TILE_NMSE if dtype == "q4_k" else F16_TILE_NMSE


def experts_gate_up(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    dtype: str,
    rows: int,
    experts: int,
    chosen: int,
    n: int,
    k: int,
    activation: str = "silu",
    formats: Sequence[str] = ("f32",),
    bias: bool = False,
    limit: float = 0.0,
    sharpness: float = 1.0,
    up_offset: float = 0.0,
    gated: bool = True,
    ids: str = "any",
) -> None:
    gate, up = (_weights(rng, dtype, experts, n, k) for _ in range(2))
    x, chosen_ids = normal(rng, rows, k), _choices(rng, rows, experts, chosen, ids)
    gate_bias, up_bias = normal(rng, experts, n), normal(rng, experts, n)
    source, fmt = matmul_input(p, dev, dtype, x)
    p.run(
        "experts_gate_up",
        source,
        p.weight("gate", gate),
        p.weight("up", up) if gated else None,
        p.input("gate_bias", gate_bias) if bias else None,
        p.input("up_bias", up_bias) if bias and gated else None,
        p.input("ids", chosen_ids),
        *p.activations("out", formats, rows * chosen, n),
        rows=rows,
        experts=experts,
        chosen=chosen,
        n=n,
        k=k,
        activation=ACTIVATION[activation],
        formats=format_bits(formats),
        has_bias=bias,
        limit=limit,
        sharpness=sharpness,
        up_offset=up_offset,
        gated=gated,
    )
    used = len(np.unique(chosen_ids))
    p.bytes = (1 + gated) * len(gate.data) * used / experts + rows * act_bytes(fmt) * k
    p.flops, p.integer = 2.0 * (1 + gated) * rows * chosen * n * k, fmt == "q8"
    if not p.checking:
        return
    values, w_gate, w_up = ref.round_activation(x, fmt), gate.values(), up.values()
    out = np.zeros((rows, chosen, n))
    for r in range(rows):
        for c, e in enumerate(chosen_ids[r]):
            a = w_gate[e] @ values[r] + (gate_bias[e] if bias else 0)
            b = w_up[e] @ values[r] + (up_bias[e] if bias else 0)
            if limit:
                a, b = np.minimum(a, limit), np.clip(b, -limit, limit)
            act = a / (1 + np.exp(-sharpness * a)) if sharpness != 1 else ref.activation(a, activation)
            out[r, c] = act * (b + up_offset) if gated else act
    p.expect_activations("out", out.reshape(-1, n), _bound(dev, dtype, fmt, rows, k))


def experts_down(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    dtype: str,
    rows: int,
    experts: int,
    chosen: int,
    n: int,
    k: int,
    bias: bool = False,
    accumulate: bool = True,
    ids: str = "any",
    whole: bool = False,
) -> None:
    """`whole`: of whole numbers, exact in all formats as are their sums: every device has the same bits."""
    w = _weights(rng, dtype, experts, n, k)
    x, chosen_ids = normal(rng, rows * chosen, k), _choices(rng, rows, experts, chosen, ids)
    b, y, weights = normal(rng, experts, n), normal(rng, rows, n), np.abs(normal(rng, rows, chosen))
    if whole:
        w = dataclasses.replace(whole_weight(rng, dtype, experts * n, k), rows=n, experts=experts)
        x = rng.integers(-127, 128, x.shape).astype(np.float32)
        x[:, ::32] = 127  # the scale of a block of int8 is 1
        b, y, weights = (rng.integers(1, 5, v.shape).astype(np.float32) for v in (b, y, weights))
    source, fmt = matmul_input(p, dev, dtype, x if dev.matmul_input(dtype) != "f32" else x.reshape(rows, -1))
    p.run(
        "experts_down",
        source,
        p.weight("w", w),
        p.inout("y", y) if accumulate else p.output("y", rows, n),
        p.input("bias", b) if bias else None,
        p.input("ids", chosen_ids),
        p.input("weights", weights),
        rows=rows,
        experts=experts,
        chosen=chosen,
        n=n,
        k=k,
        accumulate=accumulate,
        has_bias=bias,
    )
    used = len(np.unique(chosen_ids))
    p.bytes = len(w.data) * used / experts + rows * (chosen * act_bytes(fmt) * k + 8 * n)
    p.flops, p.integer = 2.0 * rows * chosen * n * k, fmt == "q8"
    if not p.checking:
        return
    values, matrices = ref.round_activation(x, fmt).reshape(rows, chosen, k), w.values()
    out = y.astype(np.float64) if accumulate else np.zeros((rows, n))
    for r in range(rows):
        for c, e in enumerate(chosen_ids[r]):
            out[r] += float(weights[r, c]) * (matrices[e] @ values[r, c] + (b[e] if bias else 0))
    if whole:
        p.expect("y", out.astype(np.float32))
    else:
        p.expect("y", out, _bound(dev, dtype, fmt, rows, k))


def cluster_logits(
    p: Problem, dev: Traits, rng: np.random.Generator, rows: int, vocab: int, clusters: int, chosen: int
) -> None:
    n = vocab // clusters
    order = rng.permutation(vocab).astype(np.uint32)
    x, ids = normal(rng, rows * chosen, n), _choices(rng, rows, clusters, chosen, "any")
    p.run(
        "cluster_logits",
        p.input("x", x),
        p.input("ids", ids),
        p.input("order", order),
        p.output("y", rows, vocab),
        rows=rows,
        vocab=vocab,
        chosen=chosen,
        n=n,
    )
    p.bytes = rows * (4.0 * vocab + 8 * chosen * n)
    if p.checking:
        y = np.full((rows, vocab), -np.inf, np.float32)
        for r in range(rows):
            y[r, order.reshape(clusters, n)[ids[r]].ravel()] = x[r * chosen : (r + 1) * chosen].ravel()
        p.expect("y", y)
