"""The comparison of perplexities: where its large file goes."""

from __future__ import annotations

import json
from pathlib import Path

from akunu.cli.bench.gguf_file import write_gguf
from akunu.loading.synthetic import SyntheticModel
from bench import quality


def test_the_f32_copy_goes_where_there_is_room(tmp_path, monkeypatch):
    model = tmp_path / "m.gguf"
    write_gguf(SyntheticModel("stories15m:q8_0"), model)
    text = tmp_path / "text"
    text.write_text("a text")
    folder = tmp_path / "room"
    folder.mkdir()
    measured: list[Path] = []
    monkeypatch.setattr(quality, "perplexity", lambda path, *_: measured.append(path) or 2.0 * len(measured))
    report = tmp_path / "r.json"
    options = ["--text", str(text), "--folder", str(folder), "--json", str(report)]
    assert quality.run_command(quality.command, "quality.py", [str(model), *options]) == 0
    assert measured[0] == model
    assert measured[1].parent.parent == folder
    assert not list(folder.iterdir())
    assert json.loads(report.read_text()) == {"m.gguf": {"akunu": 2.0, "f32": 4.0}}
