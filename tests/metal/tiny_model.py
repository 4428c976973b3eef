"""The tiny model of the engine's tests on the Metal device."""

from __future__ import annotations

from pathlib import Path

from akunu import _core
from akunu.files.describe.gguf_config import resolve
from models import llama2c
from one_engine import OneEngine


def open_metal(path: Path, context: int = 128, **options: object) -> OneEngine:
    file = _core.GgufFile(str(path))
    return OneEngine(
        _core.Engine(file, resolve(file, context=context), context=context, device="metal", **options)
    )


def begun(engine: OneEngine, **options: object) -> list[int]:
    """Prompt run; the first token."""
    engine.begin(llama2c.expected().prompt_ids, **options)
    return engine.prefill()[1].ids
