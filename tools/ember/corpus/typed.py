# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""How people type a question: politely, in a hurry, in lower case, with a greeting or a slip of the finger."""

from __future__ import annotations

import re
from random import Random

_LEADS = [
    "please tell me", "hey", "hi", "hi Ember", "Ember", "one question", "tell me", "quick question", "can you tell me", "could you tell me", "I would like to know", "I want to know",
    "I need to know", "do you know", "hey Ember", "so", "ok", "okay", "well", "hello", "question", "excuse me", "please", "I wonder", "my question is", "I have a question", "now",
]  # fmt: skip
_TAILS = [" please", ", please", " thanks", ", thanks", " thank you", ", do you know", " quickly", " for me", ", can you tell me", "?", "??", " pls", " I forgot"]  # fmt: skip
_SHORT = [
    (r"\bWhat is\b", "What's"), (r"\bWhat is\b", "Whats"), (r"\bwhat is\b", "what's"), (r"\bwhat is\b", "whats"), (r"\bWho is\b", "Who's"), (r"\bWhere is\b", "Where's"), (r"\bDo not\b", "Don't"),
    (r"\bI am\b", "I'm"), (r"\bi am\b", "i'm"), (r"\bdo not\b", "don't"), (r"\bcolor", "colour"), (r"\bplease\b", "pls"), (r"\byou\b", "u"), (r"\bfavorite", "favourite"), (r"\bis it\b", "is it"),
]  # fmt: skip
_FIRST = frozenset(
    "What Which How Who Where When Why Name Tell Is Are Give In On At Can Could Do Does Sort Put Write Spell Make List Count Say Turn Convert".split()
)


def lower_first(ask: str) -> str:
    """The question as it stands after a comma."""
    return ask[0].lower() + ask[1:] if ask.split(maxsplit=1)[0].rstrip(",:") in _FIRST else ask


def typed(rng: Random, ask: str, content: bool = False) -> str:
    """The question as someone may type it. With ``content`` its letters stay as they are (a text to work on)."""
    draw = rng.random()
    if draw < 0.40:
        return ask
    if rng.random() < 0.06:
        hello = rng.choice(
            [
                "Hi! ",
                "Hello! ",
                "Hey! ",
                "Hello Ember. ",
                "Hi there! ",
                "Good morning! ",
                "hi, ",
                "hello, ",
                "OK. ",
                "Thanks! ",
                "Hi. ",
                "Great! ",
                "Cool. ",
            ]
        )
        ask = hello + (lower_first(ask) if hello.endswith(", ") else ask)
    if rng.random() < 0.35:
        pattern, short = rng.choice(_SHORT)
        ask = re.sub(pattern, short, ask)
    if rng.random() < 0.22:
        ask = rng.choice(_LEADS) + rng.choice([", ", ", ", ": ", " "]) + lower_first(ask)
        ask = ask[0].upper() + ask[1:] if rng.random() < 0.6 else ask
    if rng.random() < 0.12 and not content:
        end = ask[-1] if ask[-1] in "?.!" else ""
        ask = ask.rstrip("?.!") + rng.choice(_TAILS)
        ask = ask if ask.endswith("?") else ask + end
    if content:
        return lower_first(ask) if rng.random() < 0.3 else ask
    if rng.random() < 0.45:
        ask = ask.lower()
    if rng.random() < 0.4:
        ask = ask.rstrip("?.")
    if rng.random() < 0.04 and len(ask) > 12:
        ask = _slip(rng, ask)
    return ask or "?"


def _slip(rng: Random, text: str) -> str:
    """Two letters swapped, or one left out, in the middle of a word."""
    spots = [m.start() for m in re.finditer(r"(?<=[a-z])[a-z](?=[a-z]{2})", text)]
    if not spots:
        return text
    i = rng.choice(spots)
    return (
        text[:i] + text[i + 1] + text[i] + text[i + 2 :] if rng.random() < 0.5 else text[:i] + text[i + 1 :]
    )
