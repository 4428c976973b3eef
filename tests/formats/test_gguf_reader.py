"""The reader agrees with `gguf.GGUFReader` on real files and on what `gguf.GGUFWriter` writes."""

from __future__ import annotations

import gc
import os
import time
from pathlib import Path

import gguf
import numpy as np
import pytest

from akunu import _core
from akunu.base.errors import InvalidArgumentError, ModelFileError

from . import gguf_bytes as raw

VOCABULARIES = ["bert-bge", "deepseek-llm", "gpt-2", "llama-bpe", "llama-spm", "phi-3", "qwen2", "starcoder"]


def reference_metadata(path: Path) -> dict[str, object]:
    """What GGUFReader holds, decoded our way: text with surrogateescape, arrays as lists."""

    def decode(field: gguf.ReaderField) -> object:
        if field.types[0] == gguf.GGUFValueType.STRING:
            return bytes(field.parts[-1]).decode("utf-8", "surrogateescape")
        if field.types[0] == gguf.GGUFValueType.ARRAY:
            if field.types[1:] == [gguf.GGUFValueType.STRING]:
                return [bytes(field.parts[i]).decode("utf-8", "surrogateescape") for i in field.data]
            return [field.parts[i].tolist()[0] for i in field.data]
        return field.parts[-1].tolist()[0]

    fields = gguf.GGUFReader(path).fields
    return {key: decode(field) for key, field in fields.items() if not key.startswith("GGUF.")}


def write(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


def write_model(path: Path, **options: object) -> dict[str, np.ndarray]:
    """A model by GGUFWriter; returns each tensor's data as it must be read."""
    rng = np.random.default_rng(7)
    writer = gguf.GGUFWriter(path, "llama", **options)
    writer.add_block_count(2)
    writer.add_float32("llama.rope.freq_base", 10000.0)
    writer.add_array("tokenizer.ggml.tokens", ["<s>", "héllo", "▁wörld"])
    writer.add_array("tokenizer.ggml.scores", [0.0, -1.5, 2.25])
    writer.add_array("tokenizer.ggml.token_type", [3, 1, 1])
    data: dict[str, np.ndarray] = {}
    for layer in range(2):
        data[f"blk.{layer}.f32"] = rng.standard_normal((5, 7)).astype(np.float32)
        data[f"blk.{layer}.f16"] = rng.standard_normal((3, 4)).astype(np.float16)
        data[f"blk.{layer}.i32"] = rng.integers(-9, 9, 11).astype(np.int32)
    for name, array in data.items():
        writer.add_tensor(name, array)
    for kind in (
        gguf.GGMLQuantizationType.Q4_0,
        gguf.GGMLQuantizationType.Q6_K,
        gguf.GGMLQuantizationType.MXFP4,
    ):
        elems, size = gguf.GGML_QUANT_SIZES[kind]
        blocks = rng.integers(0, 256, (6, 2 * size), dtype=np.uint8)
        data[f"q.{kind.name}"] = blocks
        writer.add_tensor(f"q.{kind.name}", blocks, raw_dtype=kind)
        assert blocks.shape[1] // size * elems == 2 * elems
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return data


@pytest.mark.table
@pytest.mark.parametrize("name", VOCABULARIES)
def test_real_vocabularies(vocab_dir: Path, name: str) -> None:
    path = vocab_dir / f"ggml-vocab-{name}.gguf"
    file = _core.GgufFile(str(path))
    expected = raw.read_metadata(path.read_bytes())
    if name in ("bert-bge", "llama-spm", "phi-3"):  # GGUFReader takes up to 15 s for the larger ones
        assert expected == reference_metadata(path)
    assert list(file.metadata) == list(expected)
    assert file.metadata == expected
    assert {key: type(value) for key, value in file.metadata.items()} == {
        k: type(v) for k, v in expected.items()
    }
    assert file.tensors == []
    assert file.paths == [str(path)]


def test_a_large_vocabulary_converts_quickly(vocab_dir: Path) -> None:
    """151936 tokens and 151387 merges; the best of three, beside other work."""

    def seconds() -> float:
        start = time.process_time()
        metadata = _core.GgufFile(str(vocab_dir / "ggml-vocab-qwen2.gguf")).metadata
        assert len(metadata["tokenizer.ggml.tokens"]) == 151936
        return time.process_time() - start

    assert min(seconds() for _ in range(3)) < 0.15


def test_a_written_model_equals_gguf_reader(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    data = write_model(path)
    file = _core.GgufFile(str(path))
    assert file.version == 3
    assert file.metadata == reference_metadata(path)
    reference = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    assert [tensor.name for tensor in file.tensors] == list(reference)
    for tensor in file.tensors:
        expected = reference[tensor.name]
        assert tensor.dtype == expected.tensor_type.name.lower()
        assert tensor.shape == tuple(reversed(expected.shape.tolist()))
        assert tensor.nbytes == expected.n_bytes
        assert tensor.offset == expected.data_offset
        assert tensor.file == 0
        assert file.tensor_bytes(tensor.name).tobytes() == data[tensor.name].tobytes()


def test_every_value_type(tmp_path: Path) -> None:
    metadata = _core.GgufFile(write(tmp_path / "m.gguf", raw.sample())).metadata
    assert metadata == {
        "general.architecture": "llama",
        "general.alignment": 32,
        "a.u8": 200,
        "a.i8": -3,
        "a.u16": 60000,
        "a.i16": -300,
        "a.i32": -70000,
        "a.f32": 0.5,
        "a.bool": True,
        "a.u64": 2**63 + 5,
        "a.i64": -(2**60),
        "a.f64": 0.1,
        "b.empty": "",
        "b.strings": ["a", "", "▁héé", "\udcff\udcfe", "a\0b"],
        "b.floats": [1.0, -2.5],
        "b.bools": [True, False],
        "b.none": [],
        "b.nested": [[1, 2], ["x"], [[-1]]],
    }
    assert metadata["a.bool"] is True and metadata["b.bools"][1] is False


def test_version_2_reads_like_version_3(tmp_path: Path) -> None:
    two = _core.GgufFile(write(tmp_path / "2.gguf", raw.sample(version=2)))
    three = _core.GgufFile(write(tmp_path / "3.gguf", raw.sample(version=3)))
    assert (two.version, three.version) == (2, 3)
    assert two.metadata == three.metadata
    for a, b in zip(two.tensors, three.tensors, strict=True):
        assert (a.name, a.dtype, a.shape, a.offset, a.nbytes) == (
            b.name,
            b.dtype,
            b.shape,
            b.offset,
            b.nbytes,
        )


def test_get_converts_one_key(tmp_path: Path) -> None:
    file = _core.GgufFile(write(tmp_path / "m.gguf", raw.sample()))
    for _ in range(2):  # before and after the whole metadata is converted
        assert file.get("a.i16") == -300
        assert file.get("b.floats") == [1.0, -2.5]
        assert file.get("missing") is None
        assert file.get("missing", 5) == 5
        assert file.metadata is file.metadata


def test_names_that_are_not_utf8_can_be_asked_for(tmp_path: Path) -> None:
    content = raw.gguf([raw.pair(b"k\xff", raw.U8, 1)])
    file = _core.GgufFile(write(tmp_path / "m.gguf", content))
    assert file.get("k\udcff") == 1
    assert file.metadata == {"k\udcff": 1}


@pytest.mark.parametrize("alignment", [8, 64, 4096])
def test_alignment_is_honoured(tmp_path: Path, alignment: int) -> None:
    tensors = [raw.Tensor("a", (3,)), raw.Tensor("b", (5,))]
    content = raw.gguf([raw.pair("general.alignment", raw.U32, alignment)], tensors, alignment=alignment)
    file = _core.GgufFile(write(tmp_path / "m.gguf", content))
    first, second = file.tensors
    assert first.offset % alignment == 0
    assert second.offset == first.offset + max(alignment, 16)
    assert file.tensor_bytes("b").tobytes() == content[second.offset : second.offset + 20]


def test_shape_is_outermost_first(tmp_path: Path) -> None:
    content = raw.gguf([], [raw.Tensor("w", (64, 3, 2), type=8)])
    (tensor,) = _core.GgufFile(write(tmp_path / "m.gguf", content)).tensors
    assert tensor.shape == (2, 3, 64)
    assert tensor.nbytes == 2 * 3 * 2 * 34
    assert repr(tensor) == "<TensorEntry 'w' q8_0 [2, 3, 64]>"


def test_tensor_bytes_are_a_read_only_view_that_keeps_the_mapping(tmp_path: Path) -> None:
    file = _core.GgufFile(write(tmp_path / "m.gguf", raw.sample()))
    view = file.tensor_bytes("half")
    expected = view.tobytes()
    assert not view.flags.writeable and not view.flags.owndata
    with pytest.raises(ValueError, match=r"WRITEABLE"):
        view.flags.writeable = True
    with pytest.raises(InvalidArgumentError, match=r"has no tensor 'nothing'"):
        file.tensor_bytes("nothing")
    entries = file.tensors
    del file
    gc.collect()
    assert view.tobytes() == expected
    assert entries[0].name == "blk.0.weight"


def test_a_file_cut_after_opening_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", raw.sample())
    file = _core.GgufFile(path)
    os.truncate(path, 100)
    with pytest.raises(ModelFileError, match=r"was cut to 100 bytes after it was opened"):
        file.tensor_bytes("half")
    with pytest.raises(ModelFileError, match=r"was cut to 100 bytes"):
        _ = file.metadata


def test_paths_may_be_pathlike_and_not_ascii(tmp_path: Path) -> None:
    path = tmp_path / "mödel ▁.gguf"
    path.write_bytes(raw.sample())
    assert _core.GgufFile(path).paths == [str(path)]


def test_files_by_gguf_split_writer(tmp_path: Path) -> None:
    data = write_model(tmp_path / "model.gguf", split_max_tensors=4)
    parts = sorted(tmp_path.glob("model-*.gguf"))
    assert len(parts) == 3
    for opened in parts:  # any part finds the others
        file = _core.GgufFile(str(opened))
        assert file.paths == [str(part) for part in parts]
        assert file.metadata["general.architecture"] == "llama"
        assert [tensor.name for tensor in file.tensors] == list(data)
        assert [tensor.file for tensor in file.tensors] == [0, 0, 0, 0, 1, 1, 1, 1, 2]
        for name, array in data.items():
            assert file.tensor_bytes(name).tobytes() == array.tobytes()
