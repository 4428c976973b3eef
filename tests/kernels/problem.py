"""A problem: commands over named buffers, and what must be in them afterwards. Plain data, no device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt

from akunu import _core

#: What outputs hold before a run: a NaN as f32 and as f16, an absurd id as u32.
POISON = np.uint16(0xFFFE)


@cache
def struct(name: str) -> np.dtype[np.void]:
    """The C struct of an op's parameters, or one of those in a step's buffers (Row, SamplerState, …)."""
    return _core.lab_structs()[name]


def pack(op: str, **fields: float) -> bytes:
    """An op's parameters as bytes; every field must be given."""
    dtype = struct(op)
    if set(fields) != set(dtype.names or ()):
        raise ValueError(f"parameters of {op} are {dtype.names}, not {tuple(fields)}")
    value = np.zeros((), dtype)
    for name, x in fields.items():
        value[name] = x
    return value.tobytes()


def poisoned(nbytes: int) -> npt.NDArray[np.uint8]:
    """That many bytes of the poison pattern."""
    return np.resize(np.full(max(nbytes, 2) // 2 + 1, POISON).view(np.uint8), nbytes)


@dataclass(frozen=True)
class Array:
    """Bytes that mean the same on every device; a problem's inputs must be unchanged after it."""

    data: npt.NDArray[np.generic]
    out: bool


@dataclass(frozen=True)
class Weight:
    """A weight [rows, cols] in a file's bytes; `prepared` in the device's own layout, or used in place.

    `whole`: for rows of whole sequences alone. `experts`: so many of them, one after the other.
    """

    dtype: str
    data: npt.NDArray[np.uint8]
    rows: int
    cols: int
    prepared: bool = True
    whole: bool = False
    experts: int = 0

    def values(self) -> npt.NDArray[np.float64]:
        """Its elements, exactly."""
        shape = (*((self.experts,) if self.experts else ()), self.rows, self.cols)
        flat = _core.dequantize(self.dtype, self.data, int(np.prod(shape)))
        return flat.reshape(shape).astype(np.float64)


@dataclass(frozen=True)
class Activation:
    """Opaque: [rows, dim] in one of a device's activation formats."""

    format: str
    rows: int
    dim: int


@dataclass(frozen=True)
class Cache:
    """Opaque: pages of a layer's keys and values."""

    nbytes: int


@dataclass(frozen=True)
class Partials:
    """Opaque: what attention_split leaves for attention_merge."""

    heads: int
    head_dim: int
    context: int


Buffer = Array | Weight | Activation | Cache | Partials


@dataclass(frozen=True)
class Command:
    """One op; `buffers` are names, None for a binding that this problem does not have."""

    op: str
    buffers: tuple[str | None, ...]
    params: bytes
    kv_dtype: str = "f16"


@dataclass(frozen=True)
class Check:
    """What a buffer must hold from byte `offset` on.

    An array of f32 is compared with float64 values: infinities must be equal, the rest have an NMSE of at
    most `nmse`. An activation is compared by the rules of its format. `nmse` None: equal bit for bit.
    """

    buffer: str
    expected: npt.NDArray[np.generic]
    nmse: float | None = None
    offset: int = 0


@dataclass
class Problem:
    """See the module; made by the functions of builders.py."""

    buffers: dict[str, Buffer] = field(default_factory=dict)
    commands: list[Command] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    #: False when the problem is only timed: builders then leave out the checks, whose references take long.
    checking: bool = True
    #: The command that perf.py times, the bytes it must move, the FLOPs it must do; are those int8's?
    timed: int = -1
    bytes: float = 0
    flops: float = 0
    integer: bool = False

    def _add(self, name: str, buffer: Buffer) -> str:
        assert name not in self.buffers, name
        self.buffers[name] = buffer
        return name

    def input(self, name: str, data: npt.NDArray[np.generic]) -> str:
        """An array that must not change."""
        return self._add(name, Array(np.ascontiguousarray(data), False))

    def inout(self, name: str, data: npt.NDArray[np.generic]) -> str:
        """An array that may change."""
        return self._add(name, Array(np.ascontiguousarray(data), True))

    def output(self, name: str, *shape: int, dtype: npt.DTypeLike = np.float32) -> str:
        """An array full of poison."""
        size = np.dtype(dtype).itemsize * int(np.prod(shape))
        return self.inout(name, poisoned(size).view(dtype).reshape(shape))

    def weight(self, name: str, weight: Weight) -> str:
        """A weight."""
        return self._add(name, weight)

    def opaque(self, name: str, buffer: Activation | Cache | Partials) -> str:
        """A buffer that only the device's ops understand; it starts full of poison."""
        return self._add(name, buffer)

    def activations(self, name: str, formats: Sequence[str], rows: int, dim: int) -> list[str | None]:
        """The [f32, compact] outputs of an op that writes `formats`."""
        made = {f: self.opaque(f"{name}_{f}", Activation(f, rows, dim)) for f in formats}
        return [made.get("f32"), made.get("q8") or made.get("f16")]

    def run(self, op: str, *buffers: str | None, kv_dtype: str = "f16", **params: float) -> None:
        """Append a command."""
        self.commands.append(Command(op, buffers, pack(op, **params), kv_dtype))

    def expect(
        self, buffer: str, expected: npt.NDArray[np.generic], nmse: float | None = None, offset: int = 0
    ) -> None:
        """Append a check; without `nmse` the bits must be equal."""
        self.checks.append(Check(buffer, expected, nmse, offset))

    def expect_activations(self, name: str, expected: npt.NDArray[np.float64], nmse: float | None) -> None:
        """Check every format that `activations` made."""
        for f in ("f32", "q8", "f16"):
            if f"{name}_{f}" in self.buffers:
                self.expect(f"{name}_{f}", expected, nmse)
