"""Numbers as they are written and as they are said: ``written~said``, with ``_`` between words said."""

from __future__ import annotations

from random import Random

from tools.ember_speech.lexicon import MONTHS

_SMALL = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen""".split()  # noqa: SIM905
_TENS = ["_", "_", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_ORDINALS = """zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth
    thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth""".split()  # noqa: SIM905
WRITTEN_AS_WORDS = 12  # and less: as printers do


def said(n: int, sep: str = "_") -> str:
    """A whole number below a million in words."""
    if n < 20:
        return _SMALL[n]
    if n < 100:
        return _TENS[n // 10] + (sep + _SMALL[n % 10] if n % 10 else "")
    if n < 1000:
        rest = n % 100
        return said(n // 100, sep) + sep + "hundred" + (f"{sep}and{sep}{said(rest, sep)}" if rest else "")
    rest = n % 1000
    joint = f"{sep}and{sep}" if rest < 100 else sep
    return said(n // 1000, sep) + sep + "thousand" + (joint + said(rest, sep) if rest else "")


def count(n: int) -> str:
    """A number of things: in words up to twelve, then in digits."""
    return said(n) if n <= WRITTEN_AS_WORDS else f"{n:,}~{said(n)}" if n >= 10_000 else f"{n}~{said(n)}"


def ordinal(n: int) -> str:
    """A day of a month."""
    ending = "th" if n in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    spoken = _ORDINALS[n] if n < 20 else _TENS[n // 10] + ("_" + _ORDINALS[n % 10] if n % 10 else "")
    spoken = {20: "twentieth", 30: "thirtieth"}.get(n, spoken)
    return f"{n}{ending}~{spoken}"


def year(n: int) -> str:
    """1100 to 2099."""
    high, low = divmod(n, 100)
    if 2000 <= n < 2010:
        spoken = "two_thousand" + (f"_and_{said(low)}" if low else "")
    elif not low:
        spoken = f"{said(high)}_hundred"
    else:
        spoken = f"{said(high)}_{'oh_' if low < 10 else ''}{said(low)}"
    return f"{n}~{spoken}"


def clock(rng: Random) -> str:
    """A time of day."""
    hour = rng.randrange(1, 13)
    minute = rng.choice((0, 5, 10, 15, 20, 25, 30, 30, 35, 40, 45, 50, 55, rng.randrange(1, 60)))
    if not minute:
        return f"{said(hour)} o'clock"
    spoken = f"{said(hour)}_{'oh_' if minute < 10 else ''}{said(minute)}"
    half = rng.choice(("", "", " in the morning", " in the evening", " a.m.~ay_em", " p.m.~pee_em"))
    return f"{hour}:{minute:02}~{spoken}{half}"


def money(rng: Random) -> str:
    """A price in dollars."""
    dollars = rng.choice((rng.randrange(1, 100), rng.randrange(1, 20), rng.randrange(100, 1000)))
    if rng.random() < 0.5:
        return f"${dollars}~{said(dollars)}_dollar{'s' if dollars > 1 else ''}"
    cents = rng.choice((10, 20, 25, 30, 40, 50, 60, 75, 80, 90, 95, 99))
    return f"${dollars}.{cents}~{said(dollars)}_dollar{'s' if dollars > 1 else ''}_{said(cents)}"


def quantity(rng: Random) -> str:
    """A number of things, small ones more often."""
    return count(rng.choice((rng.randrange(2, 13), rng.randrange(13, 100), rng.randrange(13, 100), big(rng))))


def big(rng: Random) -> int:
    """A number of three to six digits, often a round one."""
    step = rng.choice((1, 1, 10, 50, 100, 1000))
    return max(step * rng.randrange(1, 1000), 101)


def decimal(rng: Random) -> str:
    """One figure after the point."""
    whole, tenth = rng.randrange(0, 100), rng.randrange(1, 10)
    return f"{whole}.{tenth}~{said(whole)}_point_{said(tenth)}"


def percent(rng: Random) -> str:
    """A share."""
    n = rng.randrange(1, 101)
    return f"{n}%~{said(n)}_percent"


def digits(rng: Random) -> str:
    """A telephone number or a code, digit by digit, in groups of three and four."""
    groups = [
        [rng.randrange(10) for _ in range(size)] for size in rng.choice(((3, 4), (4,), (3, 3), (3, 3, 4)))
    ]
    words = ["_".join(said(digit) for digit in group) for group in groups]
    return "-".join("".join(map(str, group)) for group in groups) + "~" + ",_".join(words)


def date(rng: Random) -> str:
    """A day of a year, with or without the year."""
    month, day = rng.choice(MONTHS), ordinal(rng.randrange(1, 32))
    when = f", {some_year(rng)}" if rng.random() < 0.3 else ""
    return f"the {day} of {month}" if rng.random() < 0.35 else f"{month} {day}{when}"


def some_year(rng: Random) -> str:
    """A year of which people speak."""
    return year(rng.choice((rng.randrange(1900, 2000), rng.randrange(2000, 2040), rng.randrange(1100, 1900))))
