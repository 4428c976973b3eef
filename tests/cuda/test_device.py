"""The device: its memory, its cache of kernels, and what it says when something fails."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

QUANTIZE = """
import numpy as np
from akunu import _core
x = np.arange(300, dtype=np.float32)
y = np.zeros_like(x)
_core.Lab("cuda").run("quantize", [x, y, None], np.array([3, 100, 1], np.uint32).tobytes())
print("equal" if (x == y).all() else y)
"""


def test_what_the_device_wrote_comes_back(run: Run) -> None:
    done = run(QUANTIZE)
    assert done.stdout == "equal\n", done.stderr


def test_kernels_are_compiled_once(run: Run, tmp_path: Path) -> None:
    assert run(QUANTIZE).returncode == 0
    assert [path.suffix for path in (tmp_path / "cache" / "cuda").iterdir()] == [".cubin"]
    assert run(QUANTIZE, EMULATOR_FAIL="nvrtcCompileProgram").stdout == "equal\n"


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"EMULATOR_FAIL": "nvrtcCompileProgram"}, "NVRTC could not compile the kernels for sm_90a: no luck"),
        ({"EMULATOR_FAIL": "cuMemHostAlloc"}, "page-locked memory: unspecified launch failure"),
        ({"EMULATOR_FAIL": "cuModuleLoadData"}, "loading the kernels: unspecified launch failure"),
        ({"EMULATOR_FAIL": "cuLaunchCooperativeKernel"}, "starting the interpreter: unspecified"),
        ({"EMULATOR_FAIL": "cuStreamQuery"}, "[quantize]: unspecified launch failure"),
    ],
)  # fmt: skip
def test_a_failure_of_the_driver_says_what_failed(
    run: Run, environment: dict[str, str], message: str
) -> None:
    done = run(QUANTIZE, **environment)
    assert f"DeviceError: {message}" in done.stderr or message in done.stderr.splitlines()[-1]


@pytest.mark.long
@pytest.mark.in_turn("small")
def test_the_emulator_refuses_a_weight_type_that_it_was_built_without(run_small: Run) -> None:
    """When its kernels are loaded, compiled now or from the cache: others would wait for it for ever."""
    code = """
import numpy as np
from akunu import _core
lab = _core.Lab("cuda")
weight = lab.weight("q8_0", np.zeros(4 * 34, np.uint8), 4, 32)
params = np.array([1, 4, 32, 4, 0, 0, 0, 0, 1], np.uint32).tobytes()
lab.run("matmul", [np.zeros((1, 32), np.float16), weight, np.zeros((1, 4), np.float32), None], params)
"""
    for _ in range(2):
        last = run_small(code).stderr.splitlines()[-1]
        assert "loading the kernels: the emulator was built without the reader of Q8_0" in last


def test_a_block_that_does_not_come_is_an_error_and_no_hang(run: Run) -> None:
    done = run(QUANTIZE, EMULATOR_LOSE_BLOCK="1", AKUNU_CUDA_TIMEOUT_MS="50")
    assert "[quantize] did not end in time on the GPU: some block waited for 50 ms" in done.stderr


TWO_CHAINS = """
import akunu
with akunu.load("ember", device="cuda", progress=False) as model:
    for _ in range(2):
        try:
            print(len(model.generate("Once", max_tokens=2, temperature=0).ids))
        except akunu.DeviceError as error:
            print(error)
"""


def lost_words(run: Run) -> None:
    """A chain loses words of its commands of one row, behind the prompt's, and the next one runs."""
    done = run(TWO_CHAINS, EMULATOR_LOSE_WORDS="60", AKUNU_CUDA_TIMEOUT_MS="500")
    first, second = done.stdout.splitlines()
    assert first.startswith("[layers.") and "some block waited for 500 ms" in first, done.stderr or first
    assert second == "2"


def test_words_that_do_not_come_are_an_error_and_the_next_chain_runs(run: Run) -> None:
    lost_words(run)


@pytest.mark.table
@pytest.mark.parametrize("launch", [1, 2])
def test_a_launch_that_fails_leaves_the_next_one_right(run: Run, launch: int) -> None:
    """Not what the barriers of the one before it have counted."""
    code = f"""
import os
import akunu
with akunu.load("ember", device="cuda", draft=False, progress=False) as model:
    def ids():
        prompt = "Once upon"
        return model.generate(prompt, max_tokens=4, temperature=0).ids
    expected = ids()
    os.environ["EMULATOR_FAIL"] = "cuLaunchCooperativeKernel:{launch}"
    try:
        ids()
    except akunu.DeviceError as error:
        print(error)
    print(ids() == expected, ids() == expected)
"""
    # With so many blocks some are behind the others.
    done = run(code, EMULATOR_BLOCKS="4")
    lines = ["starting the interpreter: unspecified launch failure (CUDA error 719)", "True True"]
    assert done.stdout.splitlines() == lines, done.stderr or done.stdout


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"EMULATOR_NO_COOPERATION": "1"}, "does not start kernels whose blocks wait for one another"),
        (
            {"EMULATOR_NO_ROOM": "1"},
            "the kernels do not fit a multiprocessor of Emulated GPU: a block of 384",
        ),
    ],
)
def test_a_gpu_that_cannot_run_all_blocks_at_once_is_an_error(
    run: Run, environment: dict[str, str], message: str
) -> None:
    assert message in run(QUANTIZE, **environment).stderr.splitlines()[-1]


def test_a_process_that_was_forked_is_told(run: Run) -> None:
    """And what it drops of the GPU's does not end it."""
    code = """
import gc, os, sys
import numpy as np
from akunu import _core
lab = _core.Lab("cuda")
def weight():
    return lab.weight("f32", np.zeros((8, 64), np.float32), 8, 64)
held = weight()
child = os.fork()
if child == 0:
    for attempt in (weight, lambda: _core.Lab("cuda")):
        try:
            attempt()
        except Exception as error:
            print(error)
    del held, lab
    gc.collect()
    sys.stdout.flush()
    os._exit(0)
print(os.waitpid(child, 0)[1], weight().rows)
"""
    done = run(code)
    lines = done.stdout.splitlines()
    assert len(lines) == 3, done.stderr or done.stdout
    assert "was loaded before the process was forked" in lines[0] and "'spawn'" in lines[0]
    assert "CUDA was opened before this process was forked" in lines[1]
    assert lines[2] == "0 8"


def test_a_model_that_is_closed_gives_all_its_memory_back(run: Run) -> None:
    """Its table of embeddings too, while another model keeps the GPU open."""
    code = """
import gc
from sampling import engines
engines.DEVICE = "cuda"
keeps = engines.synthetic(100, 33, context=64)
before = keeps.memory_left
other = engines.synthetic(5000, 64, context=64)
print(keeps.memory_left < before)
del other
gc.collect()
print(before - keeps.memory_left)
"""
    done = run(code)
    assert done.stdout == "True\n0\n", done.stderr or done.stdout


def test_a_timeout_that_is_no_number_is_an_error(run: Run) -> None:
    found = ["soon", "-1", "1e3", "20s", " 50", "nan", "1000000001"]
    code = f"""
import os
from akunu import _core
for found in {found}:
    os.environ["AKUNU_CUDA_TIMEOUT_MS"] = found
    try:
        _core.Lab("cuda")
    except Exception as error:
        print(error)
"""
    done = run(code)
    expected = [f"AKUNU_CUDA_TIMEOUT_MS='{each}': expected a number from 0 to 1000000000" for each in found]
    assert [line[-len(e) :] for line, e in zip(done.stdout.splitlines(), expected, strict=True)] == expected


def test_shared_memory_that_begins_elsewhere_is_an_error(run: Run) -> None:
    done = run(QUANTIZE, EMULATOR_SHARED_BASE="2048")
    assert "does not begin at 2048, behind what the driver says that CUDA keeps" in done.stderr


def test_out_of_memory_says_how_much_is_missing(run: Run) -> None:
    code = """
from akunu import _core
import numpy as np
lab = _core.Lab("cuda")
weights = [lab.weight("f32", np.zeros((1 << 17, 64), np.float32), 1 << 17, 64, copies=20) for _ in range(2)]
"""
    last = run(code).stderr.splitlines()[-1]
    assert "out of GPU memory: 34 MB wanted," in last
    assert "MB are missing; a smaller context or a more quantised model needs less" in last


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({"AKUNU_CUDA_DRIVER": "/nowhere/libcuda.so"}, "no NVIDIA driver: /nowhere/libcuda.so: cannot open"),
        ({"EMULATOR_NO_GPU": "1"}, "the NVIDIA driver finds no GPU"),
        ({"EMULATOR_FAIL": "cuInit"}, "the NVIDIA driver does not start: unspecified launch failure"),
        ({"AKUNU_NVRTC": "/nowhere/libnvrtc.so"}, "is not installed: pip install 'akunu[cuda]'"),
    ],
)
def test_without_a_gpu_the_cpu_is_there_and_the_reason_is_said(
    run: Run, environment: dict[str, str], why: str
) -> None:
    code = "from akunu.cli import main; main(['devices'])"
    done = run(code, **environment)
    assert why in done.stdout, done.stderr
    assert "cpu" in done.stdout


def test_auto_is_the_gpu_and_says_what_is_left(run: Run) -> None:
    code = """
from akunu import _core
from sampling import engines
engines.DEVICE = "auto"
engine = engines.synthetic(100, 33, context=64)
used = engine.memory["weights"] + engine.memory["kv_cache"] + engine.memory["scratch"]
print(_core.devices()[0]["id"], engine.isa, 0 < (1 << 29) - engine.memory_left - used < 1 << 24)
"""
    done = run(code)
    assert done.stdout == "cuda sm_90 True\n", done.stderr


PROMPT = """
import hashlib
import numpy as np
from sampling import engines

engines.DEVICE = "cuda"
ids = (np.arange(100) * 7 % 61).astype(np.uint32)
engine = engines.synthetic(64, 64, layers=2, context=128, kv_dtype="q8_0", weights="q8_0", chunk=100)
engine.begin(ids, temperature=0.0, end_ids=())
while engine.prefill()[0]:
    pass
print(list(engine.decode(4).ids), hashlib.sha256(engine.logits(ids).tobytes()).hexdigest())
"""


def test_a_prompt_is_cut_into_launches_where_one_may_take_so_long(run: Run) -> None:
    cut = {"AKUNU_CUDA_LAUNCH_MS": "0.1"}
    whole = run(PROMPT)
    assert whole.returncode == 0, whole.stderr
    assert run(PROMPT, **cut).stdout == whole.stdout
    twelfth = {"EMULATOR_FAIL": "cuLaunchCooperativeKernel:12"}
    assert run(PROMPT, **twelfth).stdout == whole.stdout
    assert "starting the interpreter" in run(PROMPT, **cut, **twelfth).stderr


def test_a_gpu_with_a_display_is_given_back_while_a_prompt_runs(run: Run) -> None:
    """A launch takes 0.3 s at most there; on the emulator all do."""
    assert run(PROMPT, EMULATOR_DISPLAY="1").stdout == run(PROMPT).stdout


def test_a_step_of_a_prompt_has_as_many_rows_as_suit_the_device(run: Run) -> None:
    code = """
from akunu import _core
from sampling import engines
rows = {device["id"]: device["prompt_rows"] for device in _core.devices()}
for engines.DEVICE in ("cuda", "cpu"):
    chunks = [engines.synthetic(100, 32, context=2500, **o).chunk for o in ({}, {"chunk": 700})]
    print(rows[engines.DEVICE], chunks)
"""
    done = run(code)
    assert done.stdout == "2048 [2048, 700]\n512 [512, 700]\n", done.stderr


def test_a_model_that_does_not_fit_runs_on_the_cpu_and_says_so(run: Run) -> None:
    code = """
import akunu, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with akunu.load("ember", progress=False) as model:
        print("NVIDIA" not in model.device, model.memory_left)
print(caught[0].message)
try:
    akunu.load("ember", device="cuda", progress=False)
except akunu.DeviceError as error:
    print(error)
"""
    done = run(code, EMULATOR_MEMORY_MB="7")
    why = "the weights have 10 MB, and 3 MB of the device's memory are left"
    lines = ["True None", f"the model runs on cpu, not on cuda: {why}", why]
    assert done.stdout.splitlines() == lines, done.stderr


def test_drafts_are_verified_under_masks_that_the_host_computes_meanwhile(run: Run) -> None:
    code = """
import numpy as np
from sampling import engines
engines.DEVICE = "cuda"
engine = engines.synthetic(100, 33, context=64)
slot, other = engine.open(), engine.open()
masks = np.zeros((3, 4), np.uint32)
for row, token in enumerate((17, 40, 99)):
    masks[row, token // 32] = 1 << token % 32
for where in (slot, other):
    engine.begin([3, 1, 4], slot=where, reuse=False)
    assert engine.reserve(where, 3, 1, 2)
parts = [(slot, 3, True, 0, [17, 41]), (other, 3, True, 0, [17, 40])]
def tell():
    engine.set_mask(slot, masks)
    engine.set_mask(other, masks)
chunks, raised = engine.step(parts, 1, tell)
print([chunk.ids for chunk in chunks], raised)
def refuse():
    raise ValueError("not now")
assert engine.reserve(slot, 1)
chunks, raised = engine.step([(slot, 1, True, 0, [])], 1, refuse)
print([chunk.ids for chunk in chunks], raised)
"""
    done = run(code)
    assert done.stdout == "[[17, 40], [17, 40, 99]] None\n[[]] not now\n", done.stderr


COMPILE = """
import os, signal, threading, time
from pathlib import Path
import akunu
from sampling import engines
engines.DEVICE = "cuda"
calls = []
def cached():
    return [path.suffix for path in Path(os.environ["AKUNU_CACHE"]).glob("cuda/*")]
def engine(progress):
    return engines.synthetic(64, 32, context=32, progress=progress)
"""


def test_kernels_are_compiled_while_the_model_loads_and_the_progress_says_so(run: Run) -> None:
    code = (
        COMPILE
        + """
opened = engine(lambda *call: calls.append(call))
weights, kernels = [c for c in calls if len(c) == 2], [c for c in calls if len(c) == 3]
print(weights[-1][0] == weights[-1][1] == kernels[0][0] == kernels[0][1], calls[-len(kernels):] == kernels)
print({what for _, _, what in kernels}, 2 <= len(kernels) <= 4, cached())
os.environ["EMULATOR_FAIL"] = "nvrtcCompileProgram"  # nothing is left to compile
opened.begin([1, 2, 3], temperature=0.7, end_ids=(), logprobs=2)
opened.prefill()
print(len(opened.decode(2).ids))
"""
    )
    done = run(code, EMULATOR_COMPILE_MS="400")
    expected = "True True\n{'compiling kernels for Emulated GPU (once)'} True ['.cubin']\n2\n"
    assert done.stdout == expected, done.stderr
    again = run(COMPILE + "engine(lambda *call: calls.append(call)); print({len(call) for call in calls})")
    assert again.stdout == "{2}\n", again.stderr


def test_compiled_kernels_lie_in_the_users_folder_of_caches(run: Run, tmp_path: Path) -> None:
    load = COMPILE + "engine(None)"
    for folder in (tmp_path / "xdg", tmp_path / "home" / ".cache"):
        done = run(load, AKUNU_CACHE="", XDG_CACHE_HOME=str(tmp_path / "xdg"), HOME=str(tmp_path / "home"))
        assert [path.suffix for path in (folder / "akunu" / "cuda").iterdir()] == [".cubin"], done.stderr
        load = 'import os; del os.environ["XDG_CACHE_HOME"]\n' + load


def test_a_server_says_once_that_kernels_are_compiled(run: Run) -> None:
    code = """
import asyncio, logging
from akunu.server.workers import Workers
from akunu.server.catalog import ModelSpec
from akunu.server.models import Registry
logging.basicConfig(level=logging.INFO, format="%(message)s")
async def use():
    registry = Registry([ModelSpec(name="hearing", path="ember-speech", device="cuda")], 1, None, Workers())
    async with registry.use("hearing"):
        pass
asyncio.run(use())
"""
    done = run(code, EMULATOR_COMPILE_MS="400")
    assert done.stderr.count("hearing: compiling kernels for Emulated GPU (once)\n") == 1, done.stderr


@pytest.mark.parametrize("by", ["signal", "exception"])
def test_compiling_ends_when_asked(run: Run, by: str) -> None:
    code = (
        COMPILE
        + f"""
def progress(done, total, what=""):
    if what and {by == "exception"}:
        raise KeyboardInterrupt
if {by == "signal"}:
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
start = time.monotonic()
try:
    engine(progress)
except KeyboardInterrupt:
    print(time.monotonic() - start < 5, cached())
"""
    )
    done = run(code, EMULATOR_COMPILE_MS="20000")
    assert done.stdout == "True []\n", done.stderr


def test_every_command_of_a_table_is_timed(run: Run) -> None:
    """What one kernel does for three commands is the middle one's."""
    code = """
from sampling import engines
engines.DEVICE = "cuda"
opened = engines.synthetic(64, 32, layers=2, context=32, weights="f16")
for phase, rows in (("decode", 1), ("batch", 3), ("prefill", 20)):
    commands = opened.profile(phase, rows, 0, 2)
    merged = [c["op"] for c in commands if c["dispatches"] == 0]
    timed = all((c["seconds"] > 0) == (c["dispatches"] > 0) for c in commands)
    print(phase, len(commands) > 10, merged, timed)
"""
    done = run(code)
    row, batch = (str(["prepare_heads", behind] * 2) for behind in ("attention_merge", "quantize"))
    expected = f"decode True {row} True\nbatch True {batch} True\nprefill True [] True\n"
    assert done.stdout == expected, done.stderr or done.stdout


def test_commands_that_take_words_are_timed_behind_barriers(run: Run) -> None:
    code = """
import akunu
with akunu.load("ember", device="cuda", progress=False) as model:
    commands = model._engine.profile("decode", 1, 0, 2)
    print(all((c["seconds"] > 0) == (c["dispatches"] > 0) for c in commands))
"""
    done = run(code)
    assert done.stdout == "True\n", done.stderr or done.stdout


@pytest.mark.long
def test_a_chain_stops_where_its_sequence_ends(run: Run) -> None:
    """Tokens of a chain are the CPU's, and an end token ends the launch."""
    code = """
import akunu
question = [{"role": "user", "content": "What is the capital of France?"}]
def answer(device):
    with akunu.load("ember", device=device, quantize="f16", context=96, parallel=1, progress=False) as model:
        done = model.chat(question, temperature=0, max_tokens=20)
        return done.ids, done.finish_reason
print(answer("cuda") == answer("cpu"), answer("cpu")[1])
"""
    done = run(code)
    assert done.stdout == "True stop\n", done.stderr or done.stdout


def test_importance_matrices_are_those_of_the_cpu(run: Run) -> None:
    """Up to what is rounded: the GPU's activations to F16, the CPU's not, with such weights."""
    code = """
import numpy as np
import akunu
found = {}
for device in ("cpu", "cuda"):
    with akunu.load("ember", device=device, quantize="f16", context=96, parallel=1, progress=False) as model:
        found[device] = model.importance_matrix("Once upon a time there was a small girl.").means
worst = max(float(np.sum((found["cuda"][k] - v) ** 2) / np.sum(v ** 2)) for k, v in found["cpu"].items())
print(len(found["cuda"]) == len(found["cpu"]), worst, flush=True)
assert worst < 5e-6, worst
"""
    done = run(code)
    assert done.stdout.startswith("True"), done.stderr or done.stdout


@pytest.mark.parametrize(
    "environment", [{}, {"EMULATOR_NO_GPU": "1"}, {"EMULATOR_FAIL": "cuDevicePrimaryCtxRetain"}]
)
def test_what_is_opened_ahead_changes_nothing(run: Run, environment: dict[str, str]) -> None:
    """Whether it can be opened or not; who needs it is told."""
    code = """
from akunu import _core
opened = _core.OpenAhead()
print(_core.devices()[0]["id"])
opened.close()
opened.close()
_core.OpenAhead()
"""
    done = run(code, **environment)
    assert (done.returncode, done.stdout) == (0, "cpu\n" if "EMULATOR_NO_GPU" in environment else "cuda\n")
