"""Writing results as JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

__all__ = ["write_json"]


def write_json(path: Path, report: Any) -> None:
    """Write a report. What could not be measured (NaN, infinity) is null: JSON has no such numbers."""
    path.write_text(json.dumps(_finite(report), indent=1, default=str, allow_nan=False) + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
