"""FP8 checkpoints: E4M3 codes with the scales of tiles, rows or matrices."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import akunu
from akunu import _core
from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.folder import ModelFolder
from formats import safetensors_bytes
from formats.mlx_planes import E4M3, nearest

from . import folders, tiny
from .test_engine import greedy, nmse, open_engine
from .test_folder import open_folder

Arrays = dict[str, npt.NDArray[Any]]
KEPT = ("embed_tokens", "lm_head", "norm", "bias", "mlp.gate.weight")


def compressed(strategy: object, **weights: Any) -> dict[str, Any]:
    form = {"num_bits": 8, "type": "float", "strategy": strategy, "symmetric": True} | weights
    return {
        "quant_method": "compressed-tensors",
        "format": "float-quantized",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": form}},
        "ignore": ["lm_head"],
    }


def fp8(**settings: Any) -> dict[str, Any]:
    return {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic"} | settings


GROUP = {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}

#: config, the scales' name, and the tile's rows and columns; 0 is all.
FORMS: dict[str, tuple[dict[str, Any], str, int, int]] = {
    "blocks": (fp8(weight_block_size=[128, 128]), "weight_scale_inv", 128, 128),
    "small blocks": (fp8(weight_block_size=[64, 32]), "weight_scale_inv", 64, 32),
    "matrix": (fp8(weight_block_size=None), "weight_scale_inv", 0, 0),
    "AutoFP8": (fp8(), "weight_scale", 0, 0),
    "channel": (compressed("channel"), "weight_scale", 1, 0),
    "tensor": (compressed("tensor"), "weight_scale", 0, 0),
    "two groups": (
        compressed("tensor") | {"config_groups": dict.fromkeys(["a", "b"], GROUP)},
        "weight_scale",
        1,
        0,
    ),
    "FBGEMM": ({"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0}, "weight_scale", 1, 0),
    "ModelOpt": ({"quant_method": "modelopt", "quant_algo": "FP8"}, "weight_scale", 0, 0),
    "block": (compressed("block", block_structure=[128, 128]), "weight_scale", 128, 128),
}


def coded(scale_name: str, tile: tuple[int, int], values: bool = False) -> Callable[[Arrays], Arrays]:
    def change(weights: Arrays) -> Arrays:
        out: Arrays = {}
        for name, array in weights.items():
            if any(part in name for part in KEPT):
                out[name] = array
                continue
            rows, cols = array.shape
            height, width = tile[0] or rows, tile[1] or cols
            grid = -(-rows // height), -(-cols // width)
            scales = np.empty(grid, np.float32)
            for r, c in np.ndindex(*grid):
                part = array[r * height : (r + 1) * height, c * width : (c + 1) * width]
                scales[r, c] = np.abs(part).max() / 448
            spread = scales.repeat(height, 0).repeat(width, 1)[:rows, :cols]
            codes = nearest(array / spread, E4M3)
            if values:
                out[name] = spread * E4M3[codes]
            else:
                out[name] = codes.view(np.int8)
                out[name.removesuffix("weight") + scale_name] = scales if any(tile) else scales.reshape(1)
        return out

    return change


def written(name: str, form: str, folder: Path, **more: Any) -> tuple[Path, Path]:
    config, scale_name, *tile = FORMS[form]
    change = coded(scale_name, (tile[0], tile[1]))
    codes = folders.write(
        name, folder / "fp8", change=lambda c: c | {"quantization_config": config | more}, arrays=change
    )
    values = coded(scale_name, (tile[0], tile[1]), values=True)
    return codes, folders.write(name, folder / "f32", arrays=values)


@pytest.mark.table
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["llama_256", "phi3", "qwen3moe_256"])
def test_an_fp8_folder_is_the_model_of_its_values(name: str, form: str, tmp_path: Path) -> None:
    codes, values = written(name, form, tmp_path)
    golden = tiny.golden(name)
    found, expected = open_folder(codes), open_folder(values)
    assert nmse(found.logits(golden.prompt), expected.logits(golden.prompt)) < 1e-9
    assert greedy(found, golden.prompt, 8) == greedy(expected, golden.prompt, 8)


def test_rows_that_are_no_whole_tiles_have_smaller_groups(tmp_path: Path) -> None:
    codes, values = written("llama", "channel", tmp_path)  # rows of 96, 160 and 256
    tensors = ModelFolder(codes).spec().tensors
    assert tensors["layers.0.attn_q"].dtype == "f8_e4m3_g32"
    assert tensors["layers.0.attn_output"].dtype == "f8_e4m3_g128"
    prompt = tiny.golden("llama").prompt
    assert nmse(open_folder(codes).logits(prompt), open_folder(values).logits(prompt)) < 1e-9


def test_rows_that_are_no_whole_groups_are_refused_by_name(tmp_path: Path) -> None:
    codes, _ = written("llama_odd", "blocks", tmp_path)  # rows of 100 and 172
    with pytest.raises(
        UnsupportedError, match=r"tensor model\.layers\.0\.\S+: found rows of (100|172) FP8 codes"
    ):
        ModelFolder(codes).spec()


def test_scales_may_be_powers_of_two_in_a_byte(tmp_path: Path) -> None:
    """`scale_fmt` "ue8m0" of Transformers: F8_E8M0."""
    form = "blocks"
    config, name, *tile = FORMS[form]

    def powers(weights: Arrays, *, stored: bool) -> Arrays:
        out = coded(name, (tile[0], tile[1]))(weights)
        for scales in [key for key in out if key.endswith(name)]:
            exponents = np.ceil(np.log2(out[scales])).astype(np.int64)
            out[scales] = (
                (exponents + 127).astype(np.uint8) if stored else (2.0**exponents).astype(np.float32)
            )
        return out

    def write(folder: str, stored: bool) -> Path:
        settings = {"quantization_config": config | {"scale_fmt": "ue8m0"}}
        return folders.write(
            "llama_256",
            tmp_path / folder,
            change=lambda c: c | settings,
            arrays=partial(powers, stored=stored),
        )

    file = write("bytes", True) / "model.safetensors"
    raw = file.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    for key, entry in header.items():
        if key.endswith(name):
            entry["dtype"] = "F8_E8M0"
    file.write_bytes(safetensors_bytes.file(header, raw[8 + length :]))
    prompt = tiny.golden("llama_256").prompt
    expected = open_folder(write("floats", False)).logits(prompt)
    np.testing.assert_array_equal(open_folder(file.parent).logits(prompt), expected)
    values = akunu.convert(file.parent, tmp_path / "values.gguf", "f32", progress=False)
    assert nmse(open_engine(values).logits(prompt), expected) < 1e-9


@pytest.mark.parametrize("form", ["tensor", "AutoFP8"])
def test_scales_of_activations_and_caches_are_not_needed(form: str, tmp_path: Path) -> None:
    def scalars(weights: Arrays) -> Arrays:
        out = {
            name: a.reshape(()) if a.size == 1 else a
            for name, a in coded("weight_scale", (0, 0))(weights).items()
        }
        more = [n.removesuffix("weight") + "input_scale" for n in weights if "proj" in n]
        more += [f"model.layers.0.self_attn.{part}_scale" for part in "kv"]
        return out | {name: np.ones((), np.float32) for name in more}

    config = {"quantization_config": FORMS[form][0]}
    path = folders.write("llama", tmp_path / "scalars", change=lambda c: c | config, arrays=scalars)
    _, values = written("llama", form, tmp_path)
    prompt = tiny.golden("llama").prompt
    converted = akunu.convert(path, tmp_path / "converted", "mlx-f32", progress=False)
    for folder in (path, converted):
        assert nmse(open_folder(folder).logits(prompt), open_folder(values).logits(prompt)) < 1e-9


NAME = "model.layers.1.mlp.down_proj.weight"


def spoiled(change: Callable[[Arrays], None]) -> Callable[[Arrays], Arrays]:
    def arrays(weights: Arrays) -> Arrays:
        out = coded("weight_scale_inv", (128, 128))(weights)
        change(out)
        return out

    return arrays


def without_scale(arrays: Arrays) -> None:
    del arrays[f"{NAME}_scale_inv"]


def cut_scale(arrays: Arrays) -> None:
    arrays[f"{NAME}_scale_inv"] = arrays[f"{NAME}_scale_inv"][:, :-1].copy()


def no_number(arrays: Arrays) -> None:
    arrays[NAME][3, 4] = 0x7F


def no_scale(arrays: Arrays) -> None:
    arrays[f"{NAME}_scale_inv"][0, 1] = np.nan


BLOCKS = FORMS["blocks"][0]


@pytest.mark.parametrize(
    ("config", "change", "error", "message"),
    [
        (BLOCKS, without_scale, ModelFileError, r"down_proj\.weight_scale_inv is missing"),
        (BLOCKS, cut_scale, ModelFileError, r"scale_inv' has 6 scales of type 'f32', expected .* 128x128"),
        (BLOCKS, no_number, ModelFileError, r"down_proj\.weight' holds NaN"),
        (BLOCKS, no_scale, ModelFileError, r"down_proj\.weight_scale_inv' holds NaN"),
        (BLOCKS | {"fmt": "e5m2"}, lambda a: None, UnsupportedError, "fmt: found 'e5m2'; supported is e4m3"),
        (
            BLOCKS | {"weight_block_size": [128]},
            lambda a: None,
            UnsupportedError,
            r"block_size: found \[128\]",
        ),
        (
            BLOCKS | {"weight_block_size": [2**70, 128]},
            lambda a: None,
            UnsupportedError,
            "block_size: found",
        ),
        (BLOCKS | {"weight_block_size": [9, 9]}, lambda a: None, UnsupportedError, "a multiple of 32"),
        (
            compressed("group"),
            lambda a: None,
            UnsupportedError,
            "strategy: found 'group'; supported are block",
        ),
        (
            compressed([]),
            lambda a: None,
            UnsupportedError,
            r"strategy: found \[\]; supported are block",
        ),
        (compressed("channel", num_bits=4), lambda a: None, UnsupportedError, "expected floats of 8 bits"),
        (
            compressed("channel") | {"format": "pack-quantized"},
            lambda a: None,
            ModelFileError,
            "but there is no tensor of its codes",
        ),
        (compressed("channel") | {"config_groups": {}}, lambda a: None, UnsupportedError, "expected groups"),
        (
            None,
            lambda a: None,
            ModelFileError,
            "the weights are FP8, but config.json has no 'quantization_config'",
        ),
    ],
)
def test_what_is_wrong_is_refused(
    config: Mapping[str, Any] | None,
    change: Callable[[Arrays], None],
    error: type[Exception],
    message: str,
    tmp_path: Path,
) -> None:
    path = folders.write(
        "llama_256",
        tmp_path,
        change=lambda c: c | {"quantization_config": config},
        arrays=spoiled(change),
    )
    with pytest.raises(error, match=message):
        open_folder(path)


def test_a_tile_of_no_size_is_refused(tmp_path: Path) -> None:
    """With 2^64 - 1 rows the number of tiles would wrap round to none, as many as an empty tensor has."""

    def empty(arrays: Arrays) -> None:
        arrays[f"{NAME}_scale_inv"] = np.zeros((0, 4), np.float32)

    path = folders.write(
        "llama_256", tmp_path, change=lambda c: c | {"quantization_config": BLOCKS}, arrays=spoiled(empty)
    )
    folder = ModelFolder(path)
    spec = folder.spec(tiny.CONTEXT)
    tensors = {
        name: dataclasses.replace(ref, scale_tile=(2**64 - 1, 128)) if ref.source == NAME else ref
        for name, ref in spec.tensors.items()
    }
    assert tensors != spec.tensors
    with pytest.raises(ModelFileError, match="at most 2147483647 are supported on a side"):
        _core.Engine(folder.files, dataclasses.replace(spec, tensors=tensors), device="cpu", context=64)
