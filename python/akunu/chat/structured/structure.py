"""The structure that an output is to have, as data: one of the arguments of a generation, checked as far
as it can be without a model.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from akunu.base.errors import InvalidArgumentError
from akunu.chat.structured.tags import StructuralTag

__all__ = ["ARGUMENTS", "Kind", "Structure", "structure_of", "with_any_space"]

Kind = Literal["schema", "json", "regex", "grammar", "choice", "structural_tag"]

ARGUMENTS: Final[tuple[Kind, ...]] = ("schema", "json", "regex", "grammar", "choice", "structural_tag")
"""The arguments of a generation that say so; one of them at most is given."""


@dataclass(frozen=True, slots=True)
class Structure:
    """The structure of an output. Two that are equal mean the same.

    Attributes
    ----------
    kind : Kind
        The argument that it was given as.
    text : str
        The argument: a schema, a list of choices and a structural tag as JSON, whose order of keys counts.
    tag : StructuralTag | None
        The structural tag, where it is one.
    """

    kind: Kind
    text: str
    tag: StructuralTag | None = field(default=None, compare=False)


def structure_of(options: Mapping[str, object]) -> Structure | None:
    """Return the structure that the arguments of a generation ask for; None: any.

    Raises
    ------
    InvalidArgumentError
        For more than one of them, or a value of the wrong type.
    """
    given = [name for name in ARGUMENTS if _is_given(name, options.get(name))]
    if not given:
        return None
    if len(given) > 1:
        raise InvalidArgumentError(
            f"{given[0]} and {given[1]} exclude each other: an output has one structure"
        )
    kind = given[0]
    value = options[kind]
    text = _CHECKS[kind](value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"{kind}: half of a surrogate pair is no character: {error}") from error
    return Structure(kind, text, value if isinstance(value, StructuralTag) else None)


def with_any_space(structure: Structure) -> Structure:
    """Allow white space anywhere in JSON whose schema has no style; others stay as they are."""
    if structure.kind not in ("schema", "json"):
        return structure
    schema = json.loads(structure.text) if structure.kind == "schema" else {"type": "object"}
    if not isinstance(schema, dict):
        schema = {}
    style = {"item_separator": ",", "key_separator": ":", "whitespace_flexible": True}
    return Structure("schema", json.dumps({"x-guidance": style, **schema}, ensure_ascii=False))


def _is_given(name: Kind, value: object) -> bool:
    return value is not None and (value is not False or name == "schema")


def _schema(value: object) -> str:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise InvalidArgumentError(f"schema: the text is not JSON: {error}") from error
    if value is False:
        raise InvalidArgumentError(
            "schema: false accepts nothing, so no text can have it; None asks for no schema"
        )
    if not isinstance(value, Mapping) and value is not True:
        raise InvalidArgumentError(
            f"schema: expected a JSON schema as a mapping or JSON text, got {type(value).__name__}"
        )
    return _as_json("schema", value)


def _json(value: object) -> str:
    if value is not True:
        raise InvalidArgumentError(
            f"json: expected True or False, got {value!r}; a schema is given as schema"
        )
    return ""


def _text(name: Kind, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidArgumentError(f"{name}: expected a text that is not empty, got {value!r}")
    return value


def _choice(value: object) -> str:
    texts = list(value) if isinstance(value, Iterable) and not isinstance(value, str | Mapping) else []
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise InvalidArgumentError(f"choice: expected a list of texts, none of them empty, got {value!r}")
    return json.dumps(texts, ensure_ascii=False)


def _tag(value: object) -> str:
    if not isinstance(value, StructuralTag):
        raise InvalidArgumentError(
            f"structural_tag: expected an akunu.StructuralTag, got {type(value).__name__}"
        )
    tags = [[tag.begin, tag.schema, tag.end, tag.grammar, tag.marks] for tag in value.tags]
    return _as_json("structural_tag", [tags, value.triggers, value.required, value.parallel, value.after])


def _as_json(name: str, value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=_mapping)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"{name}: it is not JSON: {error}") from error


def _mapping(value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r} ({type(value).__name__})")


_CHECKS: Final[Mapping[Kind, Any]] = {
    "schema": _schema,
    "json": _json,
    "regex": lambda value: _text("regex", value),
    "grammar": lambda value: _text("grammar", value),
    "choice": _choice,
    "structural_tag": _tag,
}
