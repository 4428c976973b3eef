"""Metal tests run on Linux by the emulator of tests/metal_emulator, which needs clang >= 16.

On a Mac those of the engine and of the API run on its GPU; the others, which look into the emulator, do not.
"""

from __future__ import annotations

import gc
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from missing import missing
from order import PLACE, SEED, has_its_turn, parts

if TYPE_CHECKING:
    from metal_emulator.control import Control

ON_A_MAC = ("test_device_api.py", "test_device_engine.py", "test_sampling_engine.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if platform.system() != "Darwin":
        return
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.name not in ON_A_MAC:
            item.add_marker(pytest.mark.skip(reason="looks into the Metal emulator, which runs on Linux"))


@pytest.fixture(scope="session", autouse=True)
def emulator() -> Path:
    """Folder of the emulator's libraries; without clang a failure in CI, else a skip."""
    if platform.system() == "Darwin":
        return Path()
    from metal_emulator.build import build

    try:
        return build()
    except FileNotFoundError as e:
        missing(str(e))


@pytest.fixture(autouse=True)
def part_of_the_mutations(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """AKUNU_TEST_PART=N compiles one in N of what is marked `mutation`, and N seeds in a row compile all.

    The texts of the others are still looked for in the kernels; then the test is skipped.
    """
    if request.node.get_closest_marker("mutation") is None:
        return
    count = parts()
    if has_its_turn(request.node.stash[PLACE], request.config.stash[SEED], count):
        return
    from metal_emulator.harness import Library

    def another_day(*_: Any, **__: Any) -> None:
        pytest.skip(f"AKUNU_TEST_PART={count}: the text is there; another seed compiles this mutation")

    monkeypatch.setattr(Library, "compile", another_day)


SETTINGS = (
    "seed", "schedule", "workers", "delay_us", "noop", "hazards", "fail_command_buffer", "fail_signals",
    "fail_allocation", "allocation_limit", "gpu_cores", "apple_family", "working_set", "max_buffer_length",
    "gpu_us",
)  # fmt: skip


@pytest.fixture
def emulator_control() -> Iterator[Control]:
    """Settings go back to where they were; no device of an earlier test is left."""
    from metal_emulator.control import Control

    gc.collect()
    control = Control()
    with control.settings(**{name: control[name] for name in SETTINGS}):
        control.take_faults()
        yield control
        gc.collect()


@pytest.fixture(scope="session")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model's file."""
    from models import llama2c

    return llama2c.write("F16", tmp_path_factory.mktemp("llama2c") / "tiny.gguf")
