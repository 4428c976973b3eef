"""Expressions of numbers between two bounds have those numbers and no others."""

from __future__ import annotations

import json
import random
import re
from decimal import Decimal

import pytest

from akunu.chat.structured.number_ranges import integer_range, number_at_least, number_at_most


def test_integers_are_those_of_the_range() -> None:
    draw = random.Random(1)
    for _ in range(1000):
        size = 10 ** draw.choice([1, 2, 3, 5, 19, 20])
        first, last = sorted(draw.randint(-size, size) for _ in range(2))
        low, high = draw.choice([None, first]), draw.choice([None, last])
        pattern = re.compile(integer_range(low, high))
        near = [end + step for end in (first, last) for step in (-1, 0, 1)]
        for value in [*near, 0, 1, -1, size, draw.randint(first - 5, last + 5)]:
            inside = (low is None or value >= low) and (high is None or value <= high)
            assert bool(pattern.fullmatch(str(value))) == inside, (low, high, value)


@pytest.mark.parametrize("exclusive", [False, True])
def test_numbers_are_those_beyond_the_bound(exclusive: bool) -> None:
    draw = random.Random(2)
    for _ in range(600):
        places, size = draw.choice([0, 1, 3, 5]), draw.choice([0, 1, 3, 18])
        bound = Decimal(draw.randint(-(10 ** (size + places)), 10 ** (size + places))) / 10**places
        least = re.compile(number_at_least(bound, exclusive=exclusive))
        most = re.compile(number_at_most(bound, exclusive=exclusive))
        step = Decimal(1) / 10 ** (places + 1)
        steps = [0, 1, -1, step, -step] + [Decimal(draw.randint(-1000, 1000)) / 10**i for i in range(6)]
        for text in [
            f"{bound + step:f}".replace("-0", "0") if bound + step == 0 else f"{bound + step:f}"
            for step in steps
        ]:
            value = Decimal(text)
            on = value == bound and not exclusive
            assert bool(least.fullmatch(text)) == (value > bound or on), (bound, text)
            assert bool(most.fullmatch(text)) == (value < bound or on), (bound, text)
        for _ in range(20):  # with an exponent: none that is not there
            mantissa, exponent = draw.choice(["1", "-2.5", "9.75"]), draw.choice(["", "-", "+"])
            value = Decimal(text := f"{mantissa}e{exponent}{draw.randint(0, 25)}")
            assert not least.fullmatch(text) or value > bound or (value == bound and not exclusive)
            assert not most.fullmatch(text) or value < bound or (value == bound and not exclusive)


@pytest.mark.parametrize("bound", [1.7976931348623157e308, 3.402823669209385e38, 1e20, 5e-324])
@pytest.mark.parametrize("sign", [1, -1])
def test_bounds_of_number_types_are_numbers_as_json_writes_them(bound: float, sign: int) -> None:
    number = Decimal(repr(sign * bound))
    for pattern in (number_at_least(number), number_at_most(number)):
        assert re.fullmatch(pattern, json.dumps(sign * bound))
        assert len(pattern) < 20_000
