"""Makes the constraint that a structure asks for: a grammar is compiled once, a vocabulary once a model."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from llguidance import LLMatcher, LLParserLimits, LLTokenizer

from akunu.base.errors import AkunuError, InvalidArgumentError
from akunu.base.kept import Kept
from akunu.chat.structured.constraint import Constraint, GrammarConstraint, TaggedText, Watch, plain_reason
from akunu.chat.structured.gbnf import is_gbnf, lark_of_gbnf
from akunu.chat.structured.gbnf_lark import lark_string
from akunu.chat.structured.json_schema import schema_expression
from akunu.chat.structured.late import Late, LateConstraints
from akunu.chat.structured.rule_graph import check_depth
from akunu.chat.structured.structure import with_any_space
from akunu.chat.structured.thinking import Thinking, ThinkingBudget
from akunu.chat.structured.vocabulary import VocabularyView

if TYPE_CHECKING:
    from akunu.chat.structured.structure import Structure
    from akunu.chat.structured.tags import StructuralTag, Tag
    from akunu.tokenizer import Tokenizer

__all__ = ["Compiler"]

MAX_KEPT_BYTES: Final = 128 << 20
"""Bytes of the compiled constraints that are kept, as far as that can be told from their sources."""

MAX_BYTES: Final = 1 << 20
"""Bytes of the text of a structure."""

_BYTES_OF_CHARACTER: Final = 100
"""Bytes that a character of a structure takes when it is compiled: 48 to 90 measured, of regexes."""

_REPEATED: Final = re.compile(r"\{(\d{1,9})(?:,(\d{0,9}))?\}")
"""A number of repetitions in a regular expression."""

_LEXER_FUEL: Final = 300_000, 4, 1_000_000
"""Expressions that the beginning of a structure may need, some 100 bytes each: at least, for each character
of its text, and at most, which is llguidance's own limit."""

_STEP_ITEMS: Final = 50_000
"""Items of the parser that a mask may cost, llguidance's own limit. A row may have as many: its limit is
2,000, which an object of 500 properties, none of them required, exceeds after its first bracket."""


Start = Callable[[], Constraint]
"""A text's constraint, at its beginning."""


class Compiler:
    """Makes constraints for the texts of one model. Safe to share between threads.

    llguidance holds Python's lock while it reads a vocabulary, 0.3 to 0.5 s for 150,000 tokens, and not while
    it compiles a grammar. So a server has `prepare` called while no request is there.
    """

    def __init__(self, tokenizer: Tokenizer, vocab_size: int) -> None:
        self._tokenizer = tokenizer
        self._vocab_size = vocab_size
        self._lock = threading.Lock()
        self._compiled: Kept[Structure, tuple[Future[Start], int]] = Kept(MAX_KEPT_BYTES, itemgetter(1))

    def prepare(self) -> None:
        """Do now what the first constrained output would have to wait for.

        Raises
        ------
        UnsupportedError
            No output can be constrained: the vocabulary has no token that ends one.
        """
        with self._lock:
            _ = self._grammar_tokens

    def constraint(self, structure: Structure, begun: str = "") -> Constraint:
        """Return the constraint of a new output.

        Parameters
        ----------
        structure
            What the output has to be.
        begun
            What stands before it. Where the structure may begin so, the output is the rest of it. JSON that
            it cannot begin with is an error; behind any other text the output is all of it.

        Raises
        ------
        InvalidArgumentError
            The structure cannot be honoured; the message names the keyword or the place.
        """
        new = self._start(structure)
        if not begun:
            return new()
        for way in dict.fromkeys((structure, with_any_space(structure))):
            with suppress(AkunuError):
                constraint = self._start(way)()
                constraint.advance(self._view.encode(begun))
                return constraint
        if structure.kind in ("schema", "json") and begun.startswith(("{", "[", '"')):
            raise InvalidArgumentError(
                f"{structure.kind}: the last message, which the answer goes on with, does not begin as it "
                f"asks: {begun[:60]!r}"
            )
        return new()

    def _start(self, structure: Structure) -> Start:
        """Compile a structure, if it is not known."""
        _check_size(structure)
        self.prepare()
        with self._lock:
            found = self._compiled.get(structure)
            start = found[0] if found else Future[Start]()
            if found is None:
                self._compiled.keep(structure, (start, _weight(structure)))
        if found is None:  # compiled without the lock: those whose structure is known do not wait
            try:
                start.set_result(self._compile(structure))
            except BaseException as error:
                start.set_exception(error)
                with self._lock:
                    self._compiled.forget(structure)
        return start.result()

    def thinking(self, budget: ThinkingBudget, inner: Constraint | None) -> Constraint:
        """Return the constraint of a new output that may think so much; `inner` constrains what follows."""
        with self._lock:
            _ = self._view
        return Thinking(self._view, budget, inner)

    def late(self, parts: LateConstraints, inner: Constraint | None) -> Constraint:
        """Return the constraint of an output in which constrained parts may begin; `inner` holds for all.

        Raises
        ------
        UnsupportedError
            No output can be constrained.
        """
        self.prepare()
        return Late(self._view, parts, self.constraint, inner)

    @cached_property
    def _view(self) -> VocabularyView:
        return VocabularyView(self._tokenizer, self._vocab_size)

    @cached_property
    def _grammar_tokens(self) -> LLTokenizer:
        return self._view.grammar_tokens()

    def _compile(self, structure: Structure) -> Start:
        try:
            if structure.tag is not None:
                return self._tagged(structure.tag)
            grammar = _GRAMMARS[structure.kind](structure.text)
        except RecursionError as error:
            raise InvalidArgumentError(f"{structure.kind}: it is nested too deeply") from error
        matcher = self._matcher(structure.kind, grammar)
        return lambda: GrammarConstraint(self._view, structure.kind, matcher)

    def _matcher(self, kind: str, grammar: str) -> LLMatcher:
        least, by_character, most = _LEXER_FUEL
        limits = LLParserLimits(
            max_items_in_row=_STEP_ITEMS,
            step_max_items=_STEP_ITEMS,
            initial_lexer_fuel=min(max(least, by_character * len(grammar)), most),
            verbose_errors=False,
        )
        matcher = LLMatcher(self._grammar_tokens, grammar, log_level=0, limits=limits)
        if matcher.is_error():
            raise InvalidArgumentError(f"{kind}: {plain_reason(matcher.get_error())}")
        probe = GrammarConstraint(self._view, kind, matcher)
        probe.mask()  # here a rule is found that has no end, or exceeds the parser's limits,
        probe.forced()  # and here text without a choice that is longer than can be followed
        return matcher

    def _tagged(self, tag: StructuralTag) -> Start:
        try:
            return self._joined(tag)
        except InvalidArgumentError:
            for each in tag.tags:  # which of them it is, and why, without the grammar of all
                if each.schema is None:
                    self._matcher(each.name, self._lark([each], "", repeated=False))
                else:
                    self._matcher(each.name, _of_schema(each.schema, each.name))
            raise

    def _joined(self, tag: StructuralTag) -> Start:
        view = self._view
        before = Watch(view, [view.spell(tag.after)], ends=False) if tag.after else None
        matchers: dict[bytes | None, LLMatcher] = {}
        if tag.required:
            matchers[None] = self._matcher("structural_tag", self._lark(tag.tags, "", tag.parallel))
            triggers = None
        else:
            for trigger in tag.triggers or dict.fromkeys(t.begin for t in tag.tags):
                tags = [t for t in tag.tags if t.begin.startswith(trigger)]
                matchers[view.spell(trigger)] = self._matcher(
                    "structural_tag", self._lark(tags, trigger, repeated=False)
                )
            triggers = Watch(view, [mark for mark in matchers if mark is not None], ends=True)
        return lambda: TaggedText(view, before, triggers, matchers, once=not tag.parallel)

    def _lark(self, tags: tuple[Tag, ...] | list[Tag], written: str, repeated: bool) -> str:
        """A grammar of tags, of which `written` has been written already; with `repeated` one or more."""
        names = " | ".join(f"tag_{i}" for i in range(len(tags)))
        lines = [f"start: ({names}) (SPACE? ({names}))*" if repeated else f"start: {names}"]
        lines += ["SPACE: /[ \\t\\r\\n]{1,4}/"] if repeated else []
        for i, tag in enumerate(tags):
            begin, end = self._symbols(tag.begin[len(written) :]), self._symbols(tag.end)
            if tag.grammar:
                body = "%lark {\n" + "\n".join([tag.grammar, *self._marks(tag)]) + "\n}"
            elif tag.schema is not None:
                body = schema_expression(tag.schema, tag.name)
            elif end and end[0].startswith('"'):
                lines.append(f"text_{i}[lazy]: /(?s:.*)/ {end.pop(0)}")
                body = f"text_{i}"
            else:
                body = "/(?s:.*)/"
            lines.append(f"tag_{i}: {' '.join([*begin, body, *end])}")
        return LLMatcher.grammar_from_lark("\n".join(lines))

    def _marks(self, tag: Tag) -> Iterator[str]:
        """The rules of a tag's marks."""
        for name, text in tag.marks.items():
            symbols = self._symbols(text)
            lazy = "[lazy]" if symbols[0].startswith('"') else ""
            yield f"{name}: {' '.join(symbols)}"
            yield f"until_{name}{lazy}: /(?s:.*)/ {' '.join(symbols)}"

    def _symbols(self, text: str) -> list[str]:
        """A mark in Lark: literals, and control tokens by id."""
        parts = self._view.split(text)
        return [f"<[{part}]>" if isinstance(part, int) else lark_string(part) for part in parts]


def _check_size(structure: Structure) -> None:
    size = len(structure.text.encode())
    if size > MAX_BYTES:
        raise InvalidArgumentError(
            f"{structure.kind}: it has {size} bytes, at most {MAX_BYTES} are supported"
        )


def _weight(structure: Structure) -> int:
    """Return the bytes that a compiled structure may take; rather too many, where repetitions are nested."""
    repeats = 1
    for least, most in _REPEATED.findall(structure.text):
        repeats = min(repeats * max(1, int(most or least)), MAX_KEPT_BYTES)
    return (len(structure.text) * repeats + 1000) * _BYTES_OF_CHARACTER


def _schema(text: str) -> str:
    return _of_schema(json.loads(text), "schema")


def _of_schema(schema: Mapping[str, Any] | bool, name: str) -> str:
    expression = schema_expression(schema, name)
    if expression.startswith("%json "):
        return LLMatcher.grammar_from_json_schema(expression.removeprefix("%json "))
    return LLMatcher.grammar_from_lark(f"start: {expression}")


def _grammar(text: str) -> str:
    lark = lark_of_gbnf(text) if is_gbnf(text) else text
    check_depth(lark)
    return LLMatcher.grammar_from_lark(lark)


def _choice(text: str) -> str:
    # A terminal: each alternative of a rule is an item of the parser.
    return LLMatcher.grammar_from_lark("start: TEXT\nTEXT: " + " | ".join(map(lark_string, json.loads(text))))


_GRAMMARS: Final[Mapping[str, Callable[[str], str]]] = {
    "schema": _schema,
    "json": lambda text: _schema('{"type": "object"}'),
    "regex": LLMatcher.grammar_from_regex,
    "grammar": _grammar,
    "choice": _choice,
}
