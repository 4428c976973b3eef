"""`akunu doctor` and `akunu tokenize`."""

from __future__ import annotations

import json

import pytest

import akunu
from akunu import _core
from akunu.loading.finding import find_model


def test_the_report_names_what_is_here_and_what_is_missing(akunu_cli):
    ran = akunu_cli("doctor")
    assert ran.status == 0, ran.out
    assert f"{akunu.__version__}, Python " in ran.out
    for device in _core.devices():
        assert f"device {device['id']}" in ran.out
    found = json.loads(akunu_cli("doctor", "--json").out)
    assert {row["state"] for row in found} <= {"ok", "note", "problem"}
    whats = {row["what"] for row in found}
    assert {"akunu", "memory", "model cache", "akunu[vad]", "ffmpeg", *_core.missing_devices()} <= whats


def test_a_cache_that_cannot_be_written_is_a_problem(akunu_cli, monkeypatch, tmp_path):
    import os

    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    ran = akunu_cli("doctor")
    assert ran.status == 1
    assert "problem" in ran.out
    assert "cannot be written; set HF_HOME" in ran.out


def test_what_is_not_installed_comes_with_its_remedy(akunu_cli, monkeypatch):
    from akunu.cli.commands import doctor

    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    out = akunu_cli("doctor").out
    assert "serve --ray: pip install 'akunu[ray]'" in out
    assert "is not installed; it reads video and M4A files" in out


def test_tokens_of_a_text(akunu_cli):
    tokenizer = akunu.Tokenizer.from_gguf(find_model("ember"))
    text = "Once upon\na time <|im_end|>"
    plain = tokenizer.encode(text)
    special = tokenizer.encode(text, add_special=False, parse_special=True)
    assert json.loads(akunu_cli("tokenize", "ember", text, "--json").out) == plain
    assert akunu_cli("tokenize", "ember", text, "--count").out == f"{len(plain)}\n"
    options = ("--no-special", "--parse-special", "--json")
    assert json.loads(akunu_cli("tokenize", "ember", text, *options).out) == special
    rows = akunu_cli("tokenize", "ember", text).out.splitlines()
    assert rows[0].split() == ["id", "text"]
    assert len(rows) == 1 + len(plain)
    assert "\\n" in akunu_cli("tokenize", "ember", "a\nb").out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["ember-speech", "x"], "ember-speech.bin is a speech model"),
        (["Once upon a time"], "no text; give a model and a text, as in akunu tokenize ember"),
        (["ember", "x", "--count", "--json"], "--count prints a number alone"),
    ],
)
def test_what_cannot_be_is_refused(args, message, akunu_cli):
    ran = akunu_cli("tokenize", *args)
    assert ran.status in (1, 2)
    assert message in ran.err
