"""Finding added tokens in a text: leftmost first, the longest where several begin at one place.

That is how Hugging Face and SentencePiece match added tokens. User-defined tokens match in any text. Control
(and unknown) tokens match only where the text's author may write them, and never across a border between
authors: see `Span`.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from akunu.tokenizer.vocabulary import ADDED_TYPES, CONTROL_TYPES, Vocabulary

__all__ = ["AddedTokens", "Span", "TextIndex"]

Span = tuple[int, int]
"""[start, end) of a stretch of text in which control tokens are recognised; a match lies within one span."""


class AddedTokens:
    """The added tokens of a vocabulary, indexed for search."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        added = vocabulary.ids_of_types(ADDED_TYPES)
        control = [i for i in added if vocabulary.types[i] in CONTROL_TYPES]
        self.control_ids = frozenset(control)
        self.ids = frozenset(added)
        self.control_texts = frozenset(vocabulary.tokens[i] for i in control if vocabulary.tokens[i])
        self.split_ids = self.ids - (vocabulary.normalized - self.control_ids)
        texts: dict[str, int] = {}
        for i in sorted(self.split_ids):
            if vocabulary.tokens[i]:
                texts.setdefault(vocabulary.tokens[i], i)
        self._all = TextIndex(texts)
        self._user_defined = TextIndex({text: i for text, i in texts.items() if i not in self.control_ids})
        self._rstrip = vocabulary.rstrip
        self._lstrip = vocabulary.lstrip
        self._white_space = vocabulary.white_space
        self._single_word = vocabulary.single_word

    def split(self, text: str, spans: Sequence[Span]) -> Iterator[str | int]:
        """Cut `text` into added tokens (ids) and the texts between them (never empty).

        Parameters
        ----------
        text : str
            The whole text.
        spans : sequence of (start, end)
            Where control tokens are recognised, ascending and disjoint.
        """
        index = self._all if spans else self._user_defined
        starts = [start for start, _ in spans]
        done = 0
        position = 0
        while (start := index.candidate(text, position)) >= 0:
            for end, token in index.matches(text, start):
                if token not in self.control_ids or _within(spans, starts, start, end):
                    break
            else:
                position = start + 1
                continue
            if token in self._single_word and _inside_a_word(text, start, end):
                position = end
                continue
            before = text[done:start]
            if token in self._lstrip:
                before = before.rstrip(self._white_space)
            if before:
                yield before
            yield token
            position = end  # of what is swallowed a token may still be made
            if token in self._rstrip:
                while end < len(text) and text[end] in self._white_space:
                    end += 1
            done = end
        if done < len(text):
            yield text[done:]


def _inside_a_word(text: str, start: int, end: int) -> bool:
    """Whether what stands at [start, end) has a character of a word beside it."""
    return any(_is_of_word(char) for char in (text[start - 1 : start], text[end : end + 1]) if char)


def _is_of_word(char: str) -> bool:
    return char.isalnum() or unicodedata.category(char) in ("Mn", "Mc", "Me", "Pc")


def _within(spans: Sequence[Span], starts: list[int], start: int, end: int) -> bool:
    i = bisect_right(starts, start) - 1
    return i >= 0 and end <= spans[i][1]


class TextIndex:
    """Some texts, searchable: what begins at a place, longest first.

    A pattern of first two characters finds candidates at the speed of `re`; a lookup for each length that
    such a text may have decides. Vocabularies have thousands of added tokens, which is too many for one
    alternation (`re` tries its branches one after the other).
    """

    def __init__(self, ids: Mapping[str, int]) -> None:
        self._ids = ids
        lengths: defaultdict[str, set[int]] = defaultdict(set)
        second: defaultdict[str, set[str]] = defaultdict(set)
        for text in ids:
            lengths[text[:2]].add(len(text))
            second[text[0]].add(text[1:2])
        self._lengths = {head: sorted(found, reverse=True) for head, found in lengths.items()}
        self._candidate = re.compile("|".join(map(_head_pattern, second.items()))) if second else None

    def candidate(self, text: str, position: int) -> int:
        """The next place, from `position`, where the first two characters of a token stand; -1 for none."""
        match = self._candidate.search(text, position) if self._candidate else None
        return match.start() if match else -1

    def matches(self, text: str, start: int) -> Iterator[tuple[int, int]]:
        """The (end, id) of the tokens that begin at `start`, longest first."""
        for width in (2, 1):
            for length in self._lengths.get(text[start : start + width], ()):
                token = self._ids.get(text[start : start + length])
                if token is not None:
                    yield start + length, token


def _head_pattern(item: tuple[str, set[str]]) -> str:
    first, seconds = item
    if "" in seconds:
        return re.escape(first)
    return re.escape(first) + "[" + "".join(map(re.escape, sorted(seconds))) + "]"
