"""Times the kernel table: microseconds, GB/s and GFLOP/s of each op, and shares of peaks of the same run.

In the folder `tests`:

python -m kernels.perf                          every op, on the best instruction set
python -m kernels.perf -k matmul -k q4_0        cases whose name holds all of these
python -m kernels.perf --isa avx2 --threads 1   another instruction set
"""

from __future__ import annotations

import argparse
import statistics
import sys
from dataclasses import dataclass

from akunu import _core

from .case import Case
from .devices import Target, lab
from .perf_cases import perf_cases
from .runner import device_buffers

CACHE_BYTES = 128 << 20  # weights and caches in turn: so many bytes, that no cache holds them
MAX_COPIES = 64


@dataclass(frozen=True)
class Result:
    """The median of a case's runs."""

    name: str
    seconds: float
    bytes: float
    flops: float


def measure(case: Case, device: _core.Lab, repeats: int) -> Result:
    """Time the problem's own command; those before it only fill its buffers."""
    problem = case.build(device, checking=False)
    copies = int(min(MAX_COPIES, max(1, CACHE_BYTES // max(problem.bytes, 1))))
    buffers = device_buffers(problem, device, copies)
    timed = problem.commands[problem.timed]
    for c in problem.commands:
        if c is timed:
            break
        device.run(
            c.op, [None if b is None else buffers[b] for b in c.buffers], c.params, kv_dtype=c.kv_dtype
        )
    seconds = device.time(
        timed.op,
        [None if b is None else buffers[b] for b in timed.buffers],
        timed.params,
        kv_dtype=timed.kv_dtype,
        repeats=repeats,
        copies=copies,
    )
    return Result(case.id, statistics.median(seconds), problem.bytes, problem.flops)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m kernels.perf",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-k", action="append", default=[], metavar="TEXT", help="only cases named so")
    parser.add_argument("--device", default="cpu", help="a device of akunu.devices() [default: cpu]")
    parser.add_argument("--isa", default="", help="an instruction set of the CPU [default: the best]")
    parser.add_argument("--threads", type=int, default=0, help="[default: one for each physical core]")
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    chosen = [case for case in perf_cases() if all(text in case.id for text in args.k)]
    if not chosen:
        sys.exit(f"no case's name holds all of {args.k}")
    best = next(name for name, supported in _core.cpu_instruction_sets() if supported)
    isa = args.isa or (best if args.device == "cpu" else "")
    device = lab(Target(args.device, isa), args.threads)
    peaks = _core.measure_peaks(args.threads)
    read, f32 = peaks["read_bytes_per_second"], peaks["f32_flops"]
    print(
        f"{device.name}, {isa or args.device}, {device.threads} threads: reads {read / 1e9:.1f} GB/s, "
        f"{f32 / 1e9:.0f} GFLOP/s f32, {peaks['int8_ops'] / 1e9:.0f} Gop/s int8"
    )
    print(f"{'case':<64} {'us':>9} {'GB/s':>7} {'of read':>7} {'GFLOP/s':>8} {'of f32':>7}")
    for case in chosen:
        r = measure(case, device, args.repeats)
        bandwidth, flops = r.bytes / r.seconds, r.flops / r.seconds
        print(
            f"{r.name:<64} {r.seconds * 1e6:9.1f} {bandwidth / 1e9:7.1f} {bandwidth / read:7.0%} "
            f"{flops / 1e9:8.1f} {flops / f32:7.0%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
