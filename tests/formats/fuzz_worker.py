"""Opens thousands of spoiled GGUF files and uses all of each; prints a JSON summary.

Run by test_fuzz.py in a process of its own, under an address-space limit, so that a crash, a hang or an
allocation bomb is seen. A case may end in success or in an AkunuError.
"""

from __future__ import annotations

import itertools
import json
import random
import resource
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import gguf_bytes as raw
import numpy as np

from akunu import _core
from akunu.base.errors import AkunuError

Counts = dict[str, dict[str, int]]
MEMORY_SLACK = 256 << 20  # what all cases together may add to the process
LIES_U64 = (0, 2**31, 2**32 - 1, 2**32, 2**40, 2**61, 2**63 - 1, 2**63, 2**64 - 32, 2**64 - 1)
LIES_U32 = (0, 9, 2**16, 2**31, 2**32 - 1)


def truncations(base: bytes) -> Iterator[bytes]:
    return (base[:size] for size in range(len(base)))


def byte_changes(base: bytes) -> Iterator[bytes]:
    for at, byte in enumerate(base):
        for other in {0, 0xFF, *(byte ^ 1 << bit for bit in range(8))} - {byte}:
            yield base[:at] + bytes([other]) + base[at + 1 :]


def lying_fields(base: bytes) -> Iterator[bytes]:
    for at in range(4, len(base) - 8):
        for lie in LIES_U64:
            yield base[:at] + struct.pack("<Q", lie) + base[at + 8 :]
        for lie in LIES_U32:
            yield base[:at] + struct.pack("<I", lie) + base[at + 4 :]


def random_changes(base: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Several edits at once: bytes, removed, repeated and swapped stretches."""
    rng = random.Random(seed)
    for _ in range(count):
        data = bytearray(base)
        for _ in range(rng.randint(1, 6)):
            start, length = rng.randrange(len(data)), rng.randint(1, 24)
            edit = rng.randrange(4)
            if edit == 0:
                data[start] = rng.randrange(256)
            elif edit == 1 and len(data) > 64:
                del data[start : start + length]
            elif edit == 2:
                data[start:start] = data[start : start + length]
            else:
                other = rng.randrange(len(data))
                data[start : start + length] = data[other : other + length]
        yield bytes(data)


def bombs() -> Iterator[bytes]:
    """Small files that announce much, and files that amplify: many tiny items, deep nests."""
    for item in range(14):
        for count in (2**24, 2**32, 2**60, 2**64 - 1):
            yield raw.gguf(
                [raw.string("k") + raw.u32(raw.ARRAY) + raw.u32(item) + raw.u64(count) + bytes(64)]
            )
    nest = raw.u32(raw.ARRAY) + raw.u64(1)
    for depth in (1, 3, 4, 5, 1000, 50000):
        yield raw.gguf([raw.string("k") + raw.u32(raw.ARRAY) + nest * depth + raw.u32(raw.U8) + raw.u64(0)])
    empty = raw.u32(raw.U8) + raw.u64(0)
    yield raw.gguf(
        [raw.string("k") + raw.u32(raw.ARRAY) + raw.u32(raw.ARRAY) + raw.u64(200_000) + empty * 200_000]
    )
    yield raw.gguf(
        [raw.string("k") + raw.u32(raw.ARRAY) + raw.u32(raw.STRING) + raw.u64(300_000) + bytes(8 * 300_000)]
    )
    yield raw.gguf([raw.pair(f"k{i}", raw.U8, 1) for i in range(65_536)])
    yield raw.gguf([raw.pair(f"k{i}", raw.U8, 1) for i in range(65_537)])
    yield raw.gguf([], [raw.Tensor(f"t{i}", (1,), 26, offset=0) for i in range(30_000)], data=bytes(64))


def use(path: Path) -> None:
    """Everything a loader does with a file; what was accepted must be consistent."""
    file = _core.GgufFile(str(path))
    for key in file.metadata:
        file.get(key)
    spans = []
    for tensor in file.tensors:
        data = file.tensor_bytes(tensor.name)
        info = DTYPES[tensor.dtype]
        assert len(data) == tensor.nbytes == np.prod(tensor.shape, dtype=object) // info[0] * info[1]
        assert int(data[0]) >= 0 and int(data[-1]) >= 0
        spans.append((tensor.file, tensor.offset, tensor.nbytes))
    spans.sort()
    for (file_a, start, size), (file_b, next_start, _) in itertools.pairwise(spans):
        assert file_a != file_b or start + size <= next_start


DTYPES = {row["name"]: (row["block_elems"], row["block_bytes"]) for row in _core.dtypes()}


def limit_memory() -> None:
    """From here on the process may grow by `MEMORY_SLACK`."""
    if sys.platform == "linux":  # elsewhere the address space cannot be read or limited like this
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_SLACK, used + MEMORY_SLACK))


def run(
    counts: Counts,
    kind: str,
    variants: Iterator[bytes],
    use: Callable[[Path], None],
    changed: Path,
    opened: Path | None = None,
) -> None:
    """Write each variant to `changed`, use `opened` (else the same file), and count what came out."""
    outcome = counts.setdefault(kind, {"accepted": 0, "refused": 0})
    changed.touch()
    for content in variants:
        # Rewritten in place: ext4 flushes a file to disk when it was truncated to nothing first.
        with changed.open("r+b") as file:
            file.write(content)
            file.truncate()
        try:
            use(opened or changed)
            outcome["accepted"] += 1
        except AkunuError:
            outcome["refused"] += 1
        except BaseException:
            (Path(tempfile.gettempdir()) / f"akunu-fuzz-failure{changed.suffix}").write_bytes(content)
            raise


def main() -> None:
    header = raw.gguf(raw.sample_pairs(), raw.sample_tensors(), data=b"")
    base = raw.sample()[:-20]  # without the padding after the last tensor, nothing may be missing
    tail = base[len(header) :]
    cases = {
        "truncations": truncations(base),
        "byte_changes": (head + tail for head in byte_changes(header)),
        "lying_fields": (head + tail for head in lying_fields(header)),
        "random_changes": (head + tail for head in random_changes(header, 4000, seed=1)),
        "bombs": bombs(),
    }
    second = raw.gguf(raw.split_pairs(1, 2, 2), [raw.Tensor("t1", (32, 2), 8)])
    limit_memory()
    counts: Counts = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, variants in cases.items():
            run(counts, kind, variants, use, folder / "model.gguf")
        first = folder / "m-00001-of-00002.gguf"
        first.write_bytes(raw.gguf(raw.split_pairs(0, 2, 2), [raw.Tensor("t0")]))
        changed = folder / "m-00002-of-00002.gguf"
        run(counts, "split", truncations(second), use, changed, first)
        run(counts, "split", byte_changes(second), use, changed, first)
    json.dump(counts, sys.stdout)


if __name__ == "__main__":
    main()
