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
from .comprehension import comprehension
from .continuations import continuation
from .extraction import extraction
from .extras import reading
from .forms import form_chat, list_chat, plain_list_system
from .kept_out import is_kept_out
from .multi import after, long_chat, story_request, talk_chat, told
from .sample import Sample, is_held_out
from .structured import structured
from .tools import no_tool_chat, tool_chat

__all__ = ["MIXTURE", "Sample", "is_held_out", "samples"]

# shares of the documents; a story is about ten times as long as a task
MIXTURE: dict[Callable[[Random], Sample], float] = {
    story_text: 2.6,
    story_rest: 0.8,
    story_chat: 2.0,
    story_request: 2.6,
    plain_text: 2.0,
    continuation: 7.0,
    conversation: 22.0,
    talk_chat: 34.0,
    form_chat: 17.0,
    list_chat: 5.5,
    plain_list_system: 0.5,
    format_chat: 6.0,
    persona_chat: 2.5,
    role_chat: 2.5,
    follow_up: 6.0,
    after: 5.0,
    told: 5.0,
    memory: 2.5,
    no_memory: 0.5,
    long_chat: 0.8,
    extraction: 5.0,
    structured: 8.0,
    tool_chat: 12.0,
    no_tool_chat: 5.0,
    reading: 2.0,
    comprehension: 13.0,
}


def samples(
    seed: int, held_out: bool = False, only: Callable[[Random], Sample] | None = None
) -> Iterator[Sample]:
    """An endless stream of samples of one side of the split, the same for the same seed.

    A prompt of ``prompts.txt`` is on neither side.
    """
    rng = Random(f"ember {seed}")
    makers, shares = list(MIXTURE), list(MIXTURE.values())
    while True:
        sample = (only or rng.choices(makers, shares)[0])(rng)
        if (sample.hint.get("held_out") == "1") == held_out and not is_kept_out(sample):
            yield sample
