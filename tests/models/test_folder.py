"""Folders of Hugging Face: every architecture equals Transformers and the same model as GGUF."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from akunu import _core
from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.folder import ModelFolder

from . import folders, tiny
from .test_engine import greedy, nmse

Change = Callable[[dict[str, Any]], dict[str, Any]]


def open_folder(path: Path, device: str = "cpu") -> _core.Engine:
    folder = ModelFolder(path)
    spec = folder.spec(tiny.CONTEXT)
    return _core.Engine(folder.files, spec, device=device, context=tiny.CONTEXT, kv_dtype="f32", threads=1)


def logits(path: Path, name: str) -> npt.NDArray[np.float32]:
    return open_folder(path).logits(tiny.golden(name).prompt)


@pytest.mark.parametrize("name", tiny.ALL)
def test_a_folder_equals_transformers(name: str, tmp_path: Path) -> None:
    golden = tiny.golden(name)
    engine = open_folder(folders.write(name, tmp_path))
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-9
    assert greedy(engine, golden.prompt, len(golden.ids)) == golden.ids


@pytest.mark.parametrize("name", tiny.ALL)
def test_a_folder_has_the_configuration_of_the_gguf_file(name: str, tmp_path: Path) -> None:
    from akunu.files.describe.gguf_config import resolve

    file = _core.GgufFile(str(tiny.write(name, "F32", tmp_path / "model.gguf").path))
    ours = ModelFolder(folders.write(name, tmp_path / "hf")).spec(tiny.CONTEXT).config
    theirs = resolve(file, context=tiny.CONTEXT).config
    for field in vars(ours).keys() - {"rope_sets", "blocks"}:
        assert getattr(ours, field) == pytest.approx(getattr(theirs, field)), field
    for mine, other in zip(ours.blocks, theirs.blocks, strict=True):
        assert (mine.prefix, mine.layer) == (other.prefix, other.layer)
        assert vars(mine.mixer) == pytest.approx(vars(other.mixer))
    for rope, expected in zip(ours.rope_sets, theirs.rope_sets, strict=True):
        np.testing.assert_allclose(rope.inv_freq, expected.inv_freq, rtol=1e-6)
        assert rope.scale == pytest.approx(expected.scale)
    assert ours.rope_style == "half"


@pytest.mark.parametrize("dtype", ["F16", "BF16"])
@pytest.mark.parametrize("name", ["llama", "gemma3", "phi3"])
def test_16_bit_folders_equal_the_same_gguf_file(name: str, dtype: str, tmp_path: Path) -> None:
    from .test_engine import open_engine

    golden = tiny.golden(name)
    gguf = open_engine(tiny.write(name, dtype, tmp_path / "model.gguf").path)
    found = logits(folders.write(name, tmp_path / "hf", dtype=dtype), name)
    # A folder's norms and biases have 16 bits too.
    assert nmse(found, gguf.logits(golden.prompt)) < 1e-4
    assert nmse(found, golden.logits) < 1e-3


@pytest.mark.parametrize("pad", [1, 2, 3])
def test_unaligned_data_gives_the_same_logits(pad: int, tmp_path: Path) -> None:
    plain = logits(folders.write("llama", tmp_path / "0"), "llama")
    np.testing.assert_array_equal(logits(folders.write("llama", tmp_path / "1", pad=pad), "llama"), plain)


def test_shards_give_the_same_logits(tmp_path: Path) -> None:
    plain = logits(folders.write("gemma3", tmp_path / "1"), "gemma3")
    np.testing.assert_array_equal(logits(folders.write("gemma3", tmp_path / "3", shards=3), "gemma3"), plain)


def v4(settings: dict[str, Any]) -> dict[str, Any]:
    """The rotary parameters as Transformers 4 wrote them."""
    rope = dict(settings.pop("rope_parameters"))
    if "full_attention" in rope:
        settings["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        rope = dict(rope["full_attention"])
    settings["rope_theta"] = rope.pop("rope_theta")
    if "partial_rotary_factor" in rope:
        settings["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
    if settings["model_type"] == "phi3":
        rope.pop("original_max_position_embeddings", None)
    settings["rope_scaling"] = None if rope == {"rope_type": "default"} else rope
    if settings["model_type"] != "ministral":  # the class has no other way to say it
        settings.pop("layer_types", None)
    if "_sliding_window_pattern" in settings:
        settings["sliding_window_pattern"] = settings.pop("_sliding_window_pattern")
    return settings


@pytest.mark.parametrize("name", tiny.ALL)
def test_configurations_of_transformers_4_mean_the_same(name: str, tmp_path: Path) -> None:
    golden = tiny.golden(name)
    assert nmse(logits(folders.write(name, tmp_path, change=v4), name), golden.logits) < 1e-9


def test_the_first_names_of_longrope_and_scalings_are_known(tmp_path: Path) -> None:
    def older(settings: dict[str, Any]) -> dict[str, Any]:
        settings = v4(settings)
        settings["rope_scaling"]["type"] = "su"
        del settings["rope_scaling"]["rope_type"]
        return settings

    golden = tiny.golden("phi3_short")
    assert (
        nmse(logits(folders.write("phi3_short", tmp_path, change=older), "phi3_short"), golden.logits) < 1e-9
    )


@pytest.mark.parametrize("prefix", ["language_model.model.", "model.language_model.", ""])
def test_the_text_model_of_a_larger_one_is_loaded(prefix: str, tmp_path: Path) -> None:
    def inside(settings: dict[str, Any]) -> dict[str, Any]:
        for key in ("tie_word_embeddings", "rms_norm_eps", "hidden_activation"):
            del settings[key]  # as in the class
        return {"model_type": "gemma3", "text_config": settings, "vision_config": {"hidden_size": 7}}

    def renamed(weights: tiny.Weights) -> tiny.Weights:
        out = {prefix + name.removeprefix("model."): array for name, array in weights.items()}
        return out | {"vision_tower.x.weight": np.zeros((3, 3), np.float32)}

    path = folders.write("gemma3", tmp_path, change=inside, arrays=renamed)
    assert nmse(logits(path, "gemma3"), tiny.golden("gemma3").logits) < 1e-9


@pytest.mark.parametrize(
    ("decoder", "head"),
    [
        ("language_model.model.", "language_model."),
        ("language_model.model.", ""),
        ("model.language_model.model.", "language_model."),  # as Transformers 5 writes a Gemma 3 with a head
    ],
)
def test_an_untied_head_is_found_above_the_parts(decoder: str, head: str, tmp_path: Path) -> None:
    def renamed(weights: tiny.Weights) -> tiny.Weights:
        return {
            (head if name.startswith("lm_head") else decoder) + name.removeprefix("model."): array
            for name, array in weights.items()
        }

    path = folders.write("llama", tmp_path, arrays=renamed)
    assert nmse(logits(path, "llama"), tiny.golden("llama").logits) < 1e-9


def test_a_tied_model_ignores_a_head_that_was_written_too(tmp_path: Path) -> None:
    def doubled(weights: tiny.Weights) -> tiny.Weights:
        return weights | {"lm_head.weight": weights["model.embed_tokens.weight"]}

    path = folders.write("qwen3", tmp_path, arrays=doubled)
    assert nmse(logits(path, "qwen3"), tiny.golden("qwen3").logits) < 1e-9


def test_a_tied_model_with_another_head_is_refused(tmp_path: Path) -> None:
    def doubled(weights: tiny.Weights) -> tiny.Weights:
        return weights | {"lm_head.weight": weights["model.embed_tokens.weight"] * np.float32(2)}

    path = folders.write("qwen3", tmp_path, arrays=doubled)
    message = r"lm_head\.weight is not model\.embed_tokens\.weight; set tie_word_embeddings to false"
    with pytest.raises(ModelFileError, match=message):
        ModelFolder(path).spec()


def without(name: str) -> Callable[[tiny.Weights], tiny.Weights]:
    return lambda weights: {k: a for k, a in weights.items() if k != name}


def test_null_means_no_window_and_no_cap(tmp_path: Path) -> None:
    nulls = {"sliding_window": None, "attn_logit_softcapping": None, "final_logit_softcapping": None}
    spec = ModelFolder(folders.write("gemma2", tmp_path, change=lambda c: c | nulls)).spec()
    assert not any(spec.config.layer_window)
    assert spec.config.attn_softcap == spec.config.final_softcap == 0


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, (0, 0, 0)),
        ({"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 1}, (9, 9, 9)),
        (
            {"layer_types": None, "use_sliding_window": True, "sliding_window": 9, "max_window_layers": 1},
            (0, 9, 9),
        ),
        ({"layer_types": None, "use_sliding_window": False, "sliding_window": 9}, (0, 0, 0)),
    ],
)
def test_windows_of_qwen_begin_at_a_layer(
    change: dict[str, Any], expected: tuple[int, ...], tmp_path: Path
) -> None:
    kinds = {"layer_types": ["sliding_attention"] * 3} if change else {}
    path = folders.write("qwen2", tmp_path, change=lambda c: c | kinds | change)
    assert ModelFolder(path).spec().config.layer_window == expected


@pytest.mark.parametrize("model_type", ["mistral", "ministral"])
def test_a_mistral_may_have_types_of_layers(model_type: str, tmp_path: Path) -> None:
    types = ["full_attention", "sliding_attention", "full_attention"]
    path = folders.write("mistral", tmp_path, change=put(model_type=model_type, layer_types=types))
    assert ModelFolder(path).spec().config.layer_window == (0, 12, 0)


def test_no_number_of_key_heads_means_one_for_each_head(tmp_path: Path) -> None:
    path = folders.write("qwen2_yarn", tmp_path, change=put(num_key_value_heads=None))
    assert ModelFolder(path).spec().config.n_kv_heads == 2


def test_dynamic_scaling_changes_nothing_up_to_the_trained_context(tmp_path: Path) -> None:
    rope = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0}
    path = folders.write("llama", tmp_path, change=lambda c: c | {"rope_parameters": rope})
    assert nmse(logits(path, "llama"), tiny.golden("llama").logits) < 1e-9


@pytest.mark.parametrize(
    ("rope", "divisor"),
    [
        # Not even the fastest pair makes two rotations in 8 positions.
        ({"original_max_position_embeddings": 8, "beta_slow": 2.0, "rope_theta": 1e4}, 1.0),
        # All pairs make more than 32 rotations, in so many positions.
        ({"original_max_position_embeddings": 8192, "rope_theta": 2.0}, 4.0),
    ],
)
def test_yarn_whose_range_is_reversed_is_that_of_transformers(
    rope: dict[str, Any], divisor: float, tmp_path: Path
) -> None:
    def inv_freq(kind: str, **values: Any) -> npt.NDArray[np.float64]:
        values |= {"rope_type": kind, "rope_theta": rope["rope_theta"]}
        path = folders.write("llama", tmp_path / kind, change=put(rope_parameters=values))
        return np.asarray(ModelFolder(path).spec().config.rope_sets[0].inv_freq)

    np.testing.assert_allclose(inv_freq("yarn", factor=4.0, **rope), inv_freq("default") / divisor)


def test_the_old_name_of_the_rotary_parameters_may_say_the_same(tmp_path: Path) -> None:
    def doubled(settings: dict[str, Any]) -> dict[str, Any]:
        rope = dict(settings["rope_parameters"])
        rope["type"] = rope["rope_type"]
        return settings | {"rope_scaling": rope, "rope_theta": rope.pop("rope_theta")}

    path = folders.write("llama_yarn", tmp_path, change=doubled)
    assert nmse(logits(path, "llama_yarn"), tiny.golden("llama_yarn").logits) < 1e-9


@pytest.mark.parametrize("key", ["attention_bias", "mlp_bias"])
def test_a_flag_that_the_class_does_not_know_changes_nothing(key: str, tmp_path: Path) -> None:
    path = folders.write("mistral", tmp_path, change=lambda c: c | {key: True})
    assert nmse(logits(path, "mistral"), tiny.golden("mistral").logits) < 1e-9


def put(**values: Any) -> Change:
    return lambda settings: settings | values


def put_rope(**values: Any) -> Change:
    return lambda settings: settings | {"rope_parameters": settings["rope_parameters"] | values}


BAD: dict[str, tuple[str, Change, type[Exception], str]] = {
    "type": (
        "llama",
        put(model_type="mamba"),
        UnsupportedError,
        "model_type: found 'mamba', which is known but not run",
    ),
    "no type": ("llama", put(model_type=None), ModelFileError, "model_type is missing"),
    "a list": ("llama", put(model_type=["llama"]), UnsupportedError, "model_type: found"),
    "no size": ("llama", put(hidden_size=None), ModelFileError, "config.json: hidden_size is missing"),
    "text": ("llama", put(hidden_size="96"), ModelFileError, "hidden_size: found '96', expected an int"),
    "flag": ("llama", put(hidden_size=True), ModelFileError, "hidden_size: found True"),
    "huge": ("llama", put(num_hidden_layers=10**6), ModelFileError, "from 1 to 4096"),
    "shape": ("llama", put(intermediate_size=161), ModelFileError, r"expected \(161, 96\)"),
    "vocabulary": ("llama", put(vocab_size=999), ModelFileError, "found 263 rows, expected the 999"),
    "layers": ("llama", put(num_hidden_layers=4), ModelFileError, r"layers\.3\.input_layernorm.* missing"),
    "fewer layers": ("llama", put(num_hidden_layers=2), UnsupportedError, r"layers\.2\..* no such tensor"),
    "activation": ("llama", put(hidden_act="relu"), UnsupportedError, "hidden_act: found 'relu', exp"),
    "quantized": (
        "llama",
        put(quantization_config={"quant_method": "quip"}),
        UnsupportedError,
        "weights are quantized by 'quip', which is not supported",
    ),
    "packed": (
        "llama",
        put(quantization_config={"quant_method": "compressed-tensors", "format": "sparse-24-bitmask"}),
        UnsupportedError,
        r"quantization_config\.format: found 'sparse-24-bitmask'; supported are pack-quantized, .*; use a",
    ),
    "mlp bias": ("llama", put(mlp_bias=True), ModelFileError, r"gate_proj\.bias is missing"),
    "not causal": ("llama", put(is_causal=False), UnsupportedError, "is_causal: found False"),
    "a cap": (
        "llama",
        put(attn_logit_softcapping=50.0),
        UnsupportedError,
        "attn_logit_softcapping: found 50.0, but a llama model has none",
    ),
    "a query scale": ("qwen3", put(query_pre_attn_scalar=3), UnsupportedError, "but a qwen3 model has none"),
    "a cap that the class does not apply": (
        "gemma3",
        put(attn_logit_softcapping=50.0),
        UnsupportedError,
        "attn_logit_softcapping: found 50.0, but a gemma3_text model has none",
    ),
    "a cap of a model that also sees images": (
        "gemma3",
        put(model_type="gemma3", final_logit_softcapping=30.0),
        UnsupportedError,
        "final_logit_softcapping: found 30.0, but a gemma3 model has none",
    ),
    "a local theta": (
        "mistral",
        put(rope_local_base_freq=300.0),
        UnsupportedError,
        "rope_local_base_freq: found 300.0, but a mistral model has none",
    ),
    "no bias": (
        "llama_bias",
        put(attention_bias=False),
        ModelFileError,
        r"q_proj\.bias: by config.json this llama model has no such bias; set attention_bias to true",
    ),
    "no bias of the feed-forward": (
        "llama_bias",
        put(mlp_bias=None),
        ModelFileError,
        r"gate_proj\.bias: .* set mlp_bias to true",
    ),
    "a flag that is none": (
        "llama",
        put(tie_word_embeddings="no"),
        ModelFileError,
        "tie_word_embeddings: found 'no', expected true or false",
    ),
    "a scaling that is none": (
        "llama",
        put(rope_scaling=[4.0]),
        ModelFileError,
        r"rope_scaling: found \[4\.0\], expected an object",
    ),
    "bidirectional": (
        "gemma3",
        put(use_bidirectional_attention=True),
        UnsupportedError,
        "use_bidirectional_attention",
    ),
    "bias": ("llama", put(attention_bias=True), ModelFileError, r"q_proj\.bias is missing"),
    "spiral": (
        "llama",
        put(rope_parameters={"rope_type": "spiral", "factor": 2.0}),
        UnsupportedError,
        "rope_type: found 'spiral'; supported are default, dynamic, linear, llama3, yarn, longrope",
    ),
    "rope": ("llama", put(rope_parameters=[1]), ModelFileError, "rope_parameters: found"),
    "two scalings": (
        "llama",
        put(rope_scaling={"rope_type": "yarn", "factor": 4.0}),
        ModelFileError,
        "rope_scaling: .*yarn.*, but rope_parameters, the new name, is .*default",
    ),
    "no factor": (
        "llama",
        put(rope_parameters={"rope_type": "yarn"}),
        ModelFileError,
        "factor is missing; yarn",
    ),
    "factors": (
        "phi3_short",
        put_rope(short_factor=[1.0]),
        ModelFileError,
        "short_factor: found .* expected a list of 48 numbers",
    ),
    "factor": (
        "phi3_short",
        put_rope(short_factor=["1"] * 48),
        ModelFileError,
        "48 divisors from 0.001",
    ),
    "share": (
        "phi3",
        put_rope(partial_rotary_factor=0.02),
        ModelFileError,
        "makes 1 of a head's 96 elements",
    ),
    "a share": ("llama", put(partial_rotary_factor=0.5), UnsupportedError, "in a llama model all do"),
    "layer types": ("gemma3", put(layer_types=["full_attention"]), ModelFileError, "layer_types: found"),
    "nested": (
        "gemma3",
        lambda c: {"model_type": "gemma3", "text_config": 5},
        ModelFileError,
        "text_config: found 5",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_configurations_are_refused(case: str, tmp_path: Path) -> None:
    name, change, error, message = BAD[case]
    path = folders.write(name, tmp_path, change=change)
    with pytest.raises(error, match=message):
        ModelFolder(path).spec()


@pytest.mark.parametrize(
    ("arrays", "error", "message"),
    [
        (
            lambda w: w | {"draft.lm_head.weight": w["lm_head.weight"]},
            UnsupportedError,
            r"several output heads: draft\.lm_head\.weight, lm_head\.weight",
        ),
        (
            without("lm_head.weight"),
            ModelFileError,
            r"tensor lm_head\.weight is missing: .* needs modules\.json",
        ),
        (
            without("model.embed_tokens.weight"),
            ModelFileError,
            "embed_tokens.weight is missing; .* no decoder",
        ),
        (
            without("model.layers.1.mlp.up_proj.weight"),
            ModelFileError,
            r"layers\.1\.mlp\.up_proj\.weight is missing",
        ),
        (
            lambda w: w | {"model.layers.0.extra.weight": np.zeros(3, np.float32)},
            UnsupportedError,
            r"tensor model\.layers\.0\.extra\.weight: the architecture llama",
        ),
        (
            lambda w: w | {"model.layers.1.self_attn.o_proj.bias": np.zeros(96, np.float32)},
            ModelFileError,
            r"layers\.1\.self_attn\.o_proj\.bias: .* no such bias; set attention_bias to true",
        ),
        (
            lambda w: (
                w
                | {
                    f"model.layers.1.self_attn.q_proj.{part}": w["lm_head.weight"]
                    for part in ("qweight", "scales")
                }
            ),
            UnsupportedError,
            r"q_proj\.qweight: the weights are quantized by GPTQ or AWQ, .* use a checkpoint of F32",
        ),
        (
            lambda w: w | {"\x1b[31m": np.zeros(3, np.float32)},
            UnsupportedError,
            r"tensor '\\x1b\[31m': the architecture llama",
        ),
        (
            lambda w: w | {"other.embed_tokens.weight": np.zeros((3, 3), np.float32)},
            UnsupportedError,
            "has several embeddings",
        ),
    ],
)
def test_bad_tensors_are_refused(
    arrays: Callable[[tiny.Weights], tiny.Weights], error: type[Exception], message: str, tmp_path: Path
) -> None:
    path = folders.write("llama", tmp_path, arrays=arrays)
    with pytest.raises(error, match=message):
        ModelFolder(path).spec()


def test_a_weight_of_another_type_is_refused(tmp_path: Path) -> None:
    from formats.safetensors_bytes import file

    path = folders.write("llama", tmp_path)
    model = path / "model.safetensors"
    raw = model.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    header["model.embed_tokens.weight"]["dtype"] = "I32"
    model.write_bytes(file(header, raw[8 + length :]))
    with pytest.raises(
        UnsupportedError,
        match=r"model\.safetensors: tensor 'model\.embed_tokens\.weight' has type 'i32', .*; save it as F32",
    ):
        open_folder(path)


def test_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    def spoil(weights: tiny.Weights) -> tiny.Weights:
        name = "model.layers.2.self_attn.q_proj.weight"
        weights[name] = np.where(np.arange(weights[name].size).reshape(weights[name].shape) == 7, np.nan, 1.0)
        return weights

    path = folders.write("llama", tmp_path, arrays=spoil)
    with pytest.raises(ModelFileError, match=r"'model\.layers\.2\.self_attn\.q_proj\.weight' holds NaN"):
        open_folder(path)


@pytest.mark.parametrize("name", tiny.ALL)
def test_transformers_writes_these_folders_now(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from . import hf

    hf.model(tiny.ALL[name]).save_pretrained(tmp_path)
    golden = tiny.golden(name)
    assert nmse(logits(tmp_path, name), golden.logits) < 1e-9
