"""Run a program and say what it used, and whether the machine was its own meanwhile.

Other load on a machine changes a result without a trace in it. So each run comes with three observations
that do not depend on the result, and `Rule` decides by them alone, with limits fixed beforehand, whether it
counts: processor time that the hypervisor took (steal), processor time that other processes used, and the
change of the memory bandwidth probed right before and right after.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from akunu.base.errors import AkunuError, InvalidArgumentError

__all__ = ["LIMITS", "Peaks", "Rule", "Usage", "probe", "run"]

STAT: Final = Path("/proc/stat")
SMALL_PARENT: Final = Path(__file__).with_name("small_parent.py")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """One run of a program.

    Attributes
    ----------
    output
        Its standard output.
    seconds
        From start to end.
    first_output
        From start to its first byte on standard output; 0 when there was none.
    cpu_seconds
        Processor time of the process and its children.
    max_rss
        Largest resident memory, in bytes. At least what a small Python takes, some 10 MiB.
    steal, foreign
        Shares of the processors' time that the hypervisor and other processes took; NaN where the system
        does not tell (it does on Linux).
    """

    output: bytes
    seconds: float
    first_output: float
    cpu_seconds: float
    max_rss: int
    steal: float
    foreign: float


@dataclass(frozen=True)
class Peaks:
    """Peaks of the machine at one moment: bytes a second read from memory, operations a second."""

    read_bytes: float
    f32_flops: float
    int8_ops: float


@dataclass(frozen=True)
class Rule:
    """Limits beyond which a run is discarded, whatever its result."""

    steal: float = 0.01
    foreign: float = 0.05
    drift: float = 0.20

    @classmethod
    def parse(cls, text: str) -> Rule:
        """A rule from "steal,foreign,drift", as the option --limits gives it."""
        try:
            steal, foreign, drift = map(float, text.split(","))
        except ValueError as error:
            raise InvalidArgumentError(f"limits: found {text!r}, expected three shares, {LIMITS}") from error
        return cls(steal, foreign, drift)

    def objection(self, usage: Usage, before: Peaks, after: Peaks) -> str:
        """Why a run does not count; empty when it does. What could not be observed is no objection."""
        drift = abs(after.read_bytes - before.read_bytes) / max(before.read_bytes, after.read_bytes)
        found = [
            f"{name} {value:.1%} of the processor time"
            for name, value, limit in (
                ("steal", usage.steal, self.steal),
                ("other processes", usage.foreign, self.foreign),
            )
            if value > limit
        ]
        if drift > self.drift:
            found.append(f"memory bandwidth changed by {drift:.0%}")
        return ", ".join(found)


LIMITS: Final = "0.01,0.05,0.20"
"""The rule when none is given: shares of stolen and of foreign processor time, and change of bandwidth."""


@dataclass(frozen=True)
class _Clock:
    """Seconds since boot that all processors together spent busy, and that were stolen."""

    busy: float
    steal: float

    @classmethod
    def now(cls) -> _Clock:
        if not STAT.exists():
            return cls(float("nan"), float("nan"))
        user, nice, system, _idle, _iowait, irq, softirq, steal, *_ = map(
            int, STAT.open().readline().split()[1:]
        )
        return cls((user + nice + system + irq + softirq) / _TICKS, steal / _TICKS)


def run(command: Sequence[str], *, timeout: float = 3600.0) -> Usage:
    """Run a program to its end, as the child of a small process (`small_parent.py` says why).

    Raises
    ------
    AkunuError
        It cannot be started, fails, or takes longer than `timeout` seconds.
    """
    with tempfile.TemporaryFile() as errors, tempfile.NamedTemporaryFile() as report:
        clock = _Clock.now()
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(SMALL_PARENT), report.name, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            process_group=0,
        )
        assert process.stdout is not None
        deadline = time.perf_counter() + timeout
        output = b""
        first_output = 0.0
        try:
            while piece := _read(process.stdout.fileno(), deadline):
                first_output = first_output or time.perf_counter()
                output += piece
            process.wait(max(0.0, deadline - time.perf_counter()))
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what it has started, too
            process.wait()
            if isinstance(error, TimeoutError | subprocess.TimeoutExpired):
                raise AkunuError(f"{command[0]}: did not end within {timeout:g} s") from error
            raise
        finally:
            process.stdout.close()
        after = _Clock.now()
        used = json.loads(report.read())
        if "error" in used:
            raise AkunuError(f"{command[0]}: {used['error']}")
        if process.returncode:
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines()
            last = lines[-1] if lines else "no message"
            raise AkunuError(f"{' '.join(command)}: exit status {process.returncode}: {last}")
    seconds = used["ended"] - used["began"]
    capacity = seconds * (os.cpu_count() or 1)
    return Usage(
        output=output,
        seconds=seconds,
        first_output=first_output and first_output - used["began"],
        cpu_seconds=used["cpu_seconds"],
        max_rss=used["max_rss"],
        steal=(after.steal - clock.steal) / capacity,
        foreign=max(0.0, after.busy - clock.busy - used["cpu_seconds"]) / capacity,
    )


def _read(file: int, deadline: float) -> bytes:
    """The next output of a program; empty at its end."""
    if not select.select([file], [], [], max(0.0, deadline - time.perf_counter()))[0]:
        raise TimeoutError
    return os.read(file, 1 << 16)


def probe(threads: int) -> Peaks:
    """Measure the machine's peaks now."""
    from akunu import _core

    peaks = _core.measure_peaks(threads)
    return Peaks(peaks["read_bytes_per_second"], peaks["f32_flops"], peaks["int8_ops"])
