"""Lines that somebody types: editing, history, completion, and text that is pasted.

GNU readline knows a paste by its brackets (bracketed paste, which CPython switches off, bpo-42819), so pasted
lines come as one. libedit, which stands in for it on macOS, and a Python without either, do not; there, lines
that are waiting already when one was read belong to it: nobody types a line in so short a time.
"""

from __future__ import annotations

import glob
import os
import select
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Final

from akunu.cli.console import is_terminal, plain_terminal, text_input
from akunu.cli.files import own_file

__all__ = ["LineEditor"]

HISTORY_LINES: Final = 1000
PASTE_SECONDS: Final = 0.02
_GO_ON: Final = "  "
_BOLD: Final = "\x01\x1b[1m\x02> \x01\x1b[0m\x02"  # between \x01 and \x02: of no width, for readline


class LineEditor:
    """Reads messages from the terminal.

    Parameters
    ----------
    commands
        What Tab completes at the beginning of a line; after one that names a file, Tab completes files.
    file_commands
        Those that take a file.
    history
        Whether to remember the lines for next time.
    """

    def __init__(self, commands: Sequence[str], file_commands: Sequence[str], *, history: bool) -> None:
        self._commands = commands
        self._file_commands = file_commands
        self._readline = _readline()
        self._brackets = False
        path = own_file("chat_history")
        # What is no file, such as a pipe, would keep readline waiting for another process.
        self._history = path if history and (path.is_file() or not path.exists()) else None
        if self._readline:
            self._set_up(self._readline)

    def _set_up(self, readline: ModuleType) -> None:
        readline.set_completer(_completer(self.completions))
        readline.set_completer_delims(" ")
        if _is_libedit(readline):
            readline.parse_and_bind("bind ^I rl_complete")
        else:
            readline.parse_and_bind("tab: complete")
            self._brackets = not plain_terminal()
            if self._brackets:
                readline.parse_and_bind("set enable-bracketed-paste on")
        if self._history:
            readline.set_history_length(HISTORY_LINES)
            with suppress(OSError):
                readline.read_history_file(self._history)

    def read(self) -> str | None:
        """The next message: a line, lines joined by a backslash, or lines pasted together; None at Ctrl-D."""
        prompt = _BOLD if self._readline and is_terminal() else "> "
        parts: list[str] = []
        while True:
            try:
                with text_input():
                    line = input(_GO_ON if parts else prompt)
                    pasted = [line, *self._waiting()]
            except EOFError:
                return "\n".join(parts) if parts else None
            *lines, last = "\n".join(pasted).split("\n")
            parts += lines
            if not last.endswith("\\"):
                return "\n".join([*parts, last])
            parts.append(last[:-1])

    def _waiting(self) -> list[str]:
        """Lines that came together with the one that was read."""
        lines = []
        while not self._brackets and select.select([sys.stdin], [], [], PASTE_SECONDS)[0]:
            try:
                lines.append(input())
            except EOFError:
                break
        return lines

    def completions(self, text: str, line: str) -> list[str]:
        """Return what `text`, the last word of `line`, may become."""
        command, space, _ = line.lstrip().partition(" ")
        if not space:
            return [f"{name} " for name in self._commands if name.startswith(text.lower())] if text else []
        if command.lower() not in self._file_commands:
            return []
        pattern = glob.escape(os.path.expanduser(text)) + "*"
        return sorted(path + ("/" if os.path.isdir(path) else "") for path in glob.iglob(pattern))

    def close(self) -> None:
        """Keep the history."""
        if not (self._readline and self._history):
            return
        with suppress(OSError):  # a home that cannot be written to is no reason to fail
            self._history.parent.mkdir(parents=True, exist_ok=True)
            self._history.touch(mode=0o600)
            self._readline.write_history_file(self._history)


def _completer(find: Callable[[str, str], list[str]]) -> Callable[[str, int], str | None]:
    """`find` as readline calls it: once for each result."""

    def complete(text: str, state: int) -> str | None:
        import readline

        found = find(text, readline.get_line_buffer()[: readline.get_endidx()])
        return found[state] if state < len(found) else None

    return complete


def _is_libedit(readline: ModuleType) -> bool:
    return "libedit" in (readline.__doc__ or "") or getattr(readline, "backend", "") == "editline"


def _readline() -> ModuleType | None:
    """The module whose import makes `input` edit lines, or None where there is none."""
    try:
        import readline
    except ImportError:
        return None
    return readline
