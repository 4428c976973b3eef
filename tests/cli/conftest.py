from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import akunu
from akunu.cli import main

from .fake_model import FakeModel


@dataclass
class Ran:
    status: int
    out: str
    err: str


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> FakeModel:
    """The model that every command loads; `loaded` holds the arguments of `akunu.load`."""
    fake = FakeModel()
    fake.loaded = []  # type: ignore[attr-defined]

    def load(name: str, **options: Any) -> FakeModel:
        fake.loaded.append((name, options))  # type: ignore[attr-defined]
        return fake

    monkeypatch.setattr(akunu, "load", load, raising=False)
    return fake


@pytest.fixture
def akunu_cli(
    model: FakeModel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ran]:
    """Run `akunu ARGS…` in this process."""
    monkeypatch.delenv("AKUNU_DEBUG", raising=False)

    def run(*args: str, stdin: str | bytes = "") -> Ran:
        """`stdin` as bytes is a pipe in a locale that knows none of the bytes beyond ASCII."""
        pipe = io.StringIO(stdin) if isinstance(stdin, str) else None
        pipe = pipe or io.TextIOWrapper(io.BytesIO(stdin), encoding="ascii", errors="surrogateescape")
        monkeypatch.setattr(sys, "stdin", pipe)
        capsys.readouterr()
        status = main(args)
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return run
