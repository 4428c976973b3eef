"""Problems as a file, for the driver tests/cpp/kernel_table_driver.cpp, which runs where Python does not.

All numbers are little-endian. A string is a u32 length and its bytes; bytes are a u64 length and themselves.

    file     "AKTABLE1", u32 problems, problem…
    problem  string id, u32 buffers, buffer…, u32 commands, command…, u32 checks, check…
    buffer   string kind, then
             "array"       u32 out, bytes
             "weight"      string dtype, u32 rows, u32 cols, u32 prepared, bytes
             "activation"  string format, u32 rows, u32 dim
             "cache"       u32 bytes
             "partials"    u32 heads, u32 head_dim, u32 context
    command  string op, string kv_dtype, u32 buffers, i32 index (-1: none)…, string params
    check    u32 buffer, string kind, f64 nmse, u64 offset, bytes
             "bits"   the bytes must be equal
             "close"  f64 values, compared with f32
             "q8"     f64 values of an activation
             "q8bits" q int8 [rows, dim], d f32 [rows, dim / 32] of an activation
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from . import reference as ref
from .problem import Activation, Array, Buffer, Cache, Check, Problem, Weight


def _u32(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


def _string(text: str | bytes) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    return _u32(len(data)) + data


def _bytes(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data


def _buffer(b: Buffer) -> bytes:
    if isinstance(b, Array):
        return _string("array") + _u32(b.out) + _bytes(b.data.tobytes())
    if isinstance(b, Weight):
        head = _string("weight") + _string(b.dtype) + _u32(b.rows, b.cols, b.prepared)
        return head + _bytes(b.data.tobytes())
    if isinstance(b, Activation):
        return _string("activation") + _string(b.format) + _u32(b.rows, b.dim)
    if isinstance(b, Cache):
        return _string("cache") + _u32(b.nbytes)
    return _string("partials") + _u32(b.heads, b.head_dim, b.context)


def _check(problem: Problem, c: Check) -> bytes:
    buffer = problem.buffers[c.buffer]
    wide = c.expected.astype(np.float64).tobytes() if c.nmse is not None else b""
    if isinstance(buffer, Activation) and buffer.format == "q8":
        if c.nmse is None:
            q, d = ref.quantize_q8(c.expected.astype(np.float32))
            kind, data = "q8bits", q.tobytes() + d.tobytes()
        else:
            kind, data = "q8", wide
    elif c.nmse is None:
        kind, data = "bits", c.expected.tobytes()
    else:
        kind, data = "close", wide
    index = list(problem.buffers).index(c.buffer)
    return _u32(index) + _string(kind) + struct.pack("<dQ", c.nmse or 0, c.offset) + _bytes(data)


def _problem(id_: str, p: Problem) -> bytes:
    names = {name: i for i, name in enumerate(p.buffers)}
    parts = [_string(id_), _u32(len(p.buffers)), *map(_buffer, p.buffers.values()), _u32(len(p.commands))]
    for c in p.commands:
        indices = [-1 if b is None else names[b] for b in c.buffers]
        parts += [
            _string(c.op),
            _string(c.kv_dtype),
            struct.pack(f"<I{len(indices)}i", len(indices), *indices),
        ]
        parts.append(_string(c.params))
    parts += [_u32(len(p.checks)), *(_check(p, c) for c in p.checks)]
    return b"".join(parts)


def write(path: Path, problems: Iterable[tuple[str, Problem]]) -> None:
    """Write (id, problem) pairs."""
    parts = [_problem(id_, p) for id_, p in problems]
    path.write_bytes(b"".join([b"AKTABLE1", _u32(len(parts)), *parts]))
