"""API keys: kept as hashes, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import re
from pathlib import Path
from typing import Final

from akunu.base.errors import InvalidArgumentError
from akunu.base.json_file import read_text

__all__ = ["Keys", "presented_key"]

_REST: Final = r"(?:\s+(?P<name>\S+)(?:\s+priority=(?P<priority>[+-]?\d))?)?"
_HASHED: Final = re.compile(r"sha256:(?P<hash>[0-9a-f]{64})" + _REST)
_PLAIN: Final = re.compile(r"(?P<key>[\x21-\x7e]{8,512})" + _REST)


class Keys:
    """The keys that open a server; none: it is open.

    Parameters
    ----------
    hashes
        Name of a key's holder by the SHA-256 of the key, in hexadecimal.
    priorities
        By the name of the holder, the highest priority that requests have; 0 for those that are not there.
    """

    def __init__(
        self, hashes: dict[str, str] | None = None, priorities: dict[str, int] | None = None
    ) -> None:
        self._hashes = dict(hashes or {})
        self._priorities = dict(priorities or {})

    @classmethod
    def from_file(cls, path: Path) -> Keys:
        """Read keys: one a line, after it a name for the log and a priority; `sha256:HEX` is the hash of one.

        Lines that begin with # and empty ones do not count.

        Raises
        ------
        ModelFileError
            The file cannot be read.
        InvalidArgumentError
            A line is no key, or there is none.
        """
        hashes: dict[str, str] = {}
        priorities: dict[str, int] = {}
        for number, line in enumerate(read_text(path).splitlines(), 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            if found := _HASHED.fullmatch(line):
                digest = found["hash"]
            elif (found := _PLAIN.fullmatch(line)) and not line.startswith("sha256:"):
                digest = _digest(found["key"])
            else:
                raise InvalidArgumentError(
                    f"{path}: line {number} is no key; expected at least 8 printable characters, or sha256: "
                    "and 64 hexadecimal digits, and a name and priority=N after it if you like"
                )
            name = hashes[digest] = found["name"] or f"key{len(hashes) + 1}"
            priorities[name] = int(found["priority"] or 0)
        if not hashes:
            raise InvalidArgumentError(f"{path}: has no key; an empty file would lock everybody out")
        return cls(hashes, priorities)

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def priority(self, holder: str) -> int | None:
        """The highest priority of a holder's requests; None where everybody may choose."""
        return self._priorities.get(holder, 0) if self._hashes else None

    def holder(self, key: str | None) -> str | None:
        """The name of the holder of a key, or None; every key is looked at, so time tells nothing."""
        digest = _digest(key or "")
        found = None
        for known, name in self._hashes.items():
            if hmac.compare_digest(known, digest):
                found = name
        return found


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def presented_key(headers: dict[str, str]) -> str | None:
    """The key that a request brings: OpenAI's clients as a bearer token, Anthropic's in x-api-key."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key")
