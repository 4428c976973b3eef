"""Decoding a row at a time: what the interpreter has as one command where the table has several."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from order import Draw

Run = Callable[..., subprocess.CompletedProcess[str]]

CODE = """
import numpy as np
from sampling import engines

def decoded(device, keys, dim, head_dim, kv, weights="f32", group=1):
    engines.DEVICE = device
    options = dict(context=keys + 16, kv_dtype=kv, weights=weights)
    engine = engines.synthetic(64, dim, head_dim=head_dim, group=group, **options)
    ids = (np.arange(keys) * 7 % 61).astype(np.uint32)
    engine.begin(ids, temperature=0.0, end_ids=(), logprobs=5)
    while engine.prefill()[0]:
        pass
    chunk = engine.decode(4)
    engine.close()
    return chunk

for case in {cases}:
    cpu, cuda = decoded("cpu", **case), decoded("cuda", **case)
    assert list(cpu.ids) == list(cuda.ids), (case, cpu.ids, cuda.ids)
print("equal")
"""


def equal(*cases: dict[str, object]) -> str:
    """Code that prints "equal" where random models' tokens are the CPU's."""
    return CODE.replace("{cases}", repr(cases))


def test_tokens_of_a_row_are_the_cpus_whatever_the_splits_of_its_keys(run: Run, draw: Draw) -> None:
    """From 129 or 257 keys on several blocks share them, and the last one to come joins what they found."""
    cases = [
        (1, 32, 32, "f16"),
        (100, 32, 32, "f16"),
        (300, 32, 32, "f16"),
        (520, 128, 64, "f16"),
        (270, 96, 48, "f16"),
        (290, 256, 128, "f16"),
        (300, 64, 32, "q8_0"),
        (150, 80, 80, "f32"),
    ]
    names = ("keys", "dim", "head_dim", "kv")
    done = run(equal(*(dict(zip(names, case, strict=True)) for case in draw(cases))))
    assert done.stdout == "equal\n", done.stderr or done.stdout


def test_keys_and_values_may_have_types_of_their_own(run: Run, draw: Draw) -> None:
    types = ("q4_0", "q8_0,q4_0", "f16,q4_0")
    done = run(equal(*({"keys": 300, "dim": 160, "head_dim": 40, "kv": kv} for kv in draw(types))))
    assert done.stdout == "equal\n", done.stderr or done.stdout


@pytest.mark.parametrize(
    "kv",
    [
        pytest.param("q8_0,q4_0", marks=pytest.mark.table),
        *(pytest.param(kv, marks=pytest.mark.long) for kv in ("q4_0", "f16,q4_0")),
    ],
)
def test_caches_keep_what_the_cpus_keep(passes: Callable[..., None], kv: str) -> None:
    """Windows, shared caches, heads of two sizes; of the pairs of types those that the emulator has.

    That each pair keeps what the CPU keeps is asked above, of a model whose layers are alike.
    """
    passes("models/test_kv_types.py", f"a_device_keeps_what_the_cpu_keeps[{kv}]")


def test_groups_of_more_query_heads_than_a_block_takes_at_once(run: Run, draw: Draw) -> None:
    """In parts of ten heads, of one, and of two; several blocks share many keys."""
    cases = [(9, 20, 64, "f16"), (5, 17, 64, "q8_0"), (140, 34, 8, "q8_0,q4_0")]
    code = equal(
        *(
            {"keys": keys, "dim": heads * head_dim, "head_dim": head_dim, "group": heads, "kv": kv}
            for keys, heads, head_dim, kv in draw(cases)
        )
    )
    done = run(code)
    assert done.stdout == "equal\n", done.stderr or done.stdout


@pytest.mark.parametrize("blocks", [1, 4])
def test_groups_whose_heads_are_more_than_warps_prepare_at_once(run: Run, blocks: int) -> None:
    """Two blocks have some heads each, with the same key and value, where there is a block for each."""
    cases = [(1, 8, 64), (70, 7, 128), (40, 8, 128)]
    code = equal(
        *(
            {"keys": keys, "dim": heads * head_dim, "head_dim": head_dim, "group": heads, "kv": "f16"}
            for keys, heads, head_dim in cases
        )
    )
    done = run(code, EMULATOR_BLOCKS=str(blocks))
    assert done.stdout == "equal\n", done.stderr or done.stdout


FETCHES = """
import ctypes, os

used, unused = ctypes.c_ulonglong(), ctypes.c_ulonglong()
ctypes.CDLL(os.environ["AKUNU_CUDA_DRIVER"]).emulator_fetches(ctypes.byref(used), ctypes.byref(unused))
print(used.value, unused.value)
"""


def test_weights_are_fetched_ahead_of_the_ring_where_commands_have_more_than_it_holds(run: Run) -> None:
    """Both blocks' rings hold 290 KB. Commands have 700 KB on average, or 170."""
    found = {}
    for dim in (512, 256):
        done = run(equal({"keys": 9, "dim": dim, "head_dim": 32, "kv": "f16", "weights": "q8_0"}) + FETCHES)
        assert done.returncode == 0, done.stderr
        found[dim] = [int(n) for n in done.stdout.removeprefix("equal\n").split()]
    used, unused = found[512]
    assert used > 100
    assert unused <= 24, "nothing is fetched that no command of the chain needs"
    assert found[256] == [0, 0]


BIASES = """
import tempfile
from pathlib import Path

import numpy as np
from akunu import _core
from akunu.files.describe.gguf_config import resolve
from models import tiny
from one_engine import OneEngine

golden = tiny.golden("llama_bias")
with tempfile.TemporaryDirectory() as folder:
    file = _core.GgufFile(str(tiny.write("llama_bias", "F32", Path(folder) / "model.gguf").path))
    spec = resolve(file, context=tiny.CONTEXT)
    engine = OneEngine(_core.Engine(file, spec, device="cuda", context=tiny.CONTEXT, kv_dtype="f32"))
found = engine.logits(golden.prompt)
print("near" if np.abs(found - golden.logits).max() < 0.01 else np.abs(found - golden.logits).max())
engine.begin(np.asarray(golden.prompt, np.uint32), temperature=0.0, end_ids=())
while engine.prefill()[0]:
    pass
assert list(engine.decode(4).ids) == golden.ids[1:5], engine
"""


def test_all_products_may_have_a_bias(run: Run) -> None:
    done = run(BIASES)
    assert done.stdout == "near\n", done.stderr or done.stdout


def test_the_embedded_model_writes_what_it_writes_on_the_cpu(run: Run) -> None:
    """Its weights are Q8_0."""
    code = """
import akunu
ids = {}
for device in ("cuda", "cpu"):
    with akunu.load("ember", device=device, progress=False) as model:
        ids[device] = model.generate("Once upon a time", max_tokens=6, temperature=0).ids
print(ids["cuda"] == ids["cpu"] or ids)
"""
    done = run(code)
    assert done.stdout == "True\n", done.stderr or done.stdout
