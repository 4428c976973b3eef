"""Presets: options under a name, in a TOML file each."""

from __future__ import annotations

import difflib
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from akunu.cli.files import own_file
from akunu.cli.values import Full

__all__ = ["preset_option"]

_COMMANDS: Final = ("run", "chat", "complete")
"""Commands that take presets. A preset may have options of all: a command takes those that it knows."""


def _folder() -> Path:
    return own_file("presets")


def _names() -> list[str]:
    return sorted(path.stem for path in _folder().glob("*.toml"))


class _PresetName(Full):
    """The name of a preset, or a file; Tab completes the names."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(name) for name in _names() if name.startswith(incomplete)]


def preset_option(function: Any) -> Any:
    """Add `--preset`, whose options are the defaults of those that are not given."""
    option = click.option(
        "-P", "--preset", is_eager=True, expose_value=False, callback=_use, metavar="NAME",
        type=_PresetName(),
        help="Take options from presets/NAME.toml in the configuration folder, or from a file: "
        'model = "qwen3:4b", system = "Be brief.", temperature = 0.2.',
    )  # fmt: skip
    return option(function)


def _use(context: click.Context, _option: click.Parameter, name: str | None) -> None:
    if name is None or context.resilient_parsing:
        return
    path = Path(name).expanduser()
    if path.suffix != ".toml":
        path = _folder() / f"{name}.toml"
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        others = f"; there is {', '.join(_names())}" if _names() else ""
        raise click.BadParameter(
            f"no preset {name!r}: write its options, such as temperature = 0.2, to {path}{others}"
        ) from error
    except OSError as error:
        raise click.BadParameter(f"{path}: {error.strerror}") from error
    except ValueError as error:  # of TOML, or bytes that are no text
        raise click.BadParameter(f"{path}: {error}") from error
    options = {name.replace("-", "_"): value for name, value in values.items()}
    known = _known()
    for name in options:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            meant = f"; did you mean {close[0]}?" if close else f"; options are {', '.join(sorted(known))}"
            raise click.BadParameter(f"{path}: no option {name!r}{meant}")
    context.default_map = {**(context.default_map or {}), **options}


def _known() -> set[str]:
    commands = [import_module(f"akunu.cli.commands.{name}").command for name in _COMMANDS]
    return {
        option.name
        for command in commands
        for option in command.params
        if isinstance(option, click.Option) and option.expose_value and option.name is not None
    }
