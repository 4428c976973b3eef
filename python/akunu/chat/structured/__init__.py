"""Structured output: JSON of a schema, a regular expression, a grammar, a choice, tagged calls of tools.

What is asked for is data (`Structure`, `StructuralTag`) and needs nothing; what it takes to obey is imported
when an output is constrained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from akunu.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from akunu.chat.structured.tags import StructuralTag, Tag

__all__ = ["StructuralTag", "Tag"]

_HOME: Final = {
    "StructuralTag": "akunu.chat.structured.tags",
    "Tag": "akunu.chat.structured.tags",
}

__getattr__ = lazy_names(__name__, _HOME, globals())
