"""The rows of `akunu.describe.dense_rows`: numpy, the engine and folders against Transformers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from akunu import _core
from akunu.describe.blocks import Attention, FeedForward
from akunu.describe.config import ModelConfig, resolve
from akunu.files.folder import ModelFolder

from . import configs, folders, rows, tiny
from .reference import Reference
from .test_engine import DEVICE, greedy, nmse, open_engine
from .test_folder import open_folder

NEAR_TIE = 0.05
FOLDERS = [name for name, row in rows.ALL.items() if row.folder]


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
def test_phases_agree_to_the_bit(name: str, kv_dtype: str, folder: Path) -> None:
    """A prompt at once, in chunks, and in single steps."""
    golden = tiny.golden(name)
    ids = golden.prompt + golden.ids
    whole = open_engine(written(folder, name), kv_dtype=kv_dtype).logits(ids)
    for chunk in (1, 3, 23):
        found = open_engine(written(folder, name), chunk=chunk, kv_dtype=kv_dtype).logits(ids)
        if DEVICE == "cuda":
            assert nmse(found, whole) < 1e-3, f"chunk {chunk}"
        else:
            assert np.array_equal(found, whole), f"chunk {chunk}"


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_equals_transformers(name: str, tmp_path: Path) -> None:
    golden = tiny.golden(name)
    engine = open_folder(folders.write(name, tmp_path))
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-9
    assert greedy(engine, golden.prompt, len(golden.ids)) == golden.ids


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_has_the_configuration_of_the_gguf_file(name: str, folder: Path, tmp_path: Path) -> None:
    ours = ModelFolder(folders.write(name, tmp_path)).spec(tiny.CONTEXT).config
    theirs = resolve(_core.GgufFile(str(written(folder, name))), context=tiny.CONTEXT).config
    for field in vars(ours).keys() - {"rope_sets", "blocks"}:
        assert getattr(ours, field) == pytest.approx(getattr(theirs, field)), field
    for mine, other in zip(ours.blocks, theirs.blocks, strict=True):
        assert vars(mine.mixer) == pytest.approx(vars(other.mixer))
    for rope, expected in zip(ours.rope_sets, theirs.rope_sets, strict=True):
        np.testing.assert_allclose(rope.inv_freq, expected.inv_freq, rtol=1e-6)
        assert rope.scale == pytest.approx(expected.scale)
        assert rope.temperature == pytest.approx(expected.temperature)
        assert rope.temperature_length == expected.temperature_length


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
    ("command_r", "logit scale", lambda c: dataclasses.replace(c, logit_scale=1.0)),
    ("arcee", "activation", lambda c: configs.changed(c, FeedForward, activation="silu")),
]


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
    model.spec = dataclasses.replace(model.spec, config=change(model.spec.config))
    assert np.abs(model.logits(golden.prompt) - golden.logits).max() > NEAR_TIE
