"""Names that an object may have, as llguidance sees it: it is asked, so that both always agree."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["can_be", "some_name"]


def some_name(taken: Iterable[str], patterns: Iterable[str], *, others: bool) -> bool:
    """Whether there is a name, not one of those that are taken, with a pattern; or with none of them."""
    tried = {
        "type": "object",
        "properties": dict.fromkeys(taken, False),
        "patternProperties": dict.fromkeys(patterns, not others),
        "additionalProperties": others,
        "minProperties": 1,
    }
    return _begins(tried, b"{")


def can_be(pattern: str, name: str) -> bool:
    """Whether a name has a pattern."""
    return _begins({"allOf": [{"type": "string", "pattern": pattern}, {"const": name}]}, b"")


def _begins(schema: Mapping[str, Any], text: bytes) -> bool:
    """Whether a text of a schema may begin so; what llguidance refuses does: the refusal is to be seen."""
    from llguidance import LLMatcher, LLTokenizer

    grammar = LLMatcher.grammar_from_json_schema(
        json.dumps({**schema, "x-guidance": {"whitespace_flexible": False}})
    )
    matcher = LLMatcher(LLTokenizer("byte"), grammar, log_level=0)
    if matcher.is_error():
        return "nsatisfiable" not in matcher.get_error()
    if not matcher.consume_tokens(list(text)):
        return False
    return any(matcher.compute_bitmask()) and not matcher.is_error()
