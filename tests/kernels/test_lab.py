"""The lab itself: that the table's checks would notice a wrong kernel."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from akunu import _core
from akunu.base.errors import DeviceError, InvalidArgumentError, UnsupportedError

from .case import case
from .devices import Target, lab, targets, unsupported
from .problem import Activation, Array, Check, Problem, pack, poisoned, struct
from .runner import failures, nmse, run
from .weights import random_weight, weight_dtypes

CPU = targets()[0]


def norm_problem(formats: tuple[str, ...] = ("f32",)) -> Problem:
    return case("norm", rows=3, dim=96, formats=formats).build(lab(CPU))


def test_structs_have_no_gaps() -> None:
    """Every field is exported: one that is missing would silently be zero."""
    for name, dtype in _core.lab_structs().items():
        sizes = [dtype[field].itemsize for field in dtype.names or ()]
        assert sum(sizes) == dtype.itemsize, name
    sizes = ("rows", "n", "k", "y_stride")
    assert struct("matmul").names == (*sizes, "accumulate", "has_bias", "softcap", "activation", "format")


def test_parameters_must_be_complete() -> None:
    with pytest.raises(ValueError, match="parameters of quantize"):
        pack("quantize", rows=1, dim=32)


@pytest.mark.parametrize("target", targets(), ids=lambda t: t.id)
def test_writing_past_a_buffer_is_seen(target: Target) -> None:
    device = lab(target)
    x, weight = np.ones((2, 64), np.float32), np.ones(64, np.float32)
    params = pack("norm", rows=2, dim=64, eps=1e-5, formats=1, gather=0, sum_scale=1.0)
    for missing in (1, 64, 127):
        short = np.empty(2 * 64 - missing, np.float32)
        message = rf"buffer 2 of {short.nbytes} bytes: 0 bytes before it and [1-9]\d* after it"
        with pytest.raises(DeviceError, match=message):
            device.run("norm", [x, weight, short, None, None], params)


@pytest.mark.parametrize("target", targets(), ids=lambda t: t.id)
def test_a_kernel_that_reads_past_its_input_fails(target: Target) -> None:
    problem = norm_problem()
    x = problem.buffers["x"]
    assert isinstance(x, Array)
    problem.buffers["x"] = dataclasses.replace(x, data=x.data[:-1])
    try:
        found = run(problem, lab(target))
    except DeviceError as e:  # an emulated GPU stops at the access
        found = [str(e)] if target.device != "cpu" else []
    assert any("NMSE inf" in text or "behind buffer 0 'x'" in text for text in found)


def test_a_wrong_result_fails() -> None:
    problem = norm_problem()
    assert run(problem, lab(CPU)) == []
    problem.checks[0].expected[1, 2] += 1e-4
    assert any("NMSE" in text for text in run(problem, lab(CPU)))


def test_an_output_that_was_not_written_fails() -> None:
    problem = norm_problem()
    problem.commands.clear()
    assert any("NMSE inf" in text for text in run(problem, lab(CPU)))


def test_a_changed_input_fails() -> None:
    problem = norm_problem()
    h = problem.buffers["x"]
    problem.buffers["out_f32"] = h  # the op now writes to an input
    problem.buffers["x"] = dataclasses.replace(h, out=True)
    problem.checks.clear()
    assert run(problem, lab(CPU)) == ["out_f32: an input was changed"]


@pytest.mark.parametrize(
    ("plane", "change", "message"),
    [
        ("q", lambda v: v + 1, "nearest"),
        ("d", lambda v: v * np.float32(1.01), "max"),
        ("s", lambda v: v * np.float32(1.01), "s is not"),
        ("s16", lambda v: v * np.float32(1.01), "s16 is not"),
    ],
)
def test_every_plane_of_q8_is_checked(
    monkeypatch: pytest.MonkeyPatch, plane: str, change: Callable[[object], object], message: str
) -> None:
    problem = norm_problem(("q8",))
    assert run(problem, lab(CPU)) == []
    planes = _core.lab_q8_planes
    monkeypatch.setattr(
        _core, "lab_q8_planes", lambda *a: {k: change(v) if k == plane else v for k, v in planes(*a).items()}
    )
    assert any(message in text for text in run(problem, lab(CPU)))


def test_nmse() -> None:
    e = np.array([3.0, 4.0, np.inf])
    assert nmse(np.array([3.0, 4.0, np.inf]), e) == 0
    assert nmse(np.array([3.0, 4.5, np.inf]), e) == pytest.approx(0.01)
    assert nmse(np.array([3.0, np.nan, np.inf]), e) == np.inf
    assert nmse(np.array([3.0, 4.0, -np.inf]), e) == np.inf
    assert nmse(np.zeros(2), np.zeros(2)) == 0


def test_exact_checks_compare_bits() -> None:
    problem = Problem()
    name = problem.inout("a", np.array([0.0, 1.0], np.float32))
    buffers = {name: np.array([-0.0, 1.0], np.float32)}
    assert failures(problem, buffers, Check(name, np.array([-0.0, 1.0], np.float32))) == []
    assert failures(problem, buffers, Check(name, np.array([0.0, 1.0], np.float32))) == [
        "1 of 8 bytes differ"
    ]
    assert failures(problem, buffers, Check(name, np.array([1.0], np.float32), offset=4)) == []
    assert Activation("q8", 1, 32) == Activation("q8", 1, 32)


def test_poison_is_nan() -> None:
    assert np.isnan(poisoned(64).view(np.float32)).all() and np.isnan(poisoned(64).view(np.float16)).all()
    assert len(poisoned(7)) == 7


@pytest.mark.parametrize("dtype", weight_dtypes())
def test_random_weights_have_the_size_that_was_asked_for(dtype: str) -> None:
    values = random_weight(np.random.default_rng(1), dtype, 64, 512, sigma=1).values()
    assert np.isfinite(values).all()
    assert 0.3 < np.sqrt((values**2).mean()) < 3


def test_bad_arguments_are_refused() -> None:
    device, x = lab(CPU), np.zeros(32, np.float32)
    params = pack("quantize", rows=1, dim=32, formats=1)
    with pytest.raises(InvalidArgumentError, match="unknown op 'fly'"):
        device.run("fly", [], b"")
    with pytest.raises(InvalidArgumentError, match="are 3 bytes, expected 12"):
        device.run("quantize", [x, x, None], b"123")
    with pytest.raises(InvalidArgumentError, match="contiguous, writeable"):
        device.run("quantize", [np.zeros((32, 2), np.float32)[:, 0], x, None], params)
    with pytest.raises(InvalidArgumentError, match="an array, a LabWeight or None"):
        device.run("quantize", [[0.0], x, None], params)  # type: ignore[list-item]
    with pytest.raises(UnsupportedError, match="type 'i8' cannot be a matmul weight"):
        device.run("matmul", [x, device.weight("i8", np.zeros(32, np.uint8), 1, 32), x, None], bytes(28))
    with pytest.raises(InvalidArgumentError, match="takes 36 bytes"):
        device.weight("q4_0", np.zeros(35, np.uint8), 2, 32)
    with pytest.raises(InvalidArgumentError, match="isa=mmx is unknown; this build has"):
        _core.Lab(isa="mmx")
    for isa in unsupported():
        with pytest.raises(InvalidArgumentError, match=f"isa={isa}: this processor does not support it"):
            _core.Lab(isa=isa)


def test_threads_share_a_lab() -> None:
    """In a process of its own: threads that wait for one another for ever are ended with it."""
    code = """
import threading
import numpy as np
from akunu import _core
lab = _core.Lab("cpu", threads=2)
params = np.zeros(1, _core.lab_structs()["quantize"])
params["rows"], params["dim"], params["formats"] = 256, 1024, 1
x = np.random.default_rng(1).random((256, 1024), np.float32)
failed = []
def work():
    try:
        for _ in range(100):
            out = np.zeros_like(x)
            lab.run("quantize", [x.copy(), out, None], params.tobytes())
            assert (out == x).all()
            assert len(lab.time("quantize", [x.copy(), out, None], params.tobytes(), repeats=2)) == 2
            assert lab.weight("f32", x, 256, 1024).rows == 256
    except BaseException as error:
        failed.append(error)
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failed, failed
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
