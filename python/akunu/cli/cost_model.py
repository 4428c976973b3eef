"""Predict how fast a dispatch table runs on a machine, from what it must move and do.

A command takes as long as the slower of its memory traffic and its arithmetic (Williams et al.,
"Roofline", CACM 2009), each at the share of the peak that good kernels reach, and a fixed time for every
dispatch that has to wait for the one before. Caches are left out: weights and the KV cache of real models do
not fit, and what does is small. Nothing here is measured on the machine that it predicts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from akunu.base.errors import InvalidArgumentError

if TYPE_CHECKING:
    from akunu._core import AppleChip, CommandInfo, NvidiaChip

__all__ = ["Machine", "Prediction", "known_chip", "predict"]


@dataclass(frozen=True)
class Machine:
    """The figures of a machine that a prediction needs.

    Attributes
    ----------
    name
        For people.
    bytes_per_second
        Bandwidth of the memory.
    flops
        Per second, in the format of the matmuls.
    bandwidth_share, arithmetic_share
        What kernels reach of these, 0 to 1.
    dispatch_seconds
        From the end of a dispatch until one that waited for it is at full speed.
    """

    name: str
    bytes_per_second: float
    flops: float
    bandwidth_share: float
    arithmetic_share: float
    dispatch_seconds: float

    @classmethod
    def of_chip(cls, chip: AppleChip) -> Machine:
        """An Apple GPU; its matmuls are in half precision whatever the weights are.

        What kernels reach is what others published, until a Mac has run ours.

        Bandwidth, up to Apple9: llama.cpp writes 20.9 tokens/s of Llama 3.1 8B Q4_K_M on an M4, 86 % of it
        (github.com/brand-o/normiebench, issue 3); an M3 Pro streams 81 to 87 %. Apple10: MLX's four-bit
        products read 82 to 93 % on an M5 Pro. Arithmetic: the same run of llama.cpp reads a prompt of 512
        tokens at 225 tokens/s, 68 % of the peak. A dispatch that waits for the one before costs 1.3 to 2.7 us
        on an M3 Pro and 1.3 to 1.6 on an M5 Pro. The figures of M3 Pro and M5 Pro are those of
        github.com/lithos-ai/lithos-metal, docs/research/apple-gpu-probes.md and gemv-kernel-study.md.
        """
        return cls(
            name=f"Apple {chip['name']} ({chip['gpu_cores']} GPU cores)",
            bytes_per_second=chip["bytes_per_second"],
            flops=chip["flops"],
            bandwidth_share=0.88 if chip["family"] >= 10 else 0.85,
            arithmetic_share=0.65,
            dispatch_seconds=2e-6,
        )

    @classmethod
    def of_gpu(cls, chip: NvidiaChip) -> Machine:
        """An NVIDIA GPU; its matmuls are in half precision whatever the weights are.

        The share of the bandwidth is an H100's, which reads 3,000 of its 3,350 GB/s. The others follow from
        what an H200 was measured at (docs/cuda.md): a command, in which blocks wait for one another and work
        before and after their products, costs what brings models of 0.6 to 8 billion weights within a tenth;
        and of 5.6 ms for a prompt of 512 tokens in BF16 5.0 are left for 1.0 TFLOP.
        """
        return cls(
            name=f"NVIDIA {chip['name']} ({chip['multiprocessors']} multiprocessors)",
            bytes_per_second=chip["bytes_per_second"],
            flops=chip["flops"],
            bandwidth_share=0.9,
            arithmetic_share=0.2,
            dispatch_seconds=2.1e-6,
        )

    @classmethod
    def named(cls, name: str) -> Machine:
        """The machine that a chip's name stands for, as "H100" or "M4 Max 32".

        Raises
        ------
        InvalidArgumentError
            There is no such chip; the message lists those that there are.
        """
        from akunu import _core

        gpus = _core.nvidia_chips()
        found = next((gpu for gpu in gpus if gpu["name"].lower() == name.lower()), None)
        if found is not None:
            return cls.of_gpu(found)
        try:
            return cls.of_chip(_core.find_apple_chip(name))
        except InvalidArgumentError as error:
            known = ", ".join(gpu["name"] for gpu in gpus)
            raise InvalidArgumentError(f"{error}; of NVIDIA's {known}") from error

    def seconds(self, command: CommandInfo) -> float:
        """Predicted time of one command."""
        busy = max(
            command["bytes"] / (self.bytes_per_second * self.bandwidth_share),
            command["flops"] / (self.flops * self.arithmetic_share),
        )
        # What has no barrier runs beside the command before it; what another one does has no dispatch.
        waits = max(command["dispatches"] - (0 if command["barrier"] else 1), 0)
        return busy + waits * self.dispatch_seconds


def known_chip(device: str) -> AppleChip | NvidiaChip | None:
    """The chip that a device's name stands for, as "Apple M4 Max (32 GPU cores)"; None: it is not known."""
    from akunu import _core

    nvidia = next((chip for chip in _core.nvidia_chips() if chip["device"] == device), None)
    name = re.match(r"Apple (M\d+(?: (?:Pro|Max|Ultra))?)(?: |$)", device)
    if nvidia is not None or name is None:
        return nvidia
    cores = re.search(r" \((\d+) GPU cores\)", device)
    try:
        return _core.find_apple_chip(f"{name[1]} {cores[1]}" if cores else name[1])
    except InvalidArgumentError:
        return None


@dataclass(frozen=True)
class Prediction:
    """One replay of a table.

    Attributes
    ----------
    rows
        Tokens of the replay.
    dispatches, layer_dispatches
        In all, and of the layer that has most.
    bytes, minimum, flops
        To be moved; of these, weights and KV cache, each once; and to be done.
    seconds
        Predicted.
    bound
        Seconds if every byte and operation went at the peak, all at once: no implementation is faster.
    """

    rows: int
    dispatches: int
    layer_dispatches: int
    bytes: float
    minimum: float
    flops: float
    seconds: float
    bound: float

    @property
    def tokens_per_second(self) -> float:
        return self.rows / self.seconds if self.seconds > 0 else 0.0

    @property
    def bound_tokens_per_second(self) -> float:
        return self.rows / self.bound if self.bound > 0 else 0.0

    @property
    def excess(self) -> float:
        """Bytes over the least that any kernels could do with."""
        return self.bytes / self.minimum if self.minimum > 0 else 0.0


def predict(commands: Sequence[CommandInfo], rows: int, machine: Machine) -> Prediction:
    """Predict a table's replay.

    Parameters
    ----------
    commands
        `Engine.plan(phase, rows, position)`.
    rows
        The same rows.
    machine
        Where it would run.
    """
    layers: dict[int, int] = {}
    for command in commands:
        layers[command["layer"]] = layers.get(command["layer"], 0) + command["dispatches"]
    layers.pop(-1, None)
    moved, minimum, done = (
        sum(command[key] for command in commands) for key in ("bytes", "minimum", "flops")
    )
    return Prediction(
        rows=rows,
        dispatches=sum(command["dispatches"] for command in commands),
        layer_dispatches=max(layers.values(), default=0),
        bytes=moved,
        minimum=minimum,
        flops=done,
        seconds=sum(machine.seconds(command) for command in commands),
        bound=max(minimum / machine.bytes_per_second, done / machine.flops),
    )
