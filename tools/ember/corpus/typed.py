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
    if rng.random() < 0.06 and len(ask) > 12:
        ask = _slip(rng, ask)
    return ask or "?"


_BEFORE = """I'm in a hurry.|It's late already.|My back hurts.|My hands are wet.|Good, next.|Sorry to bother you.|I am so tired today.|My wife asked me to do this.|My boss wants this done.|I can't do it myself right now.|Quick thing before I go.|We have guests.|I nearly forgot.|One more thing.|I'm on the phone.|My son keeps asking.
|I'm a bit stressed.|It's for a friend.|This is important.|I hope you can help.|I don't know how this works.|My grandma would like this.|Long day.|Finally, some time.|I'm new here.|The kids are asleep.|My head hurts.|The dog is barking.|It's so cold in here.|I am at work.|I have no idea how to do it.|Oh no!|Oh dear.|Right.|So.|Hm, let me see.|Hi there.|Good evening.|Hello!
|Can I ask you something?|I need your help.|Could you do something for me?|I just woke up.|I'm bored.|My glasses are broken.|It's raining again.|My daughter needs it for school.|I want to surprise my mother.|Let's see if this works.|First time I try this.|Thank you for the last answer.|I'm not good at this.|My teacher told me to ask you.|I promised it to my husband.""".replace("\n", "").split("|")  # fmt: skip
_BEHIND = """Thanks!|Thank you.|Thank you very much.|Thanks a lot!|It's urgent.|Please hurry.|I'm waiting.|No hurry.|That would be great.|That would help me a lot.|I'd be grateful.|You're a star.|I can't do it myself.|My mother asked me.|I need it soon.|If you can.|As always.|Cheers|I hope that's all right.|That's all.|Many thanks, and have a nice day.|It's for my class.
|My boss is waiting.|I keep forgetting.|I'll make coffee in the meantime.|I'm so tired.|I am learning English.|You know best.|Don't worry if it takes a while.|I have to leave soon.|We are all excited.""".replace("\n", "").split("|")  # fmt: skip


def around(rng: Random, ask: str) -> str:
    """The question with a sentence before or after it that has nothing to do with it."""
    draw = rng.random()
    if draw < 0.6:
        ask = f"{rng.choice(_BEFORE)}{rng.choice((' ', ' ', ' ', chr(10)))}{ask}"
    if draw > 0.5:
        ask = f"{ask}{'' if ask[-1] in '?.!:' else '.'} {rng.choice(_BEHIND)}"
    return ask


def _slip(rng: Random, text: str) -> str:
    """Two letters swapped, or one left out, in the middle of a word."""
    spots = [m.start() for m in re.finditer(r"(?<=[a-z])[a-z](?=[a-z]{2})", text)]
    if not spots:
        return text
    i = rng.choice(spots)
    return (
        text[:i] + text[i + 1] + text[i] + text[i + 2 :] if rng.random() < 0.5 else text[:i] + text[i + 1 :]
    )
