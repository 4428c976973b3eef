"""Chats of short requests as strangers write them: case, spelling, common sense, remarks, one of a list."""

from __future__ import annotations

from random import Random

from .casing import case_turn
from .multi import SYSTEMS, any_turn
from .orders import extreme_turn
from .portions import picked_turn
from .reckoning import reckoning_turn
from .remarks import remark_turn
from .rowing import rowing_turn
from .sample import Message, Sample, Turn, chat_sample, say
from .senses import sense_system, sense_turn
from .settings import setting
from .strict import strict_turn

_MAKERS = (
    case_turn,
    strict_turn,
    sense_turn,
    remark_turn,
    extreme_turn,
    picked_turn,
    reckoning_turn,
    rowing_turn,
)
_SHARES = (32, 30, 18, 24, 6, 7, 18, 8)


def stranger_turn(rng: Random) -> Turn:
    """One request of these kinds."""
    return rng.choices(_MAKERS, _SHARES)[0](rng)


def stranger_chat(rng: Random) -> Sample:
    """One to three of them, at times beside questions of any other kind."""
    messages: list[Message] = []
    if rng.random() < 0.05:
        system, asked = sense_system(rng)
        messages.append(say("system", system))
        for turn in asked:
            messages += [say("user", turn.ask), say("assistant", turn.answer)]
        return chat_sample(asked[-1].skill, messages, asked)
    if rng.random() < 0.12:
        messages.append(say("system", setting(rng) if rng.random() < 0.5 else rng.choice(SYSTEMS)))
    turns: list[Turn] = []
    for number in range(rng.choice((1, 1, 1, 1, 2, 3))):
        other = number and rng.random() < 0.3
        turns.append(any_turn(rng) if other else stranger_turn(rng))
        messages += [say("user", turns[-1].ask), say("assistant", turns[-1].answer)]
    return chat_sample(turns[-1].skill, messages, turns)
