"""GBNF: the grammars of llama.cpp compile, and texts are of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from akunu import InvalidArgumentError
from akunu.chat.structured.gbnf import is_gbnf, lark_of_gbnf
from models.llama2c import shared_data

from .models import ember, hostile

MOVE = r"(([a-h]x)?[a-h][1-8](=[NBKQR])?|[NBKQR][a-h]?[1-8]?x?[a-h][1-8]|O-O(-O)?)[+#]?"
SPACE = r"[ \t\n]*"
TERM = rf"([a-z][a-z0-9_]*{SPACE}|[0-9]+{SPACE})"


def is_arithmetic(text: str) -> bool:
    before = ""
    while before != text:  # what is in parentheses is a term, from the innermost on
        before = text
        text = re.sub(rf"\({SPACE}{TERM}([-+*/]{TERM})*\){SPACE}", "x", text)
    return bool(re.fullmatch(rf"({TERM}([-+*/]{TERM})*={SPACE}{TERM}\n)+", text))


def is_c(text: str) -> bool:
    code = re.sub(r"//[^\n]*\n|/\*([^*]|\*[^/])*\*/", "", text)
    header = r"((int|float|char)[ \t\n]+)[a-zA-Z_][a-zA-Z_0-9]*\(((int|float|char)[ \t\n]+[a-zA-Z_]\w*)?\)\{"
    return not text or (re.match(header, code) is not None and code.endswith("}"))


CHECKS: dict[str, Callable[[str], object]] = {
    "arithmetic": is_arithmetic,
    "c": is_c,
    "chess": lambda text: re.fullmatch(rf"1\. {MOVE} {MOVE}\n([1-9][0-9]?\. {MOVE} {MOVE}\n)+", text),
    "english": lambda text: re.fullmatch(r"[!-~]+([ \t\n][!-~]+)*", text),
    "japanese": lambda text: re.fullmatch(r"[ぁ-ゟァ-ヿ、-〾一-鿿 \t\n]+", text),
    "json": lambda text: isinstance(json.loads(text), dict),
    "json_arr": lambda text: isinstance(json.loads(text), list) and text.startswith("[\n"),
    "list": lambda text: re.fullmatch(r"(- [^\r\n\x0b\x0c\x85\u2028\u2029]+\n)+", text),
}


FINISHED = {"c", "japanese"}
"""Of these, 60 tokens of any model are enough for a whole text now and then."""


def grammar(name: str) -> str:
    path = shared_data("gbnf") / f"{name}.gbnf"
    return path.read_text(encoding="utf-8")


@pytest.mark.table
@pytest.mark.parametrize("make", [ember, hostile], ids=lambda make: make.__name__)
@pytest.mark.parametrize("name", CHECKS)
def test_texts_are_of_the_grammars_of_llama_cpp(name: str, make) -> None:
    whole = 0
    for seed in range(12):
        result = make().generate("Go:", grammar=grammar(name), seed=seed, max_tokens=60, temperature=1.2)
        if result.finish_reason == "stop":
            whole += 1
            assert CHECKS[name](result.text), result.text
        else:
            assert result.finish_reason == "length" and len(result.ids) == 60
    assert whole or name not in FINISHED


@pytest.mark.parametrize(
    "text, matching, others",
    [
        ('root ::= "a"{2,3} [^a]?', ["aa", "aaa", "aab", "aa\n"], ["a", "aaaa", "aabb"]),
        ('root ::= ("x" | "y"\n | "z")+ # those\n', ["x", "zyx"], ["", "a"]),
        ('root ::= "\\x41\\u00e9\\U0001F600\\"" .', ['Aé\U0001f600"b', 'Aé\U0001f600"\n'], ["A"]),
        ("root ::= [-a\\-\\]^] [a-c-]", ["--", "aa", "]c", "^b"], ["b-", "ad"]),
        ('root ::= | "a" b\nb ::= ""\n', ["", "a"], ["aa"]),
        ('root ::= "(" root? ")" | leaf\nleaf ::= [0-9]*', ["()", "((12))", "7", "((()))"], ["(", "(()"]),
        ('root ::= "a"{0} ("b" "c"){ 0 , 0 } "d"{00,}', ["", "d", "dd"], ["a", "ad", "bc"]),
        ('root ::= "a" | b | "c" b?\nb ::= "x" c\nc ::= b* b', ["a", "c"], ["x", "cx"]),
        ('root ::= "a" | "b" root\nunused ::= "c" unused', ["a", "bba"], ["b", "c"]),
        ('root ::= leaf-1 "a" "b"\r\nleaf-1 ::= [a-z]*\r\n', ["ab", "aaab", "abab"], ["a", "ba"]),
    ],
)
def test_each_construct_means_what_it_means_in_llama_cpp(
    text: str, matching: list[str], others: list[str]
) -> None:
    assert is_gbnf(text)
    model = ember()
    for example in (*matching, *others):
        constraint = model._compiler.constraint(_structure(text))
        tokens = model._compiler._view.encode(example)
        accepted = constraint._matcher.consume_tokens(tokens) and constraint._matcher.is_accepting()
        assert accepted == (example in matching), example


def _structure(text: str) -> object:
    from akunu.chat.structured.structure import structure_of

    return structure_of({"grammar": text})


@pytest.mark.parametrize(
    "text, message",
    [
        ('root = "a"', "line 1: '= "),
        ('root ::= "a', "line 1: '\"a' is not GBNF"),
        ('root ::= "a"\nb ::= $', "line 2"),
        ("root ::= (", r"line 1: found 'the end', expected \)"),
        ("root ::= * ", "something to repeat"),
        ("root ::= []", "characters between"),
        ("root ::= [z-a]", r"found '\[z-a\]', expected a range that goes up"),
        ('root ::= "\\q"', "an escape, not"),
        ('root ::= "\\ud800"', "a character, not U\\+D800"),
        ('root ::= "a"{3,2}', "counts in order"),
        ('root ::= "a"\nroot ::= "b"', "root is defined twice"),
        ('root ::= "a" ) b', r"found '\)', expected a new line"),
        ("root ::= x\nx ::= y", "the rule x names y"),
        ('a ::= "x"', "no rule root"),
        ('root ::= "a" root', "no text of the rule root ends"),
        ('root ::= "a" ("b" | root{2,3}){1,2} [^\\x00-\\U0010FFFF]', "no text of the rule root ends"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        lark_of_gbnf(text)
