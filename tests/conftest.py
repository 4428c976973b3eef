"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

# Compiled Metal kernels are kept in the user's cache, which tests leave alone.
os.environ.setdefault("AKUNU_CACHE", str(Path(__file__).resolve().parents[1] / "build" / "cache"))
