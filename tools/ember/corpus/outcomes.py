# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""What comes back from a tool that was told to do something, and what ember says of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from . import lexicon
from .errands import _value, any_title, result_turns
from .sample import Message
from .tasks import listing

_FLAGS = "locked sent saved started booked ordered added deleted cancelled closed opened created reserved updated removed printed moved renamed paid stored turned_on switched_off planted cleaned confirmed".split()


def flagged(rng: Random, call: dict[str, Any]) -> list[Message]:
    """The result of an order: its arguments and a flag that says whether it was done."""
    flag = rng.choice(_FLAGS)
    done = rng.random() < 0.85
    given = {k: v for k, v in call["function"]["arguments"].items() if rng.random() < 0.8}
    content = json.dumps({**given, flag: done}, ensure_ascii=False)
    name = flag.replace("_", " ")
    answer = f"Done. It is {name}." if done else f"I am sorry, that did not work: it is not {name}."
    return [{"role": "tool", "content": content}, {"role": "assistant", "content": answer}]


_RECORDS: list[tuple[str, str, Callable[[Random], str]]] = [
    ("price cost", "for $v", lambda r: str(r.randint(1, 200))), ("time at starts", "at $v", lambda r: str(_value(r, "clock"))), ("city place", "in $v", lexicon.anywhere), ("color", "in $v", lambda r: r.choice(lexicon.COLORS)),
]  # fmt: skip


def several(rng: Random) -> list[Message]:
    """A result with a list of things, each with a name and one more field."""
    keys, how, draw = rng.choice(_RECORDS)
    key, title = rng.choice(keys.split()), rng.choice("name title item".split())
    rows = [
        {title: rng.choice([any_title(rng), lexicon.anyone(rng), rng.choice(lexicon.THINGS)]), key: draw(rng)}
        for _ in range(rng.choice((1, 2, 2, 3)))
    ]
    found = listing([f"{row[title]} {how.replace('$v', row[key])}" for row in rows])
    numbered = [{k: int(v) if v.isdigit() else v for k, v in row.items()} for row in rows]
    content = (
        numbered if rng.random() < 0.5 else {rng.choice(("results", "items", "found", "list")): numbered}
    )
    return [
        {"role": "tool", "content": json.dumps(content, ensure_ascii=False)},
        {"role": "assistant", "content": f"I found {found}."},
    ]


_KINDS = ("word", "int", "person", "city", "day", "clock", "title", "color", "big", "code", "place", "list")


def any_fields(rng: Random, call: dict[str, Any]) -> list[Message]:
    """A result of one to three fields of any name, after some of the arguments."""
    result: dict[str, Any] = {k: v for k, v in call["function"]["arguments"].items() if rng.random() < 0.6}
    said = []
    for _ in range(rng.choice((1, 1, 2, 2, 3))):
        idea, noun = rng.choice(lexicon.IDEAS), rng.choice(lexicon.NOUN_LIKE)
        key = rng.choice([idea, noun, f"{rng.choice(lexicon.COMMON)}_{idea}", f"{noun}_{rng.choice(('name', 'number', 'id', 'type', 'count'))}"])  # fmt: skip
        if key in result:
            continue
        name = key.replace("_", " ")
        if rng.random() < 0.15:
            flag = rng.choice(lexicon.QUALITIES)
            if flag not in result:
                result[flag] = rng.random() < 0.5
                said.append(f"It is {'' if result[flag] else 'not '}{flag}.")
            continue
        result[key] = value = _value(rng, rng.choice(_KINDS))
        shown = listing([str(v) for v in value]) if isinstance(value, list) else str(value)
        said.append(f"The {name} {'are' if isinstance(value, list) else 'is'} {shown}.")
    if not said:
        return flagged(rng, call)
    content = json.dumps(result, ensure_ascii=False)
    return [{"role": "tool", "content": content}, {"role": "assistant", "content": " ".join(said)}]


def any_result(rng: Random, call: dict[str, Any]) -> list[Message]:
    """A result of any sort, and what ember says of it."""
    draw = rng.random()
    if draw < 0.3:
        return flagged(rng, call)
    if draw < 0.4:
        return several(rng)
    if draw < 0.55:
        return any_fields(rng, call)
    told, answers = result_turns(rng)
    return [told, *answers]
