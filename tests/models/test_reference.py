"""The numpy reference agrees with Transformers on every tiny model, and would notice any missing feature."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from akunu.files.describe.blocks import Attention, FeedForward
from akunu.files.describe.config import ModelConfig

from . import configs, quant, tiny
from .reference import Reference
from .source import ReaderSource

NEAR_TIE = 0.05


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tiny")


def reference(folder: Path, name: str, dtype: str = "F32") -> Reference:
    path = folder / f"{name}-{dtype}.gguf"
    if not path.exists():
        tiny.write(name, dtype, path)
    return Reference(path, context=tiny.CONTEXT)


@pytest.mark.parametrize("name", tiny.ALL)
def test_golden_data_belongs_to_the_weights(name: str) -> None:
    golden = tiny.golden(name)
    assert golden.fingerprint == tiny.fingerprint(tiny.weights(tiny.ALL[name])), (
        "tests/models/tiny.py has changed; run tools/make_golden.py"
    )
    assert golden.gaps.min() >= NEAR_TIE
    assert len(golden.prompt) > tiny.ALL[name].window


@pytest.mark.table
@pytest.mark.parametrize("name", tiny.ALL)
def test_reference_agrees_with_transformers(name: str, folder: Path) -> None:
    golden = tiny.golden(name)
    n = len(golden.prompt)
    logits = reference(folder, name).logits([*golden.prompt, *golden.ids])
    np.testing.assert_allclose(logits[:n], golden.logits, atol=2e-4)
    assert logits[n - 1 : -1].argmax(axis=-1).tolist() == golden.ids
    best = np.sort(logits[n - 1 : -1], axis=-1)
    np.testing.assert_allclose(best[:, -1] - best[:, -2], golden.gaps, atol=2e-4)


@pytest.mark.parametrize("name", tiny.ALL)
def test_golden_data_is_what_transformers_computes_now(name: str) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from . import hf

    golden = tiny.golden(name)
    logits = hf.logits(hf.model(tiny.ALL[name]), golden.prompt)
    np.testing.assert_allclose(logits, golden.logits, atol=2e-4)


def _ropes(config: ModelConfig, **changes: object) -> ModelConfig:
    sets = tuple(dataclasses.replace(rope, **changes) for rope in config.rope_sets)  # type: ignore[arg-type]
    return dataclasses.replace(config, rope_sets=sets)


def _other_style(config: ModelConfig) -> ModelConfig:
    return _ropes(config, style="half" if config.rope_style == "interleaved" else "interleaved")


def _unscaled(config: ModelConfig) -> ModelConfig:
    theta = 5e5 if config.arch == "llama" and config.head_dim == 64 else 1e4
    plain = theta ** -(np.arange(0, config.rope_dim, 2) / config.rope_dim)
    return _ropes(config, inv_freq=plain.astype(np.float32))


def _attention(config: ModelConfig, **changes: object) -> ModelConfig:
    return configs.changed(config, Attention, **changes)


CHANGES: list[tuple[str, str, Callable[[ModelConfig], ModelConfig]]] = [
    ("llama", "rope style", _other_style),
    ("qwen2", "rope style", _other_style),
    ("llama", "norm epsilon", lambda c: dataclasses.replace(c, norm_eps=1e-2)),
    ("llama3", "divisors", _unscaled),
    ("llama_linear", "factor", _unscaled),
    ("llama_yarn", "frequencies", _unscaled),
    ("llama_yarn", "attention factor", lambda c: _ropes(c, scale=1.0)),
    ("mistral", "window", lambda c: _attention(c, window=0)),
    ("mistral", "window + 1", lambda c: _attention(c, window=13)),
    ("gemma", "activation", lambda c: configs.changed(c, FeedForward, activation="silu")),
    ("gemma", "embedding scale", lambda c: dataclasses.replace(c, embedding_scale=1.0)),
    ("gemma2", "attention cap", lambda c: _attention(c, softcap=0.0)),
    ("gemma2", "final cap", lambda c: dataclasses.replace(c, final_softcap=0.0)),
    ("gemma2", "which layers are windowed", lambda c: _attention(c, window=list(c.layer_window[::-1]))),
    ("gemma2", "query scale", lambda c: _attention(c, scale=c.attn_scale * 1.1)),
    ("gemma3", "local theta", lambda c: _attention(c, rope=0)),
    ("gemma3", "which theta is local", lambda c: dataclasses.replace(c, rope_sets=c.rope_sets[::-1])),
    ("gemma3", "window", lambda c: _attention(c, window=0)),
    ("phi3", "window", lambda c: _attention(c, window=0)),
    ("phi3_short", "divisors", _unscaled),
    ("phi3_short", "attention factor", lambda c: _ropes(c, scale=1.0)),
    ("phi3_short", "rotary share", lambda c: _ropes(c, inv_freq=c.rope_sets[0].inv_freq[:16])),
]


@pytest.mark.table
@pytest.mark.parametrize(("name", "what", "change"), CHANGES, ids=[f"{c[0]}-{c[1]}" for c in CHANGES])
def test_golden_data_notices_a_wrong(
    name: str, what: str, change: Callable[[ModelConfig], ModelConfig], folder: Path
) -> None:
    golden = tiny.golden(name)
    model = reference(folder, name)
    model.spec = dataclasses.replace(model.spec, config=change(model.spec.config))
    assert np.abs(model.logits(golden.prompt) - golden.logits).max() > NEAR_TIE


@pytest.mark.table
@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("qwen2", "attn_q_bias"),
        ("qwen2", "attn_v_bias"),
        ("llama_bias", "attn_output_bias"),
        ("llama_bias", "ffn_gate_bias"),
        ("llama_bias", "ffn_up_bias"),
        ("llama_bias", "ffn_down_bias"),
        ("qwen3", "attn_q_norm"),
        ("gemma3", "attn_k_norm"),
        ("gemma2", "post_attn_norm"),
        ("gemma2", "post_ffn_norm"),
    ],
)
def test_golden_data_notices_a_neutral(name: str, part: str, folder: Path) -> None:
    golden = tiny.golden(name)
    model = reference(folder, name)
    key = f"layers.1.{part}"
    model.weights[key] = np.full_like(model.weights[key], 0.0 if part.endswith("bias") else 1.0)
    assert np.abs(model.logits(golden.prompt) - golden.logits).max() > NEAR_TIE


def test_the_models_cover_what_the_engine_must_do() -> None:
    rows = tiny.ALL.values()
    assert {row.head_dim for row in rows} == {64, 80, 96, 128, 256}
    assert {row.n_heads // row.n_kv_heads for row in rows} >= {1, 2, 4, 5, 7}
    assert all(row.vocab_size % 2 for row in rows)
    assert {row.tied for row in rows} == {True, False}
    assert any(row.dim % 32 for row in rows), "a model that no quantised type fits"


@pytest.mark.table
@pytest.mark.parametrize("dtype", quant.DTYPES)
def test_every_type_makes_a_usable_model(dtype: str, folder: Path) -> None:
    written = tiny.write("llama_256", dtype, folder / f"usable-{dtype}.gguf")
    assert {kind for name, kind in written.dtypes.items() if "norm" not in name} == {dtype}
    model = Reference(written.path)
    logits = model.logits(tiny.golden("llama_256").prompt)
    assert np.isfinite(logits).all()
    assert 1.0 < logits.std() < 10.0, "logits are neither flat nor absurd"
    assert len(set(logits.argmax(axis=-1).tolist())) > 10


def test_mixed_files_give_each_matrix_another_type(folder: Path) -> None:
    written = tiny.write("llama_256", "MIXED", folder / "mixed.gguf")
    found = {tensor.dtype for tensor in ReaderSource(written.path).tensors}
    n_matrices = sum("norm" not in name for name in written.dtypes)
    assert n_matrices >= 20
    assert found == {dtype.lower() for dtype in quant.DTYPES[:n_matrices]}


def test_a_row_without_whole_blocks_stays_f16(folder: Path) -> None:
    written = tiny.write("llama_odd", "Q4_K", folder / "odd.gguf")
    assert set(written.dtypes.values()) == {"F16", "F32"}
