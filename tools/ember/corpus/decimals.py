# ruff: noqa: E501 - lines of text read better whole
"""Numbers with a decimal point: which is larger, in what order, and sums."""

from __future__ import annotations

from random import Random

from .grammar import write
from .sample import Turn
from .typed import typed


def _decimal(rng: Random, whole: int, digits: int) -> str:
    return f"{whole}.{rng.randrange(10**digits):0{digits}}"


def _places(text: str) -> int:
    return len(text.partition(".")[2])


def _padded(text: str, places: int) -> str:
    whole, _, rest = text.partition(".")
    return f"{whole}.{rest:0<{places}}" if places else whole


def _pair(rng: Random) -> tuple[str, str]:
    """Two different numbers, as a rule with the same whole part and as many digits or not."""
    while True:
        whole = rng.choice((0, 0, 1, 2, 3, rng.randrange(10), rng.randrange(100)))
        other = whole if rng.random() < 0.75 else rng.randrange(100)
        a = _decimal(rng, whole, rng.choice((1, 1, 2, 2, 3)))
        b = _decimal(rng, other, rng.choice((1, 1, 2, 2, 3))) if rng.random() < 0.93 else str(other)
        if rng.random() < 0.3:  # one that looks larger by its digits: 9.11 and 9.9
            a, b = f"{whole}.{rng.randint(2, 9)}", f"{whole}.{rng.randint(10, 99)}"
        if float(a) != float(b):
            return (a, b) if rng.random() < 0.5 else (b, a)


def why(a: str, b: str) -> str:
    """What shows the larger of two numbers."""
    left, right = a.partition(".")[0], b.partition(".")[0]
    if left != right:
        more, less = sorted((int(left), int(right)), reverse=True)
        return f"{more} is more than {less}"
    places = max(_places(a), _places(b))
    one, other = _padded(a, places), _padded(b, places)
    high, low = (one, other) if float(one) > float(other) else (other, one)
    same = "" if (one, other) == (a, b) else f"{a} is {one}, and " if one != a else f"{b} is {other}, and "
    return f"{same}{high.partition('.')[2]} is more than {low.partition('.')[2]}"


def compared(rng: Random) -> Turn:
    a, b = _pair(rng)
    high, low = (a, b) if float(a) > float(b) else (b, a)
    env = {"a": a, "b": b}
    draw = rng.random()
    reason = why(a, b)
    reason = reason[0].upper() + reason[1:]
    if draw < 0.5:
        ask = write(
            rng,
            "{Which is|Which one is|What is|Which number is|Which of these is|Which value is} {bigger|larger|greater|higher|more}{,|:| -|,} $a or $b?",
            env,
        )
        if rng.random() < 0.3:
            ask = write(
                rng,
                "{Compare $a and $b.|$a or $b: which is {bigger|larger|more}?|Which is the {larger|bigger|greater} number, $a or $b?|What is {larger|bigger}: $a or $b?|$a and $b: which {one |number |}is {larger|bigger|greater}?|$a vs $b, which is {bigger|larger}?|Tell me the {bigger|larger} of $a and $b.|Between $a and $b, which is {larger|bigger}?}",
                env,
            )
        answer = f"{reason}, so {high} is bigger than {low}."
    elif draw < 0.75:
        ask = write(
            rng,
            "{Which is|Which one is|What is|Which number is} {smaller|less|lower|the smaller one|the smallest}, $a or $b?",
            env,
        )
        answer = f"{reason}, so {low} is smaller than {high}."
    else:
        up = rng.random() < 0.6
        ask = write(
            rng,
            f"{{Is|Is it true that|Is the number}} $a {{{'bigger|larger|greater|more|higher' if up else 'smaller|less|lower'}}} than $b?",
            env,
        )
        ask = ask.replace("true that " + a, f"true that {a} is") if "true" in ask else ask
        yes = (float(a) > float(b)) == up
        answer = f"{reason}, so {'yes' if yes else 'no'}: {a} is {'bigger' if float(a) > float(b) else 'smaller'} than {b}."
    return Turn("arithmetic", typed(rng, ask), answer, f"decimals {low} {high}", None)


def ordered(rng: Random) -> Turn:
    whole = rng.randrange(12)
    numbers: list[str] = []
    while len(numbers) < rng.choice((3, 3, 4)):
        new = _decimal(rng, whole if rng.random() < 0.7 else rng.randrange(12), rng.choice((1, 1, 2)))
        if float(new) not in map(float, numbers):
            numbers.append(new)
    down = rng.random() < 0.3
    ask = write(rng, f"{{Sort|Order|Sort these numbers|Put in order|Arrange}} {{{'from large to small|descending|from largest to smallest' if down else 'from small to large|ascending|from smallest to largest'}}}: $t", {"t": ", ".join(numbers)})  # fmt: skip
    return Turn(
        "sorting", ask, ", ".join(sorted(numbers, key=float, reverse=down)), f"decimals {sorted(numbers)}"
    )


def summed(rng: Random) -> Turn:
    places = rng.choice((1, 1, 1, 2))
    a, b = (rng.randrange(1, rng.choice((20, 100, 100 if places == 1 else 1000))) for _ in range(2))
    op = rng.choice("++-")
    if op == "-" and a < b:
        a, b = b, a
    unit = 10**places

    def shown(number: int) -> str:
        return f"{number // unit}.{number % unit:0{places}}"

    c = a + b if op == "+" else a - b
    env = {"a": shown(a), "b": shown(b), "o": op, "w": "plus" if op == "+" else "minus"}
    ask = write(
        rng,
        "{What is $a $o $b?|$a $o $b|$a $o $b =|What is $a $w $b?|How much is $a $w $b?|Calculate $a $o $b.|$a $w $b|What's $a $o $b?|$a$o$b}",
        env,
    )
    return Turn(
        "arithmetic",
        ask,
        f"{env['a']} {op} {env['b']} = {shown(c)}.",
        f"decimal sum {sorted((a, b))} {op} {places}",
        shown(c),
    )


def decimals(rng: Random) -> Turn:
    return rng.choices((compared, ordered, summed), (10, 1.5, 3))[0](rng)
