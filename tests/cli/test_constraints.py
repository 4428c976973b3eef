"""Options of `akunu run` and `akunu complete` that constrain the output."""

from __future__ import annotations

import pytest

SCHEMA = '{"type": "object"}'


@pytest.mark.parametrize("command", ["complete", "run"])
@pytest.mark.parametrize(
    "given, argument",
    [
        (["--json-object"], {"json": True}),
        (["--regex", "a+"], {"regex": "a+"}),
        (["--choice", "yes", "--choice", "no"], {"choice": ("yes", "no")}),
        (["--schema", "schema.json"], {"schema": SCHEMA}),
        (["--grammar", "list.gbnf"], {"grammar": 'root ::= "é"'}),
    ],
)
def test_each_reaches_the_model(command, given, argument, akunu_cli, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.json").write_text(SCHEMA)
    (tmp_path / "list.gbnf").write_text('root ::= "é"', encoding="utf-8")
    assert akunu_cli(command, "x", *given).status == 0
    options = dict(model.options[0])
    options.pop("template_variables", None)
    assert options == argument


@pytest.mark.parametrize(
    "given, message",
    [
        (["--json-object", "--regex", "a"], "--json-object and --regex exclude each other"),
        (["--schema", "missing.json"], "missing.json"),
        (["--schema", "broken.json"], "schema: the text is not JSON"),
        (["--grammar", "empty.gbnf"], "grammar: expected a text that is not empty"),
    ],
)
def test_a_mistake_is_known_before_a_model_is_loaded(given, message, akunu_cli, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "empty.gbnf").touch()
    ran = akunu_cli("complete", "x", *given)
    assert ran.status != 0 and message in ran.err
    assert not model.loaded
