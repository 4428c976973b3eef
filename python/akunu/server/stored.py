"""Responses that are kept for a while, so that a conversation can go on from them.

They are kept as JSON, whose bytes are what they take. A response shares the items of those that it goes on
from: these are counted as long as one of them is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from akunu.server.auth import Holder
from akunu.server.errors import ApiError

__all__ = ["MAX_BYTES", "ResponseStore", "Stored"]

MAX_BYTES: Final = 64 << 20
"""Most bytes of all that is kept."""

_OVERHEAD: Final = 512
"""Bytes that a response takes besides its JSON."""


@dataclass(eq=False, slots=True)
class _Items:
    """Items of a conversation, of one response or of what it answers."""

    data: bytes
    users: int = 0
    """Responses of the store that have them."""

    @property
    def items(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = msgspec.json.decode(self.data)
        return found


@dataclass(frozen=True, slots=True)
class Stored:
    """A response, the items that it answers, and who asked."""

    holder: str
    head: bytes
    """The response, but for its output."""
    before: tuple[_Items, ...]
    """All of the conversation before it."""
    output: _Items

    @property
    def response(self) -> dict[str, Any]:
        """The response."""
        return {**msgspec.json.decode(self.head), "output": self.output.items}

    @property
    def items(self) -> list[dict[str, Any]]:
        """The items that the response answers."""
        return [item for part in self.before for item in part.items]

    @property
    def conversation(self) -> list[dict[str, Any]]:
        """The items, and what was answered."""
        return [*self.items, *self.output.items]

    @property
    def parts(self) -> tuple[_Items, ...]:
        """The conversation, as later responses share it."""
        return (*self.before, self.output)

    @property
    def own_bytes(self) -> int:
        """Bytes that it shares with none."""
        return len(self.head) + _OVERHEAD + 8 * len(self.before)


class ResponseStore:
    """Responses by their ids. Where there are too many, those of whoever has most give way, the oldest first.

    Parameters
    ----------
    most
        How many are kept.
    max_bytes
        How many bytes of them.
    """

    def __init__(self, most: int, max_bytes: int = MAX_BYTES) -> None:
        self._most = most
        self._max_bytes = max_bytes
        self._found: dict[str, Stored] = {}
        self._counts: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    @property
    def bytes(self) -> int:
        """The bytes that are kept now."""
        return self._bytes.total()

    def put(
        self,
        holder: Holder,
        response: dict[str, Any],
        items: Sequence[dict[str, Any]],
        previous: Stored | None = None,
    ) -> None:
        """Keep a response to these items, which follow the conversation of another."""
        output, asked = (_Items(msgspec.json.encode(part)) for part in (response["output"], items))
        before = (*(previous.parts if previous else ()), asked)
        head = msgspec.json.encode({**response, "output": []})
        self._add(response["id"], Stored(holder.id, head, before, output))
        while len(self._found) > self._most:
            self._drop_oldest(self._counts)
        while self._found and self.bytes > self._max_bytes:
            self._drop_oldest(self._bytes)

    def get(self, response_id: str, holder: Holder, param: str | None = None) -> Stored:
        """A response of the one who asks.

        Raises
        ------
        ApiError
            404, or 400 where a field (`param`) names it: it is not there, or another's.
        """
        found = self._found.get(response_id)
        if found is None or found.holder != holder.id:
            where = f"{param}: " if param else ""
            raise ApiError(
                400 if param else 404,
                f"{where}no response {response_id!r} is stored (any more)",
                param=param,
                code="previous_response_not_found" if param else "not_found",
            )
        return found

    def delete(self, response_id: str, holder: Holder) -> None:
        """Forget one.

        Raises
        ------
        ApiError
            404: it is not there, or another's.
        """
        self.get(response_id, holder)
        self._drop(response_id)

    def _add(self, response_id: str, stored: Stored) -> None:
        size = stored.own_bytes
        for part in stored.parts:
            size += len(part.data) if not part.users else 0
            part.users += 1
        self._found[response_id] = stored
        self._counts[stored.holder] += 1
        self._bytes[stored.holder] += size

    def _drop(self, response_id: str) -> None:
        stored = self._found.pop(response_id)
        size = stored.own_bytes
        for part in stored.parts:
            part.users -= 1
            size += len(part.data) if not part.users else 0
        self._counts[stored.holder] -= 1
        self._bytes[stored.holder] -= size
        if not self._counts[stored.holder]:
            del self._counts[stored.holder], self._bytes[stored.holder]

    def _drop_oldest(self, of_most: Counter[str]) -> None:
        """Forget the oldest of the holder that has most, by one of the counts."""
        holder = max(of_most, key=of_most.__getitem__)
        self._drop(next(name for name, stored in self._found.items() if stored.holder == holder))
