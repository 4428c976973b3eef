"""Runs tests that were written for the CPU on the Metal device: the very same functions.

A module imports `metal_engines` and the tests that it wants; wherever they open an engine on the default
device, they get Metal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import pytest

from akunu import _core
from akunu.loading import load as loading
from missing import missing
from models import test_assistant, test_draft_chain, test_draft_head


def has_metal() -> bool:
    """This module was built with Metal, real or emulated."""
    return any(d["id"] == "metal" for d in _core.devices())


def require_metal() -> None:
    """Skip where the module was built without Metal; in CI that is a failure."""
    if has_metal():
        return
    missing("akunu._core was built without Metal: `make test` builds it in where there is a clang >= 16")


def some(every: Collection[Any], *kept: Any) -> list[Any]:
    """Parameters of a test that the CPU runs in full, where an emulated GPU would take its time.

    All but `kept` are long, and cases of a table. A tuple is a row of parameters.
    """
    assert all(row in every for row in kept)
    rows = [row if isinstance(row, tuple) else (row,) for row in every if row not in kept]
    marks = [pytest.mark.long, pytest.mark.table]
    return [*kept, *(pytest.param(*row, marks=marks) for row in rows)]


@pytest.fixture(scope="module")
def metal_engines() -> Iterator[None]:
    """For a module: engines are Metal's unless a test names another device."""
    require_metal()
    present = loading.present
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("models.test_engine.DEVICE", "metal")
        patch.setattr("models.test_same_output.DEVICE", "metal")
        patch.setattr("models.test_adapters.DEVICE", "metal")
        patch.setattr("models.test_families.DEVICE", "metal")
        patch.setattr("models.test_hybrid.DEVICE", "metal")
        patch.setattr("models.test_windows.DEVICE", "metal")
        patch.setattr("models.test_layers.DEVICE", "metal")
        patch.setattr("models.test_workspace.DEVICE", "metal")
        patch.setattr("models.test_qwen35.DEVICE", "metal")
        patch.setitem(test_assistant.SETTINGS, "device", "metal")
        patch.setitem(test_draft_head.SETTINGS, "device", "metal")
        patch.setitem(test_draft_chain.SETTINGS, "device", "metal")
        patch.setattr("sampling.engines.DEVICE", "metal")
        patch.setattr("speech.test_engine.DEVICE", "metal")
        patch.setattr("api.vision.test_towers.DEVICE", "metal")
        patch.setattr(loading, "present", lambda wanted: present("metal" if wanted == "auto" else wanted))
        yield
