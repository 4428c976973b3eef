"""The rows of `akunu.files.describe.dense_rows`: numpy, the engine and folders against Transformers."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from akunu import _core
from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.describe.architectures import ARCHITECTURES
from akunu.files.describe.blocks import Attention, FeedForward
from akunu.files.describe.config import ModelConfig
from akunu.files.describe.gguf_config import resolve
from akunu.files.describe.hf_models import HF_MODELS
from akunu.files.describe.known_missing import why_missing
from akunu.files.folder import ModelFolder
from order import Draw

from . import configs, convert, folders, rows, tiny
from .reference import Reference
from .source import ReaderSource
from .test_engine import DEVICE, greedy, nmse, open_engine
from .test_folder import open_folder
from .test_same_output import Mixes

NEAR_TIE = 0.05


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rows")


@pytest.fixture(params=rows.ALL)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def written(folder: Path, name: str) -> Path:
    path = folder / f"{name}.gguf"
    return path if path.exists() else rows.write(name, "F32", path)


def test_golden_data_belongs_to_the_weights(name: str) -> None:
    golden = tiny.golden(name)
    row = rows.ALL[name]
    assert golden.fingerprint == tiny.fingerprint(rows.weights(row)), (
        "tests/models/rows.py has changed; run tools/make_golden.py"
    )
    assert golden.gaps.min() >= NEAR_TIE
    assert len(golden.prompt) > row.window


def test_golden_data_is_what_transformers_computes_now(name: str) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    golden = tiny.golden(name)
    found = rows.logits_of_class(rows.ALL[name], golden.prompt)
    np.testing.assert_allclose(found, golden.logits, atol=2e-4)


@pytest.mark.table
def test_the_reference_agrees_with_transformers(name: str, folder: Path) -> None:
    golden = tiny.golden(name)
    n = len(golden.prompt)
    reference = Reference(written(folder, name), context=tiny.CONTEXT)
    logits = reference.logits([*golden.prompt, *golden.ids])
    np.testing.assert_allclose(logits[:n], golden.logits, atol=3e-4)
    assert logits[n - 1 : -1].argmax(axis=-1).tolist() == golden.ids


def test_the_engine_equals_transformers(name: str, folder: Path) -> None:
    golden = tiny.golden(name)
    engine = open_engine(written(folder, name))
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-9
    assert greedy(engine, golden.prompt, len(golden.ids)) == golden.ids


@pytest.mark.parametrize("kv_dtype", ["f32", "q8_0"])
def test_phases_agree_to_the_bit(name: str, kv_dtype: str, folder: Path, draw: Draw) -> None:
    """A prompt at once, in chunks, and in single steps."""
    golden = tiny.golden(name)
    ids = golden.prompt + golden.ids
    whole = open_engine(written(folder, name), kv_dtype=kv_dtype).logits(ids)
    for chunk in draw((1, 3, 23)):
        found = open_engine(written(folder, name), chunk=chunk, kv_dtype=kv_dtype).logits(ids)
        if DEVICE.startswith("cuda"):
            assert nmse(found, whole) < 1e-3, f"chunk {chunk}"
        else:
            assert np.array_equal(found, whole), f"chunk {chunk}"


@pytest.mark.parametrize("name", rows.ALL)
def test_a_folder_equals_transformers(name: str, tmp_path: Path) -> None:
    golden = tiny.golden(name)
    engine = open_folder(folders.write(name, tmp_path))
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-9
    assert greedy(engine, golden.prompt, len(golden.ids)) == golden.ids


@pytest.mark.parametrize("name", rows.ALL)
def test_a_folder_has_the_configuration_of_the_gguf_file(name: str, folder: Path, tmp_path: Path) -> None:
    ours = ModelFolder(folders.write(name, tmp_path)).spec(tiny.CONTEXT).config
    theirs = resolve(_core.GgufFile(str(written(folder, name))), context=tiny.CONTEXT).config
    for field in vars(ours).keys() - {"rope_sets", "blocks"}:
        assert getattr(ours, field) == pytest.approx(getattr(theirs, field)), field
    for mine, other in zip(ours.blocks, theirs.blocks, strict=True):
        own = dict(vars(mine.mixer))
        if rows.ALL[name].constant and "q_gain" in own:  # which is in tensors there
            own["q_gain"] = 0.0
        assert own == pytest.approx(vars(other.mixer))
    for rope, expected in zip(ours.rope_sets, theirs.rope_sets, strict=True):
        np.testing.assert_allclose(rope.inv_freq, expected.inv_freq, rtol=1e-6)
        assert rope.scale == pytest.approx(expected.scale)
        assert rope.temperature == pytest.approx(expected.temperature)
        assert rope.temperature_length == expected.temperature_length


@pytest.mark.parametrize("name", ["gpt2", "falcon_grouped", "muse_glimmer", "ministral3"])
def test_a_sequence_is_what_it_is_alone(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In batches, in chunks, with drafts that are verified, after a prefix that was found again."""
    path = rows.write(name, "F32", tmp_path / "x.gguf")
    Mixes(path, tmp_path / "pages").run(3, monkeypatch)


def _attention(config: ModelConfig, **changes: object) -> ModelConfig:
    return configs.changed(config, Attention, **changes)


CHANGES: list[tuple[str, str, Callable[[ModelConfig], ModelConfig]]] = [
    ("granite", "embedding scale", lambda c: dataclasses.replace(c, embedding_scale=1.0)),
    ("granite", "residual scale", lambda c: dataclasses.replace(c, residual_scale=1.0)),
    ("granite", "logit scale", lambda c: dataclasses.replace(c, logit_scale=1.0)),
    ("granite", "attention's scale", lambda c: _attention(c, scale=24**-0.5)),
    ("olmo2", "width of its norms", lambda c: _attention(c, norms_whole_rows=False)),
    ("olmo3", "local frequencies", lambda c: _attention(c, rope=0)),
    ("smollm3", "rotation", lambda c: _attention(c, rope=0)),
    ("ministral3", "temperature", lambda c: _attention(c, q_rope=None)),
    ("hunyuan", "order of norm and rotation", lambda c: _attention(c, norms_after_rope=False)),
    ("exaone4", "rotation", lambda c: _attention(c, rope=0)),
    ("cohere2", "rotation", lambda c: _attention(c, rope=0)),
    ("cohere2", "kind of norm", lambda c: dataclasses.replace(c, layer_norm=False)),
    ("command_r_plus", "kind of the norms of heads", lambda c: _attention(c, norms_by_head=False)),
    ("stablelm_parallel", "kind of blocks", lambda c: configs.changed(c, FeedForward, parallel=False)),
    ("command_r", "logit scale", lambda c: dataclasses.replace(c, logit_scale=1.0)),
    ("gpt2", "positions", lambda c: dataclasses.replace(c, positions=0)),
    ("falcon_grouped", "kind of blocks", lambda c: configs.changed(c, FeedForward, parallel=False)),
    ("muse_glimmer", "norm of the embedding", lambda c: dataclasses.replace(c, norm_embedding=False)),
    ("muse_glimmer", "logit scale", lambda c: dataclasses.replace(c, logit_scale=1.0)),
    ("muse_glimmer", "rotation", lambda c: _attention(c, rope=0)),
    ("arcee", "activation", lambda c: configs.changed(c, FeedForward, activation="silu")),
]


@pytest.mark.table
@pytest.mark.parametrize(("name", "what", "change"), CHANGES, ids=[f"{c[0]}-{c[1]}" for c in CHANGES])
def test_golden_data_notices_another(
    name: str, what: str, change: Callable[[ModelConfig], ModelConfig], folder: Path
) -> None:
    golden = tiny.golden(name)
    model = Reference(written(folder, name), context=tiny.CONTEXT)
    if what == "width of its norms":
        for key, weight in model.weights.items():
            if key.endswith(("q_norm", "k_norm")):
                model.weights[key] = weight[:24]
    if what == "kind of the norms of heads":
        for key, weight in model.weights.items():
            if key.endswith(("q_norm", "k_norm")):
                model.weights[key] = weight.reshape(-1, 24)
    model.spec = dataclasses.replace(model.spec, config=change(model.spec.config))
    assert np.abs(model.logits(golden.prompt) - golden.logits).max() > NEAR_TIE


@pytest.mark.parametrize(("name", "arch"), [("qwen2", "qwen2vl"), ("qwen3", "qwen3vl")])
def test_a_model_that_sees_is_loaded_as_one_of_text(name: str, arch: str, tmp_path: Path) -> None:
    """Its layers are those of another architecture, and all positions of text are one."""
    row = tiny.ALL[name]
    writer = gguf.GGUFWriter(str(tmp_path / "x.gguf"), arch)
    for key, value in convert.metadata(row).items():
        convert.add_value(writer, key.replace(f"{name}.", f"{arch}."), value)
    writer.add_rope_dimension_sections([16, 24, 24, 0])
    writer.add_uint32(f"{arch}.n_deepstack_layers", 3)
    convert.add_tokenizer(writer, row.vocab_size)
    tower = {"v.patch_embd.weight": np.zeros((3, 32), np.float32)}
    convert.add_tensors(writer, {**convert.tensors(row, tiny.weights(row)), **tower}, "F32")
    convert.finish(writer)
    golden = tiny.golden(name)
    with pytest.warns(RuntimeWarning, match=f"tensors of this {arch} model are left out: 1 for images"):
        engine = open_engine(tmp_path / "x.gguf")
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-9


@pytest.mark.parametrize(
    ("name", "model_type", "flat"),
    [("qwen2", "qwen2_vl", True), ("qwen2", "qwen2_5_vl", False), ("qwen3", "qwen3_vl", False)],
)
def test_its_folder_is_loaded_as_one_of_text(name: str, model_type: str, flat: bool, tmp_path: Path) -> None:
    def seeing(config: dict[str, Any]) -> dict[str, Any]:
        rope = dict(config.pop("rope_parameters"))
        config["rope_theta"] = rope["rope_theta"]
        config["rope_scaling"] = {"type": "mrope", "mrope_section": [16, 24, 24]}
        config["model_type"] = model_type if flat else f"{model_type}_text"
        more = {"vision_config": {"hidden_size": 32}, "image_token_id": 3}
        return config | more if flat else {"model_type": model_type, "text_config": config, **more}

    path = folders.write(
        name,
        tmp_path,
        change=seeing,
        arrays=lambda w: w | {"visual.patch_embed.proj.weight": np.zeros((3, 32), np.float32)},
    )
    golden = tiny.golden(name)
    with pytest.warns(RuntimeWarning, match="1 for images"):
        engine = open_folder(path)
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-9


@pytest.mark.parametrize("name", ["ministral3", "mistral"])
def test_the_text_model_of_a_mistral3_is_of_the_type_that_it_names(name: str, tmp_path: Path) -> None:
    path = folders.write(
        name,
        tmp_path,
        change=lambda c: {"model_type": "mistral3", "text_config": c, "vision_config": {}},
        arrays=lambda w: (
            {("" if key.startswith("lm_head") else "language_model.") + key: a for key, a in w.items()}
            | {"vision_tower.patch_conv.weight": np.zeros((3, 32), np.float32)}
        ),
    )
    golden = tiny.golden(name)
    with pytest.warns(RuntimeWarning, match="1 for images"):
        engine = open_folder(path)
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-9


def test_a_ministral_without_rotary_parameters_has_those_of_its_class(tmp_path: Path) -> None:
    path = folders.write(
        "ministral3", tmp_path, change=lambda c: {k: v for k, v in c.items() if k != "rope_parameters"}
    )
    config = ModelFolder(path).spec(tiny.CONTEXT).config
    queries = config.rope_sets[config.mixers(Attention)[0].q_rope or 0]
    assert (queries.temperature, queries.temperature_length) == (0.1, 16384)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("stablelm", {"qk_layernorm": True}, r"q_layernorm\.norms\.0\.weight is missing"),
        ("stablelm", {"use_parallel_residual": True}, "use_parallel_residual: found True, but the feed-forw"),
        ("stablelm_parallel", {"use_parallel_residual": False}, "found False, but the feed-forwards have no"),
        ("stablelm_parallel", {"qk_layernorm": False}, "the architecture stablelm with 3 layers has no such"),
        ("command_r_plus", {"use_qk_norm": False}, "has no such norm; set use_qk_norm to true"),
        ("command_r", {"use_qk_norm": True}, r"q_norm\.weight is missing"),
        ("arcee", {"hidden_act": "silu"}, "hidden_act: found 'silu', expected relu2"),
        ("smollm3", {"no_rope_layers": [1, 0]}, "no_rope_layers: found"),
        ("glm4", {"attention_bias": False}, "set attention_bias to true"),
        ("olmo2", {"residual_multiplier": 0.5}, "a olmo2 model has none"),
        ("olmo2", {"logit_scale": 0.5}, "a olmo2 model has none"),
        (
            "arcee",
            {"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "full_attention": {"rope_theta": 1e4}}},
            "rope_type: found 'yarn' beside parameters for each type of layer",
        ),
        ("ministral3", {"model_type": "lfm3"}, "known but not run yet: it needs norms behind"),
    ],
)
def test_what_a_folder_may_not_have_is_refused(
    name: str, change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = folders.write(name, tmp_path, change=lambda c: c | change)
    with pytest.raises((ModelFileError, UnsupportedError), match=message):
        ModelFolder(path).spec(tiny.CONTEXT)


@pytest.mark.parametrize(
    ("name", "key", "value", "message"),
    [
        ("olmo2", "logit_scale", 0.5, "olmo2.logit_scale: found 0.5, but this feature is not supported"),
        ("olmo2", "attention.temperature_scale", 0.1, "attention.temperature_scale: found"),
        ("starcoder2", "use_parallel_residual", True, "use_parallel_residual: found True"),
        ("granite", "residual_scale", 1e9, "residual_scale: found"),
    ],
)
def test_what_a_file_may_not_have_is_refused(
    name: str, key: str, value: object, message: str, folder: Path
) -> None:
    source = ReaderSource(written(folder, name))
    source.metadata = {**source.metadata, f"{rows.ALL[name].arch}.{key}": value}
    with pytest.raises((ModelFileError, UnsupportedError), match=re.escape(message)):
        resolve(source)


def test_a_granite_may_have_sizes_of_what_only_hybrids_have(folder: Path) -> None:
    source = ReaderSource(written(folder, "granite"))
    plain = resolve(source).config.numbers()
    source.metadata = {
        **source.metadata,
        "granite.ssm.state_size": 128,
        "granite.attention.head_count_kv": [2, 2, 2],
    }
    found = resolve(source).config.numbers()
    assert {k: v for k, v in found.items() if "inv_freq" not in k} == {
        k: v for k, v in plain.items() if "inv_freq" not in k
    }


def test_a_granite_may_have_no_rotation(folder: Path) -> None:
    source = ReaderSource(written(folder, "granite"))
    source.metadata = {**source.metadata, "granite.rope.scaling.finetuned": False}
    assert set(resolve(source).config.layer_rope) == {None}


def test_what_is_missing_for_a_known_architecture_is_said(folder: Path) -> None:
    source = ReaderSource(written(folder, "granite"))
    source.metadata = {**source.metadata, "general.architecture": "jamba"}
    with pytest.raises(UnsupportedError, match="'jamba', which is known but not run yet: it needs Mamba"):
        resolve(source)


def test_what_is_known_to_be_missing_is_missing() -> None:
    """A row makes an entry of `akunu.files.describe.known_missing` wrong."""
    rows_there = ARCHITECTURES.keys() | HF_MODELS.keys()
    assert not [name for name in rows_there if why_missing(name)]


@pytest.mark.parametrize("name", ["cohere2", "exaone4"])
def test_no_head_is_rotated_where_no_layer_has_the_window_that_there_is(name: str, tmp_path: Path) -> None:
    """Transformers' classes do so, too: the window's number says that only its layers are rotated."""
    full = {"layer_types": ["full_attention"] * 4}
    path = folders.write(name, tmp_path, change=lambda config: config | full)
    config = ModelFolder(path).spec(tiny.CONTEXT).config
    assert set(config.layer_rope) == {None} and set(config.layer_window) == {0}
