"""Steps of two to four rows: norms in matmuls, inputs that are dealt to blocks, and words."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from order import Draw

Run = Callable[..., subprocess.CompletedProcess[str]]

CODE = """
from sampling import engines

def found(device, rows, **shape):
    engines.DEVICE = device
    engine = engines.synthetic(64, layers=2, kv_dtype="f16", parallel=4, **shape).engine
    return engines.best(engine, [{}] * rows)

for shape in {shapes}:
    wanted = found("cpu", 4, **shape)
    got = [found("cuda", rows, **shape) for rows in (2, 3, 4)]
    for rows in got:
        far = engines.farthest(wanted[: len(rows)], rows)
        assert far < 0.15, (shape, far)
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
