"""The tiny models as Hugging Face folders: the very weights, and `config.json` as Transformers wrote it.

`tests/data/hf` holds what `save_pretrained` of Transformers wrote besides the weights; `tools/make_golden.py`
makes it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from formats.safetensors_bytes import write_shards, write_tensors

from . import rows, tiny

__all__ = ["HF_DIR", "config", "write"]

HF_DIR = Path(__file__).resolve().parents[1] / "data" / "hf"


def config(name: str) -> dict[str, Any]:
    """`config.json` of one of `tiny.EVERY` or `rows.ALL`."""
    found: dict[str, Any] = json.loads((HF_DIR / name / "config.json").read_text())
    return found


def write(
    name: str,
    folder: Path,
    *,
    dtype: str = "F32",
    shards: int = 1,
    pad: int = 0,
    change: Callable[[dict[str, Any]], Mapping[str, Any]] | None = None,
    arrays: Callable[[tiny.Weights], Mapping[str, npt.NDArray[Any]]] | None = None,
    types: Mapping[str, str] | None = None,
) -> Path:
    """Write one of `tiny.EVERY` or `rows.ALL`.

    `change` and `arrays` give another configuration and other tensors; `types` as of `write_tensors`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(HF_DIR / name / "generation_config.json", folder)
    settings = config(name)
    (folder / "config.json").write_text(json.dumps(change(settings) if change else settings))
    own = rows.weights(rows.ALL[name]) if name in rows.ALL else tiny.weights(tiny.EVERY[name])
    weights: Mapping[str, npt.NDArray[Any]] = dict(own)
    weights = arrays(dict(weights)) if arrays else weights
    if shards > 1:
        write_shards(folder, weights, shards)
    else:
        write_tensors(folder / "model.safetensors", weights, dtype, pad, types)
    return folder
