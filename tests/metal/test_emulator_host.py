"""The fake Metal device: Objective-C++ host code end to end, API validation, faults, asynchrony."""

# ruff: noqa: E501  (MSL and tables read better unbroken)
from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from metal_emulator import compiler
from metal_emulator.build import ROOT, _tool
from metal_emulator.control import Control
from metal_emulator.harness import in_new_process, sanitizer_environment
from missing import missing

pytestmark = pytest.mark.long  # of the tests' own tool, which no change to the package can break


def run(
    emulator: Path, case: str, env: dict[str, str] | None = None, **settings: int
) -> subprocess.CompletedProcess[str]:
    """Run one case of sample/cases.mm in a process of its own."""
    environment = dict(os.environ if env is None else env)
    environment["AKUNU_METAL_EMULATOR"] = ",".join(f"{k}={v}" for k, v in settings.items())
    return subprocess.run(
        [str(emulator / "emulator_cases"), case], env=environment, capture_output=True, text=True, timeout=120
    )


def fields(text: str) -> dict[str, str]:
    return dict(re.findall(r"(\w+)=(\S+)", text))


# ---- end to end --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings", [{}, {"schedule": 1, "seed": 3}, {"schedule": 2, "seed": 4, "delay_us": 100}], ids=str
)
def test_a_device_in_objective_cpp_runs_unmodified(emulator: Path, settings: dict[str, int]) -> None:
    done = run(emulator, "end_to_end", **settings)
    assert done.returncode == 0, done.stderr
    f = fields(done.stdout)
    assert f["argmax"] == "617" and float(f["rms_error"]) < 2e-3
    assert f["cores"] == "10" and f["completed"] == "101"
    assert "caught: kernel nope: function 'nope' not found" in done.stdout
    assert f["live"] == "0", done.stderr  # nothing leaks


def test_compile_errors_reach_the_host(emulator: Path) -> None:
    done = run(emulator, "compile_error")
    assert "error: use of undeclared identifier 'undefined_thing'" in done.stdout
    assert re.search(r"\.metal:4:\d+: error", done.stdout)
    assert fields(done.stdout)["live"] == "0"


def test_a_missing_wait_reads_the_old_value(emulator: Path) -> None:
    f = fields(run(emulator, "missing_wait").stdout)
    assert f == {"before": "1234", "after": "5"}


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("event_chain", "done=1 value=10 beyond=0 handled=10 time=1"),
        ("indirect", "value=3 status=4"),
        ("encoders_with_a_fence", "value=3"),
        ("command_buffers_with_a_fence", "value=3"),
        ("command_buffers_with_an_event", "value=3"),
        ("command_buffers_with_a_wait", "value=3"),
        ("timestamps", "ordered=1 set=timestamp"),
        ("no_copy", "same=1 length=16384\nreleased=1"),
        ("blit", "0 5 0"),
        ("archive", "added=1 written=1 again=1 broken=0 code=1"),
        ("constants", "none=0 value=42 switched_off=7"),
        ("concurrent_with_barrier", "sum=2016"),
        (
            "properties",
            "Apple M2 Pro apple8=1 apple9=0 metal3=1 unified=1 threads=1024 memory=32768\nallocated=4096 label=weights zeroed=1\ntoo_large=0",
        ),
    ],
)
def test_api(emulator: Path, case: str, expected: str) -> None:
    done = run(emulator, case)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith(expected)


def test_function_constants_are_checked_by_name_and_type(emulator: Path) -> None:
    out = run(emulator, "constants").stdout
    assert "pipeline: function 'sized' requires function constant 'N' (index 0)" in out
    assert "function: function constant 'N' is uint, the value given has another type" in out


# ---- faults ------------------------------------------------------------------------------------


def test_an_out_of_bounds_kernel_fails_its_command_buffer_only(emulator: Path) -> None:
    done = run(emulator, "out_of_bounds")
    assert done.returncode == 0
    assert (
        "error=Caused GPU error: argmax_f32: threadgroup (0,0,0)" in done.stdout
        and "behind buffer 0 'x' of 4096 bytes" in done.stdout
    )


def test_errors_name_the_encoder(emulator: Path) -> None:
    out = run(emulator, "errors_name_the_encoder").stdout
    assert "status=5 code=3" in out  # error, page fault
    assert fields(out)["first"] == "1" and fields(out)["second"] == "4" and fields(out)["third"] == "3"


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("fail_command_buffer", "injected fault"),
        ("fail_allocation", "bad_alloc"),
        ("allocation_limit", "bad_alloc"),
    ],
)
def test_injected_faults(emulator: Path, case: str, expected: str) -> None:
    done = run(emulator, case)
    assert done.returncode == 0 and expected in done.stdout


# ---- validation --------------------------------------------------------------------------------

MISUSE = {
    "missing_binding": "missing buffer binding at index 1 for 'p'",
    "offset_past_end": "offset 1024 is not within the buffer's length 1024",
    "offset_misaligned": "offset 2 is not a multiple of 4",
    "vector_offset_misaligned": "offset 8 is not a multiple of 16",
    "buffer_index": "index 31 > 30",
    "constant_too_small": "needs 16 bytes, 4 are bound",
    "set_bytes_too_long": "length 4097, 1 to 4096 are allowed",
    "set_bytes_writable": "setBytes for a parameter the kernel may write",
    "threadgroup_length_multiple": "40 is not a multiple of 16",
    "threadgroup_length_limit": "32784 exceeds 32768",
    "threadgroup_length_missing": "threadgroup memory length at index 0 is not set",
    "too_many_threads": "1025 threads per threadgroup, the pipeline allows 1024",
    "too_many_threads_for_kernel": "65 threads per threadgroup, the pipeline allows 64",
    "no_pipeline": "no pipeline is set",
    "open_encoder_at_commit": "commit with an open encoder",
    "second_encoder": "while another one of the command buffer is open",
    "use_after_end": "the encoder has ended",
    "double_commit": "was committed already",
    "encode_after_commit": "made after commit",
    "handler_after_commit": "addCompletedHandler after commit",
    "wait_before_commit": "waitUntilCompleted before commit",
    "encoder_dropped": "released without endEncoding",
    "signal_while_encoding": "encodeSignalEvent while an encoder is open",
    "no_copy_misaligned": "must be multiples of the page size 4096",
    "buffer_freed_in_flight": "released while a command buffer that uses it is in flight",
    "host_writes_past_end": "write outside of buffer '' of 10 bytes, at byte 11",
    "icb_without_use_resource": "was not made resident by useResource",
    "indirect_encoded_twice": "it must be reset before it is encoded again",
    "command_buffers_without_a_fence": "used by two command buffers in flight, and neither a fence nor an event",
    "command_buffers_with_a_fence_of_another": "used by two command buffers in flight, and neither a fence nor an event",
    "encoders_without_a_fence": "is used by encoders 0 and 1 of a command buffer, and no fence is between them",
    "icb_pipeline_not_allowed": "without supportIndirectCommandBuffers",
    "concurrent_without_barrier": "'sum' reads 'a' that 'put' writes as 'o' with no barrier",
}


@pytest.mark.parametrize("case", MISUSE)
def test_misuse_is_named_and_ends_the_process(emulator: Path, case: str) -> None:
    done = run(emulator, case)
    assert done.returncode == -signal.SIGABRT
    assert "Metal validation: " in done.stderr and MISUSE[case] in done.stderr


def test_every_case_is_tested(emulator: Path) -> None:
    listed = set(
        subprocess.run([str(emulator / "emulator_cases")], capture_output=True, text=True).stdout.split()
    )
    here = Path(__file__).read_text()
    assert {c for c in listed if f'"{c}"' not in here} == set()


def test_a_bytes_no_copy_page_can_be_apples_16_kb(emulator: Path) -> None:
    assert run(emulator, "no_copy", page_size=16384).returncode in (0, -signal.SIGABRT)  # mmap aligns to 4 KB
    done = run(emulator, "no_copy", page_size=1 << 40)
    assert done.returncode == -signal.SIGABRT and "multiples of the page size" in done.stderr


def test_an_unknown_setting_is_refused(emulator: Path) -> None:
    assert "unknown setting 'typo" in run(emulator, "blit", typo=1).stderr


# ---- sanitizers and cost -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "case", ["concurrent_without_barrier", "concurrent_with_barrier", "event_chain", "end_to_end"]
)
def test_thread_sanitizer_orders_dispatches_as_metal_does(emulator: Path, case: str) -> None:
    """Only what the API orders is ordered: a dropped barrier in a concurrent encoder is a race."""
    env = sanitizer_environment("tsan") | {"AKUNU_METAL_EMULATOR_SANITIZER": "tsan"}
    done = run(emulator, case, env=env, hazards=0, workers=2)
    raced = "data race" in done.stderr
    assert raced == (case == "concurrent_without_barrier"), done.stderr[-3000:]
    assert (done.returncode == 66) == raced


def test_the_noop_mode_measures_the_host_alone(emulator: Path) -> None:
    out = fields(run(emulator, "encode_cost").stdout)
    assert out["dispatches"] == "0" and float(out["ns_per_command"]) < 20000
    # A message costs a few ns: small enough to measure encoders of thousands of commands.
    assert float(fields(run(emulator, "message_cost").stdout)["ns_per_message"]) < 100


def use_control() -> None:
    control = Control()
    with control.settings(seed=9, schedule=1):
        assert control["seed"] == 9
    assert control["seed"] == 0 and control["dispatches"] == 0 and control.take_faults() == []
    with pytest.raises(KeyError, match="typo"):
        control["typo"] = 1


def test_control_from_python(emulator: Path) -> None:
    in_new_process(__file__, "use_control")


# ---- CMake -------------------------------------------------------------------------------------


def test_a_project_of_another_compiler_links_its_host_code(emulator: Path, tmp_path: Path) -> None:
    """cmake/MetalEmulator.cmake: a g++ target with .mm sources runs on the emulator."""
    if not shutil.which("g++"):
        missing("there is no g++ to mix with")
    sample = ROOT / "tests/metal_emulator/sample"
    (tmp_path / "main.cpp").write_text(
        '#include "sample_device.h"\n#include <cstdio>\n#include <stdexcept>\n'
        'int main() {\n  try { sample::Device d("kernel void f() { oops }\\n"); }\n'
        "  catch (const std::runtime_error& e) { std::puts(e.what()); return 0; }\n  return 1;\n}\n"
    )
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(p CXX)\nset(CMAKE_CXX_STANDARD 20)\n"
        f"include({ROOT}/cmake/MetalEmulator.cmake)\n"
        # what add_subdirectory(tests/metal_emulator) defines, built already
        f"add_custom_target(fake_metal)\nset_target_properties(fake_metal PROPERTIES AKUNU_LIBRARY {emulator}/libfake_metal.so)\n"
        f"add_executable(program main.cpp)\ntarget_include_directories(program PRIVATE {sample})\n"
        f"akunu_metal_on_emulator(program SOURCES {sample}/sample_device.mm INCLUDE {sample})\n"
    )
    configure = [
        _tool("cmake"),
        "-G",
        "Ninja",
        f"-DCMAKE_MAKE_PROGRAM={_tool('ninja')}",
        "-DCMAKE_CXX_COMPILER=g++",
        "-S",
        str(tmp_path),
        "-B",
        str(tmp_path / "b"),
    ]
    for command in (configure, [_tool("ninja"), "-C", str(tmp_path / "b"), "-j2", "program"]):
        done = subprocess.run(
            command, capture_output=True, text=True, env=os.environ | {"AKUNU_CLANG": compiler.clang()}
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    done = subprocess.run([str(tmp_path / "b" / "program")], capture_output=True, text=True)
    assert done.returncode == 0 and "kernels: " in done.stdout, done.stderr
