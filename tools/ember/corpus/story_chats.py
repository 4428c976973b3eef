# ruff: noqa: E501 - lines of text and word lists read better whole
"""Stories as plain text and as the answer to a request for one."""

from __future__ import annotations

import re
from random import Random

from .follow_ups import SYSTEM_PROMPTS
from .grammar import write
from .sample import Sample, is_held_out, say
from .smalltalk import identity, small_talk, task, unknown
from .stories import Story, story
from .tasks import fix_articles
from .words import invented_word

STORY_ASKS = [
    "{Tell me|Write|Please tell me|Can you tell me|Make up} a {short |little |nice |}story.", "{Tell me|Write|Please write} a {short |}story about a $k named $h.",
    "{Tell me|Write} a story about $t.", "{Tell me|Write} a story about a $k and $t.", "I want {to hear |}a story about a $a $k{ named $h|}.",
    "{Tell me|Write|Please tell me} a {short |}story about a $k and $f.", "{Tell me|Write} a story about $h and $n.", "{Tell me|Write} a story about $h{ the $k|}.",
    "{Tell me|Write} a {fairy tale|tale|bedtime story}{ about a $k|}.", "{Tell me|I want|Can I have} {another story|one more story|a new story}.", "{Can you write|Could you tell me|Do you know} a story about a $k?", "{Story please|A story, please|Tell me a bedtime story|Tell me a story}.", "{Tell me|Write} a story about a $a $k called $h.", "{Tell me|Write} a story with a $k named $h and $t.",
]  # fmt: skip


def story_ask(rng: Random, told: Story) -> str:
    """A request for a story, in one of many wordings."""
    words = {
        "k": told.kind,
        "h": told.hero,
        "t": told.theme,
        "a": told.trait,
        "n": told.friend,
        "f": told.friend_kind,
    }
    return write(rng, rng.choice(STORY_ASKS), words)


def story_key(told: Story) -> str:
    """What of a story its request gives away; a held-out combination is never told in training."""
    return f"story {told.hero} {told.kind}"


def story_chat(rng: Random) -> Sample:
    """A story that the user asks for, sometimes with a question about it afterwards."""
    pet = rng.random() < 0.08
    told = story(rng, (invented_word(rng).capitalize(), rng.choice(("he", "she"))) if pet else None)
    ask = story_ask(rng, told)
    ask = fix_articles(ask[:-1] + "?" if ask.startswith("Can") and ask[-1] == "." else ask)
    ask = ask.lower() if rng.random() < 0.1 else ask
    messages = [say("user", ask), say("assistant", told.text)]
    if rng.random() < 0.25:
        for _ in range(rng.randint(1, 2)):
            turn = rng.choice((small_talk, task, identity, unknown))(rng)
            if not turn.held_out:
                messages[:0] = [say("user", turn.ask), say("assistant", turn.answer)]
    if rng.random() < 0.2:
        messages.insert(0, say("system", rng.choice(SYSTEM_PROMPTS)))
    if rng.random() < 0.25:
        question, answer = rng.choice([
            ("{What was the name of the hero|Who was the story about|What was the hero's name}?", f"The story was about {told.hero}."),
            ("{Thank you|Thanks|That was nice|I liked it|Nice story|That was a good story}{!|.}", write(rng, "{I am glad you liked it!|You are welcome! Would you like another one?}")),
            (f"{{Who was {told.hero}'s friend|What was the name of {told.hero}'s friend}}?", f"{told.hero}'s friend was {told.friend}."),
            (f"What {{kind of hero|sort of animal or person}} was {told.hero}?", f"{told.hero} was a {told.kind}."),
        ])  # fmt: skip
        if "friend" not in question or told.friend in told.text:
            messages += [say("user", write(rng, question)), say("assistant", fix_articles(answer))]
    elif rng.random() < 0.2:
        turn = rng.choice((small_talk, task, identity, unknown))(rng)
        if not turn.held_out:
            messages += [say("user", turn.ask), say("assistant", turn.answer)]
    held = is_held_out(story_key(told))
    if rng.random() < 0.15:
        other = story(rng)
        env = {
            "k": other.kind,
            "h": other.hero,
            "t": other.theme,
            "a": other.trait,
            "n": other.friend,
            "f": other.friend_kind,
        }
        messages += [
            say("user", fix_articles(write(rng, rng.choice(STORY_ASKS), env))),
            say("assistant", other.text),
        ]
        held = held or is_held_out(story_key(other))
    return Sample(
        "story", messages=messages, hint={"held_out": str(int(held)), "hero": told.hero, "kind": told.kind}
    )


def story_text(rng: Random, begin: bool = True) -> Sample:
    """A story as plain text, for completion; without ``begin``, from some sentence on."""
    told = story(rng)
    text = told.text
    if not begin:
        starts = [m.start() for m in re.finditer(r"(?<=[.!?] )[A-Z]", text[: len(text) // 2])]
        text = text[rng.choice(starts or [0]) :]
    held = is_held_out(story_key(told))
    return Sample("story", text=text, hint={"held_out": str(int(held)), "hero": told.hero, "kind": told.kind})


def story_rest(rng: Random) -> Sample:
    """A story from its middle: whatever sentence a prompt begins with, there is a way on."""
    return story_text(rng, begin=False)
