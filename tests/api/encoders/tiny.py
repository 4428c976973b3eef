"""Tiny random encoders: configurations and what Transformers computes are committed, weights are not.

Weights come from a seed and from numpy alone, by the names and shapes that Transformers gives them, which are
committed too. `tools/make_encoder_golden.py` runs the very same weights in Transformers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from formats.safetensors_bytes import write_tensors

__all__ = ["DIR", "Golden", "golden", "names", "weights", "write_folder"]

DIR = Path(__file__).resolve().parents[2] / "data" / "encoders"

Weights = dict[str, npt.NDArray[np.float32]]


@dataclass(frozen=True)
class Golden:
    """One model.

    Attributes
    ----------
    config
        `config.json`.
    files
        The other files of the folder: name to JSON.
    weights
        Of the model; those of dense modules have the module's folder before their names.
    texts
        Token ids of each text.
    second
        Where each text's second part begins, 0 for none.
    vectors
        float32 [texts, width], not normalised; of rerankers the scores before the sigmoid.
    """

    name: str
    config: dict[str, Any]
    files: dict[str, Any]
    weights: Weights
    texts: list[list[int]]
    second: list[int]
    vectors: npt.NDArray[np.float32]


def names() -> list[str]:
    """The models that there are."""
    return sorted(path.stem for path in DIR.glob("*.npz"))


def weights(shapes: dict[str, list[int]], seed: int) -> Weights:
    """Random weights: every part matters, and no softmax is flat or one-hot."""
    # RandomState's stream is frozen for all versions of numpy; Generator's is not.
    rng = np.random.RandomState(seed)
    out: Weights = {}
    for name, shape in sorted(shapes.items()):
        # Nearly normal, from integer sums: the same bits on every machine, as no log is.
        sums = rng.randint(-(1 << 20), 1 << 20, (4, *shape), dtype=np.int64).sum(axis=0)
        values = sums / ((1 << 20) * np.sqrt(4 / 3))
        if len(shape) == 1:
            norm = "norm" in name.lower() or "_ln." in name
            values = 1 + 0.2 * values if norm and name.endswith("weight") else 0.2 * values
        elif "embed" not in name:
            values = values * (1.4 / np.sqrt(shape[1]))
        out[name] = values.astype(np.float32)
    return out


def golden(name: str) -> Golden:
    """One of `names`."""
    with np.load(DIR / f"{name}.npz") as data:
        facts = json.loads(str(data["facts"]))
        ids = np.split(data["ids"], np.cumsum(data["lengths"])[:-1])
        return Golden(
            name=name,
            config=facts["config"],
            files=facts["files"],
            weights=weights(facts["shapes"], facts["seed"]),
            texts=[text.tolist() for text in ids],
            second=data["second"].tolist(),
            vectors=data["vectors"],
        )


def write_folder(model: Golden, folder: Path) -> Path:
    """The model as `save_pretrained` of Transformers or of Sentence Transformers writes it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(model.config))
    for name, content in model.files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    dense = {name.split("/")[0] for name in model.weights if "/" in name}
    inner = {name: array for name, array in model.weights.items() if "/" not in name}
    write_tensors(folder / "model.safetensors", inner)
    for module in dense:
        layer = {
            name.split("/")[1]: array
            for name, array in model.weights.items()
            if name.startswith(f"{module}/")
        }
        write_tensors(folder / module / "model.safetensors", layer)
    return folder
