"""What keeps the GPU's memory wired, and what the host leaves untouched: seen from the emulator."""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from akunu import _core
from metal.on_metal import require_metal
from metal.tiny_model import open_metal
from metal_emulator.control import Control
from metal_emulator.harness import in_new_process
from models import llama2c
from sampling.engines import synthetic


@pytest.fixture(autouse=True)
def metal() -> Iterator[None]:
    require_metal()
    gc.collect()
    yield
    gc.collect()


def run_a_little(engine: _core.Engine) -> None:
    engine.begin(llama2c.expected().prompt_ids)
    engine.prefill()
    engine.decode(4)


def eventually(true: Callable[[], bool]) -> bool:
    for _ in range(600):
        if true():
            return True
        time.sleep(0.1)
    return False


def all_is_resident(path: str) -> None:
    control = Control()
    engine = open_metal(Path(path))
    run_a_little(engine)
    engine.profile("decode", 1, position=3, repeats=1)
    assert control["residency_sets"] == 1  # on the queue
    assert control["resident"] == control["buffers"] > 5
    assert control["not_resident"] == 0
    engine.close()
    del engine
    gc.collect()
    assert control["residency_sets"] == 0 and control["resident"] == 0


@pytest.mark.parametrize("replay", ["", "indirect"])
def test_all_that_the_gpu_uses_is_resident_until_the_model_is_closed(
    path: Path, replay: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process of its own: other tests' models are resident too."""
    monkeypatch.setenv("AKUNU_METAL_REPLAY", replay)
    in_new_process(__file__, "all_is_resident", str(path))


def requests_go_on_while_idle(path: str) -> None:
    control = Control()
    engine = open_metal(Path(path))
    run_a_little(engine)
    requests = control["residency_requests"]
    assert eventually(lambda: control["residency_requests"] >= requests + 2)
    engine.close()


def requests_end_and_begin_again(path: str) -> None:
    control = Control()
    engine = open_metal(Path(path))
    run_a_little(engine)

    def is_quiet() -> bool:
        requests = control["residency_requests"]
        time.sleep(2)  # four beats
        return control["residency_requests"] == requests

    assert eventually(is_quiet)
    requests = control["residency_requests"]
    run_a_little(engine)
    assert control["residency_requests"] > requests


def nothing_is_requested_again(path: str) -> None:
    control = Control()
    engine = open_metal(Path(path))
    run_a_little(engine)
    requests = control["residency_requests"]
    time.sleep(1.2)
    run_a_little(engine)
    assert control["residency_requests"] == requests  # everything was resident already


@pytest.mark.parametrize(
    ("keep_alive", "what"),
    [
        ("180", "requests_go_on_while_idle"),
        ("0.6", "requests_end_and_begin_again"),
        ("0", "nothing_is_requested_again"),
    ],
)
def test_keeping_alive(keep_alive: str, what: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of its own: requests are counted of all models, and another test's go on for 180 s."""
    monkeypatch.setenv("AKUNU_METAL_KEEP_ALIVE", keep_alive)
    in_new_process(__file__, what, str(path))


def hold_a_long_context() -> None:
    def peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    engine = synthetic(64, 64, layers=64, context=64, device="metal")
    before = peak()
    engine.close()
    engine = synthetic(64, 64, layers=64, context=4096, device="metal")
    assert engine.memory["kv_cache"] > 60 << 20
    assert peak() - before < engine.memory["kv_cache"] / 2


def test_a_context_that_is_not_used_takes_no_memory() -> None:
    """Metal clears what it allocates: clearing it again would commit every page."""
    in_new_process(__file__, "hold_a_long_context")


def test_a_mapped_file_is_shared(path: Path) -> None:
    """A private mapping is the process's own, which a GPU's pages need not be."""
    file = _core.GgufFile(str(path))
    maps = Path("/proc/self/maps").read_text().splitlines()
    assert [line.split()[1] for line in maps if str(path) in line] == ["r--s"]
    del file
