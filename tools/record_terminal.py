"""Record the first minute with Akunu on a pseudo-terminal, and draw it as a picture for the README.

    python -m tools.record_terminal docs/first-minute.svg

The commands really run; only waiting is cut short. In a viewer that animates SVG the lines appear when they
came; others show all of them.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

COLUMNS = 76
SCENE: tuple[tuple[str, tuple[str, ...]], ...] = (
    ('akunu run "What is 17 + 25?"', ()),
    ('akunu complete "Once upon a time" -n 60 --seed 7', ()),
    (
        "akunu chat --temp 0 --no-history",
        ("Hello! My name is Ada.", "What is the capital of Japan?", "And of Italy?", "What is my name?"),
    ),
)
"""Commands, and the lines that are typed into each."""

PROMPT = "$ "
LONGEST_PAUSE = 1.2
"""Seconds between two lines of the picture, at most."""

_ESCAPE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")
_CELL, _LINE, _TOP, _LEFT = 8.4, 20, 44, 18  # pixels
_COLOURS = {"bold": "#ffffff", "dim": "#8b949e", "": "#d0d7de", "prompt": "#7ee787"}


@dataclass
class Line:
    """One line of the screen: characters with their styles, and when the first of them came."""

    time: float
    cells: list[tuple[str, str]] = field(default_factory=list)

    def text(self) -> str:
        return "".join(char for char, _ in self.cells)


class Screen:
    """What a terminal shows, as far as line editing and streamed text need it."""

    def __init__(self) -> None:
        self.lines = [Line(0.0)]
        self.time = 0.0
        self._column = 0
        self._style = ""

    def write(self, text: str) -> None:
        position = 0
        while position < len(text):
            match = _ESCAPE.match(text, position)
            if match:
                self._control(match[1], match[2])
                position = match.end()
            else:
                self._put(text[position])
                position += 1

    def _control(self, parameters: str, command: str) -> None:
        if command == "m":
            self._style = {"1": "bold", "2": "dim"}.get(parameters, "")
        elif command == "K":
            del self.lines[-1].cells[self._column :]

    def _put(self, char: str) -> None:
        if char == "\n":
            self.lines.append(Line(self.time))
            self._column = 0
        elif char == "\r":
            self._column = 0
        elif char == "\b":
            self._column = max(0, self._column - 1)
        elif char >= " ":
            cells = self.lines[-1].cells
            cells[self._column : self._column + 1] = [(char, self._style)]
            self._column += 1


class Recorder:
    """Runs the scene on one screen, with a clock that never waits long."""

    def __init__(self, path: str) -> None:
        self.screen = Screen()
        self._path = path
        self._last = time.monotonic()

    def run(self, command: str, typed: tuple[str, ...]) -> None:
        self._tick(LONGEST_PAUSE)
        self.screen.lines[-1].time = self.screen.time
        self.screen.lines[-1].cells = [(char, "prompt") for char in PROMPT] + [(c, "bold") for c in command]
        self.screen.write("\n")
        main_fd, child_fd = pty.openpty()
        termios.tcsetwinsize(child_fd, (40, COLUMNS))
        environment = {**os.environ, "TERM": "xterm", "PATH": self._path}
        environment.pop("COLUMNS", None)
        process = subprocess.Popen(
            ["sh", "-c", command], stdin=child_fd, stdout=child_fd, stderr=child_fd, env=environment,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(child_fd)
        for line in typed:
            self._read(main_fd, until="> ")
            os.write(main_fd, f"{line}\n".encode())
        if typed:
            self._read(main_fd, until="> ")
            os.write(main_fd, b"\x04")
        self._read(main_fd)
        os.close(main_fd)
        if process.wait() != 0:
            raise SystemExit(f"{command}: exit status {process.returncode}")
        while self.screen.lines[-1].text().strip() in ("", ">"):
            self.screen.lines.pop()
        self.screen.lines += [Line(self.screen.time), Line(self.screen.time)]

    def _read(self, fd: int, until: str | None = None) -> None:
        """Show what comes, until the screen's last line ends so, or until the process is done."""
        seen = ""
        while until is None or not (seen.endswith(until) and self._quiet(fd)):
            try:
                data = os.read(fd, 65536)
            except OSError:
                return
            if not data:
                return
            now = time.monotonic()
            self._tick(now - self._last)
            self._last = now
            text = data.decode(errors="replace")
            self.screen.write(text)
            seen = (seen + _ESCAPE.sub("", text))[-80:]

    def _quiet(self, fd: int) -> bool:
        return not select.select([fd], [], [], 0.4)[0]

    def _tick(self, seconds: float) -> None:
        self.screen.time += min(seconds, LONGEST_PAUSE)


def draw(lines: list[Line], columns: int = COLUMNS) -> str:
    """The lines as an SVG picture of a terminal.

    Parameters
    ----------
    lines
        With the second at which each appears.
    columns
        Width of the terminal.
    """
    width = round(2 * _LEFT + columns * _CELL)
    height = _TOP + len(lines) * _LINE + 14
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="A terminal session with akunu" font-size="14" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace">',
        "<style>text{white-space:pre}g{animation:come 1ms backwards}@keyframes come{from{opacity:0}}"
        "@media(prefers-reduced-motion){g{animation:none}}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>',
        *(
            f'<circle cx="{20 + 20 * n}" cy="20" r="6" fill="{colour}"/>'
            for n, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
        ),
    ]
    for row, line in enumerate(lines):
        if not line.text().strip():
            continue
        y = _TOP + _LINE * row + 14
        runs = "".join(
            f'<text x="{_LEFT + start * _CELL:.1f}" y="{y}" textLength="{len(text) * _CELL:.1f}" '
            f'fill="{_COLOURS[style]}" xml:space="preserve">{escape(text)}</text>'
            for start, text, style in _runs(line)
        )
        parts.append(f'<g style="animation-delay:{line.time:.1f}s">{runs}</g>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _runs(line: Line) -> list[tuple[int, str, str]]:
    """Start, text and style of the parts of a line that look alike."""
    runs: list[tuple[int, str, str]] = []
    for column, (char, style) in enumerate(line.cells):
        if runs and runs[-1][2] == style:
            start, text, _ = runs[-1]
            runs[-1] = (start, text + char, style)
        else:
            runs.append((column, char, style))
    return [run for run in runs if run[1].strip()]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("picture", type=Path)
    arguments = parser.parse_args()
    recorder = Recorder(os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    for command, typed in SCENE:
        recorder.run(command, typed)
    lines = recorder.screen.lines
    while not lines[-1].text().strip():
        lines.pop()
    arguments.picture.write_text(draw(lines), encoding="utf-8")
    print("\n".join(line.text() for line in lines))


if __name__ == "__main__":
    main()
