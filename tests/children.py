"""The environment of processes that tests start."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def environment(**settings: str | os.PathLike[str]) -> dict[str, str]:
    """What a process needs that imports the helpers of tests, and Akunu from where this one was told to.

    `sys.path` is not handed on: it also has what pytest and the tests before have put there.
    """
    given = os.environ.get("PYTHONPATH")
    paths = [str(ROOT / "tests"), str(ROOT), *filter(None, [given])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        **{name: os.fspath(value) for name, value in settings.items()},
    }
