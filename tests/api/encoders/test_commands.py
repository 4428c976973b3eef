"""`akunu embed` and `akunu rerank`."""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from akunu import _core
from akunu.cli.app import run
from akunu.cli.group import akunu

from . import gguf_file, tiny, wordpiece
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
    lines = [line for line in LINES if line]
    with opened(folder / "bert") as loaded, opened(folder / "bert", device="cpu") as on_cpu:
        expected, of_cpu = loaded.embed(lines), on_cpu.embed(lines)
    rows = command(capsysbinary, "embed", model, texts, "--device", "cpu").decode().splitlines()
    assert rows.pop(1) == "null"  # a blank line keeps its place
    np.testing.assert_allclose([json.loads(row) for row in rows], of_cpu, atol=1e-8)
    rows = command(capsysbinary, "embed", model, texts, "--format", "tsv").decode().splitlines()
    assert rows.pop(1) == ""
    np.testing.assert_allclose([[float(x) for x in row.split("\t")] for row in rows], expected, atol=1e-8)
    command(capsysbinary, "embed", model, texts, "--format", "npy", "-o", array)
    found = np.load(array)
    np.testing.assert_array_equal(found[[0, 2, 3]], expected)
    assert not found[1].any()
    short = ("--output-type", "int8", "--dimensions", "5", "--prompt", "query")
    rows = command(capsysbinary, "embed", model, texts, *short).decode().splitlines()
    assert rows.pop(1) == "null"
    assert [max(map(abs, json.loads(row))) for row in rows] == [127] * 3


def test_a_line_ends_where_a_file_s_lines_do(
    folder: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Not at other characters that Unicode calls line breaks."""
    texts = tmp_path / "texts.txt"
    texts.write_bytes("the cat\u2028sits\x0con\x85the mat\r\nhello world\n".encode())
    rows = command(capsysbinary, "embed", str(folder / "bert"), str(texts)).decode().splitlines()
    assert len(rows) == 2
    args = ("rerank", str(folder / "rank"), "what do cats eat", str(texts), "--json")
    found = [json.loads(row)["document"] for row in command(capsysbinary, *args).decode().strip().split("\n")]
    assert sorted(found) == ["hello world", "the cat\u2028sits\x0con\x85the mat"]


def test_blank_lines_count_and_an_error_says_which_line(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts, more = tmp_path / "texts.txt", tmp_path / "more.txt"
    texts.write_text("rome is a city\n\n  \ncats eat mice\n")
    more.write_text("\nhello world")
    args = ["rerank", str(folder / "rank"), "what do cats eat", str(texts), str(more), "--json"]
    assert run(akunu, "akunu", args) == 0
    found = [json.loads(row) for row in capsys.readouterr().out.splitlines()]
    assert {row["index"]: row["document"] for row in found} == {
        0: "rome is a city", 3: "cats eat mice", 5: "hello world",
    }  # fmt: skip
    more.write_text("x\n\n" + "the cat " * 100)
    for args in (["embed", str(folder / "bert")], ["rerank", str(folder / "rank"), "cats"]):
        assert run(akunu, "akunu", [*args, str(texts), str(more)]) == 1
        assert f"{more}, line 3: has " in capsys.readouterr().err


def test_a_check_is_refused_before_a_file_is_written(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, text = tmp_path / "out.gguf", str(folder / "texts.txt")
    args = ("convert", str(folder / "bert"), str(out), "--type", "q8_0", "--check", text)
    assert run(akunu, "akunu", args) == 1
    assert "makes vectors, and a text has no perplexity; convert without it" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


LONG = [pytest.param(name, marks=pytest.mark.long) for name in ("bert_rank", "modern", "nomic")]


@pytest.mark.parametrize("name", ["bert", "qwen3", *LONG])
def test_profile_times_a_step_of_texts(
    name: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = str(tiny.write_folder(tiny.golden(name), tmp_path))
    monkeypatch.setattr(_core, "measure_peaks", cache(_core.measure_peaks))  # seconds each time

    def profiled(rows: int, texts: int) -> dict[str, Any]:
        args = ("--rows", str(rows), "--texts", str(texts), "--repeats", "1", "--json", "--device", "cpu")
        found: dict[str, Any] = json.loads(command(capsysbinary, "profile", model, *args))
        assert (found["phase"], found["rows"], found["texts"]) == ("encode", rows, texts)
        assert all(one["seconds"] > 0 for one in found["commands"])
        return {one["label"]: one for one in found["commands"]}

    one, many = profiled(12, 1), profiled(12, 7)
    assert all(many[label]["flops"] == 7 * one[label]["flops"] for label in one)
    attention = [profiled(rows, 1)["layers.0.attention"]["flops"] for rows in (1, 12)]
    causal = name == "qwen3"
    assert attention[1] / attention[0] == (12 * 13 / 2 if causal else 12 * 12)
    out = command(capsysbinary, "inspect", model, "--plan", "--rows", "12", "--texts", "7")
    assert b"encode, 7 texts of 12 tokens" in out
    out = command(
        capsysbinary, "inspect", model, "--plan", "--rows", "12", "--texts", "128", "--chip", "H100"
    )
    assert b"encode, 128 texts of 12 tokens" in out


def test_a_window_s_operations_are_those_of_its_keys(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    model = tiny.write_folder(tiny.golden("modern"), tmp_path)
    args = ("inspect", str(model), "--plan", "--rows", "40", "--json")
    found = json.loads(command(capsysbinary, *args))
    flops = {one["label"]: one["flops"] for one in found["plan"] if one["label"].endswith(".attention")}
    per_pair = flops["layers.0.attention"] / 40**2
    for layer, window in enumerate(found["config"]["attention.window"]):
        seen = sum(abs(i - j) < window or not window for i in range(40) for j in range(40))
        assert flops[f"layers.{layer}.attention"] == seen * per_pair


@pytest.mark.parametrize(("dtype", "kv"), [("F32", "f32"), ("F16", "f16"), ("Q8_0", "f16")])
def test_a_gpu_s_keys_are_f16_where_what_is_made_of_them_is(
    dtype: str, kv: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """There inputs of matmuls are F16, but for F32 weights; on the CPU none are."""
    model = str(gguf_file.write(tiny.golden("bert"), tmp_path / "model.gguf", dtype=dtype))
    for chip, expected in (
        (("--chip", "H100"), kv),
        (("--chip", "M4 Max"), kv),
        (("--device", "cpu"), "f32"),
    ):
        found = json.loads(command(capsysbinary, "inspect", model, "--plan", *chip, "--json"))
        types = {
            one["dtype"] for one in found["plan"] if one["label"].endswith((".attention", ".prepare_heads"))
        }
        assert types == {expected}, chip


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--phase", "decode"), "bert makes vectors, and has encode"),
        (("--rows", "100000"), "bert was trained for"),
        (("--rows", "8", "-c", "4"), "--rows 8 need --context 8"),
        (("--rows", "2", "--texts", "200"), "a step takes 1..128 texts of 2 tokens, not 200"),
        (("--position", "1"), "--position has no effect"),
        (("--kv-dtype", "f32"), "a model that makes vectors has none"),
    ],
)
def test_a_table_that_an_encoder_has_not_is_refused(
    args: tuple[str, ...], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(akunu, "akunu", ("profile", str(folder / "bert"), *args)) == 2
    assert message in capsys.readouterr().err


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


@pytest.mark.parametrize("more", [(), ("--chat-template", "chatml")])
@pytest.mark.parametrize("asked", [("run", "hi"), ("chat",)])
def test_a_model_that_makes_vectors_does_not_chat(
    asked: tuple[str, ...],
    more: tuple[str, ...],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert run(akunu, "akunu", (*asked, "-m", str(folder / "bert"), *more)) == 1
    assert "makes vectors and writes no text: use embed or rerank" in capsys.readouterr().err
