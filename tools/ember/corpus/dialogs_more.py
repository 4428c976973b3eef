# ruff: noqa: E501 - lines of text read better whole
"""Conversations that go on with a result: one more of a kind, double of a sum, a key more in an object, the user's name in capitals."""

from __future__ import annotations

import json
from random import Random

from .grammar import write
from .kinds import KINDS
from .orders import _KINDS as SORTS
from .sample import Message, Sample, Turn, chat_sample, key_turn, say
from .scene_words import Scene
from .tasks import in_words, listing, solve, sum_key

_SO = ["", "", "", "", "Thanks. ", "OK. ", "Good. ", "Great. ", "Fine, ", "And ", "Now "]


def _up(text: str) -> str:
    return text[0].upper() + text[1:]


def _then(rng: Random, ask: str) -> str:
    lead = "" if ask.lower().startswith(("and ", "now ")) or ask.endswith("too.") else rng.choice(_SO)
    text = lead + (ask if not lead or lead.endswith(". ") else ask[0].lower() + ask[1:])
    return text[0].lower() + text[1:] if rng.random() < 0.15 and not ask.endswith("too.") else text


def one_more(rng: Random) -> list[tuple[str, str]]:
    """Some of a kind, then the next of them."""
    kind = rng.choice([k for k, v in KINDS.items() if len(v) > 3])
    items = KINDS[kind]
    count = rng.randint(1, min(4, len(items) - 1))
    if count == 1 and kind.endswith("s") and " " not in kind and kind not in ("seasons", "days", "months"):
        ask = write(rng, f"{{Name|Tell me|Give me|I need|Say}} one of the {kind}.")
    else:
        count = max(count, 2)
        ask = write(rng, f"{{Name|List|Tell me|Give me}} {{{count}|{in_words(count)}}} {kind}.")
    first = items[:count]
    extra = 2 if rng.random() < 0.25 and len(items) >= count + 2 else 1
    more = items[count : count + extra]
    follow = write(rng, "{Two more, please.|Two others?|And two more?|Give me two more.}" if extra == 2 else "{One more, please.|Another one?|And another?|One more?|Another one, please.|And one more?|Can you name another?|Give me one more.|Do you know another one?|More?|Next one?}")  # fmt: skip
    return [(ask, f"{_up(listing(first))}."), (_then(rng, follow), f"{_up(listing(more))}.")]


def on_the_sum(rng: Random) -> tuple[list[tuple[str, str]], list[str]]:
    """A sum, and what is done to its result."""
    a, b = rng.randint(2, 30), rng.randint(2, 20)
    op = rng.choice("++-")
    a, b = max(a, b), min(a, b)
    line, value = solve(a, op, b)
    base = int(value)
    ask = write(rng, f"{{What is|How much is|Calculate|}} {a} {{{op}|{'plus' if op == '+' else 'minus'}}} {b}{{?|}}").strip()  # fmt: skip
    kind = rng.choice(["double", "half", "more", "less", "times"])
    if kind == "half" and (base % 2 or base == 0):
        kind = "double"
    if kind == "double":
        follow, other = (
            "{and double that|Double that.|Double it, please.|Now double it.|Twice that?|And twice as much?|What is double that?}",
            (2, "*", base),
        )
    elif kind == "half":
        follow, other = "{and half of that|Half of that?|Now half of it.|And the half?|Divide that by 2.}", (base, "/", 2)  # fmt: skip
    elif kind == "times":
        n = rng.randint(2, 5)
        word = {2: "two", 3: "three", 4: "four", 5: "five"}[n]
        follow, other = f"{{Times {n}?|And times {word}?|Multiply that by {n}.|Now that {word} times.|{word} times that?}}", (base, "*", n)  # fmt: skip
    elif kind == "more" or base < 2:
        n = rng.randint(1, 20)
        follow, other = (
            f"{{And {n} more?|{n} more?|Plus {n}.|Add {n} to it.|And with {n} more?}}",
            (base, "+", n),
        )
    else:
        n = rng.randint(1, min(base, 20))
        follow, other = f"{{And {n} less?|{n} less?|Minus {n}.|Take {n} away.|Subtract {n} from it.}}", (base, "-", n)  # fmt: skip
    if other[0] > 99 or other[2] > 99:
        return on_the_sum(rng)
    line2, _ = solve(*other)
    keys = [sum_key(a, op, b), sum_key(*other)]
    return [(_up(ask), f"{line}."), (_then(rng, write(rng, follow)), f"{line2}.")], keys


def in_the_object(rng: Random) -> list[tuple[str, str]]:
    """A JSON object, then with a key more, changed or less."""
    names = rng.sample(
        ["a", "b", "c", "x", "y", "name", "age", "color", "city", "size", "count", "price", "done", "title"],
        4,
    )
    fields = {n: rng.choice([rng.randint(0, 99), rng.choice(["red", "blue", "Oslo", "tea", "open", "left", "big"]), rng.random() < 0.5]) for n in names[: rng.choice((1, 2, 2, 3))]}  # fmt: skip

    def said(key: str, value: object) -> str:
        shown = json.dumps(value) if isinstance(value, bool) else str(value)
        return f"{key} {rng.choice(('=', 'is', ':'))} {shown}".replace(" :", ":")

    ask = write(rng, "{Give me|Make|Write|Create} a JSON object with \x01.").replace("\x01", listing([said(k, v) for k, v in fields.items()]))  # fmt: skip
    kind = rng.choice(["add", "add", "change", "remove"])
    new = dict(fields)
    if kind == "remove" and len(fields) > 1:
        key = rng.choice(list(fields))
        del new[key]
        follow = write(rng, f"{{Remove {key}.|Without {key}, please.|Take {key} out.|Delete the key {key}.}}")
    elif kind == "change":
        key = rng.choice(list(fields))
        new[key] = rng.randint(0, 99)
        follow = write(rng, f"{{Change {key} to {new[key]}.|Set {key} to {new[key]}.|Make {key} {new[key]}.|{key} should be {new[key]}.}}")  # fmt: skip
    else:
        new[names[3]] = rng.choice([rng.randint(0, 99), "green"])
        follow = rng.choice([f"Add {said(names[3], new[names[3]])}.", f"Also {said(names[3], new[names[3]])}.", f"And {said(names[3], new[names[3]])}, please."])  # fmt: skip
    return [(ask, json.dumps(fields)), (follow, json.dumps(new))]


def in_the_list(rng: Random) -> list[tuple[str, str]]:
    """A list, then with an item more or less, or turned around, or sorted."""
    scene = Scene(rng)
    sort = rng.choice(list(SORTS))
    items = [scene[f"{sort}{n}"] for n in range(1, rng.choice((3, 3, 4, 5)))]
    ask = write(rng, "{My list|List|Shopping|Our things|Here is my list|We need|I have}: \x01{.|}").replace("\x01", ", ".join(items))  # fmt: skip
    kind = rng.choice(["add", "add", "remove", "reverse", "sort", "count"])
    if kind == "add":
        extra = scene[f"{sort}9"]
        follow = write(rng, f"{{Add {extra}.|And {extra}.|Put {extra} on it.|Also {extra}, please.|{_up(extra)} too.|I forgot {extra}.}}")  # fmt: skip
        answer = ", ".join([*items, extra])
    elif kind == "remove":
        gone = rng.choice(items)
        follow = write(rng, f"{{Without {gone}, please.|Remove {gone}.|No {gone}.|Take {gone} off the list.|We don't need {gone}.|Delete {gone}.}}")  # fmt: skip
        answer = ", ".join(i for i in items if i != gone)
    elif kind == "reverse":
        follow = write(rng, "{And the other way round|Now backwards|Turn it around|In reverse order, please|From last to first|And in reverse}") + rng.choice(("", ".", "."))  # fmt: skip
        answer = ", ".join(items[::-1])
    elif kind == "sort":
        follow = write(rng, "{Sort it.|Now in alphabetical order.|Sorted, please.|From A to Z, please.|Put it in order.}")  # fmt: skip
        answer = ", ".join(sorted(items, key=str.lower))
    else:
        follow = write(rng, "{How many are that?|How many things are on it?|How many are there?|Count them.}")
        answer = f"There are {in_words(len(items))}."
    return [(ask, ", ".join(items)), (_then(rng, follow), answer)]


def remembered(rng: Random) -> list[tuple[str, str]]:
    """Things to remember, and the first, second or last of them, all of them, or their number."""
    scene = Scene(rng)
    sort = rng.choice(list(SORTS))
    count = rng.choice((2, 3, 3, 4))
    items = [scene[f"{sort}{n}"] for n in range(1, count + 1)]
    number = in_words(count)
    ask = write(rng, f"{{Remember|Please remember|Keep in mind|Note|Memorize|Don't forget}} {{{number} things|these {number}|the following|these {number} words}}: \x01.").replace("\x01", ", ".join(items))  # fmt: skip
    draw = rng.random()
    if draw < 0.65:
        index = rng.randrange(count)
        which = "last" if index == count - 1 and rng.random() < 0.6 else ["first", "second", "third", "fourth"][index]  # fmt: skip
        follow = write(rng, f"{{What was the {which} {{thing|one|word}}?|Which one was the {which}?|Tell me the {which} one.|The {which} one?|Which {{thing|word}} came {which}?}}")  # fmt: skip
        answer = f"{_up(items[index])}."
    elif draw < 0.9:
        follow = write(rng, "{What were they?|What should you remember?|Which things were it?|Tell me all of them.|What did I tell you to remember?|Repeat them.|List them.}")  # fmt: skip
        answer = f"{_up(listing(items))}."
    else:
        follow = write(rng, "{How many things were it?|How many were there?|How many things did I tell you?}")
        answer = f"{_up(number)}."
    return [(ask, rng.choice(["I will remember them.", "All right, I will remember.", "OK, noted.", "I have noted it."])), (follow, answer)]  # fmt: skip


def my_name(rng: Random) -> list[tuple[str, str]]:
    """The user's name or town, then in capitals, spelled, or counted."""
    scene = Scene(rng)
    name, city = scene["name"], scene["city"]
    tell = write(rng, f"{{My name is {name}{{. I am from {city}| and I live in {city}|}}.|I am {name}{{ from {city}|}}.|Hello, {name} here.|Hi, I'm {name}.|Call me {name}.}}")  # fmt: skip
    word, whose = (city, "my city") if city in tell and rng.random() < 0.3 and " " not in city else (name, "my name")  # fmt: skip
    kind = rng.choice(["upper", "upper", "spell", "lower", "first", "json"])
    if kind == "upper":
        follow, answer = f"{{Write|Say|Type|Put|Print}} {whose} in {{capitals|capital letters|upper case|big letters}}{{, please|}}.", word.upper()  # fmt: skip
    elif kind == "lower":
        follow, answer = (
            f"{{Write|Say|Type}} {whose} in {{small letters|lower case}}{{, please|}}.",
            word.lower(),
        )
    elif kind == "spell":
        follow, answer = f"{{Spell|Please spell|Can you spell}} {whose}{{, please|}}.", f"{word} is spelled {'-'.join(word.lower())}."  # fmt: skip
    elif kind == "first":
        follow, answer = f"{{What is the first letter of {whose}|Which letter does {whose} begin with}}?", f"{word} begins with {word[0]}."  # fmt: skip
    else:
        follow, answer = f"{{Put|Write}} {whose} into JSON with the key {whose.split()[1]}.", json.dumps({whose.split()[1]: word})  # fmt: skip
    return [(tell, rng.choice([f"Hello, {name}! How can I help you?", f"Nice to meet you, {name}!", f"Hi, {name}!"])), (_then(rng, write(rng, follow)), answer)]  # fmt: skip


def legs(rng: Random) -> tuple[list[tuple[str, str]], list[str]]:
    """How many one has, then how many several have."""
    one, many, count, part = rng.choice([("a spider", "spiders", 8, "legs"), ("a dog", "dogs", 4, "legs"), ("a bee", "bees", 6, "legs"), ("a hen", "hens", 2, "legs"), ("a car", "cars", 4, "wheels"), ("a bicycle", "bicycles", 2, "wheels"), ("a hand", "hands", 5, "fingers"), ("a week", "weeks", 7, "days"), ("a year", "years", 12, "months"), ("a triangle", "triangles", 3, "sides"), ("an ant", "ants", 6, "legs"), ("a cow", "cows", 4, "legs"), ("an octopus", "octopuses", 8, "arms"), ("a tricycle", "tricycles", 3, "wheels")])  # fmt: skip
    n = rng.randint(2, 9)
    word = in_words(n) if rng.random() < 0.7 else str(n)
    ask = f"How many {part} does {one} have?"
    follow = write(rng, f"{{And {word} {many}?|And how many {part} do {word} {many} have?|How many do {word} {many} have?|And {word}?|What about {word} {many}?}}")  # fmt: skip
    return [(ask, f"{_up(one)} has {in_words(count)} {part}."), (follow, f"{n} * {count} = {n * count}.")], [sum_key(n, "*", count)]  # fmt: skip


def going_on(rng: Random) -> Sample:
    """One of these conversations."""
    make = rng.choices((one_more, on_the_sum, in_the_object, in_the_list, remembered, my_name, legs), (4, 3, 2.5, 4, 3, 3, 1))[0]  # fmt: skip
    made = make(rng)
    pairs, keys = made if isinstance(made, tuple) else (made, [])
    messages: list[Message] = []
    for ask, answer in pairs:
        messages += [say("user", ask), say("assistant", answer)]
    turns = [Turn("arithmetic", "", "", key) for key in keys]
    return chat_sample("multi-turn", messages, [*turns, key_turn("multi-turn", messages[:-1])])
