"""A folder of Hugging Face becomes the GGUF file that llama.cpp's conventions ask for, and the same model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

import akunu
from akunu import _core
from akunu.base.errors import UnsupportedError
from akunu.files.describe.gguf_config import resolve
from akunu.files.folder import ModelFolder
from akunu.loading.conversion.read_back import refuse_difference
from models import folders, tiny
from models.test_engine import greedy, nmse, open_engine


def converted(name: str, tmp_path: Path, file_type: str = "f32", **options: Any) -> Path:
    folder = folders.write(name, tmp_path / name, **options)
    return akunu.convert(folder, tmp_path / f"{name}.gguf", file_type, progress=False)


@pytest.mark.parametrize("name", tiny.ALL)
def test_a_converted_folder_equals_transformers(name: str, tmp_path: Path) -> None:
    golden = tiny.golden(name)
    engine = open_engine(converted(name, tmp_path))
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-9
    assert greedy(engine, golden.prompt, len(golden.ids)) == golden.ids


@pytest.mark.parametrize("name", tiny.ALL)
def test_tensors_and_configuration_are_those_of_the_published_converter(name: str, tmp_path: Path) -> None:
    ours = _core.GgufFile(str(converted(name, tmp_path)))
    theirs = _core.GgufFile(str(tiny.write(name, "F32", tmp_path / "theirs.gguf").path))
    expected = {tensor.name: tensor for tensor in theirs.tensors}
    assert {tensor.name for tensor in ours.tensors} == expected.keys()
    for tensor in ours.tensors:
        assert (tensor.shape, tensor.dtype) == (expected[tensor.name].shape, expected[tensor.name].dtype)
        found = _core.dequantize("f32", ours.tensor_bytes(tensor.name), int(np.prod(tensor.shape)))
        wanted = _core.dequantize("f32", theirs.tensor_bytes(tensor.name), int(np.prod(tensor.shape)))
        np.testing.assert_allclose(found, wanted, rtol=1e-6, err_msg=tensor.name)
    one, other = (resolve(file, context=tiny.CONTEXT).config for file in (ours, theirs))
    refuse_difference(one, other, "ours", "the published converter")
    assert one.rope_style == other.rope_style
    # Whoever reads the file without our defaults finds every key that the published converter writes.
    missing = {
        key for key in theirs.metadata if key.startswith(f"{tiny.ALL[name].arch}.")
    } - ours.metadata.keys()
    assert not missing


@pytest.mark.parametrize("name", ["llama", "gemma3", "phi3_short"])
@pytest.mark.parametrize("dtype", ["F16", "BF16"])
def test_16_bits_of_a_folder_stay_16_bits(
    name: str, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AKUNU_CPU_ISA", "generic")  # others round what is multiplied with 16 bits
    path = converted(name, tmp_path, dtype.lower(), dtype=dtype)
    folder = ModelFolder(tmp_path / name)
    engine = _core.Engine(
        folder.files, folder.spec(tiny.CONTEXT), device="cpu", context=tiny.CONTEXT, kv_dtype="f32", threads=1
    )
    prompt = tiny.golden(name).prompt
    assert nmse(open_engine(path).logits(prompt), engine.logits(prompt)) < 1e-10


def test_the_package_gguf_reads_the_file(tmp_path: Path) -> None:
    reader = gguf.GGUFReader(converted("llama_256", tmp_path, "q4_k_m"))
    keys = {name: field.contents() for name, field in reader.fields.items()}
    assert keys["general.architecture"] == "llama"
    assert keys["general.name"] == "llama_256"
    assert keys["general.file_type"] == 15
    assert keys["general.quantization_version"] == 2
    assert keys["llama.attention.head_count_kv"] == 2
    assert keys["tokenizer.ggml.model"] == "none"
    types = {tensor.name: tensor.tensor_type.name for tensor in reader.tensors}
    assert types["token_embd.weight"] == types["blk.0.attn_q.weight"] == "Q4_K"
    assert types["output.weight"] == types["blk.2.ffn_down.weight"] == "Q6_K"
    assert types["output_norm.weight"] == "F32"
    rows = next(tensor for tensor in reader.tensors if tensor.name == "blk.0.ffn_gate.weight")
    found = gguf.quants.dequantize(rows.data, rows.tensor_type)
    wanted = tiny.weights(tiny.ALL["llama_256"])["model.layers.0.mlp.gate_proj.weight"]
    assert found.shape == wanted.shape
    assert np.sqrt(np.mean((found - wanted) ** 2)) < 0.08 * np.std(wanted)


def test_what_gguf_cannot_say_of_a_model_is_refused(tmp_path: Path) -> None:
    def scaled(settings: dict[str, Any]) -> dict[str, Any]:
        settings["rope_parameters"]["sliding_attention"] |= {"rope_type": "linear", "factor": 2.0}
        return settings

    folder = folders.write("gemma3", tmp_path / "hf", change=scaled)
    message = (
        r"hf: rope_sets\[1\].inv_freq: found .*, which a GGUF file of a gemma3 model cannot say; it would be "
    )
    with pytest.raises(UnsupportedError, match=message):
        akunu.convert(folder, tmp_path / "out.gguf", "f32", progress=False)
    assert not (tmp_path / "out.gguf").exists()
