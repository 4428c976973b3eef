"""Writes GGUF files field by field, so that a test can make any field lie.

Independent of the package under test and of `gguf.GGUFWriter`, which refuses to write bad files.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
_FORMATS = {
    U8: "B",
    I8: "b",
    U16: "H",
    I16: "h",
    U32: "I",
    I32: "i",
    F32: "f",
    BOOL: "?",
    U64: "Q",
    I64: "q",
    F64: "d",
}

# GGUF type id -> (elements, bytes) of a block; only the types that the tests write.
_BLOCKS = {0: (1, 4), 1: (1, 2), 2: (32, 18), 8: (32, 34), 12: (256, 144), 26: (1, 4)}


def u32(value: int) -> bytes:
    return struct.pack("<I", value)


def u64(value: int) -> bytes:
    return struct.pack("<Q", value)


def string(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return u64(len(raw)) + raw


def value(kind: int, content: object) -> bytes:
    """One value without its type; an array's content is (item type, items)."""
    if kind == STRING:
        assert isinstance(content, (str, bytes))
        return string(content)
    if kind == ARRAY:
        assert isinstance(content, tuple)
        item, items = content
        return u32(item) + u64(len(items)) + b"".join(value(item, i) for i in items)
    return struct.pack("<" + _FORMATS[kind], content)


def pair(key: str | bytes, kind: int, content: object) -> bytes:
    return string(key) + u32(kind) + value(kind, content)


@dataclass
class Tensor:
    """One tensor; `dims` innermost first, as stored. `offset` None puts it after the one before."""

    name: str
    dims: Sequence[int] = (4,)
    type: int = 0
    offset: int | None = None
    n_dims: int | None = None

    def size(self) -> int:
        elems, size = _BLOCKS.get(self.type, (1, 4))
        total = size
        for i, dim in enumerate(self.dims):
            total *= dim // elems if i == 0 else dim
        return total


def gguf(
    pairs: Sequence[bytes] = (),
    tensors: Sequence[Tensor] = (),
    *,
    magic: bytes = b"GGUF",
    version: int = 3,
    alignment: int = 32,
    tensor_count: int | None = None,
    key_count: int | None = None,
    data: bytes | None = None,
) -> bytes:
    """A file's bytes; counts and data are right unless given."""
    head = magic + u32(version)
    head += u64(len(tensors) if tensor_count is None else tensor_count)
    head += u64(len(pairs) if key_count is None else key_count)
    head += b"".join(pairs)
    at = 0
    for tensor in tensors:
        offset = at if tensor.offset is None else tensor.offset
        head += string(tensor.name) + u32(len(tensor.dims) if tensor.n_dims is None else tensor.n_dims)
        head += b"".join(map(u64, tensor.dims)) + u32(tensor.type) + u64(offset)
        at = -(-(offset + tensor.size()) // alignment) * alignment
    if data is None:
        data = bytes(i * 7 % 251 for i in range(at)) if tensors else b""
    return head + b"\0" * (-len(head) % alignment) + data


def sample_pairs() -> list[bytes]:
    """Every value type, in few bytes."""
    return [
        pair("general.architecture", STRING, "llama"),
        pair("general.alignment", U32, 32),
        pair("a.u8", U8, 200),
        pair("a.i8", I8, -3),
        pair("a.u16", U16, 60000),
        pair("a.i16", I16, -300),
        pair("a.i32", I32, -70000),
        pair("a.f32", F32, 0.5),
        pair("a.bool", BOOL, True),
        pair("a.u64", U64, 2**63 + 5),
        pair("a.i64", I64, -(2**60)),
        pair("a.f64", F64, 0.1),
        pair("b.empty", STRING, ""),
        pair("b.strings", ARRAY, (STRING, ["a", "", "\u2581héé", b"\xff\xfe", "a\0b"])),
        pair("b.floats", ARRAY, (F32, [1.0, -2.5])),
        pair("b.bools", ARRAY, (BOOL, [True, False])),
        pair("b.none", ARRAY, (I32, [])),
        pair("b.nested", ARRAY, (ARRAY, [(U8, [1, 2]), (STRING, ["x"]), (ARRAY, [(I16, [-1])])])),
    ]


def sample_tensors() -> list[Tensor]:
    return [
        Tensor("blk.0.weight", (32, 3), type=8),
        Tensor("blk.0.norm", (5,)),
        Tensor("blk.0.attn", (256, 1, 1, 2), type=12),
        Tensor("half", (3, 2), type=1),
    ]


def sample(version: int = 3) -> bytes:
    """A small valid file that uses most of the format."""
    return gguf(sample_pairs(), sample_tensors(), version=version)


def split_pairs(number: int, count: int, tensors: int, *more: bytes) -> list[bytes]:
    return [
        pair("split.no", U16, number),
        pair("split.count", U16, count),
        pair("split.tensors.count", I32, tensors),
        *more,
    ]


def read_metadata(content: bytes) -> dict[str, object]:
    """The metadata of a well-formed file, read without any check."""
    at = 16  # magic, version, tensor count

    def number(kind: int) -> int:
        nonlocal at
        (result,) = struct.unpack_from("<" + _FORMATS[kind], content, at)
        at += struct.calcsize("<" + _FORMATS[kind])
        return result

    def text() -> str:
        nonlocal at
        length = number(U64)
        at += length
        return content[at - length : at].decode("utf-8", "surrogateescape")

    def item(kind: int) -> object:
        if kind == STRING:
            return text()
        if kind == ARRAY:
            inner, count = number(U32), number(U64)
            return [item(inner) for _ in range(count)]
        return number(kind)

    metadata: dict[str, object] = {}
    for _ in range(number(U64)):
        key = text()
        metadata[key] = item(number(U32))
    return metadata
