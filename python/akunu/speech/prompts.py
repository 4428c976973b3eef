"""What a window's text comes after: hot words, earlier text, the language and the task."""

from __future__ import annotations

from collections.abc import Sequence

from akunu.speech.options import TranscriptionOptions
from akunu.speech.tokenizer import WhisperTokenizer

__all__ = ["first_context", "window_prompt"]


def window_prompt(
    tokenizer: WhisperTokenizer,
    options: TranscriptionOptions,
    start: Sequence[int],
    context: Sequence[int],
    room: int,
) -> list[int]:
    """The tokens before a text: of hot words and then of `context`, its end, as many as there is room for."""
    special = tokenizer.special
    words = (options.hotwords or "").strip()
    before = tokenizer.encode(" " + words)[:room] if words else []
    room -= len(before)
    before += context[max(len(context) - room, 0) :]
    prompt = [special.start_of_previous, *before] if before else []
    prompt += start
    if options.without_timestamps:
        prompt.append(special.no_timestamps)
    return prompt


def first_context(tokenizer: WhisperTokenizer, options: TranscriptionOptions) -> list[int]:
    """The text before the first window, as the caller gave it."""
    given = options.initial_prompt
    if isinstance(given, str):
        return tokenizer.encode(" " + given.strip()) if given.strip() else []
    return list(given or ())
