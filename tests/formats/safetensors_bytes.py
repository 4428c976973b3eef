"""SafeTensors files byte by byte, right and wrong."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

DTYPES = {"F32": 4, "F16": 2, "BF16": 2, "F64": 8, "I64": 8, "U8": 1, "BOOL": 1, "F8_E4M3": 1}


def entry(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def raw(header: bytes, data: bytes = b"", length: int | None = None) -> bytes:
    """A file with this header, of which it may announce another length."""
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def file(header: Mapping[str, Any], data: bytes = b"") -> bytes:
    return raw(json.dumps(header).encode(), data)


def encode(array: npt.NDArray[np.float32], dtype: str) -> npt.NDArray[Any]:
    """An array as F32, F16 or BF16 (rounded to nearest, ties to even)."""
    if dtype == "F32":
        return np.ascontiguousarray(array, "<f4")
    if dtype == "F16":
        return np.ascontiguousarray(array, "<f2")
    bits = np.ascontiguousarray(array, "<f4").view("<u4")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")


def write_tensors(
    path: Path, arrays: Mapping[str, npt.NDArray[Any]], dtype: str = "F32", pad: int = 0
) -> None:
    """Write arrays of unsigned integers and int64 as they are, int8 as the bytes of F8_E4M3, others as
    `dtype`; `pad` spaces after the header put the data at another alignment."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    kinds, begin = {}, 0
    for name, array in arrays.items():
        signed = "I64" if array.itemsize == 8 else "F8_E4M3"
        kind = {"u": f"U{8 * array.itemsize}", "i": signed}.get(array.dtype.kind, dtype)
        end = begin + array.size * (DTYPES[kind] if kind == dtype else array.itemsize)
        header[name], kinds[name], begin = entry(kind, list(array.shape), begin, end), kind, end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8 + pad)
    with open(path, "wb") as out:  # one array at a time: some have gigabytes
        out.write(raw(text))
        for name, array in arrays.items():
            out.write(encode(array, dtype).tobytes() if kinds[name] == dtype else array.tobytes())


def write_shards(folder: Path, arrays: Mapping[str, npt.NDArray[Any]], n: int) -> None:
    """Write arrays in turn into `n` shards, with their index."""
    names = [f"model-{i + 1:05}-of-{n:05}.safetensors" for i in range(n)]
    weight_map = {name: names[i % n] for i, name in enumerate(arrays)}
    for shard in names:
        write_tensors(folder / shard, {k: a for k, a in arrays.items() if weight_map[k] == shard})
    index = {"metadata": {"total_size": 1}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
