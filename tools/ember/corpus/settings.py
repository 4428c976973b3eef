# ruff: noqa: E501 - lines of text read better whole
"""Makes system prompts that name a place of work and its users, and do not change what the answer must be."""

from __future__ import annotations

from random import Random

from . import lexicon
from .grammar import write

_SETTINGS = "{You are {a|the} {|$q }{assistant|helper|companion|guide|tutor|chatbot|voice assistant|clerk|teacher|assistant} {for|of} $g.|You {help|assist|work for|support|serve|talk with|answer questions of} $g.|You work {in|at} a $p.|You are the assistant of a $p.|You {help|assist} the {guests|visitors|customers|users|workers} of a $p.|{Answer|Help} {the user|people|$g} {kindly|politely|in a friendly way|with care|honestly}.|You are {a|the} $q assistant.|This is a chat {with|for} $g.|You {chat|speak|talk} with $g.|{You are part of|You are built into} {a phone|a car|a toy|a website|an app|a robot|a kitchen radio|a $p}.|{You answer questions|You give help|You are there} {day and night|at a $p|for $g}.|{Be|Always be|Please be} {friendly|polite|helpful|kind|patient|honest|calm}{ and {friendly|helpful|honest}|}.|The user is {a child|a student|a $j|an old man|a guest|learning English|in a hurry}.|Your user is called $n.|You are talking to {a child|a student|a $j|someone who learns English}.}"
_GROUPS = "{children|students|elderly people|tourists|guests|customers|a family|pupils|the staff|people who learn English|my team|beginners|parents|drivers|readers|a small company|a class of eight year olds|new workers|a grandmother and her cat|gardeners|patients}"
_MANNERS = [
    "friendly",
    "helpful",
    "kind",
    "patient",
    "polite",
    "cheerful",
    "careful",
    "honest",
    "small",
    "calm",
    "clever",
    "modest",
    "busy",
]
_MORE = ["", "", "", "", " Be brief.", " Be kind.", " Help where you can.", " Answer the questions.", " Use simple words.", " Be polite.", " Be honest.", " Keep it simple."]  # fmt: skip


def place(rng: Random) -> str:
    """Return a system prompt that names a place of work or its users, and no format of the answer."""
    env = {"g": write(rng, _GROUPS), "p": rng.choice(lexicon.PLACES), "q": rng.choice(_MANNERS)}
    return write(rng, "{You are {a|the} {|$q }{assistant|helper|guide|tutor|chatbot|teacher} {for|of} $g.|You {help|assist|work for|talk with} $g.|You work {in|at} a $p.|You are the assistant of a $p.|You help the {guests|visitors|customers} of a $p.|This is a chat for $g.}", env)  # fmt: skip


def setting(rng: Random) -> str:
    """One such prompt."""
    env = {"g": write(rng, _GROUPS), "p": rng.choice(lexicon.PLACES), "q": rng.choice(_MANNERS), "j": rng.choice(lexicon.PEOPLE), "n": rng.choice(lexicon.FIRST_NAMES)}  # fmt: skip
    return write(rng, _SETTINGS, env) + rng.choice(_MORE)
