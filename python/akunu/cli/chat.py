"""`akunu chat`: a conversation, in a terminal or through a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Final

import click

from akunu.cli.app import CONTEXT_SETTINGS, print_error
from akunu.cli.complete import stats_text
from akunu.cli.console import is_terminal, note, stdin_lines, text_input, write_piece
from akunu.cli.options import generation_arguments, generation_options, load_model, model_options
from akunu.errors import AkunuError

if TYPE_CHECKING:
    from akunu.model import Model

__all__ = ["Chat", "command"]

HISTORY_LINES = 1000
_BOLD = "\x01\x1b[1m\x02> \x01\x1b[0m\x02"  # \x01 and \x02 tell readline that what is between has no width


@click.command("chat", context_settings=CONTEXT_SETTINGS)
@model_options
@generation_options
@click.option("-s", "--system", metavar="TEXT", help="System message: how the model should behave.")
@click.option("--stats", is_flag=True, help="Show counts and speed after each answer; /stats switches.")
@click.option(
    "--history/--no-history", default=True, show_default=True, help="Remember your lines for next time."
)
def command(system: str | None, stats: bool, history: bool, **values: Any) -> None:
    """Talk with a model. Each line is a message; a line that ends in \\ goes on with the next one.

    Ctrl-C stops an answer, Ctrl-D leaves. The arrow keys edit a line and bring earlier lines back. Lines that
    begin with / are commands; /help lists them. From a pipe, each line is a message and only the answers are
    printed.

    \b
    Examples:
      akunu chat -m Qwen/Qwen3-0.6B-GGUF
      akunu chat -m model.gguf --system "You are a pirate." --temperature 0.9
      printf 'My name is Ada.\\nWhat is my name?\\n' | akunu chat -m model.gguf --temperature 0
    """
    arguments = generation_arguments(values)
    with load_model(values) as model:
        model.chat_template  # noqa: B018  # without one, say so before the first message
        interactive = sys.stdin.isatty()
        chat = Chat(model, arguments, system=system, stats=stats, interactive=interactive)
        if interactive:
            _interactive(chat, model, history)
        else:
            for line in _joined(stdin_lines()):
                if not chat.take(line):
                    return


class Chat:
    """A conversation: its messages, and what is done with a line.

    Parameters
    ----------
    model
        Answers.
    arguments
        Of `Model.stream_chat`.
    system
        System message, if any.
    stats
        Whether to show counts and speed after each answer.
    interactive
        Whether Ctrl-C only stops the answer, because somebody can go on.
    """

    def __init__(
        self,
        model: Model,
        arguments: Mapping[str, Any],
        *,
        system: str | None = None,
        stats: bool = False,
        interactive: bool = False,
    ) -> None:
        self.model = model
        self.arguments = dict(arguments)
        self.system = system
        self.stats = stats
        self.stopped_by = (KeyboardInterrupt,) if interactive else ()
        self.messages: list[dict[str, str]] = []

    def take(self, line: str) -> bool:
        """Run a command or answer a message; False when the conversation is over.

        Raises
        ------
        AkunuError
            The answer could not be made; the message is then not part of the conversation.
        """
        text = line.strip()
        if text.startswith("/") and not text.startswith("//"):
            return self._command(text)
        if text:
            self._answer(text.removeprefix("/") if text.startswith("//") else text)
        return True

    def _answer(self, text: str) -> None:
        self.messages.append({"role": "user", "content": text})
        system = [{"role": "system", "content": self.system}] if self.system else []
        try:
            pieces = self.model.stream_chat([*system, *self.messages], **self.arguments)
            # An answer that is stopped stays in the conversation as far as it was seen.
            with pieces, suppress(*self.stopped_by):
                for piece in pieces:
                    write_piece(piece)
            completion = pieces.completion
        except BaseException:
            self.messages.pop()
            raise
        write_piece("\n")
        self.messages.append({"role": "assistant", "content": completion.text})
        if completion.finish_reason == "length":
            note("[the answer was cut off: --max-tokens or the context is reached; /reset starts afresh]")
        if self.stats:
            note(stats_text(completion.stats))

    def _command(self, text: str) -> bool:
        name, _, rest = text[1:].partition(" ")
        rest = rest.strip()
        if name in ("exit", "quit"):
            return False
        action = _ACTIONS.get(name)
        if action is None:
            note(f"no command /{name}; /help lists them (a message that begins with / is written //)")
        else:
            action(self, rest)
        return True

    def help(self, _rest: str) -> None:
        """Show the commands."""
        for name, action in {**_ACTIONS, "exit": _exit}.items():
            note(f"  /{name:<14}{(action.__doc__ or '').rstrip('.')}")
        note("  Ctrl-C stops an answer, Ctrl-D leaves; end a line with \\ to go on with the next one")

    def reset(self, _rest: str) -> None:
        """Forget the conversation; the system message stays."""
        self.messages.clear()
        note("[the conversation is empty]")

    def set_system(self, rest: str) -> None:
        """Set the system message to the text after it; with none, show it."""
        if rest:
            self.system = rest
            note("[system message set; it holds for the whole conversation]")
        else:
            note(f"[system message: {self.system or 'none'}]")

    def toggle_stats(self, _rest: str) -> None:
        """Switch counts and speed after each answer."""
        self.stats = not self.stats
        note(f"[statistics {'on' if self.stats else 'off'}]")

    def save(self, rest: str) -> None:
        """Write the conversation to the file named after it, as JSON messages."""
        import json

        if not rest:
            note("[/save needs the name of a file]")
            return
        system = [{"role": "system", "content": self.system}] if self.system else []
        try:
            data = (json.dumps([*system, *self.messages], ensure_ascii=False, indent=2) + "\n").encode()
            with open(rest, "xb") as file:
                file.write(data)
        except (OSError, ValueError) as error:  # ValueError: a name or a text that cannot be encoded
            note(f"[not saved: {error}]")
        else:
            note(f"[{len(self.messages)} messages saved to {rest}]")


def _exit(_chat: Chat, _rest: str) -> None:
    """Leave; Ctrl-D does too."""


_ACTIONS: Final[Mapping[str, Callable[[Chat, str], None]]] = MappingProxyType(
    {
        "help": Chat.help,
        "reset": Chat.reset,
        "system": Chat.set_system,
        "stats": Chat.toggle_stats,
        "save": Chat.save,
    }
)


def _interactive(chat: Chat, model: Model, history: bool) -> None:
    """Read lines from the terminal until the user leaves."""
    readline = _readline()
    save_history = _use_history(readline) if readline and history else None
    note(f"{model.name} on {model.device}, context {model.context}. /help lists the commands, Ctrl-D leaves.")
    prompt = _BOLD if readline and is_terminal() else "> "
    try:
        while True:
            try:
                line = next(_joined(_typed(prompt)))
                if not chat.take(line):
                    return
            except KeyboardInterrupt:
                note("\n[Ctrl-D or /exit leaves]")
            except AkunuError as error:
                print_error("akunu", "error", error)
    except StopIteration:  # Ctrl-D
        click.echo()
    finally:
        if save_history is not None:
            save_history()


def _typed(prompt: str) -> Iterator[str]:
    """Lines from the terminal, until Ctrl-D."""
    while True:
        try:
            with text_input():
                line = input(prompt)
        except EOFError:
            return
        yield line
        prompt = "  "


def _joined(lines: Iterator[str]) -> Iterator[str]:
    """Lines, each joined with the following ones while it ends in a backslash."""
    parts: list[str] = []
    for line in lines:
        line = line.rstrip("\r\n")
        if line.endswith("\\"):
            parts.append(line[:-1])
            continue
        yield "\n".join([*parts, line])
        parts.clear()
    if parts:
        yield "\n".join(parts)


def _readline() -> ModuleType | None:
    """The module whose import makes `input` edit lines, or None where there is none."""
    try:
        import readline
    except ImportError:
        return None
    return readline


def _use_history(readline: ModuleType) -> Callable[[], None]:
    """Bring back the lines of earlier conversations; returns what saves them."""
    path = Path(click.get_app_dir("akunu")) / "chat_history"
    readline.set_history_length(HISTORY_LINES)
    with suppress(OSError):
        readline.read_history_file(path)

    def save() -> None:
        with suppress(OSError):  # a home that cannot be written to is no reason to fail
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            readline.write_history_file(path)

    return save
