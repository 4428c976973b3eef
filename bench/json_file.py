"""Writing results as JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import click

__all__ = ["json_option", "write_json"]

json_option = click.option(
    "--json", "json_path", type=click.Path(path_type=Path), metavar="FILE", help="Write the figures here."
)


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
