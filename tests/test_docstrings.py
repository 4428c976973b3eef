"""Docstrings are sentences: they say what a thing is or does, without a pronoun for what stands elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python" / "akunu"
RIDDLE = re.compile(r'"""(?:Of|As|Those|That of|The same)\b')

DIALECT = re.compile(
    r"\b(writes? ahead|written ahead|writing ahead|bringers?|in the making|texts that run|"
    r"draws? (a |its |the )?(next )?tokens?|tokens? (is|are|was|were) drawn)\b"
)
"""Words of our own for what the field calls drafts, warps that load, generations, sequences and samples."""


def test_no_docstring_begins_with_a_bare_genitive_or_a_pronoun() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for path in PACKAGE.rglob("*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if RIDDLE.search(line)
    ]
    assert not found, "\n".join(found)


def test_words_are_those_of_the_field() -> None:
    places = [
        ROOT / "README.md",
        *ROOT.glob("docs/*.md"),
        *PACKAGE.rglob("*.py"),
        *(
            path
            for folder in ("cpp", "cuda", "metal")
            for path in (ROOT / folder).rglob("*.*")
            if path.is_file()
        ),
    ]
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in places
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if DIALECT.search(line)
    ]
    assert not found, "\n".join(found)
