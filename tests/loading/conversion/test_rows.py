"""The rows of `akunu.files.describe.dense_rows`: folders become GGUF files and back, and say the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import akunu
from akunu import _core
from akunu.base.errors import UnsupportedError
from akunu.files.describe.gguf_config import resolve
from akunu.loading.conversion.read_back import close, refuse_difference
from models import folders, rows, tiny
from models.test_engine import nmse, open_engine
from models.test_folder import open_folder

TO_FOLDER = [name for name in rows.ALL if name != "muse_glimmer"]


@pytest.mark.parametrize("name", rows.ALL)
def test_a_converted_folder_equals_transformers(name: str, tmp_path: Path) -> None:
    golden = tiny.golden(name)
    folder = folders.write(name, tmp_path / name)
    path = akunu.convert(folder, tmp_path / "x.gguf", "f32", progress=False)
    assert nmse(open_engine(path).logits(golden.prompt), golden.logits) < 1e-9


@pytest.mark.parametrize("name", rows.ALL)
def test_its_tensors_and_keys_are_those_of_the_published_converter(name: str, tmp_path: Path) -> None:
    folder = folders.write(name, tmp_path / name)
    ours = _core.GgufFile(str(akunu.convert(folder, tmp_path / "x.gguf", "f32", progress=False)))
    theirs = _core.GgufFile(str(rows.write(name, "F32", tmp_path / "theirs.gguf")))
    expected = {tensor.name: tensor for tensor in theirs.tensors}
    assert {tensor.name for tensor in ours.tensors} == expected.keys()
    for tensor in ours.tensors:
        assert tensor.shape == expected[tensor.name].shape
        found, wanted = (file.tensor_bytes(tensor.name) for file in (ours, theirs))
        np.testing.assert_array_equal(found, wanted, tensor.name)
    one, other = (resolve(file, context=tiny.CONTEXT).config for file in (ours, theirs))
    refuse_difference(one, other, "ours", "the published converter")
    assert one.rope_style == other.rope_style
    missing = {key for key in theirs.metadata if key.startswith(f"{rows.ALL[name].arch}.")} - set(
        ours.metadata
    )
    assert not missing


@pytest.mark.parametrize("name", TO_FOLDER)
def test_a_converted_file_equals_transformers(name: str, tmp_path: Path) -> None:
    golden = tiny.golden(name)
    file = rows.write(name, "F32", tmp_path / "x.gguf")
    path = akunu.convert(file, tmp_path / "out", "mlx-f32", progress=False)
    assert nmse(open_folder(path).logits(golden.prompt), golden.logits) < 1e-9
    ours = json.loads((path / "config.json").read_text())
    theirs = folders.config(name)
    assert ours["model_type"] == theirs["model_type"]
    assert ours["architectures"] == theirs["architectures"]


@pytest.mark.parametrize("name", rows.ALL)
def test_a_quantized_folder_is_the_model_of_its_values(name: str, tmp_path: Path) -> None:
    """As MLX writes it, in 8 bits."""
    golden = tiny.golden(name)
    folder = folders.write(name, tmp_path / name)
    path = akunu.convert(folder, tmp_path / "out", "mlx-8bit", progress=False)
    assert nmse(open_folder(path).logits(golden.prompt), golden.logits) < 0.02


def test_muse_glimmer_stays_a_file(tmp_path: Path) -> None:
    """Transformers has no class of its text model alone."""
    file = rows.write("muse_glimmer", "F32", tmp_path / "x.gguf")
    with pytest.raises(UnsupportedError, match="'muse-glimmer', which is no model type of Hugging Face's"):
        akunu.convert(file, tmp_path / "out", "mlx-f32", progress=False)


def test_frequencies_that_only_one_of_two_models_has_are_a_difference() -> None:
    """In an OLMo 3 all of whose layers are windowed, the folder still has to say the scaling."""
    values = np.ones(2, np.float32)
    assert close(values, values.copy())
    assert not close(values, None) and not close(None, values) and not close(values, 1.0)
