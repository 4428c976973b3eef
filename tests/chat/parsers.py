"""A parser for one answer, of a family of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from akunu.chat.family import Family
from akunu.chat.parser import OutputParser
from akunu.chat.tools import Tools


def parser_of(
    family: Family,
    tools: Sequence[Mapping[str, Any]] | None = None,
    thinking: bool = False,
    *,
    whole: bool = False,
) -> OutputParser:
    """Without tools, what looks like a call is content."""
    return OutputParser(family, Tools(tools), thinking=thinking, whole=whole)
