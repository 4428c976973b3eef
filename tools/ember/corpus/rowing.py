# ruff: noqa: E501 - lines of text read better whole
"""Counting up, down and in steps, parts of the alphabet, days two or more away, and which of two measures is more."""

from __future__ import annotations

from random import Random

from .grammar import write
from .sample import Turn
from .tasks import DAYS, MONTHS, fix_articles, in_words
from .typed import typed

_MEASURES = [
    ("long", "longer", "shorter", ["a second", "a minute", "an hour", "a day", "a week", "a month", "a year", "a decade", "a century"]),
    ("long", "longer", "shorter", ["a millimeter", "a centimeter", "a meter", "a kilometer", "a mile"]),
    ("heavy", "heavier", "lighter", ["a gram", "a pound", "a kilogram", "a ton"]),
    ("much", "more", "less", ["a milliliter", "a liter", "a barrel"]),
    ("much", "more", "less", ["one", "a dozen", "a hundred", "a thousand", "a million", "a billion"]),
    ("much", "more", "less", ["a quarter", "a half", "a whole"]),
    ("big", "bigger", "smaller", ["a village", "a town", "a city", "a country", "a continent", "a planet"]),
    ("big", "bigger", "smaller", ["a pea", "a cherry", "an apple", "a melon"]),
    ("big", "bigger", "smaller", ["an ant", "a mouse", "a cat", "a sheep", "a horse", "an elephant", "a whale"]),
    ("fast", "faster", "slower", ["a snail", "a person on foot", "a bicycle", "a car", "a plane", "a rocket"]),
    ("big", "bigger", "smaller", ["a pond", "a lake", "a sea", "an ocean"]),
    ("high", "higher", "lower", ["a chair", "a house", "a tower", "a mountain", "the moon"]),
]  # fmt: skip


def counted(rng: Random) -> Turn:
    """Numbers from one to another, upwards or downwards, at times in steps."""
    step = rng.choice((1, 1, 1, 1, 2, 2, 3, 5, 5, 10, 10))
    count = rng.randint(3, 12)
    low = rng.choice((0, 1, 1, 1, step, rng.randint(1, 40)))
    if step > 1 and rng.random() < 0.8:
        low = step * rng.randint(0, 3)
    high = low + step * (count - 1)
    down = rng.random() < 0.4
    numbers = list(range(low, high + 1, step))
    a, b = (high, low) if down else (low, high)
    numbers = numbers[::-1] if down else numbers
    words = rng.random() < 0.1 and high < 21
    shown = [in_words(n) for n in numbers] if words else [str(n) for n in numbers]
    less = "less" if down else "more"
    by = " " + write(rng, f"{{in steps of {{{step}|{in_words(step)}}}|by {step}s|, always {step} {less}}}") if step > 1 else ""  # fmt: skip
    by = by.replace(" ,", ",")
    back = rng.choice(["", "", " backwards", " downwards", " down"]) if down else ""
    tail = " in words" if words else rng.choice(["", "", ", please", " please", " with commas"])
    x, y = (str(a), str(b)) if high > 99 or rng.random() < 0.8 else (in_words(a), in_words(b))
    ask = write(rng, f"{{count|Count|please count|can you count|Count for me|Say the numbers|Write the numbers|List the numbers|Give me the numbers|numbers}}{back} from {x} to {y}{by}{tail}")  # fmt: skip
    if not down and low in (0, 1) and step == 1 and rng.random() < 0.4:
        ask = write(rng, f"{{count|Count|count up|please count}} to {y}{tail}")
        shown = shown if low else shown[1:]
    ask += "?" if ask.startswith("can") else rng.choice(("", ".", "."))
    return Turn("counting", ask, ", ".join(shown), f"counted {ask.lower()}")


def alphabet(rng: Random) -> Turn:
    """The alphabet or a part of it."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    upper = rng.random() < 0.3
    if rng.random() < 0.4:
        ask = write(rng, "{write|say|give me|list|type|recite|tell me} the {whole |}alphabet{ from a to z|, please|}{.|}")  # fmt: skip
        if upper:
            ask = write(rng, "{write|say|type} the alphabet in {capital letters|capitals|upper case}{.|}")
        chosen = letters
    else:
        i = rng.randrange(20)
        j = rng.randint(i + 2, min(25, i + 9))
        chosen = letters[i : j + 1]
        a, b = (letters[i].upper(), letters[j].upper()) if upper else (letters[i], letters[j])
        ask = write(rng, f"{{write|say|give me|list|name}} the {{letters|alphabet}} from {a} to {b}{{.|, please.|}}")  # fmt: skip
    ask = ask[0].upper() + ask[1:] if rng.random() < 0.7 else ask
    return Turn("counting", ask, ", ".join(chosen.upper() if upper else chosen), f"alphabet {ask.lower()}")


def away(rng: Random) -> Turn:
    """A day or month two or more away from another."""
    names = DAYS if rng.random() < 0.7 else MONTHS
    i = rng.randrange(len(names))
    steps = rng.choice((2, 2, 2, 3, 4, 5))
    back = rng.random() < 0.4
    value = names[(i - steps if back else i + steps) % len(names)]
    unit = "day" if names is DAYS else "month"
    number = in_words(steps) if rng.random() < 0.7 else str(steps)
    if names is DAYS and steps == 2 and rng.random() < 0.6:
        which = "the day before yesterday" if back else "the day after tomorrow"
        ask = write(rng, f"{{if today is {names[i]}, {{what|which}} day {'was' if back else 'is'} {which}|today is {names[i]}. {{what|which}} day {'was' if back else 'is'} {which}|{{what|which}} day {'was it' if back else 'is'} {which} if today is {names[i]}|it's {names[i]}. {which} {'was' if back else 'is'} what day}}?")  # fmt: skip
    else:
        where = "before" if back else "after"
        ask = write(rng, f"{{{{what|which}} {unit} is {number} {unit}s {where} {names[i]}|it is {names[i]}. {{what|which}} {unit} {'was it ' + number + ' ' + unit + 's ago' if back else 'will it be in ' + number + ' ' + unit + 's'}|{number} {unit}s {where} {names[i]} is which {unit}}}?")  # fmt: skip
    row = [names[(i - k if back else i + k) % len(names)] for k in range(steps + 1)]
    ask = ask[0].upper() + ask[1:] if rng.random() < 0.7 else ask
    answer = f"{', '.join(row)}: it {'was' if back else 'is'} {value}."
    return Turn("calendar", ask, answer, f"away {names[i]} {steps} {back}", value)


def measured(rng: Random) -> Turn:
    """Which of two is longer, heavier, more."""
    how, more, less, row = rng.choice(_MEASURES)
    i, j = sorted(rng.sample(range(len(row)), 2))
    small, large = row[i], row[j]
    a, b = rng.sample((small, large), 2)
    big = rng.random() < 0.6
    word = more if big else less
    right, other = (large, small) if big else (small, large)
    if rng.random() < 0.7:
        ask = write(rng, f"{{{{which|what}} is {word}{{, |: }}{a} or {b}|{{which|what}} is {word}: {a} or {b}|is {a} or {b} {word}}}?")  # fmt: skip
        answer = f"{right[0].upper() + right[1:]} is {word} than {other}."
    else:
        ask = f"is {a} {word} than {b}?"
        yes = a == right
        answer = f"{'Yes' if yes else 'No'}, {a} is {word if yes else (less if big else more)} than {b}."
    ask = fix_articles(ask[0].upper() + ask[1:] if rng.random() < 0.6 else ask)
    return Turn("facts", typed(rng, ask) if rng.random() < 0.5 else ask, fix_articles(answer), f"measured {ask.lower()} {how}")  # fmt: skip


def rowing_turn(rng: Random) -> Turn:
    """One of these."""
    return rng.choices((counted, alphabet, away, measured), (4, 1, 3, 3))[0](rng)
