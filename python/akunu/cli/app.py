"""Run a click command the way all of Akunu's commands behave: errors in one line, known exit statuses.

Exit statuses: 0 done, 1 an error, 2 wrong usage (an argument out of range is one), 130 interrupted by Ctrl-C.
An error that is about an option names it as it was typed. With AKUNU_DEBUG=1 in the environment an error
shows its traceback.
"""

from __future__ import annotations

import difflib
import inspect
import io
import os
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import click

from akunu.base.errors import AkunuError, InvalidArgumentError
from akunu.cli.console import colour, os_error_text, visible

__all__ = [
    "CONTEXT_SETTINGS",
    "DEBUG_VARIABLE",
    "Command",
    "Group",
    "LazyVersion",
    "print_error",
    "run",
    "typed_name",
    "typed_words",
    "usage_text",
]

CONTEXT_SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
"""Settings of every command."""

DEBUG_VARIABLE = "AKUNU_DEBUG"

_NO_ARGUMENTS: type[click.UsageError] | tuple[()] = getattr(click.exceptions, "NoArgsIsHelpError", ())
"""A group without arguments: its help. Before click 8.2 that was no error."""


def run(command: click.Command, prog: str, args: Sequence[str] | None = None) -> int:
    """Run `command` and turn what it raises into a line on standard error and an exit status.

    Parameters
    ----------
    command
        What to run.
    prog
        The program's name, in usage and error lines.
    args
        The arguments; None: those of the process.
    """
    debug = os.environ.get(DEBUG_VARIABLE, "") not in ("", "0")
    _prepare_streams()
    words = sys.argv[1:] if args is None else list(args)
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_args, **_kwargs: print_error(prog, "warning", message)
        try:
            _check_text(words)
            # Not standalone: click returns the status of --help, and lets everything else through.
            status = command.main(args=words, prog_name=prog, standalone_mode=False)
            sys.stdout.flush()
            return status if isinstance(status, int) else 0
        except _NO_ARGUMENTS as error:
            click.echo(error.format_message(), err=True)
            return 2
        except click.UsageError as error:
            print_error(prog, "error", usage_text(error))
            return 2
        except click.Abort:
            print_error(prog, "", "interrupted")
            return 130
        except BrokenPipeError:
            _silence_stdout()
            return 1
        except (AkunuError, click.ClickException, OSError) as error:
            if debug:
                raise
            print_error(prog, "error", _text(error))
            return 2 if isinstance(error, InvalidArgumentError) else 1
        except MemoryError:
            if debug:
                raise
            print_error(
                prog, "error", "out of memory; a smaller context or a more quantised model needs less"
            )
            return 1
        except Exception as error:
            if isinstance(error.__cause__, KeyboardInterrupt):  # of a compiled module that was being imported
                print_error(prog, "", "interrupted")
                return 130
            if debug:
                raise
            print_error(
                prog,
                "error",
                f"internal error: {type(error).__name__}: {error}; with {DEBUG_VARIABLE}=1 it shows where",
            )
            return 1


def _text(error: Exception) -> str:
    if isinstance(error, click.ClickException):
        return error.format_message()
    return os_error_text(error) if isinstance(error, OSError) else str(error)


def usage_text(error: click.UsageError) -> str:
    """Return what is wrong, and where the right usage is explained."""
    if isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter):
        hint, option = error.param_hint, error.param
        if hint is None and option is not None and error.ctx is not None:
            hint = typed_name(error.ctx, option)
        text = f"{hint}: {error.message}" if isinstance(hint, str) else error.message
    elif isinstance(error, click.NoSuchOption):
        meant = f"; did you mean {' or '.join(error.possibilities)}?" if error.possibilities else ""
        if error.option_name in ("-m", "--model") and error.ctx is not None:
            names = [option.human_readable_name for option in error.ctx.command.params]
            if "MODEL" in names:
                meant = f"; MODEL is an argument: {error.ctx.command_path} MODEL"
        text = f"no option {error.option_name}{meant}"
    else:
        text = error.format_message()
        text = text[:1].lower() + text[1:]
    text = text.strip().removesuffix(".")
    if error.ctx is None:
        return text
    return f'{text} ("{error.ctx.command_path} --help" shows the usage)'


_WORDS = "akunu.words"
_ALL = "akunu.help_all"
_NUMBER = re.compile(r"\[Errno -?\d+\] ")  # Python's own, in whatever text holds an error of the system
_CALLED = {"path": "model", "device": "devices", "json": "json_object", "sampling_rate": "rate"}
"""Arguments of the package's functions that commands may call otherwise."""


class Command(click.Command):
    """A command whose errors name an option as it was typed.

    The package's own errors begin with the name of an argument of its functions ("top_k: …"); where the
    command has an option of that name, that is what the message says ("--top-k: …").

    A command with many options gives the names of its `common` ones: `--help` then shows these, the first
    paragraph and the examples, and `--help-all` the rest.
    """

    def __init__(self, *args: Any, common: Sequence[str] = (), **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self._common = frozenset(common)
        if common:
            self.params.append(_help_all())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_WORDS] = tuple(args)
        return super().parse_args(ctx, args)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        whole = self.help
        if self._is_short(ctx) and whole is not None:
            paragraphs = inspect.cleandoc(whole).split("\n\n")
            self.help = "\n\n".join(p for p in paragraphs if p is paragraphs[0] or p.startswith("\b"))
        try:
            super().format_help_text(ctx, formatter)
        finally:
            self.help = whole

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not self._is_short(ctx):
            return super().format_options(ctx, formatter)
        shown = [
            option for option in self.get_params(ctx) if option.name in self._common | {"help", "help_all"}
        ]
        with formatter.section("Common options"):
            formatter.write_dl([record for option in shown if (record := option.get_help_record(ctx))])

    def _is_short(self, ctx: click.Context) -> bool:
        return bool(self._common) and _ALL not in ctx.meta

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except AkunuError as error:
            if error.argument is None:
                raise
            # Others may begin with the name of a file.
            known = self.params if isinstance(error, InvalidArgumentError) else _given(ctx, self.params)
            raise error.renamed(lambda name: _as_typed(ctx, name, known)) from error


def _help_all() -> click.Option:
    def show(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
        if wanted and not context.resilient_parsing:
            context.meta[_ALL] = True
            click.echo(context.get_help(), color=context.color)
            context.exit()

    return click.Option(
        ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=show,
        help="Show every option and exit.",
    )  # fmt: skip


def _given(context: click.Context, options: Sequence[click.Parameter]) -> list[click.Parameter]:
    source = context.get_parameter_source
    return [o for o in options if source(o.name or "") == click.core.ParameterSource.COMMANDLINE]


def _as_typed(context: click.Context, argument: str, options: Sequence[click.Parameter]) -> str:
    """The option that stands for an argument of the package's functions; the argument where none does."""
    for name in (argument, _CALLED.get(argument)):
        for option in options:
            if option.name == name:
                return typed_name(context, option)
    return argument


class Group(click.Group):
    """A group that guesses which subcommand was meant."""

    elsewhere: Mapping[str, str] = {}
    """The names that other programs have for a subcommand."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, known = args[0], self.list_commands(ctx)
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            close = difflib.get_close_matches(name.lower(), [*known, *self.elsewhere], n=1)
            meant = f"did you mean {self.elsewhere.get(close[0], close[0])}?" if close else ""
            raise click.UsageError(f"no command {name!r}; {meant or 'there is ' + ', '.join(known)}", ctx)
        return super().resolve_command(ctx, args)


def typed_words() -> tuple[str, ...]:
    """Return the words that followed the name of the command that runs."""
    words: tuple[str, ...] = click.get_current_context().meta.get(_WORDS, ())
    return words


def typed_name(context: click.Context, option: click.Parameter) -> str:
    """The name by which an option was given, such as "-n"; its longest one when it was not.

    An argument has the name that the usage shows, such as "MODEL".
    """
    if isinstance(option, click.Argument):
        return option.human_readable_name.strip("[].")
    for word in context.meta.get(_WORDS, ()):
        for name in (*option.opts, *option.secondary_opts):
            if word.partition("=")[0] == name:
                return name
            if len(name) == 2 and word.startswith(name) and not word.startswith("--"):
                return name
    return max(option.opts, key=len)


def _prepare_streams() -> None:
    """Give each standard stream what Akunu expects of it, whoever started the process."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # it was closed; it lives as long as the process
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdin, io.TextIOWrapper):  # what is no text is an error (`console.text_input`)
        sys.stdin.reconfigure(encoding=None if sys.stdin.isatty() else "utf-8", errors="strict")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a character that the terminal lacks must not end the run
            stream.reconfigure(errors="replace")


def _check_text(words: Sequence[str]) -> None:
    """Refuse an argument with bytes that are no text; Python turns each into a lone surrogate."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            encoding = sys.getfilesystemencoding().upper()
            raise click.UsageError(f"argument {word!r} is not {encoding} text") from error


def print_error(prog: str, kind: str, message: object) -> None:
    """One line on standard error: "akunu: error: no such file"."""
    text = visible(_NUMBER.sub("", " ".join(str(message).split())))
    prefix = f"{prog}: {kind}: " if kind else f"{prog}: "
    click.echo(
        click.style(prefix, fg="red" if kind == "error" else "yellow") + text, err=True, color=colour()
    )


def _silence_stdout() -> None:
    """The reader has gone: what is still buffered must not raise again when the interpreter ends."""
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # it lives as long as the process


class LazyVersion(click.Option):
    """`--version`, which loads the package only when it is asked for."""

    def __init__(self) -> None:
        super().__init__(
            ["--version"], is_flag=True, expose_value=False, is_eager=True, help="Show the version and exit.",
            callback=self._show,
        )  # fmt: skip

    @staticmethod
    def _show(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
        if wanted and not context.resilient_parsing:
            from akunu.base.version import __version__

            click.echo(f"{context.find_root().info_name} {__version__}")
            context.exit()
