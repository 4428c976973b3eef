"""The Metal device itself: what it is, its memory, its profiles and its cache of compiled kernels.

On the emulator, whose settings and counters show what a Mac would keep to itself.
"""

from __future__ import annotations

import gc
from pathlib import Path

import gguf
import pytest

from akunu import _core
from akunu.base.errors import DeviceError
from metal.on_metal import require_metal, some
from metal.tiny_model import begun, open_metal
from metal_emulator.control import Control
from metal_emulator.harness import in_new_process
from models import llama2c
from models.test_engine import greedy
from sampling.engines import synthetic


@pytest.fixture(scope="module", autouse=True)
def metal() -> None:
    require_metal()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file larger than any other buffer of its engine."""
    return llama2c.write("F32", tmp_path_factory.mktemp("llama2c") / "large.gguf")


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
    assert allocated < memory["weights"] + memory["kv_cache"] + memory["scratch"] + 150_000


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


@pytest.mark.parametrize(
    ("case", "replay"),
    some(
        [
            (case, replay)
            for case in ("fail_every_allocation", "close_every_engine", "fail_and_close")
            for replay in ("", "indirect")
        ],
        *(("fail_every_allocation", ""), ("close_every_engine", ""), ("fail_and_close", "indirect")),
    ),
)
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
