"""Find the replica that has read a prompt that begins like this one."""

from __future__ import annotations

import json
import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

from akunu.server.settings import VOLATILE_LINES

__all__ = ["Affinity", "beginnings", "stored_at"]

BLOCK: Final = 256
"""Characters that are known or not known as one."""
REMEMBERED: Final = 1 << 16
"""Beginnings, the latest."""
SLACK: Final = 4
"""Requests that a replica may have more than the one with the fewest, to get one whose beginning it knows."""

_FIELDS: Final = ("model", "tools", "system", "instructions", "messages", "prompt", "input")
"""The fields that a prompt is made of, in its order there."""
_STORED: Final = re.compile(r"resp_(?P<replica>[^_]+)_")


def beginnings(body: bytes) -> list[int]:
    """A number for each beginning of a request's prompt, the shortest first; none for what is no JSON."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):  # the replica says what is wrong
        return []
    if not isinstance(fields, dict):
        return []
    text = "".join(json.dumps(fields[name], ensure_ascii=False)[:-1] for name in _FIELDS if name in fields)
    for mark in VOLATILE_LINES:
        text = re.sub(re.escape(mark) + r".*?\\n", "", text, count=1)
    keys, key = [], 0
    for end in range(BLOCK, len(text) + 1, BLOCK):
        key = hash((key, text[end - BLOCK : end]))
        keys.append(key)
    return keys


def stored_at(path: str, body: bytes) -> str | None:
    """The replica that has stored the response which a request names."""
    name = path.removeprefix("/v1/responses/").partition("/")[0]
    if path in ("/v1/responses", "/v1/responses/input_tokens"):
        found = re.search(rb'"previous_response_id"\s*:\s*"([^"]*)"', body)
        name = found[1].decode("utf-8", "replace") if found else ""
    stored = _STORED.match(name)
    return stored["replica"] if stored else None


class Affinity:
    """Remembers which replica read which beginnings."""

    def __init__(self) -> None:
        self._found: OrderedDict[int, str] = OrderedDict()

    def learn(self, keys: Iterable[int], replica: str) -> None:
        """A replica reads a text with these beginnings."""
        for key in keys:
            self._found[key] = replica
            self._found.move_to_end(key)
        while len(self._found) > REMEMBERED:
            self._found.popitem(last=False)

    def order(self, keys: Sequence[int], waiting: Mapping[str, int]) -> list[str]:
        """The replicas, the best first.

        Parameters
        ----------
        keys
            The keys of the request's prompt.
        waiting
            How many requests each replica has.
        """
        known = takewhile(lambda key: key in self._found, keys)
        lengths: Counter[str] = Counter()
        for length, key in enumerate(known, 1):
            lengths[self._found[key]] = length
        least = min(waiting.values(), default=0)

        def rank(replica: str) -> tuple[Any, ...]:
            busy = waiting[replica] > least + SLACK
            return (0 if busy else -lengths[replica], waiting[replica], replica)

        return sorted(waiting, key=rank)
