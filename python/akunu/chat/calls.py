"""The forms in which models write calls of tools: one function reads each.

A reader gives a call's name once, and its arguments as fragments of JSON, as soon as each is certain.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from akunu.chat.arguments import Grammar
from akunu.chat.incoming import Incoming, Malformed, Steps
from akunu.chat.structured.tags import Tag
from akunu.chat.tools import Tools
from akunu.chat.values import GEMMA, JSON, PYTHON, quoted, read_string, read_value, rewritten

__all__ = [
    "CallFormat",
    "Calls",
    "bare_objects",
    "begin_argument",
    "deepseek_calls",
    "each_call",
    "end_arguments",
    "end_mark",
    "gemma_call",
    "kimi_calls",
    "mistral_call",
    "named_call",
    "objects",
    "python_calls",
    "python_lines",
    "read_object",
]

_NAME: Final = "_-.:/"
"""The characters of names besides letters and digits."""
_ARGUMENTS: Final = ("arguments", "parameters")


class Calls(Protocol):
    """Takes what is read."""

    source: Incoming
    tools: Tools

    def begin(self, name: str) -> None:
        """Begin a call."""

    def arguments(self, fragment: str) -> None:
        """Add to the arguments of the call, as JSON."""

    def done(self) -> None:
        """End the call, which is complete."""


@dataclass(frozen=True, kw_only=True)
class CallFormat:
    """One way to write calls.

    Attributes
    ----------
    read : callable
        Reads one call, or several, after a mark; raises `Malformed`.
    marks : tuple of str
        What calls begin with, anywhere in an answer.
    bare : str
        What they may begin with at the beginning of an answer besides.
    end : str
        What may follow them.
    pattern : str
        A call as models were trained to write it, with {name} and {arguments}.
    address : str
        What an answer that is a call begins with ahead of that, with {name}.
    space : str
        What names of tags begin with, or end with.
    arguments : callable or None
        The grammar of arguments that fit a schema; None: they are JSON.
    """

    read: Callable[[CallFormat, Calls, str], Steps[None]]
    marks: tuple[str, ...]
    pattern: str
    bare: str = ""
    end: str = ""
    address: str = ""
    space: str = ""
    arguments: Callable[[Mapping[str, Any]], Grammar] | None = None

    @property
    def trigger(self) -> str:
        """The beginning of every call that is written by the pattern, whatever its function."""
        begin = self.pattern.partition("{name}")[0]
        return next((mark for mark in self.marks if begin.startswith(mark)), begin)

    def tag(self, name: str, schema: Mapping[str, Any], *, first: bool = False) -> Tag:
        """A call of one function whose arguments fit a schema; `first`: the answer begins with it."""
        before, _, end = self.pattern.partition("{arguments}")
        begin = (self.address * first + before).replace("{name}", name)
        if self.arguments is None:
            return Tag(begin, {"type": "object", **schema}, end, name=f"tools: {name}")
        grammar = self.arguments(schema)
        return Tag(begin, None, end, grammar.lark, grammar.marks, f"tools: {name}")


def named_call(calls: Calls, name: str) -> Steps[None]:
    """Arguments as an object, of a function whose name was said before."""
    yield from calls.source.space()
    if not name or (yield from calls.source.peek()) != "{":
        raise Malformed
    calls.begin(name)
    yield from read_value(calls.source, JSON, calls.arguments)
    calls.done()


def end_mark(form: CallFormat, calls: Calls) -> Steps[None]:
    if form.end:
        yield from calls.source.space()
        yield from calls.source.one_of((form.end,))


def each_call(
    form: CallFormat, calls: Calls, mark: str, begin: str, read: Callable[[CallFormat, Calls], Steps[None]]
) -> Steps[None]:
    """Read calls that each begin with `begin`, up to the end of the format; `read` reads one behind it."""
    source = calls.source
    yield from source.space()
    more = begin if mark == begin else (yield from source.expect(begin))
    while more:
        yield from read(form, calls)
        yield from source.space()
        more = yield from source.one_of((begin,))
    yield from end_mark(form, calls)


def _one_or_list(form: CallFormat, calls: Calls, read: Callable[[Calls], Steps[Any]]) -> Steps[None]:
    """A call, or some between brackets, and the mark that ends them."""
    source = calls.source
    yield from source.space()
    if (yield from source.one_of(("[",))):
        mark = ","
        while mark == ",":
            yield from source.space()
            yield from read(calls)
            yield from source.space()
            mark = yield from source.expect(",", "]")
    else:
        yield from read(calls)
    yield from end_mark(form, calls)


# -- Objects with a name and arguments. ----------------------------------------------------------------------


def objects(form: CallFormat, calls: Calls, mark: str) -> Steps[None]:
    """Objects between marks, one or a list of them: Hermes, Qwen, Phi, Granite."""
    yield from _one_or_list(form, calls, _object)


def bare_objects(form: CallFormat, calls: Calls, mark: str) -> Steps[None]:
    """Objects without a mark around them: Llama 3. One that calls no function of the tools' is content."""
    source = calls.source
    declared = mark == form.bare
    if declared:
        source.at -= len(mark)
    found = yield from _object(calls, declared)
    while (yield from _separated(source)):
        found = (yield from _object(calls, declared)) or found
    if not found:
        raise Malformed


def _separated(source: Incoming) -> Steps[bool]:
    """Whether another object follows; nothing need stand between the two, as between calls with marks."""
    yield from source.space()
    return bool((yield from source.one_of((";", ",")))) or (yield from source.peek()) == "{"


def read_object(calls: Calls) -> Steps[bool]:
    """An object that names one of the tools; False for one that was given up."""
    return (yield from _object(calls, declared=True))


def _object(calls: Calls, declared: bool = False) -> Steps[bool]:
    call = _Call(calls, declared)
    source = calls.source
    yield from source.space()
    yield from source.expect("{")
    yield from source.space()
    doubled = yield from source.one_of(("{",))  # as the template of Qwen2.5-Coder shows calls to the model
    yield from call.members()
    if doubled:
        yield from source.space()
        yield from source.one_of(("}",))
    return call.end()


class _Call:
    """One object that is read, whose members may come in any order.

    With `declared` it has to name one of the tools, and to look like a call from its first member. One of no
    tool whose arguments are null is none, and no error: what a model gave up.
    """

    def __init__(self, calls: Calls, declared: bool) -> None:
        self._calls = calls
        self._declared = declared
        self._name = ""
        self._held = ""  # arguments that came before the name
        self._begun = False
        self._unknown = self._given_up = False

    def members(self) -> Steps[None]:
        source = self._calls.source
        mark = ","
        while mark == ",":
            yield from source.space()
            key = yield from _string(source)
            if self._declared and key not in (*_ARGUMENTS, "name", "type", "id", "function"):
                raise Malformed
            yield from source.space()
            yield from source.expect(":")
            yield from source.space()
            if self._unknown:
                yield from source.expect("null")
                self._given_up = key in _ARGUMENTS
            else:
                yield from self._member(key)
            mark = yield from self._mark()

    def _mark(self) -> Steps[str]:
        """Read what follows a member. Nothing need close an object that has all of a call: models forget."""
        source = self._calls.source
        start = source.at
        yield from source.space()
        mark = yield from source.one_of((",", "}"))
        if not mark:
            if not (self._begun or (self._name and self._held)):
                raise Malformed
            source.at = start
        return mark

    def _member(self, key: str) -> Steps[None]:
        source = self._calls.source
        first = yield from source.peek()
        if key in ("name", "tool_name") or (key == "function" and first == '"'):
            self._name = yield from _string(source)
            if not self._name:
                raise Malformed
            self._unknown = self._declared and self._name not in self._calls.tools
            if self._unknown and self._held:
                raise Malformed
        elif key == "function" and first == "{":
            source.at += 1
            yield from self.members()
        elif key in _ARGUMENTS:
            if self._begun or self._held:
                raise Malformed
            if first == "{" and self._name:
                self._begin()
                yield from read_value(source, JSON, self._calls.arguments)
                self._calls.done()
            else:
                held: list[str] = []
                yield from read_value(source, JSON, held.append)
                self._held = "".join(held) if first == "{" else _object_text("".join(held))
        else:
            yield from read_value(source, JSON, lambda fragment: None)

    def _begin(self) -> None:
        self._begun = True
        self._calls.begin(self._name)

    def end(self) -> bool:
        """The object is over; whether it is a call."""
        if self._given_up:
            return False
        if not self._begun:
            if not self._name or self._unknown:
                raise Malformed
            self._begin()
            self._calls.arguments(self._held or "{}")
        self._calls.done()
        return True


def _object_text(value: str) -> str:
    """The JSON of arguments that are given as a text, or as nothing; `value` is the JSON of that."""
    if value in ("null", '""'):
        return "{}"
    written = rewritten(json.loads(value), JSON) if value.startswith('"') else None
    if written is None or not written.startswith("{"):
        raise Malformed
    return written


def _string(source: Incoming) -> Steps[str]:
    parts: list[str] = []
    yield from source.expect('"')
    yield from read_string(source, '"', JSON, parts.append)
    return str(json.loads("".join(parts)))


# -- A name, then its arguments. -----------------------------------------------------------------------------


def mistral_call(form: CallFormat, calls: Calls, mark: str) -> Steps[None]:
    """A name, perhaps an id, and an object; or objects with names, as older models write it."""
    source = calls.source
    yield from source.space()
    if (yield from source.peek()) in ("[", "{"):
        yield from objects(form, calls, mark)
        return
    name = yield from source.word(_NAME)
    yield from source.space()
    if (yield from source.one_of(("[CALL_ID]",))):
        yield from source.word(_NAME)
    yield from source.one_of(("[ARGS]",))
    yield from named_call(calls, name)


_SEPARATOR: Final = "<｜tool▁sep｜>"
_CALL_BEGIN: Final = "<｜tool▁call▁begin｜>"
_CALL_END: Final = "<｜tool▁call▁end｜>"


def deepseek_calls(form: CallFormat, calls: Calls, mark: str) -> Steps[None]:
    """The word "function", a name, and an object in a fence; or a name and an object: DeepSeek."""
    yield from each_call(form, calls, mark, _CALL_BEGIN, _deepseek_call)


def _deepseek_call(form: CallFormat, calls: Calls) -> Steps[None]:
    source = calls.source
    name = yield from source.word(_NAME)
    yield from source.expect(_SEPARATOR)
    yield from source.space()
    fenced = (yield from source.peek()) != "{"
    if fenced:
        name = yield from source.word(_NAME)
        yield from source.space()
        if (yield from source.one_of(("```",))):
            yield from source.one_of(("json",))
    yield from named_call(calls, name)
    yield from source.space()
    if fenced and (yield from source.one_of(("```",))):
        yield from source.space()
    yield from source.one_of((_CALL_END,))


_KIMI_CALL: Final = ("<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>")


def kimi_calls(form: CallFormat, calls: Calls, mark: str) -> Steps[None]:
    """A name between a word and a number, `functions.name:0`, and an object: Kimi K2."""
    yield from each_call(form, calls, mark, _KIMI_CALL[0], _kimi_call)


def _kimi_call(form: CallFormat, calls: Calls) -> Steps[None]:
    source = calls.source
    _, arguments, end = _KIMI_CALL
    yield from source.space()
    name = (yield from source.word(_NAME)).removeprefix("functions.")
    head, _, number = name.rpartition(":")
    yield from source.space()
    yield from source.expect(arguments)
    yield from named_call(calls, head if number.isdigit() else name)
    yield from source.space()
    yield from source.one_of((end,))


def gemma_call(form: CallFormat, calls: Calls, mark: str) -> Steps[None]:
    """`call:name{key:value}`, with quotation marks of its own: Gemma 4."""
    source = calls.source
    yield from source.space()
    yield from source.expect("call:")
    name = yield from source.word(_NAME)
    if not name or (yield from source.peek()) != "{":
        raise Malformed
    calls.begin(name)
    yield from read_value(source, GEMMA, calls.arguments)
    calls.done()
    yield from end_mark(form, calls)


def python_calls(form: CallFormat, calls: Calls, mark: str) -> Steps[None]:
    """Calls as in Python, with arguments by name, one or a list of them: LFM 2."""
    yield from _one_or_list(form, calls, _python_call)


def python_lines(form: CallFormat, calls: Calls, mark: str) -> Steps[None]:
    """Calls as in Python, one on each line: OLMo 3."""
    source = calls.source
    yield from source.space()
    yield from _python_call(calls)
    yield from source.space()
    while not (yield from source.one_of((form.end,))) and (yield from source.peek()):
        yield from _python_call(calls)
        yield from source.space()


def _python_call(calls: Calls) -> Steps[None]:
    source = calls.source
    name = yield from source.word(_NAME)
    yield from source.expect("(")
    yield from source.space()
    if not name:
        raise Malformed
    opening = ""
    while not (yield from source.one_of((")",))):
        key = yield from source.word(_NAME)
        yield from source.space()
        yield from source.expect("=")
        yield from source.space()
        if not key:
            raise Malformed
        opening = begin_argument(calls, name, key, opening)
        yield from read_value(source, PYTHON, calls.arguments)
        yield from source.space()
        if (yield from source.one_of((",",))):
            yield from source.space()
        elif (yield from source.peek()) != ")":
            raise Malformed
    end_arguments(calls, name, opening)


def begin_argument(calls: Calls, name: str, key: str, opening: str) -> str:
    """An argument's value follows; the call begins with its first. Returns what stands before the next."""
    if not opening:
        calls.begin(name)
    calls.arguments(f'{opening or "{"}"{quoted(key)}": ')
    return ", "


def end_arguments(calls: Calls, name: str, opening: str) -> None:
    """End the arguments of the call."""
    if not opening:
        calls.begin(name)
    calls.arguments("}" if opening else "{}")
    calls.done()
