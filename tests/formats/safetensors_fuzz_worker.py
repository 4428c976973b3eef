"""Opens thousands of spoiled SafeTensors files and uses all of each; prints a summary: see fuzz_worker.py."""

from __future__ import annotations

import itertools
import json
import random
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from fuzz_worker import DTYPES, LIES_U64, Counts, byte_changes, limit_memory, random_changes, run, truncations
from safetensors_bytes import entry, file, raw

from akunu import _core

HEADER = {
    "__metadata__": {"format": "pt", "é": "\U0001f600"},
    "a.weight": entry("F32", [2, 3], 0, 24),
    "b": entry("BF16", [4], 24, 32),
    "none": entry("I64", [0, 5], 32, 32),
    "scalar": entry("F64", [], 32, 40),
}
DATA = bytes(range(40))


def lying_numbers(count: int, seed: int) -> Iterator[bytes]:
    """Well-formed headers whose shapes and places are wrong, mostly."""
    rng = random.Random(seed)
    values = [0, 1, 2, 3, 4, 6, 8, 24, 32, 40, 41, *LIES_U64]
    for _ in range(count):
        header = json.loads(json.dumps(HEADER))
        for _ in range(rng.randint(1, 3)):
            tensor = header[rng.choice(["a.weight", "b", "none", "scalar"])]
            if rng.random() < 0.5:
                tensor["shape"] = [rng.choice(values) for _ in range(rng.randint(0, 9))]
            else:
                tensor["data_offsets"][rng.randrange(2)] = rng.choice(values)
        yield file(header, DATA)


def bombs() -> Iterator[bytes]:
    """Small files that announce much, and long ones that amplify."""
    for length in (*LIES_U64, 10**10, 100_000_001):
        yield raw(b"{}", length=length)
        yield raw(json.dumps(HEADER).encode(), DATA, length=length)
    for text in (b"[" * 10**6, b'{"a":' * 10**6, b'{"__metadata__":' * 10**6, b'"' * 10**6, b"9" * 10**6):
        yield raw(b'{"a":{"shape":' + text)
        yield raw(b"{" + text)
    yield file({f"t{i}": entry("U8", [0], 0, 0) for i in range(100_000)})
    yield file({f"t{i}": entry("U8", [0], 0, 0) for i in range(262_145)})
    yield file({"__metadata__": {"k": "x" * 2_000_000}})


def use(path: Path) -> None:
    """Everything a loader does with a file; what was accepted must be consistent."""
    model = _core.SafetensorsFiles([str(path)])
    spans = []
    for tensor in model.tensors:
        data = model.tensor_bytes(tensor.name)
        assert len(data) == tensor.nbytes == np.prod(tensor.shape, dtype=object) * DTYPES[tensor.dtype][1]
        assert sum(map(int, data[:64])) >= 0
        spans.append((tensor.offset, tensor.nbytes))
    spans.sort()
    assert all(start + size == after for (start, size), (after, _) in itertools.pairwise(spans))


def main() -> None:
    base = file(HEADER, DATA)
    header = base[: -len(DATA)]
    cases = {
        "truncations": truncations(base),
        "byte_changes": (head + DATA for head in byte_changes(header)),
        "random_changes": (head + DATA for head in random_changes(header, 4000, seed=1)),
        "lengths": (struct.pack("<Q", n) + base[8:] for n in range(2 * len(base))),
        "lying_numbers": lying_numbers(6000, seed=2),
        "bombs": bombs(),
    }
    limit_memory()
    counts: Counts = {}
    with tempfile.TemporaryDirectory() as name:
        for kind, variants in cases.items():
            run(counts, kind, variants, use, Path(name) / "model.safetensors")
    json.dump(counts, sys.stdout)


if __name__ == "__main__":
    main()
