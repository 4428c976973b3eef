"""What one module sees of a module of the standard library, while a test runs.

A clock or a sleep replaced in `time` or `asyncio` itself is every thread's, a server's of another test too:
the test would note their sleeps as well, and they would wait for its clock.
"""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


def give_own_view(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, **members: Any) -> None:
    """Replace members of the module that `module` calls `name`, for `module` alone."""
    monkeypatch.setattr(module, name, SimpleNamespace(**vars(getattr(module, name)) | members))
