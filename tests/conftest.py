"""What all tests share."""

from __future__ import annotations

import os
import signal
from pathlib import Path

# Compiled Metal kernels are kept in the user's cache, which tests leave alone.
os.environ.setdefault("AKUNU_CACHE", str(Path(__file__).resolve().parents[1] / "build" / "cache"))

# A shell starts background jobs with Ctrl-C ignored, and Python then leaves it so.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
