"""The log of conversations of `akunu run` and `akunu chat`, by which `--continue` finds the last one."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Sequence
from typing import Any, Final, TextIO
from uuid import uuid4

import click

from akunu.base.errors import AkunuError
from akunu.cli.console import is_terminal
from akunu.cli.files import own_file

__all__ = ["History", "history_options"]

_MOST_BYTES: Final = 16 << 20
"""Bytes of the log; where it has more, its older half goes."""

_MOST_OF_TURN: Final = 2 << 20
"""Bytes of a turn; a longer one, such as a question about a book, is left out."""


def history_options(function: Any) -> Any:
    """Add `--continue` and `--no-history`, whose values are `continued` and `history`."""
    for option in (
        click.option(
            "--history/--no-history",
            default=True,
            show_default=True,
            help="Remember what is said in a terminal for next time.",
        ),
        click.option(
            "--continue", "continued", is_flag=True, help="Go on with the last conversation of run or chat."
        ),
    ):
        function = option(function)
    return function


class History:
    """Writes the turns of a conversation down.

    A line of the log is a turn: `id` of its conversation, `time` in seconds since 1970, `model`, `keep`, the
    number of messages before it that still stand, and `messages`, those that it adds. Only what is seen in a
    terminal is logged, in a file that only its owner may read.

    Parameters
    ----------
    continued
        Begin with the last conversation of the log.
    wanted
        Whether to write turns down.

    Attributes
    ----------
    model : str or None
        The model of the conversation that is continued.
    messages : list of dict
        The messages of the conversation as far as they are written down.

    Raises
    ------
    AkunuError
        `continued`, and there is no conversation.
    """

    def __init__(self, *, continued: bool, wanted: bool) -> None:
        self._path = own_file("conversations.jsonl")
        self._wanted = wanted and is_terminal()
        self._id = uuid4().hex[:12]
        self.model: str | None = None
        self.messages: list[dict[str, Any]] = []
        if continued:
            self._continue()

    def _continue(self) -> None:
        try:
            with self._path.open(encoding="utf-8") as file:
                fcntl.flock(file, fcntl.LOCK_SH)
                turns = [turn for line in file if (turn := _turn(line)) is not None]
        except FileNotFoundError:
            turns = []
        if not turns:
            raise AkunuError("there is no conversation to continue: only those in a terminal are remembered")
        self._id, self.model = turns[-1]["id"], turns[-1]["model"]
        for turn in turns:
            if turn["id"] == self._id:
                self.messages = [*self.messages[: turn["keep"]], *turn["messages"]]

    def add(self, model: str, messages: Sequence[dict[str, Any]]) -> None:
        """Write down what is new in a conversation.

        Parameters
        ----------
        model
            The model, as the user named it.
        messages
            All messages of the conversation.
        """
        pairs = zip(self.messages, messages, strict=False)
        kept = next(
            (n for n, (old, new) in enumerate(pairs) if old != new), min(len(self.messages), len(messages))
        )
        self.messages = list(messages)
        line = json.dumps(
            {"id": self._id, "time": round(time.time(), 3), "model": model, "keep": kept,
             "messages": self.messages[kept:]},
            ensure_ascii=False,
        )  # fmt: skip
        if not self._wanted or len(line) > _MOST_OF_TURN:
            return
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            opened = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError:  # a home that cannot be written has no memory
            return
        with open(opened, "r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0, os.SEEK_END)
            if file.tell() > _MOST_BYTES:
                _halve(file)
            file.write(line + "\n")


def _halve(file: TextIO) -> None:
    """Leave out the older half of the lines."""
    file.seek(0)
    lines = file.readlines()
    file.seek(0)
    file.truncate()
    file.writelines(lines[len(lines) // 2 :])
    file.flush()


def _turn(line: str) -> dict[str, Any] | None:
    """Return a line's turn; None where it is damaged."""
    try:
        turn = json.loads(line)
        good = (
            isinstance(turn["id"], str)
            and isinstance(turn["model"], str)
            and isinstance(turn["keep"], int)
            and all(isinstance(message["role"], str) for message in turn["messages"])
        )
    except (ValueError, TypeError, KeyError):
        return None
    return turn if good else None
