# ruff: noqa: E501 - lines of text read better whole
"""Sums in daily life: what several things cost together, homework to check, and sums among other words."""

from __future__ import annotations

from random import Random

from . import lexicon
from .grammar import write
from .sample import Turn
from .tasks import draw_sum, in_words, plural_of, solve, sum_key
from .typed import around, typed

_MONEY = ["euros", "dollars", "pounds", "coins", "francs"]


def _up(text: str) -> str:
    return text[0].upper() + text[1:]


def bought(rng: Random) -> Turn:
    """One thing and several of another, and what they cost together; or several of one, and some of another."""
    money = rng.choice(_MONEY)
    count = rng.randint(2, 6)
    price, single = rng.randint(2, 12), rng.randint(1, 30)
    total = count * price
    first, (line, value) = solve(count, "*", price)[0], solve(single, "+", total)
    one, many = rng.choice(lexicon.THINGS), rng.choice([*lexicon.THINGS, *lexicon.FOODS])
    words = rng.random() < 0.6
    env = {"one": one, "many": plural_of(many), "c": in_words(count) if words else str(count), "p": str(price), "s": str(single), "z": money, "who": rng.choice(["I", "I", "We", lexicon.anyone(rng), "My mother", "The teacher"])}  # fmt: skip
    text = write(rng, "{$who {bought|paid for|took|ordered|needed} a $one for $s $z and $c $many {for|at} $p $z each|A $one costs $s $z, one of the $many {costs |}$p. $who {bought|took|buys|takes} one $one and $c $many|$who {bought|took} $c $many for $p $z each and a $one for $s $z|The $one is $s $z and each of the $c $many is $p|$c $many at $p $z each, and a $one for $s $z}", env)  # fmt: skip
    ask = write(rng, "{What did {I|we|they} pay {altogether|in total|in all|together|for everything}|How much is {that|it|everything} {together|in total|altogether|in all}|What is the {total|sum}|What does {it|everything} cost{ together|}|How much {money |}{was|is} it{ altogether|}|What {do|must} I pay}?")  # fmt: skip
    answer = f"{first}, {line}. The answer is {value}."
    keys = (sum_key(single, "+", total),)
    return Turn("arithmetic", typed(rng, f"{_up(text)}. {ask}", content=True), answer, sum_key(count, "*", price), value, keys=keys)  # fmt: skip


def paid(rng: Random) -> Turn:
    """Several things of one price, paid with a note: what comes back."""
    money = rng.choice(_MONEY[:3])
    count, price = rng.randint(2, 6), rng.randint(2, 9)
    total = count * price
    note = rng.choice([n for n in (10, 20, 50, 99, 60, 40) if n > total] or [99])
    first, (line, value) = solve(count, "*", price)[0], solve(note, "-", total)
    things = plural_of(rng.choice([*lexicon.THINGS, *lexicon.FOODS]))
    text = write(rng, f"{{I|We|{lexicon.anyone(rng)}}} {{bought|took}} {{{count}|{in_words(count)}}} {things} {{for|at}} {price} {money} each and {{paid with|paid|gave}} {note} {money}. {{How much {{change|money}} is that|How much comes back|What is the change|How much is left}}?")  # fmt: skip
    return Turn("arithmetic", typed(rng, text, content=True), f"{first}, {line}. That leaves {value}.", sum_key(count, "*", price), value, keys=(sum_key(note, "-", total),))  # fmt: skip


_WANTS = "{my {son|daughter|pupil|sister|brother|friend|neighbor|grandson}|a pupil|the child|my class|somebody|a boy in my class|the teacher}"
_AMONG = [
    "{hi|hello|hey}, $w {has|needs|wants} to {do|solve|work out} $s {for homework|for school|for a test|for tomorrow} and I {want to|need to|would like to} {check {the|his|her} {answer|result}|know the {answer|result}|be sure}",
    "$w asks: {what is|how much is} $s?", "$w {wants to know|asks|would like to know|asked me} {what|how much} $s is", "I {am doing|do|sit over} my homework. {One|The} {task|question|problem} is $s. {What is it|What comes out|What do I write}?", "{the homework|the task|the book|the test|question 3} {says|is}: $s. {what is the {answer|result}|what do I write|help, please}?",
    "I {think|believe|got|have} {the answer is |}$x for $s. {What is it really|Is that right? What is $s|Can you work it out}?", "{can you check|could you check|please check} what $s is", "{I forgot|I never know|I always forget|I am not sure} {what|how much} $s is", "{How would you solve|Solve|Please solve} {this|the following|this one}: $s", "{Quick|Mental arithmetic|Math question|Maths|Sum of the day|Number quiz|A little sum}: $s", "{My calculator is broken|I have no calculator|My phone is dead|I can't count today}. {What is|How much is} $s?", "{It's|It is} for {my|a} {bill|shopping list|class|cake|game}: $s{?| = ?|}", "$s, {please|what is that|do you know|and be quick|what is it|can you do that}?", "{If I enter|If I type|When I do} $s, {what do I get|what comes out}?", "the {answer|result} of $s{, please|?| is|}", "$w {got|has} $x for $s. {Is that right|Correct|Is it true}?",
]  # fmt: skip


def among(rng: Random) -> Turn:
    """A sum among words that say who wants to know it and why."""
    a, op, b = draw_sum(rng)
    line, value = solve(a, op, b)
    sign = rng.choice({"+": ["+", "+", "plus", "and"], "-": ["-", "-", "minus"], "*": ["*", "x", "times"], "/": ["/", ":", "divided by"]}[op])  # fmt: skip
    sign = "plus" if sign == "and" else sign
    gap = "" if not sign.isalpha() and " " not in sign and rng.random() < 0.3 else " "
    said = f"{a}{gap}{sign}{gap}{b}"
    template = rng.choice(_AMONG)
    right = rng.random() < 0.5
    guess = value
    if not right and value.isdigit():
        guess = str(max(0, int(value) + rng.choice((-10, -2, -1, 1, 2, 10))))
    if "$x" in template and not value.isdigit():
        return among(rng)
    ask = write(rng, template, {"s": said, "w": write(rng, _WANTS), "x": guess})
    answer = f"{line}."
    if template.startswith("$w {got"):
        answer = f"{'Yes' if guess == value else 'No'}, {line}."
    ask = _up(ask) if rng.random() < 0.7 else ask
    return Turn("arithmetic", typed(rng, ask, True) if rng.random() < 0.15 else ask, answer, sum_key(a, op, b), value)  # fmt: skip


def told_around(rng: Random) -> Turn:
    """A plain sum with a sentence before or after it that has nothing to do with it."""
    a, op, b = draw_sum(rng)
    line, value = solve(a, op, b)
    sign = {"+": "+", "-": "-", "*": rng.choice("*x"), "/": "/"}[op]
    ask = rng.choice([f"What is {a} {sign} {b}?", f"{a} {sign} {b}?", f"How much is {a} {sign} {b}?", f"{a} {sign} {b} = ?", f"Calculate {a} {sign} {b}."])  # fmt: skip
    return Turn("arithmetic", around(rng, ask), f"{line}.", sum_key(a, op, b), value)


def daily_sum(rng: Random) -> Turn:
    """One of these sums."""
    return rng.choices((bought, paid, among, told_around), (3, 1, 5, 2))[0](rng)
