"""Ops with a state give the same bits on every device, however a sequence's rows are divided among steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from .builders.common import normal
from .builders.delta_rule import record_words
from .devices import Target, lab, targets
from .problem import pack, struct

ROWS = 150
HEADS, DIMS = (2, 6), (68, 96)
GROUPS, BLOCKS = 1, 2  # of Mamba-2's heads
KEYS, VALUES = HEADS[0] * DIMS[0], HEADS[1] * DIMS[1]

Step = tuple[int, int, int]
"""The position of the first row, how many rows, how many of them may be refused."""

WHOLE: list[Step] = [(0, ROWS, 0)]
DIVISIONS: dict[str, list[Step]] = {
    "row by row": [(at, 1, 0) for at in range(ROWS)],
    "in threes": [(at, 3, 0) for at in range(0, ROWS, 3)],
    "chunks in two": [(at, min(50, ROWS - at), 0) for at in range(0, ROWS, 50)],
    # Each step's drafts are all wrong, or hold up to where the next one begins.
    "drafts": [
        (0, 20, 0), (20, 33, 32), (21, 30, 29), (40, 33, 32), (73, 33, 32), (90, 2, 1), (91, 40, 20),
        (113, 37, 5),
    ],
}  # fmt: skip


OPS = {
    "delta_rule": (2 * KEYS + VALUES, 2 * HEADS[1], VALUES),
    "ssm_scan": (VALUES + 2 * GROUPS * DIMS[0], HEADS[1]),
    "short_conv": (KEYS,),
    "short_conv, gated": (3 * KEYS,),
}
"""The widths of their inputs."""


class Inputs:
    """Of every position, and of drafts that are wrong."""

    def __init__(self, rng: np.random.Generator, *widths: int) -> None:
        self.right = [normal(rng, ROWS, n) for n in widths]
        self.wrong = [normal(rng, ROWS, n) for n in widths]

    def of(self, position: int, n: int, right: int) -> list[np.ndarray[Any, Any]]:
        """Those of n rows, of which the first `right` are right."""
        cut, end = position + right, position + n
        return [
            np.concatenate([a[position:cut], b[cut:end]]) for a, b in zip(self.right, self.wrong, strict=True)
        ]


def run(target: Target, op: str, inputs: Inputs, steps: Sequence[Step], beside: int) -> np.ndarray[Any, Any]:
    """The outputs of all positions, where `beside` other sequences have as many rows in each step."""
    device, rng = lab(target), np.random.default_rng(5)
    words = (3 + 32) * KEYS if op.startswith("short_conv") else record_words(HEADS, DIMS) + 16
    records = normal(rng, 1 + beside, words)
    constants = normal(np.random.default_rng(6), 2 * HEADS[1] + DIMS[1])
    constants[: HEADS[1]] = -np.exp(constants[: HEADS[1]])
    weights = normal(np.random.default_rng(7), 5, KEYS)
    slots = np.zeros(1 + beside, struct("SlotState"))
    width = KEYS if op.startswith("short_conv") else VALUES
    out = np.full((ROWS, width), np.nan, np.float32)
    state_at = 0
    for i, (position, n, drafts) in enumerate(steps):
        end = steps[i + 1][0] if i + 1 < len(steps) else ROWS
        given = [np.tile(x, (1 + beside, 1)) for x in inputs.of(position, n, min(n, end - position))]
        rows = np.zeros((1 + beside) * n, struct("Row"))
        rows["slot"] = np.repeat(np.arange(1 + beside), n)
        rows["position"] = np.tile(np.arange(position, position + n), 1 + beside)
        spans = np.zeros(1 + beside, struct("StateSpan"))
        spans["from"], spans["to"] = state_at, position + n - drafts
        state_at = position + n - drafts
        y = np.empty((len(rows), width), np.float32)
        common = dict(rows=len(rows), step=0, state_words=words)
        if op == "delta_rule":
            params = pack(
                op, key_heads=HEADS[0], value_heads=HEADS[1], key_dim=DIMS[0], value_dim=DIMS[1], grouped=1,
                formats=1, scale=0.1, l2_eps=1e-6, norm_eps=1e-6, **common,
            )  # fmt: skip
            device.run(op, [*given, constants, records, y, None, rows, spans, slots], params)
        elif op == "ssm_scan":
            params = pack(
                op,
                groups=GROUPS,
                blocks=BLOCKS,
                heads=HEADS[1],
                state_dim=DIMS[0],
                head_dim=DIMS[1],
                **common,
            )
            device.run(op, [*given, constants, records, y, rows, spans, slots], params)
        else:
            gated = op == "short_conv, gated"
            params = pack(
                "short_conv", channels=KEYS, taps=4, has_bias=1, activation=1, gated=gated, **common
            )
            device.run("short_conv", [*given, weights, records, y, rows, slots], params)
        assert all(np.array_equal(y[:n], y[n * j : n * (j + 1)]) for j in range(1, 1 + beside))
        kept = min(n, end - position)
        out[position : position + kept] = y[:kept]
    return out


@pytest.mark.table
@pytest.mark.parametrize("target", targets(), ids=lambda t: t.id)
@pytest.mark.parametrize("division", DIVISIONS)
@pytest.mark.parametrize("op", OPS)
def test_a_division_into_steps_changes_no_bit(op: str, division: str, target: Target) -> None:
    rng = np.random.default_rng(3)
    inputs = Inputs(rng, *OPS[op])
    whole = run(target, op, inputs, WHOLE, 0)
    assert np.isfinite(whole).all()
    assert np.array_equal(whole, run(target, op, inputs, DIVISIONS[division], 2))
