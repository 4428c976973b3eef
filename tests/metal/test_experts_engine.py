"""Models with experts on the Metal device: the CPU's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from akunu.base.errors import UnsupportedError
from metal.on_metal import metal_engines, some
from metal.steps import part, step
from metal.tiny_model import open_metal
from metal_emulator.control import Control
from models import quant, test_experts
from models.test_engine import QUANTISED, open_engine
from models.test_experts import folder, test_the_engine_equals_transformers

__all__ = ["folder", "metal_engines", "test_the_engine_equals_transformers"]
pytestmark = pytest.mark.usefixtures("metal_engines")


WITH_KERNELS = [dtype for dtype in QUANTISED if dtype not in quant.CODEBOOKS]


@pytest.mark.parametrize("dtype", some(WITH_KERNELS, "Q4_0", "Q4_K", "MXFP4"))
def test_every_weight_type_matches_float64(dtype: str, folder: Path) -> None:
    test_experts.test_every_weight_type_matches_float64(dtype, folder)


@pytest.mark.parametrize("dtype", quant.CODEBOOKS)
def test_types_without_kernels_are_refused_by_name(dtype: str, folder: Path) -> None:
    path = test_experts.written(folder, "qwen3moe_256", dtype)
    with pytest.raises(UnsupportedError, match=f"weights of type '{dtype.lower()}'"):
        open_engine(path)


def chained(path: Path, sequences: int) -> list[list[int]]:
    """What so many sequences generate in one chain, behind prompts of one token."""
    engine = open_metal(path, context=32, parallel=sequences)
    slots = list(range(sequences))
    for slot in slots:
        assert engine.open() == slot
        engine.begin([slot], slot=slot)
    first = step(engine, [part(slot) for slot in slots])
    return [a + b for a, b in zip(first, step(engine, [part(s, limit=4) for s in slots], 4), strict=True)]


def test_a_chain_of_many_sequences(
    folder: Path, monkeypatch: pytest.MonkeyPatch, emulator_control: Control
) -> None:
    """A kernel counts their tiles, which no indirect command could; with few, a chain is encoded once."""
    path = test_experts.written(folder, "qwen3moe")
    found, bound = {}, {}
    for replay in ("", "indirect"):
        monkeypatch.setenv("AKUNU_METAL_REPLAY", replay)
        for sequences in (2, 20):
            before = emulator_control["set_buffer"]
            found[replay, sequences] = chained(path, sequences)
            bound[replay, sequences] = emulator_control["set_buffer"] - before
    assert found["", 2] == found["indirect", 2] == found["", 20][:2]
    assert found["", 20] == found["indirect", 20]
    assert bound["indirect", 2] < bound["", 2] and bound["indirect", 20] == bound["", 20]
