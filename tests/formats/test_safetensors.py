"""The SafeTensors reader: what it reads, and what it refuses with which words."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import numpy as np
import pytest

from akunu import _core
from akunu.base.errors import InvalidArgumentError, ModelFileError, UnsupportedError

from .safetensors_bytes import entry, file, raw


def opened(path: Path, content: bytes) -> _core.SafetensorsFiles:
    path.write_bytes(content)
    return _core.SafetensorsFiles([str(path)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.safetensors"


def test_tensors_are_read_with_type_shape_and_bytes(path: Path) -> None:
    header = {
        "__metadata__": {"format": "pt", "é": "\n"},
        "b": entry("BF16", [4], 24, 32),
        "a.weight": entry("F32", [2, 3], 0, 24),
        "none": entry("I64", [0, 5], 32, 32),
        "scalar": entry("F64", [], 32, 40),
        'u\t"ö\U0001f600': entry("U8", [1, 1, 3], 40, 43),
    }
    data = bytes(range(43))
    model = opened(path, file(header, data))
    found = {t.name: (t.dtype, t.shape, t.nbytes) for t in model.tensors}
    assert found == {
        "a.weight": ("f32", (2, 3), 24),
        "b": ("bf16", (4,), 8),
        "none": ("i64", (0, 5), 0),
        "scalar": ("f64", (), 8),
        'u\t"ö\U0001f600': ("u8", (1, 1, 3), 3),
    }
    for name, (begin, end) in {k: v["data_offsets"] for k, v in header.items() if "shape" in v}.items():
        assert model.tensor_bytes(name).tobytes() == data[begin:end]
    assert not model.tensor_bytes("b").flags.writeable
    assert model.paths == [str(path)]


def test_metadata_may_be_null(path: Path) -> None:
    """As `mlx.core.save_safetensors` writes it where it is given none."""
    for header in ({"__metadata__": None, "a": entry("F32", [2], 0, 8)}, {"__metadata__": None}):
        model = opened(path, file(header, bytes(8 if "a" in header else 0)))
        assert [t.name for t in model.tensors] == [name for name in header if name == "a"]


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("F64", "f64"), ("F32", "f32"), ("F16", "f16"), ("BF16", "bf16"), ("I64", "i64"), ("I32", "i32"),
        ("I16", "i16"), ("I8", "i8"), ("U64", "u64"), ("U32", "u32"), ("U16", "u16"), ("U8", "u8"),
        ("BOOL", "bool"), ("F8_E4M3", "f8_e4m3"), ("F8_E5M2", "f8_e5m2"), ("F8_E8M0", "f8_e8m0"),
    ],
)  # fmt: skip
def test_every_type_has_its_size(path: Path, name: str, dtype: str) -> None:
    size = next(row["block_bytes"] for row in _core.dtypes() if row["name"] == dtype)
    (tensor,) = opened(path, file({"t": entry(name, [3], 0, 3 * size)}, bytes(3 * size))).tensors
    assert (tensor.dtype, tensor.nbytes) == (dtype, 3 * size)


def test_shards_are_one_model(tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.safetensors" for i in range(3)]
    for i, path in enumerate(paths):
        path.write_bytes(file({f"t{i}": entry("F32", [1], 0, 4)}, struct.pack("<f", i)))
    model = _core.SafetensorsFiles([str(path) for path in paths])
    assert [(t.name, t.file) for t in model.tensors] == [("t0", 0), ("t1", 1), ("t2", 2)]
    assert model.tensor_bytes("t2").view(np.float32).tolist() == [2.0]


ONE = entry("F32", [2], 0, 8)
E, U = ModelFileError, UnsupportedError
REFUSED: dict[str, tuple[bytes, type[Exception], str]] = {
    "empty file": (b"", E, "is empty; the download did not finish"),
    "short": (b"\x08\0\0", E, "is not a SafeTensors file"),
    "a 10 GB header": (raw(b"{}", length=10**10), E, "a header of 10000000000 bytes; at most"),
    "the largest length": (raw(b"{}", length=2**64 - 1), E, "a header of 18446744073709551615"),
    "header beyond the file": (raw(b"{}", length=3), E, "of 3 bytes, but 2 follow; .* incomplete"),
    "no header": (raw(b"{}", length=0), E, r"ends where '\{' was expected"),
    "a web page": (b"<!DOCTYPE html><html>", E, "this is a web page"),
    "a pickle": (b"\x80\x02}q\x00.........", E, "this is a Python pickle"),
    "a GGUF file": (b"GGUF" + bytes(60), E, "this is a GGUF file"),
    "git-lfs": (b"version https://git-lfs.github.com/spec/v1\n", E, "git-lfs pointer"),
    "not JSON": (raw(b"{a}"), E, r"has 'a' where '\"' was expected"),
    "cut JSON": (raw(b'{"a":{"dtype":"F'), E, "ends inside a string"),
    "more after it": (raw(b"{}x"), E, "goes on with 'x' after its end"),
    "trailing comma": (raw(b'{"a":{},}'), E, "gives tensor 'a' no dtype"),
    "an array": (raw(b'{"a":[]}'), E, r"has '\[' where '\{' was expected"),
    "deep nests": (raw(b'{"a":' + b"[" * 100000), E, r"has '\[' where"),
    "half a pair": (raw(b'{"\\ud800":1}'), E, "half of a surrogate pair"),
    "a bad escape": (raw(b'{"\\x41":1}'), E, "unknown escape"),
    "a control character": (raw(b'{"a\n":1}'), E, "control character"),
    "metadata of numbers": (raw(b'{"__metadata__":{"a":1}}'), E, "has '1' where '\"'"),
    "metadata that is no object": (raw(b'{"__metadata__":nul}'), E, "has 'n' where '{'"),
    "metadata that goes on": (raw(b'{"__metadata__":nulls}'), E, "has 's' where '}'"),
    "metadata twice": (raw(b'{"__metadata__":null,"__metadata__":{}}'), E, "two of '__metadata__'"),
    "no name": (file({"": ONE}, bytes(8)), E, "a tensor without a name"),
    "long name": (file({"a" * 2000: ONE}, bytes(8)), E, "a string of more than 1024 bytes"),
    "no shape": (file({"a": {"dtype": "F32", "data_offsets": [0, 8]}}), E, "no shape"),
    "another key": (file({"a": ONE | {"x": 1}}, bytes(8)), E, "the key 'x'"),
    "dtype twice": (
        raw(b'{"a":{"dtype":"F32","dtype":"F16","shape":[2],"data_offsets":[0,8]}}', bytes(8)),
        E,
        "two of 'dtype'",
    ),
    "a name twice": (
        raw(
            b'{"a":%s,"a":%s}' % (json.dumps(ONE).encode(), json.dumps(entry("F32", [1], 8, 12)).encode()),
            bytes(12),
        ),
        E,
        "tensor 'a' occurs twice",
    ),
    "an unknown type": (file({"a": entry("F4", [2], 0, 1)}, b"0"), U, "tensor 'a' has type 'F4'"),
    "a negative size": (file({"a": entry("F32", [-2], 0, 8)}, bytes(8)), E, "a non-negative integer"),
    "a fraction": (raw(b'{"a":{"shape":[2.0]}}'), E, "'2.' where a non-negative integer"),
    "a leading zero": (raw(b'{"a":{"shape":[02]}}'), E, "where a non-negative integer"),
    "a huge number": (raw(b'{"a":{"shape":[%s]}}' % (b"9" * 30)), E, "a number beyond 64 bits"),
    "9 dimensions": (file({"a": entry("F32", [1] * 9, 0, 4)}, bytes(4)), E, "more than 8 dim"),
    "an overflow": (file({"a": entry("F32", [2**40, 2**40], 0, 8)}), E, "more elements than 64 bits"),
    "an overflow with 0": (file({"a": entry("F32", [2**40, 2**40, 0], 0, 0)}), E, "more elements"),
    "bytes overflow": (file({"a": entry("F64", [2**61], 0, 8)}), E, "more bytes than 64 bits"),
    "too long": (file({"a": entry("F32", [2], 0, 12)}, bytes(12)), E, r"at bytes 0\.\.12, but .* 8"),
    "reversed": (file({"a": entry("F32", [2], 8, 0)}, bytes(8)), E, r"at bytes 8\.\.0"),
    "beyond the end": (file({"a": ONE}, bytes(7)), E, "of the 7 bytes of data; .* incomplete"),
    "an overlap": (
        file({"a": ONE, "b": entry("F32", [2], 4, 12)}, bytes(12)),
        E,
        "tensor 'b' begins at byte 4 of the data, where the tensors before it end at 8",
    ),
    "a hole": (file({"a": ONE, "b": entry("F32", [1], 12, 16)}, bytes(16)), E, "end at 8"),
    "unused data": (file({"a": ONE}, bytes(9)), E, "has 9 bytes of data, but its tensors end at 8"),
    "the far end": (file({"a": entry("F32", [0], 2**64 - 1, 2**64 - 1)}), E, "begins at byte"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_files_are_refused(path: Path, case: str) -> None:
    content, error, message = REFUSED[case]
    with pytest.raises(error, match=message) as caught:
        opened(path, content)
    assert str(caught.value).startswith(str(path))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    loop = tmp_path / "loop.safetensors"
    loop.symlink_to(loop)
    os.mkfifo(tmp_path / "pipe")
    for name, message in [
        ("loop.safetensors", "cannot be opened: Too many levels"),
        ("pipe", "is not a regular file"),
        ("missing", "cannot be opened: No such file"),
        (".", "is a folder"),
    ]:
        with pytest.raises(ModelFileError, match=message):
            _core.SafetensorsFiles([str(tmp_path / name)])
    with pytest.raises(InvalidArgumentError, match="at least one file"):
        _core.SafetensorsFiles([])


def test_a_tensor_in_two_shards_is_refused(tmp_path: Path) -> None:
    paths = [tmp_path / "1.safetensors", tmp_path / "2.safetensors"]
    for path in paths:
        path.write_bytes(file({"t": ONE}, bytes(8)))
    with pytest.raises(ModelFileError, match="tensor 't' occurs twice"):
        _core.SafetensorsFiles([str(path) for path in paths])


def test_a_file_that_was_cut_since_is_noticed(path: Path) -> None:
    model = opened(path, file({"t": entry("F32", [4096], 0, 16384)}, bytes(16384)))
    os.truncate(path, 100)
    with pytest.raises(ModelFileError, match="was cut to 100 bytes"):
        model.tensor_bytes("t")
