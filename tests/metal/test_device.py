"""The Metal device itself: memory, command buffers in flight, errors, profiles.

On the emulator, whose settings and counters show what a Mac would keep to itself.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np
import pytest
from on_metal import require_metal

from akunu import _core
from akunu.config import resolve
from akunu.errors import DeviceError
from metal_emulator.control import Control
from metal_emulator.harness import in_new_process, in_sanitizer
from models import llama2c
from models.test_engine import greedy
from sampling.engines import synthetic


@pytest.fixture(scope="module", autouse=True)
def metal() -> None:
    require_metal()


@pytest.fixture
def emulator_control() -> Iterator[Control]:
    """Settings go back to where they were; no device of an earlier test is left."""
    gc.collect()
    control = Control()
    with control.settings(**{name: control[name] for name in SETTINGS}):
        control.take_faults()
        yield control
        gc.collect()


SETTINGS = (
    "seed", "schedule", "workers", "delay_us", "noop", "hazards", "fail_command_buffer", "fail_signals",
    "fail_allocation", "allocation_limit", "gpu_cores", "apple_family", "working_set", "max_buffer_length",
)  # fmt: skip


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return llama2c.write("F16", tmp_path_factory.mktemp("llama2c") / "tiny.gguf")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file larger than any other buffer of its engine."""
    return llama2c.write("F32", tmp_path_factory.mktemp("llama2c") / "large.gguf")


def open_metal(path: Path, context: int = 128, **options: object) -> _core.Engine:
    file = _core.GgufFile(str(path))
    return _core.Engine(file, resolve(file, context=context), context=context, device="metal", **options)


def begun(engine: _core.Engine, **options: object) -> list[int]:
    """Prompt run; the first token."""
    engine.begin(llama2c.expected().prompt_ids, **options)
    return engine.prefill()[1].ids


# ---- what it is -----------------------------------------------------------------------------------


def test_it_is_listed_after_the_cpu_when_it_is_emulated() -> None:
    ids = [d["id"] for d in _core.devices()]
    assert ids[0] == "cpu" and ids[-1] == "metal"


def test_cores_and_family_are_the_machines(emulator_control: Control, path: Path) -> None:
    emulator_control["gpu_cores"], emulator_control["apple_family"] = 40, 8
    engine = open_metal(path)
    assert "40 GPU cores" in engine.device and engine.isa == "apple8"
    row = _core.devices()[-1]
    assert row["isa"] == "apple8" and row["memory"] == emulator_control["working_set"]


def test_a_gpu_without_matrices_is_not_used(emulator_control: Control, path: Path) -> None:
    """As in a virtual machine: the kernels need simdgroup_matrix, which begins with M1's family."""
    emulator_control["apple_family"] = 6
    assert "metal" not in [d["id"] for d in _core.devices()]
    with pytest.raises(DeviceError, match="an M1 or later is needed"):
        open_metal(path)


# ---- memory -----------------------------------------------------------------------------------------


def test_weights_are_read_from_the_files_mapping(emulator_control: Control, path: Path) -> None:
    before = emulator_control["allocated_bytes"]
    engine = open_metal(path)
    memory = engine.memory
    assert memory["weights_mapped"] > 500_000 and memory["weights"] < 10_000
    allocated = emulator_control["allocated_bytes"] - before
    # What else is allocated: parameters, and each buffer's smallest size.
    assert allocated < memory["weights"] + memory["kv_cache"] + memory["scratch"] + 100_000


@pytest.mark.parametrize("longest", [4096 * 165, 4096 * 200, 4096 * 240])
def test_a_file_longer_than_a_buffer_takes_several(
    emulator_control: Control, large: Path, longest: int
) -> None:
    path = large
    assert path.stat().st_size > longest
    emulator_control["max_buffer_length"] = longest
    engine = open_metal(path, parallel=1, chunk=16)
    assert greedy(engine, llama2c.expected().prompt_ids, 20) == llama2c.expected().greedy_ids[:20]


def test_windows_fit_where_the_file_does(emulator_control: Control, large: Path) -> None:
    """A buffer may be three quarters of the memory at most: windows that overlapped much would not fit."""
    path = large
    engine = open_metal(path, parallel=1, chunk=16)
    memory = engine.memory
    mapped = memory["weights_mapped"]
    other = emulator_control["allocated_bytes"]
    del engine, memory
    gc.collect()
    emulator_control["working_set"] = int(1.3 * path.stat().st_size) + other
    emulator_control["max_buffer_length"] = int(0.66 * path.stat().st_size)
    engine = open_metal(path, parallel=1, chunk=16)
    assert engine.memory["weights_mapped"] == mapped
    assert greedy(engine, llama2c.expected().prompt_ids, 20) == llama2c.expected().greedy_ids[:20]


@pytest.mark.parametrize("padding", [0, 8])
def test_weights_at_odd_addresses_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, padding: int
) -> None:
    """Kernels read four elements at once, from multiples of 16 bytes; a file may align to 8."""
    made = gguf.GGUFWriter.__init__

    def init(self: gguf.GGUFWriter, *args: object, **options: object) -> None:
        made(self, *args, **options)
        self.add_custom_alignment(8)
        self.add_description("x" * (100 + padding))

    monkeypatch.setattr(gguf.GGUFWriter, "__init__", init)
    file = llama2c.write("F16", tmp_path / "tiny.gguf")
    odd = {tensor.data_offset % 16 != 0 for tensor in gguf.GGUFReader(file).tensors}
    assert len(odd) == 1
    engine = open_metal(file)
    assert (engine.memory["weights_mapped"] == 0) == odd.pop()
    assert greedy(engine, llama2c.expected().prompt_ids, 20) == llama2c.expected().greedy_ids[:20]


def test_a_tensor_longer_than_a_buffer_is_an_error(emulator_control: Control, path: Path) -> None:
    emulator_control["max_buffer_length"] = 4096 * 4
    with pytest.raises(DeviceError, match="could not allocate"):
        open_metal(path)


@pytest.mark.parametrize("limit", [1 << 19, 700_000])  # less than the file; less than all together
def test_the_recommended_working_set_is_a_limit(emulator_control: Control, path: Path, limit: int) -> None:
    emulator_control["working_set"] = limit
    with pytest.raises(DeviceError, match=r"out of GPU memory: \d+ MB more are needed, \d+ MB of the 1 MB"):
        open_metal(path)
    emulator_control["working_set"] = 64 << 20
    assert begun(open_metal(path))


def fail_every_allocation(path: str) -> None:
    control = Control()
    before = control["buffers"]
    engine = open_metal(Path(path))
    count = control["buffers"] - before
    del engine
    refused = 0
    for n in range(1, count + 1):
        control["fail_allocation"] = n
        try:
            open_metal(Path(path))
        except DeviceError as e:
            assert "out of GPU memory" in str(e)
            refused += 1
        # The window onto the file is the one buffer that may fail: then the weights are copied.
    assert refused >= count - 1
    control["fail_allocation"] = 0
    assert_nothing_is_left(control)


def close_every_engine(path: str) -> None:
    control = Control()
    for _ in range(2):
        one, other = open_metal(Path(path)), open_metal(Path(path), context=64)
        assert begun(one) == begun(other)
        one.decode(5)
        one.close()
        assert begun(other)
        other.close()
    assert_nothing_is_left(control)


def fail_and_close(path: str) -> None:
    control = Control()
    engine = open_metal(Path(path))
    begun(engine)
    engine.decode(30)
    control["fail_command_buffer"] = 2
    with pytest.raises(DeviceError, match="injected fault"):
        engine.decode(30)
    engine.close()
    del engine
    assert_nothing_is_left(control)


def assert_nothing_is_left(control: Control) -> None:
    gc.collect()
    control.drain()
    if control["live_objects"]:
        control.print_live()
    assert control["live_objects"] == 0
    assert control["buffers"] == 0 and control["allocated_bytes"] == 0


@pytest.mark.parametrize("replay", ["", "indirect"])
@pytest.mark.parametrize("case", ["fail_every_allocation", "close_every_engine", "fail_and_close"])
def test_nothing_is_left_after(case: str, replay: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKUNU_METAL_REPLAY", replay)
    in_new_process(__file__, case, str(path))


def test_ten_thousand_chained_tokens_leave_nothing(emulator_control: Control) -> None:
    """In the no-op mode: it is the host that might keep something."""
    engine = synthetic(512, 64, layers=2, context=1024, device="metal")
    begin = [1, 2, 3]
    engine.begin(begin)
    engine.prefill()
    engine.decode(200)
    emulator_control.drain()
    names = ("buffers", "allocated_bytes", "pipelines")
    emulator_control["noop"] = 1
    engine.decode(256)
    emulator_control.drain()
    before = {name: emulator_control[name] for name in names}
    objects = emulator_control["live_objects"]
    submitted = emulator_control["command_buffers"]
    for _ in range(40):
        engine.decode(256)
    emulator_control.drain()
    assert emulator_control["command_buffers"] > submitted
    assert {name: emulator_control[name] for name in names} == before
    # Of the last chain, one to three command buffers have not been let go yet.
    assert abs(emulator_control["live_objects"] - objects) <= 2 * 3


# ---- command buffers in flight ----------------------------------------------------------------------


@pytest.mark.parametrize("delay", [0, 3000])
@pytest.mark.parametrize("schedule", [0, 1, 2])
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
    engine.decode(100)
    dispatches = 100 * len(engine.plan())
    assert 500 <= dispatches / (emulator_control["command_buffers"] - before) <= 1000


def test_a_command_buffer_ends_by_time(
    emulator_control: Control, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens of a large model fill one before its dispatches do: what must be read counts."""
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
    """Of 7 dispatches per layer with 4 to 8 bindings each, only those that differ are set."""
    engine = open_metal(path)
    begun(engine)
    engine.decode(1)
    before = {name: emulator_control[name] for name in ("set_buffer", "set_bytes", "dispatches")}
    engine.decode(1)
    used = {name: emulator_control[name] - value for name, value in before.items()}
    commands = len(engine.plan())
    assert used["dispatches"] >= commands
    assert used["set_buffer"] < 5 * used["dispatches"]
    assert used["set_bytes"] < 0.6 * commands


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


@pytest.mark.parametrize("n", [1, 2, 4, 7, 8])
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
    for limit in ("300", "0"):
        monkeypatch.setenv("AKUNU_METAL_BUFFER_MS", limit)
        engine = open_metal(path)
        before = emulator_control["command_buffers"]
        logits = engine.logits(ids)
        found[limit] = (logits, emulator_control["command_buffers"] - before)
        assert begun(engine) + engine.decode(9).ids == llama2c.expected().greedy_ids[:10]
    assert found["0"][1] > 10 * found["300"][1]
    np.testing.assert_array_equal(found["300"][0], found["0"][0])


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


# ---- profiles ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", ["decode", "batch", "prefill"])
def test_a_profile_has_a_time_for_every_command(emulator_control: Control, path: Path, phase: str) -> None:
    engine = open_metal(path)
    rows = {"decode": 1, "batch": 4, "prefill": 40}[phase]
    commands = engine.profile(phase, rows, position=3, repeats=2)
    assert [c["label"] for c in commands] == [c["label"] for c in engine.plan(phase, rows)]
    assert all(0 < c["seconds"] < 5 for c in commands)


def test_a_table_of_more_commands_than_a_sample_buffer_holds(emulator_control: Control) -> None:
    engine = synthetic(64, 32, layers=160, context=32, device="metal")
    emulator_control["noop"] = 1
    assert len(engine.profile("decode", repeats=1)) > 1024


def test_seven_dispatches_per_layer(path: Path) -> None:
    engine = open_metal(path)
    plan = engine.plan()
    layers = 1 + max(c["layer"] for c in plan)
    assert sum(c["layer"] >= 0 for c in plan) == 7 * layers


# ---- the cache of compiled kernels ------------------------------------------------------------------


def test_compiled_kernels_are_kept_in_the_cache(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AKUNU_CACHE", str(tmp_path / "new" / "folder"))
    open_metal(path)
    gc.collect()
    kept = list((tmp_path / "new" / "folder").iterdir())
    assert len(kept) == 1 and kept[0].name.startswith("kernels-") and kept[0].suffix == ".metalarchive"
    assert begun(open_metal(path))
    gc.collect()
    assert list((tmp_path / "new" / "folder").iterdir()) == kept


def test_kept_kernels_are_not_compiled_again(
    emulator_control: Control, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AKUNU_CACHE", str(tmp_path))
    found = []
    for _ in range(2):
        before = {name: emulator_control[name] for name in ("pipelines", "archive_hits")}
        engine = open_metal(path)
        assert begun(engine) == llama2c.expected().greedy_ids[:1]
        found.append({name: emulator_control[name] - count for name, count in before.items()})
        del engine
        gc.collect()
    assert found[0]["pipelines"] == found[1]["pipelines"] > 10
    assert found[0]["archive_hits"] == 0 and found[1]["archive_hits"] == found[1]["pipelines"]


@pytest.mark.parametrize("damage", ["garbage", "folder", "no cache"])
def test_a_damaged_cache_is_no_error(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setenv("AKUNU_CACHE", str(tmp_path))
    open_metal(path)
    gc.collect()
    kept = next(tmp_path.iterdir())
    if damage == "garbage":
        kept.write_bytes(b"\x00" * 100)
    else:
        kept.unlink()
    if damage == "folder":
        kept.mkdir()
    elif damage == "no cache":
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("AKUNU_CACHE", str(tmp_path / "file"))
    assert begun(open_metal(path)) == llama2c.expected().greedy_ids[:1]
    gc.collect()


# ---- replay by indirect command buffers ---------------------------------------------------------------


@pytest.fixture
def indirect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKUNU_METAL_REPLAY", "indirect")


@pytest.mark.usefixtures("indirect")
@pytest.mark.parametrize("schedule", [0, 1])
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
