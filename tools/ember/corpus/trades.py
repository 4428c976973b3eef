# ruff: noqa: E501 - lines of text and word lists read better whole
"""Work that the system prompt gives (to sort, to add, to name the opposite of what the user sends), and rows of examples as plain text."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from . import lexicon
from .facts import ANIMAL_HOMES, BABIES, CAPITALS, COLORS, CONTINENTS, LANGUAGES, LEGS, SOUNDS
from .grammar import write
from .sample import Message, Sample, Turn, say
from .settings import place
from .spellings import _pair
from .tasks import DAYS, MONTHS, in_words, sum_key
from .text_tasks import _numbers, _word_items, phrase
from .words import ADJECTIVES, PLURALS

Piece = tuple[str, str, str]  # what is sent, what comes back, and its key where it is a sum


class Work(NamedTuple):
    """What the system prompt says, and a drawing of what is sent and what comes back."""

    said: str
    draw: Callable[[Random], Piece]


_OPPOSITES = ADJECTIVES | {b: a for a, b in ADJECTIVES.items()}
_SENDS = "{what the user {writes|types|says|enters|gives you}|the user's {words|text|input|message}|every {message|input|text}|everything}"
_ONLY = "{||||. {Reply|Answer} with {the result|that} only|. {No other words|Nothing else|No explanations}|, nothing else|. {Give|Return|Write} only the {result|answer}|. The answer is the {result|word} alone}"


def _table(table: dict[str, str]) -> Callable[[Random], Piece]:
    keys = list(table)

    def draw(rng: Random) -> Piece:
        key = rng.choice(keys)
        return key, table[key], ""

    return draw


def _sorted(rng: Random, numbers: bool, down: bool) -> Piece:
    items = _numbers(rng, 3, 6) if numbers else _word_items(rng, 3, 5)
    result = sorted(items, key=int if numbers else str.lower, reverse=down)
    return rng.choice([", ", ", ", " ", ","]).join(items), ", ".join(result), ""


def _sum(rng: Random) -> Piece:
    op = rng.choice("++-*")
    a, b = rng.randint(1, 60), rng.randint(1, 39)
    if op == "*":
        a, b = rng.randint(2, 12), rng.randint(2, 12)
    a, b = (max(a, b), min(a, b)) if op == "-" else (a, b)
    sign = {"+": ["+", "+", "plus"], "-": ["-", "-", "minus"], "*": ["*", "x", "times"]}[op]
    gap = rng.choice([" ", " ", ""])
    chosen = rng.choice(sign)
    text = f"{a} {chosen} {b}" if chosen.isalpha() else f"{a}{gap}{chosen}{gap}{b}"
    return text + rng.choice(["", "", " =", "?", " = ?"]), str({"+": a + b, "-": a - b, "*": a * b}[op]), sum_key(a, op, b)  # fmt: skip


def _extreme(rng: Random, big: bool) -> Piece:
    items = _numbers(rng, 2, 5)
    return rng.choice([", ", " ", " or "]).join(items), (max if big else min)(items, key=int), ""


def _letters(rng: Random) -> Piece:
    word = rng.choice([rng.choice(lexicon.COMMON), rng.choice(lexicon.FIRST_NAMES)])
    return word, "-".join(word.lower()), ""


def _reversed(rng: Random) -> Piece:
    items = _word_items(rng, 3, 5) if rng.random() < 0.6 else _numbers(rng, 3, 5)
    return ", ".join(items), ", ".join(items[::-1]), ""


def _bullets(rng: Random, numbered: bool) -> Piece:
    items = _word_items(rng, 2, 5)
    rows = [f"{i}. {t}" if numbered else f"- {t}" for i, t in enumerate(items, 1)]
    return rng.choice([", ", ", ", "; "]).join(items), "\n".join(rows), ""


def _right(rng: Random) -> Piece:
    right, wrong = _pair(rng)
    return (wrong, right, "") if rng.random() < 0.8 else (right, right, "")


def _next(rng: Random, names: list[str], step: int) -> Piece:
    i = rng.randrange(len(names))
    return names[i], names[(i + step) % len(names)], ""


def _case(rng: Random, upper: bool) -> Piece:
    text = phrase(rng)
    if upper:
        return rng.choice([text, text[0].upper() + text[1:]]), text.upper(), ""
    return rng.choice([text.upper(), text.title()]), text, ""


WORKS: list[tuple[float, Work]] = [
    (3, Work(f"{{You sort {_SENDS}|Sort {_SENDS}|Put {_SENDS} in alphabetical order|You put words in alphabetical order|You sort words{{ from A to Z| alphabetically|}}}}{_ONLY}", lambda r: _sorted(r, False, False))),
    (2, Work(f"{{You sort numbers{{ from small to large| in ascending order|}}|Sort the numbers {_SENDS}|Put numbers in ascending order|The user sends numbers. Sort them}}{_ONLY}".replace("numbers {what", "numbers in {what"), lambda r: _sorted(r, True, False))),
    (1, Work(f"{{You sort numbers {{from large to small|in descending order|with the largest first}}|Sort {_SENDS} from large to small}}{_ONLY}", lambda r: _sorted(r, True, True))),
    (3, Work(f"{{You are a calculator|You calculate|Calculate {_SENDS}|Work out {_SENDS}|You do sums|You are a pocket calculator}}{{|. {{Reply|Answer}} with the {{number|result}} only|. Only the number|. Output numbers only|, you only say numbers}}", _sum)),
    (1.5, Work(f"{{You {{give|name|say|return}} the opposite of {{each word|the word|{_SENDS}}}|The user sends a word. {{Reply|Answer}} with its opposite|Opposites only}}{_ONLY}", _table(_OPPOSITES))),
    (1.5, Work(f"{{You {{give|name|say|return}} the plural of {{each word|the word|{_SENDS}}}|The user sends a noun. {{Reply|Answer}} with its plural|Turn every word into its plural}}{_ONLY}", _table(PLURALS))),
    (1.5, Work(f"{{You {{give|name|say}} the capital of {{each country|the country}}|The user names a country. {{Reply|Answer}} with its capital|Countries come in, capitals go out}}{_ONLY}", _table(CAPITALS))),
    (0.7, Work(f"{{The user names a country. {{Reply|Answer}} with its continent|You say on which continent a country is}}{_ONLY}", _table(CONTINENTS))),
    (0.7, Work(f"{{The user names a country. {{Reply|Answer}} with its language|You say which language a country speaks}}{_ONLY}", _table(LANGUAGES))),
    (0.7, Work(f"{{The user names an animal. {{Reply|Answer}} with the name of its baby|You name the baby of each animal}}{_ONLY}", _table(BABIES))),
    (0.7, Work(f"{{The user names an animal. {{Reply|Answer}} with its sound|You make the sound of each animal}}{_ONLY}", _table(SOUNDS))),
    (2, Work(f"{{You spell words|Spell {_SENDS}|The user sends a word. Spell it|You are a spelling machine}}{{| letter by letter| with dashes| with dashes between the letters}}{_ONLY}", _letters)),
    (2, Work(f"{{You correct spelling|You are a spell checker|Correct the spelling of {_SENDS}|The user sends a word. Write it correctly|You put words right}}{_ONLY}", _right)),
    (1.5, Work(f"{{You reverse lists|Reverse {_SENDS}|The user sends a list. {{Give it back|Return it|Write it}} {{backwards|in reverse order}}}}{_ONLY}", _reversed)),
    (1.5, Work(f"{{You name the {{largest|biggest}} number{{ of those that the user sends|}}|The user sends numbers. {{Reply|Answer}} with the {{largest|biggest}}}}{_ONLY}", lambda r: _extreme(r, True))),
    (1, Work(f"{{You name the smallest number{{ of those that the user sends|}}|The user sends numbers. {{Reply|Answer}} with the smallest}}{_ONLY}", lambda r: _extreme(r, False))),
    (2, Work(f"{{You write {_SENDS} in {{capitals|capital letters|upper case}}|Write {_SENDS} in {{capitals|capital letters|upper case}}|You are a machine that makes capitals|Turn {_SENDS} into {{capitals|upper case}}|Repeat {_SENDS} in capital letters}}{_ONLY}", lambda r: _case(r, True))),
    (2, Work(f"{{You write {_SENDS} in {{small letters|lower case}}|Write {_SENDS} in {{small letters|lower case}}|Turn {_SENDS} into {{small letters|lower case}}|Repeat {_SENDS} in small letters}}{_ONLY}", lambda r: _case(r, False))),
    (1.5, Work(f"{{Repeat {_SENDS}|You repeat {_SENDS}|You are an echo|Echo {_SENDS}|You are a parrot. Repeat {_SENDS}}}{_ONLY}", lambda r: ((t := phrase(r)), t, ""))),
    (1.5, Work(f"{{You turn lists into {{bullet points|bullet lists}}|Write {_SENDS} as bullet points|The user sends a list. Put a dash before each item}}{_ONLY}", lambda r: _bullets(r, False))),
    (1.5, Work(f"{{You number lists|Write {_SENDS} as a numbered list|The user sends a list. Number the items}}{_ONLY}", lambda r: _bullets(r, True))),
    (0.6, Work(f"{{The user names a day. {{Reply|Answer}} with the {{next day|day after it}}|You name the day after the one {{that the user names|you get}}}}{_ONLY}", lambda r: _next(r, DAYS, 1))),
    (0.6, Work(f"{{The user names a day. {{Reply|Answer}} with the day before{{ it|}}}}{_ONLY}", lambda r: _next(r, DAYS, -1))),
    (0.6, Work(f"{{The user names a month. {{Reply|Answer}} with the {{next month|month after it}}}}{_ONLY}", lambda r: _next(r, MONTHS, 1))),
    (0.8, Work(f"{{The user sends a number. Write it in words|You write numbers in words}}{_ONLY}", lambda r: (str(n := r.randint(0, 99)), in_words(n), ""))),
    (0.8, Work(f"{{The user sends a list. {{Reply|Answer}} with the first item|You name the first item of a list}}{_ONLY}", lambda r: (", ".join(i := _word_items(r, 3, 5)), i[0], ""))),
    (0.8, Work(f"{{The user sends a list. {{Reply|Answer}} with the last item|You name the last item of a list}}{_ONLY}", lambda r: (", ".join(i := _word_items(r, 3, 5)), i[-1], ""))),
    (0.8, Work(f"{{The user sends a list. {{Reply|Answer}} with the number of items|You count the items of a list}}{_ONLY}", lambda r: (", ".join(i := _word_items(r, 2, 6)), str(len(i)), ""))),
]  # fmt: skip
_LEAD = ["", "", "", "", "You are a helpful assistant. ", "You are Ember. ", "You help in an office. ", "You help children. ", "You are a machine. "]  # fmt: skip


def trade_chat(rng: Random) -> Sample:
    """Work given in the system prompt, at times in the first message, and one to three things to do it to."""
    work = rng.choices([w for _, w in WORKS], [s for s, _ in WORKS])[0]
    lead = place(rng) + " " if rng.random() < 0.2 else rng.choice(_LEAD)
    said = lead + write(rng, work.said) + rng.choice([".", ".", "", "!"])
    messages: list[Message] = [say("system", said)]
    keys = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        sent, back, key = work.draw(rng)
        if rng.random() < 0.06 and "\n" not in back:
            sent = f'"{sent}"'
        messages += [say("user", sent), say("assistant", back)]
        keys += [key or f"trade {said} {sent}"]
    held = any(Turn("trade", "", "", key).held_out for key in keys)
    return Sample("form", messages=messages, hint={"held_out": str(int(held))})


# tables for rows of examples: word to word
_ROWS: list[dict[str, str]] = [_OPPOSITES, _OPPOSITES, PLURALS, CAPITALS, SOUNDS, BABIES, {k: v for k, v in COLORS.items() if " " not in k}, LANGUAGES, CONTINENTS, LEGS, ANIMAL_HOMES]  # fmt: skip
# how two facts stand in one sentence: of the first, of the second
_TWINS: list[tuple[dict[str, str], list[str]]] = [
    (SOUNDS, ["A $a says $v, a $b says $w.", "The $a says $v and the $b says $w.", "A $a goes $v and a $b goes $w."]), (BABIES, ["A baby $a is called a $v and a baby $b is called a $w.", "A young $a is a $v, a young $b is a $w."]), (CAPITALS, ["The capital of $a is $v and the capital of $b is $w.", "The capital of $a is $v, and that of $b is $w."]),
    (COLORS, ["$^a is $v, $b is $w.", "$^a is $v, but $b is $w."]), (_OPPOSITES, ["The opposite of $a is $v and the opposite of $b is $w.", "$^a is the opposite of $v, and $b is the opposite of $w."]), (LEGS, ["A $a has $v legs and a $b has $w legs.", "A $a has $v legs, a $b has $w legs."]), (ANIMAL_HOMES, ["A $a lives in a $v and a $b lives in a $w.", "The $a lives in a $v, the $b in a $w."]), (LANGUAGES, ["In $a people speak $v and in $b they speak $w."]), (PLURALS, ["One $a, two $v. One $b, two $w.", "The plural of $a is $v and the plural of $b is $w."]),
]  # fmt: skip
_ASKS: list[tuple[dict[str, str], str]] = [
    (LEGS, "How many legs does a $s have?"), (CAPITALS, "What is the capital of $s?"), (SOUNDS, "What sound does a $s make?"), (BABIES, "What is a baby $s called?"), (COLORS, "What {color|colour} is $s?"), (LANGUAGES, "What language do people speak in $s?"), (_OPPOSITES, "What is the opposite of $s?"), (PLURALS, "What is the plural of $s?"), (CONTINENTS, "On which continent is $s?"), (ANIMAL_HOMES, "Where does a $s live?"),
]  # fmt: skip


def rows_text(rng: Random) -> Sample:
    """Plain text of examples: "hot - cold" and more below, two facts in a sentence, short questions with short answers."""
    draw = rng.random()
    if draw < 0.4:
        table = rng.choice(_ROWS)
        link = rng.choice([" - ", " - ", ": ", " -> ", " = ", " => ", " / ", ", "])
        chosen = rng.sample(list(table), rng.choice((2, 3, 3, 4, 5)))
        text = rng.choice(["\n", "\n", "\n", "; "]).join(f"{k}{link}{table[k]}" for k in chosen)
    elif draw < 0.62:
        table, shapes = rng.choice(_TWINS)
        a, b = rng.sample(list(table), 2)
        text = write(rng, rng.choice(shapes), {"a": a, "b": b, "v": table[a], "w": table[b]})
    elif draw < 0.92:
        table, ask = rng.choice(_ASKS)
        if rng.random() < 0.75:
            pairs = [(table, ask, s) for s in rng.sample(list(table), rng.choice((2, 2, 3, 4)))]
        else:
            pairs = [(t, a, rng.choice(list(t))) for t, a in rng.sample(_ASKS, rng.choice((2, 3)))]
        q, a_ = rng.choice([("Q: ", "A: "), ("Q: ", "A: "), ("Question: ", "Answer: "), ("User: ", "Bot: ")])
        stop = rng.choice(["", ".", "."])
        lines = []
        for each, how, s in pairs:
            value = each[s]
            lines.append(f"{q}{write(rng, how, {'s': s})}\n{a_}{value[0].upper() + value[1:]}{stop}")
        text = "\n".join(lines)
    else:
        words = [rng.choice(lexicon.COMMON) for _ in range(rng.randint(2, 4))]
        text = "\n".join(f"{w} - {w.upper()}" for w in words) if rng.random() < 0.6 else "\n".join(f"{w} - {len(w)} letters" for w in words)  # fmt: skip
    held = Turn("continuation", "", "", f"rows {text}").held_out
    return Sample("continuation", text=text, hint={"held_out": str(int(held))})
