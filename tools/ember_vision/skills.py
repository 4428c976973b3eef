"""What is asked of ember-vision in an evaluation: sizes of pictures, skills, scores, and their table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from tools.ember_vision.batches import BUCKETS
from tools.ember_vision.drawing import KINDS, draw
from tools.ember_vision.fonts import Fonts
from tools.ember_vision.scene import Scene

LINES = "characters of single printed lines"
PAGES = "characters of two to eight lines"
_READ = re.compile(
    r"Read the text\.|What does it say|What is written here|Read this|What is the text|Transcribe"
)
SKILLS: tuple[tuple[str, str, str], ...] = (
    ("lines", r"How many|colour", "lines: how many, words, colour"),
    ("lines", r"line|word", "lines: one of several, the first word"),
    ("lines", "", "what it is"),
    ("shapes", r"How many|Count", "shapes: how many"),
    (
        "shapes",
        r"^Where|^In which|^What (is|do you see) (in|on) the (top|bottom|left|right|centre)",
        "shapes: where",
    ),
    ("shapes", r"^Is .* (left|right|above|below)|most|lowest|largest|biggest", "shapes: compared"),
    ("shapes", r"colour|[Ww]hat shape|Which shape|^Is there", "shapes: colour, kind, is there one"),
    ("shapes", "", "what it is"),
    ("signs", r"^(What|Where|On what|Read).*(on the|say|written)", "signs: what is written where"),
    ("signs", "", "what it is"),
    ("receipt", r"What (is this|is in|do you)|Describe", "what it is"),
    ("receipt", "", "receipts: total, prices, shop, date"),
    ("chart", r"What (is this\?|is in|do you)|Describe|What (kind|type)", "what it is"),
    ("chart", "", "charts: how many, highest, values, colours"),
)
"""Kind of picture, words of the question, skill: the first that fits."""
GRIDS = {
    "lines": ((2, 20), (3, 22), (3, 14), (4, 19), (7, 19), (11, 17), (14, 21), (19, 14)),
    "shapes": ((7, 7), (9, 13), (11, 11), (14, 14), (13, 19), (17, 21), (22, 13)),
    "signs": ((7, 14), (9, 11), (13, 13), (14, 19)),
    "receipt": ((17, 13), (19, 17), (22, 16), (21, 14)),
    "chart": ((11, 14), (13, 17), (14, 22), (17, 17)),
}
"""Rows and columns of pictures, in cells: none of them are the training's."""
TRAINED: Final = {
    kind: tuple(
        grid for bucket in BUCKETS for grid in bucket.grids if grid[0] >= least[0] and grid[1] >= least[1]
    )
    for kind, (_, _, least) in KINDS.items()
}
"""The training draws pictures of these sizes."""
Grids = Mapping[str, Sequence[tuple[int, int]]]


@dataclass
class Score:
    """Answers of a skill."""

    right: float = 0.0
    of: int = 0
    wrong: list[tuple[str, str, str]] = field(default_factory=list)


def edits(a: str, b: str) -> int:
    """Letters to insert, drop or replace to make one of the other."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def pictures(rng: Random, fonts: Fonts, kind: str, count: int, grids: Grids) -> Iterator[Scene]:
    """So many pictures of a kind, of these sizes in turn."""
    for n in range(count):
        yield draw(rng, fonts, *grids[kind][n % len(grids[kind])], kind)


def skill_of(kind: str, question: str, answer: str) -> str:
    if _READ.search(question) and kind == "lines":
        return PAGES if "\n" in answer else LINES
    if _READ.search(question) and kind == "signs":
        return "signs: what is written where"
    return next(skill for of, words, skill in SKILLS if of == kind and re.search(words, question))


def table(columns: Mapping[str, dict[str, Score]]) -> str:
    """The scores in Markdown, and what is right of all that is not read by its characters."""

    def shares(chosen: Sequence[str]) -> str:
        found = [[scores[skill] for skill in chosen if skill in scores] for scores in columns.values()]
        return " | ".join(
            f"{100 * sum(s.right for s in column) / max(1, sum(s.of for s in column)):.1f} % of "
            f"{sum(s.of for s in column)}"
            for column in found
        )

    skills = sorted({skill for scores in columns.values() for skill in scores})
    lines = [f"| | {' | '.join(columns)} |", f"| --- |{' --- |' * len(columns)}"]
    lines += [f"| {skill} | {shares([skill])} |" for skill in skills]
    lines.append(f"| all but characters | {shares([s for s in skills if s not in (LINES, PAGES)])} |")
    return "\n".join(lines)
