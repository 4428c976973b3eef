"""`akunu embed` and `akunu rerank`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from akunu.cli.app import run
from akunu.cli.group import akunu

from . import wordpiece
from .test_reference import opened

LINES = ["The cat sits on the mat.", "", "hello world", "rome is a city"]


def command(capsysbinary: pytest.CaptureFixture[bytes], *args: str) -> bytes:
    assert run(akunu, "akunu", args) == 0
    return capsysbinary.readouterr().out


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("commands")
    wordpiece.write_model("bert", folder / "bert")
    wordpiece.write_model("bert_rank", folder / "rank")
    (folder / "texts.txt").write_text("\n".join(LINES))
    return folder


def test_embed_writes_a_vector_for_each_line(
    folder: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    model, texts, array = str(folder / "bert"), str(folder / "texts.txt"), str(folder / "out.npy")
    with opened(folder / "bert") as loaded:
        expected = loaded.embed([line for line in LINES if line])
    rows = command(capsysbinary, "embed", model, texts).decode().splitlines()
    np.testing.assert_allclose([json.loads(row) for row in rows], expected, atol=1e-8)
    rows = command(capsysbinary, "embed", model, texts, "--format", "tsv").decode().splitlines()
    np.testing.assert_allclose([[float(x) for x in row.split("\t")] for row in rows], expected, atol=1e-8)
    command(capsysbinary, "embed", model, texts, "--format", "npy", "-o", array)
    np.testing.assert_array_equal(np.load(array), expected)
    short = ("--output-type", "int8", "--dimensions", "5", "--prompt", "query")
    rows = command(capsysbinary, "embed", model, texts, *short).decode().splitlines()
    assert [max(map(abs, json.loads(row))) for row in rows] == [127] * 3


def test_a_check_is_refused_before_a_file_is_written(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, text = tmp_path / "out.gguf", str(folder / "texts.txt")
    args = ("convert", str(folder / "bert"), str(out), "--type", "q8_0", "--check", text)
    assert run(akunu, "akunu", args) == 1
    assert "makes vectors, and a text has no perplexity; convert without it" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_rerank_sorts_the_lines(folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    args = ("rerank", str(folder / "rank"), "what do cats eat", str(folder / "texts.txt"))
    with opened(folder / "rank") as loaded:
        scores = loaded.rerank("what do cats eat", [line for line in LINES if line])
    rows = [line.split("\t") for line in command(capsysbinary, *args).decode().splitlines()]
    assert [float(score) for score, _ in rows] == pytest.approx(sorted(scores, reverse=True), abs=1e-6)
    assert sorted(text for _, text in rows) == sorted(line for line in LINES if line)
    best = json.loads(command(capsysbinary, *args, "--top", "1", "--json"))
    assert best["score"] == max(scores)
    assert best["document"] == rows[0][1]
