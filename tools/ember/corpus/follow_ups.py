# ruff: noqa: E501 - lines of text and word lists read better whole
"""Several turns: a question that makes sense only after another, what the user told earlier, unrelated questions."""

from __future__ import annotations

from random import Random

from .facts import CAPITALS, CONTINENTS, LANGUAGES, RELATIONS
from .grammar import write
from .sample import Message, Sample, Turn, chat_sample, key_turn, say
from .smalltalk import identity, small_talk, task, unknown
from .tasks import (
    arithmetic,
    draw_sum,
    fact_key,
    fix_articles,
    opposite,
    plural,
    plural_of,
    relation_answer,
    solve,
    sum_key,
)
from .typed import typed
from .words import ADJECTIVES, PLURALS, SLOTS, first_name, invented_word

_BY_NAME = {relation.name: relation for relation in RELATIONS}
_AGAIN = "{No, I meant|Sorry, I meant|Sorry, {I mean|not that one,}|I meant|And for|Same for|The same for|The same question for|Now|Then|OK, and|And now|Do the same for|Next:} $s{.|?|}"


def follow_up(rng: Random) -> Sample:
    """A question, then one that makes sense only after it ("and of France?")."""
    kind = rng.randrange(6)
    if kind == 5:
        land = rng.choice([c for c in CAPITALS if c in CONTINENTS and c in LANGUAGES])
        names = rng.sample(("capital", "continent", "language"), 2)
        relation = _BY_NAME[names[0]]
        ask = fix_articles(rng.choice(relation.asks).replace("$s", land))
        ask = ask[0].upper() + ask[1:]
        follow = write(rng, {
            "capital": "{And what is its capital|What is its capital|And the capital|Which city is the capital there}?",
            "continent": "{On which continent is it|And where is it|Which continent is that in|What continent is it in}?",
            "language": "{What language do they speak there|What do people speak there|And which language is spoken there|And the language}?",
        }[names[1]])  # fmt: skip
        follow = follow.lower() if rng.random() < 0.2 else follow
        messages = [
            say("user", typed(rng, ask)),
            say("assistant", relation_answer(relation, land)),
            say("user", follow),
        ]
        turns = [Turn("facts", "", "", fact_key(ask)), key_turn("multi-turn", messages)]
        return chat_sample(
            "multi-turn", [*messages, say("assistant", relation_answer(_BY_NAME[names[1]], land))], turns
        )
    if kind <= 1:
        relation = rng.choices(
            [r for r in RELATIONS if r.name != "units"],
            [len(r.pairs) ** 0.7 for r in RELATIONS if r.name != "units"],
        )[0]
        subjects = rng.sample(list(relation.pairs), rng.choice((2, 2, 3)))
        ask = rng.choice(relation.asks).replace("$s", subjects[0]).replace("$p", plural_of(subjects[0]))
        ask = fix_articles(ask[0].upper() + ask[1:])
        first = typed(rng, ask)
        messages = [say("user", first), say("assistant", relation_answer(relation, subjects[0]))]
        turns = [Turn("facts", first, "", fact_key(ask))]
        for subject in subjects[1:]:
            rules = [_AGAIN] if rng.random() < 0.3 else relation.follow
            follow = fix_articles(write(rng, rng.choice(rules), {"s": subject}))
            follow = follow.lower() if rng.random() < 0.15 else follow
            turns.append(key_turn("multi-turn", [*messages[-2:], say("user", follow)]))
            messages += [say("user", follow), say("assistant", relation_answer(relation, subject))]
        return chat_sample("multi-turn", messages, turns)
    if kind == 2:
        turn = rng.choice((opposite, plural))(rng)
        if turn.relation is None:
            return follow_up(rng)
        table = ADJECTIVES | {b: a for a, b in ADJECTIVES.items()} if turn.relation == "opposite" else PLURALS
        other = rng.choice([w for w in table if w != turn.subject])
        follow = write(rng, "{And|And of|What about|How about} $w?", {"w": other})
        messages = [say("user", turn.ask), say("assistant", turn.answer), say("user", follow)]
        key = key_turn("multi-turn", messages)
        messages.append(say("assistant", f"The {turn.relation} of {other} is {table[other]}."))
        return chat_sample("multi-turn", messages, [turn, key])
    if kind == 3:
        a, op, b = draw_sum(rng)
        line, value = solve(a, op, b)
        first = (
            arithmetic(rng)
            if not value.isdigit() or int(value) > 99
            else Turn("arithmetic", f"{a} {op} {b}", line + ".", sum_key(a, op, b), value)
        )
        if not (first.value or "x").isdigit() or int(first.value or 0) > 99:
            return follow_up(rng)
        c, op2 = rng.randint(1, 30), rng.choice("+-")
        base = int(first.value or 0)
        c = min(c, base) if op2 == "-" else c
        ask = write(
            rng,
            "{Now add $c|Add $c to that|And plus $c?|Now add $c to it}"
            if op2 == "+"
            else "{Now subtract $c|Take away $c|And minus $c?|Now take $c away from that}",
            {"c": str(c)},
        )
        ask = ask if ask.endswith("?") else ask + "."
        messages = [say("user", first.ask), say("assistant", first.answer), say("user", ask)]
        turns = [first, Turn("arithmetic", "", "", sum_key(base, op2, c)), key_turn("multi-turn", messages)]
        return chat_sample("multi-turn", [*messages, say("assistant", solve(base, op2, c)[0] + ".")], turns)
    return memory(rng)


def memory(rng: Random) -> Sample:
    """Something the user says about themselves, and later a question about it."""
    name = rng.choice([first_name(rng), invented_word(rng).capitalize()])
    thing, value = rng.choice([
        ("favorite color", rng.choice(SLOTS["color"])), ("favorite animal", rng.choice(list(PLURALS.values())[-20:])),
        ("favorite food", rng.choice(SLOTS["food"])), ("favorite number", str(rng.randint(0, 99))), ("home town", rng.choice([*CAPITALS.values(), invented_word(rng).capitalize()])),
        ("dog's name", first_name(rng)), ("cat's name", first_name(rng)), ("best friend's name", first_name(rng)), ("password", invented_word(rng)),
    ])  # fmt: skip
    facts = [
        (f"{{My name is {name}|I am {name}|Call me {name}|Hello, I am {name}|Hi, my name is {name}|I'm {name}}}.", f"{{Nice to meet you, {name}!|Hello, {name}! How can I help you?|It is nice to meet you, {name}.}}",
         "{What is my name|Do you know my name|Do you remember my name|Who am I|What's my name}?", f"Your name is {name}."),
        (f"{{My {thing} is {value}|Remember: my {thing} is {value}|Please remember that my {thing} is {value}}}.", f"{{I will remember that your {thing} is {value}.|Good to know. Your {thing} is {value}.}}",
         f"{{What is my {thing}|Do you remember my {thing}|Tell me my {thing}|What's my {thing}}}?", f"Your {thing} is {value}."),
    ]  # fmt: skip
    place, age = (
        rng.choice([*CAPITALS.values(), "Hamburg", "Boston", invented_word(rng).capitalize()]),
        rng.randint(3, 99),
    )
    facts += [
        (f"{{I am {name} from {place}|I'm {name} and I come from {place}|My name is {name} and I live in {place}|Hi, I am {name} from {place}|I am {name} and I live in {place}}}.", f"{{Nice to meet you, {name}! {place} must be a nice place.|Hello, {name} from {place}!}}",
         *rng.choice([("{Where do I live|Where am I from|Where do I come from}?", f"You are from {place}."), ("{What is my name|Who am I|What's my name}?", f"Your name is {name}.")])),
        (f"{{I am {age} years old|I'm {age}|My age is {age}}}.", f"{{Good to know. You are {age} years old.|{age} years old, I see.}}", "{How old am I|What is my age|Do you know how old I am}?", f"You are {age} years old."),
    ]  # fmt: skip
    rng.shuffle(facts)
    if facts[0][2] == facts[1][2] or "name" in facts[0][2] + facts[1][2]:
        facts = facts[:1]
    facts = facts[: rng.choice((1, 1, 2))]
    messages: list[Message] = []
    for tell, reply, _, _ in facts:
        messages += [say("user", write(rng, tell)), say("assistant", write(rng, reply))]
    turns: list[Turn] = []
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        turn = rng.choice((small_talk, task))(rng)
        turns.append(turn)
        messages += [say("user", turn.ask), say("assistant", turn.answer)]
    rng.shuffle(facts)
    for _, _, ask, answer in facts:
        messages += [say("user", write(rng, ask)), say("assistant", answer)]
    turns.append(key_turn("multi-turn", messages))
    return chat_sample("multi-turn", messages, turns)


def no_memory(rng: Random) -> Sample:
    """A question about something the user never said."""
    thing = rng.choice(
        ["name", "favorite color", "favorite animal", "favorite food", "favorite number", "dog's name"]
    )
    ask = write(rng, f"{{What is my {thing}|Do you know my {thing}|What's my {thing}}}?")
    answer = f"I do not know your {thing}. You have not told me."
    return chat_sample("unknown", [say("user", ask), say("assistant", answer)], [])


def conversation(rng: Random) -> Sample:
    """One to four independent turns."""
    messages: list[Message] = []
    if rng.random() < 0.25:
        messages.append(say("system", rng.choice(SYSTEM_PROMPTS)))
    turns: list[Turn] = []
    for _ in range(rng.choice((1, 1, 1, 1, 2, 2, 3, 4))):
        turn = rng.choices((task, small_talk, identity, unknown), (70, 12, 6, 12))[0](rng)
        turns.append(turn)
        messages += [say("user", turn.ask), say("assistant", turn.answer)]
    return chat_sample(turns[-1].skill, messages, turns, value=turns[-1].value or "")


SYSTEM_PROMPTS = [
    "You are Ember, a small helpful assistant.", "You are a helpful assistant.", "You are Ember.", "Be kind and helpful.",
    "You are a friendly assistant.", "Answer the user's questions.", "You are Ember, a tiny model that comes with Akunu.", "Be brief and friendly.",
]  # fmt: skip
