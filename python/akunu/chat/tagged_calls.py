"""The forms of calls whose parameters are tags: one function reads each, as in `akunu.chat.calls`."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, Final

from akunu.chat.calls import (
    CallFormat,
    Calls,
    begin_argument,
    each_call,
    end_arguments,
    end_mark,
    named_call,
    objects,
)
from akunu.chat.incoming import Incoming, Malformed, Steps
from akunu.chat.tools import Schema, inner_schema, kind_of, schema_kinds
from akunu.chat.values import PYTHON, quoted, rewritten

__all__ = [
    "glm_call",
    "hunyuan_calls",
    "invoked_calls",
    "nested_calls",
    "opened_calls",
    "tagged_call",
]

_FUNCTION: Final = "<function="
_PARAMETER: Final = "<parameter="
_FUNCTION_END: Final = "</function>"
_PARAMETER_END: Final = "</parameter>"


def tagged_call(form: CallFormat, calls: Calls, mark: str) -> Steps[None]:
    """A tag for the function and one for each parameter: Qwen 3 Coder and 3.5; or an object in the former.

    Only the schema tells a text from a number there.
    """
    source = calls.source
    if mark != _FUNCTION:
        yield from source.space()
        if (yield from source.peek()) == "{":
            yield from objects(form, calls, mark)
            return
        yield from source.expect(_FUNCTION)
    name = yield from _tag_name(source)
    yield from source.space()
    if (yield from source.peek()) == "{":
        yield from named_call(calls, name)
        yield from source.space()
        yield from source.one_of((_FUNCTION_END,))
        yield from end_mark(form, calls)
        return
    opening = ""
    while (yield from source.expect(_PARAMETER, _FUNCTION_END)) == _PARAMETER:
        key = yield from _tag_name(source)
        opening = begin_argument(calls, name, key, opening)
        yield from source.one_of(("\n",))
        yield from _parameter(calls, name, key, _PARAMETER_END, line_end="\n")
        yield from source.space()
    end_arguments(calls, name, opening)
    yield from end_mark(form, calls)


def invoked_calls(form: CallFormat, calls: Calls, mark: str) -> Steps[None]:
    """A tag for each function and for each parameter, with names as attributes: MiniMax M2, Muse, DeepSeek.

    DeepSeek's parameters say by an attribute whether they are strings; a function without any may be closed
    at once, or have an object instead.
    """
    yield from each_call(form, calls, mark, f'<{form.space}invoke name="', _invoked_call)


_IS_STRING: Final = {">": None, ' string="true">': True, ' string="false">': False}
"""The text that follows a parameter's name, and whether it says that the value is a string."""


def _invoked_call(form: CallFormat, calls: Calls) -> Steps[None]:
    source = calls.source
    end = f"</{form.space}invoke>"
    parameter, parameter_end = f'<{form.space}parameter name="', f"</{form.space}parameter>"
    name = yield from _tag_name(source, '"')
    yield from source.space()
    opening = ""
    if (yield from source.expect(">", "/>")) == ">":
        yield from source.space()
        if (yield from source.peek()) == "{":
            yield from named_call(calls, name)
            yield from source.space()
            yield from source.expect(end)
            return
        while (yield from source.expect(parameter, end)) == parameter:
            key = yield from _tag_name(source, '"')
            string = yield from source.expect(*_IS_STRING)
            opening = begin_argument(calls, name, key, opening)
            yield from _parameter(calls, name, key, parameter_end, string=_IS_STRING[string])
            yield from source.space()
    end_arguments(calls, name, opening)


def glm_call(form: CallFormat, calls: Calls, mark: str) -> Steps[None]:
    """A name, and tags for each parameter's name and value: GLM 4.5 to 4.7."""
    source = calls.source
    yield from source.space()
    if (yield from source.peek()) == "{":
        yield from objects(form, calls, mark)
        return
    start = source.at
    while (char := (yield from source.peek())) and char not in "<\n":
        source.at += 1
    name = source.text[start : source.at].rstrip()
    yield from source.space()
    if not name or (yield from source.peek()) != "<":
        raise Malformed
    yield from _keyed(form, calls, name, form.end)


def hunyuan_calls(form: CallFormat, calls: Calls, mark: str) -> Steps[None]:
    """Read calls between tags, with one behind the name of each: Hunyuan 3."""
    yield from each_call(form, calls, mark, f"<tool_call{form.space}>", _hunyuan_call)


def _hunyuan_call(form: CallFormat, calls: Calls) -> Steps[None]:
    source = calls.source
    name = (yield from source.until(f"<tool_sep{form.space}>")).strip()
    yield from source.space()
    if not name:
        raise Malformed
    yield from _keyed(form, calls, name, f"</tool_call{form.space}>")


def _keyed(form: CallFormat, calls: Calls, name: str, end: str) -> Steps[None]:
    """Tags for each parameter's name and value, up to the end of the call."""
    source = calls.source
    key_begin, key_end, value_begin, value_end = (
        f"<{tag}{form.space}>" for tag in ("arg_key", "/arg_key", "arg_value", "/arg_value")
    )
    opening = ""
    while (yield from source.expect(key_begin, end)) == key_begin:
        key = (yield from source.until(key_end)).strip()
        if not key:
            raise Malformed
        yield from source.space()
        yield from source.expect(value_begin)
        opening = begin_argument(calls, name, key, opening)
        yield from _parameter(calls, name, key, value_end)
        yield from source.space()
    end_arguments(calls, name, opening)


_ATTRIBUTE: Final = re.compile(r'(\w+)="([^"]*)"')


def opened_calls(form: CallFormat, calls: Calls, mark: str) -> Steps[None]:
    """Tags of control tokens, `<|open|>call tool="NAME"<|sep|>`, whose parameters say their type: Kimi K3."""
    yield from each_call(form, calls, mark, "<|open|>call", _opened_call)


def _opened_call(form: CallFormat, calls: Calls) -> Steps[None]:
    source = calls.source
    argument, json_block, end = "<|open|>argument", "<|open|>json", "<|close|>call<|sep|>"
    name = (yield from _attributes(source)).get("tool", "")
    yield from source.space()
    if not name:
        raise Malformed
    opening = ""
    found = yield from source.expect(argument, json_block, end)
    if found == json_block:
        yield from source.until("<|sep|>")
        yield from named_call(calls, name)
        yield from source.space()
        yield from source.expect("<|close|>json<|sep|>")
        yield from source.space()
        yield from source.expect(end)
        return
    while found == argument:
        said = yield from _attributes(source)
        if not said.get("key"):
            raise Malformed
        opening = begin_argument(calls, name, said["key"], opening)
        string = said["type"] == "string" if "type" in said else None
        yield from _parameter(calls, name, said["key"], "<|close|>argument<|sep|>", string=string)
        yield from source.space()
        found = yield from source.expect(argument, end)
    end_arguments(calls, name, opening)


def _attributes(source: Incoming) -> Steps[dict[str, str]]:
    """The attributes of a tag, whose end is taken."""
    found = _ATTRIBUTE.findall((yield from source.until("<|sep|>")))
    return {key: value.replace("&quot;", '"').replace("&amp;", "&") for key, value in found}


def nested_calls(form: CallFormat, calls: Calls, mark: str) -> Steps[None]:
    """A tag for each function, and one for each value within it, as deep as they lie: MiniMax M3."""
    yield from each_call(form, calls, mark, f'{form.space}<invoke name="', _nested_call)


def _nested_call(form: CallFormat, calls: Calls) -> Steps[None]:
    source, tag = calls.source, f"{form.space}<"
    name = yield from _tag_name(source, '">')
    yield from source.space()
    opening = ""
    yield from source.expect(tag)
    while not (yield from source.one_of(("/invoke>",))):
        key = yield from _tag_name(source)
        opening = begin_argument(calls, name, key, opening)
        schema, root = calls.tools.parameter(name, key), calls.tools.get(name, {})
        if (yield from source.one_of((tag,))):
            found = yield from _nested(source, tag, key, schema, root)
            calls.arguments(json.dumps(found, ensure_ascii=False))
        else:
            yield from _parameter(calls, name, key, f"{tag}/{key}>")
        yield from source.space()
        yield from source.expect(tag)
    end_arguments(calls, name, opening)


def _nested(source: Incoming, tag: str, parent: str, schema: Schema, root: Schema) -> Steps[Any]:
    """The value of an element whose first child, or whose end, begins: an array of `item`, or an object."""
    kinds = schema_kinds(schema, root)
    items: list[tuple[str, Any]] = []
    while not (yield from source.one_of((f"/{parent}>",))):
        name = yield from _tag_name(source)
        child = inner_schema(schema, root, None if name == "item" and "object" not in kinds else name)
        if (yield from source.one_of((tag,))):
            items.append((name, (yield from _nested(source, tag, name, child, root))))
        else:
            text = yield from source.until(f"{tag}/{name}>")
            items.append((name, json.loads(_typed(text, schema_kinds(child, root)))))
        yield from source.space()
        yield from source.expect(tag)
    if not items:
        return {} if "object" in kinds else [] if "array" in kinds else ""
    if "object" not in kinds and all(name == "item" for name, _ in items):
        return [value for _, value in items]
    return dict(items)


def _tag_name(source: Incoming, end: str = ">") -> Steps[str]:
    """Return what a tag names, up to its end; `end` is that of an attribute, too."""
    start = source.at
    while (char := (yield from source.peek())) and char not in '<>"\n':
        source.at += 1
    name = source.text[start : source.at]
    yield from source.expect(end)
    if not name:
        raise Malformed
    return name


def _parameter(
    calls: Calls, function: str, key: str, end: str, line_end: str = "", string: bool | None = None
) -> Steps[None]:
    """A value up to its closing tag; a `line_end` ahead of that is the tag's.

    `string`: whether the value is one, where that is said; else the schema tells it.
    """
    source = calls.source
    kinds = calls.tools.kinds(function, key)
    if string is None:
        string = calls.tools.parameter(function, key).get("type") == "string"
    elif not string:
        kinds = kinds - {"string"}
    if not string:
        text = (yield from source.until(end)).removesuffix(line_end)
        calls.arguments(_typed(text, kinds))
        return
    calls.arguments('"')
    held = mark = ""
    while not mark:
        text, mark = yield from source.some((end,))
        if not text and not mark:
            raise Malformed
        text = held + text
        held = line_end if line_end and text.endswith(line_end) else ""
        calls.arguments(quoted(text.removesuffix(line_end)))
    calls.arguments('"')


def _typed(text: str, kinds: Collection[str]) -> str:
    """The JSON of a value that the text alone need not tell the type of; `kinds`: the types it may have."""
    written = rewritten(text, PYTHON)
    if written is None or ("string" in kinds and _kind(written) not in kinds):
        return f'"{quoted(text)}"'
    return written


def _kind(written: str) -> str:
    """The type of a value that is JSON, however many digits its numbers have."""
    return kind_of(json.loads(written, parse_int=lambda digits: 0))
