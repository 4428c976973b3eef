"""What blocks make of a model: its dispatch table."""

from __future__ import annotations

from pathlib import Path

from . import tiny
from .test_engine import open_engine


def test_a_command_waits_where_it_needs_what_another_has_written_and_nowhere_else(tmp_path: Path) -> None:
    """Barriers follow from how the ops' rows say that buffers are accessed."""
    path = tiny.write("llama", "F32", tmp_path / "tiny.gguf").path
    plan = open_engine(path, context=64).plan("decode")
    beside = {command["label"] for command in plan if not command["barrier"]}
    layers = {command["label"].split(".")[1] for command in plan if command["label"].startswith("layers.")}
    assert len(layers) > 1
    assert beside == {"rope_table", *(f"layers.{n}.attn_{part}" for n in layers for part in "kv")}
