"""What a sample is, and which side of the held-out split it is on."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

HELD_OUT_PARTS = 25  # one key in this many is never trained on

Message = dict[str, Any]


@dataclass(frozen=True)
class Turn:
    """One question and its answer. ``key`` names the content: two phrasings of one sum share a key.

    ``value`` is the bare answer ("Paris"), where there is one; ``keys`` may list further keys that the
    turn gives away (the pair behind a word problem); a held-out one among them bars the turn from training.
    """

    skill: str
    ask: str
    answer: str
    key: str
    value: str | None = None
    keys: tuple[str, ...] = ()
    relation: str | None = None
    subject: str | None = None

    @property
    def held_out(self) -> bool:
        return any(is_held_out(key) for key in (self.key, *self.keys))


@dataclass(frozen=True)
class Sample:
    """A training document or an evaluation prompt: raw text, or a chat whose last message is the answer."""

    skill: str
    text: str = ""
    messages: list[Message] = field(default_factory=list)
    tools: list[dict[str, Any]] = field(default_factory=list)
    hint: dict[str, str] = field(default_factory=dict)


def is_held_out(key: str) -> bool:
    """Whether a content key belongs to the evaluation; a fixed hash, so it never changes between runs."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest()) % HELD_OUT_PARTS == 0


def say(role: str, content: str) -> Message:
    """One message of a chat."""
    return {"role": role, "content": content}


def key_turn(skill: str, messages: list[Message]) -> Turn:
    """What stands for a chat's content: all that was asked in it."""
    return Turn(
        skill, "", "", skill + " | " + " | ".join(m["content"] for m in messages if m["role"] != "assistant")
    )


def chat_sample(skill: str, messages: list[Message], turns: list[Turn], **hint: str) -> Sample:
    """A chat; its hint says whether anything in it is held out."""
    return Sample(
        skill, messages=messages, hint={"held_out": str(int(any(t.held_out for t in turns))), **hint}
    )
