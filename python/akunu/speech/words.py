"""Words and their times for the segments of a window, and which of these seem to be made up."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final

from akunu.speech.alignment import TimedWord, align_words, join_punctuation, shorten, typical_duration
from akunu.speech.batching import Work
from akunu.speech.options import TranscriptionOptions
from akunu.speech.segments import Draft
from akunu.speech.tokenizer import WhisperTokenizer

__all__ = ["add_words", "drop_made_up", "is_made_up", "last_word_end"]

_MARKS: Final = frozenset("\"'“¿([{-.。,，!！?？:：”)]}、")
_TOLERANCE: Final = 0.5  # seconds between a segment's timestamp and its word's
_NEAR: Final = 2.0  # seconds from the border of a window


def add_words(
    states: Any,
    tokenizer: WhisperTokenizer,
    start: Sequence[int],
    drafts: Sequence[Draft],
    options: TranscriptionOptions,
    *,
    offset: float,
    positions: int,
    language: str | None,
    last_speech: float,
) -> Work[None]:
    """Give the segments of a window their words, and the times of these.

    Parameters
    ----------
    offset : float
        Where the window begins, in seconds.
    positions : int
        The encoder's positions that hold sound.
    last_speech : float
        Where speech ended before the window, in seconds.
    """
    end = tokenizer.special.end
    # By segments: what is one word of the whole text may be the end of one and the beginning of the next.
    texts = [tokenizer.words([token for token in draft.tokens if token < end], language) for draft in drafts]
    words = yield from align_words(
        states, tokenizer, start, [word for text in texts for word in text], positions
    )
    typical = typical_duration(words)
    shorten(words, 2 * typical)
    for word in words:
        word.start, word.end = offset + word.start, offset + word.end
    rest = iter(words)
    for draft, text in zip(drafts, texts, strict=True):
        own = list(itertools.islice(rest, len(text)))
        draft.words = join_punctuation(own, options.prepend_punctuations, options.append_punctuations)
        if draft.words:
            _fit(draft, typical, last_speech)
            last_speech = draft.end


def _fit(draft: Draft, typical: float, last_speech: float) -> None:
    """Settle the borders of a segment between its timestamps and its words, as OpenAI's reference does.

    But no word grows into the time of its neighbour.
    """
    longest = 2 * typical
    first, last = draft.words[0], draft.words[-1]
    second = draft.words[1] if len(draft.words) > 1 else None
    after_pause = first.end - last_speech > 4 * typical
    stretched = second is not None and second.end - first.start > 2 * longest
    if after_pause and (first.end - first.start > longest or stretched):
        if second is not None and second.end - second.start > longest:
            first.end = second.start = max(second.end / 2, second.end - longest)
        first.start = max(0.0, first.end - longest)
    if draft.start < first.end and draft.start - _TOLERANCE > first.start:
        first.start = max(first.start, min(first.end - typical, draft.start))
    else:
        draft.start = first.start
    if draft.end > last.start and draft.end + _TOLERANCE < last.end:
        last.end = min(last.end, max(last.start + typical, draft.end))
    else:
        draft.end = last.end


def last_word_end(drafts: Sequence[Draft]) -> float | None:
    """Return the time at which the last word of a window ends."""
    return next((draft.words[-1].end for draft in reversed(drafts) if draft.words), None)


def _anomaly(word: TimedWord) -> float:
    duration = word.end - word.start
    score = 1.0 if word.probability < 0.15 else 0.0
    if duration < 0.133:
        score += (0.133 - duration) * 15
    return score + max(duration - 2, 0.0)


def is_made_up(draft: Draft | None) -> bool:
    """Whether the first words are improbable, too short or too long, as those of hallucinations are."""
    if draft is None or not draft.words:
        return False
    words = [word for word in draft.words if word.word not in _MARKS][:8]
    score = sum(map(_anomaly, words))
    return score >= 3 or score + 0.01 >= len(words)


def drop_made_up(
    drafts: list[Draft],
    threshold: float,
    *,
    offset: float,
    window_end: float,
    duration: float,
    last_speech: float,
) -> float | None:
    """Take away the segments from the first one on that seems made up and stands in silence.

    Parameters
    ----------
    threshold : float
        Seconds that are silence enough.
    offset, window_end, duration : float
        The times of the window and of the recording, in seconds.
    last_speech : float
        Where speech ended before the window.

    Returns
    -------
    float or None
        Where to go on, in seconds; None when nothing was taken away.
    """
    with_words = [draft for draft in drafts if draft.words]
    first = next(iter(with_words), None)
    if first is not None and is_made_up(first) and first.start - offset > threshold:
        drafts.clear()
        return first.start
    for i, draft in enumerate(with_words):
        if is_made_up(draft):
            after = with_words[i + 1] if i + 1 < len(with_words) else None
            next_start = window_end if after is None else after.words[0].start
            silence_before = (
                draft.start - last_speech > threshold
                or draft.start < threshold
                or draft.start - offset < _NEAR
            )
            silence_after = (
                next_start - draft.end > threshold or is_made_up(after) or window_end - draft.end < _NEAR
            )
            if silence_before and silence_after:
                del drafts[drafts.index(draft) :]
                return duration if duration - draft.end < threshold else max(offset + 1, draft.start)
        last_speech = draft.end
    return None
