"""Tests of what Python or a library warns of besides.

A mark of pytest (`filterwarnings`) holds while a fixture of the module is set up, but not when it is torn
down, and `left_behind` would take that for a change of the fixture's.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def quietly(message: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Ignore warnings whose text begins with a regular expression while a test runs."""

    def decorate(test: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(test)
        def run(*args: P.args, **kwargs: P.kwargs) -> T:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message)
                return test(*args, **kwargs)

        return run

    return decorate
