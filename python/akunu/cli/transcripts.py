"""Write transcripts to files of several formats or to standard output, coloured by probability."""

from __future__ import annotations

import itertools
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import click

from akunu.base.errors import AkunuError
from akunu.base.whole_file import whole_file
from akunu.cli.app import print_error
from akunu.cli.console import colour, is_terminal, note, visible

if TYPE_CHECKING:
    from akunu.speech.segments import Segment
    from akunu.speech.streams import SegmentStream
    from akunu.speech.subtitles import Layout

__all__ = ["AUDIO_SUFFIXES", "Outputs", "audio_files", "print_segment", "until_interrupted"]

AUDIO_SUFFIXES: Final = frozenset(
    {".wav", ".flac", ".mp3", ".ogg", ".oga", ".opus", ".aif", ".aiff", ".au", ".caf", ".w64", ".rf64"}
)
"""Files of a folder that are recordings, for libsndfile."""
_TRANSCRIPTS: Final = frozenset({".txt", ".srt", ".vtt", ".tsv", ".lrc", ".json"})
"""Files that may lie beside recordings without a word."""

_COLOURS: Final = ((0.5, "red"), (0.8, "yellow"))
"""Colour of what is less probable."""


def audio_files(names: Sequence[str], quiet: bool = False) -> list[str]:
    """The recordings: those that are named, and those of named folders, which tell what they pass over."""
    found: list[str] = []
    for name in names:
        if name != "-" and Path(name).is_dir():
            found += _inside(name, quiet)
        else:
            found.append(name)
    return found


def _inside(name: str, quiet: bool) -> list[str]:
    """The recordings in a folder. Hidden files are none of them: macOS puts ._talk.wav beside talk.wav."""
    from akunu.audio.foreign import FOREIGN_SUFFIXES, NEEDS, available

    readable = AUDIO_SUFFIXES | (FOREIGN_SUFFIXES if available() else frozenset())
    shown = sorted(path for path in Path(name).iterdir() if not path.name.startswith("."))
    found = [path for path in shown if path.suffix.lower() in readable and not path.is_dir()]
    foreign = [path for path in shown if path not in found and path.suffix.lower() in FOREIGN_SUFFIXES]
    if foreign:
        print_error("akunu", "warning", f"{name}: passed over {_listed(foreign)}. {NEEDS}")
    others = [
        path for path in shown if path not in found + foreign and path.suffix.lower() not in _TRANSCRIPTS
    ]
    if others and found and not quiet:
        note(f"[{name}: passed over {_listed(others)}]")
    if not found:
        raise AkunuError(f"{name}: has no recordings (files that end in {', '.join(sorted(readable))})")
    return [str(path) for path in found]


def _listed(paths: Sequence[Path]) -> str:
    names = [path.name + "/" * path.is_dir() for path in paths]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


class Outputs:
    """Files in a folder, a file for each recording and format; or standard output.

    Parameters
    ----------
    folder
        Where; None: standard output.
    forms
        Formats, of `akunu.speech.writers.FORMATS`.
    names
        The recordings.
    layout
        The layout of subtitles.
    """

    def __init__(
        self, folder: Path | None, forms: Sequence[str], names: Sequence[str], layout: Layout | None = None
    ) -> None:
        self._folder = folder
        self._forms = forms
        self._layout = layout
        if folder is None and len(forms) > 1:
            raise click.UsageError("several formats need --output-dir: each is a file of its own")
        if folder is None and len(names) > 1 and forms[0] != "txt":
            raise click.UsageError(f"several files as {forms[0]} need --output-dir: each becomes a file")
        if folder is not None:
            stems = [_stem(name) for name in names]
            for stem in stems:
                if stems.count(stem) > 1:
                    raise click.UsageError(f"two files are named {stem!r}, and would be one in {folder}")
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def on_terminal(self) -> bool:
        """Whether the text itself shows how far it is."""
        return self._folder is None and is_terminal()

    def write(self, name: str, segments: Iterable[Segment], language: Callable[[], str | None]) -> None:
        """Write a recording's segments as they come."""
        from akunu.speech.writers import written

        if self._folder is None:
            if self._forms == ("txt",) and is_terminal():
                for segment in segments:
                    print_segment(segment)
            else:
                for piece in written(segments, self._forms[0], language, self._layout):
                    sys.stdout.write(piece)
                    sys.stdout.flush()
            return
        with ExitStack() as stack:
            each = itertools.tee(segments, len(self._forms))
            writers = [
                (written(copy, form, language, self._layout), stack.enter_context(self._open(name, form)))
                for copy, form in zip(each, self._forms, strict=True)
            ]
            while writers:  # in turn, a piece each, so that all grow together
                writers = [(pieces, file) for pieces, file in writers if _one_piece(pieces, file)]

    def _open(self, name: str, form: str) -> AbstractContextManager[BinaryIO]:
        assert self._folder is not None
        return whole_file(self._folder / f"{_stem(name)}.{form}")


def _stem(name: str) -> str:
    return "stdin" if name == "-" else Path(name).stem


def _one_piece(pieces: Iterator[str], file: BinaryIO) -> bool:
    piece = next(pieces, None)
    if piece is not None:
        file.write(piece.encode())
        file.flush()
    return piece is not None


def print_segment(segment: Segment) -> None:
    """A segment on a terminal, its words in colours that say how sure they are."""
    import math

    if segment.words:
        parts = [(word.word, word.probability) for word in segment.words]
    else:
        parts = [(segment.text, math.exp(min(segment.avg_logprob, 0.0)))]
    parts[0] = (parts[0][0].lstrip(), parts[0][1])
    if segment.channel is not None:
        parts[0] = (f"[channel {segment.channel}] {parts[0][0]}", parts[0][1])
    shown = "".join(_coloured(visible(text).replace("\n", " "), sure) for text, sure in parts)
    click.echo(shown, color=colour())


def _coloured(text: str, probability: float) -> str:
    found = next((name for most, name in _COLOURS if probability < most), None)
    return text if found is None else click.style(text, fg=found)


class until_interrupted:  # reads as a function
    """The segments until Ctrl-C, so that what was found ends up as a whole file; `interrupted` tells.

    So it does where the rest of a recording is damaged: `error` is raised when its file is written.

    Ctrl-C is no exception meanwhile, which could come in the middle of a line: it ends the stream. A second
    one is, for a recording that is read from somebody who does not go on.
    """

    def __init__(self, segments: SegmentStream) -> None:
        self._segments = segments
        self.interrupted = False
        self.error: AkunuError | None = None

    def __iter__(self) -> Iterator[Segment]:
        before = signal.signal(signal.SIGINT, self._interrupt)
        found = False
        try:
            for segment in self._segments:
                found = True
                yield segment
        except AkunuError as error:
            if not found:
                raise
            self.error = error
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            signal.signal(signal.SIGINT, before)

    def _interrupt(self, *_: object) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True
        self._segments.cancel()


def print_failure(prog: str, name: str, error: Exception) -> None:
    """Print what went wrong with one file; the others go on."""
    text = str(error)
    print_error(prog, "error", text if name in text else f"{name}: {error}")
