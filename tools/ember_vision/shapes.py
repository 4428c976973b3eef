"""Pictures of coloured shapes, and what is asked about them: which, how many, where, in what order."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from random import Random

from tools.ember_vision.scene import COLOUR_NAMES, COLOURS, SHAPES, Asked, Scene, near

PLACES = (
    ("top left", "top centre", "top right"),
    ("left", "centre", "right"),
    ("bottom left", "bottom centre", "bottom right"),
)
_OUTERMOST = (("leftmost", 1, 0), ("rightmost", -1, 0), ("topmost", 0, 1), ("lowest", 0, -1))
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True)
class Thing:
    """A shape with its middle, and half its height, in pixels of the final picture."""

    shape: str
    colour: str
    x: float
    y: float
    size: float

    @property
    def name(self) -> str:
        return f"{self.colour} {self.shape}"


def article(name: str) -> str:
    """The name with "a" or "an"."""
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def plural(shape: str) -> str:
    return shape + ("es" if shape.endswith(("s", "x")) else "s")


def listed(names: list[str]) -> str:
    """A list in English."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _corners(n: int, turn: float, inner: float = 1.0) -> list[tuple[float, float]]:
    """Corners on a circle, from the top; every second one nearer to the middle."""
    return [
        (
            (inner if i % 2 else 1) * math.sin(turn + i * math.tau / n),
            -(inner if i % 2 else 1) * math.cos(turn + i * math.tau / n),
        )
        for i in range(n)
    ]


def paint(scene: Scene, thing: Thing) -> None:
    """Draw a shape, with a border at times, and mark it."""
    rng, s = scene.rng, scene.scale
    x, y, r = thing.x * s, thing.y * s, thing.size * s
    fill = near(rng, thing.colour)
    line = max(1, round(s)) if rng.random() < 0.25 else 0
    edge = tuple(value // 2 for value in fill) if line else None
    turn = rng.uniform(-0.12, 0.12)
    pen = scene.pen
    match thing.shape:
        case "circle":
            pen.ellipse((x - r, y - r, x + r, y + r), fill, edge, line)
        case "ring":
            pen.ellipse((x - r, y - r, x + r, y + r), outline=fill, width=max(2, round(0.3 * r)))
        case "square":
            pen.rectangle((x - 0.88 * r, y - 0.88 * r, x + 0.88 * r, y + 0.88 * r), fill, edge, line)
        case "rectangle":
            pen.rectangle((x - r, y - 0.5 * r, x + r, y + 0.5 * r), fill, edge, line)
        case "cross":
            pen.rectangle((x - r, y - 0.28 * r, x + r, y + 0.28 * r), fill)
            pen.rectangle((x - 0.28 * r, y - r, x + 0.28 * r, y + r), fill)
        case "heart":
            pen.ellipse((x - r, y - 0.85 * r, x + 0.04 * r, y + 0.15 * r), fill)
            pen.ellipse((x - 0.04 * r, y - 0.85 * r, x + r, y + 0.15 * r), fill)
            pen.polygon([(x - 0.93 * r, y - 0.15 * r), (x + 0.93 * r, y - 0.15 * r), (x, y + 0.95 * r)], fill)
        case _:
            corners = {
                "triangle": _corners(3, turn),
                "diamond": [(0.0, -1.0), (0.72, 0.0), (0.0, 1.0), (-0.72, 0.0)],
                "star": _corners(10, turn, 0.42),
                "hexagon": _corners(6, turn + math.pi / 6),
            }[thing.shape]
            pen.polygon([(x + r * a, y + r * b) for a, b in corners], fill, edge, line)
    scene.mark(thing.x, thing.y, thing.shape, thing.colour)


def place_of(thing: Thing, scene: Scene) -> str:
    """In which ninth of the picture its middle is."""
    row, column = int(3 * thing.y / scene.height), int(3 * thing.x / scene.width)
    return PLACES[row][column]


def _clear(value: float, length: float) -> bool:
    """Not on a border between thirds."""
    return all(abs(value / length - border) > 0.045 for border in (1 / 3, 2 / 3))


def scatter(scene: Scene, count: int, pool: list[tuple[str, str]]) -> list[Thing]:
    """So many shapes of the pool, apart from each other, or as many as there is room for."""
    rng = scene.rng
    least = 7.0
    room = math.sqrt(scene.height * scene.width / (3.2 * count))
    most = max(least + 1, min(0.42 * min(scene.height, scene.width), room))
    alike = rng.random() < 0.5
    common = rng.uniform(least, most)
    found: list[Thing] = []
    for _ in range(60 * count):
        if len(found) == count:
            break
        size = common * rng.uniform(0.9, 1.1) if alike else rng.uniform(least, most)
        size = min(size, 0.46 * min(scene.height, scene.width))
        x, y = rng.uniform(size + 1, scene.width - size - 1), rng.uniform(size + 1, scene.height - size - 1)
        if not (_clear(x, scene.width) and _clear(y, scene.height)):
            continue
        if any(math.hypot(x - t.x, y - t.y) < 1.12 * (size + t.size) + 2 for t in found):
            continue
        found.append(Thing(*rng.choice(pool), x, y, size))
    return found


def lined_up(scene: Scene, count: int, pool: list[tuple[str, str]]) -> list[Thing]:
    """Shapes in rows, as many in each as there is room for."""
    rng = scene.rng
    columns = rng.randint(1, count) if rng.random() < 0.6 else count
    rows = math.ceil(count / columns)
    size = 0.42 * min(scene.width / columns, scene.height / rows) * rng.uniform(0.6, 1)
    if size < 6:
        return scatter(scene, count, pool)
    return [
        Thing(
            *rng.choice(pool),
            (i % columns + 0.5) * scene.width / columns,
            (i // columns + 0.5) * scene.height / rows,
            size,
        )
        for i in range(count)
    ]


def draw_shapes(scene: Scene) -> None:
    """One to ten shapes."""
    rng = scene.rng
    count = rng.choices(range(1, 11), (3, 3, 3, 3, 2, 2, 2, 2, 2, 2))[0]
    background = _background(scene)
    usable = [name for name in COLOUR_NAMES if _apart(COLOURS[name], scene.background)]
    kinds = rng.sample(SHAPES, rng.choice((1, 2, 2, 3, 4, len(SHAPES))))
    shades = rng.sample(usable, min(len(usable), rng.choice((1, 2, 2, 3, 4, len(usable)))))
    pool = [(kind, shade) for kind in kinds for shade in shades]
    things = (lined_up if rng.random() < 0.25 else scatter)(scene, count, pool)
    for thing in things:
        paint(scene, thing)
    scene.asked += questions(scene, things, background)


def _apart(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return sum(abs(a - b) for a, b in zip(one, other, strict=True)) > 140


def _background(scene: Scene) -> str:
    """Paint the whole picture; the colour's name."""
    rng = scene.rng
    name = "white" if rng.random() < 0.5 else rng.choice(COLOUR_NAMES)
    scene.background = (255, 255, 255) if name == "white" else near(rng, name)
    scene.pen.rectangle((0, 0, *scene.image.size), scene.background)
    return name


def questions(scene: Scene, things: list[Thing], background: str) -> list[Asked]:
    """What can be asked about shapes, with the answers."""
    rng = scene.rng
    by_name = Counter(t.name for t in things)
    by_shape, by_colour = Counter(t.shape for t in things), Counter(t.colour for t in things)
    asked: list[Asked] = [_overall(rng, things), _overall(rng, things)]
    asked.append(
        (rng.choice(("What colour is the background?", "What is the background colour?")), background)
    )
    for _ in range(2):
        asked.append((_how_many(rng, "shapes"), str(len(things))))
        shape = rng.choice(SHAPES) if rng.random() < 0.25 else rng.choice(things).shape
        asked.append((_how_many(rng, plural(shape)), str(by_shape[shape])))
        colour = rng.choice(COLOUR_NAMES) if rng.random() < 0.2 else rng.choice(things).colour
        if colour != background:
            asked.append((_how_many(rng, f"{colour} shapes"), str(by_colour[colour])))
    some = rng.choice(things)
    asked.append((_how_many(rng, f"{some.colour} {plural(some.shape)}"), str(by_name[some.name])))
    wanted = some.name if rng.random() < 0.5 else f"{rng.choice(COLOUR_NAMES)} {rng.choice(SHAPES)}"
    asked.append((f"Is there {article(wanted)}?", "yes" if by_name[wanted] else "no"))
    for thing in rng.sample(things, min(4, len(things))):
        alone = [
            name
            for name, number in ((thing.name, by_name[thing.name]), (thing.shape, by_shape[thing.shape]))
            if number == 1
        ]
        place = place_of(thing, scene)
        if alone:
            name = rng.choice(alone)
            asked.append(
                (rng.choice((f"Where is the {name}?", f"In which part of the picture is the {name}?")), place)
            )
        if by_shape[thing.shape] == 1:
            asked.append((f"What colour is the {thing.shape}?", thing.colour))
        if by_colour[thing.colour] == 1:
            asked.append(
                (
                    rng.choice((f"What shape is {thing.colour}?", f"Which shape is {thing.colour}?")),
                    thing.shape,
                )
            )
    asked += [_at_place(rng, scene, things) for _ in range(2)]
    asked += _compared(rng, things, by_name)
    return asked


def _how_many(rng: Random, what: str) -> str:
    return rng.choice(
        (
            f"How many {what} are there?",
            f"How many {what} are there?",
            f"How many {what} do you see?",
            f"Count the {what}.",
        )
    )


def _overall(rng: Random, things: list[Thing]) -> Asked:
    question = rng.choice(
        (
            "What is this?",
            "What is in the picture?",
            "What do you see?",
            "Describe the picture.",
            "What is in this image?",
        )
    )
    if len(things) <= 4:
        return question, listed([article(t.name) for t in sorted(things, key=lambda t: t.x)])
    shapes = {t.shape for t in things}
    kind = plural(shapes.pop()) if len(shapes) == 1 else "shapes"
    return question, f"{_NUMBERS[len(things)]} {kind}"


def _at_place(rng: Random, scene: Scene, things: list[Thing]) -> Asked:
    place = place_of(rng.choice(things), scene) if rng.random() < 0.8 else rng.choice(rng.choice(PLACES))
    there = [t for t in things if place_of(t, scene) == place]
    names = sorted({article(t.name) for t in there}) if len(there) == 1 else []
    where = f"in the {place}" if place in ("centre",) or " " in place else f"on the {place}"
    answer = names[0] if names else "nothing" if not there else f"{_NUMBERS[len(there)]} shapes"
    return rng.choice((f"What is {where}?", f"What do you see {where}?")), answer


def _compared(rng: Random, things: list[Thing], by_name: Counter[str]) -> list[Asked]:
    """Two shapes of which there is one each: which is left, above, larger; and the outermost."""
    found: list[Asked] = []
    alone = [t for t in things if by_name[t.name] == 1]
    if len(alone) >= 2:
        one, other = rng.sample(alone, 2)
        across, down = one.x - other.x, one.y - other.y
        if abs(across) > 14:
            side = rng.choice(("left", "right"))
            found.append(
                (
                    f"Is the {one.name} to the {side} of the {other.name}?",
                    "yes" if (across < 0) == (side == "left") else "no",
                )
            )
        if abs(down) > 14:
            side = rng.choice(("above", "below"))
            found.append(
                (
                    f"Is the {one.name} {side} the {other.name}?",
                    "yes" if (down < 0) == (side == "above") else "no",
                )
            )
    if len(things) < 2:
        return found
    for question, along, down in _OUTERMOST:
        first, second = sorted(things, key=lambda t: t.x * along + t.y * down)[:2]
        apart = (second.x - first.x) * along + (second.y - first.y) * down
        if rng.random() < 0.3 and apart > 12:
            found.append((f"What is the {question} shape?", article(first.name)))
    first, second = sorted(things, key=lambda t: -t.size)[:2]
    if first.size > 1.4 * second.size:
        found.append((f"What is the {rng.choice(('largest', 'biggest'))} shape?", article(first.name)))
    return found
