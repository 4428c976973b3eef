"""A GGUF file becomes the folder that Hugging Face's conventions ask for, and the same model."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

import akunu
from akunu import _core
from akunu.base.errors import UnsupportedError
from models import convert, folders, tiny
from models.test_engine import greedy, nmse, open_engine
from models.test_folder import open_folder


def converted(name: str, tmp_path: Path, file_type: str = "mlx-f32", dtype: str = "F32") -> Path:
    source = tiny.write(name, dtype, tmp_path / f"{name}.gguf").path
    return akunu.convert(source, tmp_path / name, file_type, progress=False)


def arrays(folder: Path) -> dict[str, Any]:
    """The floats of a folder of F32."""
    files = _core.SafetensorsFiles([str(folder / "model.safetensors")])
    return {t.name: files.tensor_bytes(t.name).view("<f4").reshape(t.shape) for t in files.tensors}


@pytest.fixture(scope="module", params=tiny.ALL)
def floats(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Each model, and its folder of F32."""
    return request.param, converted(request.param, tmp_path_factory.mktemp("floats"))


def test_a_converted_file_equals_transformers(floats: tuple[str, Path]) -> None:
    name, path = floats
    golden = tiny.golden(name)
    engine = open_folder(path)
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-9
    assert greedy(engine, golden.prompt, len(golden.ids)) == golden.ids


def test_tensors_and_configuration_are_those_of_transformers(floats: tuple[str, Path]) -> None:
    name, path = floats
    found, wanted = arrays(path), tiny.weights(tiny.ALL[name])
    assert found.keys() == wanted.keys()
    for key, array in wanted.items():
        rounding = 3e-7 if tiny.ALL[name].is_gemma else 0  # the file has 1 more in the norms
        np.testing.assert_allclose(found[key], array, atol=rounding, rtol=0, err_msg=key)
    theirs = folders.config(name)
    ours = json.loads((path / "config.json").read_text())
    for key in ours.keys() & theirs.keys() - {"max_window_layers"}:  # which matters where there is a window
        if key.endswith("_token_id"):  # the tokenizer's, of which the model without one knows nothing
            continue
        assert ours[key] == (pytest.approx(theirs[key]) if isinstance(ours[key], float) else theirs[key]), key
    missing = {"hidden_size", "architectures", "model_type", "rms_norm_eps", "head_dim"} - ours.keys()
    assert not missing


@pytest.mark.parametrize("name", ["llama_256", "gemma3", "phi3_short", "qwen2"])
def test_a_quantised_file_becomes_the_folder_of_its_values(name: str, tmp_path: Path) -> None:
    path = converted(name, tmp_path, dtype="MIXED")
    values = akunu.convert(tmp_path / f"{name}.gguf", tmp_path / "values.gguf", "f32", progress=False)
    golden = tiny.golden(name)
    folder, file = open_folder(path), open_engine(values)
    assert nmse(folder.logits(golden.prompt), file.logits(golden.prompt)) < 1e-10
    assert greedy(folder, golden.prompt, 8) == greedy(file, golden.prompt, 8)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("name", ["llama_256", "llama_bias", "phi3", "qwen3"])
def test_codes_are_those_that_the_folder_of_the_model_gives(name: str, bits: int, tmp_path: Path) -> None:
    """Rows of Llama's heads change places back before they are quantised."""
    path = converted(name, tmp_path, f"mlx-{bits}bit")
    source = folders.write(name, tmp_path / "hf")
    wanted = akunu.convert(source, tmp_path / "wanted", f"mlx-{bits}bit", progress=False)
    ours, theirs = (_core.SafetensorsFiles([str(p / "model.safetensors")]) for p in (path, wanted))
    assert {t.name: (t.dtype, t.shape) for t in ours.tensors} == {
        t.name: (t.dtype, t.shape) for t in theirs.tensors
    }
    for tensor in ours.tensors:
        found, expected = ours.tensor_bytes(tensor.name), theirs.tensor_bytes(tensor.name)
        np.testing.assert_array_equal(found, expected, tensor.name)


@pytest.mark.parametrize(("dtype", "expected"), [("F16", "f16"), ("BF16", "bf16"), ("Q4_K", "bf16")])
def test_floats_stay_what_they_are(dtype: str, expected: str, tmp_path: Path) -> None:
    path = converted("llama_256", tmp_path, "mlx-4bit", dtype)
    types = {t.dtype for t in _core.SafetensorsFiles([str(path / "model.safetensors")]).tensors}
    assert types == {"u32", expected}
    engine, file = open_folder(path), open_engine(tmp_path / "llama_256.gguf")
    prompt = tiny.golden("llama_256").prompt
    assert nmse(engine.logits(prompt), file.logits(prompt)) < 0.3  # what four bits cost random weights


def test_a_model_with_a_tokenizer_says_the_same(tmp_path: Path) -> None:
    path = akunu.convert("ember", tmp_path / "ember", "mlx-8bit", progress=False)
    messages = [{"role": "user", "content": "What is 2+2? <|im_end|>"}]
    with (
        akunu.load("ember", device="cpu", threads=1, progress=False) as file,
        akunu.load(path, device="cpu", threads=1, progress=False) as folder,
    ):
        assert folder.chat_template.encode(messages) == file.chat_template.encode(messages)
        assert folder.sampling == file.sampling
        assert folder.tokenizer.end_of_generation_ids == file.tokenizer.end_of_generation_ids
        assert folder.chat(messages, temperature=0).text == file.chat(messages, temperature=0).text
    assert sorted(os.listdir(path)) == [
        "config.json", "generation_config.json", "model.safetensors", "tokenizer.json",
        "tokenizer_config.json",
    ]  # fmt: skip


def test_a_gemma_without_windows_names_one_as_its_class_wants(tmp_path: Path) -> None:
    full = {"layer_types": ["full_attention"] * 4}
    source = folders.write("gemma2", tmp_path / "source", change=lambda c: c | full)
    file = akunu.convert(source, tmp_path / "x.gguf", "f32", progress=False)
    out = akunu.convert(file, tmp_path / "out", "mlx-f32", progress=False)
    config = json.loads((out / "config.json").read_text())
    assert (config["sliding_window"], config["layer_types"]) == (4096, full["layer_types"])
    prompt = tiny.golden("gemma2").prompt
    assert nmse(open_folder(out).logits(prompt), open_folder(source).logits(prompt)) < 1e-9


def test_a_width_that_is_no_multiple_of_the_heads_is_that_of_a_mistral(tmp_path: Path) -> None:
    """A Llama's is refused by Transformers 5, whatever its `head_dim`."""
    source = folders.write(
        "llama",
        tmp_path / "source",
        change=lambda c: c | {"hidden_size": 90},
        arrays=lambda w: {k: a[tuple(slice(90 if n == 96 else n) for n in a.shape)] for k, a in w.items()},
    )
    file = akunu.convert(source, tmp_path / "x.gguf", "f32", progress=False)
    out = akunu.convert(file, tmp_path / "out", "mlx-f32", progress=False)
    config = json.loads((out / "config.json").read_text())
    assert (config["model_type"], config["architectures"]) == ("mistral", ["MistralForCausalLM"])
    assert (config["head_dim"], config["sliding_window"]) == (64, None)
    prompt = tiny.golden("llama").prompt
    assert nmse(open_folder(out).logits(prompt), open_folder(source).logits(prompt)) < 1e-9


def test_a_folder_becomes_plain_floats(tmp_path: Path) -> None:
    source = folders.write("llama_256", tmp_path / "source", dtype="BF16")
    codes = akunu.convert(source, tmp_path / "codes", "mlx-4bit", progress=False)
    plain = akunu.convert(codes, tmp_path / "plain", "mlx-f32", progress=False)
    config = json.loads((plain / "config.json").read_text())
    assert "quantization" not in config
    assert config["dtype"] == "float32"
    prompt = tiny.golden("llama_256").prompt
    values = akunu.convert(codes, tmp_path / "values.gguf", "f32", progress=False)
    assert nmse(open_folder(plain).logits(prompt), open_engine(values).logits(prompt)) < 1e-10


def rewritten(name: str, path: Path, **keys: object) -> Path:
    """The tiny model with other keys."""
    model = tiny.ALL[name]
    writer = gguf.GGUFWriter(str(path), model.arch)
    named = {f"{model.arch}.{key.replace('__', '.')}": value for key, value in keys.items()}
    for key, value in (convert.metadata(model) | named).items():
        convert.add_value(writer, key, value)
    convert.add_tokenizer(writer, model.vocab_size)
    convert.add_tensors(writer, convert.tensors(model, tiny.weights(model)), "F32")
    convert.finish(writer)
    return path


@pytest.mark.parametrize(
    ("name", "keys", "message"),
    [
        (
            "llama",
            {"attention__scale": 0.25},
            r"attention.scale: found 0\.25, which config\.json of a llama model",
        ),
        ("llama", {"rope__dimension_count": 32}, r"rope_sets\[0\].inv_freq: found"),
        ("gemma", {"attention__sliding_window": 16}, "attention.window: found"),
        (
            "phi3",
            {"attention__sliding_window_pattern": [True, False, True]},
            r"attention.window: found \[12  0 12\]",
        ),
    ],
)
def test_what_a_configuration_cannot_say_is_refused(
    name: str, keys: dict[str, object], message: str, tmp_path: Path
) -> None:
    source = rewritten(name, tmp_path / "x.gguf", **keys)
    with pytest.raises(UnsupportedError, match=message):
        akunu.convert(source, tmp_path / "out", "mlx-4bit", progress=False)
    assert os.listdir(tmp_path) == ["x.gguf"]
