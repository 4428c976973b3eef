"""A model on two GPUs: each has its heads and its part of the feed-forward, and both make the same tokens."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

#: Cases that differ little from those that `make test` runs.
SLOW = [pytest.mark.long, pytest.mark.in_turn]
#: GPUs take turns on a few cores: one may wait for the other for long.
TWO = {"EMULATOR_GPUS": "2", "AKUNU_CUDA_TIMEOUT_MS": "120000"}

CODE = """
import numpy as np
from sampling import engines

ids = (np.arange(26) * 7 % {vocab}).astype(np.uint32)
options = dict(layers=2, context=96, kv_dtype="f16", chunk=16)
options |= dict(head_dim={head_dim}, group={group}, weights="{weights}")

def made(device):
    engines.DEVICE = device
    engine = engines.synthetic({vocab}, {dim}, **options)
    logits, found = engine.logits(ids), []
    for sampled in (dict(temperature=0.0), dict(temperature=0.8, seed=3)):
        engine.begin(ids, end_ids=(), reuse=False, **sampled)
        while engine.prefill()[0]:
            pass
        found.append([*engine.decode(4).ids, *engine.decode(4).ids])
    engine.close()
    return logits, found

one, of_one = made("cuda")
two, of_two = made("{device}")
again = made("{device}")
error = ((one - two) ** 2).mean() / one.var()
assert error < {most}, error
assert of_one == of_two, (of_one, of_two)
assert (two == again[0]).all() and of_two == again[1]
print("equal")
"""

BASE = {
    "vocab": 62,
    "dim": 128,
    "head_dim": 32,
    "group": 1,
    "weights": "f32",
    "device": "cuda:0,1",
    "most": 1e-5,
}


def code(**values: object) -> str:
    text = CODE
    for name, value in {**BASE, **values}.items():
        text = text.replace("{" + name + "}", str(value))
    return text


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"dim": 256, "group": 2, "weights": "q8_0"}, marks=pytest.mark.table),
        # Three heads, which are both GPUs'.
        pytest.param({"dim": 96, "head_dim": 32}, marks=pytest.mark.table),
        *(
            pytest.param(values, marks=SLOW)
            for values in (
                {},
                {"group": 2},
                {"dim": 256, "weights": "q4_0"},
                {"dim": 512, "head_dim": 64, "group": 2, "weights": "q4_k"},
                {"dim": 256, "weights": "f16", "vocab": 61},  # both have all of the output
                {"dim": 256, "weights": "q4_k"},  # columns within a block: F16
                {"dim": 160, "head_dim": 40, "group": 2, "weights": "f16"},
            )
        ),
    ],
    ids=str,
)
def test_tokens_of_two_gpus_are_those_of_one(run_cards: Run, values: dict[str, object]) -> None:
    done = run_cards(code(**values), **TWO)
    assert done.stdout == "equal\n", done.stderr or done.stdout


@pytest.mark.long
def test_tokens_of_four_gpus_are_those_of_one(run_cards: Run) -> None:
    done = run_cards(
        code(device="cuda:3,1,0,2", dim=256, weights="q8_0", vocab=64), **TWO | {"EMULATOR_GPUS": "4"}
    )
    assert done.stdout == "equal\n", done.stderr or done.stdout


OPEN = """
import akunu
try:
    with akunu.load("ember", device="{device}", progress=False{more}) as model:
        print(model.generate("Once", max_tokens=2, temperature=0).ids)
except akunu.AkunuError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(
    ("device", "environment", "message"),
    [
        ("cuda:0,2", {}, "names 'cuda:2'; there is cuda, cuda:1, cpu"),
        ("cuda:2", {}, "names 'cuda:2'; there is cuda, cuda:1, cpu"),
        ("cuda:1,1", {}, "names 'cuda:1' twice"),
        ("cuda:0,1", {"EMULATOR_NO_PEERS": "1"}, "GPU 0 does not reach the memory of GPU 1"),
        ("cuda:0,1", {"EMULATOR_OTHER": "1"}, "GPU 1 is Another GPU"),
    ],
)
def test_gpus_that_cannot_share_a_model_are_named(
    run_cards: Run, device: str, environment: dict[str, str], message: str
) -> None:
    done = run_cards(OPEN.format(device=device, more=""), **TWO | environment)
    assert message in done.stdout, done.stdout + done.stderr


def test_what_several_gpus_do_not_do_is_refused(run_cards: Run) -> None:
    for more, message in {
        ", cache_dir='/tmp/pages'": "cache_dir: a model on several GPUs has no pages in files",
        ", adapters={'a': 'b'}": "adapters: a model on several GPUs has no adapters",
    }.items():
        done = run_cards(OPEN.format(device="cuda:0,1", more=more), **TWO)
        assert message in done.stdout, done.stdout + done.stderr


def test_the_second_gpu_alone_runs_a_model(run_cards: Run) -> None:
    found = {run_cards(OPEN.format(device=device, more=""), **TWO).stdout for device in ("cuda", "cuda:1")}
    assert len(found) == 1 and "[" in found.pop()


def test_a_gpu_that_does_not_come_is_an_error(run_cards: Run) -> None:
    """The launch on the second fails; the first one gives up."""
    failing = {"EMULATOR_FAIL": "cuLaunchCooperativeKernel:2", "AKUNU_CUDA_TIMEOUT_MS": "200"}
    done = run_cards(OPEN.format(device="cuda:0,1", more=""), **TWO | failing)
    assert "DeviceError starting the interpreter" in done.stdout, done.stdout + done.stderr


def test_a_cancelled_chain_ends_on_both(run_cards: Run) -> None:
    """The host tells the first GPU alone: both end behind the same token, and go on from it."""
    code = """
import akunu
with akunu.load("ember", device="cuda:0,1", progress=False) as model:
    whole = model.generate("Once upon a time", max_tokens=4, temperature=0).ids
    stream = model.stream("Once upon a time", max_tokens=4, temperature=0)
    next(stream)
    stream.close()
    print(model.generate("Once upon a time", max_tokens=4, temperature=0).ids == whole)
"""
    done = run_cards(code, **TWO)
    assert done.stdout == "True\n", done.stderr or done.stdout


@pytest.mark.long
def test_engine_tests_pass_on_two_gpus(passes_cards: Callable[..., None]) -> None:
    passes_cards(
        "models/test_engine.py",
        *(
            f"logits_equal_transformers[{name}]"
            for name in ("llama3", "llama_bias", "qwen2", "gemma2", "phi3")
        ),
        *(f"greedy_ids_equal_transformers[{name}]" for name in ("llama3", "qwen3")),
        AKUNU_TEST_DEVICE="cuda:0,1",
        **TWO,
    )


BATCH = """
import numpy as np
from sampling import engines

rng = np.random.default_rng(5)
lengths = [3, 40, 1, 17, 9]
prompts = [rng.integers(0, 62, n).astype(np.uint32) for n in lengths]

def generated(device):
    engines.DEVICE = device
    engine = engines.synthetic(
        62, 256, layers=2, head_dim=32, group=2, weights="{weights}", kv_dtype="f16",
        context=64, chunk=16, parallel=5,
    )
    slots = [engine.open() for _ in lengths]
    for i, slot in enumerate(slots):
        sampling = {"temperature": 0.8, "seed": i, "top_p": 0.9} if i % 2 else {"temperature": 0.0}
        engine.begin(prompts[i], slot=slot, reuse=False, logprobs=3, end_ids=(), **sampling)
    # Prompts in chunks.
    for i, slot in enumerate(slots):
        for begin in range(0, lengths[i], 16):
            n = min(16, lengths[i] - begin)
            assert engine.reserve(slot, n)
            engine.step([(slot, n, begin + n == lengths[i], 1, [])])
    for slot in slots:
        assert engine.reserve(slot, 1, 4)
    chunks, _ = engine.step([(slot, 1, True, 4, []) for slot in slots], 4)
    engine.close()
    return [list(c.ids) for c in chunks], [np.array(c.logprobs) for c in chunks]

ids, logprobs = generated("cuda")
ids_of_two, of_two = generated("cuda:0,1")
assert ids == ids_of_two, (ids, ids_of_two)
assert max(np.abs(a - b).max() for a, b in zip(logprobs, of_two, strict=True)) < 0.02
again = generated("cuda:0,1")
assert again[0] == ids_of_two and all((a == b).all() for a, b in zip(again[1], of_two, strict=True))
print("equal")
"""


@pytest.mark.parametrize(
    "weights", [pytest.param("f32", marks=SLOW), pytest.param("q8_0", marks=pytest.mark.table)]
)
def test_sequences_of_a_step_are_those_of_one_gpu(run_cards: Run, weights: str) -> None:
    done = run_cards(BATCH.replace("{weights}", weights), **TWO)
    assert done.stdout == "equal\n", done.stderr or done.stdout


LARGE = """
import akunu
from sampling import engines

engines.DEVICE = "{device}"
try:
    engine = engines.synthetic(
        64, 512, layers=8, head_dim=64, context=64, kv_dtype="f16", chunk=16, weights="f32"
    )
    engine.begin([1, 2, 3, 4, 5], end_ids=(), temperature=0.0)
    while engine.prefill()[0]:
        pass
    print(list(engine.decode(4).ids))
except akunu.DeviceError as error:
    print(error)
"""


@pytest.mark.long
def test_a_model_larger_than_one_gpus_memory_runs_on_two(run_cards: Run) -> None:
    """Each of two GPUs with 64 MB holds half of 84 MB; one GPU with more memory makes the same tokens."""

    def found(device: str, megabytes: str) -> str:
        done = run_cards(LARGE.replace("{device}", device), EMULATOR_MEMORY_MB=megabytes, **TWO)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "the weights have 84 MB, and 63 MB of the device's memory are left" in found("cuda", "64")
    assert found("cuda:0,1", "64") == found("cuda", "512")


def test_what_each_gpu_has_a_part_of_is_not_measured_or_kept(run_cards: Run) -> None:
    code = """
import akunu
from sampling import engines

engines.DEVICE = "cuda:0,1"
engine = engines.synthetic(62, 128, context=96)
engine.begin([1] * 70, end_ids=())
while engine.prefill()[0]:
    pass
for call in (lambda: engine.input_squares([[1, 2, 3]], None), lambda: engine.read_page([1] * 64)):
    try:
        call()
        print("went on")
    except akunu.UnsupportedError as error:
        print(error)
"""
    done = run_cards(code, **TWO)
    squares, page = done.stdout.splitlines()
    assert squares.startswith("importance is not measured on 2 GPUs"), done.stderr
    assert page.startswith("pages of a model on 2 GPUs"), done.stderr
