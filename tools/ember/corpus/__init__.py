"""The training text of ember: a seeded generator of stories, tasks and chats, and its held-out split."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from .again import again_chat
from .casts import cast_story, cast_text
from .comprehension import comprehension
from .continuations import continuation, plain_text
from .dialogs import dialog_chat
from .edits import edit_chat
from .extraction import extraction
from .extras import reading
from .follow_ups import conversation, follow_up, memory, no_memory
from .forms import form_chat
from .kept_out import is_kept_out
from .keyed import keyed_chat
from .list_chats import list_chat, plain_list_system
from .listings import listing_chat
from .mixed import mixed_chat
from .multi import after, long_chat, story_request, talk_chat, told
from .notices import notice_chat
from .objects import object_chat
from .orders import order_chat
from .pairs import pairs_text
from .passages import passage
from .personas import format_chat, persona_chat, role_chat
from .portions import portion_chat
from .remarks import host_chat
from .requests import request_chat
from .results import lookup_chat
from .sample import Sample, is_held_out
from .sayings import saying_text
from .scenes import scene_chat
from .story_chats import story_chat, story_rest, story_text
from .strangers import stranger_chat
from .structured import structured
from .tales import asked_story, continued_story
from .tools import no_tool_chat, tool_chat
from .trades import rows_text, trade_chat
from .wider import there_was, wide_chat, wished_story

__all__ = ["MIXTURE", "Sample", "is_held_out", "samples"]

# shares of the documents; a story is about ten times as long as a task
MIXTURE: dict[Callable[[Random], Sample], float] = {
    story_text: 1.8,
    story_rest: 0.8,
    story_chat: 1.4,
    story_request: 2.2,
    wished_story: 1.8,
    there_was: 0.9,
    plain_text: 2.8,
    continuation: 12.0,
    conversation: 14.0,
    talk_chat: 86.0,
    form_chat: 28.0,
    wide_chat: 22.0,
    list_chat: 7.5,
    plain_list_system: 0.6,
    format_chat: 7.0,
    persona_chat: 2.5,
    role_chat: 2.5,
    follow_up: 8.0,
    after: 7.0,
    told: 8.0,
    memory: 3.0,
    no_memory: 0.5,
    long_chat: 0.8,
    extraction: 4.0,
    structured: 15.0,
    tool_chat: 8.0,
    no_tool_chat: 9.0,
    request_chat: 62.0,
    reading: 1.5,
    comprehension: 8.0,
    passage: 46.0,
    edit_chat: 62.0,
    lookup_chat: 24.0,
    listing_chat: 22.0,
    object_chat: 22.0,
    notice_chat: 36.0,
    trade_chat: 14.0,
    rows_text: 5.5,
    saying_text: 1.5,
    again_chat: 22.0,
    mixed_chat: 66.0,
    asked_story: 2.8,
    continued_story: 1.8,
    cast_story: 2.6,
    cast_text: 1.2,
    pairs_text: 8.0,
    scene_chat: 104.0,
    stranger_chat: 126.0,
    dialog_chat: 40.0,
    keyed_chat: 32.0,
    portion_chat: 24.0,
    order_chat: 28.0,
    host_chat: 10.0,
}


def samples(
    seed: int, held_out: bool = False, only: Callable[[Random], Sample] | None = None
) -> Iterator[Sample]:
    """An endless stream of samples of one side of the split, the same for the same seed.

    A prompt of the files that were written by hand is on neither side.
    """
    rng = Random(f"ember {seed}")
    makers, shares = list(MIXTURE), list(MIXTURE.values())
    while True:
        sample = (only or rng.choices(makers, shares)[0])(rng)
        if (sample.hint.get("held_out") == "1") == held_out and not is_kept_out(sample):
            yield sample
