"""What is in the source distribution."""

from __future__ import annotations

import tomllib
from pathlib import Path


def test_a_makefile_comes_only_with_the_tests_that_it_runs():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    excluded = project["tool"]["scikit-build"]["sdist"]["exclude"]
    assert ("/Makefile" in excluded) == ("/tests" in excluded)
