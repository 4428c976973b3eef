# ruff: noqa: E501 - lines of text read better whole
"""Plain text of two facts side by side ("ice is cold and fire is hot"), word pairs in lines, and rows that go on."""

from __future__ import annotations

from random import Random

from .facts import RELATIONS
from .sample import Sample, Turn
from .senses import ABLE, PROPERTIES
from .tasks import DAYS, MONTHS, fact_key, fix_articles, relation_answer
from .words import ADJECTIVES, PLURALS

_ROWS = ["one two three four five six seven eight nine ten eleven twelve", "first second third fourth fifth sixth seventh eighth ninth tenth", "spring summer autumn winter", " ".join(DAYS), " ".join(MONTHS), "morning noon afternoon evening night", "breakfast lunch dinner", "red orange yellow green blue indigo violet", "do re mi fa sol la ti", "north east south west", "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z", "a b c d e f g h i j k l m n o p q r s t u v w x y z", "baby child teenager adult", "Mercury Venus Earth Mars Jupiter Saturn Uranus Neptune", "yesterday today tomorrow", "hundred thousand million", "second minute hour day week month year", "small medium large", "cold warm hot", "good better best", "bad worse worst", "I you he she it we they"]  # fmt: skip


def _up(text: str) -> str:
    return text[0].upper() + text[1:]


def _two_facts(rng: Random) -> tuple[str, list[str]]:
    draw = rng.random()
    link = rng.choice([" and ", " and ", ", and ", ", but ", "; ", " while "])
    if draw < 0.4:
        one, other, ones, others = rng.choice(PROPERTIES)
        if rng.random() < 0.5:
            one, other, ones, others = other, one, others, ones
        return f"{_up(rng.choice(ones))} is {one}{link}{rng.choice(others)} is {other}.", []
    if draw < 0.5:
        verb, can, cannot = rng.choice(ABLE)
        return f"{_up(rng.choice(can))} can {verb}, but {rng.choice(cannot)} cannot.", []
    relation = rng.choice([r for r in RELATIONS if r.name not in ("units", "mix")])
    a, b = rng.sample(list(relation.pairs), 2)
    first, second = relation_answer(relation, a).rstrip("."), relation_answer(relation, b)
    if second.startswith(("A ", "An ", "The ")):
        second = second[0].lower() + second[1:]
    keys = [fact_key(rng.choice(relation.asks).replace("$s", s)) for s in (a, b)]
    return f"{first}{link}{second}", keys


def _lines(rng: Random) -> str:
    arrow = rng.choice([" -> ", " - ", ": ", " = ", " / "])
    draw = rng.random()
    if draw < 0.4:
        table = {w: PLURALS[w] for w in rng.sample(list(PLURALS), rng.choice((3, 4, 5)))}
    elif draw < 0.8:
        table = {w: ADJECTIVES[w] for w in rng.sample(list(ADJECTIVES), rng.choice((3, 4, 5)))}
    else:
        relation = rng.choice([r for r in RELATIONS if r.name in ("capital", "baby", "sound", "color", "language", "continent")])  # fmt: skip
        table = {s: relation.pairs[s] for s in rng.sample(list(relation.pairs), rng.choice((3, 4)))}
    return "\n".join(f"{a}{arrow}{b}" for a, b in table.items())


def pairs_text(rng: Random) -> Sample:
    """One such text."""
    draw = rng.random()
    keys: list[str] = []
    if draw < 0.5:
        text, keys = _two_facts(rng)
        if rng.random() < 0.3:
            more, others = _two_facts(rng)
            text, keys = f"{text} {more}", [*keys, *others]
    elif draw < 0.72:
        text = _lines(rng)
    elif draw < 0.9:
        row = rng.choice(_ROWS).split()
        start = rng.randrange(max(1, len(row) - 3))
        text = rng.choice([", ", ", ", " ", "\n"]).join(row[start : start + rng.randint(3, 12)])
    else:
        step = rng.choice((1, 2, 2, 3, 4, 5, 5, 10, 10, 20, 25, 50, 100, -1, -2, -5, -10))
        first = step * rng.randint(1, 5) if step > 0 else -step * rng.randint(8, 12)
        numbers = [first + i * step for i in range(rng.randint(4, 8))]
        text = rng.choice([", ", ", ", " ", ", "]).join(map(str, numbers))
    text = fix_articles(text)
    held = any(Turn("continuation", "", "", key).held_out for key in [f"pairs {text}", *keys])
    return Sample("continuation", text=text, hint={"held_out": str(int(held))})
