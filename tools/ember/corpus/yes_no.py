"""Questions to be answered with yes or no, of which the answer begins with the verdict."""

from __future__ import annotations

from random import Random

from .extras import yes_no
from .grammar import write
from .knowledge import QUIZ
from .sample import Turn


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def parity_question(rng: Random) -> Turn:
    a, b = rng.randint(0, 99), rng.randint(0, 99)
    kind = rng.randrange(3)
    if kind == 0:
        word = rng.choice(("even", "odd"))
        true = (a % 2 == 0) == (word == "even")
        ask, fact_ = f"Is {a} {{|an }}{word}{{| number}}?", f"{a} is {'odd' if a % 2 else 'even'}."
        ask = rng.choice([f"Is {a} {word}?", f"Is {a} an {word} number?"])
    elif kind == 1:
        a, b = (a, b) if a != b else (a, a + 1)
        word = rng.choice(("bigger", "larger", "greater", "more"))
        true = a > b
        ask, fact_ = f"Is {a} {word} than {b}?", f"{a} is {'bigger' if true else 'smaller'} than {b}."
    else:
        a, b = rng.randint(0, 12), rng.randint(0, 12)
        said = a + b if rng.random() < 0.5 else a + b + rng.choice((-2, -1, 1, 2))
        true = said == a + b
        ask, fact_ = f"Is {a} + {b} {{|equal to }}{said}?", f"{a} + {b} = {a + b}."
        ask = rng.choice(
            [f"Is {a} + {b} = {said}?", f"Is {a} plus {b} equal to {said}?", f"Does {a} + {b} make {said}?"]
        )
    return Turn(
        "yes or no", ask, f"{'Yes' if true else 'No'}, {fact_}", f"yes or no {ask}", "yes" if true else "no"
    )


def yes_no_question(rng: Random) -> Turn:
    """A question to be answered with yes or no, of which the answer begins with the verdict."""
    draw = rng.random()
    if draw < 0.35:
        return parity_question(rng)
    if draw < 0.65:
        asks, answer, value = rng.choice([q for q in QUIZ if q[2] in ("yes", "no")])
        ask = _capital(write(rng, "{" + asks + "}")) + "?"
        return Turn("yes or no", ask, answer, f"quiz {ask.lower()}", value)
    turn = yes_no(rng)
    verdict = "yes" if turn.answer.endswith("yes.") else "no"
    statement = turn.answer.rsplit(", so ", 1)[0]
    statement = statement if statement.split()[0] in _PROPER else _lower_article(statement)
    return Turn("yes or no", turn.ask, f"{_capital(verdict)}, {statement}.", turn.key, verdict)


_PROPER = frozenset(w for w in ("People",))


def _lower_article(text: str) -> str:
    first = text.split()[0]
    return text[0].lower() + text[1:] if first in ("A", "An", "The", "People") else text
