"""Folders as MLX quantizes them: the model of the dequantized weights, and clear errors for what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.folder import ModelFolder
from formats import mlx_planes

from . import folders, tiny
from .test_engine import greedy, nmse
from .test_folder import open_folder

Arrays = dict[str, npt.NDArray[Any]]
#: A module's bits and group; None: as it is.
Scheme = Callable[[str], tuple[int, int] | None]


def fits(array: npt.NDArray[Any], group: int) -> bool:
    return array.ndim == 2 and array.shape[1] % group == 0


def quantized(scheme: Scheme, dtype: str, values: bool = False) -> Callable[[Arrays], Arrays]:
    """The matrices in MLX's planes, or their values; the others rounded to `dtype`."""

    def change(weights: Arrays) -> Arrays:
        out: Arrays = {}
        for name, array in weights.items():
            module = name.removesuffix(".weight")
            form = scheme(module)
            if form is None or not fits(array, form[1]):
                out[name] = mlx_planes.rounded(array, dtype)
                continue
            planes = mlx_planes.quantize(array, *form, dtype)
            if values:
                out[name] = planes.values(form[0])
            else:
                out |= {
                    name: planes.codes,
                    f"{module}.scales": planes.scales,
                    f"{module}.biases": planes.biases,
                }
        return out

    return change


def float_coded(mode: str, values: bool = False) -> Callable[[Arrays], Arrays]:
    """The matrices in one of MLX's modes of float codes, or their values."""

    def change(weights: Arrays) -> Arrays:
        out: Arrays = {}
        for name, array in weights.items():
            if not fits(array, 32):
                out[name] = mlx_planes.rounded(array, "BF16")
                continue
            planes = mlx_planes.quantize_floats(array, mode)
            if values:
                out[name] = planes.values
            else:
                out[name] = planes.codes
                out[f"{name.removesuffix('.weight')}.scales"] = planes.scales
        return out

    return change


def settings(bits: int = 4, group: int = 32, **modules: Any) -> dict[str, Any]:
    return {"group_size": group, "bits": bits, "mode": "affine"} | modules


def pair(
    name: str, scheme: Scheme, folder: Path, quantization: Mapping[str, Any], dtype: str = "BF16"
) -> tuple[Path, Path]:
    """Folders with the planes, and with their values as F32."""
    config = {"quantization": quantization, "quantization_config": quantization}
    planes = folders.write(
        name, folder / "q", dtype=dtype, change=lambda c: c | config, arrays=quantized(scheme, dtype)
    )
    return planes, folders.write(name, folder / "f32", arrays=quantized(scheme, dtype, values=True))


def assert_equal_models(name: str, quantized_folder: Path, values: Path) -> None:
    prompt = tiny.golden(name).prompt
    found = open_folder(quantized_folder).logits(prompt)
    assert nmse(found, open_folder(values).logits(prompt)) < 4e-3  # activations are rounded to int8


@pytest.mark.table
@pytest.mark.parametrize("dtype", mlx_planes.SCALES)
@pytest.mark.parametrize("bits", mlx_planes.BITS)
def test_a_quantized_folder_is_the_model_of_its_values(bits: int, dtype: str, tmp_path: Path) -> None:
    group = {"F32": 32, "F16": 64, "BF16": 128}[dtype]
    form = (bits, group)
    assert_equal_models("llama_256", *pair("llama_256", lambda _: form, tmp_path, settings(*form), dtype))


@pytest.mark.parametrize("mode", mlx_planes.MODES)
def test_a_folder_of_float_codes_is_the_model_of_its_values(mode: str, tmp_path: Path) -> None:
    bits, group = mlx_planes.MODES[mode]
    quantization = {"quantization": settings(bits, group, mode=mode) if mode == "nvfp4" else {"mode": mode}}
    planes = folders.write(
        "llama", tmp_path / "q", dtype="BF16", change=lambda c: c | quantization, arrays=float_coded(mode)
    )
    values = folders.write("llama", tmp_path / "f32", arrays=float_coded(mode, values=True))
    prompt = tiny.golden("llama").prompt
    error = nmse(open_folder(planes).logits(prompt), open_folder(values).logits(prompt))
    assert error < (1e-9 if mode == "mxfp8" else 4e-3)  # its codes are multiplied as floats


@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3", "gemma3", "phi3"])
def test_quantized_folders_of_every_family(name: str, tmp_path: Path) -> None:
    """Tied and untied embeddings, fused projections, and matrices that no group fits stay as they are."""
    assert_equal_models(name, *pair(name, lambda _: (8, 64), tmp_path, settings(8, 64)))


def test_greedy_text_is_that_of_the_values(tmp_path: Path) -> None:
    planes, values = pair("llama_256", lambda _: (8, 64), tmp_path, settings(8, 64))
    prompt = tiny.golden("llama_256").prompt
    expected = greedy(open_folder(values), prompt, 8)
    assert greedy(open_folder(planes), prompt, 8) == expected


def test_modules_have_types_of_their_own(tmp_path: Path) -> None:
    own = {
        "lm_head": {"group_size": 64, "bits": 8},
        "model.layers.1.mlp.up_proj": {"group_size": 128, "bits": 3, "mode": "affine"},
        "model.layers.0.self_attn.v_proj": False,
        "model.layers.2.mlp.gate_proj": True,
        # As the recipes of mlx-lm write it: MLX has defaults, 4 bits in groups of 64.
        "model.layers.0.mlp.down_proj": {"group_size": None, "bits": 6, "mode": "affine"},
        "model.layers.1.mlp.down_proj": {"bits": None},
    }

    def scheme(module: str) -> tuple[int, int] | None:
        found = own.get(module, True)
        if isinstance(found, bool):
            return (4, 32) if found else None
        return found.get("bits") or 4, found.get("group_size") or 64

    planes, values = pair("llama_256", scheme, tmp_path, settings(4, 32, **own))
    assert_equal_models("llama_256", planes, values)
    tensors = ModelFolder(planes).spec().tensors
    assert tensors["output"].dtype == "mlx_q8_g64_bf16"
    assert tensors["layers.1.ffn_up"].dtype == "mlx_q3_g128_bf16"
    assert tensors["layers.0.attn_v"].dtype == ""
    assert tensors["layers.0.ffn_down"].dtype == "mlx_q6_g64_bf16"
    assert tensors["layers.1.ffn_down"].dtype == "mlx_q4_g64_bf16"
    assert tensors["token_embedding"].dtype == "mlx_q4_g32_bf16"


def test_phases_agree_to_the_bit(tmp_path: Path) -> None:
    from akunu import _core

    planes, _ = pair("qwen3_256", lambda _: (4, 64), tmp_path, settings(4, 64))
    prompt = tiny.golden("qwen3_256").prompt
    folder = ModelFolder(planes)
    options: dict[str, Any] = {"device": "cpu", "context": tiny.CONTEXT, "threads": 1}
    whole, *others = (
        _core.Engine(folder.files, folder.spec(), chunk=chunk, **options).logits(prompt)
        for chunk in (512, 1, 7)
    )
    for other in others:
        np.testing.assert_array_equal(other, whole)


def spoiled(change: Callable[[Arrays], None]) -> Callable[[Arrays], Arrays]:
    def arrays(weights: Arrays) -> Arrays:
        out = quantized(lambda _: (4, 32), "F32")(weights)
        change(out)
        return out

    return arrays


MODULE = "model.layers.1.mlp.down_proj"


def cut(part: str) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        arrays[f"{MODULE}.{part}"] = arrays[f"{MODULE}.{part}"][:, :-1].copy()

    return change


def drop(part: str) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        del arrays[f"{MODULE}.{part}"]

    return change


@pytest.mark.parametrize(
    ("quantization", "change", "error", "message"),
    [
        (None, lambda a: None, ModelFileError, "no 'quantization'"),
        ([4], lambda a: None, ModelFileError, r"quantization: found \[4\], expected an object"),
        ({"group_size": 32}, lambda a: None, UnsupportedError, "bits: found None; supported are 2, 3"),
        (settings(7, 32), lambda a: None, UnsupportedError, "quantization.bits: found 7; supported are 2, 3"),
        (settings(4, 16), lambda a: None, UnsupportedError, "group_size: found 16; supported are 32, 64"),
        (
            settings(mode="nf4"),
            lambda a: None,
            UnsupportedError,
            "mode: found 'nf4'; supported are affine, mxfp4",
        ),
        (settings(mode=[]), lambda a: None, UnsupportedError, r"mode: found \[\]; supported are affine"),
        (settings(mode="mxfp4"), lambda a: None, ModelFileError, "scales: found type f32, expected u8"),
        (settings(mode="nvfp4"), lambda a: None, UnsupportedError, "group_size: found 32; supported are 16"),
        (settings(8, 32), lambda a: None, ModelFileError, r"weight: found u32 .* expected u32 \(\d+, 24\)"),
        (settings(4, 64), lambda a: None, ModelFileError, "4 bits in groups of 64"),
        (settings(**{MODULE: False}), lambda a: None, ModelFileError, "found false, but the tensor"),
        (settings(**{MODULE: {"bits": 5}}), lambda a: None, ModelFileError, "5 bits in groups of 64"),
        (settings(), drop("scales"), ModelFileError, r"down_proj\.scales is missing"),
        (settings(), drop("biases"), ModelFileError, r"down_proj\.biases is missing"),
        (settings(), drop("weight"), ModelFileError, r"down_proj\.weight is missing"),
        (settings(), cut("scales"), ModelFileError, r"down_proj\.weight: found u32"),
        (settings(), cut("biases"), ModelFileError, r"down_proj\.biases: found f32"),
        (settings(), cut("weight"), ModelFileError, r"down_proj\.weight: found u32"),
    ],
)
def test_what_does_not_belong_together_is_refused(
    quantization: Any, change: Callable[[Arrays], None], error: type[Exception], message: str, tmp_path: Path
) -> None:
    path = folders.write(
        "llama", tmp_path, change=lambda c: c | {"quantization": quantization}, arrays=spoiled(change)
    )
    with pytest.raises(error, match=message):
        ModelFolder(path).spec()


def test_rows_of_half_a_block_are_refused(tmp_path: Path) -> None:
    """Groups of 16 may make rows of 48, of which MLX itself quantizes some only."""

    def arrays(weights: Arrays) -> Arrays:
        codes = {
            f"{MODULE}.weight": np.zeros((96, 6), np.uint32),
            f"{MODULE}.scales": np.zeros((96, 3), np.uint8),
        }
        return {**weights, **codes}

    config = {"quantization": settings(4, 16, mode="nvfp4")}
    path = folders.write("llama", tmp_path, change=lambda c: c | config, arrays=arrays)
    with pytest.raises(UnsupportedError, match=rf"{MODULE}\.weight: found rows of 48 nvfp4 codes; only mult"):
        ModelFolder(path).spec()


@pytest.mark.parametrize("part", ["scales", "biases"])
def test_scales_that_are_no_numbers_are_refused(part: str, tmp_path: Path) -> None:
    def change(arrays: Arrays) -> None:
        arrays[f"{MODULE}.{part}"][3, 1] = np.inf

    path = folders.write(
        "llama", tmp_path, change=lambda c: c | {"quantization": settings()}, arrays=spoiled(change)
    )
    with pytest.raises(ModelFileError, match=rf"tensor '{MODULE}\.{part}' holds NaN or an infinity"):
        open_folder(path)
