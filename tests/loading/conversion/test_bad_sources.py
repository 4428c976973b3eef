"""What is wrong with a folder is said by `convert` as by `load`, and nothing is there under the new name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import akunu
from akunu.base.errors import AkunuError, ModelFileError
from files.test_folder import BAD, write_tokenizer
from models import folders, tiny

UP = "model.layers.1.mlp.up_proj.weight"
#: MLX's programs read the tokenizer's files, which are copied.
COPIED = ("bad tokenizer", "bad ends")


def outcome(source: Path, out: Path, error: type[AkunuError], message: str) -> None:
    file_type = "q8_0" if out.suffix == ".gguf" else "mlx-4bit"
    before = sorted(os.listdir(out.parent))
    with pytest.raises(error, match=message):
        akunu.convert(source, out, file_type, progress=False)
    assert not out.exists()
    left = set(os.listdir(out.parent)) - set(before)
    assert all(name.startswith(f".{out.name}.") for name in left)


READ = [(case, out) for case in BAD for out in ("out.gguf", "out") if out != "out" or case not in COPIED]


@pytest.mark.parametrize(("case", "out"), READ)
def test_a_bad_folder_is_a_clear_error(case: str, out: str, tmp_path: Path) -> None:
    source = folders.write("llama", tmp_path / "source", shards=2)
    write_tokenizer(source)
    spoil, error, message = BAD[case]
    spoil(source)
    outcome(source, tmp_path / out, error, message)


def nan(weights: tiny.Weights) -> dict[str, Any]:
    bad = weights[UP].copy()
    bad[3, 5] = np.nan
    return weights | {UP: bad}


def without(weights: tiny.Weights) -> dict[str, Any]:
    return {name: array for name, array in weights.items() if name != UP}


def of_integers(weights: tiny.Weights) -> dict[str, Any]:
    return weights | {UP: np.zeros(weights[UP].shape, np.uint32)}


def turned(weights: tiny.Weights) -> dict[str, Any]:
    return weights | {UP: np.ascontiguousarray(weights[UP].T)}


WEIGHTS = {
    "NaN": (nan, r"up_proj\.weight', row 3, column 5: found NaN"),
    "a missing tensor": (without, f"tensor {UP} is missing"),
    "integers": (of_integers, r"up_proj\.weight holds codes, but .*up_proj\.scales is missing"),
    "another shape": (turned, r"up_proj\.weight: found shape \(96, 160\), expected \(160, 96\)"),
}


@pytest.mark.parametrize("out", ["out.gguf", "out"])
@pytest.mark.parametrize("case", WEIGHTS)
def test_bad_weights_are_a_clear_error(case: str, out: str, tmp_path: Path) -> None:
    arrays, message = WEIGHTS[case]
    source = folders.write("llama", tmp_path / "source", arrays=arrays)
    outcome(source, tmp_path / out, AkunuError, message)


@pytest.mark.parametrize("case", WEIGHTS)
def test_bad_weights_are_found_while_they_are_loaded(case: str, tmp_path: Path) -> None:
    source = folders.write("llama", tmp_path / "source", arrays=WEIGHTS[case][0])
    with pytest.raises(AkunuError, match=r"up_proj\.weight"):
        akunu.load(source, device="cpu", progress=False)


def test_a_folder_that_is_a_loop_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    outcome(
        tmp_path / "loop",
        tmp_path / "out.gguf",
        ModelFileError,
        "no model .*loop.*a link to loop, which leads to no file",
    )
