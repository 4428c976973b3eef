"""Kernel cases on the emulated GPU."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

Run = Callable[..., subprocess.CompletedProcess[str]]

CODE = """
from kernels.case import case
from kernels.devices import Target, lab
from kernels.runner import run

device = lab(Target("cuda"))
for c in [{cases}]:
    for text in run(c.build(device), device):
        print(c.id, text)
print("done")
"""


def check(run: Run, *cases: str, blocks: int = 2) -> None:
    """Run cases, each as the arguments of `kernels.case.case`, on so many blocks."""
    done = run(CODE.replace("{cases}", ", ".join(f"case({c})" for c in cases)), EMULATOR_BLOCKS=str(blocks))
    assert done.stdout == "done\n", done.stderr or done.stdout
