"""Regular expressions of JSON numbers between two bounds, of any size: int64, uint64, float, double."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Final

__all__ = ["ANY_INTEGER", "ANY_NUMBER", "integer_range", "number_at_least", "number_at_most"]

ANY_INTEGER: Final = "-?(?:0|[1-9][0-9]*)"
ANY_NUMBER: Final = rf"{ANY_INTEGER}(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"

_LARGEST_EXPONENT: Final = 307
"""Ten to this power times less than ten is a double."""
_SMALLEST_EXPONENT: Final = 299
"""Ten to minus this power is far from rounding to zero."""
_FRACTION: Final = r"(?:\.[0-9]+)?"
_NOT_ZERO: Final = "[0-9]*[1-9][0-9]*"
_EXPONENT_OF_SMALL: Final = "[eE]-[12]?[0-9]?[0-9]"
_POSITIVE: Final = (
    rf"(?:[1-9][0-9]*{_FRACTION}|0\.{_NOT_ZERO}|[1-9]{_FRACTION}(?:[eE]\+?[0-9]+|{_EXPONENT_OF_SMALL}))"
)
_LARGEST: Final = r"(?:1(?:\.[0-6][0-9]*)?|1\.7976931348623157)[eE]\+?308"
"""Numbers next to the largest double."""


def integer_range(low: int | None, high: int | None) -> str:
    """Integers that are not below `low` and not above `high`; at least one must be."""
    parts = []
    if low is None or low < 0:
        most = None if low is None else -low
        parts.append("-" + _any_of(_natural(1 if high is None or high >= 0 else -high, most)))
    if high is None or high >= 0:
        parts.append(_any_of(_natural(max(low or 0, 0), high)))
    return _any_of(parts)


def number_at_least(low: Decimal, *, exclusive: bool = False) -> str:
    """Numbers that are `low` or more; more only, if it is excluded."""
    if low < 0:
        return _any_of([_not_negative_any(), "-" + _up_to(-low, exclusive)])
    return _from(low, exclusive)


def number_at_most(high: Decimal, *, exclusive: bool = False) -> str:
    """Numbers that are `high` or less; less only, if it is excluded."""
    if high < 0:
        return "-" + _from(-high, exclusive)
    if high == 0:
        return f"-{_POSITIVE}" if exclusive else rf"(?:-{_POSITIVE}|0(?:\.0+)?)"
    return _any_of([f"-{_not_negative_any()}", _up_to(high, exclusive)])


def _not_negative_any() -> str:
    return ANY_NUMBER.removeprefix("-?")


def _from(low: Decimal, exclusive: bool) -> str:
    """Numbers without a sign that are `low` or more."""
    whole, fraction = _digits(low)
    parts = [f"{_short(whole)}{_fraction_from(fraction, exclusive)}"]
    parts.append(_any_of(_natural(whole + _step(whole), None)) + _FRACTION)
    first = len(str(whole))  # this power of ten is larger
    if first <= _LARGEST_EXPONENT:
        exponents = _any_of(_natural(first if low else 0, _LARGEST_EXPONENT))
        parts += [rf"[1-9]{_FRACTION}[eE]\+?0?{exponents}", _LARGEST]
    if not low:
        parts.append(rf"[1-9]{_FRACTION}[eE]-0?{_any_of(_natural(1, _SMALLEST_EXPONENT))}")
    if not exclusive:
        parts.append(_written(low))
    return _any_of(parts)


def _up_to(high: Decimal, exclusive: bool) -> str:
    """Numbers without a sign that are `high`, which is more than 0, or less."""
    whole, fraction = _digits(high)
    parts = [] if whole == 0 else [_any_of(_natural(0, whole - _step(whole))) + _FRACTION]
    if fraction or not exclusive:
        parts.append(f"{_short(whole)}{_fraction_up_to(fraction, exclusive)}")
    last = min(len(str(whole)) - 2, _LARGEST_EXPONENT)
    if last >= 0:
        parts.append(rf"[1-9]{_FRACTION}[eE]\+?0?{_any_of(_natural(0, last))}")
    if whole:
        parts.append(rf"[1-9]{_FRACTION}[eE]-0?{_any_of(_natural(1, _SMALLEST_EXPONENT))}")
    if not exclusive:
        parts.append(_written(high))
    return _any_of(parts)


def _written(number: Decimal) -> str:
    """The number as `json.dumps` writes it."""
    text = json.dumps(float(number)) if math.isfinite(float(number)) else str(int(number))
    return text.replace(".", r"\.").replace("+", r"\+")


def _digits(number: Decimal) -> tuple[int, str]:
    """The part before the point, and the digits after it."""
    whole, _, fraction = f"{number:f}".partition(".")
    return int(whole), fraction.rstrip("0")


def _step(whole: int) -> int:
    """One: the next whole number; beside a bound of more than 25 digits, one that a double tells from it."""
    length = len(str(whole))
    return 1 if length <= 25 else 10 ** (length - 18)


def _short(digits: str | int) -> str:
    """Digits with long runs of one of them counted."""
    return re.sub(r"(.)\1{7,}", lambda run: f"{run[1]}{{{len(run[0])}}}", str(digits))


def _fraction_from(digits: str, exclusive: bool) -> str:
    """Fractions that are 0.`digits` or more."""
    if not digits:
        return rf"\.{_NOT_ZERO}" if exclusive else _FRACTION
    parts = [f"{_short(digits)}{_NOT_ZERO if exclusive else '[0-9]*'}"]
    parts += [
        f"{_short(digits[:i])}{_set(int(digit) + 1, 9)}[0-9]*"
        for i, digit in enumerate(digits)
        if digit != "9"
    ]
    return rf"\.{_any_of(parts)}"


def _fraction_up_to(digits: str, exclusive: bool) -> str:
    """Fractions that are 0.`digits` or less."""
    if not digits:
        return r"(?:\.0+)?"
    parts = [
        f"{_short(digits[:i])}{_set(0, int(digit) - 1)}[0-9]*"
        for i, digit in enumerate(digits)
        if digit != "0"
    ]
    parts += [_short(digits[:i]) for i in range(1, len(digits))]
    if not exclusive:
        parts.append(f"{_short(digits)}0*")
    return rf"(?:\.{_any_of(parts)})?"


def _natural(low: int, high: int | None) -> list[str]:
    """Expressions of the integers between two, neither of them negative."""
    if high is None:
        length = len(str(low))
        return [*_natural(low, 10**length - 1), f"[1-9][0-9]{{{length},}}"]
    if low > high:
        return []
    first, last = len(str(low)), len(str(high))
    if first == last:
        return _same_length(str(low), str(high))
    parts = _same_length(str(low), "9" * first)
    if last - first > 1:
        parts.append(f"[1-9][0-9]{{{first},{last - 2}}}")
    return [*parts, *_same_length("1" + "0" * (last - 1), str(high))]


def _same_length(low: str, high: str) -> list[str]:
    same = next((i for i in range(len(low)) if low[i] != high[i]), len(low))
    if same == len(low):
        return [_short(low)]
    prefix, rest = low[:same], len(low) - same - 1
    first, last = int(low[same]), int(high[same])
    parts = []
    if low[same + 1 :] != "0" * rest:
        parts += [f"{_short(low[: same + 1])}{tail}" for tail in _tails(low[same + 1 :], up=True)]
        first += 1
    if high[same + 1 :] != "9" * rest:
        parts += [f"{_short(high[: same + 1])}{tail}" for tail in _tails(high[same + 1 :], up=False)]
        last -= 1
    if first <= last:
        parts.append(f"{_short(prefix)}{_set(first, last)}{_free(rest)}")
    return parts


def _tails(digits: str, *, up: bool) -> list[str]:
    """Digits of the same number that are not less (`up`) or not more."""
    edge = "9" if up else "0"
    parts = [_short(digits)]
    for i, digit in enumerate(digits):
        if digit != edge:
            span = _set(int(digit) + 1, 9) if up else _set(0, int(digit) - 1)
            parts.append(f"{_short(digits[:i])}{span}{_free(len(digits) - i - 1)}")
    return parts


def _set(first: int, last: int) -> str:
    return str(first) if first == last else f"[{first}-{last}]"


def _free(count: int) -> str:
    return f"[0-9]{{{count}}}" if count else ""


def _any_of(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"
