"""Mixes of sequences on the Metal device: each is what it is alone, in its ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from metal.on_metal import metal_engines
from models import tiny
from models.test_same_output import Mixes

__all__ = ["metal_engines"]

pytestmark = pytest.mark.usefixtures("metal_engines")


@pytest.mark.parametrize(
    "name", ["llama", *(pytest.param(name, marks=pytest.mark.long) for name in ("gemma3", "phi3_long"))]
)
def test_a_sequence_is_what_it_is_alone(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels sum in another order for one row than for many, so log-probabilities have other last bits."""
    tiny.write(name, "F32", tmp_path / "model.gguf")
    Mixes(tmp_path / "model.gguf", tmp_path / "pages").run(3, monkeypatch, bits=False, reads=30)
