"""The training text of ember: a seeded generator of stories, tasks and chats, and its held-out split."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from .chat import (
    conversation,
    follow_up,
    format_chat,
    memory,
    no_memory,
    persona_chat,
    plain_text,
    role_chat,
    story_chat,
    story_rest,
    story_text,
)
from .extraction import extraction
from .extras import reading
from .sample import Sample, is_held_out
from .tools import tool_chat

__all__ = ["MIXTURE", "Sample", "is_held_out", "samples"]

# shares of the documents; a story is about ten times as long as a task
MIXTURE: dict[Callable[[Random], Sample], float] = {
    story_text: 5.0,
    story_rest: 1.2,
    story_chat: 5.5,
    plain_text: 2.5,
    conversation: 48.0,
    format_chat: 11.0,
    persona_chat: 2.5,
    role_chat: 2.5,
    follow_up: 8.0,
    memory: 3.5,
    no_memory: 0.5,
    extraction: 10.0,
    tool_chat: 12.0,
    reading: 4.0,
}


def samples(
    seed: int, held_out: bool = False, only: Callable[[Random], Sample] | None = None
) -> Iterator[Sample]:
    """An endless stream of samples of one side of the split, the same for the same seed."""
    rng = Random(f"ember {seed}")
    makers, shares = list(MIXTURE), list(MIXTURE.values())
    while True:
        sample = (only or rng.choices(makers, shares)[0])(rng)
        if (sample.hint.get("held_out") == "1") == held_out:
            yield sample
