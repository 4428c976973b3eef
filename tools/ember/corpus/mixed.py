"""Chats of spellings, sentences on demand, sums of daily life, puzzles and facts among other words."""

from __future__ import annotations

from random import Random

from .lore import lore_turn
from .multi import SYSTEMS, any_turn
from .purchases import daily_sum
from .puzzles import puzzle
from .sample import Message, Sample, Turn, chat_sample, say
from .sentences import sentence_turn
from .settings import setting
from .spellings import spelling_turn

_MAKERS = (spelling_turn, sentence_turn, daily_sum, lore_turn, puzzle)
_SHARES = (10, 11, 9, 14, 12)


def mixed_turn(rng: Random) -> Turn:
    """One request of these kinds."""
    return rng.choices(_MAKERS, _SHARES)[0](rng)


def mixed_chat(rng: Random) -> Sample:
    """One to three of them, at times beside questions of any other kind."""
    messages: list[Message] = []
    if rng.random() < 0.15:
        messages.append(say("system", setting(rng) if rng.random() < 0.6 else rng.choice(SYSTEMS)))
    turns: list[Turn] = []
    for number in range(rng.choice((1, 1, 1, 1, 2, 3))):
        other = number and rng.random() < 0.4
        turns.append(any_turn(rng) if other else mixed_turn(rng))
        messages += [say("user", turns[-1].ask), say("assistant", turns[-1].answer)]
    return chat_sample(turns[-1].skill, messages, turns)
