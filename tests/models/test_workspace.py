"""Activations share memory where no command needs two of them at a time, and no bit depends on it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import akunu
from akunu import _core
from akunu.files.describe.gguf_config import resolve

from . import tiny
from .test_engine import greedy

DEVICE = os.environ.get("AKUNU_TEST_DEVICE", "cpu")


def opened(path: Path, **options: object) -> _core.Engine:
    file = _core.GgufFile(str(path))
    settings = {"device": DEVICE, "context": tiny.CONTEXT, "threads": 2, **options}
    return _core.Engine(file, resolve(file, context=tiny.CONTEXT), **settings)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in tiny.ALL
        for dtype in ("F32", "Q8_0")
        if dtype == "F32" or name.endswith("_256")
    ],
)
def test_no_bit_depends_on_what_shares_memory(name: str, dtype: str, tmp_path: Path) -> None:
    check_bits(name, dtype, tmp_path)


def check_bits(name: str, dtype: str, tmp_path: Path) -> None:
    """Logits and sequences of one model, in engines whose activations share memory or do not."""
    path = tiny.write(name, dtype, tmp_path / "model.gguf").path
    shared, apart = opened(path), opened(path, activations_apart=True)
    prompt = tiny.golden(name).prompt
    np.testing.assert_array_equal(shared.logits(prompt), apart.logits(prompt))
    assert greedy(shared, prompt, 12) == greedy(apart, prompt, 12)
    assert apart.memory["activations"] == apart.memory["activations_apart"]
    assert shared.memory["activations_apart"] == apart.memory["activations"]
    assert shared.memory["activations"] <= apart.memory["activations"]


def test_a_model_takes_less_for_its_activations(tmp_path: Path) -> None:
    path = tiny.write("llama_256", "Q8_0", tmp_path / "model.gguf").path
    shared, apart = opened(path), opened(path, activations_apart=True)
    found = shared.memory["activations"]
    assert found < 0.9 * apart.memory["activations"]
    assert shared.memory["scratch"] - found == apart.memory["scratch"] - apart.memory["activations"]
    shown = str(akunu.Memory(**shared.memory))
    assert "are activations" in shown and "if none shared memory" in shown
