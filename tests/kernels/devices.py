"""The devices and instruction sets that the table runs on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from akunu import _core

from .case import Case

TILES = "avx512_amx"
"""The set with kernels of its own for floats of whole sequences alone; all else is `avx512_vnni`'s."""

FAMILY = {"avx2": "avx2_vnni", "avx512": "avx512_vnni", "neon_dotprod": "neon_i8mm"}
"""Sets with the same code but for their products."""


@dataclass(frozen=True)
class Target:
    """A device, and for the CPU one of its instruction sets."""

    device: str
    isa: str = ""

    @property
    def id(self) -> str:
        """For test names: "cpu/avx2"."""
        return f"{self.device}/{self.isa}" if self.isa else self.device


@cache
def targets() -> list[Target]:
    """Everything present: each device, the CPU once per instruction set that this processor runs."""
    others = [Target(d["id"]) for d in _core.devices() if d["id"] != "cpu"]
    return [Target("cpu", isa) for isa, supported in _core.cpu_instruction_sets() if supported] + others


def cpu_targets() -> list[Target]:
    """Those of the CPU, which promises more: the same bits however a result is computed."""
    return [t for t in targets() if t.device == "cpu"]


def is_whole(case: Case) -> bool:
    """Whether it is about rows of whole sequences, which sets multiply, and round, in ways of their own."""
    return bool(case.get("whole") or (case.get("both") and case.get("kv") == "f32"))


def has_kernel(target: Target, case: Case) -> bool:
    """Whether it has a kernel of its own for the case."""
    if case.builder == "matmul" and case.get("activation") and target.device != "cpu":
        return False  # what follows such a matmul is a command of its own
    if Target(target.device, FAMILY.get(target.isa, "")) in cpu_targets():
        return case.builder in ("matmul", "gate_up", "experts_gate_up", "experts_down") or is_whole(case)
    return target.isa != TILES or is_whole(case)


def unsupported() -> list[str]:
    """Instruction sets of this build that the processor lacks."""
    return [isa for isa, supported in _core.cpu_instruction_sets() if not supported]


@cache
def lab(target: Target, threads: int = 2) -> _core.Lab:
    """A lab on it. Two threads by default, so that every split between workers is seen."""
    return _core.Lab(target.device, threads=threads, isa=target.isa)
