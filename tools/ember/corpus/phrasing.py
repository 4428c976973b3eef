# ruff: noqa: E501 - lines of text read better whole
"""What makes of a request one that is said in another way: a value in quotes, "half an hour", the thing named first and then "it"."""

from __future__ import annotations

import re
from random import Random

SPANS = {"15 minutes": "a quarter of an hour", "30 minutes": "half an hour", "60 minutes": "an hour", "45 minutes": "three quarters of an hour", "90 minutes": "an hour and a half"}  # fmt: skip


def in_quotes(text: str, value: str) -> str:
    """The text with the value in quotes, where it stands once and alone."""
    at = text.find(value)
    around = text[at - 1 : at] + text[at + len(value) : at + len(value) + 1]
    if len(value) < 3 or text.count(value) != 1 or any(c.isalnum() or c in "\"'" for c in around):
        return text
    return f'{text[:at]}"{value}"{text[at + len(value) :]}'


_IT = re.compile(r"!((?:\{[^{}]*\}|[a-z]+)(?: (?:\{[^{}]*\}|[a-z]+))?) the (\$[a-z]+2?)")


def with_it(rng: Random, ask: str) -> str:
    """The order with the thing named before it: "what about the garage? lock it"."""
    match = _IT.fullmatch(ask)
    if match is None or "{" in match[1].replace("{", "", 1):
        return ask
    head, _, tail = match[1].partition(" ")
    verb, thing = f"{head} it {tail}".strip(), match[2]
    return rng.choice([f"{{what about|don't forget|look at|I forgot|did I forget|I mean|now for|how about}} the {thing}{{?|,|.|:}} {{please |}}{verb}", f"the {thing}: {verb}", f"the {thing}, {{please |can you |}}{verb}", f"I {{can't do the {thing} myself|don't like the {thing} like this|have no time for the {thing}}}, {{please |}}{verb}"])  # fmt: skip
