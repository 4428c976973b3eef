"""Where the real models are, and what other programs said with them."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from missing import missing

DATA = Path(__file__).parent / "data"


def real_model(name: str) -> Path:
    """A model that `tools/real_models.py` has fetched. Without it: skip, but fail in CI."""
    folder = os.environ.get("AKUNU_REAL_MODELS")
    if folder is None:
        pytest.skip("AKUNU_REAL_MODELS is not set: `make test-real` fetches the models and runs these tests")
    path = Path(folder) / name
    path = path if path.exists() else path.with_name(f"{name}.gguf")
    if not path.exists():
        missing(f"no {name} in {folder}; fetch it: python -m tools.real_models {folder} {name}")
    return path


@functools.cache
def recorded(name: str) -> dict[str, Any]:
    """What `tools/record_real.py` wrote down for a model; `made_with` says of which program."""
    found: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return found
