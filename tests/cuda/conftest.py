"""CUDA tests run without a GPU by the emulator of tests/cuda_emulator."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from children import environment
from cuda_emulator.build import CACHE_OPS, DENSE_OPS, KV_TYPES, build, build_several
from missing import missing

ROOT = Path(__file__).resolve().parents[2]
#: What differs where a block has 99 KB.
SMALL_OPS = (
    "Quantize", "Matmul", "GateUp", "ExpertsGateUp", "ExpertsDown", "PrepareHeads", "Attention",
    "AttentionSplit", "AttentionMerge", "CopyRecords", "LatentKv",
)  # fmt: skip


@pytest.fixture(scope="session")
def emulator() -> Path:
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        pytest.skip("the CUDA emulator is for x86-64 Linux")
    try:
        return build()
    except FileNotFoundError as error:
        missing(str(error))


@pytest.fixture(scope="session")
def small_emulator(emulator: Path) -> Path:
    """A GPU with blocks of 99 KB and without products of warpgroups, for a few weight types: for long tests,
    since each emulator takes long to compile."""
    return build(["F32", "F16", "Q4_0", "Q4_K", "Q6_K"], small=True, ops=SMALL_OPS)


@pytest.fixture(scope="session")
def cache_emulator(emulator: Path) -> Path:
    """A GPU with the ops of caches alone, for every type of keys beside every type of values."""
    pairs = [f"{keys},{values}" for keys in KV_TYPES for values in KV_TYPES]
    return build(["F32"], pairs=pairs, ops=CACHE_OPS)


@pytest.fixture(scope="session")
def cards_emulator(emulator: Path) -> Path:
    return build_several()


@pytest.fixture(scope="session")
def checked_emulator(emulator: Path) -> Path:
    """The kernels of AKUNU_CUDA_RACECHECK, for a few weight types."""
    few = ["F32", "F16", "Q4_0", "Q5_0", "Q8_0", "Q4_K", "Q6_K"]
    return build(few, ops=[*DENSE_OPS, "ExpertsDown"], checks_races=True)


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(emulator: Path, tmp_path: Path) -> Run:
    """Runs Python code in a process of its own, whose driver is the emulator: a process has one driver."""
    return runner(emulator, tmp_path)


@pytest.fixture
def run_small(small_emulator: Path, tmp_path: Path) -> Run:
    return runner(small_emulator, tmp_path)


@pytest.fixture
def run_cache(cache_emulator: Path, tmp_path: Path) -> Run:
    return runner(cache_emulator, tmp_path)


@pytest.fixture
def run_cards(cards_emulator: Path, tmp_path: Path) -> Run:
    return runner(cards_emulator, tmp_path)


@pytest.fixture
def run_checked(checked_emulator: Path, tmp_path: Path) -> Run:
    run = runner(checked_emulator, tmp_path)
    return lambda code, **more: run(code, AKUNU_CUDA_RACECHECK="1", **more)


def runner(emulator: Path, tmp_path: Path) -> Run:
    def run(code: str, **more: str) -> subprocess.CompletedProcess[str]:
        settings = {
            "AKUNU_CUDA_DRIVER": str(emulator),
            "AKUNU_NVRTC": str(emulator),
            "AKUNU_CACHE": str(tmp_path / "cache"),
        }
        return subprocess.run(
            [sys.executable, "-c", code],
            env=environment(**settings | more),
            capture_output=True,
            text=True,
            timeout=600,
        )

    return run


PYTEST = """
import pytest, sys
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:schemathesis", *{which}]))
"""


@pytest.fixture
def passes(run: Run) -> Callable[..., None]:
    """Runs tests that were written for the CPU, of a file in `tests`, on the emulated GPU."""
    return passing(run)


@pytest.fixture
def passes_cards(run_cards: Run) -> Callable[..., None]:
    """Runs test files on emulated hosts of several GPUs, as `passes` does on one."""
    return passing(run_cards)


def passing(run: Run) -> Callable[..., None]:
    def passes(file: str, *tests: str, **environment: str) -> None:
        which = [f"{ROOT / 'tests' / file}::test_{test}" for test in tests]
        done = run(PYTEST.replace("{which}", repr(which)), **{"AKUNU_TEST_DEVICE": "cuda"} | environment)
        assert done.returncode == 0 and " passed" in done.stdout, done.stdout[-4000:] + done.stderr

    return passes
