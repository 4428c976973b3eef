"""A text that arrives in pieces, read as if it were whole.

What reads it is a generator: where it needs more text than has arrived it yields, and it is resumed when
there is more. So a format is written down from beginning to end, and nothing depends on how the text is cut.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeVar

from akunu.base.stopping import beginning

__all__ = ["SPACE", "Incoming", "Malformed", "Steps"]

T = TypeVar("T")
Steps = Generator[None, None, T]
"""Reads from an `Incoming`; returns a T."""

SPACE = " \t\r\n"


class Malformed(Exception):
    """The text that comes next is not of the format that is read."""


class Incoming:
    """The text so far, and the place where reading goes on."""

    def __init__(self) -> None:
        self.text = ""
        """The text that has arrived and is not forgotten."""
        self.at = 0
        """The next character to read."""
        self.over = False
        """Whether nothing more arrives."""

    def push(self, text: str) -> None:
        """Take what has arrived."""
        self.text += text

    def forget(self) -> None:
        """Let go of what was read."""
        self.text, self.at = self.text[self.at :], 0

    def peek(self) -> Steps[str]:
        """The next character, or "" where the text is over; it is not taken."""
        while self.at == len(self.text) and not self.over:
            yield
        return self.text[self.at : self.at + 1]

    def take(self, count: int) -> Steps[str]:
        """The next characters.

        Raises
        ------
        Malformed
            There are fewer.
        """
        while len(self.text) < self.at + count:
            if self.over:
                raise Malformed
            yield
        self.at += count
        return self.text[self.at - count : self.at]

    def every(self, characters: str) -> Steps[str]:
        """The next characters as far as they are among `characters`."""
        start = self.at
        while (char := (yield from self.peek())) and char in characters:
            self.at += 1
        return self.text[start : self.at]

    def word(self, marks: str) -> Steps[str]:
        """The next letters and digits, of any script, and characters that are among `marks`."""
        start = self.at
        while (char := (yield from self.peek())) and (char.isalnum() or char in marks):
            self.at += 1
        return self.text[start : self.at]

    def space(self) -> Steps[str]:
        """White space, as much as there is."""
        return (yield from self.every(SPACE))

    def one_of(self, marks: Sequence[str]) -> Steps[str]:
        """The one of `marks` that comes next, which is taken; "" for none. None may begin another."""
        while True:
            rest = self.text[self.at : self.at + max(map(len, marks), default=0)]
            for mark in marks:
                if rest.startswith(mark):
                    self.at += len(mark)
                    return mark
            if self.over or not any(mark.startswith(rest) for mark in marks):
                return ""
            yield

    def expect(self, *marks: str) -> Steps[str]:
        """One of `marks`, which is taken.

        Raises
        ------
        Malformed
            Something else comes next.
        """
        mark = yield from self.one_of(marks)
        if not mark:
            raise Malformed
        return mark

    def some(self, marks: Sequence[str]) -> Steps[tuple[str, str]]:
        """Take text up to a mark, and the mark that follows it.

        The mark is "" where it is not known yet what follows; with an empty text: where all is over.
        """
        while True:
            found = [(place, mark) for mark in marks if (place := self.text.find(mark, self.at)) >= 0]
            start = self.at
            if found:
                place, mark = min(found)
                self.at = place + len(mark)
                return self.text[start:place], mark
            rest = self.text[start:]
            held = 0 if self.over else max((len(rest) - beginning(mark, rest) for mark in marks), default=0)
            if len(rest) > held or self.over:
                self.at = len(self.text) - held
                return self.text[start : self.at], ""
            yield

    def until(self, *marks: str) -> Steps[str]:
        """All text before one of `marks`, which is taken.

        Raises
        ------
        Malformed
            None comes.
        """
        texts = []
        while True:
            text, mark = yield from self.some(marks)
            texts.append(text)
            if mark:
                return "".join(texts)
            if not text:
                raise Malformed
