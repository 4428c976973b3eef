"""The emulator's detectors fire: each mutation of a correct kernel is seen by what should see it."""

# ruff: noqa: E501  (MSL and tables read better unbroken)
from __future__ import annotations

import math

import numpy as np
import pytest

from metal import emulator_kernels as ek
from metal_emulator.harness import (
    SCHEDULES_DEFAULT,
    CompileError,
    KernelError,
    Library,
    Schedule,
    in_sanitizer,
    lint,
)

pytestmark = pytest.mark.long  # of the tests' own tool, which no change to the package can break


@pytest.mark.parametrize("name", ek.RUNS)
def test_correct_kernels_pass_under_every_schedule(name: str) -> None:
    library = Library.compile(ek.KERNELS / f"{name}.metal")
    for schedule in (*SCHEDULES_DEFAULT, Schedule("uniform", 4), Schedule("uniform", 5, workers=1)):
        assert ek.RUNS[name](library, schedule) <= ek.TOLERANCE[name], schedule


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "divergent_barrier",
            r"threadgroup \(\d,0,0\): threadgroup_barrier at line 39 reached by 32 of 128 threads",
        ),
        ("divergent_simd_sum", r"diverged|deadlock.*simd_reduce at line 35"),
        ("return_before_barrier", r"threadgroup_barrier at line 40 reached by 100 of 128 threads"),
        ("write_past_threadgroup_array", r"write 0 bytes behind threadgroup variable 0 of 8 bytes"),
        ("write_past_threadgroup_argument", r"behind threadgroup argument 0 of 1056 bytes"),
        ("too_much_threadgroup_memory", r"threadgroup memory 36000 > 32768 bytes"),
        ("write_past_end", r"write outside of buffer 1 of 12 bytes, at byte 12"),
        ("wild_pointer", r"access to invalid address"),
        ("division_by_zero", r"integer division by zero"),
    ],
)
def test_errors_that_a_plain_run_reports(name: str, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        ek.run_mutation(name, "")


def test_a_fault_does_not_end_the_process_and_names_the_buffer() -> None:
    library = Library.compile(ek.KERNELS / "argmax.metal")
    x, out = np.zeros(1024, np.float32), np.zeros(1, np.uint32)
    for _ in range(3):
        with pytest.raises(
            KernelError,
            match=r"argmax_f32: threadgroup \(0,0,0\): thread \d+: access \d+ bytes behind buffer 0 'x' of 4096 bytes",
        ):
            library.run("argmax_f32", [x, out, np.array([100000], np.uint32).tobytes()], groups=1, threads=64)
    assert ek.run_argmax(library) == 0


@pytest.mark.parametrize(
    "name",
    [
        "removed_barrier",
        "removed_first_loop_barrier",
        "removed_last_loop_barrier",
        "uninitialised_read",
        "uninitialised_local",
        "off_by_one_index",
        "wrong_tie",
    ],
)
def test_wrong_results_show_in_order_and_by_priority(name: str) -> None:
    """Poison and adversarial schedules make these bugs visible without a sanitizer."""
    kernel = ek.MUTATIONS[name][0]
    errors = [ek.run_mutation(name, "", s.kind, s.seed) for s in SCHEDULES_DEFAULT]
    assert any(math.isnan(e) or e > ek.TOLERANCE[kernel] for e in errors)


def test_a_barrier_without_memory_flags_passes_a_plain_run() -> None:
    """Why ThreadSanitizer is part of the kernels' tests: nothing else can see this one."""
    assert ek.run_mutation("barrier_without_memory", "") <= ek.TOLERANCE["rmsnorm"]


# ---- sanitizers --------------------------------------------------------------------------------


@pytest.mark.parametrize("sanitizer", ["tsan", "asan"])
def test_correct_kernels_are_clean_under_sanitizers(sanitizer: str) -> None:
    done = in_sanitizer(sanitizer, ek.__file__, "run_all", sanitizer)
    assert done.returncode == 0 and done.stdout == "clean\n", done.stderr[-4000:]


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("removed_barrier", "text.metal:42"),
        ("barrier_without_memory", "text.metal:42"),
        ("removed_first_loop_barrier", "text.metal"),
        ("removed_last_loop_barrier", "text.metal"),
        ("overlapping_threadgroups", "text.metal:4"),
    ],
)
def test_thread_sanitizer_names_the_line_of_a_race(name: str, place: str) -> None:
    done = in_sanitizer("tsan", ek.__file__, "run_mutation", name, "tsan")
    assert done.returncode == 66 and "data race" in done.stderr and place in done.stderr, done.stderr[-4000:]


@pytest.mark.parametrize(
    ("name", "report"),
    [
        ("read_past_end", "heap-buffer-overflow"),
        ("write_past_end", "heap-buffer-overflow"),
        ("write_past_threadgroup_array", "out of bounds"),
        ("write_past_threadgroup_argument", "use-after-poison"),
        ("misaligned_vector", "misaligned address"),
    ],
)
def test_address_sanitizer_names_the_line(name: str, report: str) -> None:
    done = in_sanitizer("asan", ek.__file__, "run_mutation", name, "asan")
    assert done.returncode != 0 and report in done.stderr and "text.metal:" in done.stderr, done.stderr[
        -4000:
    ]


# ---- lint --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ek.RUNS)
def test_sample_kernels_are_free_of_lint(name: str) -> None:
    assert lint(ek.KERNELS / f"{name}.metal") == []


def test_lint_sees_wrong_and_missing_address_spaces() -> None:
    found = lint("""#include <metal_stdlib>
using namespace metal;
static float f(device const float* p) { return p[0]; }
static float g(const float* p) { return p[0]; }
kernel void k(device float* a [[buffer(0)]], constant float* c [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    threadgroup float t[32];
    a[i] = f(c);
    a[i] += f(t);
    a[i] += g(a);
    device float* q = a; a[i] += f(q);
    float* r = a;
    a[i] = r[0];
}
""")
    assert [int(line.split(":")[1]) for line in found if "error:" in line] == [7, 8, 9, 11]


@pytest.mark.parametrize(
    ("body", "warning"),
    [
        ("float v; if (i > 3) v = 1.0f; a[i] = v;", "uninitialized"),
        ("if (i = 3) a[i] = 1.0f;", "parentheses"),
        ("uint i = 3; a[i] = 1.0f;", "redefin|shadow"),
    ],
)
def test_lint_warns(body: str, warning: str) -> None:
    found = lint(
        f"#include <metal_stdlib>\nusing namespace metal;\nkernel void k(device float* a [[buffer(0)]], uint i [[thread_position_in_grid]]) {{ {body} }}\n"
    )
    import re

    assert any(re.search(warning, line) for line in found), found


def test_diagnostics_name_the_line_of_the_metal_file() -> None:
    with pytest.raises(CompileError, match=r"text\.metal:4:\d+: error: .*undefined_thing"):
        Library.compile(
            "#include <metal_stdlib>\nusing namespace metal;\nkernel void k(device float* a [[buffer(0)]]) {\n    a[0] = undefined_thing;\n}\n"
        )
