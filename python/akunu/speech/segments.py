"""A window's tokens cut into segments at their timestamps, and how far the window moves on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from akunu.speech.alignment import TimedWord
from akunu.speech.decoding import WindowText
from akunu.speech.tokenizer import WhisperTokenizer

__all__ = ["Draft", "Segment", "Word", "cut"]


@dataclass(frozen=True)
class Word:
    """A word, its times in seconds, and its probability."""

    word: str
    start: float
    end: float
    probability: float


@dataclass(frozen=True)
class Segment:
    """A stretch of speech.

    Attributes
    ----------
    id : int
        From 0 on.
    start, end : float
        Seconds from the start of the recording.
    text : str
        What is said, with the space before it.
    tokens : list of int
        Its ids, timestamps included.
    temperature, avg_logprob, compression_ratio, no_speech_prob : float
        The figures of the window that it comes from.
    words : tuple of Word
        Empty when word times were not asked for.
    channel : int or None
        Which channel says it, from 0 on, where channels are transcribed apart.
    """

    id: int
    start: float
    end: float
    text: str
    tokens: list[int]
    temperature: float
    avg_logprob: float
    compression_ratio: float
    no_speech_prob: float
    words: tuple[Word, ...] = ()
    channel: int | None = None


@dataclass
class Draft:
    """A segment of a window that may still change; times in seconds from the start of the recording."""

    start: float
    end: float
    tokens: list[int]
    words: list[TimedWord] = field(default_factory=list)

    def segment(self, number: int, window: WindowText, tokenizer: WhisperTokenizer) -> Segment:
        """The segment that it is; its words lie within it."""
        words = (
            Word(word.word, round(word.start, 2), round(word.end, 2), word.probability) for word in self.words
        )
        return Segment(
            number,
            round(min([self.start, *(word.start for word in self.words[:1])]), 2),
            round(max([self.end, *(word.end for word in self.words[-1:])]), 2),
            tokenizer.decode(self.tokens),
            self.tokens,
            window.temperature,
            window.avg_logprob,
            window.compression_ratio,
            window.no_speech_prob,
            tuple(words),
        )


def cut(
    tokens: Sequence[int],
    tokenizer: WhisperTokenizer,
    offset: float,
    duration: float,
    *,
    whole: bool = False,
) -> tuple[list[Draft], float]:
    """The segments of a window and the seconds by which it moves on.

    Segments end at pairs of timestamps, and no later than what the window holds. The text after the last pair
    is heard again, unless a single timestamp ends it, which says that nothing follows in the window.

    Parameters
    ----------
    tokens : sequence of int
        Text and timestamps of the window.
    offset : float
        Where the window begins, in seconds.
    duration : float
        What it holds of the recording, in seconds.
    whole : bool
        The text after the last pair is a segment too, and the window moves on by all of its duration.
    """
    first = tokenizer.special.timestamp_begin
    stamps = [token >= first for token in tokens]
    borders = [i for i in range(1, len(tokens)) if stamps[i - 1] and stamps[i]]
    ends_alone = stamps[-2:] == [False, True]
    if not borders:
        last = max((token for token in tokens if token > first), default=None)
        stop = duration if last is None else min(tokenizer.seconds(last), duration)
        return [Draft(offset, offset + stop, list(tokens))], duration
    rest = tokens[borders[-1] :]
    if ends_alone or (whole and any(token < tokenizer.special.end for token in rest)):
        borders.append(len(tokens))
    drafts = []
    for begin, end_at in zip([0, *borders], borders, strict=False):
        piece = list(tokens[begin:end_at])
        start = min(tokenizer.seconds(piece[0]), duration)
        end = min(tokenizer.seconds(piece[-1]), duration) if piece[-1] >= first else duration
        drafts.append(Draft(offset + start, offset + end, piece))
    return drafts, duration if ends_alone or whole else tokenizer.seconds(tokens[borders[-1] - 1])
