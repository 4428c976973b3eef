"""API keys: kept as hashes, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import re
from pathlib import Path
from typing import Final

from akunu.errors import InvalidArgumentError
from akunu.json_file import read_text

__all__ = ["Keys", "presented_key"]

_HASHED: Final = re.compile(r"sha256:(?P<hash>[0-9a-f]{64})(?:\s+(?P<name>\S+))?")
_PLAIN: Final = re.compile(r"(?P<key>[\x21-\x7e]{8,512})(?:\s+(?P<name>\S+))?")


class Keys:
    """The keys that open a server; none: it is open.

    Parameters
    ----------
    hashes
        Name of a key's holder by the SHA-256 of the key, in hexadecimal.
    """

    def __init__(self, hashes: dict[str, str] | None = None) -> None:
        self._hashes = dict(hashes or {})

    @classmethod
    def from_file(cls, path: Path) -> Keys:
        """Read keys: one a line, with a name after it for the log; `sha256:HEX` is the hash of one.

        Lines that begin with # and empty ones do not count.

        Raises
        ------
        ModelFileError
            The file cannot be read.
        InvalidArgumentError
            A line is no key, or there is none.
        """
        hashes: dict[str, str] = {}
        for number, line in enumerate(read_text(path).splitlines(), 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            if hashed := _HASHED.fullmatch(line):
                digest = hashed["hash"]
            elif (hashed := _PLAIN.fullmatch(line)) and not line.startswith("sha256:"):
                digest = _digest(hashed["key"])
            else:
                raise InvalidArgumentError(
                    f"{path}: line {number} is no key; expected at least 8 printable characters, or sha256: "
                    "and 64 hexadecimal digits, and a name after it if you like"
                )
            hashes[digest] = hashed["name"] or f"key{len(hashes) + 1}"
        if not hashes:
            raise InvalidArgumentError(f"{path}: has no key; an empty file would lock everybody out")
        return cls(hashes)

    def __bool__(self) -> bool:
        return bool(self._hashes)

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
