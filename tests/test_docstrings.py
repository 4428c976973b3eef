"""Docstrings are sentences: they say what a thing is or does, without a pronoun for what stands elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python" / "akunu"
RIDDLE = re.compile(
    r'"""(?:Of|As|Those|That of|The same|What|How|Who|Whose|Where|Which|Their|Its|It|They|Also|Beside|'
    r"Within it|This one|All of them|Without those|So many|Between two|May be|There is|More of)\b"
)
OPTION = re.compile(r'(?:help="|Counter\(|Gauge\(|Histogram\(|_[a-z]+", ")(?:Of|Those|The other|So many)\b')
"""Finds such beginnings in the help of options and metrics."""

DIALECT = re.compile(
    r"\b(writes? ahead|written ahead|writing ahead|bringers?|in the making|texts that run|"
    r"draws? (a |its |the )?(next )?tokens?|tokens? (is|are|was|were) drawn|"
    r"class (Texts?|Forms?|Held|Places?|Parts?))\b|(?<=_)n_texts|_has_a_form|_its_form\b"
)
"""Words of our own for what the field calls drafts, warps that load, generations, sequences and samples."""

ENGINE_TESTS = ("api", "kernels", "models", "sampling")
"""Folders of tests of engines, where what runs is a sequence and what it makes is an output."""


def lines_with(pattern: re.Pattern[str], paths: Iterable[Path]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in paths
        if path != Path(__file__).resolve()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_docstring_begins_with_a_bare_genitive_or_a_pronoun() -> None:
    found = lines_with(RIDDLE, PACKAGE.rglob("*.py"))
    assert not found, "\n".join(found)


def test_no_help_begins_so_either() -> None:
    found = lines_with(OPTION, PACKAGE.rglob("*.py"))
    assert not found, "\n".join(found)


def test_words_are_those_of_the_field() -> None:
    folders = ("cpp", "cuda", "metal", "tests", "bench", "python/akunu")
    sources = (".py", ".md", ".cpp", ".h", ".inl", ".cu", ".cuh", ".metal", ".mm")
    places = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("tools/*.py")]
    places += [path for name in folders for path in (ROOT / name).rglob("*.*") if path.suffix in sources]
    found = lines_with(DIALECT, places)
    assert not found, "\n".join(found)


def test_tests_of_engines_name_sequences() -> None:
    texts = re.compile(r"^(?!.*(stop[_ ]|a list of )texts).*\btexts\b")
    found = lines_with(
        texts,
        (
            path
            for name in ENGINE_TESTS
            for path in (ROOT / "tests" / name).rglob("*.py")
            if path.parent.name != "encoders"  # they make vectors of texts
        ),
    )
    assert not found, "\n".join(found)
