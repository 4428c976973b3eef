"""Grammars of arguments for the families that do not write them as JSON: what may be written for a schema.

Properties come in the order of the schema, each at most once, and only those that it names. A schema that
cannot be honoured is refused by the keyword.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from akunu.base.errors import InvalidArgumentError
from akunu.chat.structured.json_schema import schema_expression

__all__ = [
    "Grammar",
    "gemma_arguments",
    "glm_arguments",
    "invoked_arguments",
    "nested_arguments",
    "opened_arguments",
    "python_arguments",
    "tagged_arguments",
]

Schema = Mapping[str, Any]

_TAGGED_KEY: Final = re.compile(r'[^<>"\n]+')
_PYTHON_KEY: Final = re.compile(r"[\w.:/-]+")
_GEMMA_KEY: Final = re.compile(r"[\w.$-]+")
"""Names that the readers of these forms take."""
_ANNOTATIONS: Final = frozenset(
    {
        "$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples",
        "deprecated", "readOnly", "writeOnly",
    }
)  # fmt: skip
_OF_OBJECTS: Final = frozenset({"type", "properties", "required", "additionalProperties"})
_OF_STRINGS: Final = frozenset({"type", "enum", "const", "minLength", "maxLength", "pattern"})
_PATTERN: Final = re.compile(r"\^(?P<body>[^|/]*)\$")
_TYPES: Final = ("string", "integer", "number", "boolean", "null", "array", "object")


@dataclass(frozen=True, slots=True)
class Grammar:
    """The grammar of what may stand between the marks of a call.

    Attributes
    ----------
    lark : str
        Rules, of which `start` is the first.
    marks : Mapping[str, str]
        Texts that rules are made for, as in `akunu.Tag`.
    """

    lark: str
    marks: Mapping[str, str] = field(default_factory=dict)


def _refuse(keyword: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"tools: {keyword} cannot be honoured in the way in which this model writes arguments; leave it out, "
        "or neither force the call nor make the tool strict"
    )


class _Writer:
    """Collects rules. `text` writes a string without a limit, `quote` encloses texts that have one."""

    def __init__(self, root: Schema) -> None:
        self._definitions = {name: root[name] for name in ("$defs", "definitions") if name in root}
        self.root = root
        self.rules: list[str] = []
        self._refs: dict[str, str] = {}

    def rule(self, body: str) -> str:
        """A rule of its own; returns its name."""
        name = f"r{len(self.rules)}"
        self.rules.append(f"{name}: {body}")
        return name

    def lark(self, start: str) -> str:
        return "\n".join([f"start: {start}", *self.rules])

    def json(self, schema: object) -> str:
        """A value as JSON; the whole schema's definitions hold in it."""
        whole = schema if isinstance(schema, Mapping) else {} if schema is True else {"not": {}}
        return self.rule(schema_expression({**self._definitions, **whole}))

    def resolved(self, ref: str) -> Schema:
        """Return what a reference within the schema names."""
        found: Any = self.root
        for part in ref.removeprefix("#").strip("/").split("/"):
            found = found.get(part) if isinstance(found, Mapping) else None
        if not ref.startswith("#/") or not isinstance(found, Mapping):
            raise _refuse(f"$ref {ref!r}")
        return found

    def reference(self, ref: str, write: Callable[[Schema], str]) -> str:
        """The rule of a reference, which may be within what it names."""
        if ref not in self._refs:
            name = self._refs[ref] = f"ref{len(self._refs)}"
            self.rules.append(f"{name}: {write(self.resolved(ref))}")
        return self._refs[ref]

    def limited(self, schema: Schema) -> str | None:
        """A string with limits, without `<`, which begins every mark; None: it has none."""
        _only(schema, _OF_STRINGS)
        if "const" in schema or "enum" in schema:
            values = [schema["const"]] if "const" in schema else list(schema["enum"])
            if not values or not all(isinstance(value, str) and "<" not in value for value in values):
                raise _refuse("an enum of a string's values that are no texts, or have < in them,")
            return "(" + " | ".join(json.dumps(value, ensure_ascii=False) for value in values) + ")"
        low, high = schema.get("minLength", 0), schema.get("maxLength")
        if "pattern" in schema:
            pattern = _PATTERN.fullmatch(str(schema["pattern"]))
            if pattern is None or low or high is not None:
                raise _refuse(f"the pattern {schema['pattern']!r}")
            return self.terminal(f"/{pattern['body']}/ & /[^<]*/")
        if not low and high is None:
            return None
        return self.terminal(f"/[^<]{{{low},{'' if high is None else high}}}/")

    def terminal(self, body: str) -> str:
        name = f"T{len(self.rules)}"
        self.rules.append(f"{name}: {body}")
        return name


def _only(schema: Schema, known: frozenset[str]) -> None:
    for keyword in schema:
        if keyword not in known and keyword not in _ANNOTATIONS and not keyword.startswith("x-"):
            raise _refuse(keyword)


def _properties(writer: _Writer, schema: Schema, names: re.Pattern[str]) -> list[tuple[str, object, bool]]:
    """The properties of an object: name, schema, whether it is required."""
    if "$ref" in schema:
        schema = writer.resolved(schema["$ref"])
    _only(schema, _OF_OBJECTS)
    if schema.get("type", "object") != "object":
        raise _refuse(f"the type {schema['type']!r} of all arguments")
    properties, required = schema.get("properties", {}), schema.get("required", ())
    for name in [*properties, *required]:
        if not names.fullmatch(name):
            raise _refuse(f"a parameter of the name {name!r}")
    named = [(name, each, name in required) for name, each in properties.items()]
    return named + [(name, {}, True) for name in required if name not in properties]


def _in_order(writer: _Writer, items: Sequence[tuple[str, bool]], separator: str) -> str:
    """Items in their order, of which some are required, with a separator between those that come."""
    later, first = '""', '""'
    for body, required in reversed(items):
        item = writer.rule(f"{body} {later}")
        first = item if required else writer.rule(f"{item} | {first}")
        follows = f'"{separator}" {item}'
        later = writer.rule(follows if required else f"{follows} | {later}")
    return first


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def tagged_arguments(schema: Schema) -> Grammar:
    """A tag for each parameter: Qwen 3 Coder and 3.5. Strings are written as they are."""
    return _tags(schema, lambda name, kind: f"<parameter={name}>\n", "\n</parameter>\n")


def invoked_arguments(schema: Schema, space: str = "", says_strings: bool = False) -> Grammar:
    """Return the grammar of arguments whose names are attributes: MiniMax M2, Muse, DeepSeek.

    `says_strings`: another attribute says whether a value is a string.
    """
    said = ' string="{}"' if says_strings else ""

    def tag(name: str, kind: str) -> str:
        return f'<{space}parameter name="{name}"{said.format("true" if kind == "string" else "false")}>'

    return _tags(schema, tag, f"</{space}parameter>\n")


def opened_arguments(schema: Schema) -> Grammar:
    """Return the grammar of arguments whose names and types are attributes: Kimi K3."""

    def tag(name: str, kind: str) -> str:
        escaped = name.replace("&", "&amp;")
        return f'<|open|>argument key="{escaped}" type="{"number" if kind == "integer" else kind}"<|sep|>'

    return _tags(schema, tag, "<|close|>argument<|sep|>")


def _tags(schema: Schema, tag: Callable[[str, str], str], end: str) -> Grammar:
    """`tag` makes what a parameter of a name and a type begins with."""
    writer = _Writer(schema)
    parts = []
    for name, each, required in _properties(writer, schema, _TAGGED_KEY):
        kind = each.get("type") if isinstance(each, Mapping) else None
        begin = _string(tag(name, kind if isinstance(kind, str) else "object"))
        parts.append(f"({begin} {_closed(writer, each)})" + ("" if required else "?"))
    return Grammar(writer.lark(" ".join(parts) or '""'), {"close": end})


def _closed(writer: _Writer, schema: object) -> str:
    """A value and the mark that closes it; strings are written as they are."""
    if not isinstance(schema, Mapping) or schema.get("type") != "string":
        return f"{writer.json(schema)} close"
    limited = writer.limited(schema)
    return "until_close" if limited is None else f"{limited} close"


def glm_arguments(schema: Schema, space: str = "") -> Grammar:
    """Tags for each parameter's name and value: GLM 4.5 to 4.7, with line ends between them or without."""
    writer = _Writer(schema)
    parts = []
    for name, each, required in _properties(writer, schema, _TAGGED_KEY):
        key = _string(f"<arg_key{space}>{name}</arg_key{space}>")
        begin = f'{key} "\\n"? "<arg_value{space}>"'
        parts.append(f'({begin} {_closed(writer, each)} "\\n"?)' + ("" if required else "?"))
    return Grammar(writer.lark(" ".join(['"\\n"?', *parts])), {"close": f"</arg_value{space}>"})


def nested_arguments(schema: Schema, space: str) -> Grammar:
    """Tags for values within values: MiniMax M3. What has no members that are known is JSON."""
    writer, marks = _Writer(schema), dict[str, str]()

    def element(name: str, each: object) -> str:
        close = f"close{len(marks)}"
        marks[close] = f"{space}</{name}>"
        return writer.rule(f"{_string(f'{space}<{name}>')} {value(each, close)}")

    def value(each: object, close: str) -> str:
        each = each if isinstance(each, Mapping) else {}
        if "$ref" in each:
            return f"{writer.reference(each['$ref'], lambda found: inner(found))} {close}"
        if each.get("type") == "string":
            limited = writer.limited(each)
            return f"until_{close}" if limited is None else f"{limited} {close}"
        return f"{inner(each)} {close}"

    def inner(each: Schema) -> str:
        if each.get("type") == "object" and "properties" in each:
            return writer.rule(members(each))
        if each.get("type") == "array" and "items" in each:
            _only(each, frozenset({"type", "items", "minItems", "maxItems"}))
            item, low, high = (
                element("item", each["items"]),
                each.get("minItems", 0),
                each.get("maxItems", ""),
            )
            return writer.rule(f"({item}){{{low},{high}}}")
        return writer.json(each)

    def members(each: Schema) -> str:
        found = [
            f"{element(name, part)}" + ("" if required else "?")
            for name, part, required in _properties(writer, each, _TAGGED_KEY)
        ]
        return " ".join(found) or '""'

    return Grammar(writer.lark(members(schema)), marks)


def python_arguments(schema: Schema) -> Grammar:
    """`name=value, …`: LFM 2. Values are JSON's, which are Python's but for three words."""
    writer = _Writer(schema)
    items = []
    for name, each, required in _properties(writer, schema, _PYTHON_KEY):
        value = '("True" | "False")' if each == {"type": "boolean"} else writer.json(each)
        items.append((f"{_string(name + '=')} {value}", required))
    return Grammar(writer.lark(_in_order(writer, items, ", ")))


def gemma_arguments(schema: Schema) -> Grammar:
    """`{name:value,…}` with quotation marks of its own: Gemma 4."""
    writer = _Writer(schema)
    return Grammar(writer.lark(_gemma_object(writer, schema)), {"quote": '<|"|>'})


def _gemma_object(writer: _Writer, schema: Schema) -> str:
    items = [
        (f"{_string(name + ':')} {_gemma(writer, each)}", required)
        for name, each, required in _properties(writer, schema, _GEMMA_KEY)
    ]
    return f'"{{" {_in_order(writer, items, ",")} "}}"'


def _gemma(writer: _Writer, schema: object) -> str:
    if schema is False:
        raise _refuse("a schema that nothing fits")
    if not isinstance(schema, Mapping):
        schema = {}
    if "$ref" in schema:
        return writer.reference(schema["$ref"], lambda found: _gemma(writer, found))
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            _only(schema, frozenset({keyword}))
            return "(" + " | ".join(_gemma(writer, each) for each in schema[keyword]) + ")"
    if "type" not in schema and ("enum" in schema or "const" in schema):
        _only(schema, frozenset({"enum", "const"}))
        values = [schema["const"]] if "const" in schema else schema["enum"]
        return "(" + " | ".join(_gemma_constant(writer, value) for value in values) + ")"
    kind = schema.get("type", list(_TYPES[:5]))
    if isinstance(kind, list):
        return "(" + " | ".join(_gemma(writer, {**schema, "type": each}) for each in kind) + ")"
    if kind == "string":
        limited = writer.limited(schema)
        return "quote until_quote" if limited is None else f"quote {limited} quote"
    if kind == "object":
        return writer.rule(_gemma_object(writer, schema))
    if kind == "array":
        _only(schema, frozenset({"type", "items", "minItems", "maxItems"}))
        return _gemma_array(writer, schema)
    return writer.json(schema)


def _gemma_array(writer: _Writer, schema: Schema) -> str:
    low, high = schema.get("minItems", 0), schema.get("maxItems")
    if high == 0:
        return '"[]"'
    item = writer.rule(_gemma(writer, schema.get("items", {})))
    more = f"{{{max(low - 1, 0)},{'' if high is None else high - 1}}}"
    some = f'{item} ("," {item}){more}'
    return writer.rule(f'"[" ({some}){"" if low else "?"} "]"')


def _gemma_constant(writer: _Writer, value: object) -> str:
    if isinstance(value, str) and "<" not in value:
        return f"quote {_string(value)} quote" if value else "quote quote"
    if isinstance(value, dict | list | str):
        raise _refuse(f"the value {value!r} of an enum")
    return _string(json.dumps(value))
