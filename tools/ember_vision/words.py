# ruff: noqa: SIM905 - word lists read better whole
"""What is printed on pictures: words, sentences, numbers, prices, dates, codes."""

from __future__ import annotations

from random import Random

from tools.ember_speech.lexicon import ADJECTIVES, ADVERBS, MASS_NOUNS, NOUNS, PAST, THIRD, plural

_ADJECTIVES, _ADVERBS, _MASS, SINGULAR = (
    words.split() if isinstance(words, str) else list(words)
    for words in (ADJECTIVES, ADVERBS, MASS_NOUNS, NOUNS)
)
_VERBS = sorted({*PAST.values(), *THIRD.values()})
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MARKS = ".,;:!?-'\"()/&%+*#@$=_"
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_STARTS = "b c d f g h j k l m n p r s t v w z br cl dr fl gr kl pr qu sh sp st th tr wh".split()
_MIDDLES = "a e i o u ai ea ee oo ou y".split()
_ENDS = ["", "", *"b ck d g l ll m n nd ng p r rt s st t x".split()]
ITEMS = (
    "tea coffee bread butter milk cheese eggs rice soup salad apples pears bananas grapes tomatoes onions "
    "carrots potatoes pasta pizza chicken fish ham honey jam juice water cola lemonade cake cookies muffin "
    "bagel sugar salt pepper oil flour soap towels paper pens notebook batteries candles flowers yoghurt "
    "chocolate crisps nuts beans corn peas noodles sandwich wrap burger fries toast"
).split()
NAMES = (
    "Anna Ben Carla David Emma Felix Grace Henry Ida Jack Kim Leo Mia Noah Olga Paul Rosa Sam Tina Umar Vera "
    "Will Yara Zoe"
).split()


def invented(rng: Random) -> str:
    """A word that is none."""
    return "".join(
        rng.choice(_STARTS) + rng.choice(_MIDDLES) + rng.choice(_ENDS)
        for _ in range(rng.choice((1, 2, 2, 3)))
    )


def noun(rng: Random) -> str:
    """A thing, one or some."""
    word = rng.choice(SINGULAR)
    return plural(word) if rng.random() < 0.3 else word


def word(rng: Random) -> str:
    """Any word, in any case."""
    kind = rng.random()
    found = (
        noun(rng)
        if kind < 0.35
        else rng.choice((_ADJECTIVES, _ADVERBS, _VERBS, _MASS)[rng.randrange(4)])
        if kind < 0.65
        else invented(rng)
    )
    return _cased(rng, found)


def _cased(rng: Random, text: str) -> str:
    kind = rng.random()
    return text if kind < 0.55 else text.capitalize() if kind < 0.8 else text.upper()


def digits(rng: Random, n: int) -> str:
    return "".join(rng.choice("0123456789") for _ in range(n))


def price(rng: Random, most: int = 100) -> str:
    """An amount of money, without its unit."""
    return f"{rng.randrange(most)}.{rng.choice((digits(rng, 2), '99', '50', '00', '95'))}"


def date(rng: Random) -> str:
    day, month, year = rng.randint(1, 28), rng.randint(1, 12), rng.randint(1950, 2049)
    return rng.choice(
        (f"{year}-{month:02}-{day:02}", f"{day:02}/{month:02}/{year}", f"{day} {MONTHS[month - 1]} {year}")
    )


def number(rng: Random) -> str:
    """A number or something of numbers."""
    kind = rng.randrange(7)
    if kind == 0:
        return str(rng.randrange(100))
    if kind == 1:
        return digits(rng, rng.randint(1, 9))
    if kind == 2:
        return rng.choice(("$", "", "")) + price(rng, 1000)
    if kind == 3:
        return date(rng)
    if kind == 4:
        return f"{rng.randrange(24)}:{rng.randrange(60):02}"
    if kind == 5:
        return f"{rng.randrange(1000)}%"
    return f"{rng.randrange(1, 1000):,}" if rng.random() < 0.5 else f"{rng.randrange(1000, 10**6):,}"


def code(rng: Random) -> str:
    """Letters, digits and marks without a meaning."""
    kind = rng.random()
    if kind < 0.5:
        letters = _LETTERS.upper() + "0123456789"
    elif kind < 0.8:
        letters = _LETTERS + _LETTERS.upper() + "0123456789"
    else:
        letters = _LETTERS + _LETTERS.upper() + "0123456789" + _MARKS
    text = "".join(rng.choice(letters) for _ in range(rng.randint(2, 9)))
    return f"{text}-{digits(rng, 3)}" if rng.random() < 0.2 else text


def _piece(rng: Random) -> str:
    kind = rng.random()
    found = word(rng) if kind < 0.78 else number(rng) if kind < 0.9 else code(rng)
    return found + (rng.choice(",.!?:;") if rng.random() < 0.12 else "")


def sentence(rng: Random) -> str:
    """A sentence of common words."""
    subject = (
        f"{rng.choice(('The', 'A', 'My', 'Our', 'This'))} {rng.choice(_ADJECTIVES)} {rng.choice(SINGULAR)}"
    )
    if rng.random() < 0.3:
        subject = rng.choice(NAMES)
    text = f"{subject} {rng.choice(_VERBS)} the {rng.choice(SINGULAR)}"
    if rng.random() < 0.4:
        text += f" {rng.choice(('in', 'on', 'near', 'with', 'and', 'at', 'for'))} {noun(rng)}"
    return text + rng.choice("...!?")


def line(rng: Random, most: int) -> str:
    """A line of at most so many characters."""
    kind = rng.random()
    if kind < 0.3:
        text = sentence(rng)
    elif kind < 0.85:
        text = " ".join(_piece(rng) for _ in range(rng.choice((1, 1, 2, 2, 3, 3, 4, 5, 6))))
    elif kind < 0.94:
        text = number(rng)
    else:
        text = code(rng)
    while len(text) > most and " " in text:
        text = text.rsplit(" ", 1)[0]
    return text[:most].strip()
