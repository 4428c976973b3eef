"""Help and usage: quick, complete, and without loading what only a run needs."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from akunu.cli.group import COMMANDS
from akunu.cli.group import akunu as group

HEAVY = (
    "numpy",
    "rich",
    "jinja2",
    "tokenizers",
    "huggingface_hub",
    "gguf",
    "akunu._core",
    "akunu.api.model",
    "akunu.cli.bench",
    "akunu.server",
    "msgspec",
    "starlette",
    "uvicorn",
)


def imported(statement: str) -> set[str]:
    quiet = f"import sys, contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()):\n    {statement}"
    code = f"{quiet}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


def test_help_loads_nothing_heavy():
    modules = imported("from akunu.cli import main; main(['--help'])")
    assert modules.isdisjoint(HEAVY)
    assert not {f"akunu.cli.commands.{name}" for name in COMMANDS} & modules


def test_help_of_a_command_loads_only_that_command():
    modules = imported("from akunu.cli import main; main(['complete', '--help'])")
    assert "akunu.cli.commands.complete" in modules
    assert modules.isdisjoint(
        {"akunu.cli.commands.chat", "akunu.cli.commands.inspect", "numpy", "akunu._core", "akunu.api.model"}
    )


def test_help_of_akunu_bench_loads_no_engine():
    modules = imported("from akunu.cli.bench import main; main(['--help'])")
    assert modules.isdisjoint({"numpy", "akunu._core", "akunu.api.model", "rich", "gguf"})


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_and_help_for_each_option(name, akunu_cli):
    ran = akunu_cli(name, "--help")
    assert ran.status == 0
    assert "Examples:\n    akunu " in ran.out or "Examples:\n    printf" in ran.out
    command = group.get_command(click.Context(group), name)
    assert command is not None
    assert all(option.help for option in command.params if isinstance(option, click.Option))


@pytest.mark.parametrize("name", ["run", "chat", "complete"])
def test_help_of_a_command_with_many_options_fits_a_screen(name, akunu_cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    short, whole = akunu_cli(name, "--help"), akunu_cli(name, "--help-all")
    assert short.status == whole.status == 0
    assert len(short.out.splitlines()) <= 45 < len(whole.out.splitlines())
    assert "--help-all" in short.out
    command = group.get_command(click.Context(group), name)
    assert command is not None
    options = [option for option in command.params if isinstance(option, click.Option)]
    assert all(option.opts[-1] in whole.out for option in options)
    assert "--typical-p" not in short.out


@pytest.mark.parametrize("name", COMMANDS)
def test_summaries_match_the_commands(name):
    command = group.get_command(click.Context(group), name)
    assert command is not None
    assert command.name == name


def test_help_lists_the_commands_and_names_the_default_model(akunu_cli):
    ran = akunu_cli("--help")
    assert ran.status == 0
    assert all(f"  {name} " in ran.out for name in COMMANDS)
    assert "ember" in ran.out


def test_help_is_a_word_too(akunu_cli):
    for words, as_option in (["help"], ["--help"]), (["help", "run"], ["run", "--help"]):
        assert akunu_cli(*words) == akunu_cli(*as_option)


def test_version(akunu_cli):
    import akunu

    assert akunu_cli("--version").out == f"akunu {akunu.__version__}\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nonsense"], "no command 'nonsense'; there is run, "),
        (["complete"], "missing argument 'TEXT'"),
        (["perplexity", "-m", "x.gguf"], "no option -m; MODEL is an argument: akunu perplexity MODEL ("),
        (["embed", "--model", "x", "-"], "no option --model; MODEL is an argument: akunu embed MODEL ("),
        (
            ["complete", "x", "--top-k", "many"],
            "error: --top-k: found 'many', expected an integer (\"akunu complete --",
        ),
        (["complete", "x", "--nonsense"], "no option --nonsense"),
        (["complete", "x", "--tempp", "1"], "no option --tempp; did you mean --temp"),
        (["cmplete", "x"], "no command 'cmplete'; did you mean complete?"),
        (["Chat"], "did you mean chat?"),
        (["ls"], "did you mean list?"),
        (["generate"], "did you mean complete?"),
        (["complete", "x", "--logit-bias", "7"], "--logit-bias: found '7', expected ID=X"),
        (["complete", "x", "--logit-bias", "7=nan"], "expected ID=X"),
        (["complete", "x", "--json", "--stats"], "--json"),
        (["inspect", "x", "--rows", "3"], "--rows has no effect without --plan"),
    ],
)
def test_wrong_usage_has_status_2_and_explains(args, message, akunu_cli):
    ran = akunu_cli(*args)
    assert ran.status == 2
    assert message in ran.err
    assert "Traceback" not in ran.err
    assert ran.out == ""
    assert ran.err.startswith("akunu: error: ")
    assert ran.err.count("\n") == 1


def test_a_group_without_arguments_shows_its_help_as_it_is(akunu_cli):
    ran = akunu_cli()
    assert ran.status in (0, 2)  # as click has it: 2 since 8.2
    assert ran.out + ran.err == akunu_cli("--help").out


def test_the_bound_of_parallel_is_the_engines() -> None:
    """`--help` does not load the core."""
    from akunu._core import MAX_PARALLEL
    from akunu.cli.commands.serve import command

    option = next(option for option in command.params if option.name == "parallel")
    assert option.type.max == MAX_PARALLEL
