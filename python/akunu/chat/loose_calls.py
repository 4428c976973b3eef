"""Calls in another form than the family's: an answer that is nothing but objects with a name and arguments.

Small models often write a right call where their template did not teach them to: in `<tools>`, in a fence of
Markdown, or bare. Such an answer is a call if all of it is: each object names one of the tools and has
arguments that fit its schema, and nothing stands beside them. A text that merely speaks of a call stays one.

In `<tools>` at the beginning of a line they may also end an answer that begins with a text, as they may in
the family's own tags. There is no fence around them then: what is in one is an example.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Final

from akunu.chat.calls import Calls, read_object
from akunu.chat.fitting import fits
from akunu.chat.incoming import Incoming, Malformed, Steps
from akunu.chat.structured.json_schema import schema_expression
from akunu.chat.structured.structure import Structure, structure_of
from akunu.chat.structured.tags import StructuralTag, Tag
from akunu.chat.tools import NO_PARAMETERS, Tools

if TYPE_CHECKING:
    from akunu.chat.structured.late import LateConstraints, LatePart

__all__ = ["AFTER_TEXT", "MOST_LOOSE", "late_arguments", "loose_calls"]

MOST_LOOSE: Final = 64
"""Calls in one answer."""

AFTER_TEXT: Final = "\n<tools>"
"""The beginnings of such calls after a text."""

_TAGS: Final = ("<tools>", "</tools>", "<tool_call>", "</tool_call>", ",", ";", "[", "]")
_FENCE: Final = "```"
_LANGUAGES: Final = ("", "json", "tool_call", "tools")
_WORD: Final = "_"


def loose_calls(calls: Calls, most: int, *, fences: bool = True) -> Steps[None]:
    """Read the rest of an answer as calls, `most` at most. They are given when all of it has been read."""
    source = calls.source
    found: list[_KeptCall] = []
    while (yield from _dress(source, fences)):
        held = _KeptCall(calls)
        if not (yield from read_object(held)):  # see `late_arguments`
            continue
        if len(found) == most or not _fits(held):
            raise Malformed
        found.append(held)
    if not found:
        raise Malformed
    for held in found:
        calls.begin(held.name)
        calls.arguments(held.text)
        calls.done()


def _dress(source: Incoming, fences: bool) -> Steps[bool]:
    """Read what may stand around objects; return whether one follows."""
    while True:
        yield from source.space()
        if fences and (yield from source.one_of((_FENCE,))):
            if (yield from source.word(_WORD)).lower() not in _LANGUAGES:
                raise Malformed
        elif not (yield from source.one_of(_TAGS)):
            break
    first = yield from source.peek()
    if first not in ("{", ""):
        raise Malformed
    return bool(first)


def _fits(held: _KeptCall) -> bool:
    try:
        return fits(json.loads(held.text), held.tools[held.name])
    except ValueError:  # a number of too many digits
        return False


class _KeptCall:
    """One call that is read, and kept."""

    def __init__(self, calls: Calls) -> None:
        self.source = calls.source
        self.tools = calls.tools
        self.name = ""
        self.text = ""

    def begin(self, name: str) -> None:
        self.name = name

    def arguments(self, fragment: str) -> None:
        self.text += fragment

    def done(self) -> None:
        pass


# -- What such a call has to be like, once it has begun. -----------------------------------------------------

_STARTS: Final = ("{", "[", "`", "<")
_STYLE: Final = {"whitespace_flexible": True, "whitespace_pattern": r"[ \t\r\n]{0,24}"}
"""The style of such calls, on several lines, which is the model's own."""
_ARGUMENTS: Final = """start: SPACE? {schema} END REST?
SPACE: /[ \\t\\r\\n]{{1,24}}/
END: /[ \\t\\r\\n]{{0,24}}\\}}/
REST: /(?s:.+)/
"""
"""Arguments, the end of the object that they are in, and what its token has after that.

A token such as `}}` with a line break is how a model ends a call. Without it, the likeliest of the tokens
that are left may be one more digit.
"""
_NAME: Final = """start: {before} ({names}) END
BEGIN: SPACE? (/```(json)?/ SPACE? | "[" SPACE?)? /\\{{\\{{?/ SPACE? "\\"name\\"" SPACE? ":" SPACE? "\\""
SPACE: /[ \\t\\r\\n]{{1,24}}/
END: /"[ \\t\\r\\n]{{0,24}},[ \\t\\r\\n]{{0,24}}"(arguments|parameters)"[ \\t\\r\\n]{{0,24}}:/
"""
"""An object that names one of the tools, up to its arguments."""
_GIVEN_UP: Final = r'" null}\n{\"name\": \""'
"""The end of a call of no tool, and the beginning of another one."""
_MOST_SCHEMA: Final = 20_000
"""Characters of a schema that is compiled while the text is written."""


def late_arguments(tools: Tools, reasoning: tuple[str, str], opened: bool) -> LateConstraints:
    """Calls of the tools with arguments that fit their schemas, where an answer has begun as a call.

    After `<tools>`, with which no family's own calls begin, an object follows. Between tags an object is a
    call from its first character, and names one of the tools. Elsewhere it may be anything that has a name,
    until its arguments begin. If it names no tool, its arguments are null, and an object that names one
    follows it: a small model that makes up a name gets on by itself.

    Parameters
    ----------
    tools
        Functions that the answer may call.
    reasoning
        Marks of what may stand before it.
    opened
        The prompt ends within that.
    """
    dress = "|".join([r"[\s}]", "```(?:json|tool_call|tools)?", *map(re.escape, _TAGS)])
    pattern = re.compile(
        r"<tools>(?=\s*\Z)"
        rf'|(?:{dress})*(?:<tools>|<tool_call>)(?:{dress})*(?=\{{{{1,2}}[\s":name]*\Z)'
        rf'|(?:{dress})*\{{{{1,2}}\s*"name"\s*:\s*"(?P<name>[^"\\]{{1,200}})"\s*,\s*"(?:arguments|parameters)"\s*:'
    )
    from akunu.chat.structured.late import LateConstraints

    return LateConstraints(_STARTS, pattern, partial(_part, tools), reasoning, opened)


def _part(tools: Tools, found: re.Match[str]) -> LatePart | None:
    """Return the grammar of what follows a call's beginning; None where that takes too long to compile."""
    from akunu.chat.structured.late import LatePart

    name = found["name"]
    if name is not None and name in tools:
        schema = tools[name]
        if len(str(schema)) > _MOST_SCHEMA:
            return None
        styled = {"type": "object", **(schema or NO_PARAMETERS), "x-guidance": _STYLE}
        grammar = _ARGUMENTS.format(schema=schema_expression(styled, f"tools: {name}"))
        return LatePart(_structure(grammar, f"tools: {name}"), again="}", after=True)
    names = " | ".join(json.dumps(json.dumps(each, ensure_ascii=False)[1:-1]) for each in tools)
    grammar = _NAME.format(before="BEGIN" if name is None else _GIVEN_UP, names=names)
    return LatePart(_structure(grammar, "tools: a name"), again="{")


def _structure(grammar: str, name: str) -> Structure:
    tag = Tag("", None, "", grammar, name=name)
    structure = structure_of({"structural_tag": StructuralTag((tag,), required=True, parallel=False)})
    assert structure is not None
    return structure
