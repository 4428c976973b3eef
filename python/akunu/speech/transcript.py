"""A whole transcript."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from akunu.speech.segments import Segment, Word
from akunu.speech.subtitles import Layout
from akunu.speech.writers import written

__all__ = ["UNSURE", "Transcription"]

UNSURE: Final = 0.5
"""The mean probability of its tokens below which a text is probably wrong; clear speech has 0.8 and more."""


@dataclass(frozen=True)
class Transcription:
    """The transcription of a recording.

    Attributes
    ----------
    language : str or None
        The language's code; None when nothing was heard.
    language_probability : float
        The probability by the detection; 1 when the language was given.
    duration : float
        Seconds of the recording that were read.
    segments : tuple of Segment
        In order.
    """

    language: str | None
    language_probability: float
    duration: float
    segments: tuple[Segment, ...]

    @property
    def text(self) -> str:
        """All of the text."""
        return "".join(segment.text for segment in self.segments).strip()

    @property
    def words(self) -> tuple[Word, ...]:
        """All words with their times, where those were asked for."""
        return tuple(word for segment in self.segments for word in segment.words)

    @property
    def probability(self) -> float | None:
        """The mean (geometric) probability of a token; None where there is no text.

        Below `UNSURE` the text is probably wrong: the model does not know the language, the voice or the
        noise.
        """
        counts = [len(segment.tokens) for segment in self.segments]
        if not sum(counts):
            return None
        each = zip(counts, self.segments, strict=True)
        total = sum(count * segment.avg_logprob for count, segment in each)
        return min(math.exp(total / sum(counts)), 1.0)

    def __iter__(self) -> Iterator[Any]:
        """Iterate for ``segments, info = model.transcribe(…)``, as with faster-whisper."""
        return iter((self.segments, self))

    def to(
        self,
        form: str,
        *,
        max_line_width: int | None = None,
        max_line_count: int | None = None,
        max_words_per_line: int | None = None,
    ) -> str:
        """A file's content: `form` is one of `akunu.speech.writers.FORMATS`, such as "srt".

        The others lay out the subtitles of "srt" and "vtt" (`akunu.speech.subtitles.Layout`); they need the
        times of words.

        Examples
        --------
        >>> Transcription("en", 1.0, 2.0, ()).to("vtt")
        'WEBVTT\\n\\n'
        """
        layout = Layout(max_line_width, max_line_count, max_words_per_line)
        return "".join(written(self.segments, form, lambda: self.language, layout))

    def __str__(self) -> str:
        return self.text
