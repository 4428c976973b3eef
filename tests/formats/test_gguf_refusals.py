"""Each way a file can be wrong is refused, with a message that names it."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from akunu import _core
from akunu.base.errors import ModelFileError, UnsupportedError

from . import gguf_bytes as raw
from .gguf_bytes import ARRAY, BOOL, F32, I32, STRING, U8, U16, U32, U64, Tensor, pair, string, u32, u64

HUGE = 2**64 - 1


def deep_array(depth: int) -> bytes:
    """A key whose value is `depth` arrays inside each other."""
    return string("deep") + u32(ARRAY) + (u32(ARRAY) + u64(1)) * (depth - 1) + u32(U8) + u64(0)


def lying_array(item: int, count: int, payload: bytes = b"") -> bytes:
    return string("lie") + u32(ARRAY) + u32(item) + u64(count) + payload


WRONG_FILES: dict[str, tuple[bytes, type[Exception], str]] = {
    # What people mistake for a model.
    "git_lfs_pointer": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
        ModelFileError,
        "git-lfs pointer.*git lfs pull",
    ),
    "html": (b"\n <!DOCTYPE html><html></html>", ModelFileError, "web page"),
    "json": (b'{"error": "not found"}', ModelFileError, "JSON"),
    "zip": (b"PK\x03\x04" + bytes(40), ModelFileError, "zip archive"),
    "pickle": (b"\x80\x02}q\x00.", ModelFileError, "pickle"),
    "gzip": (b"\x1f\x8b\x08" + bytes(20), ModelFileError, "gzip"),
    "safetensors": (struct.pack("<Q", 16) + b'{"a":{}}        ', ModelFileError, "SafeTensors"),
    "ggml": (b"lmgg" + bytes(40), ModelFileError, "GGML file, as of whisper.cpp"),
    "zeros": (bytes(100), ModelFileError, "begins with zeros"),
    "text": (b"hello \x1b[31m", ModelFileError, r"begins with 'hello \\x1b\[' where 'GGUF'"),
    "one_byte": (b"G", ModelFileError, "begins with 'G'"),
    "empty": (b"", ModelFileError, "is empty"),
    # Versions.
    "version_1": (raw.gguf(version=1), UnsupportedError, "GGUF version 1; versions 2 and 3"),
    "version_4": (raw.gguf(version=4), UnsupportedError, "GGUF version 4"),
    "big_endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), UnsupportedError, "big-endian"),
    # Counts.
    "no_counts": (b"GGUF\3\0\0\0", ModelFileError, "needs 8 bytes where 0 are left"),
    "huge_key_count": (raw.gguf(key_count=HUGE), ModelFileError, f"announces {HUGE} keys"),
    "many_keys": (raw.gguf(key_count=1000), ModelFileError, "announces 1000 items, but only"),
    "huge_tensor_count": (raw.gguf(tensor_count=HUGE), ModelFileError, f"announces {HUGE} tensors"),
    "many_tensors": (raw.gguf(tensor_count=1000), ModelFileError, "tensor list announces 1000 items"),
    # Metadata.
    "huge_key": (raw.gguf([u64(HUGE) + b"abc" + bytes(16)]), ModelFileError, f"needs {HUGE} bytes"),
    "long_key": (raw.gguf([pair("k" * 65536, U8, 1)]), ModelFileError, "a key of 65536 bytes"),
    "empty_key": (raw.gguf([pair("", U8, 1)]), ModelFileError, "a key of 0 bytes"),
    "duplicate_key": (
        raw.gguf([pair("k", U8, 1), pair("j", U8, 1), pair("k", U32, 2)]),
        ModelFileError,
        "'k' occurs twice",
    ),
    "value_type_13": (raw.gguf([string("k") + u32(13) + bytes(8)]), ModelFileError, "'k' has value type 13"),
    "huge_string": (raw.gguf([string("k") + u32(STRING) + u64(2**63)]), ModelFileError, "'k' needs"),
    "bool_2": (raw.gguf([string("k") + u32(BOOL) + b"\2"]), ModelFileError, "neither 0 nor 1"),
    "bool_2_in_array": (raw.gguf([lying_array(BOOL, 2, b"\1\2")]), ModelFileError, "neither 0 nor 1"),
    "array_type_99": (raw.gguf([lying_array(99, 1, bytes(8))]), ModelFileError, "value type 99"),
    "huge_array": (raw.gguf([lying_array(U8, HUGE)]), ModelFileError, "'lie' announces"),
    "array_that_wraps": (
        raw.gguf([lying_array(U64, 2**61 + 1, bytes(8))]),
        ModelFileError,
        "'lie' announces",
    ),
    "huge_strings": (raw.gguf([lying_array(STRING, 2**60, bytes(64))]), ModelFileError, "'lie' announces"),
    "huge_arrays": (raw.gguf([lying_array(ARRAY, 2**60, bytes(64))]), ModelFileError, "'lie' announces"),
    "bad_string_inside": (
        raw.gguf([lying_array(STRING, 2, u64(0) + u64(99))]),
        ModelFileError,
        "'lie' needs 99 bytes",
    ),
    "deep_array": (raw.gguf([deep_array(5)]), ModelFileError, "nests arrays more than 4 deep"),
    "very_deep_array": (raw.gguf([deep_array(100000)]), ModelFileError, "nests arrays more than 4 deep"),
    # Alignment.
    "alignment_0": (raw.gguf([pair("general.alignment", U32, 0)]), ModelFileError, "general.alignment is 0"),
    "alignment_4": (raw.gguf([pair("general.alignment", U32, 4)]), ModelFileError, "at least 8"),
    "alignment_48": (raw.gguf([pair("general.alignment", U32, 48)]), ModelFileError, "a power of two"),
    "alignment_negative": (
        raw.gguf([pair("general.alignment", I32, -32)]),
        ModelFileError,
        "not a non-negative integer",
    ),
    "alignment_text": (
        raw.gguf([pair("general.alignment", STRING, "32")]),
        ModelFileError,
        "not a non-negative integer",
    ),
    "alignment_2_to_63": (
        raw.gguf([pair("general.alignment", U64, 2**63)]),
        ModelFileError,
        "general.alignment is",
    ),
    "alignment_past_the_end": (
        raw.gguf([pair("general.alignment", U32, 2**31)], [Tensor("w")], data=bytes(64)),
        ModelFileError,
        "of the 0 bytes of tensor data",
    ),
    # Tensors.
    "no_dims": (raw.gguf([], [Tensor("w", n_dims=0)]), ModelFileError, "'w' has 0 dimensions"),
    "five_dims": (raw.gguf([], [Tensor("w", (1, 1, 1, 1, 1))]), ModelFileError, "'w' has 5 dimensions"),
    "huge_n_dims": (
        raw.gguf([], [Tensor("w", n_dims=2**32 - 1)]),
        ModelFileError,
        "'w' has 4294967295 dimensions",
    ),
    "zero_dim": (
        raw.gguf([], [Tensor("w", (4, 0))], data=bytes(64)),
        ModelFileError,
        "'w' has a dimension of 0",
    ),
    "dims_that_wrap": (
        raw.gguf([], [Tensor("w", (2**32, 2**32))], data=bytes(64)),
        ModelFileError,
        "than 64 bits can",
    ),
    "bytes_that_wrap": (
        raw.gguf([], [Tensor("w", (2**62,))], data=bytes(64)),
        ModelFileError,
        "'w' has more bytes than 64 bits",
    ),
    "row_not_whole_blocks": (
        raw.gguf([], [Tensor("w", (33, 2), type=8)], data=bytes(128)),
        ModelFileError,
        "rows of 33 elements, not whole q8_0 blocks of 32",
    ),
    "unsupported_type": (
        raw.gguf([], [Tensor("w", (256,), type=16)]),
        UnsupportedError,
        "'w' has type IQ2_XXS",
    ),
    "ternary_type": (raw.gguf([], [Tensor("w", (256,), type=34)]), UnsupportedError, "'w' has type TQ1_0"),
    "retired_type": (raw.gguf([], [Tensor("w", (256,), type=5)]), UnsupportedError, "'w' has type Q4_3"),
    "unknown_type": (
        raw.gguf([], [Tensor("w", type=77)]),
        UnsupportedError,
        "'w' has type number 77, which is unknown",
    ),
    "internal_type": (raw.gguf([], [Tensor("w", type=0x1000)]), UnsupportedError, "number 4096"),
    "empty_name": (raw.gguf([], [Tensor("")]), ModelFileError, "a tensor name of 0 bytes"),
    "long_name": (raw.gguf([], [Tensor("w" * 256)]), ModelFileError, "a tensor name of 256 bytes"),
    "duplicate_tensor": (
        raw.gguf([], [Tensor("w"), Tensor("v"), Tensor("w")]),
        ModelFileError,
        "tensor 'w' occurs twice",
    ),
    "misaligned": (
        raw.gguf([], [Tensor("w", offset=4)]),
        ModelFileError,
        "offset 4, not a multiple of the alignment 32",
    ),
    "past_the_end": (
        raw.gguf([], [Tensor("w", (64,))], data=bytes(255)),
        ModelFileError,
        "256 bytes at offset 0 of the 255",
    ),
    "offset_past_the_end": (
        raw.gguf([], [Tensor("w", offset=2**40)], data=bytes(64)),
        ModelFileError,
        "at offset 1099511627776",
    ),
    "offset_that_wraps": (
        raw.gguf([], [Tensor("w", offset=2**64 - 32)], data=bytes(64)),
        ModelFileError,
        "at offset 18446",
    ),
    "overlap": (
        raw.gguf([], [Tensor("a", (64,)), Tensor("b", (4,), offset=224)], data=bytes(256)),
        ModelFileError,
        "tensors 'a' and 'b' overlap",
    ),
    "hole": (
        raw.gguf([], [Tensor("a", (4,)), Tensor("b", (4,), offset=64)], data=bytes(128)),
        ModelFileError,
        "tensor 'b' has offset 64, where 32 is next",
    ),
    "hole_at_the_start": (
        raw.gguf([], [Tensor("a", (4,), offset=32)], data=bytes(64)),
        ModelFileError,
        "tensor 'a' has offset 32, where 0 is next",
    ),
    "same_place": (
        raw.gguf([], [Tensor("a"), Tensor("b", offset=0)], data=bytes(64)),
        ModelFileError,
        "overlap",
    ),
    "terminal_escape_in_name": (
        raw.gguf([], [Tensor("\x1b[2J", n_dims=9)]),
        ModelFileError,
        r"tensor '\\x1b\[2J'",
    ),
    # A part that does not know its place.
    "split_no_beyond_count": (
        raw.gguf(raw.split_pairs(3, 2, 0)),
        ModelFileError,
        "split.no 3 of split.count 2",
    ),
    "split_count_beyond_names": (
        raw.gguf([pair("split.count", U32, 100000)]),
        ModelFileError,
        "makes no sense",
    ),
    "split_count_not_integer": (
        raw.gguf([pair("split.count", F32, 2.0)]),
        ModelFileError,
        "split.count is not",
    ),
    "split_with_other_name": (
        raw.gguf(raw.split_pairs(0, 2, 0)),
        ModelFileError,
        "must end in -00001-of-00002.gguf",
    ),
    "split_tensor_count": (
        raw.gguf([pair("split.tensors.count", I32, 5)]),
        ModelFileError,
        "count is 5, but the files hold 0",
    ),
}


@pytest.mark.parametrize("case", WRONG_FILES)
def test_wrong_files_are_refused(tmp_path: Path, case: str) -> None:
    content, error, message = WRONG_FILES[case]
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(error, match=message) as caught:
        _core.GgufFile(str(path))
    assert str(caught.value).startswith(str(path))


def test_a_header_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(raw.gguf([string("k") + u32(STRING) + u64(130 << 20)]))
    os.truncate(path, 200 << 20)  # sparse: the string is all there, and too long
    with pytest.raises(ModelFileError, match=r"'k' needs 136314880 bytes.*longer than the 128 MiB"):
        _core.GgufFile(str(path))


def test_things_that_are_not_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"No such file"):
        _core.GgufFile(str(tmp_path / "missing.gguf"))
    with pytest.raises(ModelFileError, match=r"is a folder"):
        _core.GgufFile(str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match=r"not a regular file"):
        _core.GgufFile(str(tmp_path / "pipe"))
    with pytest.raises(ValueError, match=r"null byte"):
        _core.GgufFile("a\0b")
    with pytest.raises(TypeError):
        _core.GgufFile(5)


def test_a_message_survives_a_path_that_is_not_utf8(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"x\\xff.gguf: cannot be opened"):
        _core.GgufFile(os.fsdecode(os.fsencode(tmp_path) + b"/x\xff.gguf"))


class TestSplitFiles:
    """Parts that do not fit together; each case spoils one thing of a good pair."""

    architecture = pair("general.architecture", STRING, "llama")

    def write(self, folder: Path, *parts: bytes) -> str:
        for i, content in enumerate(parts):
            (folder / f"m-{i + 1:05}-of-{len(parts):05}.gguf").write_bytes(content)
        return str(folder / f"m-00001-of-{len(parts):05}.gguf")

    def part(
        self, number: int, *more: bytes, count: int = 2, total: int = 2, tensor: str | None = None
    ) -> bytes:
        return raw.gguf(raw.split_pairs(number, count, total, *more), [Tensor(tensor or f"t{number}")])

    def test_good_parts(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, self.part(0, self.architecture), self.part(1, self.architecture))
        assert [tensor.name for tensor in _core.GgufFile(path).tensors] == ["t0", "t1"]

    def test_missing_part(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, self.part(0), self.part(1))
        (tmp_path / "m-00002-of-00002.gguf").unlink()
        with pytest.raises(
            ModelFileError, match=r"m-00002-of-00002.gguf: cannot be opened.*\(part 2 of 2 of the split"
        ):
            _core.GgufFile(path)

    def test_damaged_part(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, self.part(0), self.part(1)[:-20])
        with pytest.raises(ModelFileError, match=r"tensor 't1' has.*part 2 of 2"):
            _core.GgufFile(path)

    @pytest.mark.parametrize(
        ("second", "message"),
        [
            ({"number": 0}, "is part 1 of 2 by its metadata, but part 2 of 2 by its name"),
            ({"number": 1, "count": 3}, "is part 2 of 3 by its metadata"),
            ({"number": 1, "total": 3}, "another split.tensors.count"),
            ({"number": 1, "tensor": "t0"}, "tensor 't0' occurs twice"),
        ],
    )
    def test_part_that_does_not_belong(self, tmp_path: Path, second: dict[str, object], message: str) -> None:
        path = self.write(tmp_path, self.part(0), self.part(**second))
        with pytest.raises(ModelFileError, match=message):
            _core.GgufFile(path)

    def test_part_without_split_keys(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, self.part(0), raw.gguf([], [Tensor("t1")]))
        with pytest.raises(ModelFileError, match=r"is part 1 of 1 by its metadata"):
            _core.GgufFile(path)

    def test_part_of_another_model(self, tmp_path: Path) -> None:
        other = pair("general.architecture", STRING, "qwen2")
        path = self.write(tmp_path, self.part(0, self.architecture), self.part(1, other))
        with pytest.raises(ModelFileError, match=r"'general.architecture' differs.*different models"):
            _core.GgufFile(path)

    def test_wrong_total(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, self.part(0, total=3), self.part(1, total=3))
        with pytest.raises(ModelFileError, match=r"split.tensors.count is 3, but the files hold 2"):
            _core.GgufFile(path)

    def test_name_with_another_count(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, self.part(0, count=3), self.part(1, count=3))
        with pytest.raises(ModelFileError, match=r"must end in -00001-of-00003.gguf"):
            _core.GgufFile(path)

    def test_unsplit_file_by_merge_tool(self, tmp_path: Path) -> None:
        """Merging writes split.count 0 and leaves the other keys."""
        merged = raw.gguf(
            [pair("split.count", U16, 0), pair("split.no", U16, 0), pair("split.tensors.count", I32, 1)],
            [Tensor("t")],
        )
        (tmp_path / "merged.gguf").write_bytes(merged)
        assert len(_core.GgufFile(str(tmp_path / "merged.gguf")).tensors) == 1
