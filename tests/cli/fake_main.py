"""Run `akunu` in a process of its own with the fake model: `python fake_main.py DELAY_SECONDS ARGS…`."""

from __future__ import annotations

import sys

from fake_model import FakeModel

import akunu
from akunu.cli import main

if __name__ == "__main__":
    akunu.load = lambda *_args, **_kwargs: FakeModel(delay=float(sys.argv[1]))  # type: ignore[assignment]
    sys.exit(main(sys.argv[2:]))
