"""NVFP4: codes of four bits, a scale for each 16, and one for the matrix, in folders and in GGUF."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
import pytest

import akunu
from akunu import _core
from akunu.base.errors import ModelFileError, UnsupportedError
from formats import mlx_planes

from . import convert, folders, tiny
from .test_engine import nmse, open_engine
from .test_folder import open_folder

Arrays = dict[str, npt.NDArray[Any]]

CONFIGS: dict[str, dict[str, Any]] = {
    "modelopt": {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]},
    "compressed-tensors": {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"},
}


def factor_of(array: npt.NDArray[np.float32]) -> np.float32:
    """The number that brings the largest scale to the largest of E4M3."""
    return np.float32(np.abs(array).max() / (6 * 448))


def is_projection(name: str, array: npt.NDArray[Any]) -> bool:
    return array.ndim == 2 and array.shape[1] % 32 == 0 and ".layers." in name and "mlp.gate." not in name


def in_planes(method: str, values: bool = False) -> Callable[[Arrays], Arrays]:
    """The matrices of layers as a checkpoint of this method has them, or their values."""

    def change(weights: Arrays) -> Arrays:
        out: Arrays = {}
        for name, array in weights.items():
            if not is_projection(name, array):
                out[name] = array
                continue
            factor = factor_of(array)
            planes = mlx_planes.quantize_floats(array / factor, "nvfp4")
            module = name.removesuffix("weight")
            if values:
                out[name] = planes.values * factor
                continue
            codes = planes.codes.view(np.uint8)
            out[f"{module}weight_scale"] = planes.scales.view(np.int8)  # written as F8_E4M3
            if method == "modelopt":
                out |= {name: codes, f"{module}weight_scale_2": np.array(factor)}
                out[f"{module}input_scale"] = np.array(0.01, np.float32)
            else:
                out |= {f"{name}_packed": codes, f"{module}weight_global_scale": np.array([1 / factor])}
                out[f"{module}input_global_scale"] = np.array([100], np.float32)
        return {name: np.asarray(a, np.float32) if a.dtype.kind == "f" else a for name, a in out.items()}

    return change


def write(method: str, folder: Path, arrays: Callable[[Arrays], Arrays], name: str = "llama_256") -> Path:
    quantization = {"quantization_config": CONFIGS[method]}
    return folders.write(name, folder, change=lambda c: c | quantization, arrays=arrays)


@pytest.mark.parametrize("name", ["llama_256", "qwen3moe_256"])
@pytest.mark.parametrize("method", CONFIGS)
def test_a_folder_is_the_model_of_its_values(method: str, name: str, tmp_path: Path) -> None:
    """Experts are matrices of their own, each with a scale."""
    planes = write(method, tmp_path / "q", in_planes(method), name)
    values = folders.write(name, tmp_path / "f32", arrays=in_planes(method, values=True))
    prompt = tiny.golden(name).prompt
    expected = open_folder(values).logits(prompt)
    error = nmse(open_folder(planes).logits(prompt), expected)
    assert error < (
        4e-3 if name == "llama_256" else 2e-2
    )  # activations are rounded to int8, and chosen by them
    converted = akunu.convert(planes, tmp_path / "x.gguf", "f32", progress=False)
    assert nmse(open_engine(converted).logits(prompt), expected) < 1e-9


def test_packed_mxfp4_is_the_model_of_its_values(tmp_path: Path) -> None:
    """`mxfp4-pack-quantized` of compressed-tensors: a power of two for each 32 codes."""

    def packed(weights: Arrays, values: bool = False) -> Arrays:
        out: Arrays = {}
        for name, array in weights.items():
            if not is_projection(name, array):
                out[name] = array
                continue
            planes = mlx_planes.quantize_floats(array, "mxfp4")
            if values:
                out[name] = planes.values
                continue
            out[f"{name}_packed"] = planes.codes.view(np.uint8)
            out[f"{name}_scale"] = planes.scales
        return out

    form = {"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized"}
    name = "qwen3moe_256"
    planes = folders.write(
        name, tmp_path / "q", change=lambda c: c | {"quantization_config": form}, arrays=packed
    )
    values = folders.write(name, tmp_path / "f32", arrays=partial(packed, values=True))
    converted = akunu.convert(planes, tmp_path / "x.gguf", "f32", progress=False)
    prompt = tiny.golden(name).prompt
    expected = open_folder(values).logits(prompt)
    assert nmse(open_engine(converted).logits(prompt), expected) < 1e-9
    assert nmse(open_folder(planes).logits(prompt), expected) < 2e-2


@pytest.mark.parametrize("part", ["weight_scale", "weight_scale_2"])
def test_a_missing_part_is_named(part: str, tmp_path: Path) -> None:
    missing = f"model.layers.1.mlp.up_proj.{part}"

    def arrays(weights: Arrays) -> Arrays:
        out = in_planes("modelopt")(weights)
        del out[missing]
        return out

    with pytest.raises(ModelFileError, match=missing):
        open_folder(write("modelopt", tmp_path, arrays))


def test_codes_without_an_axis_are_refused(tmp_path: Path) -> None:
    def arrays(weights: Arrays) -> Arrays:
        out = in_planes("compressed-tensors")(weights)
        out["model.layers.1.mlp.up_proj.weight_packed"] = np.zeros((), np.uint8)
        return out

    with pytest.raises(ModelFileError, match=r"up_proj\.weight_scale: found f8_e4m3"):
        open_folder(write("compressed-tensors", tmp_path, arrays))


def test_other_algorithms_are_refused(tmp_path: Path) -> None:
    quantization = {"quantization_config": {"quant_method": "modelopt", "quant_algo": "W4A16_AWQ"}}
    path = folders.write("llama_256", tmp_path, change=lambda c: c | quantization)
    with pytest.raises(UnsupportedError, match="quant_algo: found 'W4A16_AWQ'; supported are FP8 and NVFP4"):
        open_folder(path)


def in_blocks(planes: mlx_planes.FloatPlanes) -> npt.NDArray[np.uint8]:
    """As GGUF has them: four scales, then for each 16 codes the first eight in the low nibbles."""
    rows = len(planes.codes)
    pairs = planes.codes.view(np.uint8).reshape(rows, -1, 4, 8)
    codes = np.stack([pairs & 15, pairs >> 4], axis=-1).reshape(rows, -1, 4, 16)
    nibbles = codes[..., :8] | codes[..., 8:] << 4
    blocks = np.concatenate([planes.scales.reshape(rows, -1, 4), nibbles.reshape(rows, -1, 32)], axis=-1)
    return blocks.reshape(rows, -1)


def write_gguf(path: Path, values: bool, scaled: bool) -> Path:
    """The matrices of layers in NVFP4, with a scale of their own or none; or their values."""
    model = tiny.EVERY["llama_256"]
    writer = gguf.GGUFWriter(str(path), model.arch)
    for key, value in convert.metadata(model).items():
        convert.add_value(writer, key, value)
    convert.add_tokenizer(writer, model.vocab_size)
    kind = gguf.GGMLQuantizationType.NVFP4
    for name, array in convert.tensors(model, tiny.weights(model)).items():
        if not name.startswith("blk.") or array.ndim != 2:
            writer.add_tensor(name, array)
            continue
        factor = factor_of(array) if scaled else np.float32(1)
        planes = mlx_planes.quantize_floats(array / factor, "nvfp4")
        blocks = in_blocks(planes)
        np.testing.assert_array_equal(gguf.quants.dequantize(blocks, kind), planes.values)
        if values:
            writer.add_tensor(name, planes.values * factor)
            continue
        writer.add_tensor(name, blocks, raw_dtype=kind)
        if scaled:
            writer.add_tensor(name.replace(".weight", ".scale"), np.array([factor]))
            writer.add_tensor(name.replace(".weight", ".input_scale"), np.array([0.01], np.float32))
    convert.finish(writer)
    return path


@pytest.mark.parametrize("scaled", [True, False])
def test_a_gguf_file_is_the_model_of_its_values(scaled: bool, tmp_path: Path) -> None:
    planes = write_gguf(tmp_path / "q.gguf", values=False, scaled=scaled)
    values = write_gguf(tmp_path / "f32.gguf", values=True, scaled=scaled)
    prompt = tiny.golden("llama_256").prompt
    expected = open_engine(values).logits(prompt)
    assert nmse(open_engine(planes).logits(prompt), expected) < 4e-3


def test_an_embedding_with_a_scale_is_refused(tmp_path: Path) -> None:
    model = tiny.EVERY["llama_256"]
    writer = gguf.GGUFWriter(str(tmp_path / "m.gguf"), model.arch)
    for key, value in convert.metadata(model).items():
        convert.add_value(writer, key, value)
    convert.add_tokenizer(writer, model.vocab_size)
    kind = gguf.GGMLQuantizationType.NVFP4
    for name, array in convert.tensors(model, tiny.weights(model)).items():
        if name == "token_embd.weight":
            blocks = in_blocks(mlx_planes.quantize_floats(array, "nvfp4"))
            writer.add_tensor(name, blocks, raw_dtype=kind)
            writer.add_tensor("token_embd.scale", np.ones(1, np.float32))
        else:
            writer.add_tensor(name, array)
    convert.finish(writer)
    with pytest.raises(UnsupportedError, match=r"token_embd\.weight: NVFP4 with a scale .* the embedding"):
        open_engine(tmp_path / "m.gguf")


def test_nan_in_a_scale_is_found(tmp_path: Path) -> None:
    def arrays(weights: Arrays) -> Arrays:
        out = in_planes("modelopt")(weights)
        out["model.layers.0.self_attn.q_proj.weight_scale_2"] = np.array(np.nan, np.float32)
        return out

    with pytest.raises(ModelFileError, match=r"q_proj\.weight_scale_2.* NaN"):
        open_folder(write("modelopt", tmp_path, arrays))


def test_the_type_is_in_the_table() -> None:
    assert any(row["name"] == "nvfp4" and row["id"] == 40 for row in _core.dtypes())
