"""Compiled kernels are kept by their content: each is compiled once, whoever asks for it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from metal_emulator import compiler
from metal_emulator.build import ROOT, build
from tools.flatten import flatten

pytestmark = pytest.mark.long  # of the tests' own tool, which no change to the package can break

INCLUDE = (ROOT / "metal" / "include", ROOT / "cpp", ROOT)

HEADER = "constant constexpr uint kAdded = 1;\n"
KERNEL = """#include <metal_stdlib>
#include "added.h"
using namespace metal;
kernel void add(device uint* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] += kAdded; }
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "added.h").write_text(HEADER)
    path = tmp_path / "add.metal"
    path.write_text(KERNEL)
    return path


def compiled(path: Path, cache: Path, **options: object) -> Path:
    return compiler.compile_library(
        path, runtime_dir=build(), include=(path.parent, *INCLUDE), cache_dir=cache, **options
    )


def test_a_kernels_file_and_its_text_for_a_device_are_one_library(source: Path, tmp_path: Path) -> None:
    flat = tmp_path / "library-0123.metal"
    flat.write_text(flatten(source, [], set()))
    assert compiled(source, tmp_path / "cache") == compiled(flat, tmp_path / "cache")


def test_a_text_that_came_before_starts_no_compiler(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process on the device asks for its texts."""
    flat, options = tmp_path / "library-0123.metal", {"runtime_dir": build(), "cache_dir": tmp_path / "cache"}
    flat.write_text(flatten(source, [], set()))
    found = compiler.compile_library(flat, **options)
    with monkeypatch.context() as patch:
        patch.setattr(compiler.subprocess, "run", lambda *_, **__: pytest.fail("started a program"))
        assert compiler.compile_library(flat, **options) == found
    other = compiler.compile_library(flat, fast_math=True, **options)
    flat.write_text(flat.read_text().replace("+= kAdded", "-= kAdded"))
    assert len({found, other, compiler.compile_library(flat, **options)}) == 3
    found.unlink()
    flat.write_text(flatten(source, [], set()))
    assert compiler.compile_library(flat, **options) == found and found.exists()


@pytest.mark.parametrize("old", ["kAdded = 1", "x[i] += kAdded"])
def test_another_content_is_another_library(old: str, source: Path, tmp_path: Path) -> None:
    before = compiled(source, tmp_path / "cache")
    for path in (source, source.with_name("added.h")):
        path.write_text(path.read_text().replace(old, old + " + 1"))
    assert compiled(source, tmp_path / "cache") != before


def test_other_flags_are_another_library(source: Path, tmp_path: Path) -> None:
    found = {compiled(source, tmp_path / "cache", fast_math=fast) for fast in (False, True)}
    assert len(found) == 2


def test_those_who_ask_at_once_wait_for_one_compiler(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    compile_one = compiler._compile
    monkeypatch.setattr(compiler, "_compile", lambda *args: (calls.append(args), compile_one(*args)))
    threads = [threading.Thread(target=compiled, args=(source, tmp_path / "cache")) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(calls) == 1
