"""Segments as subtitles: how wide a line may be, how many lines stand together, how many words."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from akunu.base.errors import InvalidArgumentError
from akunu.speech.segments import Segment, Word

__all__ = ["Layout", "one_line", "subtitles"]

PAUSE: Final = 3.0
"""Seconds without a word that end a subtitle which goes on over segments."""


@dataclass(frozen=True)
class Layout:
    """The layout of subtitles; names and meanings are those of OpenAI's command.

    Attributes
    ----------
    max_line_width : int, optional
        Most characters of a line; a longer word has one of its own.
    max_line_count : int, optional
        Most lines of a subtitle, which then may go on over the segments; needs `max_line_width`.
    max_words_per_line : int, optional
        Most words of a subtitle, where no width is given.
    """

    max_line_width: int | None = None
    max_line_count: int | None = None
    max_words_per_line: int | None = None

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None and (type(value) is not int or value < 1):
                raise InvalidArgumentError(f"{field.name}: found {value!r}, expected a whole number above 0")
        if self.max_line_count is not None and self.max_line_width is None:
            raise InvalidArgumentError("max_line_count: needs max_line_width")
        if self.max_words_per_line is not None and self.max_line_width is not None:
            raise InvalidArgumentError("max_words_per_line and max_line_width exclude each other")

    @property
    def asked(self) -> bool:
        """Whether subtitles are to differ from segments, for which words need their times."""
        return self.max_line_width is not None or self.max_words_per_line is not None


def subtitles(segments: Iterable[Segment], layout: Layout) -> Iterator[Segment]:
    """The segments as subtitles: line ends in their texts are those of the layout.

    Raises
    ------
    InvalidArgumentError
        The words of a segment have no times.
    """
    if not layout.asked:
        for segment in segments:
            yield dataclasses.replace(segment, text=one_line(segment.text))
        return
    over_segments = layout.max_line_count is not None
    lines: list[list[Word]] = []
    held: Segment | None = None
    for segment in segments:
        if not segment.words and segment.text.strip():
            raise InvalidArgumentError(
                "max_line_width: needs word_timestamps=True, as max_words_per_line does"
            )
        if held is not None and lines and not (over_segments and held.channel == segment.channel):
            yield _subtitle(held, lines)
            lines = []
        held = segment
        for n, word in enumerate(segment.words):
            count = layout.max_words_per_line
            if lines and (
                (over_segments and word.start - lines[-1][-1].end > PAUSE)
                or (count is not None and n % count == 0)
                or (len(lines) == layout.max_line_count and not _fits(lines[-1], word, layout))
            ):
                yield _subtitle(held, lines)
                lines = []
            if lines and _fits(lines[-1], word, layout):
                lines[-1].append(word)
            else:
                lines.append([word])
    if held is not None and lines:
        yield _subtitle(held, lines)


def _fits(line: list[Word], word: Word, layout: Layout) -> bool:
    return layout.max_line_width is None or len(_text([*line, word])) <= layout.max_line_width


def _text(line: list[Word]) -> str:
    return one_line("".join(word.word for word in line))


def one_line(text: str) -> str:
    """A text as one line, whatever ends a line for who reads the file."""
    return " ".join(text.strip().splitlines())


def _subtitle(segment: Segment, lines: list[list[Word]]) -> Segment:
    words = tuple(word for line in lines for word in line)
    text = "\n".join(_text(line) for line in lines)
    return dataclasses.replace(segment, start=words[0].start, end=words[-1].end, text=text, words=words)
