"""The ember tools refuse what would write wrong files or figures."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from akunu.cli.bench.gguf_file import write_gguf
from akunu.loading.synthetic import SyntheticModel
from tools.ember import evaluate, export


def test_only_an_ember_file_is_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, out = tmp_path / "other.gguf", tmp_path / "out.gguf"
    write_gguf(SyntheticModel("stories15m:q8_0"), other)
    monkeypatch.setattr(sys, "argv", ["export.py", "--from", str(other), "--out", str(out)])
    with pytest.raises(
        SystemExit, match=r"other\.gguf is not an ember file: tensor blk\.0\.attn_k\.weight is"
    ):
        export.main()
    assert not out.exists()


@pytest.mark.parametrize("data", [b"", b"not GGUF at all, but text"])
def test_what_is_no_gguf_is_one_line(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(data)
    with pytest.raises(SystemExit, match=r"x\.gguf cannot be read as GGUF"):
        export.read_gguf(tmp_path / "x.gguf")


def test_the_shapes_are_those_of_the_shipped_file(ember_path: Path) -> None:
    assert {name: t.shape for name, t in export.read_gguf(ember_path).items()} == export.shapes(
        export.Config()
    )


@pytest.mark.parametrize("args", [["--share", "0.1"], ["--model", "MODEL"], ["--torch", "build/ember"]])
def test_only_the_shipped_file_on_every_prompt_is_written_to_the_card(
    args: list[str], ember_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ember.gguf").write_bytes(ember_path.read_bytes())
    given = [str(tmp_path / "ember.gguf") if arg == "MODEL" else arg for arg in args]
    monkeypatch.setattr(sys, "argv", ["evaluate.py", "--write-card", *given])
    monkeypatch.setattr(evaluate, "evaluate", lambda *_args: pytest.fail("it runs"))
    with pytest.raises(SystemExit) as stopped:
        evaluate.main()
    assert stopped.value.code == 2


def test_the_card_is_written_from_the_shipped_file(
    ember_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = tmp_path / "ember.md"
    card.write_text("before\n<!-- figures -->\nold\n<!-- end of figures -->\nafter\n")
    monkeypatch.setattr(evaluate, "CARD", card)
    report = {"facts": {"prompts": 4, "right": 3, "faults": []}}
    monkeypatch.setattr(evaluate, "evaluate", lambda *_args: report)
    monkeypatch.setattr(sys, "argv", ["evaluate.py", "--write-card", "--model", str(ember_path)])
    evaluate.main()
    assert "| facts | 75.0 % | 4 |" in card.read_text()
    assert "old" not in card.read_text()
