"""Pictures of printed text: lines, signs on shapes, receipts, charts; and what is asked about them."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from random import Random

from tools.ember_vision import words
from tools.ember_vision.scene import CELL, COLOUR_NAMES, COLOURS, Asked, Scene, luminance, near, papers
from tools.ember_vision.shapes import Thing, article, paint

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


def _read(rng: Random) -> str:
    return rng.choice(
        (
            "Read the text.",
            "Read the text.",
            "What does it say?",
            "What is written here?",
            "Read this.",
            "What is the text?",
            "Transcribe the text.",
        )
    )


def _what(rng: Random) -> str:
    return rng.choice(
        (
            "What is this?",
            "What is in the picture?",
            "What do you see?",
            "Describe the picture.",
            "What is in this image?",
        )
    )


def _fitting(scene: Scene, size: float, width: float, make: Callable[[int], str]) -> tuple[str, object]:
    """A text that is no wider than `width`, and a font of about this size for it."""
    font = scene.font(size)
    letter = max(1.0, scene.measure("nost", font)[0] / 4)
    text = make(max(1, int(width / letter)))
    while text and scene.measure(text, font)[0] > width:
        text = text[: int(len(text) * width / scene.measure(text, font)[0] * 0.98)].strip()
    return text, font


def draw_lines(scene: Scene) -> None:
    """One to eight lines, of one font."""
    rng = scene.rng
    paper, ink, colour = papers(rng)
    scene.pen.rectangle((0, 0, *scene.image.size), paper)
    most = max(1, min(8, scene.height // 22))
    count = 1 if rng.random() < 0.35 else rng.randint(1, most)
    step = scene.height / count
    size = (
        min(rng.uniform(11, 40), 0.86 * step, 64)
        if rng.random() < 0.8
        else min(0.86 * step, rng.uniform(11, 90))
    )
    size = max(size, 10)
    texts: list[str] = []
    y = rng.uniform(0, max(0.0, scene.height - count * size * 1.25))
    _, font = _fitting(scene, size, scene.width - 6, lambda n: "n" * n)
    gap = rng.uniform(0, max(0.0, (scene.height - y) / count - size * 1.25))
    left = rng.uniform(2, 14)
    how = rng.choice(("left", "left", "left", "centre", "any"))
    budget = 130
    for _ in range(count):
        letter = max(1.0, scene.measure("nost", font)[0] / 4)
        text = words.line(rng, min(int((scene.width - left) / letter), budget))
        while text and scene.measure(text, font)[0] > scene.width - left - 2:
            text = text[:-1].strip()
        if not text:
            break
        wide, tall = scene.measure(text, font)
        if y + 0.8 * tall > scene.height:
            break
        free = scene.width - wide - 2
        x = left if how == "left" else free / 2 if how == "centre" else rng.uniform(2, max(2.0, free))
        scene.write(x, y, text, font, ink)
        texts.append(text)
        budget -= len(text) + 1
        y += tall + gap
    if texts:
        scene.asked += _of_lines(rng, texts, colour)


def _of_lines(rng: Random, texts: list[str], colour: str) -> list[Asked]:
    whole = "\n".join(texts)
    asked: list[Asked] = [(_read(rng), whole)]
    if len(texts) == 1:
        asked.append((_what(rng), f'the text "{whole}"'))
    else:
        asked.append((_what(rng), f"{len(texts)} lines of text"))
        asked.append(
            (rng.choice(("How many lines are there?", "How many lines of text are there?")), str(len(texts)))
        )
        for n in rng.sample(range(len(texts)), min(3, len(texts))):
            asked.append((rng.choice((f"Read line {n + 1}.", f"What is the {_ORDINALS[n]} line?")), texts[n]))
        asked.append((rng.choice(("What is the last line?", "Read the last line.")), texts[-1]))
    asked.append((rng.choice(("What colour is the text?", "In what colour is it written?")), colour))
    pieces = texts[0].split()
    if 1 < len(pieces) < 8:
        asked.append((rng.choice(("What is the first word?", "Read the first word.")), pieces[0]))
        asked.append(
            (
                "How many words are in the first line?" if len(texts) > 1 else "How many words are there?",
                str(len(pieces)),
            )
        )
    return asked


def draw_signs(scene: Scene) -> None:
    """One to four shapes with a word or a number on or below each."""
    rng = scene.rng
    scene.pen.rectangle(
        (0, 0, *scene.image.size), (255, 255, 255) if rng.random() < 0.6 else near(rng, "grey")
    )
    wide = scene.width >= scene.height
    most = max(1, min(4, (scene.width if wide else scene.height) // 72))
    count = rng.randint(1, most)
    step = (scene.width if wide else scene.height) / count
    across = step if wide else scene.width
    down = scene.height if wide else step
    size = 0.46 * min(across, down)
    colours = rng.sample([c for c in COLOUR_NAMES if c not in ("white", "grey")], count)
    signs: list[tuple[Thing, str]] = []
    for n, colour in enumerate(colours):
        x, y = ((n + 0.5) * step, scene.height / 2) if wide else (scene.width / 2, (n + 0.5) * step)
        thing = Thing(rng.choice(("circle", "square", "hexagon", "square")), colour, x, y, size)
        paint(scene, thing)
        make = rng.choice((words.word, words.word, words.number, words.code))
        text, font = _fitting(
            scene, rng.uniform(0.3, 0.8) * size + 6, 1.6 * size, lambda n, make=make: make(rng)[:n]
        )
        if not text:
            continue
        w, h = scene.measure(text, font)
        light = luminance(COLOURS[colour]) < 140
        scene.write(x - w / 2, y - h / 2, text, font, (255, 255, 255) if light else (0, 0, 0))
        signs.append((thing, text))
    for thing, text in signs:
        scene.asked.append(
            (
                rng.choice((f"What is written on the {thing.name}?", f"Read the text on the {thing.name}.")),
                text,
            )
        )
        scene.asked.append(
            (
                f'Where does it say "{text}"?' if len(text) > 1 else f'What says "{text}"?',
                f"on the {thing.name}",
            )
        )
        scene.asked.append((f'On what is "{text}" written?', article(thing.name)))
    if len(signs) == 1:
        thing, text = signs[0]
        scene.asked += [(_read(rng), text), (_what(rng), f'{article(thing.name)} with the text "{text}"')]
    elif signs:
        scene.asked += [
            (_read(rng), "\n".join(text for _, text in signs)),
            (_what(rng), f"{len(signs)} signs"),
        ]


def _shop(rng: Random) -> str:
    owner = rng.choice((words.invented(rng), f"{rng.choice(words.NAMES)}'s", rng.choice(words.SINGULAR)))
    kind = rng.choice(("Cafe", "Shop", "Market", "Store", "Bakery", "Deli", "Bar"))
    return f"{owner[0].upper()}{owner[1:]} {kind}"


def draw_receipt(scene: Scene) -> None:
    """A shop's name, things with prices, and the total."""
    rng = scene.rng
    scene.pen.rectangle((0, 0, *scene.image.size), (rng.randint(235, 255),) * 3)
    size = rng.uniform(12, 18)
    font = scene.font(size)
    tall = scene.measure("Ag", font)[1]
    shop = _shop(rng)
    day = words.date(rng) if rng.random() < 0.7 else ""
    count = rng.randint(1, max(1, min(7, int((scene.height - 4.6 * tall) / tall))))
    unit = rng.choice(("", "", "$"))
    goods = rng.sample(words.ITEMS, count)
    cents = [rng.randrange(20, 3000) for _ in goods]
    prices = [f"{unit}{n // 100}.{n % 100:02}" for n in cents]
    total = f"{unit}{sum(cents) // 100}.{sum(cents) % 100:02}"
    ink = (rng.randint(0, 60),) * 3
    edge = rng.uniform(4, 18)
    y = rng.uniform(1, 8)

    def row(left: str, right: str = "") -> None:
        nonlocal y
        scene.write(edge, y, left, font, ink)
        if right:
            scene.write(scene.width - edge - scene.measure(right, font)[0], y, right, font, ink)
        y += tall

    wide = scene.measure(shop, font)[0]
    scene.write((scene.width - wide) / 2, y, shop, font, ink)
    y += tall * 1.3
    if day:
        row(day)
    for name, amount in zip(goods, prices, strict=True):
        row(name.capitalize(), amount)
    if rng.random() < 0.5:
        at = y * scene.scale
        scene.pen.line((edge * scene.scale, at, (scene.width - edge) * scene.scale, at), ink)
    y += 0.2 * tall
    row(rng.choice(("Total", "TOTAL", "Total:", "Sum")), total)
    asked = scene.asked
    asked += [
        (rng.choice(("What is the total?", "How much is the total?", "What is the sum?")), total),
        (rng.choice(("What is the total?", "How much does it cost in all?", "How much was paid?")), total),
        (
            rng.choice(("What is the name of the shop?", "Which shop is it?", "Where is the receipt from?")),
            shop,
        ),
        (rng.choice(("How many items are on the receipt?", "How many things were bought?")), str(count)),
        (_what(rng), f"a receipt from {shop}"),
    ]
    if day:
        asked.append((rng.choice(("What is the date?", "What is the date on the receipt?")), day))
    for n in rng.sample(range(count), min(3, count)):
        asked.append(
            (rng.choice((f"How much is the {goods[n]}?", f"What is the price of the {goods[n]}?")), prices[n])
        )
    n = rng.randrange(count)
    asked.append(
        (
            f"What costs {prices[n]}?" if cents.count(cents[n]) == 1 else "What is the first item?",
            goods[n if cents.count(cents[n]) == 1 else 0],
        )
    )
    top = max(cents)
    if cents.count(top) == 1 and count > 1:
        asked.append(("What is the most expensive item?", goods[cents.index(top)]))


def draw_chart(scene: Scene) -> None:
    """Bars, a line or parts of a circle, with their names and values."""
    (_bars if scene.rng.random() < 0.75 else _pie)(scene)


def _labels(rng: Random, count: int) -> list[str]:
    kind = rng.randrange(4)
    if kind == 0:
        return [chr(65 + n) for n in range(count)]
    if kind == 1:
        return rng.sample(words.NAMES, count)
    if kind == 2:
        first = rng.randint(1980, 2040)
        return [str(first + n) for n in range(count)]
    return words.MONTHS[:count]


def closest(values: list[int]) -> int:
    """The least difference between two of them."""
    ordered = sorted(values)
    return min(b - a for a, b in pairwise(ordered))


def _bars(scene: Scene) -> None:
    rng, s = scene.rng, scene.scale
    scene.pen.rectangle((0, 0, *scene.image.size), (255, 255, 255))
    count = rng.randint(2, max(2, min(7, scene.width // 42)))
    labels = _labels(rng, count)
    values = rng.sample(range(2, rng.choice((10, 20, 100))), min(count, 8))
    count = len(values)
    labels = labels[:count]
    step = (scene.width - 12) / count
    size = min(15.0, 0.42 * step)
    font = scene.font(max(11, size))
    tall = scene.measure("0", font)[1]
    base, top = scene.height - tall - 3, tall + 4
    shown = rng.random() < 0.8
    while not shown and closest(values) * (base - top) < 5 * max(values):  # bars that nobody could compare
        values = rng.sample(range(2, 100), count)
    one_colour = rng.choice(COLOUR_NAMES[:8]) if rng.random() < 0.5 else ""
    colours = [one_colour or rng.choice([c for c in COLOUR_NAMES if c != "white"]) for _ in values]
    thick = step * rng.uniform(0.45, 0.8)
    for n, value in enumerate(values):
        middle = 6 + (n + 0.5) * step
        high = (base - top) * value / max(values)
        box = (middle - thick / 2) * s, (base - high) * s, (middle + thick / 2) * s, base * s
        scene.pen.rectangle(box, near(rng, colours[n]))
        for text, y in ((labels[n], base + 1), (str(value) if shown else "", base - high - tall)):
            scene.write(middle - scene.measure(text, font)[0] / 2, y, text, font, (0, 0, 0))
    scene.pen.line((6 * s, base * s, (scene.width - 6) * s, base * s), (0, 0, 0))
    asked = scene.asked
    asked += [
        (_what(rng), f"a bar chart with {count} bars"),
        (
            rng.choice(("How many bars are there?", "How many bars does the chart have?", "Count the bars.")),
            str(count),
        ),
        (
            rng.choice(("Which bar is the tallest?", "What has the highest value?", "Which is the largest?")),
            labels[values.index(max(values))],
        ),
        (
            rng.choice(
                ("Which bar is the shortest?", "What has the lowest value?", "Which is the smallest?")
            ),
            labels[values.index(min(values))],
        ),
        (rng.choice(("What kind of chart is this?", "What type of chart is it?")), "a bar chart"),
    ]
    for n in rng.sample(range(count), min(3, count)):
        if shown:
            asked.append(
                (
                    rng.choice((f"What is the value of {labels[n]}?", f"How much is {labels[n]}?")),
                    str(values[n]),
                )
            )
        asked.append((f"What colour is the bar of {labels[n]}?", colours[n]))
    one, other = rng.sample(range(count), 2)
    asked.append(
        (f"Is {labels[one]} larger than {labels[other]}?", "yes" if values[one] > values[other] else "no")
    )


def _pie(scene: Scene) -> None:
    rng, s = scene.rng, scene.scale
    scene.pen.rectangle((0, 0, *scene.image.size), (255, 255, 255))
    count = rng.randint(2, 5)
    colours = rng.sample([c for c in COLOUR_NAMES if c != "white"], count)
    shares = [rng.uniform(0.5, 3) for _ in colours]
    total = sum(shares)
    labels = _labels(rng, count)
    r = 0.36 * min(scene.width, scene.height)
    x, y = scene.width / 2, scene.height / 2
    font = scene.font(max(11.0, min(16.0, 0.25 * r)))
    start = rng.uniform(0, 360)
    box = ((x - r) * s, (y - r) * s, (x + r) * s, (y + r) * s)
    for label, colour, share in zip(labels, colours, shares, strict=True):
        end = start + 360 * share / total
        scene.pen.pieslice(box, start, end, near(rng, colour))
        middle = math.radians((start + end) / 2)
        w, h = scene.measure(label, font)
        away = r + 0.5 * max(h, w) + 2
        scene.write(
            x + away * math.cos(middle) - w / 2, y + away * math.sin(middle) - h / 2, label, font, (0, 0, 0)
        )
        start = end
    asked = scene.asked
    asked += [
        (_what(rng), f"a pie chart with {count} parts"),
        (rng.choice(("How many parts are there?", "How many parts does the chart have?")), str(count)),
        (rng.choice(("What kind of chart is this?", "What type of chart is it?")), "a pie chart"),
    ]
    n = rng.randrange(count)
    asked.append((f"What colour is the part of {labels[n]}?", colours[n]))
    asked.append((f"Which part is {colours[n]}?", labels[n]))
    first, second = sorted(shares, reverse=True)[:2]
    if first > 1.25 * second:
        asked.append(
            (rng.choice(("Which part is the largest?", "Which is the largest?")), labels[shares.index(first)])
        )


__all__ = ["CELL", "draw_chart", "draw_lines", "draw_receipt", "draw_signs"]
