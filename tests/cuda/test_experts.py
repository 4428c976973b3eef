"""Experts of prompts on the emulated GPU: rows sorted by expert, tiles, results that all blocks add up."""

from __future__ import annotations

import pytest

from order import Draw

from .kernel_cases import Run, check

#: Rows, experts and how many of them a row has, and which ones: some without rows, all rows with one.
SHAPES = [
    (2, 4, 2, "any"), (2, 40, 8, "few"), (7, 3, 1, "one"), (7, 20, 7, "any"), (31, 9, 4, "one"),
    (33, 1, 1, "any"), (33, 64, 3, "any"), (33, 5, 5, "any"), (129, 2, 1, "any"), (129, 6, 6, "one"),
    (129, 40, 8, "few"),
]  # fmt: skip
#: Of the weights, and inputs and rows of them: widths that no tile divides.
WEIGHTS = [
    ("q4_k", 256, 33), ("q6_k", 256, 75), ("mxfp4", 96, 130), ("mxfp4", 288, 40), ("q8_0", 160, 64),
    ("f16", 100, 43),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "k", "n"), WEIGHTS, ids=[w[0] for w in WEIGHTS])
def test_tiles_of_any_number_of_rows(run: Run, draw: Draw, dtype: str, k: int, n: int) -> None:
    shapes = [
        f"dtype='{dtype}', rows={rows}, experts={experts}, chosen={chosen}, ids='{ids}', n={n}, k={k}"
        for rows, experts, chosen, ids in SHAPES
    ]
    cases = [f"'experts_gate_up', {shape}, bias={i % 2 == 0}" for i, shape in enumerate(shapes)]
    cases += [f"'experts_down', {shape}, bias={i % 2 == 1}" for i, shape in enumerate(shapes)]
    check(run, *draw(cases), blocks=3)


#: Weights in tiles, with one step of inputs, fewer steps than a block has warps, and more; and other weights.
ROW_WEIGHTS = [
    ("q4_k", 256, 33), ("q4_k", 2304, 48), ("q6_k", 512, 75), ("q4_0", 128, 16), ("q4_0", 1152, 40),
    ("q8_0", 384, 64), ("q8_0", 96, 20), ("q8_0", 704, 33), ("q4_0", 160, 20), ("mxfp4", 96, 30),
    ("mxfp4", 256, 48), ("mxfp4", 2880, 20),
]  # fmt: skip


@pytest.mark.parametrize("blocks", [1, 5])
def test_one_row(run: Run, draw: Draw, blocks: int) -> None:
    """One block has more tiles than it adds up at a time; five have a few each."""
    cases = []
    for dtype, k, n in ROW_WEIGHTS:
        shapes = [
            f"dtype='{dtype}', rows=1, experts={experts}, chosen={chosen}, n={n}, k={k}"
            for experts, chosen in ((9, 1), (12, 8), (20, 11))
        ]
        cases += [f"'experts_gate_up', {shape}, bias={i % 2 == 0}" for i, shape in enumerate(shapes)]
        cases += [f"'experts_down', {shape}, bias={i % 2 == 1}" for i, shape in enumerate(shapes)]
        cases.append(f"'experts_down', {shapes[1]}, accumulate=False")
    check(run, *draw(cases), blocks=blocks)


def test_one_row_whose_inputs_have_no_room_as_whole_numbers(run: Run) -> None:
    shape = "dtype='q4_0', rows=1, experts=11, chosen=10, n=20"
    check(run, f"'experts_down', {shape}, k=2816", f"'experts_down', {shape}, k=2944")


@pytest.mark.parametrize("blocks", [1, 7])
def test_all_blocks_wait_for_all_results(run: Run, blocks: int) -> None:
    """More blocks than tiles, and one that has all of them; the counters serve the next command again."""
    shape = "dtype='q4_0', rows=40, experts=4, chosen=2, n=40, k=64"
    check(run, *[f"'experts_down', {shape}", f"'experts_down', {shape}, accumulate=False"] * 2, blocks=blocks)


def test_more_choices_than_are_sorted_at_a_time(run: Run) -> None:
    shape = "dtype='q4_0', rows=1030, experts=10, chosen=8, n=16, k=32"
    check(run, f"'experts_gate_up', {shape}", f"'experts_down', {shape}", blocks=4)


@pytest.mark.long
@pytest.mark.in_turn("small")
def test_products_without_warpgroups(run_small: Run) -> None:
    shape = "dtype='q4_k', rows=33, experts=4, chosen=3, n=75, k=256"
    check(run_small, f"'experts_gate_up', {shape}", f"'experts_down', {shape}")


def test_a_router_of_few_rows_is_all_blocks(run: Run) -> None:
    """Inputs for each thread and for some, more results than blocks, and what takes another way."""
    shapes = [(1, 6, 2048), (2, 5, 4096), (4, 7, 96), (3, 8, 36), (5, 6, 64), (1, 9, 30), (1, 4, 4100)]
    check(run, *(f"'matmul', dtype='f32', rows={rows}, n={n}, k={k}" for rows, n, k in shapes))


NEIGHBOURS = """
import numpy as np
from kernels.devices import Target, lab
from kernels.problem import pack
from kernels.weights import random_weight

device, k, n, experts, chosen = lab(Target("cuda")), 256, 40, 6, 3
w = random_weight(np.random.default_rng(1), "q4_k", experts * n, k)
weight = device.weight("q4_k", w.data, n, k, experts=experts)
mine = np.random.default_rng(2).standard_normal((chosen, k)).astype(np.float16)
results = set()
for seed in range(3):
    rng = np.random.default_rng(seed)
    rows, at = 40, 11 * seed
    x = rng.standard_normal((rows, chosen, k)).astype(np.float16)
    ids = np.stack([rng.permutation(experts)[:chosen] for _ in range(rows)]).astype(np.uint32)
    weights = rng.random((rows, chosen), np.float32)
    x[at], ids[at], weights[at] = mine, (4, 0, 2), (0.25, 0.5, 0.125)
    y = np.zeros((rows, n), np.float32)
    device.run(
        "experts_down",
        [x.reshape(-1, k), weight, y, None, ids, weights],
        pack("experts_down", rows=rows, experts=experts, chosen=chosen, n=n, k=k, accumulate=1, has_bias=0),
    )
    assert y[at].any()
    results.add(y[at].tobytes())
print(len(results))
"""


def test_a_row_has_the_same_bits_beside_any_others(run: Run) -> None:
    done = run(NEIGHBOURS)
    assert done.stdout == "1\n", done.stderr or done.stdout


ONE_COMMAND = """
import dataclasses
from types import MappingProxyType

import numpy as np

from akunu.loading import engines, shapes, synthetic


def small(name, extra, **sizes):
    return dataclasses.replace(
        shapes.SHAPES[name], n_layers=2, vocab_size=320, context_length=64, n_heads=4,
        extra=MappingProxyType(dict(shapes.SHAPES[name].extra) | extra), **sizes,
    )


def numbers(count, used, dim):
    return {"expert_count": count, "expert_used_count": used, "expert_feed_forward_length": dim}


layers = {
    "attention.sliding_window_pattern": [True, False], "attention.head_count_kv": [2, 1],
    "attention.key_length_swa": 32, "attention.value_length_swa": 32, "rope.dimension_count_swa": 32,
}
nets = {"ssm.group_count": 2, "ssm.time_step_rank": 4, "ssm.inner_size": 512}
made = {
    "biased": small("gpt-oss-20b", numbers(9, 3, 160), dim=288, n_kv_heads=2, ffn_dim=160),
    "softmax": small("qwen3-30b-a3b", numbers(10, 8, 256), dim=512, n_kv_heads=2, ffn_dim=256),
    "shared": small("glm-4.7-flash", numbers(9, 3, 256), dim=256, ffn_dim=512),
    "normed": small(
        "gemma4-26b-a4b", numbers(9, 3, 128) | layers, dim=256, n_kv_heads=2, ffn_dim=256, head_dim=64
    ),
    "gated": small(
        "qwen3.6-35b-a3b", numbers(9, 3, 256) | nets | {"expert_shared_feed_forward_length": 512}, dim=256,
        n_kv_heads=2, ffn_dim=256,
    ),
}
engines.SHAPES = synthetic.SHAPES = {**shapes.SHAPES, **made}


def tokens(engine, rows, steps):
    assert engine.reserve(slot, rows, steps)
    chunks, raised = engine.step([(slot, rows, True, 0, [])], steps)
    assert raised is None
    return [int(i) for chunk in chunks for i in chunk.ids]


with engines.open_engine(NAME, device="cuda", context=64, chunk=16, threads=2) as opened:
    engine, ids = opened.engine, np.random.default_rng(1).integers(0, 320, 3).astype(np.uint32)
    slot = engine.open()
    engine.begin(ids, slot=slot, temperature=0.0, end_ids=(), reuse=False)
    print(tokens(engine, 3, 1) + tokens(engine, 1, 4))
    commands = engine.profile("decode", 1, 0, 1)
    first = next(i for i, c in enumerate(commands) if c["op"] == "route") - 2
    last = next(i for i, c in enumerate(commands) if c["op"] == "experts_down")
    print([c["op"] for c in commands[first:last + 2] if c["dispatches"] == 0])
"""


#: Of a layer what other commands do: of models without a shared expert, with one that has a router, with one
#: that has none, and with norms of their own.
ALONE = ["norm", "matmul", "route"]
GATED = [*ALONE, "matmul", "route", "experts_gate_up", "experts_down"]
PLAIN = [*ALONE, "gate_up", "matmul"]
NORMED = [*ALONE, "norm"]


@pytest.mark.table
@pytest.mark.parametrize(
    ("model", "merged"),
    [
        ("biased:mxfp4", ALONE), ("softmax:q6_k", ALONE), ("gated:q4_0", GATED), ("shared:q8_0", PLAIN),
        ("normed:q4_0", NORMED),
        pytest.param("gated:q4_k_m", GATED, marks=pytest.mark.long),
        pytest.param("shared:q4_k_m", PLAIN, marks=pytest.mark.long),
    ],
)  # fmt: skip
def test_a_row_is_normed_routed_and_multiplied_by_one_command(
    run: Run, model: str, merged: list[str]
) -> None:
    """Where blocks have at most two experts each, and where they have up to five."""
    code = ONE_COMMAND.replace("NAME", repr(model))
    few, more = (run(code, EMULATOR_BLOCKS=blocks) for blocks in ("5", "2"))
    assert few.returncode == more.returncode == 0, few.stderr + more.stderr
    assert few.stdout == more.stdout
    assert few.stdout.splitlines()[1] == str(merged)
