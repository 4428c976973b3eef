"""Builds libcuda_emulator.so: the kernels as C++, for all weight types or for a few."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kernels.toolchain import launcher

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
KERNELS = ROOT / "cuda" / "kernels"
FLAGS = [
    "-O1", "-finline-small-functions", "-fvisibility=hidden", "-std=c++20", "-fPIC", "-pthread",
    "-ffp-contract=off", "-fno-strict-aliasing", "-ftls-model=initial-exec",
]  # fmt: skip
if platform.system() == "Linux" and " f16c" in Path("/proc/cpuinfo").read_text():
    FLAGS.append("-mf16c")  # without it, each half that is read is a call

#: The readers of weights, in the order of their numbers.
READERS = re.findall(r"^    kRead([A-Z]\w*),", (KERNELS / "command.h").read_text(), re.MULTILINE)
#: The ops likewise.
OPS = re.findall(r"^    kOp([A-Z]\w*),", (KERNELS / "command.h").read_text(), re.MULTILINE)
#: Types of keys and of values, in the order of their numbers, and pairs that engines of tests use.
KV_TYPES = ("f16", "f32", "q8_0", "q4_0")
KV_PAIRS = ("f16,f16", "f32,f32", "q8_0,q8_0", "q4_0,q4_0", "q8_0,q4_0", "f16,q4_0")
#: Ops that read or write the cache: where no other is compiled, all pairs of types cost little.
CACHE_OPS = (
    "PrepareHeads", "Attention", "AttentionSplit", "AttentionMerge", "CopyRecords", "LatentKv",
)  # fmt: skip
#: Ops of dense models: without those of others the emulator of several GPUs takes two thirds of the time.
DENSE_OPS = (
    "Embed", "RopeTable", "Norm", "NormAdd", "Quantize", "Matmul", "GateUp", "NormQkv", "NormGateUp",
    "GateAct", "PrepareHeads", "Attention", "AttentionSplit", "AttentionMerge", "CopyRecords", "LatentKv",
    "Argmax", "SamplePrepare", "SampleSelect", "Logprobs", "Accept", "Advance", "ColumnSquares",
    "DecodeAttention", "AllReduce",
)  # fmt: skip
#: Sizes of heads for which the kernels of prompts exist.
PROMPT_DIMS = (64, 128, 256, 320, 512, 640)


def pair_number(pair: str) -> int:
    """Number a pair as kv_pair() in cuda/kernels/command.h does."""
    keys, values = (KV_TYPES.index(name) for name in pair.split(","))
    return keys * len(KV_TYPES) + values


def definitions(
    readers: Sequence[str],
    small: bool,
    pairs: Sequence[str],
    ops: Sequence[str],
    cards: int,
    checks_races: bool,
    prompt_dims: Sequence[int],
) -> list[str]:
    """All groups of heads, and some readers, types of the cache, ops and sizes of heads."""
    groups, kinds, numbers = (
        [0, 1, 2, 4, 8, 16],
        [8, 16, 32, 64, 128],
        [READERS.index(name) for name in readers],
    )
    lists = {
        "OPS": [OPS.index(op) for op in ops],
        "READERS": numbers,
        "KV_TYPES": [pair_number(pair) for pair in pairs],
        "GROUPS": groups,
        "DECODE_KINDS": kinds,
        "PROMPT_DIMS": list(prompt_dims),
    }
    lines = [f"#define AKUNU_{name} {' '.join(f'X({n})' for n in values)}" for name, values in lists.items()]
    lines.append("#define EMULATOR_READER_NAMES " + ", ".join(f'"{name}"' for name in READERS))
    lines.append(f"#define AKUNU_SHARED_BYTES {(99 if small else 227) << 10}\n#define AKUNU_CARDS {cards}")
    lines.append(f"#define AKUNU_RACECHECK {int(checks_races)}")
    return [f"#define AKUNU_WARPGROUPS {int(not small)}", *lines]


def build(
    readers: Sequence[str] = READERS,
    *,
    small: bool = False,
    pairs: Sequence[str] = KV_PAIRS,
    ops: Sequence[str] = OPS,
    cards: int = 1,
    checks_races: bool = False,
    prompt_dims: Sequence[int] = PROMPT_DIMS,
) -> Path:
    """Build the library, or take it from a cache of contents.

    `small` stands for a GPU whose blocks have 99 KB and no products of warpgroups, as an RTX 4090; otherwise
    the GPU is like an H100.

    With `checks_races` the kernels are those of AKUNU_CUDA_RACECHECK.

    With `cards` the kernels are those of several GPUs; they run models on one, too.

    Models that need something else, such as another reader of weights or another op, are refused when their
    kernels are loaded.

    Raises FileNotFoundError where there is no C++ compiler.
    """
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None:
        raise FileNotFoundError("the CUDA emulator needs a C++ compiler")
    text = (
        "\n".join(definitions(readers, small, pairs, ops, cards, checks_races, prompt_dims))
        + '\n#include "emulator.cpp"\n'
    )
    sources = sorted([*KERNELS.iterdir(), *HERE.glob("*.c*"), *(ROOT / "cpp/core").glob("*.h")])
    contents = b"".join(path.read_bytes() for path in sources) + " ".join([*FLAGS, text]).encode()
    folder = ROOT / "build" / "cuda-emulator" / hashlib.sha256(contents).hexdigest()[:16]
    library = folder / "libcuda_emulator.so"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if library.exists():
            return library
        # Quoted includes are looked for beside the file that has them: so all lie side by side.
        for path in [*KERNELS.iterdir(), *HERE.glob("*.c*")]:
            shutil.copy(path, folder / path.name)
        (folder / "main.cpp").write_text(text)
        part, made = folder / "part.so", folder / "main.o"
        command = [*launcher(), compiler, *FLAGS, f"-I{ROOT / 'cpp'}", "-c", str(folder / "main.cpp")]
        subprocess.run([*command, "-o", str(made)], check=True)
        subprocess.run([compiler, *FLAGS, "-shared", str(made), "-o", str(part)], check=True)
        made.unlink()
        part.rename(library)
    return library


def build_several() -> Path:
    """A host of several GPUs, for dense models and a few weight types."""
    few = ["F32", "F16", "Q4_0", "Q5_0", "Q8_0", "Q4_K", "Q6_K"]
    return build(few, pairs=["f16,f16", "f32,f32"], ops=DENSE_OPS, cards=4, prompt_dims=[64, 128, 256])


if __name__ == "__main__":  # what `make test` runs on
    if platform.system() == "Linux" and platform.machine() == "x86_64":
        build()
        build_several()
