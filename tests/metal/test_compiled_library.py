"""`akunu.metallib` beside the module, as wheels have it: here a file of texts, which the emulator reads."""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from akunu import _core
from akunu.files.describe.gguf_config import resolve
from children import environment
from metal.on_metal import require_metal
from metal_emulator.build import ROOT
from metal_emulator.control import Control
from models import llama2c
from one_engine import OneEngine
from tools.flatten import flatten

KERNELS = ROOT / "metal" / "kernels"
FOLDERS = [ROOT / "metal" / "include", ROOT / "cpp", ROOT]
# What a model of F16 runs; the rest is left out, since compiling takes a second each.
USED = (
    "attention/attention_f16", "attention/attention_merge", "elementwise/activations", "elementwise/norm",
    "elementwise/rope_table", "matmul/f16", "sampling/accept",
    "sampling/argmax",
)  # fmt: skip

CHILD = """
import importlib.util, sys
from importlib.machinery import ModuleSpec

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return importlib.util.spec_from_file_location(name, MODULE) if name == "akunu._core" else None

MODULE = sys.argv[1]
sys.meta_path.insert(0, Finder)
from metal.test_compiled_library import run
run(sys.argv[2])
"""


def run(path: str) -> None:
    """In a process whose module has the library beside it: prints what was loaded."""
    control = Control()
    file = _core.GgufFile(path)
    engine = OneEngine(_core.Engine(file, resolve(file, context=128), context=128, device="metal"))
    engine.begin(llama2c.expected().prompt_ids)
    ids = engine.prefill()[1].ids + engine.decode(4).ids
    engine.logits(list(range(1, 41)))
    assert ids == llama2c.expected().greedy_ids[:5], ids
    del engine
    gc.collect()
    print(f"module={_core.__file__} libraries={control['libraries']}")


def libraries(folder: Path, texts: list[str] | bytes) -> int:
    """How many libraries a run of a model loads: the file, and those compiled from the module's texts."""
    require_metal()
    module = folder / Path(str(_core.__file__)).name
    shutil.copy(str(_core.__file__), module)
    library = folder / "akunu.metallib"
    if isinstance(texts, bytes):
        library.write_bytes(texts)
    else:
        library.write_text("\n".join(["akunu-metal-emulator-library", *[f"---- text\n{t}" for t in texts]]))
    path = llama2c.write("F16", folder / "tiny.gguf")
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(module), str(path)],
        env=environment(AKUNU_CACHE=folder / "cache"), capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"module={module} " in done.stdout
    return int(done.stdout.split("libraries=")[1])


def texts(*names: str) -> list[str]:
    return [flatten(KERNELS / f"{name}.metal", FOLDERS, set()) for name in names]


def test_a_library_with_every_function_is_all_that_is_loaded(tmp_path: Path) -> None:
    assert libraries(tmp_path, texts(*USED)) == 1


def test_a_function_that_the_library_lacks_is_compiled(tmp_path: Path) -> None:
    assert libraries(tmp_path, texts(*USED[2:])) == 1 + 2


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", marks=pytest.mark.long),
        b"no library",
        b"akunu-metal-emulator-library\n---- text\nkernel void f(",
    ],
)
def test_a_library_that_cannot_be_read_is_no_error(tmp_path: Path, content: bytes) -> None:
    assert libraries(tmp_path, content) == len(USED)
