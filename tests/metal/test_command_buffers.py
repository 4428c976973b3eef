"""Command buffers of the Metal device: several in flight, cancelled, failed, replayed indirectly.

On the emulator, whose settings and counters show what a Mac would keep to itself.
"""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from akunu import _core
from akunu.base.errors import DeviceError, InvalidArgumentError
from metal.on_metal import require_metal, some
from metal.tiny_model import begun, open_metal
from metal_emulator.control import Control
from metal_emulator.harness import in_sanitizer
from models import llama2c
from models.test_engine import greedy
from sampling.engines import synthetic


@pytest.fixture(scope="module", autouse=True)
def metal() -> None:
    require_metal()


# ---- command buffers in flight ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedule", "delay"), some([(s, d) for s in (0, 1, 2) for d in (0, 3000)], (0, 3000), (1, 0), (2, 3000))
)
def test_ids_do_not_depend_on_schedule_or_timing(
    emulator_control: Control, path: Path, schedule: int, delay: int
) -> None:
    emulator_control["delay_us"] = delay
    for seed in (1, 2):
        emulator_control["schedule"], emulator_control["seed"] = schedule, seed
        engine = open_metal(path)
        assert greedy(engine, llama2c.expected().prompt_ids, 12, 12) == llama2c.expected().greedy_ids[:12]


def run_every_table(path: str) -> None:
    """Decode, batch and prefill, greedy and sampled; in a process with a sanitizer."""
    # Which commands may run at the same time, TSan is to judge alone.
    Control()["hazards"] = 0
    engine = open_metal(Path(path))
    begun(engine, temperature=0.8, top_p=0.9, repeat_penalty=1.1, logprobs=2)
    engine.decode(3)
    ids = begun(engine, reuse=False)
    ids += engine.decode(3).ids
    assert ids == llama2c.expected().greedy_ids[:4]
    engine.logits(list(range(1, 41)))


@pytest.mark.long
@pytest.mark.parametrize("sanitizer", ["tsan", "asan"])
def test_a_whole_model_is_clean_under(
    sanitizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TSan sees a missing barrier between commands, ASan a read outside of a buffer."""
    monkeypatch.setenv("AKUNU_METAL_EMULATOR_SANITIZER", sanitizer)
    quantised = llama2c.write("Q8_0", tmp_path / "tiny.gguf")
    done = in_sanitizer(sanitizer, __file__, "run_every_table", str(quantised))
    assert done.returncode == 0, done.stderr


def test_overlapping_ranges_between_barriers_are_none(emulator_control: Control, path: Path) -> None:
    """The strict check: commands that no barrier separates do not touch one buffer, unless both read.

    q, k and v are parts of one buffer, so that decode with fused norms is what can be checked.
    """
    engine = open_metal(path)
    ids = begun(engine)
    emulator_control["hazards"] = 2
    ids += engine.decode(8).ids
    assert ids == llama2c.expected().greedy_ids[:9]


def test_the_host_encodes_ahead_of_the_gpu(emulator_control: Control, path: Path) -> None:
    """Three command buffers in flight: the time of a chain is the GPU's, and a chain is cut in several."""
    engine = open_metal(path)
    ids = begun(engine)
    submitted = emulator_control["command_buffers"]
    ids += engine.decode(40).ids
    buffers = emulator_control["command_buffers"] - submitted
    assert ids == llama2c.expected().greedy_ids[:41]
    assert 5 <= buffers <= 40


def test_a_command_buffer_is_hundreds_of_dispatches(emulator_control: Control) -> None:
    engine = synthetic(64, 32, layers=20, context=256, device="metal")
    engine.begin([1, 2, 3])
    engine.prefill()
    emulator_control["noop"] = 1
    before = emulator_control["command_buffers"]
    emulator_control["gpu_us"] = 1
    engine.decode(100)
    dispatches = 100 * len(engine.plan())
    assert 500 <= dispatches / (emulator_control["command_buffers"] - before) <= 1000


def test_a_command_buffer_ends_by_time(
    emulator_control: Control, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens of a large model fill one before its dispatches do: what must be read counts."""
    emulator_control["gpu_us"] = 1  # faster than predicted
    bytes_per_token = sum(command["bytes"] for command in open_metal(path).plan())
    found = {}
    for tokens in (1, 3, 100):
        # As if half of the bandwidth of an M4, 120 GB/s, were to be reached.
        limit = 1e3 * (tokens + 0.5) * bytes_per_token / 60e9
        monkeypatch.setenv("AKUNU_METAL_BUFFER_MS", str(limit))
        engine = open_metal(path)
        begun(engine)
        before = emulator_control["command_buffers"]
        engine.decode(24)
        found[tokens] = emulator_control["command_buffers"] - before
    assert found[1] == 24 and 8 <= found[3] <= 12 and found[100] == 3


def test_after_an_end_token_few_steps_still_run(emulator_control: Control, path: Path) -> None:
    expected = llama2c.expected().greedy_ids
    end = next(i for i in range(2, 20) if expected[i] not in expected[:i])
    engine = open_metal(path)
    begun(engine, end_ids=[expected[end]])
    whole = open_metal(path)
    begun(whole)
    counts = {}
    for name, e in (("ended", engine), ("whole", whole)):
        before = emulator_control["command_buffers"]
        counts[name] = (e.decode(63).ids, emulator_control["command_buffers"] - before)
    assert counts["ended"][0] == expected[1 : end + 1]
    assert counts["whole"][0] == expected[1:64]
    assert counts["ended"][1] <= counts["whole"][1] / 2


def test_cancel_ends_a_chain(emulator_control: Control, path: Path) -> None:
    engine = open_metal(path)
    ids = begun(engine)
    emulator_control["delay_us"] = 20_000
    timer = threading.Timer(0.1, engine.cancel)
    timer.start()
    ids += engine.decode(63).ids
    timer.join()
    assert len(ids) < 64
    assert ids == llama2c.expected().greedy_ids[: len(ids)]
    assert engine.tokens.tolist() == [*llama2c.expected().prompt_ids, *ids[:-1]]
    emulator_control["delay_us"] = 0
    # And goes on where it stopped.
    again = [*llama2c.expected().prompt_ids, *ids]
    engine.begin(again)
    assert engine.prefill()[1].ids == llama2c.expected().greedy_ids[len(ids) : len(ids) + 1]


def test_live_bindings_are_not_set_twice(emulator_control: Control, path: Path) -> None:
    """A layer has 6 dispatches with 4 to 8 bindings each; only bindings that differ are set."""
    engine = open_metal(path)
    begun(engine)
    engine.decode(1)
    before = {name: emulator_control[name] for name in ("set_buffer", "set_bytes", "dispatches")}
    engine.decode(1)
    used = {name: emulator_control[name] - value for name, value in before.items()}
    commands = len(engine.plan())
    assert used["dispatches"] == sum(c["dispatches"] for c in engine.plan())
    assert used["set_buffer"] < 5.75 * used["dispatches"]
    assert used["set_bytes"] < 0.6 * commands


def test_few_keys_are_not_merged(emulator_control: Control, path: Path) -> None:
    """Up to 128 keys attention is one dispatch, and then two; the plan says so."""
    engine = open_metal(path, context=200)
    begun(engine)
    engine.decode(127 - engine.tokens.size)
    found = []
    for keys in range(engine.tokens.size + 1, 131):
        before = emulator_control["dispatches"]
        engine.decode(1)
        found.append(emulator_control["dispatches"] - before)
        planned = engine.plan("decode", 1, keys - 1)
        assert found[-1] == sum(c["dispatches"] for c in planned), keys
        merges = [c["dispatches"] for c in planned if c["op"] == "attention_merge"]
        assert set(merges) == {int(keys > 128)}
    assert found[-1] == found[0] + len(merges)


def test_a_step_has_the_kernel_that_suits_its_rows(emulator_control: Control, path: Path) -> None:
    """A table of up to 16 rows has both: of a GPU with one core the tiny model's matrices fill every core."""
    emulator_control["gpu_cores"] = 1
    story = llama2c.expected().story_ids
    for rows in (2, 4, 5, 9, 16):
        engine = open_metal(path)
        engine.begin(story[:rows])
        before = emulator_control["dispatches"]
        assert engine.prefill()[1].ids == story[rows : rows + 1]
        used, planned = emulator_control["dispatches"] - before, engine.plan("batch", rows, 0)
        assert used == sum(c["dispatches"] for c in planned), rows
        assert any("_few_" in c["kernel"] for c in planned) == (rows >= 5)


# ---- errors -----------------------------------------------------------------------------------------


def test_a_failed_command_buffer_is_an_error_and_no_more(emulator_control: Control, path: Path) -> None:
    engine = open_metal(path)
    for n, code in ((1, 1), (2, 8), (3, 2), (5, 3)):
        ids = begun(engine, reuse=False)
        emulator_control["fail_command_buffer_code"] = code
        emulator_control["fail_command_buffer"] = n
        with pytest.raises(DeviceError, match=r"the GPU failed in table 'decode' .*injected fault"):
            engine.decode(60)
        emulator_control["fail_command_buffer"] = 0
    ids = begun(engine, reuse=False)
    assert ids + engine.decode(20).ids == llama2c.expected().greedy_ids[:21]
    assert len(emulator_control.take_faults()) == 4


@pytest.mark.parametrize("n", some([1, 2, 4, 7, 8], 1, 7))
def test_an_error_after_the_signal_is_seen(emulator_control: Control, path: Path, n: int) -> None:
    """The event may have its value before the driver says that the work failed."""
    engine = open_metal(path)
    begun(engine)
    emulator_control["fail_signals"] = 1
    emulator_control["fail_command_buffer"] = n
    with pytest.raises(DeviceError, match="injected fault"):
        engine.decode(60)
    assert emulator_control["fail_command_buffer"] == 0
    assert begun(engine, reuse=False) == llama2c.expected().greedy_ids[:1]


def test_a_failed_profile_is_an_error(emulator_control: Control, path: Path) -> None:
    engine = open_metal(path)
    emulator_control["fail_command_buffer"] = 1
    with pytest.raises(DeviceError, match="while profiling table 'decode'"):
        engine.profile("decode", 1, position=3, repeats=1)


def test_a_long_prompt_is_several_command_buffers(
    emulator_control: Control, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the work that they hold; a limit of no time at all ends them at every barrier."""
    ids = llama2c.expected().story_ids[:100]
    found = {}
    emulator_control["gpu_us"] = 1
    for limit in ("300", "0"):
        monkeypatch.setenv("AKUNU_METAL_BUFFER_MS", limit)
        engine = open_metal(path)
        before = emulator_control["command_buffers"]
        logits = engine.logits(ids)
        found[limit] = (logits, emulator_control["command_buffers"] - before)
        assert begun(engine) + engine.decode(9).ids == llama2c.expected().greedy_ids[:10]
    assert found["0"][1] > 10 * found["300"][1]
    np.testing.assert_array_equal(found["300"][0], found["0"][0])


def test_command_buffers_are_shorter_where_they_take_longer_than_predicted(
    emulator_control: Control, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the time that the GPU says: a chip that is far slower than assumed is not held for seconds."""
    bytes_per_token = sum(command["bytes"] for command in open_metal(path).plan())
    monkeypatch.setenv("AKUNU_METAL_BUFFER_MS", str(1e3 * 10.5 * bytes_per_token / 60e9))
    found = {}
    for microseconds in (1, 10_000_000):
        emulator_control["gpu_us"] = microseconds
        engine = open_metal(path)
        begun(engine)
        engine.decode(24)  # measured
        before = emulator_control["command_buffers"]
        ids = engine.decode(24).ids
        found[microseconds] = (emulator_control["command_buffers"] - before, ids)
    assert found[1][0] == 3 and found[10_000_000][0] == 24
    assert found[1][1] == found[10_000_000][1]


@pytest.mark.parametrize("name", ["AKUNU_METAL_BUFFER_MS", "AKUNU_METAL_KEEP_ALIVE"])
@pytest.mark.parametrize("found", ["long", "-1", "1e3", "inf", "0x10", "1.2.3"])
def test_a_setting_that_is_no_number_is_an_error(
    name: str, found: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, found)
    with pytest.raises(InvalidArgumentError, match=rf"^{name}='{found}': expected a number from 0 to"):
        open_metal(path)


def test_cancel_ends_a_long_prompt_between_two_of_them(
    emulator_control: Control, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AKUNU_METAL_BUFFER_MS", "0")
    engine = open_metal(path)
    emulator_control["delay_us"] = 20_000
    ids = llama2c.expected().story_ids[:100]
    engine.begin(ids)
    before = emulator_control["command_buffers"]
    timer = threading.Timer(0.1, engine.cancel)
    timer.start()
    left, _ = engine.prefill()
    timer.join()
    assert left == 100 and engine.position == 0
    assert emulator_control["command_buffers"] - before < len(engine.plan("prefill", 100))
    emulator_control["delay_us"] = 0
    engine.begin(ids)
    assert engine.prefill()[1].ids == llama2c.expected().story_ids[100:101]


def test_a_failed_prompt_is_an_error(emulator_control: Control, path: Path) -> None:
    engine = open_metal(path)
    engine.begin(llama2c.expected().prompt_ids)
    emulator_control["fail_command_buffer"] = 1
    with pytest.raises(DeviceError, match="table 'batch'"):
        engine.prefill()
    assert engine.position == 0
    assert engine.prefill()[1].ids == llama2c.expected().greedy_ids[:1]


def test_a_fault_names_the_command(emulator_control: Control) -> None:
    """A weight that ends too early: the kernel reads behind it, and the error says whose kernel it was."""
    lab = _core.Lab("metal")
    rows, cols = 8, 64
    half = np.zeros(rows * cols // 2, np.float16)
    weight = lab.weight("f16", half, rows // 2, cols)
    params = np.zeros((), _core.lab_structs()["matmul"])
    for name, value in {"rows": 1, "n": 4096, "k": cols, "y_stride": 4096}.items():
        params[name] = value
    x, y = np.zeros(cols * 2, np.uint8), np.zeros(4096, np.float32)
    with pytest.raises(DeviceError, match=r"command 'matmul' of table 'decode'.*bytes behind"):
        lab.run("matmul", [x, weight, y, None], params.tobytes())


# ---- replay by indirect command buffers ---------------------------------------------------------------


@pytest.fixture
def indirect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKUNU_METAL_REPLAY", "indirect")


@pytest.mark.usefixtures("indirect")
@pytest.mark.parametrize("schedule", some([0, 1], 1))
def test_indirect_replay_gives_the_same_ids(emulator_control: Control, path: Path, schedule: int) -> None:
    """Over a boundary at which attention's counts change; the story has 200 tokens."""
    emulator_control["schedule"], emulator_control["seed"] = schedule, 5
    expected = llama2c.expected()
    engine = open_metal(path, context=256)
    before = emulator_control["set_buffer"]
    assert greedy(engine, expected.story_ids[:1], 200, 64) == expected.story_ids[1:]
    assert emulator_control["set_buffer"] - before < 200 * 8  # not once per binding and token
    engine.begin(expected.prompt_ids)
    ids = engine.prefill()[1].ids
    while len(ids) < 40:
        ids += engine.decode(13).ids
    assert ids[:40] == expected.greedy_ids[:40]


@pytest.mark.usefixtures("indirect")
def test_indirect_replay_of_sampling_and_early_ends(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"temperature": 1.0, "top_p": 0.9, "repeat_penalty": 1.1, "seed": 3, "logprobs": 2}
    found = []
    for replay in ("indirect", ""):
        monkeypatch.setenv("AKUNU_METAL_REPLAY", replay)
        engine = open_metal(path)
        begun(engine, **options)
        chunk = engine.decode(50)
        engine.begin(llama2c.expected().prompt_ids, end_ids=[chunk.ids[20]], **options)
        engine.prefill()
        ended = engine.decode(50)
        found.append((chunk.ids, chunk.logprobs, chunk.top_logprobs, ended.ids, ended.ended))
    assert found[0] == found[1]
    assert found[0][4] and found[0][3] == found[0][0][: len(found[0][3])]
