"""`akunu imatrix`, and `akunu convert --imatrix`."""

from __future__ import annotations

import akunu
from akunu import ImportanceMatrix, _core
from akunu.loading.load import load


def test_a_matrix_is_measured_and_used(akunu_cli, tmp_path, monkeypatch):
    monkeypatch.setattr(akunu, "load", load)
    text = tmp_path / "fox.txt"
    text.write_text("Once upon a time there was a little fox. The fox looked for a friend. " * 20)
    path = tmp_path / "m.gguf"
    ran = akunu_cli("imatrix", "ember", str(text), str(path))
    assert (ran.status, ran.out) == (0, "")
    assert "m.gguf: 56 matrices, " in ran.err
    assert len(ImportanceMatrix.read(path).means) == 56
    for given in (path, text):
        out = tmp_path / f"{given.stem}-out.gguf"
        assert akunu_cli("convert", "ember", str(out), "--type", "q4_0", "--imatrix", str(given)).status == 0
        assert _core.GgufFile(str(out)).metadata["quantize.imatrix.dataset"] == "fox.txt"


def test_conversations_may_have_their_special_tokens(akunu_cli, tmp_path, monkeypatch):
    monkeypatch.setattr(akunu, "load", load)
    text = tmp_path / "chats.txt"
    text.write_text("<|im_start|>user\nHello!<|im_end|>\n" * 5)
    with akunu.load("ember", device="cpu", progress=False) as model:
        ids = [model.tokenize(text.read_text(), add_special=False, parse_special=p) for p in (False, True)]
    assert len(ids[1]) < len(ids[0])
    for flags, found in (((), ids[0]), (("--parse-special",), ids[1])):
        path = tmp_path / "m.gguf"
        assert akunu_cli("imatrix", "ember", str(text), str(path), *flags).status == 0
        assert set(ImportanceMatrix.read(path).tokens.values()) == {len(found)}


def test_wrong_files_are_named(akunu_cli, tmp_path):
    ran = akunu_cli("imatrix", "ember", "none.txt", str(tmp_path / "m.gguf"))
    assert ran.status == 1
    assert "none.txt" in ran.err
    (tmp_path / "x").write_bytes(b"caf\xe9")
    ran = akunu_cli(
        "convert", "ember", str(tmp_path / "o.gguf"), "--type", "q4_0", "--imatrix", str(tmp_path / "x")
    )
    assert ran.status != 0
    assert "neither UTF-8 text nor an importance matrix" in ran.err
