"""A GBNF grammar has the same texts here as in llama.cpp, which has no lexer."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest
from llguidance import LLMatcher, LLParserLimits, LLTokenizer

from akunu import InvalidArgumentError
from akunu.chat.structured.gbnf import _Parser, lark_of_gbnf
from akunu.chat.structured.gbnf_node import Node

from .models import hostile

LIMITS = LLParserLimits(max_items_in_row=50_000, step_max_items=50_000, verbose_errors=False)
LETTERS = "abc"
TEXTS = ["".join(letters) for size in range(6) for letters in itertools.product(LETTERS, repeat=size)]


def texts_of(rules: dict[str, Node], most: int) -> set[str]:
    """All texts of a grammar up to a length: what its rules have grows until it no longer does."""
    known: dict[str, set[str]] = {name: set() for name in rules}

    def found(node: Node) -> set[str]:
        if node.kind == "name":
            return known[node.text]
        if node.kind == "set":
            return {c for c in LETTERS if any(low <= ord(c) <= high for low, high in node.ranges)}
        if node.kind == "choice":
            return set().union(*map(found, node.parts))
        if node.kind == "sequence":
            texts = {""}
            for part in node.parts:
                texts = joined(texts, found(part))
            return texts
        least, most_times = {"*": (0, most), "+": (1, most), "?": (0, 1)}.get(node.text) or counts(node.text)
        once, texts, every = found(node.parts[0]), {""}, set()
        for times in range(most_times + 1):
            every |= texts if times >= least else set()
            texts = joined(texts, once)
        return every

    def joined(first: set[str], second: set[str]) -> set[str]:
        return {a + b for a in first for b in second if len(a + b) <= most}

    def counts(text: str) -> tuple[int, int]:
        least, comma, end = text.strip("{}").partition(",")
        return int(least), int(end) if end else most if comma else int(least)

    while True:
        now = {name: found(node) for name, node in rules.items()}
        if now == known:
            return known["root"]
        known = now


def grammars(draw: random.Random) -> Iterator[str]:
    def expression(depth: int) -> str:
        kind = draw.randrange(9 if depth else 4)
        if kind < 2:
            return '"' + "".join(draw.choices(LETTERS, k=draw.randint(1, 2))) + '"'
        if kind == 2:
            return draw.choice(["[ab]", "[^a]", "[a-c]", "[bc]"])
        if kind == 3:
            return draw.choice(names)
        if kind == 4:
            return f"({expression(depth - 1)}){draw.choice(['*', '+', '?', '{1,2}', '{2}'])}"
        if kind == 5:
            return f"({expression(depth - 1)} | {expression(depth - 1)})"
        return " ".join(expression(depth - 1) for _ in range(draw.randint(2, 3)))

    while True:
        names = ["root", "x", "y", "z"][: draw.randint(1, 4)]
        lines = []
        for name in names:
            options = [expression(2) for _ in range(draw.randint(1, 3))]
            lines.append(f"{name} ::= " + " | ".join(options + draw.choice([[], ['"c"']])))
        yield "\n".join(lines)


def taken(grammar: str) -> set[str]:
    matcher = LLMatcher(
        LLTokenizer("byte"), LLMatcher.grammar_from_lark(lark_of_gbnf(grammar)), log_level=0, limits=LIMITS
    )
    assert not matcher.is_error(), matcher.get_error()
    accepted = set()
    for text in TEXTS:
        other = matcher.deep_copy()
        written = not text or other.try_consume_tokens(list(text.encode())) == len(text)
        if written and other.is_accepting():
            accepted.add(text)
    return accepted


def test_random_grammars_have_their_texts() -> None:
    compared = 0
    for grammar in itertools.islice(grammars(random.Random(4)), 150):
        expected = texts_of(_Parser(grammar).rules(), 5)
        if expected:  # otherwise it is refused
            assert taken(grammar) == expected, grammar
            compared += len(expected)
    assert compared > 1000


@pytest.mark.parametrize(
    "grammar",
    [
        'root ::= name rest\nname ::= [ab]+\nrest ::= "a" rest | "ac"',
        'root ::= para ("cc" root)?\npara ::= [^c]+ ("c" [^c]+)*',
        'root ::= (term "b")+\nterm ::= "a" w | "c" term "c" w\nw ::= [bc]*',
        'root ::= root "a" | root "bb" | "c"',
        'root ::= "ab" s | [a-c]+ "c" s\ns ::= [b-c] s "a" | "b"',
        'root ::= k s | i "c" s\nk ::= "ab"\ni ::= [a-c]+\ns ::= "(" s ")" | i',
    ],
)
def test_nothing_is_swallowed_that_belongs_to_the_next(grammar: str) -> None:
    assert taken(grammar) == {t for t in texts_of(_Parser(grammar).rules(), 5) if "(" not in t}


@pytest.mark.parametrize("size", [4_000])
def test_many_rules_are_read_in_order(size: int) -> None:
    """A chain of rules is gone through once, and not once for each."""
    chain = "\n".join(f'r{i} ::= "a" r{i + 1}' for i in range(size))
    lark = lark_of_gbnf(f'root ::= r0\n{chain}\nr{size} ::= "b"')
    assert lark.count("\n") >= size
    loop = "\n".join(f'r{i} ::= "(" r{i + 1} ")" | "x"' for i in range(size))
    assert lark_of_gbnf(f"root ::= r0\n{loop}\nr{size} ::= root").count("\n") >= size


def test_too_many_rules_and_parentheses_are_refused() -> None:
    rules = "\n".join(f'r{i} ::= "a"' for i in range(10_001))
    with pytest.raises(InvalidArgumentError, match="at most 10000 rules"):
        lark_of_gbnf(rules)
    with pytest.raises(InvalidArgumentError, match="parentheses within each other"):
        lark_of_gbnf("root ::= " + "(" * 400 + '"a"' + ")" * 400)


@pytest.mark.parametrize(
    "grammar",
    [
        "root ::= r0\n" + "\n".join(f'r{i} ::= "a" r{i + 1}' for i in range(4000)) + '\nr4000 ::= "b"',
        "start: r0\n" + "\n".join(f'r{i}: "a" r{i + 1}' for i in range(4000)) + '\nr4000: "b"',
        "start: T0\n" + "\n".join(f'T{i}: "a" T{i + 1}' for i in range(4000)) + '\nT4000: "b"',
    ],
    ids=["gbnf", "rules", "terminals"],
)
def test_a_chain_of_rules_that_would_end_the_process_is_refused(grammar: str) -> None:
    with pytest.raises(InvalidArgumentError, match="in a chain of more than 1000"):
        hostile().stream("x", grammar=grammar)
