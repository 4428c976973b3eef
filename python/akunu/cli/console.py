"""Output that suits where it goes: colour and tables on a terminal, plain text in a pipe."""

from __future__ import annotations

import os
import select
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, Self, TextIO

import click

from akunu.base.errors import AkunuError
from akunu.base.memory import bytes_text
from akunu.cli.wrapping import WordWrap

if TYPE_CHECKING:
    from akunu.api.results import Stats

__all__ = [
    "TextWriter",
    "bar",
    "colour",
    "count_text",
    "decoding_text",
    "is_terminal",
    "note",
    "os_error_text",
    "plain_terminal",
    "print_table",
    "rate_text",
    "read_bounded",
    "seconds_text",
    "stats_text",
    "stdin_lines",
    "stdin_text",
    "text_input",
    "visible",
]


Style = Literal["bold", "dim"]

MAX_CHARACTERS = 256 << 20
"""Most characters of a text that is read whole; what has more, such as a device, has perhaps no end."""

WAIT_SECONDS = 2.0
"""Seconds that standard input may be silent before a remark."""


def is_terminal(stream: TextIO | None = None) -> bool:
    """Whether a stream (standard output by default) is a terminal that can show colour."""
    stream = sys.stdout if stream is None else stream
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def colour() -> bool | None:
    """False: no colour (NO_COLOR, https://no-color.org, or TERM=dumb); None leaves it to the stream."""
    return False if os.environ.get("NO_COLOR") or plain_terminal() else None


def plain_terminal() -> bool:
    """Whether the terminal says that it knows no control sequences, as those within editors do."""
    return os.environ.get("TERM") == "dumb"


# Control characters except tab and line end, as their pictures: U+241B for escape, and U+FFFD for the C1 set.
_CONTROLS = {code: 0x2400 + code for code in range(32) if code not in (9, 10)}
_CONTROLS |= {127: 0x2421, **dict.fromkeys(range(0x80, 0xA0), 0xFFFD)}


def visible(text: str) -> str:
    """Text that cannot control the terminal, whoever wrote it: control characters become pictures."""
    return text.translate(_CONTROLS)


def os_error_text(error: OSError) -> str:
    """An error of the system in words: "book.txt: no such file or directory", without its number."""
    if not error.strerror:
        return str(error)
    reason = error.strerror[:1].lower() + error.strerror[1:]
    return reason if error.filename is None else f"{os.fsdecode(error.filename)}: {reason}"


def decoding_text(error: UnicodeDecodeError) -> str:
    """Bytes that are no text, in words: "not UTF-8 text: it has the byte 0xe9"."""
    return f"not {error.encoding.upper()} text: it has the byte 0x{error.object[error.start]:02x}"


@contextmanager
def text_input() -> Iterator[None]:
    """Read standard input as text: bytes that are no text are an error that says so."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise AkunuError(f"standard input: {decoding_text(error)}") from error


def stdin_lines() -> Iterator[str]:
    """Lines of standard input as they come; in a pipe it is UTF-8, whatever the locale says.

    Raises
    ------
    AkunuError
        One is longer than any text, or is none.
    """
    with text_input():
        while line := sys.stdin.readline(MAX_CHARACTERS + 1):
            yield _bounded(line, "standard input: a line")


def stdin_text() -> str:
    """All of standard input, with a remark if nothing comes: a program may have left it open by oversight."""
    if not _ready(sys.stdin, WAIT_SECONDS):
        note("[reading standard input to its end: Ctrl-D, or </dev/null where there is nothing to read]")
    with text_input():
        return read_bounded(sys.stdin, "standard input")


def read_bounded(stream: TextIO, name: str) -> str:
    """All of a text that has an end.

    Raises
    ------
    AkunuError
        It has more than `MAX_CHARACTERS`.
    """
    return _bounded(stream.read(MAX_CHARACTERS + 1), name)


def _bounded(text: str, name: str) -> str:
    if len(text) > MAX_CHARACTERS:
        raise AkunuError(f"{name}: has more than {MAX_CHARACTERS} characters, the most that are read")
    return text


def _ready(stream: TextIO, seconds: float) -> bool:
    try:
        return bool(select.select([stream], [], [], seconds)[0])
    except (OSError, ValueError):  # no file of the system
        return True


class TextWriter:
    """Writes a model's text as it comes: as it is into a pipe, broken between words on a terminal.

    On a terminal control characters become pictures, and the last word waits until it is complete.
    """

    def __init__(self) -> None:
        self._wrap = WordWrap(_width()) if is_terminal() else None
        self._style: Style | None = None
        self._begun = False

    @property
    def styles(self) -> bool:
        """Whether a style can be seen."""
        return self._wrap is not None

    def write(self, text: str, style: Style | None = None) -> None:
        """Write a piece, perhaps in a style; the last word of what was in another one is complete."""
        if self._wrap is not None:
            if style != self._style:
                self._put(self._wrap.flush())
            self._wrap.width = _width()
            text = self._wrap.feed(visible(text))
        self._style = style
        self._put(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Write what is left, and end the line, unless an error came before any text."""
        if kind is not None and not self._begun:
            return
        if self._wrap is not None:
            self._put(self._wrap.flush())
        self._style = None
        self._put("\n")

    def _put(self, text: str) -> None:
        self._begun |= bool(text)
        if text and self._style and self.styles and colour() is not False:
            text = click.style(text, **{self._style: True})
        sys.stdout.write(text)
        sys.stdout.flush()


def _width() -> int:
    return max(8, shutil.get_terminal_size().columns)


def note(text: str) -> None:
    """A remark on standard error, dim where colour is possible; without control characters."""
    if is_terminal(sys.stderr):
        wrap = WordWrap(_width())
        text = wrap.feed(text) + wrap.flush()
    click.echo(click.style(visible(text), dim=True), err=True, color=colour())


def print_table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "", right: str = ""
) -> None:
    """Print a table.

    Parameters
    ----------
    headers
        Column names.
    rows
        Cells, as text.
    title
        Printed above.
    right
        One letter a column, "r" for columns of numbers, anything else for text; shorter means text.
    """
    alignment = right.ljust(len(headers))
    if is_terminal():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        heading = Text(visible(title), style="bold") if title else None
        table = Table(title=heading, title_justify="left", header_style="bold", box=None)
        for header, side in zip(headers, alignment, strict=True):
            number = side == "r"
            table.add_column(header, justify="right" if number else "left", no_wrap=number, overflow="fold")
        for row in rows:
            table.add_row(*(Text(visible(cell)) for cell in row))  # Text: a name or title may hold [brackets]
        console = Console()
        if (
            "r" in right
        ):  # a table of numbers is easier to read with its lines broken by the terminal than folded
            unbounded = console.options.update(width=10_000)
            console.width = max(console.width, console.measure(table, options=unbounded).maximum)
        console.print(table)
        return
    lines = [list(headers), *([visible(cell) for cell in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(headers))]
    if title:
        click.echo(visible(title))
    for line in lines:
        cells = [
            cell.rjust(width) if side == "r" else cell.ljust(width)
            for cell, width, side in zip(line, widths, alignment, strict=True)
        ]
        click.echo("  ".join(cells).rstrip())


def bar(share: float) -> str:
    """A bar of 20 characters, filled to `share` in [0, 1], in eighths of a character."""
    width = 20
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    full, rest = divmod(eighths, 8)
    encoding = (sys.stdout.encoding or "ascii").lower()
    if not encoding.startswith("utf"):
        return ("#" * (full + (rest >= 4))).ljust(width)
    return ("█" * full + " ▏▎▍▌▋▊▉"[rest].strip()).ljust(width)


def count_text(n: float) -> str:
    """A count with a decimal unit: 1500000 is "1.5 M"."""
    value = float(n)
    for unit in ("", " k", " M", " G"):
        if abs(value) < 1000:
            return f"{value:.0f}" if not unit else f"{value:.1f}{unit}"
        value /= 1000
    return f"{value:.1f} T"


def seconds_text(seconds: float) -> str:
    """A time with a unit: 0.0015 is "1.50 ms"."""
    for factor, unit in ((1e6, "µs"), (1e3, "ms")):
        if seconds * factor < 1000:
            return f"{seconds * factor:.2f} {unit}"
    return f"{seconds:.2f} s"


def rate_text(tokens: int, seconds: float) -> str:
    """Tokens a second, or "-" when there was no time to speak of."""
    return _speed_text(tokens / seconds if seconds > 0 else 0.0)


def _speed_text(speed: float) -> str:
    return f"{speed:.1f} tok/s" if speed else "-"


def stats_text(stats: Stats) -> str:
    """One line about a generation."""
    parts = [
        f"prompt {stats.prompt_tokens} tokens"
        + (f" ({stats.cached_tokens} cached)" if stats.cached_tokens else "")
        + f", {_speed_text(stats.prefill_tokens_per_second)}",
        f"first token {seconds_text(stats.time_to_first_token) if stats.generated_tokens else '-'}",
        f"generated {stats.generated_tokens} tokens, {_speed_text(stats.decode_tokens_per_second)}",
    ]
    if stats.drafted_tokens:
        parts.append(f"drafts {stats.accepted_tokens} of {stats.drafted_tokens} accepted")
    if chosen := stats.expert_hits + stats.expert_misses:
        parts.append(
            f"experts {100 * stats.expert_hits / chosen:.0f} % in memory, "
            f"{bytes_text(stats.expert_bytes)} read in {seconds_text(stats.expert_seconds)}"
        )
    return "[" + " | ".join(parts) + "]"
