"""`akunu convert`."""

from __future__ import annotations

import math

from akunu import _core


def test_a_model_is_converted_and_checked(akunu_cli, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("Once upon a time there was a little fox. The fox looked for a friend.")
    out = tmp_path / "out.gguf"
    ran = akunu_cli("convert", "ember", str(out), "--type", "Q4_K_M", "--check", str(text))
    assert ran.status == 0
    header, before, after = [line.split() for line in ran.out.splitlines()]
    assert header == ["model", "perplexity"]
    assert (before[0], after[0]) == ("ember", "out.gguf")
    assert all(1 < float(line[1]) < math.inf for line in (before, after))
    assert "/s]" in ran.err
    assert _core.GgufFile(str(out)).metadata["general.file_type"] == 15


def test_wrong_options_are_named_as_they_were_typed(akunu_cli, tmp_path):
    out = tmp_path / "out.gguf"
    ran = akunu_cli("convert", "ember", str(out), "--type", "q4")
    assert (ran.status, ran.out) == (2, "")
    assert "--type: 'q4' is not one of" in ran.err
    assert akunu_cli("convert", "ember", str(out)).status == 2
    out.write_bytes(b"mine")
    ran = akunu_cli("convert", "ember", str(out), "--type", "q4_0")
    assert ran.status == 2
    assert "exists" in ran.err
    assert out.read_bytes() == b"mine"


def test_an_empty_text_is_refused_before_anything_is_converted(akunu_cli, tmp_path):
    text, out = tmp_path / "empty.txt", tmp_path / "out.gguf"
    text.touch()
    ran = akunu_cli("convert", "ember", str(out), "--type", "q4_0", "--check", str(text))
    assert ran.status == 2 and ran.err == f"akunu: error: --check: {text} is empty\n"
    assert not out.exists()


def test_quantize_is_convert(akunu_cli):
    assert "did you mean convert?" in akunu_cli("quantize").err
