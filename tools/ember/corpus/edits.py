"""Chats of summaries, corrections, haiku, decimals, foreign names, and requests that ember declines."""

from __future__ import annotations

from random import Random

from .corrections import correction
from .decimals import decimals
from .foreign import foreign_case
from .haiku import haiku
from .multi import any_turn
from .sample import Message, Sample, Turn, chat_sample, say
from .summaries import cannot, summary

_SYSTEMS = (
    "You are a helpful assistant.",
    "You are Ember, a small helpful assistant.",
    "You are a helpful editor.",
    "Be brief.",
    "You are an assistant.",
    "Help the user.",
)
_MAKERS = (summary, correction, haiku, decimals, foreign_case, cannot)
_SHARES = (20, 30, 6, 14, 14, 22)


def edit_turn(rng: Random) -> Turn:
    """One request of these kinds."""
    return rng.choices(_MAKERS, _SHARES)[0](rng)


def edit_chat(rng: Random) -> Sample:
    """One to three of them, at times beside questions of any other kind."""
    messages: list[Message] = []
    if rng.random() < 0.15:
        messages.append(say("system", rng.choice(_SYSTEMS)))
    turns: list[Turn] = []
    for number in range(rng.choice((1, 1, 1, 1, 2, 3))):
        other = number and rng.random() < 0.3
        turns.append(any_turn(rng) if other else edit_turn(rng))
        messages += [say("user", turns[-1].ask), say("assistant", turns[-1].answer)]
    return chat_sample("edits", messages, turns)
