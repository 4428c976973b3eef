"""Folders that MLX quantized on the Metal device, which reads their planes."""

from __future__ import annotations

from pathlib import Path

import pytest

from akunu.base.errors import UnsupportedError
from formats import mlx_planes
from metal.on_metal import require_metal
from models import folders, tiny
from models.test_engine import greedy, nmse
from models.test_folder import open_folder
from models.test_mlx_folder import float_coded, pair, settings


@pytest.fixture(autouse=True)
def metal() -> None:
    require_metal()


@pytest.mark.parametrize(("bits", "group", "dtype"), [(4, 64, "BF16"), (3, 32, "F16"), (8, 128, "F32")])
def test_a_quantized_folder_is_the_model_of_its_values(
    bits: int, group: int, dtype: str, tmp_path: Path
) -> None:
    form = (bits, group)
    planes, values = pair("llama_256", lambda _: form, tmp_path, settings(*form), dtype)
    prompt = tiny.golden("llama_256").prompt
    found, expected = open_folder(planes, "metal"), open_folder(values)
    assert nmse(found.logits(prompt), expected.logits(prompt)) < 1e-4  # inputs are rounded to F16
    assert greedy(found, prompt, 4) == greedy(expected, prompt, 4)


def test_a_quantized_embedding_is_the_head_as_well(tmp_path: Path) -> None:
    planes, values = pair("qwen3", lambda _: (4, 32), tmp_path, settings(4, 32))
    prompt = tiny.golden("qwen3").prompt
    assert nmse(open_folder(planes, "metal").logits(prompt), open_folder(values).logits(prompt)) < 1e-4


def test_float_codes_have_no_kernels_there(tmp_path: Path) -> None:
    quantization = {"quantization": settings(*mlx_planes.MODES["mxfp8"], mode="mxfp8")}
    path = folders.write(
        "llama", tmp_path, dtype="BF16", change=lambda c: c | quantization, arrays=float_coded("mxfp8")
    )
    with pytest.raises(UnsupportedError, match=r"no Metal kernel for .* 'mlx_mxfp8'"):
        open_folder(path, "metal")
