"""Experts of prompts on the emulated GPU: rows sorted by expert, tiles, results that all blocks add up."""

from __future__ import annotations

import pytest

from .kernel_cases import Run, check

#: Rows, experts and how many of them a row has, and which ones: some without rows, all rows with one.
SHAPES = [
    (2, 4, 2, "any"), (2, 40, 8, "few"), (7, 3, 1, "one"), (7, 20, 7, "any"), (31, 9, 4, "one"),
    (33, 1, 1, "any"), (33, 64, 3, "any"), (33, 5, 5, "any"), (129, 2, 1, "any"), (129, 6, 6, "one"),
    (129, 40, 8, "few"),
]  # fmt: skip
#: Of the weights, and inputs and rows of them: widths that no tile divides.
WEIGHTS = [
    ("q4_k", 256, 33), ("q6_k", 256, 75), ("q5_0", 96, 33), ("q5_0", 288, 40), ("mxfp4", 96, 130),
    ("mxfp4", 288, 40), ("q8_0", 160, 64), ("f16", 100, 43),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "k", "n"), WEIGHTS, ids=[f"{w[0]}-{w[1]}" for w in WEIGHTS])
def test_tiles_of_any_number_of_rows(run: Run, dtype: str, k: int, n: int) -> None:
    shapes = [
        f"dtype='{dtype}', rows={rows}, experts={experts}, chosen={chosen}, ids='{ids}', n={n}, k={k}"
        for rows, experts, chosen, ids in SHAPES
    ]
    check(
        run,
        *(f"'experts_gate_up', {shape}, bias={i % 2 == 0}" for i, shape in enumerate(shapes)),
        *(f"'experts_down', {shape}, bias={i % 2 == 1}" for i, shape in enumerate(shapes)),
        blocks=3,
    )


#: Weights in tiles, with one step of inputs, fewer steps than a block has warps, and more; and other weights.
ROW_WEIGHTS = [
    ("q4_k", 256, 33), ("q4_k", 2304, 48), ("q6_k", 512, 75), ("q4_0", 128, 16), ("q4_0", 1152, 40),
    ("q5_0", 256, 48), ("q5_0", 704, 33), ("q8_0", 384, 64), ("q8_0", 96, 20), ("q8_0", 704, 33),
    ("q4_0", 160, 20), ("mxfp4", 96, 30), ("mxfp4", 256, 48), ("mxfp4", 2880, 20),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "k", "n"), ROW_WEIGHTS, ids=[f"{w[0]}-{w[1]}" for w in ROW_WEIGHTS])
@pytest.mark.parametrize("blocks", [1, 5])
def test_one_row(run: Run, dtype: str, k: int, n: int, blocks: int) -> None:
    """One block has more tiles than it adds up at a time; five have a few each."""
    shapes = [
        f"dtype='{dtype}', rows=1, experts={experts}, chosen={chosen}, n={n}, k={k}"
        for experts, chosen in ((9, 1), (12, 8), (20, 11))
    ]
    check(
        run,
        *(f"'experts_gate_up', {shape}, bias={i % 2 == 0}" for i, shape in enumerate(shapes)),
        *(f"'experts_down', {shape}, bias={i % 2 == 1}" for i, shape in enumerate(shapes)),
        f"'experts_down', {shapes[1]}, accumulate=False",
        blocks=blocks,
    )


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


MODEL = """
import dataclasses
import numpy as np
from akunu import _core
from akunu.files.describe.blocks import ExpertRouter, Experts, FeedForward
from akunu.files.describe.config import ModelSpec, TensorRef
from models import configs
from sampling.engines import OneEngine

dim, p = 256, "layers.0."
config = configs.plain(
    dim=dim, n_layers=1, n_heads=4, n_kv_heads=2, head_dim=64, ffn_dim=dim, vocab_size=61, context_length=64,
    inv_freq=np.geomspace(1, 1e-4, 32, dtype=np.float32), scale=0.125,
)
router = ExpertRouter("softmax", renormalise=True)
experts = Experts(count=8, used=3, dim=dim, shared_dim=dim, activation="silu", router=router)
blocks = [b for b in config.blocks if not isinstance(b.mixer, FeedForward)]
config = dataclasses.replace(config, blocks=(*blocks, dataclasses.replace(blocks[0], mixer=experts)))
norms = ["attn", "ffn"]
if {norms}:
    norms += ["router", "experts", "post_experts", "post_shared", "post_ffn"]
floats = {"output_norm": (dim, 0), p + "router": (8, dim)} | {p + f"{name}_norm": (dim, 0) for name in norms}
if not {norms}:
    floats[p + "shared_router"] = (1, dim)
codes = {"token_embedding": (61, dim), "output": (61, dim), p + "attn_output": (dim, 256)}
codes |= {p + f"attn_{part}": (256 if part == "q" else 128, dim) for part in "qkv"}
for name in ("experts_gate", "experts_up", "experts_down"):
    codes |= {p + name: (8 * dim, dim), p + name.replace("experts", "shared"): (dim, dim)}
spec = ModelSpec(config=config, tensors={n: TensorRef(n, 0, *at) for n, at in (floats | codes).items()})
dtypes = dict.fromkeys(floats, "f32") | dict.fromkeys(codes, "q8_0")
engine = OneEngine(_core.Engine(None, spec, synthetic=dtypes, device="cuda", context=64, threads=1))


def first(ids):
    engine.begin(np.array(ids, np.uint32), temperature=0.0, end_ids=(), logprobs=1)
    left, chunk = engine.prefill()
    while left:
        left, chunk = engine.prefill()
    return chunk


prompt = [7, 3, 50, 21, 9]
first(prompt)
decoded = engine.decode(3)
ids, found = list(decoded.ids), np.array(decoded.logprobs).ravel()
print(ids, found)
begun = list(first(prompt).ids)
for i in range(3):
    chunk = first(prompt + begun + ids[:i])
    expected = np.array(chunk.logprobs).ravel()
    print(list(chunk.ids), expected)
    assert chunk.ids[0] == ids[i] and abs(expected[0] - found[i]) < 0.02
print("done")
"""


@pytest.mark.parametrize("norms", [False, True], ids=["routed", "normed"])
def test_a_token_has_what_a_prompt_has_with_a_shared_expert(run: Run, norms: bool) -> None:
    """One row's commands, those of experts and a shared one joined, against those of many rows."""
    done = run(MODEL.replace("{norms}", str(norms)), EMULATOR_BLOCKS="3")
    assert done.stdout.endswith("done\n"), done.stdout + done.stderr
