# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""Forms of an answer that need no more than a rule, and personas: who the system prompt says that ember is."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from random import Random

from .facts import CAPITALS
from .grammar import write
from .sample import Sample, Turn, chat_sample, key_turn, say
from .tasks import arithmetic, fact, fix_articles, in_words, opposite, plural
from .words import NOUNS, PLURALS, first_name, invented_word


def _short(turn: Turn) -> str:
    return (turn.value or turn.answer).rstrip(".")


def _format(rng: Random) -> tuple[str, Callable[[Turn], str], bool]:
    """An instruction, what it does to an answer, and whether it needs a bare value."""
    word = rng.choice([rng.choice(NOUNS), invented_word(rng)]).capitalize()
    key = rng.choice(["answer", "result", "reply", "value", "output", "solution", rng.choice(NOUNS)])
    left, right, name = rng.choice(
        [
            ("[", "]", "square brackets"),
            ("(", ")", "round brackets"),
            ("**", "**", "bold"),
            ('"', '"', "quotes"),
            ("*", "*", "stars"),
            ("<", ">", "angle brackets"),
        ]
    )
    numeral = rng.randint(2, 4)
    options: list[tuple[str, Callable[[Turn], str], bool]] = [
        ("{Answer in capital letters|Answer in uppercase|Use all caps|Write everything in uppercase|Write everything in capital letters|Use only capital letters|Answer in upper case|SHOUT every answer}.", lambda t: t.answer.upper(), False),
        ("{Answer in lower case|Answer in lowercase|Use only small letters|Write everything in lower case|Do not use capital letters}.", lambda t: t.answer.lower(), False),
        ("{Answer with the bare answer only|Give only the answer, nothing else|Answer as briefly as possible|Be as short as you can|Only the answer, no sentence}.", _short, True),
        (f"{{Begin|Start}} {{every answer|each answer|your answer}} with {{{word}|the word {word}}}.", lambda t: f"{word}! {t.answer}", False),
        (f"{{End|Finish}} {{every answer|each answer|your answer}} with {{{word}|the word {word}}}.", lambda t: f"{t.answer} {word}!", False),
        (f"{{Answer in JSON with the key {key}|Answer as a JSON object with the key \"{key}\"|Reply in JSON: put the answer under the key {key}}}.", lambda t: json.dumps({key: _short(t)}, ensure_ascii=False), True),
        (f"{{Put the answer in {name}|Write the answer in {name}|Give the bare answer in {name}}}.", lambda t: f"{left}{_short(t)}{right}", True),
        (f"{{Write the bare answer {in_words(numeral)} times|Say only the answer, {in_words(numeral)} times}}.", lambda t: " ".join([_short(t)] * numeral), True),
        (f"{{Answer in the form {key}: ...|Use the form \"{key}: ...\" for the answer}}", lambda t: f"{key}: {_short(t)}", True),
        ("{Repeat the question before you answer|First repeat the question, then answer}.", lambda t: f"{t.ask} {t.answer}", False),
    ]  # fmt: skip
    ask, apply, bare = rng.choice(options)
    ask, lead = write(rng, ask), rng.choice(["", "", "", "Always ", "Please "])
    return (lead + ask[0].lower() + ask[1:] if lead else ask), apply, bare


def _persona(rng: Random) -> tuple[str, Callable[[str], str], str]:
    """A system prompt, what it does to an answer, and the persona's answer to "who are you"."""
    name = rng.choice([first_name(rng), invented_word(rng).capitalize()])
    kind, before, after = rng.choice([
        ("pirate", "Arr! ", " Aye, matey!"), ("robot", "Beep. ", " Boop."), ("cat", "Meow! ", " Purr."), ("wizard", "By my beard! ", ""),
        ("butler", "Certainly. ", " At your service."), ("knight", "Hear me! ", " On my honor."), ("dog", "Woof! ", ""),
        ("king", "Listen well. ", " So says the king."), ("teacher", "Good question. ", ""), ("cowboy", "Howdy! ", " Yeehaw!"),
        ("dragon", "Roar! ", ""), ("owl", "Hoo! ", ""), ("ghost", "Boo! ", ""), ("clown", "Ha ha! ", ""), ("princess", "Dear friend, ", ""),
    ])  # fmt: skip
    prompt = write(
        rng,
        f"{{You are a {kind} named {name}|You are {name}, a {kind}|Talk like a {kind}. Your name is {name}|Play the role of {name} the {kind}}}.",
    )

    def apply(answer: str) -> str:
        text = answer
        if before.endswith(", "):
            return (
                before + text[0].lower() + text[1:]
                if text.startswith(("The ", "A ", "In ", "If ", "To "))
                else before + text
            )
        return before + text + after

    return fix_articles(prompt), apply, f"I am {name}, {fix_articles('a ' + kind)}."


_TRAITS = "grumpy friendly lazy wise funny strict gentle proud clever tired lonely brave polite".split()
_ROLES = (
    "sailor baker doctor farmer detective gardener painter librarian soldier poet singer fisherman tailor hunter monk merchant "
    "scientist judge guard guide cook nurse captain mechanic barber clockmaker"
).split()


def role_chat(rng: Random) -> Sample:
    """A persona that is only a name, a trait, a role and a place."""
    name = rng.choice([first_name(rng), invented_word(rng).capitalize()])
    trait, role = rng.choice(_TRAITS), rng.choice([*_ROLES, *_ROLES, *PLURALS, invented_word(rng)])
    place = rng.choice([*CAPITALS.values(), invented_word(rng).capitalize()])
    from_, who = rng.choice(
        [("", f"a {trait} {role}"), (f" from {place}", f"a {trait} {role}"), ("", f"a {role}")]
    )
    prompt = write(
        rng,
        f"{{You are {name}, {who}{from_}|You are {who}{from_} called {name}|You are {who}{from_}. Your name is {name}|Your name is {name} and you are {who}{from_}}}.",
    )
    prompt += rng.choice(
        ["", "", "", " Answer briefly.", " Be kind.", " Help the user.", " Stay in your role."]
    )
    pairs = [
        (
            "{Who are you|Tell me who you are|Who am I talking to|Introduce yourself|What are you}?",
            f"I am {name}, {who}.",
        ),
        ("{What is your name|What's your name|How are you called}?", f"My name is {name}."),
        ("{What is your job|What do you do|What do you do for work}?", f"I am a {role}."),
        ("{What kind of person are you|Are you really $w}?", f"I am {who}."),
    ]
    if from_:
        pairs.append(
            ("{Where are you from|Where do you come from|Where do you live}?", f"I am from {place}.")
        )
    messages, turns = [say("system", fix_articles(prompt))], []
    for _ in range(rng.randint(1, 3)):
        if rng.random() < 0.7:
            ask, answer = rng.choice(pairs)
            ask = write(rng, ask, {"w": name})
            ask = ask[:-1] + "." if ask.startswith(("Tell", "Intro")) else ask
            turn = Turn(
                "format",
                ask.lower() if rng.random() < 0.2 else ask,
                fix_articles(answer),
                f"role {prompt} {ask}",
            )
        else:
            turn = rng.choice((fact, opposite, arithmetic))(rng)
        turns.append(turn)
        messages += [say("user", turn.ask), say("assistant", turn.answer)]
    return chat_sample("format", messages, [*turns, key_turn("format", messages[:-1])])


def _value_task(rng: Random) -> Turn:
    while True:
        turn = rng.choice((arithmetic, fact, fact, opposite, plural))(rng)
        if (
            turn.value is not None and turn.answer.count("=") < 2
        ):  # no bare answer where ember needs its steps
            return turn


def format_chat(rng: Random) -> Sample:
    """One answer in a form that the system prompt, or the question itself, asks for."""
    instruction, apply, bare = _format(rng)
    turn = (
        _value_task(rng)
        if bare or rng.random() < 0.5
        else rng.choice((fact, arithmetic, opposite, plural))(rng)
    )
    lead = rng.choice(["", "", "You are Ember. ", "You are a helpful assistant. "])
    if rng.random() < 0.7:
        messages = [say("system", lead + instruction), say("user", turn.ask)]
    else:
        ask = turn.ask if turn.ask[-1] in "?.!=" else turn.ask + "."
        turn = replace(turn, ask=ask)
        messages = [say("user", rng.choice([f"{ask} {instruction}", f"{instruction} {ask}"]))]
    return chat_sample(
        "format", [*messages, say("assistant", apply(turn))], [turn, key_turn("format", messages)]
    )


def persona_chat(rng: Random) -> Sample:
    prompt, apply, who = _persona(rng)
    messages, turns = [say("system", prompt)], []
    for _ in range(rng.randint(1, 2)):
        if rng.random() < 0.3:
            asks = "{Who are you|What is your name|Tell me who you are|Who am I talking to}?"
            turn = Turn("format", write(rng, asks), who, f"persona {prompt}")
        else:
            turn = rng.choice((fact, fact, arithmetic, opposite))(rng)
        turns += [turn]
        messages += [say("user", turn.ask), say("assistant", apply(turn.answer))]
    return chat_sample("format", messages, [*turns, key_turn("format", messages[:-1])])
