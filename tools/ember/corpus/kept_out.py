"""The prompts written by hand are kept out of the training text, however they are typed."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from .sample import Message, Sample

FILES = sorted(Path(__file__).resolve().parents[1].glob("prompts*.txt"))


def _letters(text: str) -> str:
    """Letters and digits alone, in lower case."""
    return re.sub(r"[\W_]+", " ", text.lower()).strip()


@cache
def _prompts() -> frozenset[tuple[str, ...]]:
    from tools.ember.prompts import read

    return frozenset(_asked(p.messages) for file in FILES for p in read(file) if p.messages)


def _asked(messages: list[Message]) -> tuple[str, ...]:
    """What the system and the user said, up to the last question."""
    return tuple(_letters(m["content"]) for m in messages if m["role"] in ("system", "user"))


def is_kept_out(sample: Sample) -> bool:
    """Whether one of the sample's answers is to a prompt that is in the files."""
    asked: list[str] = []
    for message in sample.messages:
        if message["role"] in ("system", "user"):
            asked.append(_letters(message["content"]))
        elif message["role"] == "assistant" and tuple(asked) in _prompts():
            return True
    return False
