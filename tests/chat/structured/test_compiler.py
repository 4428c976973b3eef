"""Constraints are compiled once, beside each other, and what they all need is made before sequences run."""

from __future__ import annotations

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from akunu import InvalidArgumentError
from akunu.chat.structured.compiler import Compiler
from akunu.chat.structured.structure import Structure

from .models import ember

KNOWN = Structure("regex", "known")
SLOW = Structure("regex", "slow")


@pytest.fixture
def compiler() -> Compiler:
    return Compiler(ember().tokenizer, ember().config.vocab_size)


def test_a_constraint_that_is_known_does_not_wait_for_one_that_is_compiled(compiler, monkeypatch):
    compiler.constraint(KNOWN)
    began, goes_on, compiled = threading.Event(), threading.Event(), []

    def slowly(self, structure, compile_=Compiler._compile):
        compiled.append(structure)
        began.set()
        assert goes_on.wait(30)
        return compile_(self, structure)

    monkeypatch.setattr(Compiler, "_compile", slowly)
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(compiler.constraint, SLOW) for _ in range(2)]
        assert began.wait(30)
        compiler.constraint(KNOWN)
        assert not any(each.done() for each in waiting)
        goes_on.set()
        assert waiting[0].result(30) is not waiting[1].result(30)
    assert compiled == [SLOW]


def test_a_constraint_that_is_wrong_is_so_each_time(compiler):
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match="regex"):
            compiler.constraint(Structure("regex", "("))
    compiler.constraint(KNOWN)


def test_what_all_constraints_need_can_be_made_before(compiler):
    compiler.prepare()
    assert "_grammar_tokens" in vars(compiler)


def test_nothing_is_left_of_a_compiler_that_is_no_more(compiler):
    other = Compiler(compiler._tokenizer, compiler._vocab_size)
    other.constraint(KNOWN)
    view = weakref.ref(other._view)
    del other
    gc.collect()
    assert view() is None
