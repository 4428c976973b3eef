"""Prompts of windows: hot words, earlier text, the language and the task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from akunu.speech.options import TranscriptionOptions
from akunu.speech.tokenizer import WhisperTokenizer
from akunu.tokenizer import check_fits

__all__ = ["first_context", "window_prompt"]

MOST_TOKENS: Final = 4096
"""Most tokens of what may be given before a text; a window takes its end, some 200."""


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
    """The text before the first window, as the caller gave it.

    Raises
    ------
    ContextLengthError
        It, or the hot words, are longer than any that a model could take. Of others the end is taken.
    """
    given = options.initial_prompt
    for name, text in (("initial_prompt", given), ("hotwords", options.hotwords)):
        if isinstance(text, str):
            check_fits(tokenizer.tokenizer, [text], MOST_TOKENS, name)
    if isinstance(given, str):
        return tokenizer.encode(" " + given.strip()) if given.strip() else []
    return list(given or ())
