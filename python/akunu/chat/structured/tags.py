"""Texts with constrained stretches: calls of tools, or an answer after a reasoning block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from akunu.base.errors import InvalidArgumentError

__all__ = ["StructuralTag", "Tag"]


@dataclass(frozen=True)
class Tag:
    """A stretch of a text between two marks.

    Attributes
    ----------
    begin, end : str
        The marks. Control tokens of the vocabulary may be part of them, as in ``<|python_tag|>``; there they
        are tokens, not text. `end` may be empty; `begin` may be where tags are required.
    schema : Mapping | None
        JSON schema of what is between them; None: any text without `end`.
    grammar : str
        Instead of a schema, a grammar of it in Lark's form, with a rule `start`.
    marks : Mapping[str, str]
        Rules that the grammar has besides: by its name each text, which may be a control token, and as
        `until_NAME` any text that ends with it.
    name : str
        What errors about it begin with.
    """

    begin: str
    schema: Mapping[str, Any] | None
    end: str
    grammar: str = ""
    marks: Mapping[str, str] = field(default_factory=dict)
    name: str = "structural_tag"


@dataclass(frozen=True)
class StructuralTag:
    """An output in which some stretches are constrained.

    Attributes
    ----------
    tags : tuple[Tag, ...]
        What may stand in the text.
    triggers : tuple[str, ...]
        Beginnings of the tags' `begin`: where the text has one, a tag must follow from there on. Empty: each
        tag's whole `begin`.
    required : bool
        The text consists of tags, at least one.
    parallel : bool
        More than one tag may come; otherwise the text ends with the first.
    after : str | None
        Nothing is constrained before this text has appeared, except that the text does not end. It may
        contain control tokens.
    """

    tags: tuple[Tag, ...]
    triggers: tuple[str, ...] = ()
    required: bool = False
    parallel: bool = True
    after: str | None = None

    def __post_init__(self) -> None:
        for name, kind in (("tags", Tag), ("triggers", str)):
            found = getattr(self, name)
            if not isinstance(found, list | tuple) or not all(isinstance(one, kind) for one in found):
                raise InvalidArgumentError(
                    f"structural_tag: {name}: expected a tuple of {kind.__name__}, got {found!r}"
                )
            object.__setattr__(self, name, tuple(found))
        if not self.tags:
            raise InvalidArgumentError("structural_tag: it has no tags; give at least one")
        for tag in self.tags:
            if not isinstance(tag.begin, str) or not isinstance(tag.end, str):
                raise InvalidArgumentError(f"{tag.name}: expected texts as begin and end, got {tag!r}")
            if not (tag.begin or self.required):
                raise InvalidArgumentError(
                    "structural_tag: a tag's begin is empty, and tags are not required"
                )
            if self.triggers and not tag.begin.startswith(self.triggers):
                raise InvalidArgumentError(
                    f"structural_tag: the tag {tag.begin!r} begins with none of the triggers "
                    f"{', '.join(map(repr, self.triggers))}"
                )
        for trigger in self.triggers:
            if not trigger or not any(tag.begin.startswith(trigger) for tag in self.tags):
                raise InvalidArgumentError(f"structural_tag: no tag begins with the trigger {trigger!r}")
        if self.after == "":
            raise InvalidArgumentError("structural_tag: after is empty; None constrains from the start")
