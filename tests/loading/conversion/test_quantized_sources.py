"""Folders that are quantized already, converted and loaded as another type: what their values would give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import akunu
from akunu import _core
from akunu.base.errors import ModelFileError
from akunu.loading.conversion.part_file import digest_of
from formats import mlx_planes
from models import folders, tiny
from models.test_fp8_folder import FORMS, coded, written
from models.test_mlx_folder import float_coded, pair, settings


def weights_digest(path: Path) -> str:
    file = _core.GgufFile(str(path))
    return digest_of((t.name, t.dtype, file.tensor_bytes(t.name).tobytes()) for t in file.tensors)


def assert_equal_files(codes: Path, values: Path, folder: Path, file_type: str = "q4_k_m") -> None:
    found = [
        akunu.convert(source, folder / f"{i}.gguf", file_type, progress=False)
        for i, source in enumerate((codes, values))
    ]
    assert weights_digest(found[0]) == weights_digest(found[1])


@pytest.mark.table
@pytest.mark.parametrize("name", ["llama_256", "gemma3", "phi3", "qwen2"])
@pytest.mark.parametrize("bits", [3, 4, 8])
def test_an_mlx_folder_becomes_the_file_of_its_values(name: str, bits: int, tmp_path: Path) -> None:
    """Rows of Llama's heads change places, with their scales."""
    assert_equal_files(*pair(name, lambda _: (bits, 64), tmp_path, settings(bits, 64)), tmp_path)


@pytest.mark.parametrize("mode", mlx_planes.MODES)
def test_a_folder_of_float_codes_becomes_the_file_of_its_values(mode: str, tmp_path: Path) -> None:
    bits, group = mlx_planes.MODES[mode]
    quantization = {"quantization": settings(bits, group, mode=mode)}
    planes = folders.write(
        "llama", tmp_path / "q", dtype="BF16", change=lambda c: c | quantization, arrays=float_coded(mode)
    )
    values = folders.write("llama", tmp_path / "f32", arrays=float_coded(mode, values=True))
    assert_equal_files(planes, values, tmp_path, "q8_0")


@pytest.mark.table
@pytest.mark.parametrize("form", FORMS)
def test_an_fp8_folder_becomes_the_file_of_its_values(form: str, tmp_path: Path) -> None:
    assert_equal_files(*written("llama_256", form, tmp_path), tmp_path, "q6_k")


@pytest.mark.parametrize("form", ["mlx", "mxfp4", "fp8"])
def test_a_quantized_folder_is_quantised_while_it_is_loaded(form: str, tmp_path: Path) -> None:
    if form == "mlx":
        codes, values = pair("llama_256", lambda _: (4, 64), tmp_path, settings(4, 64))
    elif form == "fp8":
        codes, values = written("llama_256", "small blocks", tmp_path)
    else:
        quantization = {"quantization": settings(4, 32, mode=form)}
        codes = folders.write(
            "llama_256",
            tmp_path / "q",
            dtype="BF16",
            change=lambda c: c | quantization,
            arrays=float_coded(form),
        )
        values = folders.write("llama_256", tmp_path / "f32", arrays=float_coded(form, values=True))
    found = []
    for source in (codes, values):
        with akunu.load(
            source, quantize="q4_k_m", device="cpu", context=tiny.CONTEXT, threads=1, progress=False
        ) as model:
            found.append(model.logits(tiny.golden("llama_256").prompt))
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("form", ["mlx", "fp8"])
def test_a_quantized_folder_gets_other_bits_for_mlx(form: str, tmp_path: Path) -> None:
    if form == "mlx":
        codes, values = pair("llama_256", lambda _: (8, 32), tmp_path, settings(8, 32))
    else:
        codes, values = written("llama_256", "blocks", tmp_path)
    path = akunu.convert(codes, tmp_path / "out", "mlx-4bit", progress=False)
    wanted = akunu.convert(values, tmp_path / "wanted", "mlx-4bit", progress=False)
    new, old = (_core.SafetensorsFiles([str(p / "model.safetensors")]) for p in (path, wanted))
    names = {tensor.name for tensor in new.tensors}
    assert names == {tensor.name for tensor in old.tensors}
    assert {t.dtype for t in new.tensors if t.name.endswith(".scales")} <= {"bf16", "f32"}
    for name in names:
        if name.endswith(".weight") and name.replace(".weight", ".scales") in names:
            np.testing.assert_array_equal(new.tensor_bytes(name), old.tensor_bytes(name), name)
    prompt = tiny.golden("llama_256").prompt
    with akunu.load(path, device="cpu", context=tiny.CONTEXT, progress=False) as model:
        assert np.isfinite(model.logits(prompt)).all()


def test_scales_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    config, scale_name, *tile = FORMS["blocks"]

    def cut(arrays: tiny.Weights) -> tiny.Weights:
        made = coded(scale_name, (tile[0], tile[1]))(arrays)
        name = "model.layers.0.mlp.up_proj." + scale_name
        return made | {name: made[name][:1]}

    source = folders.write(
        "llama_256", tmp_path / "x", change=lambda c: c | {"quantization_config": config}, arrays=cut
    )
    with pytest.raises(
        ModelFileError, match=r"up_proj\.weight_scale_inv: found shape .*, expected 4 x 2 scales"
    ):
        akunu.convert(source, tmp_path / "o.gguf", "q8_0", progress=False)
