"""Models that make vectors of texts, on the emulated GPU: the bounds of tests/api/encoders."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

CODE = """
import tempfile
from pathlib import Path
from api.encoders import gguf_file, tiny
from api.encoders.test_reference import nmse, opened, vectors

n = {n}
golden, folder = tiny.golden("{name}"), Path(tempfile.mkdtemp())
for path, bound in ({models}):
    with opened(path, device="cuda") as model:
        found = vectors(model, golden.texts[:n], golden.second[:n])
        error = nmse(found, golden.vectors[:n])
        print(model.device, error < bound or error)
"""


def check(run: Run, name: str, models: str, n: int | None = None) -> None:
    """Of the first `n` texts."""
    done = run(CODE.replace("{name}", name).replace("{models}", models).replace("{n}", str(n)))
    assert done.stdout == "Emulated GPU True\n", done.stderr or done.stdout


def test_a_folder_s_vectors_are_transformers(run: Run) -> None:
    check(run, "roberta", "(tiny.write_folder(golden, folder), 1e-9),", 2)


@pytest.mark.parametrize("name", ["mpnet", "deberta"])
def test_vectors_by_distances_are_transformers(run: Run, name: str) -> None:
    check(run, name, "(tiny.write_folder(golden, folder), 1e-9),", 3)


def test_f16_weights_are_near(run: Run) -> None:
    """Inputs of their matmuls are F16, too."""
    check(run, "bert", "(gguf_file.write(golden, folder / 'model.gguf', dtype='F16'), 1e-5),", 2)


@pytest.mark.long
@pytest.mark.in_turn
@pytest.mark.parametrize(
    "name",
    [
        "bert",
        "bert_cls",
        "bert_rank",
        "gemma",
        "gemma_plain",
        "modern",
        "modern_rank",
        "nomic",
        "qwen3",
        "qwen3_rank",
        "roberta",
        "roberta_rank",
    ],
)
def test_vectors_of_every_kind_are_transformers(run: Run, name: str) -> None:
    check(run, name, "(tiny.write_folder(golden, folder), 1e-9),")
