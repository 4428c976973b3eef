"""Gemma 4: what each of its parts is there for, and the ways in which files say it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from akunu import _core
from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.describe.blocks import Attention, Experts, FeedForward, LayerInput
from akunu.files.describe.config import ModelConfig
from akunu.files.describe.gguf_config import resolve
from akunu.files.describe.hf_config import resolve_hf
from akunu.loading.synthetic import SyntheticModel

from . import configs, families, tiny
from .drafted import check_drafts_and_cache
from .test_engine import greedy, nmse
from .test_families import CONTEXT, open_folder, open_gguf, written

FAR = 1e-3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gemma4")


def attention(**changes: object) -> Callable[[ModelConfig], ModelConfig]:
    return lambda config: configs.changed(config, Attention, **changes)


def other_owner(config: ModelConfig) -> ModelConfig:
    """The sharing layers read the keys of the first windowed layer, instead of the last."""
    return configs.changed(config, Attention, kv_owner=[None, None, None, 0, 0, 6])


def other_router(config: ModelConfig) -> ModelConfig:
    router = dataclasses.replace(config.mixers(Experts)[0].router, input_scale=1.0)
    return configs.changed(config, Experts, router=router)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("gemma4", attention(scale=32**-0.5)),
        ("gemma4", attention(norm_values=False)),
        ("gemma4", attention(window=0)),
        ("gemma4", lambda c: dataclasses.replace(c, final_softcap=0.0)),
        ("gemma4_e", other_owner),
        ("gemma4_e", lambda c: configs.changed(c, LayerInput, index=[5, 4, 3, 2, 1, 0])),
        ("gemma4_e", lambda c: configs.changed(c, LayerInput, activation="silu")),
        ("gemma4_experts", other_router),
    ],
)
def test_golden_data_notices_another(
    name: str, change: Callable[[ModelConfig], ModelConfig], folder: Path
) -> None:
    golden = tiny.golden(name)
    file = _core.GgufFile(str(written(folder, name)))
    spec = resolve(file, context=CONTEXT)
    spec = dataclasses.replace(spec, config=change(spec.config))
    engine = _core.Engine(file, spec, context=CONTEXT, kv_dtype="f32", threads=2)
    assert nmse(engine.logits(golden.prompt), golden.logits) > FAR


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("gemma4_e", "layer_output_scale"),
        ("gemma4_e", "post_norm"),
        ("gemma4_e", "per_layer_proj_norm"),
        ("gemma4_experts", "ffn_gate_inp.scale"),
        ("gemma4_experts", "ffn_down_exps.scale"),
        ("gemma4_experts", "post_ffw_norm_1"),
        ("gemma4_experts", "post_ffw_norm_2"),
        ("gemma4_experts", "pre_ffw_norm_2"),
    ],
)
def test_golden_data_notices_a_neutral(name: str, part: str, tmp_path: Path) -> None:
    def neutral(arrays: families.Arrays) -> families.Arrays:
        return {key: np.ones_like(a) if part in key else a for key, a in arrays.items()}

    golden = tiny.golden(name)
    engine = open_gguf(families.write_gguf(families.ALL[name], tmp_path / "x.gguf", change=neutral))
    assert nmse(engine.logits(golden.prompt), golden.logits) > FAR


def test_each_layer_has_the_sizes_of_its_kind(folder: Path) -> None:
    config = resolve(_core.GgufFile(str(written(folder, "gemma4_e")))).config
    layers = config.mixers(Attention)
    assert [a.head_dim for a in layers] == [32, 32, 64, 32, 32, 64]
    assert [a.window for a in layers] == [12, 12, 0, 12, 12, 0]
    # Blocks are attention, feed-forward and layer input in turn.
    assert [a.kv_owner for a in layers] == [None, None, None, 3, 3, 6]
    assert [f.dim for f in config.mixers(FeedForward)] == [160, 160, 160, 320, 320, 320]
    assert [i.index for i in config.mixers(LayerInput)] == list(range(6))
    assert config.layer_inputs is not None
    assert (config.layer_inputs.dim, config.layer_inputs.count) == (32, 6)
    full, local = config.rope_sets
    assert (full.dim, local.dim) == (64, 32)
    assert (full.inv_freq[:8] > 0).all() and not full.inv_freq[8:].any()


@pytest.mark.parametrize(
    ("name", "per_token", "windows"),
    [
        ("e2b", 6, 6.3),
        ("e4b", 16, 21.0),
        ("12b", 16, 335.5),
        ("26b-a4b", 20, 209.7),
        ("31b", 80, 838.9),
    ],
)
def test_published_sizes_take_the_memory_that_they_should(name: str, per_token: int, windows: float) -> None:
    """KiB for each token, and MB of windows, where keys and values are F16."""
    model = SyntheticModel(f"gemma4-{name}:q4_0")
    config = resolve(model).config
    owners = [a for a in config.mixers(Attention) if a.kv_owner is None]
    sizes = [4 * a.n_kv_heads * a.head_dim for a in owners]
    full = sum(size for a, size in zip(owners, sizes, strict=True) if not a.window)
    local = sum(size * a.window for a, size in zip(owners, sizes, strict=True))
    assert full == per_token * 1024
    assert round(local / 1e6, 1) == windows


def test_layers_that_share_keys_keep_none(folder: Path) -> None:
    engine = open_gguf(written(folder, "gemma4_e"))
    config = resolve(_core.GgufFile(str(written(folder, "gemma4_e")))).config
    owners = [a for a in config.mixers(Attention) if a.kv_owner is None]
    assert len(owners) == 3
    assert engine.pages["page_bytes"] == 4 * _core.PAGE * sum(2 * a.n_kv_heads * a.head_dim for a in owners)


@pytest.mark.parametrize("name", ["gemma4_e", "gemma4_experts"])
def test_drafts_and_cache_hits_change_no_token(name: str, folder: Path) -> None:
    """A sequence whose drafts are partly right, and one that begins like it, have the plain one's tokens."""
    check_drafts_and_cache(open_gguf(written(folder, name), parallel=2), tiny.golden(name))


def test_gate_and_up_of_experts_may_be_one_tensor(tmp_path: Path) -> None:
    """The converters of llama.cpp and of Ollama leave them so."""

    def fused(arrays: families.Arrays) -> families.Arrays:
        out = dict(arrays)
        for layer in range(3):
            gate, up = (out.pop(f"blk.{layer}.ffn_{part}_exps.weight") for part in ("gate", "up"))
            out[f"blk.{layer}.ffn_gate_up_exps.weight"] = np.concatenate([gate, up], axis=1)
        return out

    golden, family = tiny.golden("gemma4_experts"), families.ALL["gemma4_experts"]
    engine = open_gguf(families.write_gguf(family, tmp_path / "x.gguf", change=fused))
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-8


def test_ollamas_file_has_towers_and_keys_that_nobody_reads(tmp_path: Path) -> None:
    ones = np.ones((32, 96), np.float32)
    more = {
        "v.blk.0.attn_q.weight": ones,
        "v.clamp_data": ones[0],
        "mm.input_projection.weight": ones,
        "a.blk.0.attn_q.weight": ones,
        "blk.4.attn_k.weight": ones,  # of a layer that shares another's
        "blk.4.attn_v.weight": ones,
        "blk.4.attn_k_norm.weight": ones[0, :32],
    }
    golden = tiny.golden("gemma4_e")
    path = families.write_gguf(families.ALL["gemma4_e"], tmp_path / "x.gguf", change=lambda a: a | more)
    with pytest.warns(RuntimeWarning, match="gemma4 model are left out: 3 for images, 1 for audio"):
        engine = open_gguf(path)
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-8


def wrapped(arrays: families.Arrays) -> families.Arrays:
    """A published folder: the text model beside towers, with keys that nobody reads."""
    ones = np.ones((32, 96), np.float32)
    out = {key.replace("model.", "model.language_model.", 1): array for key, array in arrays.items()}
    return out | {
        "model.vision_tower.patch_embedder.input_proj.weight": ones,
        "model.embed_vision.embedding_projection.weight": ones,
        "model.audio_tower.output_proj.weight": ones,
        "model.language_model.layers.4.self_attn.k_proj.weight": ones,
        "model.language_model.layers.4.self_attn.k_norm.weight": ones[0, :32],
    }


def test_a_published_folder_says_sizes_of_full_layers_outside_of_them(tmp_path: Path) -> None:
    family, golden = families.ALL["gemma4_e"], tiny.golden("gemma4_e")
    path = families.write_folder(family, tmp_path, wrapped)
    config: dict[str, Any] = json.loads((path / "config.json").read_text())
    del config["per_layer_config"]
    config["global_head_dim"] = 64
    (path / "config.json").write_text(
        json.dumps({"model_type": "gemma4", "text_config": config, "vision_config": {}, "audio_config": {}})
    )
    with pytest.warns(RuntimeWarning, match="left out: 2 for images, 1 for audio"):
        engine = open_folder(path)
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-8
    assert greedy(engine, golden.prompt, len(golden.ids)) == golden.ids


def test_a_unified_folder_has_the_defaults_of_its_class(tmp_path: Path) -> None:
    golden = tiny.golden("gemma4")
    path = families.write_folder(families.ALL["gemma4"], tmp_path, None)
    config: dict[str, Any] = json.loads((path / "config.json").read_text())
    for key in ("per_layer_config", "hidden_size_per_layer_input", "enable_moe_block", "num_experts"):
        config.pop(key, None)
    config |= {
        "model_type": "gemma4_unified_text",
        "global_head_dim": 64,
        "num_global_key_value_heads": 1,
        "use_bidirectional_attention": "vision",
    }
    (path / "config.json").write_text(json.dumps({"model_type": "gemma4_unified", "text_config": config}))
    assert nmse(open_folder(path).logits(golden.prompt), golden.logits) < 1e-8


@pytest.mark.parametrize(
    ("keys", "error", "message"),
    [
        ({"attention.shared_kv_layers": 6}, ModelFileError, "shared_kv_layers: found 6, expected less than"),
        (
            {"attention.shared_kv_layers": 4},
            ModelFileError,
            "but there is none for layer 2 to read",
        ),
        ({"attention.value_length_swa": 16}, UnsupportedError, "only the key's 32 is supported"),
        ({"rope.dimension_count_swa": 33}, ModelFileError, "up to the head size 32"),
    ],
)
def test_keys_that_do_not_fit_are_refused(
    keys: dict[str, object], error: type[Exception], message: str, tmp_path: Path
) -> None:
    path = families.write_gguf(families.ALL["gemma4_e"], tmp_path / "x.gguf", **keys)
    with pytest.raises(error, match=message):
        resolve(_core.GgufFile(str(path)))


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        (
            {"use_bidirectional_attention": "all"},
            UnsupportedError,
            "use_bidirectional_attention: found 'all'",
        ),
        (
            {"per_layer_config": {"0": {"head_dim": 48}}},
            UnsupportedError,
            "only sizes that all layers of full attention share",
        ),
        ({"attention_k_eq_v": False}, ModelFileError, r"layers\.2\.self_attn\.v_proj\.weight is missing"),
    ],
)
def test_settings_that_do_not_fit_are_refused(
    settings: dict[str, object], error: type[Exception], message: str, tmp_path: Path
) -> None:
    path = families.write_folder(families.ALL["gemma4"], tmp_path, None, **settings)
    files = _core.SafetensorsFiles([str(path / "model.safetensors")])
    with pytest.raises(error, match=message):
        resolve_hf(json.loads((path / "config.json").read_text()), files.tensors, context=CONTEXT)


def test_another_class_has_no_layer_inputs(tmp_path: Path) -> None:
    path = families.write_folder(families.ALL["glm4moe"], tmp_path, None, hidden_size_per_layer_input=32)
    files = _core.SafetensorsFiles([str(path / "model.safetensors")])
    with pytest.raises(UnsupportedError, match="hidden_size_per_layer_input: found 32, but a glm4_moe model"):
        resolve_hf(json.loads((path / "config.json").read_text()), files.tensors)
