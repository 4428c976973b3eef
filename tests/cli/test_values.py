"""Values on the command line that are none: refused by name, before anything is loaded."""

from __future__ import annotations

import math

import click
import pytest

from akunu.cli.bench import command as bench
from akunu.cli.group import COMMANDS
from akunu.cli.group import akunu as group
from akunu.cli.values import Integer, Number, PathName, as_integer, as_number

NOT_NUMBERS = ("", "nan", "inf", "-inf", "1e999", "1,000", "1_000", "٣", "0x10", "many", "9" * 5000)


def options(kind: type | tuple[type, ...]) -> list[tuple[str, click.Parameter]]:
    """Every parameter of such a type, with its command's name."""
    commands = [(name, group.get_command(click.Context(group), name)) for name in COMMANDS]
    return [
        (name, param)
        for name, command in commands
        if command is not None
        for param in command.params
        if isinstance(param.type, kind)
    ]


def test_every_number_has_one_kind_of_error():
    clicks_own = (click.types.IntParamType, click.types.FloatParamType)
    numbers = [*options(clicks_own), *(("akunu-bench", option) for option in bench.command.params)]
    for name, option in numbers:
        if isinstance(option.type, clicks_own):
            assert isinstance(option.type, Integer | Number), (name, option.name)
    assert len(numbers) > 60


@pytest.mark.parametrize("value", NOT_NUMBERS)
def test_what_is_no_number_is_refused_by_every_option(value, akunu_cli, model):
    for name, option in options((Integer, Number)):
        if isinstance(option.type, Number) and value == "9" * 5000:
            continue  # infinite: as 1e999
        ran = akunu_cli(name, f"{option.opts[-1]}={value}")
        assert ran.status == 2, (name, option.opts)
        assert ran.err.startswith(f"akunu: error: {option.opts[-1]}: found {value!r}, expected a"), ran.err
        assert ran.err.count("\n") == 1
    assert model.loaded == []


def test_0_and_minus_1_leave_context_and_threads_open(akunu_cli, model):
    for option, value in (("--context", "0"), ("--threads", "0"), ("--threads", "-1"), ("--threads", "3")):
        assert akunu_cli("complete", "x", option, value).status == 0
    found = [(options["context"], options["threads"]) for _, options in model.loaded]
    assert found == [(None, None)] * 3 + [(None, 3)]


def test_an_error_names_the_range(akunu_cli):
    for text, error in (("-1", "-c: found '-1', expected an integer in the range x>=0 ("),):
        assert error in akunu_cli("complete", "x", "-c", text).err
    assert "--port: found '65536', expected an integer in the range 0<=x<=65535 (" in (
        akunu_cli("serve", "--port", "65536").err
    )
    assert "--cache-size: found '0', expected a number in the range 0<x<=4294967296 (" in (
        akunu_cli("complete", "x", "--cache-size", "0").err
    )


@pytest.mark.parametrize("text", ["12", " 12", "+12", "12\n", "012"])
def test_integers(text):
    assert as_integer(text) == 12


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1.0), ("-1.5", -1.5), (".5", 0.5), ("5.", 5.0), ("1e-3 ", 0.001), ("+2E2", 200.0)],
)
def test_numbers(text, number):
    assert as_number(text) == number


@pytest.mark.parametrize("bias", ["7=nan", "7=inf", "1_0=1", "٣=1", "7=1_0", "7="])
def test_a_bias_is_a_plain_number(bias, akunu_cli):
    assert (
        f"--logit-bias: found {bias!r}, expected ID=X" in akunu_cli("complete", "x", "--logit-bias", bias).err
    )


def test_a_bias_may_forbid(akunu_cli, model):
    assert akunu_cli("complete", "x", "--logit-bias", "7=-inf").status == 0
    assert model.options[-1]["logit_bias"] == {7: -math.inf}


def test_an_empty_path_is_not_the_folder_we_are_in(akunu_cli, model):
    paths = options(PathName)
    assert len(paths) > 10
    for name, param in paths:
        if isinstance(param, click.Option):
            ran = akunu_cli(name, f"{param.opts[-1]}=")
            assert (ran.status, ran.out) == (2, ""), (name, param.opts)
            assert ran.err.startswith(f"akunu: error: {param.opts[-1]}: it is empty ("), ran.err
    assert model.loaded == []


@pytest.mark.parametrize(
    ("args", "subject"),
    [
        (("run", "x", ""), "FILE"),
        (("transcribe", ""), "FILE"),
        (("convert", "ember", "", "--type", "q8_0"), "OUT"),
        (("serve", "--host", ""), "--host"),  # it would be every address of the machine
        (("chat", "--chat-template", ""), "--chat-template"),
    ],
)
def test_an_empty_name_is_refused(args, subject, akunu_cli, model):
    ran = akunu_cli(*args)
    assert ran.status == 2
    assert ran.err.startswith(f"akunu: error: {subject}: it is empty (")
    assert model.loaded == []


def test_the_size_of_a_cache_needs_a_cache(akunu_cli, model):
    for name in ("complete", "serve"):
        ran = akunu_cli(name, *["x"][: name == "complete"], "--cache-size", "4")
        assert ran.status == 2
        assert "--cache-size has no effect without --cache-dir" in ran.err
    assert model.loaded == []


@pytest.mark.parametrize(
    ("replicas", "message"),
    [
        ("2", "--replicas has no effect without --ray"),
        ("0", "--replicas: found '0', expected a number"),
        ("3-2", "--replicas: found '3-2', expected a number"),
        ("1_0", "--replicas: found '1_0', expected a number"),
    ],
)
def test_replicas_need_a_cluster_and_plain_numbers(replicas, message, akunu_cli, model):
    ran = akunu_cli("serve", "--replicas", replicas)
    assert (ran.status, model.loaded) == (2, [])
    assert message in ran.err


@pytest.mark.parametrize("origin", ["", "example.org", "https://example.org/", "https://example.org/page"])
def test_what_no_browser_says_is_no_origin(origin, akunu_cli):
    ran = akunu_cli("serve", "--cors-origin", origin)
    assert ran.status == 2
    assert f"--cors-origin: found {origin!r}, expected * or an origin" in ran.err


def test_an_error_of_a_model_names_the_option(akunu_cli, monkeypatch):
    import akunu
    from akunu.loading.load import load

    monkeypatch.setattr(akunu, "load", load)
    assert akunu_cli("complete", "x", "-m", "").err.startswith(
        "akunu: error: -m: expected the name of a model"
    )
    assert akunu_cli("complete", "x", "--draft", "").err.startswith(
        "akunu: error: --draft: expected the name"
    )
    assert akunu_cli("inspect", "").err.startswith("akunu: error: MODEL: expected the name of a model")


def test_a_setting_that_a_model_does_not_have_names_the_option(akunu_cli, monkeypatch, tmp_path):
    import akunu
    from akunu.loading.load import load

    monkeypatch.setattr(akunu, "load", load)
    ran = akunu_cli("complete", "x", "-m", "ember-speech", "-c", "9")
    assert (ran.status, ran.err[:40]) == (1, "akunu: error: -c: ember-speech.bin trans")
    (tmp_path / "context").write_text("no model")  # it begins the message, and is no option
    monkeypatch.chdir(tmp_path)
    assert akunu_cli("complete", "x", "-m", "context").err.startswith("akunu: error: context: is not a GGUF")
