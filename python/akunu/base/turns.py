"""Turns of threads with Python's lock."""

from __future__ import annotations

import time
from typing import Final

__all__ = ["let_others"]

_SECONDS: Final = 1e-5
"""With what a system adds to it, enough for a thread that waits to wake up."""


def let_others() -> None:
    """Let a thread that waits for Python's lock have it now, and not after a switch interval."""
    time.sleep(_SECONDS)
