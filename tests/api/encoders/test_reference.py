"""Encoders and embedding models equal Transformers, from folders and from GGUF files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import akunu
from akunu import _core
from akunu.api.encoders.model import EmbeddingModel
from kernels.builders.common import FIXED

from . import gguf_file, tiny

Vectors = npt.NDArray[np.float32]


def opened(path: Path, **options: Any) -> EmbeddingModel:
    model = akunu.load(path, threads=1, progress=False, **options)
    assert isinstance(model, EmbeddingModel)
    return model


def vectors(model: EmbeddingModel, texts: list[list[int]], second: list[int]) -> Vectors:
    """What the engine makes, neither normalised nor turned into scores."""
    rows = [(np.asarray(ids, np.uint32), at) for ids, at in zip(texts, second, strict=True)]
    return model._encoder.encode(rows)


def cpu_of(model: EmbeddingModel) -> str:
    """The instruction set, where it runs on the CPU."""
    cpu = next(device for device in _core.devices() if device["id"] == "cpu")
    return cpu["isa"] if model._encoder.device == cpu["name"] else ""


def floats(model: EmbeddingModel) -> float:
    """The bound where weights are floats.

    A CPU that has them as 16-bit integers adds 1.2e-8 of the outputs' square in each matmul
    (cpp/cpu/fixed.h), and up to 3.6e-8 in attention to scores like these: in layers of random weights 3e-8 to
    1.5e-7, in a reranker's one number up to 3.2e-7. With AMX a matmul adds 2.5e-9 where numbers are like
    noise, and in MiniLM, whose greatest activations are far from the others, up to 2e-8 (cpp/cpu/digits.h).
    """
    return 5e-7 if cpu_of(model) in FIXED else 1e-9


def nmse(found: Vectors, expected: Vectors) -> float:
    """Mean squared error, over the expected spread."""
    return float(
        ((found.astype(np.float64) - expected) ** 2).sum() / (expected.astype(np.float64) ** 2).sum()
    )


def same(model: EmbeddingModel, found: Vectors, wanted: Vectors) -> bool:
    """Bits on the CPU. A GPU's kernels sum in another order for one row, for a few and for many."""
    return np.array_equal(found, wanted) if cpu_of(model) else nmse(found, wanted) < 1e-10


@pytest.mark.parametrize("name", tiny.names())
def test_a_folder_equals_transformers(name: str, tmp_path: Path) -> None:
    golden = tiny.golden(name)
    with opened(tiny.write_folder(golden, tmp_path)) as model:
        assert nmse(vectors(model, golden.texts, golden.second), golden.vectors) < floats(model)


@pytest.mark.parametrize("name", tiny.names())
def test_f32_sums_equal_transformers(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On every processor: the set that has no format of its own for floats."""
    monkeypatch.setenv("AKUNU_CPU_ISA", "generic")
    golden = tiny.golden(name)
    with opened(tiny.write_folder(golden, tmp_path), device="cpu") as model:
        assert nmse(vectors(model, golden.texts, golden.second), golden.vectors) < 1e-9


@pytest.mark.parametrize("name", gguf_file.NAMES)
def test_a_gguf_file_equals_transformers(name: str, tmp_path: Path) -> None:
    golden = tiny.golden(name)
    with opened(gguf_file.write(golden, tmp_path / "model.gguf")) as model:
        assert nmse(vectors(model, golden.texts, golden.second), golden.vectors) < floats(model)


@pytest.mark.parametrize("name", ["roberta", "bert_rank", "modern_rank"])
def test_a_matrix_of_one_row_may_be_a_vector(name: str, tmp_path: Path) -> None:
    golden = tiny.golden(name)
    found = []
    for flat in (False, True):
        path = gguf_file.write(golden, tmp_path / f"{flat}.gguf", flat=flat)
        with opened(path, device="cpu") as model:
            found.append(vectors(model, golden.texts, golden.second))
    assert np.array_equal(*found)
    akunu.convert(path, tmp_path / "folder", "mlx-f16", progress=False)
    with opened(tmp_path / "folder", device="cpu") as model:
        assert nmse(vectors(model, golden.texts, golden.second), golden.vectors) < 1e-5


@pytest.mark.parametrize("name", ["bert", "modern", "nomic"])
def test_quantised_weights_are_near(name: str, tmp_path: Path) -> None:
    golden = tiny.golden(name)
    with opened(gguf_file.write(golden, tmp_path / "model.gguf", dtype="Q8_0")) as model:
        found = vectors(model, golden.texts, golden.second)
        assert floats(model) < nmse(found, golden.vectors) < 1e-3


@pytest.mark.parametrize("name", ["bert", "modern", "qwen3"])
def test_a_text_has_the_same_bits_whatever_its_neighbours(name: str, tmp_path: Path) -> None:
    golden = tiny.golden(name)
    with opened(tiny.write_folder(golden, tmp_path)) as model:
        # More rows and more texts than a step takes.
        many = golden.texts * 40
        together = vectors(model, many, [0] * len(many))
        alone = np.concatenate([vectors(model, [ids], [0]) for ids in golden.texts])
        assert same(model, together, np.tile(alone, (40, 1)))


def test_keys_of_other_models_change_nothing(tmp_path: Path) -> None:
    golden = tiny.golden("bert")
    golden.config.update(num_key_value_heads=2, head_dim=32)
    with opened(tiny.write_folder(golden, tmp_path)) as model:
        assert nmse(vectors(model, golden.texts, golden.second), golden.vectors) < floats(model)


def test_norms_may_have_the_names_of_tensorflow(tmp_path: Path) -> None:
    golden = tiny.golden("bert")
    first = {"weight": "gamma", "bias": "beta"}
    old = {
        re.sub(r"LayerNorm\.(weight|bias)$", lambda m: f"LayerNorm.{first[m[1]]}", name): array
        for name, array in golden.weights.items()
    }
    assert old.keys() != golden.weights.keys()
    golden.weights.clear()
    golden.weights.update(old)
    with opened(tiny.write_folder(golden, tmp_path)) as model:
        assert nmse(vectors(model, golden.texts, golden.second), golden.vectors) < floats(model)


def test_a_modernbert_whose_local_theta_is_null_has_one_theta(tmp_path: Path) -> None:
    golden = tiny.golden("modern")
    del golden.config["rope_parameters"]
    found = []
    for theta in (None, 5e4, 1e4):
        golden.config.update(global_rope_theta=5e4, local_rope_theta=theta)
        with opened(tiny.write_folder(golden, tmp_path)) as model:
            found.append(vectors(model, golden.texts, golden.second))
    np.testing.assert_array_equal(found[0], found[1])
    assert nmse(found[0], found[2]) > 1e-6


CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "window": ("modern", {"local_attention": 14}),
    "thetas": (
        "modern",
        {"rope_parameters": {"full_attention": {"rope_theta": 5e4, "rope_type": "default"}}},
    ),
    "layer types": ("modern", {"layer_types": ["full_attention"] * 4}),
    "activation": ("bert", {"hidden_act": "gelu_new"}),
    "eps": ("bert", {"layer_norm_eps": 1e-2}),
    "theta": ("nomic", {"rope_parameters": {"rope_theta": 1e4, "rope_type": "default"}}),
    "bidirectional": ("gemma", {"use_bidirectional_attention": False}),
    "causal": ("mistral_whole", {"is_causal": True}),
    "whole window": ("mistral_whole", {"sliding_window": 17}),
    "padding": ("roberta_rank", {"pad_token_id": 1}),
    "head": ("modern_bias", {"classifier_activation": "gelu"}),
    "bidirectional window": ("gemma", {"sliding_window": 18}),
    "range of distances": ("deberta", {"max_relative_positions": 26}),
    "logarithmic distances": ("deberta", {"position_buckets": 8, "max_relative_positions": 40}),
    "head of a pooler": ("deberta_classes", {"pooler_hidden_act": "gelu"}),
}


@pytest.mark.parametrize("case", CHANGES)
def test_the_golden_data_would_notice(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By sums of F32, whatever the processor: some changes are as small as what 16-bit integers cost."""
    monkeypatch.setenv("AKUNU_CPU_ISA", "generic")
    name, change = CHANGES[case]
    golden = tiny.golden(name)
    golden.config.update(change)
    with opened(tiny.write_folder(golden, tmp_path)) as model:
        assert nmse(vectors(model, golden.texts, golden.second), golden.vectors) > 1e-8
