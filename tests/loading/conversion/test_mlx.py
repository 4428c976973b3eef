"""Folders for MLX: the bits of `mlx.core.quantize`, in the layout of mlx-lm."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import akunu
from akunu import _core
from akunu.base.errors import InvalidArgumentError, ModelFileError
from akunu.files.describe.filetypes import MLX_TYPES
from akunu.loading.conversion.to_mlx import GROUP, affine_quantize
from models import folders, tiny

BITS = tuple(kind.bits for kind in MLX_TYPES.values() if kind.bits)


def codes_of(words: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint32]:
    """The codes in rows of words: code i has bits i * bits and on of its row, lowest first."""
    flags = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1, bitorder="little")
    flags = flags.reshape(len(words), -1, bits)
    return (flags.astype(np.uint32) << np.arange(bits, dtype=np.uint32)).sum(axis=2, dtype=np.uint32)


def values(rows: int = 9, cols: int = 192) -> npt.NDArray[np.float32]:
    found = np.random.RandomState(4).standard_t(4, (rows, cols)).astype(np.float32)
    found[0], found[1], found[2] = 0, 3, np.abs(found[2])
    return found


@pytest.mark.parametrize("bits", BITS)
def test_a_weight_is_scale_times_code_plus_bias(bits: int) -> None:
    wanted = values()
    words, scales, biases = affine_quantize(wanted, bits)
    assert words.shape == (9, 192 * bits // 32)
    scale, bias = np.repeat(scales, GROUP, axis=1), np.repeat(biases, GROUP, axis=1)
    found = scale * codes_of(words, bits) + bias
    # Half a step, and as much again at the end that moves when the other is met exactly.
    assert np.all(np.abs(found - wanted) <= 1.01 * np.abs(scale))
    np.testing.assert_allclose(found[0], 0, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("bits", BITS)
def test_bits_equal_those_of_mlx(bits: int, dtype: str) -> None:
    mx = pytest.importorskip("mlx.core")
    kind = getattr(mx, dtype)
    source = mx.array(values()).astype(kind)
    words, scales, biases = affine_quantize(np.array(source.astype(mx.float32)), bits)
    wanted = mx.quantize(source, group_size=GROUP, bits=bits)
    np.testing.assert_array_equal(words, np.array(wanted[0]))
    for found, plane in zip((scales, biases), wanted[1:], strict=True):
        rounded = mx.array(found).astype(kind).astype(mx.float32)
        np.testing.assert_array_equal(np.array(rounded), np.array(plane.astype(mx.float32)))


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
def test_a_folder_has_the_layout_of_mlx_lm(dtype: str, tmp_path: Path) -> None:
    source = folders.write("llama_256", tmp_path / "source", dtype=dtype)
    (source / "tokenizer.json").write_text('{"kept": "as it is"}')
    path = akunu.convert(source, tmp_path / "out", "mlx-4bit", progress=False)
    rule = {"group_size": 64, "bits": 4, "mode": "affine"}
    config = json.loads((path / "config.json").read_text())
    assert config == folders.config("llama_256") | {"quantization": rule, "quantization_config": rule}
    assert sorted(os.listdir(path)) == [
        "config.json", "generation_config.json", "model.safetensors", "tokenizer.json",
    ]  # fmt: skip
    assert (path / "tokenizer.json").read_text() == '{"kept": "as it is"}'
    assert sorted(os.listdir(tmp_path)) == ["out", "source"]

    old = _core.SafetensorsFiles([str(source / "model.safetensors")])
    new = _core.SafetensorsFiles([str(path / "model.safetensors")])
    types = {tensor.name: (tensor.dtype, tensor.shape) for tensor in new.tensors}
    for tensor in old.tensors:
        if len(tensor.shape) == 1:
            np.testing.assert_array_equal(new.tensor_bytes(tensor.name), old.tensor_bytes(tensor.name))
            continue
        rows, cols = tensor.shape
        stem = tensor.name.removesuffix(".weight")
        assert types[tensor.name] == ("u32", (rows, cols // 8))
        assert types[f"{stem}.scales"] == types[f"{stem}.biases"] == (dtype.lower(), (rows, cols // 64))
        floats = _core.dequantize(dtype.lower(), old.tensor_bytes(tensor.name), rows * cols)
        words, scales, _ = affine_quantize(floats.reshape(rows, cols), 4)
        np.testing.assert_array_equal(new.tensor_bytes(tensor.name), words.reshape(-1).view(np.uint8))
        found = _core.dequantize(dtype.lower(), new.tensor_bytes(f"{stem}.scales"), scales.size)
        np.testing.assert_allclose(found, scales.reshape(-1), rtol=5e-3)


def test_rows_that_are_no_whole_groups_stay_as_they_are(tmp_path: Path) -> None:
    path = akunu.convert(
        folders.write("llama_odd", tmp_path / "in"), tmp_path / "out", "mlx-4bit", progress=False
    )
    types = {t.name: t.dtype for t in _core.SafetensorsFiles([str(path / "model.safetensors")]).tensors}
    assert {kind for name, kind in types.items() if "o_proj" not in name} == {"f32"}


class Stop(Exception):
    pass


def test_a_stopped_folder_goes_on(tmp_path: Path) -> None:
    source = folders.write("llama_256", tmp_path / "source")
    whole = akunu.convert(source, tmp_path / "whole", "mlx-3bit", progress=False)

    def stop(done: int, total: int) -> None:
        if done > total / 2:
            raise Stop

    with pytest.raises(Stop):
        akunu.convert(source, tmp_path / "out", "mlx-3bit", progress=stop)
    assert not (tmp_path / "out").exists()
    seen: list[int] = []
    akunu.convert(source, tmp_path / "out", "mlx-3bit", progress=lambda done, _: seen.append(done))
    for name in os.listdir(whole):
        assert (tmp_path / "out" / name).read_bytes() == (whole / name).read_bytes()
    assert seen[0] > 0.4 * (whole / "model.safetensors").stat().st_size
    assert sorted(os.listdir(tmp_path)) == ["out", "source", "whole"]


def test_remains_of_another_model_do_not_get_into_the_folder(tmp_path: Path) -> None:
    source = folders.write("llama_256", tmp_path / "source")
    remains = tmp_path / ".out.part"
    (remains / "additional_chat_templates").mkdir(parents=True)
    for name in ("tokenizer.json", "model.safetensors", "additional_chat_templates/x.jinja"):
        (remains / name).write_text("another model's")
    path = akunu.convert(source, tmp_path / "out", "mlx-4bit", progress=False)
    assert sorted(os.listdir(path)) == ["config.json", "generation_config.json", "model.safetensors"]


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="expected the name of a folder for mlx-4bit"):
        akunu.convert("ember", tmp_path / "out.gguf", "mlx-4bit", progress=False)
    with pytest.raises(InvalidArgumentError, match=r"exists; remove it"):
        akunu.convert("ember", tmp_path, "mlx-4bit", progress=False)
    link = tmp_path / "link"
    link.symlink_to("nowhere")
    with pytest.raises(InvalidArgumentError, match=r"link exists; remove it"):
        akunu.convert("ember", link, "mlx-4bit", progress=False)

    def spoiled(weights: tiny.Weights) -> tiny.Weights:
        bad: Any = weights["model.layers.1.mlp.up_proj.weight"].copy()
        bad[3, 5] = np.nan
        return weights | {"model.layers.1.mlp.up_proj.weight": bad}

    source = folders.write("llama_256", tmp_path / "source", arrays=spoiled)
    with pytest.raises(ModelFileError, match=r"up_proj\.weight', row 3, column 5: found NaN"):
        akunu.convert(source, tmp_path / "out", "mlx-4bit", progress=False)
