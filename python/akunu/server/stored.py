"""Responses that are kept for a while, so that a conversation can go on from them."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from akunu.server.errors import ApiError

__all__ = ["ResponseStore", "Stored"]

_MAX_BYTES: Final = 64 << 20
"""Of all that is kept."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A response, the items that it answers, and who asked."""

    holder: str
    response: dict[str, Any]
    items: list[dict[str, Any]]
    """All of the conversation before it. A later response shares those of the earlier ones."""
    bytes: int

    @property
    def conversation(self) -> list[dict[str, Any]]:
        """The items, and what was answered."""
        return [*self.items, *self.response["output"]]


class ResponseStore:
    """Responses by their ids; the oldest give way.

    Parameters
    ----------
    most
        How many are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes = 0
        self._found: OrderedDict[str, Stored] = OrderedDict()

    def put(self, holder: str, response: dict[str, Any], items: list[dict[str, Any]], earlier: int) -> None:
        """Keep a response, whose first `earlier` items another one has."""
        size = len(msgspec.json.encode((response, items[earlier:])))
        self._found[response["id"]] = Stored(holder, response, items, size)
        self._bytes += size
        while len(self._found) > self._most or self._bytes > _MAX_BYTES:
            _, oldest = self._found.popitem(last=False)
            self._bytes -= oldest.bytes

    def get(self, response_id: str, holder: str, param: str | None = None) -> Stored:
        """A response of the one who asks.

        Raises
        ------
        ApiError
            404, or 400 where a field (`param`) names it: it is not there, or another's.
        """
        found = self._found.get(response_id)
        if found is None or found.holder != holder:
            where = f"{param}: " if param else ""
            raise ApiError(
                400 if param else 404,
                f"{where}no response {response_id!r} is stored (any more)",
                param=param,
                code="previous_response_not_found" if param else "not_found",
            )
        return found

    def delete(self, response_id: str, holder: str) -> None:
        """Forget one.

        Raises
        ------
        ApiError
            404: it is not there, or another's.
        """
        self.get(response_id, holder)
        self._bytes -= self._found.pop(response_id).bytes
