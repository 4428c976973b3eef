"""Docstrings are sentences: they say what a thing is or does, without a pronoun for what stands elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "python" / "akunu"
RIDDLE = re.compile(r'"""(?:Of|As|Those|That of|The same)\b')


def test_no_docstring_begins_with_a_bare_genitive_or_a_pronoun() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for path in PACKAGE.rglob("*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if RIDDLE.search(line)
    ]
    assert not found, "\n".join(found)
