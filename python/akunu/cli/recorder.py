"""Sound that comes through a pipe while it is recorded, and its text on a terminal."""

from __future__ import annotations

import io
import os
import queue
import shutil
import sys
import threading
from collections.abc import Iterator
from typing import BinaryIO, Final

import click

from akunu.cli.console import colour, is_terminal, visible

__all__ = ["LiveLine", "recorded"]

PIECE: Final = 4096
"""Bytes that are read at once."""
WAITING: Final = 60
"""Seconds of sound that wait for the model; then the recorder does."""
SAMPLE_BYTES: Final = 2


def recorded(file: BinaryIO, rate: int) -> Iterator[bytes]:
    """16-bit PCM in pieces: all that came since the last one was taken.

    What ends the reading, as a device that is gone, is raised after all that it gave.
    """
    try:
        number = file.fileno()
    except io.UnsupportedOperation:  # not a file of the system
        yield from _whole_samples(iter(lambda: file.read(PIECE), b""))
        return
    waiting: queue.Queue[bytes | OSError] = queue.Queue(WAITING * SAMPLE_BYTES * rate // PIECE)

    def read() -> None:
        try:
            while data := os.read(number, PIECE):
                waiting.put(data)
            waiting.put(b"")
        except OSError as error:
            waiting.put(error)

    # A read cannot be ended from outside, and must not keep the process.
    threading.Thread(target=read, name="akunu-recorder", daemon=True).start()
    yield from _whole_samples(_gathered(waiting))


def _gathered(waiting: queue.Queue[bytes | OSError]) -> Iterator[bytes]:
    while True:
        pieces = []
        last = waiting.get()
        while isinstance(last, bytes) and last:
            pieces.append(last)
            if waiting.empty():
                break
            last = waiting.get()
        if pieces:
            yield b"".join(pieces)
        if isinstance(last, OSError):
            raise last
        if not last:
            return


def _whole_samples(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the bytes in pieces of whole samples."""
    rest = b""
    for piece in pieces:
        data = rest + piece
        end = len(data) // SAMPLE_BYTES * SAMPLE_BYTES
        rest = data[end:]
        if end:
            yield data[:end]


class LiveLine:
    """Settled text in lines; on a terminal a dim guess follows it, and is written over."""

    def __init__(self) -> None:
        self._line = ""
        self._terminal = is_terminal()

    def show(self, committed: str, tentative: str) -> None:
        """Add settled text, and change the guess."""
        if not self._terminal:
            settled = committed if self._line else committed.lstrip()
            self._line = self._line or settled
            sys.stdout.write(settled)
            sys.stdout.flush()
            return
        width = max(shutil.get_terminal_size().columns - 1, 8)
        self._line = (self._line + visible(committed)).lstrip()
        done = ""
        while len(self._line) > width:
            end = self._line.rfind(" ", 1, width)
            end = width if end < 0 else end
            done += self._line[:end] + "\n"
            self._line = self._line[end:].lstrip()
        guess = click.style(visible(tentative)[: width - len(self._line)], dim=True)
        click.echo(f"\r\x1b[K{done}{self._line}{guess}", nl=False, color=colour())

    def end(self) -> None:
        """Nothing follows."""
        self.show("", "")
        click.echo()
