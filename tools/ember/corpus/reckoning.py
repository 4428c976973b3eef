# ruff: noqa: E501 - lines of text read better whole
"""Sums in two steps, parts of a number in percent and fractions, change and dozens, in half a sentence."""

from __future__ import annotations

from random import Random

from .grammar import write
from .sample import Turn
from .scene_words import Scene
from .tasks import in_words, solve, sum_key
from .typed import typed

_PARTS = {50: ("half", 2), 25: ("a quarter", 4), 20: ("a fifth", 5), 10: ("a tenth", 10)}
_OPS = {"+": ["plus", "+", "and then plus"], "-": ["minus", "-", "and then minus"], "*": ["times", "*", "x"]}


def _turn(rng: Random, ask: str, answer: str, keys: list[str], value: int) -> Turn:
    asked = typed(rng, ask) if rng.random() < 0.4 else ask
    return Turn("arithmetic", asked, answer, keys[0], str(value), tuple(keys[1:]))


def percent(rng: Random) -> Turn:
    """A share of a number in percent, with the division that it is."""
    share = rng.choice((50, 25, 25, 20, 10, 10))
    name, by = _PARTS[share]
    result = rng.randint(1, 99 // by)
    whole = result * by
    ask = write(
        rng,
        f"{{what's|what is|how much is|how many are|calculate|tell me|}} {share}{{%| percent}} of {whole}{{?| please|}}",
    )
    line, _ = solve(whole, "/", by)
    line = line.rsplit("so ", 1)[-1]
    return _turn(rng, ask.strip(), f"{share} percent is {name}: {line}.", [sum_key(whole, "/", by)], result)


def chain(rng: Random) -> Turn:
    """Two operations in a row: a product and more or less, or sums."""
    first = rng.choice("*+-")
    a, b = (
        (rng.randint(2, 10), rng.randint(2, 9)) if first == "*" else (rng.randint(5, 60), rng.randint(1, 30))
    )
    if first == "-" and b > a:
        a, b = b, a
    middle = {"*": a * b, "+": a + b, "-": a - b}[first]
    second = "+" if middle < 12 else rng.choice("+-")
    c = rng.randint(1, max(1, min(30, middle if second == "-" else 99 - middle if middle < 90 else 9)))
    result = middle + c if second == "+" else middle - c
    words = rng.random() < 0.5
    one, two = (rng.choice(_OPS[first][:1]), rng.choice(_OPS[second])) if words else (first, second)
    ask = write(rng, f"{{what's|what is|how much is|calculate|}} {a} {one} {b} {two} {c}{{?|{'' if words else ' = ?'}|}}").strip()  # fmt: skip
    return _turn(rng, ask, f"{a} {first} {b} {second} {c} = {middle} {second} {c} = {result}.", [sum_key(a, first, b), sum_key(middle, second, c)], result)  # fmt: skip


def everyday(rng: Random) -> Turn:
    """A sum of daily life in one or two sentences."""
    scene = Scene(rng)
    kind = rng.randrange(7)
    cur = scene["cur"]
    if kind == 0:
        paid = rng.choice((10, 20, 50))
        cost = rng.randint(1, paid - 1)
        ask = write(rng, f"{{how much change do I get {{from|back from|for}} {paid} {cur} if {{I pay|it costs|the bill is}} {cost}?|I {{pay|paid}} with {paid} {cur}, it {{costs|cost}} {cost}. {{What is my change|How much do I get back|What do I get back}}?|the bill is {cost} {cur}, I give {paid}. change?}}")  # fmt: skip
        return _turn(rng, ask, f"{paid} - {cost} = {paid - cost}. You get {paid - cost} back.", [sum_key(paid, "-", cost)], paid - cost)  # fmt: skip
    if kind == 1:
        rows, seats = rng.randint(2, 12), rng.randint(2, 9)
        what = rng.choice(["bus", "room", "hall", "cinema", "plane", "box", "shelf", "garden", "sheet"])
        thing = {"box": "eggs", "shelf": "books", "garden": "trees", "sheet": "stamps"}.get(what, "seats")
        ask = write(rng, f"{{A|The}} {what} has {rows} rows {{with|of}} {seats} {thing} each. {{How many {thing} are there|How many {thing} is that|How many {thing} has it in all|How many {thing} in total}}?")  # fmt: skip
        return _turn(rng, ask, f"{rows} * {seats} = {rows * seats}. There are {rows * seats}.", [sum_key(rows, "*", seats)], rows * seats)  # fmt: skip
    if kind == 2:
        people, each = rng.randint(2, 9), rng.randint(2, 10)
        total = people * each
        what = rng.choice([scene["fruits"], "sweets", "biscuits", "coins", "stickers", "cards", "marbles"])
        who = rng.choice(["friends", "children", "people", "sisters", "players", "cousins"])
        shown = in_words(people) if rng.random() < 0.5 else str(people)
        ask = write(rng, f"{{{shown} {who} share {total} {what}. How many does each {{one |}}get?|{total} {what} for {shown} {who}: how many {{each|for each|does each get}}?|Share {total} {what} among {shown} {who}. How many are that for each?|{scene['name']} gives {total} {what} to {shown} {who}, the same to each. How many {{does each get|is that each}}?}}")  # fmt: skip
        line, _ = solve(total, "/", people)
        return _turn(rng, ask[0].upper() + ask[1:], f"{line}. Each gets {each}.", [sum_key(total, "/", people)], each)  # fmt: skip
    if kind == 3:
        count = rng.randint(2, 8)
        shown = in_words(count) if rng.random() < 0.6 else str(count)
        ask = write(rng, f"{{how many {{eggs|things|pieces|rolls|roses}} are {shown} dozen?|{shown} dozen {{eggs|roses|rolls}} are how many?|{shown} dozen is how many?|what is {shown} dozen in numbers?}}")  # fmt: skip
        return _turn(rng, ask, f"{count} * 12 = {count * 12}.", [sum_key(count, "*", 12)], count * 12)
    if kind == 4:
        age, more = rng.randint(3, 60), rng.randint(1, 20)
        older = rng.random() < 0.6 or age <= more
        result = age + more if older else age - more
        op = "+" if older else "-"
        ask = write(rng, f"{{{scene['name']} is {age}{{ years old|}}. {{{scene['name2']}|Her brother|His sister|A friend}} is {more} years {'older' if older else 'younger'}. How old is {{that one|the other|he or she|the other one}}?|I am {age}, my {scene['kin']} is {more} years {'older' if older else 'younger'}. How old is my {scene['kin']}?}}")  # fmt: skip
        return _turn(rng, ask, f"{age} {op} {more} = {result}. The answer is {result}.", [sum_key(age, op, more)], result)  # fmt: skip
    if kind == 5:
        have, spend = rng.randint(20, 99), rng.randint(1, 19)
        ask = write(rng, f"{{I have {have} {cur} and spend {spend}. {{How much is left|What is left|How much do I have then}}?|{scene['name']} had {have} {scene['fruits']} and {{ate|sold|gave away|lost}} {spend}. {{How many are left|How many remain}}?|{have} {{people|birds|cars}} are there, {spend} leave. How many stay?}}")  # fmt: skip
        return _turn(rng, ask, f"{have} - {spend} = {have - spend}. That leaves {have - spend}.", [sum_key(have, "-", spend)], have - spend)  # fmt: skip
    price, number, other = rng.randint(2, 9), rng.randint(2, 6), rng.randint(1, 9)
    total = price * number
    ask = write(rng, f"{{I bought|{scene['name']} buys|We need}} {{{in_words(number)}|{number}}} {scene['goods2']} packs for {price} {cur} each and {{a|one}} {scene['thing']} for {other}{{ {cur}|}}. {{What is the total|How much is it altogether|What do we pay|How much is that}}?")  # fmt: skip
    return _turn(rng, ask, f"{number} * {price} + {other} = {total} + {other} = {total + other}.", [sum_key(number, "*", price), sum_key(total, "+", other)], total + other)  # fmt: skip


def reckoning_turn(rng: Random) -> Turn:
    """One of these."""
    return rng.choices((percent, chain, everyday), (2, 3, 6))[0](rng)
