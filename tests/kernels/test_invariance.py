"""What a row's result may not depend on: the number of threads, the rows beside it, the phase it is in.

A conversation must give the same output however it was computed: token by token or as a prompt, alone or not.
"""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest

from order import Draw

from .builders import BUILDERS
from .case import BOTH, Case, case
from .cases import CHECKS, EXPERT_CHECKS
from .devices import Target, cpu_targets, has_kernel, lab
from .problem import Activation, Array, Problem, Weight, struct
from .runner import device_buffers
from .weights import dtype_row, is_float, weight_dtypes

# Of every builder some, with rows that do not divide by the threads.
ODD = [c for c in [*CHECKS, *EXPERT_CHECKS] if c.get("rows") in (None, 5, 7, 9, 17, 33)]
SAMPLES = [c for name in BUILDERS for c in [c for c in ODD if c.builder == name][::3]]
WHOLE = [
    case("matmul", dtype="f32", rows=70, n=100, k=160, whole=True),
    case("gate_up", dtype="f16", rows=70, n=100, k=160, activation="silu", formats=("f32",), whole=True),
    case("attention", rows=300, position=0, shape=(4, 2, 40), kv="f32", both=True, others=((40, 0),)),
    *(
        case(
            "attention",
            rows=300,
            position=0,
            shape=(4, 2, 64),
            kv="f32",
            both=True,
            others=((40, 0), (170, 0)),
            window=window,
            formats=(form,),
        )
        for form in ("f32", "q8")
        for window in (0, 65)
    ),
]


def outputs(problem: Problem, target: Target, threads: int) -> dict[str, bytes]:
    """What a problem leaves in all its buffers."""
    device = lab(target, threads)
    buffers = device_buffers(problem, device)
    for c in problem.commands:
        device.run(
            c.op, [None if b is None else buffers[b] for b in c.buffers], c.params, kv_dtype=c.kv_dtype
        )
    return {name: b.tobytes() for name, b in buffers.items() if isinstance(b, np.ndarray)}


@pytest.mark.parametrize("target", cpu_targets(), ids=lambda t: t.id)
def test_threads_do_not_change_a_bit(target: Target, draw: Draw) -> None:
    assert {c.builder for c in SAMPLES} == {c.builder for c in [*CHECKS, *EXPERT_CHECKS]}
    for c in draw([*filter(partial(has_kernel, target), [*SAMPLES, *WHOLE])]):
        problem = c.build(lab(target), checking=False)
        want = outputs(problem, target, 1)
        for threads in (2, 5):
            got = outputs(problem, target, threads)
            assert [name for name in want if want[name] != got[name]] == [], f"{c.id}, {threads} threads"


def first_rows(problem: Problem, first: int, rows: int) -> Problem:
    """The same with only some of the rows of every array, activation and command."""
    part = Problem(checking=False)
    for name, b in problem.buffers.items():
        if isinstance(b, Array) and b.data.shape[0] == ROWS:
            b = Array(b.data[first : first + rows], b.out)
        elif isinstance(b, Activation):
            b = dataclasses.replace(b, rows=rows)
        part.buffers[name] = b
    for c in problem.commands:
        params = np.frombuffer(c.params, struct(c.op)).copy()
        params["rows"] = rows
        part.commands.append(dataclasses.replace(c, params=params.tobytes()))
    return part


ROWS = 37  # panels, for every set; fewer rows are tiles, alone and several at once
BATCHES = [
    *(case("matmul", dtype=d, rows=ROWS, n=39, k=512, bias=True) for d in weight_dtypes()),
    *(
        case("gate_up", dtype=d, rows=ROWS, n=64, k=256, activation="silu", formats=BOTH)
        for d in weight_dtypes()
    ),
    *(
        case("matmul", dtype=d, rows=ROWS, n=39, k=512, bias=True, whole=True)
        for d in filter(is_float, weight_dtypes())
    ),
    case("gate_up", dtype="f32", rows=ROWS, n=64, k=256, activation="silu", formats=BOTH, whole=True),
    *(
        case("experts_gate_up", dtype=d, rows=ROWS, experts=2, chosen=1, n=64, k=256, formats=BOTH, ids="one")
        for d in weight_dtypes()
    ),
    *(
        case("experts_down", dtype=d, rows=ROWS, experts=2, chosen=1, n=39, k=512, bias=True, ids="one")
        for d in weight_dtypes()
    ),
    case("experts_down", dtype="f32", rows=ROWS, experts=5, chosen=3, n=39, k=96),
    case("route", rows=ROWS, experts=60, chosen=4),
    case("norm", rows=ROWS, dim=288, formats=BOTH),
    case("quantize", rows=ROWS, dim=288, formats=BOTH),
    case("gate_act", rows=ROWS, n=96, activation="gelu", formats=BOTH),
]


@pytest.mark.parametrize("target", cpu_targets(), ids=lambda t: t.id)
@pytest.mark.parametrize("builder", sorted({batch.builder for batch in BATCHES}))
def test_a_row_does_not_depend_on_the_rows_beside_it(builder: str, target: Target, draw: Draw) -> None:
    for batch in draw([one for one in BATCHES if one.builder == builder and has_kernel(target, one)]):
        check_rows(batch, target)


def check_rows(batch: Case, target: Target) -> None:
    problem = batch.build(lab(target), checking=False)
    whole = outputs(problem, target, 2)
    for rows in (*range(1, 9), 16, 30, 31):
        first = ROWS - rows
        part = outputs(first_rows(problem, first, rows), target, 2)
        for name, b in problem.buffers.items():
            if isinstance(b, Weight) or name not in part or len(part[name]) == len(whole[name]):
                continue
            row = len(part[name]) // rows
            assert part[name] == whole[name][first * row :], f"{batch.id}: {name} of {rows} rows"


#: Where a block has its codes.
CODES = {
    "q4_0": slice(2, 18),
    "q5_0": slice(2, 22),
    "q8_0": slice(2, 34),
    "q3_k": slice(0, 96),
    "q6_k": slice(0, 192),
    "iq4_nl": slice(2, 18),
    "mxfp4": slice(1, 17),
}


@pytest.mark.parametrize("target", cpu_targets(), ids=lambda t: t.id)
@pytest.mark.parametrize("dtype", CODES)
def test_neither_do_the_largest_sums(dtype: str, target: Target) -> None:
    """Codes and inputs at their ends: integers that hold a batch's sums hold these too."""
    problem = case("matmul", dtype=dtype, rows=ROWS, n=39, k=512).build(lab(target), checking=False)
    weight, x = problem.buffers["w"], problem.buffers["x"]
    assert isinstance(weight, Weight) and isinstance(x, Array)
    blocks = weight.data.reshape(39, -1, int(dtype_row(dtype)["block_bytes"])).copy()
    for row in range(39):
        blocks[row, :, CODES[dtype]] = (0x00, 0xFF, 0x77, 0x80, 0x7F)[row % 5]
    problem.buffers["w"] = dataclasses.replace(weight, data=blocks.reshape(-1))
    signs = np.where(np.arange(ROWS)[:, None] % 4 == 3, (-1.0) ** np.arange(512), 1.0)
    data = np.where(np.arange(ROWS)[:, None] % 2, -signs, signs).astype(np.float32)
    problem.buffers["x"] = dataclasses.replace(x, data=data)
    whole = np.frombuffer(outputs(problem, target, 2)["y"], np.float32).reshape(ROWS, 39)
    assert np.isfinite(whole).all()
    for rows in (1, 3, 4, 7, 8, 16, 31):
        part = outputs(first_rows(problem, ROWS - rows, rows), target, 2)["y"]
        assert part == whole[ROWS - rows :].tobytes(), f"{rows} rows"


@pytest.mark.parametrize("target", cpu_targets(), ids=lambda t: t.id)
@pytest.mark.parametrize("window", [0, 70])
@pytest.mark.parametrize("kv", ["f16", "f32"])
def test_attention_is_the_same_in_every_phase(kv: str, window: int, target: Target) -> None:
    device, (heads, kv_heads, head_dim), length = lab(target), (6, 2, 72), 300
    args = dict(shape=(heads, kv_heads, head_dim), kv=kv, window=window)
    problem = case("attention", rows=length, position=0, **args).build(device, checking=False)
    prompt = np.frombuffer(outputs(problem, target, 2)["out_f32"], np.float32).reshape(length, -1)
    q, all_k, all_v = (problem.buffers[n].data for n in ("q", "all_k", "all_v"))  # type: ignore[union-attr]
    for split in (False, True):
        for position in (0, 15, 16, 255, 256, 299):
            one = case("attention", rows=1, position=position, split=split, **args).build(
                device, checking=False
            )
            given = {
                "q": q[position : position + 1],
                "all_k": all_k[: position + 1],
                "all_v": all_v[: position + 1],
            }
            for name, data in given.items():
                one.buffers[name] = dataclasses.replace(one.buffers[name], data=data)
            token = np.frombuffer(outputs(one, target, 2)["out_f32"], np.float32)
            np.testing.assert_array_equal(
                token, prompt[position], err_msg=f"split={split}, position={position}"
            )


@pytest.mark.parametrize("target", cpu_targets(), ids=lambda t: t.id)
@pytest.mark.parametrize(("head_dim", "form"), [(40, "f32"), (64, "f32"), (48, "q8")])
def test_attention_in_both_directions_does_not_depend_on_the_sequences_beside_it(
    head_dim: int, form: str, target: Target
) -> None:
    device, lengths = lab(target), (130, 7, 300)
    args = dict(shape=(2, 1, head_dim), kv="f32", both=True, formats=(form,))
    first, *others = lengths
    together = case("attention", rows=first, position=0, others=tuple((n, 0) for n in others), **args)
    problem = together.build(device, checking=False)
    want = np.frombuffer(outputs(problem, target, 2)["out_f32"], np.float32).reshape(sum(lengths), -1)
    q = problem.buffers["q"].data  # type: ignore[union-attr]
    row = 0
    for sequence, n in enumerate(lengths):
        alone = case("attention", rows=n, position=0, **args).build(device, checking=False)
        given = {"q": q[row : row + n]}
        for part in ("k", "v"):
            source = f"all_{part}" if sequence == 0 else f"all{sequence}_{part}"
            given[f"all_{part}"] = problem.buffers[source].data  # type: ignore[union-attr]
        for name, data in given.items():
            alone.buffers[name] = dataclasses.replace(alone.buffers[name], data=data)
        got = np.frombuffer(outputs(alone, target, 2)["out_f32"], np.float32).reshape(n, -1)
        np.testing.assert_array_equal(got, want[row : row + n], err_msg=f"sequence {sequence}")
        row += n
