"""Special tokens around a text, and around and between two texts that are encoded as one.

A GGUF file says whether BOS and EOS are added; the `post_processor` of a `tokenizer.json` may put any tokens
there. What it does is not read from its JSON, whose forms are many, but found by running it on two marks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from akunu.base.errors import UnsupportedError

__all__ = ["PairTemplate", "Template", "template_of"]

_FIRST: Final = (1 << 32) - 2
_SECOND: Final = (1 << 32) - 1
"""Ids of the two marks, which no vocabulary has."""


@dataclass(frozen=True, slots=True)
class PairTemplate:
    """The special tokens of two texts that are encoded as one.

    Attributes
    ----------
    before, between, after : tuple of int
        Ids before the first text, between the two, and after the second one.
    first_kind : int or None
        How many tokens of `between` are of the first text's kind; None where all are of one kind. Only
        models that know kinds (BERT's token types) heed it.
    """

    before: tuple[int, ...] = ()
    between: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    first_kind: int | None = None


@dataclass(frozen=True, slots=True)
class Template:
    """The special tokens of a text.

    Attributes
    ----------
    before, after : tuple of int
        Ids before and after a text.
    pair : PairTemplate
        The template of two texts.
    """

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    pair: PairTemplate = field(default_factory=PairTemplate)

    @property
    def ids(self) -> tuple[int, ...]:
        """Ids before and after."""
        pair = self.pair
        return (*self.before, *self.after, *pair.before, *pair.between, *pair.after)

    @classmethod
    def of_ends(
        cls, before: tuple[int, ...], after: tuple[int, ...], separator: tuple[int, ...], *, kinds: bool
    ) -> Template:
        """The template of BERT's form: a pair is `before`, text, `separator`, text, `after`."""
        return cls(before, after, PairTemplate(before, separator, after, len(separator) if kinds else None))


def template_of(post_processor: object) -> Template:
    """Return what the `post_processor` of a `tokenizer.json` puts around texts.

    Raises
    ------
    UnsupportedError
        The `tokenizers` library does not know it, or it drops, repeats or exchanges texts.
    """
    if post_processor is None:
        return Template()
    library = _library(post_processor)
    single, pair = library.encode("A"), library.encode("A", "B")
    before, after = _around(single.ids, (_FIRST,))
    first, between, last = _around(pair.ids, (_FIRST, _SECOND))
    kinds = [int(kind) for kind in pair.type_ids]
    steps = [i + 1 for i, (one, other) in enumerate(pairwise(kinds)) if one != other]
    begun = len(first) + 1
    # A second kind begins after the first text and reaches to the end.
    of_first = steps[0] - begun if len(steps) == 1 and begun <= steps[0] <= begun + len(between) else None
    return Template(before, after, PairTemplate(first, between, last, of_first))


def _around(ids: list[int], marks: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The ids before, between and after the marks."""
    if [i for i in ids if i in (_FIRST, _SECOND)] != list(marks):
        raise UnsupportedError(
            "post_processor: does not keep each text once and in order, which is not supported"
        )
    ends = [-1, *(ids.index(mark) for mark in marks), len(ids)]
    return [tuple(ids[start + 1 : end]) for start, end in pairwise(ends)]


def _library(post_processor: object) -> Any:
    import tokenizers

    data = {
        "model": {"type": "WordLevel", "vocab": {"A": _FIRST, "B": _SECOND}, "unk_token": "A"},
        "post_processor": post_processor,
    }
    try:
        return tokenizers.Tokenizer.from_str(json.dumps(data))
    except Exception:  # the library has no class of its own for it
        shown = json.dumps(post_processor)
        raise UnsupportedError(
            f"post_processor: found {shown[:80]}{'…' * (len(shown) > 80)}, of which the tokenizers library "
            "can make nothing"
        ) from None
