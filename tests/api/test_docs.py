"""The tables of the Python API's documentation are those of the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import akunu
from akunu.api.options import GenerationOptions
from akunu.base.errors import InvalidArgumentError
from akunu.files.describe.sampling import Sampling

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_table_of_arguments_is_that_of_the_code() -> None:
    text = (DOCS / "python-api.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+?) \| ", text.split("## Generating")[1], re.MULTILINE))
    rows = {name: default for name, default in rows.items() if name in GenerationOptions.__annotations__}
    assert list(rows) == list(GenerationOptions.__annotations__)
    defaults = Sampling()
    for name, default in rows.items():
        if hasattr(defaults, name):
            assert ast.literal_eval(default.strip("`")) == getattr(defaults, name), name


def test_every_error_class_is_documented() -> None:
    text = (DOCS / "python-api.md").read_text(encoding="utf-8")
    for name in akunu.__all__:
        if name.endswith("Error"):
            assert f"`{name}`" in text or f"`akunu.{name}`" in text
    assert issubclass(InvalidArgumentError, ValueError)
