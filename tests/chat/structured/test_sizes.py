"""What constraints may take: bytes of their source and of their copies, and expressions when compiled."""

from __future__ import annotations

import random

import pytest

import akunu
from akunu.base.errors import InvalidArgumentError
from akunu.chat.structured import compiler as compilers
from akunu.chat.structured.compiler import Compiler
from akunu.chat.structured.structure import Structure


@pytest.fixture(scope="module")
def model():
    with akunu.load("ember", progress=False, threads=1) as found:
        yield found


@pytest.fixture
def compiler(model) -> Compiler:
    return Compiler(model.tokenizer, model.config.vocab_size)


def words(n: int, seed: int) -> Structure:
    rng = random.Random(seed)
    found = ("".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=20)) for _ in range(n))
    return Structure("regex", f"({'|'.join(found)})")


def test_constraints_that_are_kept_are_bounded_by_their_bytes(model, monkeypatch):
    monkeypatch.setattr(compilers, "MAX_KEPT_BYTES", 3_000_000)
    compiler = Compiler(model.tokenizer, model.config.vocab_size)
    for seed in range(8):
        compiler.constraint(words(400, seed))
        assert compiler._compiled.bytes <= 3_000_000
    assert len(compiler._compiled) == 3
    kept = compiler._compiled.get(words(400, 7))
    compiler.constraint(words(400, 7))
    assert compiler._compiled.get(words(400, 7)) is kept  # it was known
    compiler.constraint(words(4000, 9))  # more than all of it: kept alone, for the next window of a recording
    assert len(compiler._compiled) == 1
    compiler.constraint(words(4, 10))
    assert len(compiler._compiled) == 1
    with pytest.raises(InvalidArgumentError):
        compiler.constraint(Structure("regex", "("))
    assert compiler._compiled.bytes == compilers._weight(words(4, 10))


def test_what_is_repeated_counts_as_often():
    small, large = (compilers._weight(Structure("regex", f"(a{{{n}}}){{1,{n}}}")) for n in (10, 1000))
    assert large > 1000 * small
    assert large <= 2 * compilers.MAX_KEPT_BYTES * 100 * 12


def test_a_constraint_whose_text_is_too_long_is_refused_before_it_is_compiled(compiler, monkeypatch):
    monkeypatch.setattr(Compiler, "_compile", lambda *_: pytest.fail("it was compiled"))
    with pytest.raises(InvalidArgumentError, match=r"regex: it has \d+ bytes, at most 1048576"):
        compiler.constraint(words(60_000, 1))


@pytest.mark.parametrize(
    "constraint",
    [
        {"regex": "a{1000000}"},
        {"regex": "(a{1000}){1000}"},
        {"grammar": "start: " + '"a" ' * 66_000},
    ],
    ids=["repeated", "repeated twice", "symbols"],
)
def test_what_is_too_large_is_the_callers_fault_and_said_in_a_line(model, constraint):
    with pytest.raises(InvalidArgumentError) as refused:
        model.generate("Hi", max_tokens=5, **constraint)
    said = str(refused.value)
    assert len(said) < 200
    assert "\n" not in said
    assert not any(word in said for word in ("panic", "backtrace", "unknown", "assert"))
