"""Schemas with numbers that a double does not hold or llguidance has no range for, or patterns that exclude.

llguidance keeps bounds and constants as doubles and makes ranges of up to 18 digits. So a schema with
larger ones is written in Lark from its root down to these numbers, and the rest is left to llguidance. Where
a keyword on the way has no place in such a grammar (`allOf` of several, `patternProperties`), the bounds are
narrowed to what llguidance can do: all texts are valid then, but not all valid texts can be written.

A string whose pattern excludes something (``^(?!...)``) is a regular expression of its JSON, without escapes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from akunu.base.errors import InvalidArgumentError
from akunu.chat.structured.disjoint import resolved
from akunu.chat.structured.names import can_be
from akunu.chat.structured.number_ranges import ANY_NUMBER, integer_range, number_at_least, number_at_most
from akunu.chat.structured.patterns import has_alternatives

__all__ = ["ExactNumbers", "within_doubles"]

_LIMIT: Final = 10**15
"""Bounds up to here are llguidance's; a double holds their neighbours."""
_SMALLEST: Final = 1e-15
_BY_NAME: Final = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_NO_SCHEMAS: Final = frozenset({"const", "enum", "default", "examples", "x-guidance"})
_MAX_DIGITS: Final = 400
_BOUNDS: Final = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
_TYPES: Final = ("object", "array", "string", "integer", "number", "boolean", "null")
_KEYWORDS: Final = frozenset(
    {
        "$ref",
        "$dynamicRef",
        "$recursiveRef",
        "additionalItems",
        "additionalProperties",
        "allOf",
        "anyOf",
        "const",
        "contains",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "if",
        "items",
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "not",
        "oneOf",
        "pattern",
        "patternProperties",
        "prefixItems",
        "properties",
        "propertyNames",
        "required",
        "then",
        "type",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
    }
)
"""The keywords about values; any other word is an annotation."""
_WORDS: Final[Mapping[str, frozenset[str]]] = {
    "object": frozenset({"properties", "required", "patternProperties", "additionalProperties"}),
    "array": frozenset({"items", "prefixItems", "minItems", "maxItems"}),
    "integer": frozenset(_BOUNDS),
    "number": frozenset(_BOUNDS),
    "string": frozenset({"pattern", "minLength", "maxLength"}),
}
_DEFINITION: Final = re.compile(r"#/(\$defs|definitions)/([^/]*)(?:/.*)?")
_CLEAN: Final = r'[^"\\\x00-\x1f\x7f]'
_STRING: Final = r'"(?:[^"\\\x00-\x1f\x7f]|\\["\\\/bfnrt])*"'


class _NoPlace(Exception):
    """A keyword that the grammar of exact numbers has no place for."""


class ExactNumbers:
    """The grammar of one schema.

    Parameters
    ----------
    schema
        The root.
    style
        What stands between values (`x-guidance`).
    name
        What errors begin with.
    """

    def __init__(self, schema: Mapping[str, Any], style: Mapping[str, Any], name: str) -> None:
        self._root = schema
        self._style = style
        self._name = name
        self._lines: list[str] = []
        self._rules: dict[str, str] = {}
        self._large: dict[str, bool] = {}
        self.needed = self._is_large(schema)

    def expression(self) -> str:
        """The schema as an expression of Lark."""
        start = self._rule(self._root)
        return "%lark {\n" + "\n".join([f"start: {start}", *self._lines]) + "\n}"

    def _is_large(self, schema: object) -> bool:
        """Whether the schema, or one that it refers to, has such a number."""
        for part in _schemas(schema):
            if _has_large_number(part):
                return True
            reference = part.get("$ref")
            if isinstance(reference, str):
                if reference not in self._large:
                    self._large[reference] = False
                    self._large[reference] = self._is_large(resolved(self._root, reference))
                if self._large[reference]:
                    return True
        return False

    def _add(self, body: Callable[[], str] | str, key: str, prefix: str = "r") -> str:
        """The name of the rule of an expression; a rule may name itself."""
        if key not in self._rules:
            self._rules[key] = rule = f"{prefix}{len(self._rules)}"
            self._lines.append(f"{rule}: {body if isinstance(body, str) else body()}")
        return self._rules[key]

    def _rule(self, schema: Any) -> str:
        if not self._is_large(schema):
            return self._plain(schema)
        return self._add(lambda: self._body(schema), json.dumps(schema))

    def _plain(self, schema: Any) -> str:
        if isinstance(schema, bool):
            schema = {} if schema else {"not": {}}
        names = ("$defs", "definitions")
        whole = {**{key: self._root[key] for key in names if key in self._root}, **schema}
        text = json.dumps(
            within_doubles({**whole, "x-guidance": self._style}, self._name), ensure_ascii=False
        )
        return self._add(f"%json {text}", text)

    def _definitions(self, schema: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """The definitions that a schema refers to, also through others."""
        found: dict[str, dict[str, Any]] = {}
        stack: list[Any] = [schema]
        while stack:
            for part in _schemas(stack.pop()):
                place = _DEFINITION.fullmatch(str(part.get("$ref")))
                if place is None:
                    continue
                group, name = place.groups()
                defined = self._root.get(group, {})
                key = name.replace("~1", "/").replace("~0", "~")
                if key in defined and key not in found.setdefault(group, {}):
                    found[group][key] = defined[key]
                    stack.append(defined[key])
        return found

    def _body(self, schema: Mapping[str, Any]) -> str:
        try:
            return self._exact(schema)
        except _NoPlace:
            return self._plain(schema)

    def _exact(self, schema: Mapping[str, Any]) -> str:
        words = schema.keys() & _KEYWORDS
        if "$ref" in words:
            self._only(words, {"$ref"})
            return self._rule(resolved(self._root, schema["$ref"]))
        if "anyOf" in words:
            self._only(words, {"anyOf"})
            return " | ".join(map(self._rule, schema["anyOf"]))
        if "allOf" in words:
            self._only(words, {"allOf"})
            if len(schema["allOf"]) != 1:
                raise _NoPlace
            return self._rule(schema["allOf"][0])
        kinds: Any = schema.get("type")
        if "const" in words or "enum" in words:
            self._only(words, {"const", "enum", "type"})
            return self._values([schema["const"]] if "const" in words else schema["enum"], kinds)
        if kinds is None:  # a value of any other type is not asked about
            kinds = [kind for kind in _TYPES if kind != "integer"]
        if isinstance(kinds, list):
            shared = {key: part for key, part in schema.items() if key != "type"}
            return " | ".join(self._rule(_of_type(shared, kind)) for kind in kinds)
        if kinds not in _WORDS:
            raise _NoPlace
        self._only(words, _WORDS[kinds] | {"type"})
        if kinds == "object":
            return self._object(schema)
        if kinds == "string":
            return self._string(schema)
        return self._array(schema) if kinds == "array" else self._number(schema, kinds)

    def _only(self, words: Iterable[str], known: Iterable[str]) -> None:
        if set(words) - set(known):
            raise _NoPlace

    def _values(self, values: Any, kinds: Any) -> str:
        if not isinstance(values, list):
            raise _NoPlace
        kinds = [kinds] if isinstance(kinds, str) else kinds or _TYPES
        texts = [self._written(value) for value in values if _is_of(value, kinds)]
        if not texts:
            raise InvalidArgumentError(f"{self._name}: Unsatisfiable: enum has nothing of type {kinds}")
        return " | ".join(map(_literal, texts))

    def _written(self, value: Any) -> str:
        separators = (self._style["item_separator"], self._style["key_separator"])
        return json.dumps(value, ensure_ascii=False, separators=separators)

    def _number(self, schema: Mapping[str, Any], kind: str) -> str:
        low, above = _bound(schema, "minimum", "exclusiveMinimum", max)
        high, below = _bound(schema, "maximum", "exclusiveMaximum", min)
        if low is not None and high is not None and (low > high or (low == high and (above or below))):
            raise InvalidArgumentError(f"{self._name}: Unsatisfiable: no number from {low} to {high}")
        if kind == "number":
            parts = [] if low is None else [number_at_least(low, exclusive=above)]
            parts += [] if high is None else [number_at_most(high, exclusive=below)]
            written = " & ".join(f"/{part}/" for part in parts or [ANY_NUMBER])
        else:
            least = None if low is None else math.floor(low) + 1 if above else math.ceil(low)
            most = None if high is None else math.ceil(high) - 1 if below else math.floor(high)
            if least is not None and most is not None and least > most:
                raise InvalidArgumentError(f"{self._name}: Unsatisfiable: no integer from {low} to {high}")
            written = f"/{integer_range(least, most)}/"
        return self._add(written, written, "N")

    def _string(self, schema: Mapping[str, Any]) -> str:
        low, high = schema.get("minLength", 0), schema.get("maxLength", "")
        said: Mapping[str, list[str]] = schema["pattern"]
        parts = [f'/"{_CLEAN}{{{low},{high}}}"/']
        parts += [f"/{_quoted(each)}/" for each in said["every"]]
        parts += [f"~/{_quoted(each)}/" for each in said["none"]]
        written = " & ".join(parts)
        return self._add(written, written, "S")

    def _array(self, schema: Mapping[str, Any]) -> str:
        comma = _literal(self._style["item_separator"])
        items = schema.get("items", True)
        if isinstance(items, list):
            raise _NoPlace
        first = [self._rule(part) for part in schema.get("prefixItems", ())]
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        if most is not None and (most < least or most > 2000):
            raise _NoPlace
        more = None if items is False else self._rule(items)
        if more is None and len(first) < least:
            raise InvalidArgumentError(
                f"{self._name}: Unsatisfiable: minItems is {least}, of {len(first)} items"
            )
        count = max(len(first), least) if most is None else most
        places = first[:count] + ([more] * (count - len(first)) if more else [])
        tail = f"({comma} {more})*" if most is None and more else ""
        if most is None and more and not places:
            return f'"[" ({more} {tail})? "]"'
        for i in range(len(places) - 1, -1, -1):
            here = f"{comma} {places[i]}" if i else places[i]
            tail = f"{here} {tail}" if i < least else f"({here} {tail})?"
        return f'"[" {tail} "]"'

    def _object(self, schema: Mapping[str, Any]) -> str:
        comma, colon = (_literal(self._style[key]) for key in ("item_separator", "key_separator"))
        properties: dict[str, Any] = dict(schema.get("properties") or {})
        required = list(schema.get("required") or ())
        rest = schema.get("additionalProperties", True)
        patterns = {
            each: part for each, part in schema.get("patternProperties", {}).items() if part is not False
        }
        for each in required:
            if each not in properties and patterns:
                raise _NoPlace
            properties.setdefault(each, rest)
        members = [
            (f"{_literal(json.dumps(each, ensure_ascii=False))} {colon} {self._rule(part)}", each in required)
            for each, part in properties.items()
            if part is not False or each in required
        ]
        if any(properties[each] is False for each in required):
            raise InvalidArgumentError(f"{self._name}: Unsatisfiable: a required property may not be there")
        if patterns:  # then others have no place: their names would have to be those without a pattern
            members.append((self._patterned(patterns, list(properties), comma, colon), False))
        elif rest is not False:
            members.append((self._others(list(properties), rest, comma, colon), False))
        # begun: the object has a property already, so that a comma comes before the next.
        begun, first = '""', '""'
        for member, needed in reversed(members):
            after = begun
            begun = self._add(
                f"{comma} {member} {after}" + ("" if needed else f" | {after}"), f"{len(self._rules)}"
            )
            unbegun = f"{member} {after}" + ("" if needed else f" | {first}")
            first = self._add(unbegun, f"{len(self._rules)} first")
        return f'"{{" {first} "}}"'

    def _others(self, names: list[str], schema: Any, comma: str, colon: str) -> str:
        """One or more properties with names of their own."""
        name = f"/{_STRING}/"
        if names:
            quoted = " | ".join(_literal(json.dumps(each, ensure_ascii=False)) for each in names)
            name = f"{name} & ~({quoted})"
        member = f"{self._add(name, name, 'K')} {colon} {self._rule(schema)}"
        return f"{member} ({comma} {member})*"

    def _patterned(self, patterns: Mapping[str, Any], names: list[str], comma: str, colon: str) -> str:
        """One or more properties with names of these patterns."""
        kinds = []
        for pattern, schema in patterns.items():
            if any(can_be(pattern, each) for each in names):
                raise _NoPlace
            kinds.append(
                f"{self._plain({'type': 'string', 'pattern': pattern})} {colon} {self._rule(schema)}"
            )
        member = f"({' | '.join(kinds)})"
        return f"{member} ({comma} {member})*"


def within_doubles(schema: Any, name: str) -> Any:
    """The schema with its bounds narrowed to what llguidance has ranges for, and without larger constants."""
    if isinstance(schema, list):
        return [within_doubles(part, name) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {}
    for key, part in schema.items():
        if key in _NO_SCHEMAS:
            found[key] = part
        elif key in _BY_NAME and isinstance(part, dict):
            found[key] = {each: within_doubles(named, name) for each, named in part.items()}
        elif key in _BOUNDS and _is_large_bound(part):
            found[key] = _drawn_in(key, part, name)
        elif key == "pattern" and isinstance(part, dict):
            raise InvalidArgumentError(
                f"{name}: a pattern that excludes, (?!...), is supported beside minLength and maxLength only"
            )
        else:
            found[key] = within_doubles(part, name)
    if "enum" in found and isinstance(found["enum"], list):
        found["enum"] = [value for value in found["enum"] if _is_exact(value)]
    if (found.get("enum") == [] and schema["enum"]) or not _is_exact(found.get("const")):
        raise InvalidArgumentError(
            f"{name}: a constant has more than 15 digits, beside keywords that such numbers cannot have"
        )
    return found


def _drawn_in(key: str, bound: float, name: str) -> float:
    lower = key.lower().endswith("minimum")
    away = lower == (bound > 0)  # a bound that keeps numbers away from zero
    if abs(bound) < 1:
        return math.copysign(_SMALLEST, bound) if away else 0
    if away:
        raise InvalidArgumentError(
            f"{name}: {key} is {bound}; beside other keywords of this schema at most 15 digits are supported"
        )
    return int(math.copysign(_LIMIT, bound))


def _schemas(value: object) -> Iterator[Mapping[str, Any]]:
    """A schema and all that are in it."""
    stack = [value]
    while stack:
        found = stack.pop()
        if isinstance(found, list):
            stack += found
        elif isinstance(found, dict):
            yield found
            for key, part in found.items():
                if key in ("properties", "patternProperties") and isinstance(part, dict):
                    stack += part.values()
                elif key not in _NO_SCHEMAS and key not in _BY_NAME:
                    stack.append(part)


def _has_large_number(schema: Mapping[str, Any]) -> bool:
    if any(key in schema and _is_large_bound(schema[key]) for key in _BOUNDS) or isinstance(
        schema.get("pattern"), dict
    ):
        return True
    values = [schema["const"]] if "const" in schema else []
    enum = schema.get("enum")
    return any(map(_is_large_value, values + (enum if isinstance(enum, list) else [])))


def _is_large_bound(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    return abs(value) > _LIMIT or 0 < abs(value) < _SMALLEST


def _is_large_value(value: object) -> bool:
    """Whether a double does not hold a constant, or what is in it."""
    if isinstance(value, dict):
        return any(map(_is_large_value, value.values()))
    if isinstance(value, list):
        return any(map(_is_large_value, value))
    return _is_large_bound(value)


def _is_exact(value: Any) -> bool:
    """Whether llguidance writes a constant, or what is in it, as it is."""
    if isinstance(value, dict):
        return all(map(_is_exact, value.values()))
    if isinstance(value, list):
        return all(map(_is_exact, value))
    return not _is_large_bound(value) or isinstance(value, float) or value == int(float(value))


def _bound(
    schema: Mapping[str, Any], key: str, exclusive: str, tighter: Callable[[list[Decimal]], Decimal]
) -> tuple[Decimal | None, bool]:
    """A bound, and whether it is excluded; draft 4 says that with true."""
    bound, other = schema.get(key), schema.get(exclusive)
    given = [_decimal(value) for value in (bound, other) if value is not None and not isinstance(value, bool)]
    if not given:
        return None, False
    found = tighter(given)
    return found, other is True or (
        not isinstance(other, bool) and other is not None and found == _decimal(other)
    )


def _decimal(value: Any) -> Decimal:
    try:
        found = Decimal(repr(value) if isinstance(value, float) else value)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise _NoPlace from error
    if not found.is_finite() or found.adjusted() > _MAX_DIGITS:
        raise _NoPlace
    return found


def _quoted(pattern: str) -> str:
    """A pattern, which is looked for in a string, as one of all of its JSON."""
    inside = pattern.removeprefix("^").removesuffix("$")
    begins, ends = pattern.startswith("^"), pattern.endswith("$")
    if "$" in inside or "^" in inside.replace("[^", "") or (ends and has_alternatives(inside)):
        raise _NoPlace
    written = f"{'' if begins else f'{_CLEAN}*'}(?:{inside}){'' if ends else f'{_CLEAN}*'}"
    return '"' + written.replace("/", r"\/") + '"'


def _of_type(schema: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The schema of one of several types, with the words of that type only."""
    others = frozenset[str]().union(*_WORDS.values()) - _WORDS.get(kind, frozenset())
    return {"type": kind, **{key: part for key, part in schema.items() if key not in others}}


def _is_of(value: object, kinds: Iterable[str]) -> bool:
    if isinstance(value, bool):
        return "boolean" in kinds
    if isinstance(value, float) and not value.is_integer():
        return "number" in kinds
    if isinstance(value, int | float):
        return "number" in kinds or "integer" in kinds
    found: dict[type, str] = {str: "string", list: "array", dict: "object", type(None): "null"}
    return found.get(type(value), "") in kinds


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
