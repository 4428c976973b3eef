"""Costs of the commands of a dispatch table: grouped, and against the least time this machine needs for them.

The floor of a command is the longer of two times: its bytes over the memory bandwidth, and its operations
over the arithmetic peak, both measured in the same run (Williams et al., "Roofline", CACM 2009). Bytes and
operations are what the command must move and do, stated by the engine. Data that fits in a cache moves faster
than the bandwidth says, so a share above 1 is possible and means just that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from akunu._core import CommandInfo, Peaks

__all__ = ["GROUPINGS", "Cost", "Grouping", "costs", "mean_peaks"]

Grouping = Literal["command", "tensor", "kernel", "op", "layer"]
GROUPINGS: Final[tuple[Grouping, ...]] = ("tensor", "kernel", "op", "layer", "command")

_LAYER = re.compile(r"^layers\.\d+\.")


@dataclass(frozen=True)
class Cost:
    """Commands of one group, together.

    Attributes
    ----------
    name
        What the group has in common.
    count
        How many commands.
    seconds
        Measured time; 0 in a plan that was not run.
    bytes, flops
        What they must move and do.
    floor
        Least seconds at the machine's peaks.
    """

    name: str
    kernel: str
    dtype: str
    shape: str
    count: int
    seconds: float
    bytes: float
    flops: float
    floor: float

    @property
    def bytes_per_second(self) -> float:
        return self.bytes / self.seconds if self.seconds > 0 else 0.0

    @property
    def flops_per_second(self) -> float:
        return self.flops / self.seconds if self.seconds > 0 else 0.0

    @property
    def share(self) -> float:
        """Floor over measured time: the share of the peak that was reached."""
        return self.floor / self.seconds if self.seconds > 0 else 0.0


@cache
def _float_dtypes() -> frozenset[str]:
    """Types whose products are floating-point; the others are multiplied as 8-bit integers."""
    from akunu import _core

    return frozenset(row["name"] for row in _core.dtypes() if row["float_codes"])


def floor_seconds(command: CommandInfo, peaks: Peaks) -> float:
    """Least time for one command."""
    if command["whole"]:
        arithmetic = peaks["int8_ops"] / 2  # of integers twice as wide
    elif not command["dtype"] or command["dtype"] in _float_dtypes():
        arithmetic = peaks["f32_flops"]
    else:
        arithmetic = peaks["int8_ops"]
    return max(command["bytes"] / peaks["read_bytes_per_second"], command["flops"] / arithmetic)


def costs(commands: Sequence[CommandInfo], peaks: Peaks | None, grouping: Grouping) -> list[Cost]:
    """Group commands; without peaks the floors are 0.

    "tensor" merges the layers ("attn_q" of every layer with the same kernel and shape), "kernel" and "op"
    merge further, "layer" adds up whole layers, "command" merges nothing. In the order of the first
    members.
    """
    groups: dict[tuple[str, ...], list[CommandInfo]] = {}
    for index, command in enumerate(commands):
        groups.setdefault(_key(command, index, grouping), []).append(command)
    return [_cost(key[0], members, peaks) for key, members in groups.items()]


def mean_peaks(first: Peaks, second: Peaks) -> Peaks:
    """Peaks measured before and after: their mean, since the machine may have changed between."""
    return {
        "read_bytes_per_second": (first["read_bytes_per_second"] + second["read_bytes_per_second"]) / 2,
        "f32_flops": (first["f32_flops"] + second["f32_flops"]) / 2,
        "int8_ops": (first["int8_ops"] + second["int8_ops"]) / 2,
    }


def _key(command: CommandInfo, index: int, grouping: Grouping) -> tuple[str, ...]:
    match grouping:
        case "tensor":
            name = _LAYER.sub("", command["label"]) or command["op"]
            return name, command["kernel"], command["dtype"], command["shape"]
        case "kernel":
            return command["kernel"], command["dtype"]
        case "op":
            return (command["op"],)
        case "layer":
            return (f"layer {command['layer']}" if command["layer"] >= 0 else "outside the layers",)
        case "command":
            return command["label"] or command["op"], str(index)


def _cost(name: str, members: Sequence[CommandInfo], peaks: Peaks | None) -> Cost:
    return Cost(
        name=name,
        kernel=_common(command["kernel"] for command in members),
        dtype=_common(command["dtype"] for command in members),
        shape=_common(command["shape"] for command in members),
        count=len(members),
        seconds=sum(command["seconds"] for command in members),
        bytes=sum(command["bytes"] for command in members),
        flops=sum(command["flops"] for command in members),
        floor=sum(floor_seconds(command, peaks) for command in members) if peaks else 0.0,
    )


def _common(values: Iterable[str]) -> str:
    """The value that all share, or how many there are."""
    found = sorted(set(values))
    return found[0] if len(found) == 1 else f"{len(found)} kinds"
