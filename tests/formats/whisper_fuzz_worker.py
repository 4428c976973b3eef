"""Opens thousands of spoiled files of whisper.cpp and uses all of each: see fuzz_worker.py."""

from __future__ import annotations

import itertools
import json
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import whisper_bytes as raw
from fuzz_worker import DTYPES, LIES_U32, Counts, byte_changes, limit_memory, random_changes, run, truncations

from akunu import _core


def lying_fields(base: bytes) -> Iterator[bytes]:
    for at in range(4, len(base) - 4):
        for lie in LIES_U32:
            yield base[:at] + struct.pack("<I", lie) + base[at + 4 :]


def bombs() -> Iterator[bytes]:
    """Small files that announce much, and long ones that amplify."""
    head = raw.file(tokens=())[:-4]
    for count in (2**20, 2**20 + 1, 2**32 - 1):
        yield head + struct.pack("<I", count)
        yield head + struct.pack("<I", count) + bytes(1 << 20)
    yield head + struct.pack("<I", 200_000) + bytes(800_000)
    yield raw.file([raw.Tensor(f"t{i}".encode(), (1,), 0, bytes(4)) for i in range(16_384)])
    yield raw.file([raw.Tensor(f"t{i}".encode(), (1,), 0, bytes(4)) for i in range(16_385)])


def use(path: Path) -> None:
    """Everything a loader does with a file; what was accepted must be consistent."""
    model = _core.WhisperFile(str(path))
    assert len(model.sizes) == 11 and sum(map(len, model.tokens)) < path.stat().st_size
    spans = []
    for tensor in model.tensors:
        data = model.tensor_bytes(tensor.name)
        elems, size = DTYPES[tensor.dtype]
        assert len(data) == tensor.nbytes == np.prod(tensor.shape, dtype=object) // elems * size
        assert sum(map(int, data[:64])) >= 0
        spans.append((tensor.offset, tensor.nbytes))
    assert all(start + size <= after for (start, size), (after, _) in itertools.pairwise(spans))


def main() -> None:
    base = raw.file(raw.SAMPLE)
    cases = {
        "truncations": truncations(base),
        "byte_changes": byte_changes(base),
        "lying_fields": lying_fields(base),
        "random_changes": random_changes(base, 4000, seed=1),
        "bombs": bombs(),
    }
    limit_memory()
    counts: Counts = {}
    with tempfile.TemporaryDirectory() as name:
        for kind, variants in cases.items():
            run(counts, kind, variants, use, Path(name) / "ggml-model.bin")
    json.dump(counts, sys.stdout)


if __name__ == "__main__":
    main()
