"""Enum values of the emulator's Metal declarations against Apple's, from PyObjC's metadata.

The values are baked into every binary built with these headers, and into the wheel cross-built for macOS.
"""

# ruff: noqa: E501  (MSL and tables read better unbroken)
from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from metal_emulator.build import ROOT
from missing import missing

pytestmark = pytest.mark.long  # of the tests' own tool, which no change to the package can break

SDK = ROOT / "tests" / "metal_emulator" / "sdk"


@pytest.fixture(scope="module")
def metadata(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Text of Metal/_metadata.py in the wheel of pyobjc-framework-Metal."""
    folder = tmp_path_factory.mktemp("pyobjc")
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--platform", "macosx_10_13_universal2",
        "--python-version", "3.12", "--dest", str(folder), "pyobjc-framework-Metal",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        missing(f"pyobjc-framework-Metal could not be downloaded: {done.stderr.strip()[-500:]}")
    return zipfile.ZipFile(io.BytesIO(wheels[0].read_bytes())).read("Metal/_metadata.py").decode()


def declared_values() -> dict[str, int]:
    """Every enumerator of the Metal headers with its value."""
    values = {}
    for header in sorted((SDK / "Metal").glob("*.h")):
        for name, expression in re.findall(r"\b(MTL\w+) = ([^,}\n]+)", header.read_text()):
            values[name] = eval_integer(expression)
    return values


def eval_integer(expression: str) -> int:
    """Value of a C integer expression of numbers, shifts and sums."""
    allowed = (ast.Expression, ast.BinOp, ast.Constant, ast.LShift, ast.Add, ast.BitOr)
    tree = ast.parse(expression.strip(), mode="eval")
    assert all(isinstance(n, allowed) for n in ast.walk(tree)), expression
    return int(eval(compile(tree, "header", "eval")))


def test_every_declared_enum_value_is_apples(metadata: str) -> None:
    apple = {name: int(value) for name, value in re.findall(r"\b(MTL\w+)@(-?\d+)", metadata)}
    declared = declared_values()
    assert len(declared) > 100
    assert {n: (v, apple.get(n)) for n, v in declared.items() if apple.get(n) != v} == {}


def test_enumerators_without_a_value_are_not_declared() -> None:
    """So that the comparison above misses none."""
    for header in sorted((SDK / "Metal").glob("*.h")):
        for body in re.findall(r"NS_(?:ENUM|OPTIONS)\([^)]*\)\s*\{([^}]*)\}", header.read_text()):
            assert all("=" in item for item in body.split(",") if item.strip()), f"{header.name}: {body}"


def test_declared_selectors_exist_in_the_metadata(metadata: str) -> None:
    """Selectors whose types PyObjC records (those with block, pointer-to-error or C array arguments)."""
    for selector in ("newBufferWithBytesNoCopy:length:options:deallocator:", "newLibraryWithSource:options:error:", "newComputePipelineStateWithFunction:error:",
                     "addCompletedHandler:", "setBytes:length:atIndex:", "setBuffers:offsets:withRange:", "newFunctionWithName:constantValues:error:",
                     "serializeToURL:error:", "notifyListener:atValue:block:", "sampleTimestamps:gpuTimestamp:"):  # fmt: skip
        assert selector in metadata, selector
        text = "\n".join(p.read_text() for p in Path(SDK / "Metal").glob("*.h"))
        assert all(part in text for part in re.findall(r"\w+:", selector)), selector
