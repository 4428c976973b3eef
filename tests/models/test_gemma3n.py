"""Gemma 3n: what each of its parts is there for, and the ways in which files say it."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import akunu
from akunu import _core
from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.describe.blocks import Attention, FeedForward, Laurel, LayerInput, MixStreams, Streams
from akunu.files.describe.config import ModelConfig
from akunu.files.describe.gguf_config import resolve
from akunu.files.describe.hf_config import resolve_hf
from akunu.loading.synthetic import SyntheticModel

from . import configs, families, tiny
from .drafted import check_drafts_and_cache
from .test_engine import greedy, nmse
from .test_families import CONTEXT, open_folder, open_gguf, written

FAR = 1e-4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gemma3n")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("gemma3n", lambda c: configs.changed(c, FeedForward, deviations=None)),
        ("gemma3n", lambda c: configs.changed(c, Attention, kv_owner=[None] * 4 + [1, 7])),
        ("gemma3n", lambda c: configs.changed(c, Attention, norm_values=False)),
        ("gemma3n", lambda c: configs.changed(c, Attention, scale=32**-0.5)),
        ("gemma3n", lambda c: configs.changed(c, LayerInput, index=[5, 4, 3, 2, 1, 0])),
        ("gemma3n", lambda c: dataclasses.replace(c, streams=Streams(4, 1))),
        ("gemma3n_active", lambda c: dataclasses.replace(c, streams=Streams(3, 0))),
        ("gemma3n_active", lambda c: configs.changed(c, FeedForward, deviations=[None, 0.5] + [None] * 4)),
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
    ("part", "value"),
    [
        ("altup_correct_scale", 1.0),
        ("altup_correct_coef", 0.0),
        ("altup_predict_coef", 0.0),
        ("altup_router_norm", 0.0),
        ("laurel_l", 0.0),
        ("laurel_post_norm", 1.0),
        ("post_norm", 1.0),
        ("per_layer_proj_norm", 1.0),
    ],
)
def test_golden_data_notices_a_neutral(part: str, value: float, tmp_path: Path) -> None:
    def neutral(arrays: families.Arrays) -> families.Arrays:
        return {key: np.full_like(a, value) if part in key else a for key, a in arrays.items()}

    golden = tiny.golden("gemma3n")
    engine = open_gguf(families.write_gguf(families.ALL["gemma3n"], tmp_path / "x.gguf", change=neutral))
    assert nmse(engine.logits(golden.prompt), golden.logits) > FAR


def test_layers_are_what_the_file_says(folder: Path) -> None:
    config = resolve(_core.GgufFile(str(written(folder, "gemma3n")))).config
    kinds = ["mix_streams", "attention", "laurel", "feed_forward", "mix_streams", "layer_input"]
    assert [block.mixer.kind for block in config.blocks] == kinds * 6
    assert [mix.correct for mix in config.mixers(MixStreams)] == [False, True] * 6
    assert set(config.mixers(Laurel)) == {Laurel(24)}
    assert config.streams == Streams(4, 0)
    assert [a.kv_owner for a in config.mixers(Attention)] == [None] * 4 + [2 * 6 + 1, 3 * 6 + 1]
    cut = [forward.deviations for forward in config.mixers(FeedForward)]
    assert cut[2:] == [None] * 4 and np.allclose(cut[:2], [1.644854, 0.841621])


@pytest.mark.parametrize(("name", "n_layers"), [("e2b", 30), ("e4b", 35)])
def test_published_sizes_take_the_memory_that_they_should(name: str, n_layers: int) -> None:
    """8 KiB for each token, and windows of 16.8 MB, where keys and values are F16."""
    model = SyntheticModel(f"gemma3n-{name}:q4_0")
    config = resolve(model).config
    assert config.n_layers == n_layers and set(config.mixers(Laurel)) == {Laurel(64)}
    owners = [a for a in config.mixers(Attention) if a.kv_owner is None]
    assert len(owners) == 20
    sizes = [4 * a.n_kv_heads * a.head_dim for a in owners]
    assert sum(size for a, size in zip(owners, sizes, strict=True) if not a.window) == 8 * 1024
    assert sum(size * a.window for a, size in zip(owners, sizes, strict=True)) == 16 * 2**20
    types = {tensor.name: tensor.dtype for tensor in model.tensors}
    halves = ("altup_proj.weight", "altup_unembd_proj.weight", "per_layer_model_proj.weight")
    assert {types[key] for key in (*halves, "blk.0.laurel_l.weight")} == {"f16"}
    assert types["blk.0.altup_router.weight"] == "f32" and types["blk.0.attn_q.weight"] == "q4_0"


def test_a_file_that_does_not_say_which_gates_are_cut_off_has_those_of_published_models() -> None:
    model = SyntheticModel("gemma3n-e2b:q4_0")
    del model.metadata["gemma3n.activation_sparsity_scale"]
    cut = [forward.deviations for forward in resolve(model).config.mixers(FeedForward)]
    assert cut[10:] == [None] * 20 and np.allclose(cut[:10], 1.6448536)


def test_drafts_and_cache_hits_change_no_token(folder: Path) -> None:
    check_drafts_and_cache(open_gguf(written(folder, "gemma3n"), parallel=2), tiny.golden("gemma3n"))


def wrapped(arrays: families.Arrays) -> families.Arrays:
    """A published folder: the text model beside towers, with tensors that nobody reads."""
    ones = np.ones((32, 96), np.float32)
    out = {key.replace("model.", "model.language_model.", 1): array for key, array in arrays.items()}
    return out | {
        "model.vision_tower.timm_model.conv_stem.conv.weight": ones,
        "model.embed_vision.embedding.weight": ones,
        "model.audio_tower.conformer.0.norm.weight": ones[0],
        "model.language_model.layers.5.self_attn.k_proj.weight": ones,
        "model.language_model.layers.5.self_attn.k_norm.weight": ones[0, :32],
    }


def test_a_published_folder_has_towers_and_older_keys(tmp_path: Path) -> None:
    golden = tiny.golden("gemma3n")
    path = families.write_folder(families.ALL["gemma3n"], tmp_path, wrapped)
    config: dict[str, Any] = json.loads((path / "config.json").read_text())
    del config["rope_parameters"]
    config |= {"rope_theta": 1e6, "rope_local_base_freq": 1e4, "rope_scaling": None}
    config |= {"query_pre_attn_scalar": 256, "intermediate_size": 160}
    (path / "config.json").write_text(
        json.dumps({"model_type": "gemma3n", "text_config": config, "vision_config": {}, "audio_config": {}})
    )
    with pytest.warns(RuntimeWarning, match="left out: 2 for images, 1 for audio"):
        engine = open_folder(path)
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-8
    assert greedy(engine, golden.prompt, len(golden.ids)) == golden.ids


def test_two_streams_have_one_matrix_each_way(tmp_path: Path) -> None:
    """It is a tensor of two axes in a folder, and one of three in a GGUF file."""

    def two(arrays: families.Arrays) -> families.Arrays:
        kept = {key: a for key, a in arrays.items() if ".1.weight" not in key and ".2.weight" not in key}
        for key, array in kept.items():
            if "modality_router" in key:
                kept[key] = array[:2]
            elif "_coefs" in key:
                kept[key] = array[: 4 if "prediction" in key else 2, :2]
        return kept

    family, prompt = families.ALL["gemma3n"], tiny.golden("gemma3n").prompt
    path = families.write_folder(family, tmp_path / "two", two, altup_num_inputs=2)
    out = akunu.convert(path, tmp_path / "two.gguf", "f32", progress=False)
    shapes = {tensor.name: tuple(tensor.shape) for tensor in _core.GgufFile(str(out)).tensors}
    assert shapes["altup_proj.weight"] == (1, 96, 96)
    assert nmse(open_gguf(out).logits(prompt), open_folder(path).logits(prompt)) < 1e-9


def test_a_scale_of_what_was_corrected_may_be_switched_off(tmp_path: Path) -> None:
    """Its tensor is there all the same."""
    family = families.ALL["gemma3n"]

    def ones(arrays: families.Arrays) -> families.Arrays:
        return {key: np.ones_like(a) if "output_scale" in key else a for key, a in arrays.items()}

    prompt = tiny.golden("gemma3n").prompt
    off = open_folder(families.write_folder(family, tmp_path / "off", altup_correct_scale=False))
    neutral = open_folder(families.write_folder(family, tmp_path / "ones", ones))
    assert np.array_equal(off.logits(prompt), neutral.logits(prompt))


@pytest.mark.parametrize(
    ("keys", "error", "message"),
    [
        (
            {"altup.num_inputs": 9},
            ModelFileError,
            "altup.num_inputs: found 9, expected an integer from 0",
        ),
        ({"altup.num_inputs": 1}, ModelFileError, "fewer than 2 inputs"),
        ({"altup.num_inputs": 3}, ModelFileError, r"altup_proj.weight: found shape \(3, 96, 96\)"),
        (
            {"altup.active_idx": 4},
            ModelFileError,
            "altup.active_idx: found 4, expected less than the 4",
        ),
        (
            {"activation_sparsity_scale": [1.0]},
            ModelFileError,
            "sparsity_scale: found an array of 1",
        ),
        (
            {"activation_sparsity_scale": [math.nan] * 6},
            ModelFileError,
            "activation_sparsity_scale: found nan",
        ),
    ],
)
def test_keys_that_do_not_fit_are_refused(
    keys: dict[str, object], error: type[Exception], message: str, tmp_path: Path
) -> None:
    path = families.write_gguf(families.ALL["gemma3n"], tmp_path / "x.gguf", **keys)
    with pytest.raises(error, match=message):
        resolve(_core.GgufFile(str(path)))


@pytest.mark.parametrize(
    ("name", "settings", "error", "message"),
    [
        (
            "gemma3n",
            {"activation_sparsity_pattern": [0.95, 1.0, 0, 0, 0, 0]},
            ModelFileError,
            "activation_sparsity_pattern: found",
        ),
        ("gemma3n", {"laurel_rank": 16}, ModelFileError, r"linear_left.weight: found shape \(24, 96\)"),
        (
            "glm4moe",
            {"activation_sparsity_pattern": [0.95]},
            UnsupportedError,
            "activation_sparsity_pattern: found",
        ),
        ("glm4moe", {"altup_num_inputs": 4}, UnsupportedError, "altup_num_inputs: found 4, but a glm4_moe"),
        ("glm4moe", {"laurel_rank": 4}, UnsupportedError, "laurel_rank: found 4, but a glm4_moe"),
    ],
)
def test_settings_that_do_not_fit_are_refused(
    name: str, settings: dict[str, object], error: type[Exception], message: str, tmp_path: Path
) -> None:
    path = families.write_folder(families.ALL[name], tmp_path, None, **settings)
    files = _core.SafetensorsFiles([str(path / "model.safetensors")])
    with pytest.raises(error, match=message):
        resolve_hf(json.loads((path / "config.json").read_text()), files.tensors, context=CONTEXT)
