"""API keys: kept as hashes, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from akunu.base.errors import InvalidArgumentError
from akunu.base.json_file import read_text

__all__ = ["ANYONE", "Holder", "Keys", "key_digest", "presented_key"]

_REST: Final = r"(?:\s+(?P<name>[^\s=]+))??(?:\s+priority=(?P<priority>[+-]?\d))?(?P<shared>\s+shared)?"
_HASHED: Final = re.compile(r"sha256:(?P<hash>[0-9a-f]{64})" + _REST)
_PLAIN: Final = re.compile(r"(?P<key>[\x21-\x7e]{8,512})" + _REST)


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of a key, who sends a request.

    Attributes
    ----------
    name : str
        For the log; several may have the same.
    id : str
        What tells holders apart: the hash of their key; "" for everybody, where there are no keys.
    priority : int
        The highest that requests have.
    shared : bool
        The prefix cache is shared with the other holders that say so.
    """

    name: str = "-"
    id: str = ""
    priority: int = 0
    shared: bool = False

    @property
    def salt(self) -> str | None:
        """The salt of the pages of the holder's prompts (`cache_salt`), so that nobody else's find them."""
        return "shared" if self.shared else self.id or None


ANYONE: Final = Holder()
"""The holder of every request, where there are no keys."""


class Keys:
    """The keys that open a server; none: it is open.

    Parameters
    ----------
    holders
        Each with the SHA-256 of its key, in hexadecimal, as its id.
    """

    def __init__(self, holders: Iterable[Holder] = ()) -> None:
        self._holders = tuple(holders)

    @classmethod
    def from_file(cls, path: Path) -> Keys:
        """Read keys: one a line, after it what `Holder` says of it; `sha256:HEX` is the hash of one.

        Lines that begin with # and empty ones do not count.

        Raises
        ------
        ModelFileError
            The file cannot be read.
        InvalidArgumentError
            A line is no key or repeats one, or there is none.
        """
        holders: dict[str, Holder] = {}
        for number, line in enumerate(read_text(path).splitlines(), 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            if found := _HASHED.fullmatch(line):
                digest = found["hash"]
            elif (found := _PLAIN.fullmatch(line)) and not line.startswith("sha256:"):
                digest = key_digest(found["key"])
            else:
                raise InvalidArgumentError(
                    f"{path}: line {number} is no key; expected at least 8 printable characters, or sha256: "
                    "and 64 hexadecimal digits, and a name, priority=N and shared after it if you like"
                )
            if digest in holders:
                raise InvalidArgumentError(f"{path}: line {number} has the key of an earlier line")
            name = found["name"] or f"key-{digest[:8]}"
            priority, shared = int(found["priority"] or 0), found["shared"] is not None
            holders[digest] = Holder(name, digest, priority, shared)
        if not holders:
            raise InvalidArgumentError(f"{path}: has no key; an empty file would lock everybody out")
        return cls(holders.values())

    def __len__(self) -> int:
        return len(self._holders)

    def holder(self, key: str | None) -> Holder | None:
        """The holder of a key, or None; every key is looked at, so time tells nothing."""
        digest = key_digest(key or "")
        found = None
        for holder in self._holders:
            if hmac.compare_digest(holder.id, digest):
                found = holder
        return found


def key_digest(key: str) -> str:
    """The hash that a key is known by."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def presented_key(headers: dict[str, str]) -> str | None:
    """The key that a request brings: OpenAI's clients as a bearer token, Anthropic's in x-api-key."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key")
