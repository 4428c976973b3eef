"""Steps of two to four rows: norms in matmuls, inputs that are dealt to blocks, and words."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from order import Draw

Run = Callable[..., subprocess.CompletedProcess[str]]

CODE = """
import numpy as np
from sampling import engines

def found(device, rows, **shape):
    # The best tokens' log p behind a step of a row of each of so many sequences.
    engines.DEVICE = device
    engine = engines.synthetic(64, layers=2, kv_dtype="f16", parallel=4, **shape).engine
    ids, slots = (np.arange(5) * 7 % 61).astype(np.uint32), [engine.open() for _ in range(rows)]
    for i, slot in enumerate(slots):
        engine.begin((ids + i) % 61, slot=slot, temperature=0.0, end_ids=(), logprobs=20, reuse=False)
        assert engine.reserve(slot, 4, 1)
        engine.step([(slot, 4, False, 0, [])], 1)
        assert engine.reserve(slot, 1, 1)
    chunks, raised = engine.step([(slot, 1, True, 0, []) for slot in slots], 1)
    assert raised is None
    engine.close()
    return [dict(chunk.top_logprobs[0]) for chunk in chunks]

def most(a, b):
    return max(abs(p[t] - q[t]) for p, q in zip(a, b, strict=True) for t in p.keys() & q.keys())

for shape in {shapes}:
    wanted = found("cpu", 4, **shape)
    got = [found("cuda", rows, **shape) for rows in (2, 3, 4)]
    for rows in got:
        assert most(wanted[: len(rows)], rows) < 0.15, (shape, most(wanted[: len(rows)], rows))
    assert got[0] == got[1][:2] and got[1] == got[2][:3], (shape, "a row's bits depend on the others")
print("near")
"""

#: Widths whose steps do not come out even, and one of long inputs, which several blocks share.
SHAPES = [
    {"dim": 160, "head_dim": 32, "weights": "q8_0"},
    {"dim": 288, "head_dim": 32, "group": 3, "weights": "q4_0"},
    {"dim": 256, "head_dim": 64, "group": 2, "weights": "q4_k"},
    {"dim": 512, "head_dim": 64, "group": 4, "weights": "q6_k"},
    {"dim": 160, "head_dim": 32, "ffn_dim": 4096, "weights": "q4_0"},
]


@pytest.mark.parametrize("blocks", [3, 8])
def test_rows_are_those_of_the_cpu_however_many_there_are(run: Run, draw: Draw, blocks: int) -> None:
    """The CPU rounds inputs of codes; a wrong sum is off by more."""
    done = run(CODE.replace("{shapes}", repr(draw(SHAPES))), EMULATOR_BLOCKS=str(blocks))
    assert done.stdout == "near\n", done.stderr or done.stdout
