"""Run `akunu` in a process of its own with the fake model: `python fake_main.py DELAY_SECONDS ARGS…`.

FAKE_ANSWER in the environment has a `{}` for each word that is echoed; with FAKE_NO_READLINE there is none.
"""

from __future__ import annotations

import os
import sys

from fake_model import FakeModel

import akunu
from akunu.cli import main

if __name__ == "__main__":
    form = os.environ.get("FAKE_ANSWER", "<{}>")
    if "FAKE_NO_READLINE" in os.environ:
        sys.modules["readline"] = None  # type: ignore[assignment]
    fake = FakeModel(lambda text: [form.format(word) for word in text.split()], delay=float(sys.argv[1]))
    akunu.load = lambda *_args, **_kwargs: fake  # type: ignore[assignment]
    sys.exit(main(sys.argv[2:]))
