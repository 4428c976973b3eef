"""The texts that end a generation, found in a text that arrives in pieces."""

from __future__ import annotations

from collections.abc import Sequence

from akunu.base.errors import InvalidArgumentError

__all__ = ["StopMatcher", "beginning"]


class StopMatcher:
    """Finds the first stop text; what may be the beginning of one is held back until that is decided.

    A match is the one that ends first; of two that end together, the longer. So the result does not depend on
    how the text is cut.

    Parameters
    ----------
    stops : sequence of str
        The stop texts; none may be empty.
    """

    def __init__(self, stops: Sequence[str] = ()) -> None:
        if not all(isinstance(stop, str) and stop for stop in stops):
            raise InvalidArgumentError(
                f"stop texts: found {list(stops)!r}, expected texts that are not empty"
            )
        self._stops = tuple(dict.fromkeys(stops))
        self._held = ""
        self.matched: str | None = None
        """The stop text that was found, or None."""

    def push(self, text: str) -> str:
        """Text that is certain now. Once `matched` is set: the last of it, without the stop text."""
        if self.matched is not None:
            return ""
        text = self._held + text
        found = [(at + len(stop), at, stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            _, certain, self.matched = min(found)
            self._held = ""
        else:
            certain = min((beginning(stop, text) for stop in self._stops), default=len(text))
            self._held = text[certain:]
        return text[:certain]

    def flush(self) -> str:
        """Return what was held back, when the output ends without a stop text."""
        held, self._held = self._held, ""
        return held


def beginning(stop: str, text: str) -> int:
    """Return where `text` ends in the longest beginning of `stop`; its length for none."""
    at = text.find(stop[0], max(0, len(text) - len(stop) + 1))
    while at >= 0 and not stop.startswith(text[at:]):
        at = text.find(stop[0], at + 1)
    return at if at >= 0 else len(text)
