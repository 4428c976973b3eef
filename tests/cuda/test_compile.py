"""The kernels are taken by NVRTC, for architectures that need no GPU here."""

from __future__ import annotations

import ctypes
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from cuda_emulator.build import READERS
from missing import missing
from tools.kernel_text import source

ROOT = Path(__file__).resolve().parents[2]
OPS = re.findall(r"^    kOp(\w+),", (ROOT / "cuda/kernels/command.h").read_text(), re.MULTILINE)


# Attention is a function that the kernel calls, so that its products of warpgroups wait for one another. It
# is faster by them nevertheless (docs/performance-notes.md, "Towers on a GPU"). No others may wait.
WAITING = re.compile(r"ptxas info *: \(C75\d\d\) Potential Performance Loss: wgmma[^\n]*attend_run[^\n]*\n?")


@pytest.fixture(scope="module")
def nvrtc() -> ctypes.CDLL:
    spec = find_spec("nvidia")
    for folder in spec.submodule_search_locations or [] if spec else []:
        for path in Path(folder).glob("cu*/lib/libnvrtc.so.*"):
            return ctypes.CDLL(str(path))
    missing("nvidia-cuda-nvrtc is not installed")


def compiled(
    nvrtc: ctypes.CDLL, target: str, ops: list[str], readers: list[str], cards: int = 1, races: int = 0
) -> tuple[str, bytes]:
    """Compile the interpreter with these ops and readers: NVRTC's log, and PTX or machine code."""
    codes = " ".join(f"X({OPS.index(op)})" for op in ops)
    numbers = " ".join(f"X({READERS.index(r)})" for r in readers)
    hopper = target.partition("_")[2].startswith(("9", "1"))
    base = 1024 if hopper else 0  # as `limits_of` in cuda/host/gpu.cpp
    shared = (99 if target in ("sm_86", "sm_89", "sm_120") else 163 if target.endswith("_80") else 227) << 10
    text = (
        f"#define AKUNU_SHARED_BASE {base}\n#define AKUNU_SHARED_BYTES {shared}\n"
        f"#define AKUNU_CARDS {cards}\n#define AKUNU_RACECHECK {races}\n#define AKUNU_OPS {codes}\n"
        f"#define AKUNU_READERS {numbers}\n#define AKUNU_KV_TYPES X(0) X(5) X(10) X(11) X(15)\n"
        "#define AKUNU_GROUPS X(1)\n#define AKUNU_DECODE_KINDS X(8) X(64)\n"
        "#define AKUNU_PROMPT_DIMS X(64) X(128) X(256) X(512)\n" + source(set())
    )
    program = ctypes.c_void_p()
    header = (ctypes.c_char_p * 1)(b"namespace std { using uint32_t = unsigned int; }")
    name = (ctypes.c_char_p * 1)(b"cstdint")
    assert (
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"interpreter.cu", 1, header, name)
        == 0
    )
    options = [f"-arch={target}".encode(), b"-std=c++17", b"-default-device"]
    failed = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    code = b""
    if not failed:
        kind = "CUBIN" if target.startswith("sm_") else "PTX"
        getattr(nvrtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(nvrtc, f"nvrtcGet{kind}")(program, buffer)
        code = buffer.raw
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return log.value.decode() or ("failed" if failed else ""), code


def log_of(
    nvrtc: ctypes.CDLL, target: str, ops: list[str], readers: list[str], cards: int = 1, races: int = 0
) -> str:
    """What NVRTC says to the interpreter with these ops and readers; nothing where all is well."""
    log, code = compiled(nvrtc, target, ops, readers, cards, races)
    log = WAITING.sub("", log).strip("\n\0")
    # Of a kernel that never goes on behind its first question there would be hardly any.
    hollow = target.startswith("sm_") and len(code) < 100_000
    return log or ("no machine code" if hollow else "")


def test_the_names_here_are_those_of_the_kernels() -> None:
    assert (OPS[0], OPS[-1], READERS[0], READERS[-1]) == ("Embed", "Advance", "F32", "FloatCodes")


@pytest.mark.long  # each time: attention for GPUs other than Hopper's is compiled nowhere else
def test_ops_without_weights_compile(nvrtc: ctypes.CDLL) -> None:
    weighted = {"Embed", "Matmul", "GateUp", "NormQkv", "NormGateUp", "ExpertsGateUp", "ExpertsDown"}
    assert log_of(nvrtc, "compute_80", [op for op in OPS if op not in weighted], []) == ""


@pytest.mark.long
@pytest.mark.in_turn
@pytest.mark.parametrize("target", ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120"])
def test_machine_code_of_a_weight_type(nvrtc: ctypes.CDLL, target: str) -> None:
    """With ops that have none. NVRTC would tell of warpgroups whose products wait for one another."""
    speech = ["Unfold", "AttentionWeights", "SpeechRules"]
    experts = ["Route", "ExpertsGateUp", "ExpertsDown"]
    ops = ["Embed", "Matmul", "NormGateUp", *speech, "Recur", "ShortConv", "DeltaRule", *experts]
    assert log_of(nvrtc, target, ops, ["F32", "Q4_0"]) == ""


@pytest.mark.long
@pytest.mark.in_turn
def test_every_weight_type_compiles(nvrtc: ctypes.CDLL) -> None:
    assert log_of(nvrtc, "compute_80", ["Embed", "NormGateUp"], READERS) == ""


@pytest.mark.long
@pytest.mark.in_turn
def test_machine_code_of_several_gpus(nvrtc: ctypes.CDLL) -> None:
    ops = ["Embed", "Matmul", "NormGateUp", "AllReduce"]
    assert log_of(nvrtc, "sm_90a", ops, ["F32", "Q4_0"], cards=2) == ""


SLOW = [pytest.mark.long, pytest.mark.in_turn]
RACE_OPS = ["Embed", "Matmul", "NormQkv", "NormGateUp", "GateUp", "Attention", "DecodeAttention", "Accept"]


@pytest.mark.long
@pytest.mark.in_turn
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_machine_code_for_racecheck(nvrtc: ctypes.CDLL, target: str) -> None:
    assert log_of(nvrtc, target, RACE_OPS, ["F16", "Q4_0"], races=1) == ""


@pytest.mark.parametrize(
    ("ops", "readers"),
    [(["Quantize"], []), pytest.param(RACE_OPS, ["F16", "Q4_0"], marks=SLOW)],
    ids=["ring", "tiles"],
)
def test_racecheck_meets_nothing_that_it_does_not_follow(
    nvrtc: ctypes.CDLL, ops: list[str], readers: list[str]
) -> None:
    """Barriers in shared memory, copies of bytes and boxes, volatile words."""
    unfollowed = ["mbarrier", "cp.async.bulk", "ld.volatile.shared", "st.volatile.shared"]
    for races in (0, 1):
        log, ptx = compiled(nvrtc, "compute_90a", ops, readers, races=races)
        ptx = ptx.replace(b"cp.async.bulk.prefetch", b"")  # it changes nothing that a thread reads
        found = [name for name in unfollowed if name.encode() in ptx]
        assert (log, found) == ("", [] if races else unfollowed)
