"""Where an engine finds its weights in a file: parts of tensors, what is added to them, what is refused."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt
import pytest

from akunu import _core
from akunu.base.errors import ModelFileError
from akunu.cli.bench.one_sequence import OneSequence
from akunu.files.describe.config import ModelSpec
from akunu.files.describe.gguf_config import resolve
from akunu.files.describe.tensor_map import TensorRef

from . import convert, tiny

Arrays = dict[str, npt.NDArray[np.float32]]
IDS = [5, 260, 17, 99, 3]


def rewritten(path: Path, name: str, change: Callable[[Arrays], Arrays], dtype: str = "F32") -> Path:
    """The tiny model with other tensors in its file."""
    model = tiny.ALL[name]
    writer = gguf.GGUFWriter(str(path), model.arch)
    for key, value in convert.metadata(model).items():
        convert.add_value(writer, key, value)
    convert.add_tensors(writer, change(convert.tensors(model, tiny.weights(model))), dtype)
    convert.finish(writer)
    return path


def original(name: str, folder: Path) -> tuple[_core.GgufFile, ModelSpec]:
    file = _core.GgufFile(str(tiny.write(name, "F32", folder / "original.gguf").path))
    return file, resolve(file)


def logits(file: _core.GgufFile, spec: ModelSpec) -> npt.NDArray[np.float32]:
    return _core.Engine(file, spec, device="cpu", context=64, threads=1, kv_dtype="f32").logits(IDS)


def test_parts_of_a_vector_equal_whole_vectors(tmp_path: Path) -> None:
    def fuse(arrays: Arrays) -> Arrays:
        for n in range(tiny.ALL["qwen2"].n_layers):
            arrays[f"blk.{n}.attn_qkv.bias"] = np.concatenate(
                [arrays.pop(f"blk.{n}.attn_{part}.bias") for part in "qkv"]
            )
        return arrays

    whole, spec = original("qwen2", tmp_path)
    fused = _core.GgufFile(str(rewritten(tmp_path / "fused.gguf", "qwen2", fuse)))
    tensors = dict(spec.tensors)
    q_dim, kv_dim = spec.config.n_heads * 64, spec.config.n_kv_heads * 64
    for n in range(spec.config.n_layers):
        source = f"blk.{n}.attn_qkv.bias"
        for part, first, size in (("q", 0, q_dim), ("k", q_dim, kv_dim), ("v", q_dim + kv_dim, kv_dim)):
            tensors[f"layers.{n}.attn_{part}_bias"] = TensorRef(source, first, size, 0)
    found = logits(fused, dataclasses.replace(spec, tensors=tensors))
    np.testing.assert_array_equal(found, logits(whole, spec))


def test_what_a_file_stores_less_one_is_added(tmp_path: Path) -> None:
    def less_one(arrays: Arrays) -> Arrays:
        return {name: a - np.float32(1) if "norm" in name else a for name, a in arrays.items()}

    whole, spec = original("gemma3", tmp_path)
    raw = _core.GgufFile(str(rewritten(tmp_path / "raw.gguf", "gemma3", less_one)))
    tensors = {
        name: dataclasses.replace(ref, add=1.0) if "norm" in name else ref
        for name, ref in spec.tensors.items()
    }
    found = logits(raw, dataclasses.replace(spec, tensors=tensors))
    np.testing.assert_allclose(found, logits(whole, spec), atol=1e-4)
    assert np.abs(logits(raw, spec) - found).max() > 0.1


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("tensor", ["blk.1.ffn_up.weight", "blk.1.attn_norm.weight", "token_embd.weight"])
@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_weights_that_are_no_numbers_are_refused(
    dtype: str, tensor: str, value: float, tmp_path: Path
) -> None:
    def spoil(arrays: Arrays) -> Arrays:
        arrays[tensor] = arrays[tensor].copy()
        arrays[tensor].flat[-1] = value
        return arrays

    file = _core.GgufFile(str(rewritten(tmp_path / "nan.gguf", "llama", spoil, dtype)))
    with pytest.raises(ModelFileError, match=rf"nan\.gguf: tensor '{tensor}' holds NaN or an infinity"):
        logits(file, resolve(file))


SCALES = {
    "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q2_K": (80, 82),
    "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "IQ4_NL": (0,), "IQ4_XS": (0,),
    "MXFP4": (0,),
}  # fmt: skip
"""Where the scales of a block are."""


@pytest.mark.parametrize("dtype", SCALES)
def test_scales_of_blocks_that_are_no_numbers_are_refused(dtype: str, tmp_path: Path) -> None:
    whole = tiny.write("llama_256", dtype, tmp_path / "whole.gguf").path
    file = _core.GgufFile(str(whole))
    reader = gguf.GGUFReader(whole)
    tensor = next(each for each in reader.tensors if each.tensor_type.name == dtype)
    block = gguf.GGML_QUANT_SIZES[tensor.tensor_type][1]
    logits(file, resolve(file))
    for place in SCALES[dtype]:
        for bad in (b"\xff",) if dtype == "MXFP4" else (b"\x00\x7e", b"\x00\xfc"):  # NaN, minus infinity
            data = bytearray(Path(whole).read_bytes())
            at = tensor.data_offset + tensor.n_bytes - block + place
            data[at : at + len(bad)] = bad
            path = tmp_path / "damaged.gguf"
            path.write_bytes(data)
            damaged = _core.GgufFile(str(path))
            with pytest.raises(ModelFileError, match=f"'{tensor.name}' holds NaN or an infinity"):
                logits(damaged, resolve(damaged))


@pytest.mark.parametrize(
    ("ref", "message"),
    [
        (TensorRef("blk.0.attn_norm.weight", 1, 96, 0), r"does not hold elements 1\.\.97"),
        (TensorRef("blk.0.attn_q.weight", 0, 96, 0), r"does not hold elements 0\.\.96"),
        (TensorRef("blk.0.attn_q.weight", 1, 256, 96), r"does not hold rows 1\.\.257 of 96 columns"),
        (TensorRef("blk.0.attn_q.weight", 2**63, 2**63, 96), "does not hold rows"),
        (TensorRef("blk.0.attn_q.weight", 0, 96, 256), r"does not hold rows 0\.\.96 of 256 columns"),
        (TensorRef("blk.0.nothing", 0, 1, 0), r"tensor 'blk\.0\.nothing' is missing"),
    ],
)
def test_a_part_beyond_its_tensor_is_refused(ref: TensorRef, message: str, tmp_path: Path) -> None:
    file, spec = original("llama", tmp_path)
    wrong = dataclasses.replace(spec, tensors={**spec.tensors, "layers.0.attn_norm": ref})
    with pytest.raises(ModelFileError, match=message):
        logits(file, wrong)


@pytest.mark.parametrize("name", ["token_embedding", "output", "layers.0.attn_q", "layers.1.ffn_down"])
def test_every_matrix_has_the_shape_that_its_block_expects(name: str, tmp_path: Path) -> None:
    """The embedding too where the output is another matrix."""
    file, spec = original("llama", tmp_path)
    assert "output" in spec.tensors
    ref = spec.tensors[name]
    fewer = dataclasses.replace(ref, n_rows=ref.n_rows - 1)
    message = f"'{name}' is {ref.n_rows - 1}x{ref.n_cols}, expected {ref.n_rows}x{ref.n_cols}"
    with pytest.raises(ModelFileError, match=message):
        logits(file, dataclasses.replace(spec, tensors={**spec.tensors, name: fewer}))


def test_a_file_that_was_cut_is_an_error_before_it_is_read(tmp_path: Path) -> None:
    """Weights that are used where the file is mapped: reading them behind its end would kill the process."""
    path = tiny.write("llama", "F32", tmp_path / "cut.gguf").path
    file = _core.GgufFile(str(path))
    engine = _core.Engine(file, resolve(file), device="cpu", context=64, threads=1, kv_dtype="f32")
    assert engine.memory["weights_mapped"] > 0
    engine.logits(IDS)
    size = path.stat().st_size
    os.truncate(path, 100)
    for call in (lambda: engine.logits(IDS), lambda: engine.nll(IDS), lambda: begun(engine)):
        with pytest.raises(ModelFileError, match=f"was cut to 100 bytes after it was opened with {size}"):
            call()


def begun(engine: _core.Engine) -> None:
    sequence = OneSequence(engine)
    sequence.begin(IDS)
    sequence.prefill()
