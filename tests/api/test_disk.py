"""The KV cache's pages in files: found by later processes, whole or not at all, bounded, never others'."""

from __future__ import annotations

import dataclasses
import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import akunu
from akunu.api.scheduling import page_files
from akunu.api.scheduling.disk import DiskTier
from akunu.api.scheduling.page_files import HEADER, DamagedPageError
from akunu.api.scheduling.prefix import Prefix
from children import environment
from models import llama2c

from .pages import FILE, LIMIT, PARTS, ids, page, store

STORY = (
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the big, green park. "
)
PROMPT = STORY * 4


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return llama2c.write("F16", tmp_path_factory.mktemp("llama2c") / "tiny.gguf")


def written(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.page"))


# -- models --------------------------------------------------------------------------------------------------


def test_a_prompt_of_an_earlier_process_is_not_run_again(path: Path, tmp_path: Path) -> None:
    with akunu.load(path, context=256) as plain:
        expected = plain.generate(PROMPT, max_tokens=20, temperature=1.0, seed=3)
    with akunu.load(path, context=256, cache_dir=tmp_path) as first:
        assert first.generate(PROMPT, max_tokens=20, temperature=1.0, seed=3).ids == expected.ids
        assert first.stats().hits_disk == 0
    with akunu.load(path, context=256, cache_dir=tmp_path) as second:
        again = second.generate(PROMPT, max_tokens=20, temperature=1.0, seed=3)
        stats = second.stats()
    whole = (expected.stats.prompt_tokens - 1) // 32 * 32
    assert whole >= 64 and again.ids == expected.ids
    assert again.stats.cached_tokens == stats.disk_tokens == whole
    assert (stats.hits_disk, stats.hits, stats.cached_tokens, stats.disk_written) == (1, 1, 0, 0)


def test_what_a_constraint_begins_with_is_no_prompt_that_was_found_in_files(tmp_path: Path) -> None:
    options = {"choice": [PROMPT + "The end", PROMPT + "Or not"], "temperature": 0}
    with akunu.load("ember", context=256, cache_dir=tmp_path) as first:
        expected = first.generate("A story: ", **options)
    with akunu.load("ember", context=256, cache_dir=tmp_path) as second:
        again = second.generate("A story: ", **options)
        assert second.stats().disk_tokens > again.stats.prompt_tokens
    assert again.ids == expected.ids
    assert again.stats.cached_tokens == again.stats.prompt_tokens
    assert again.stats.prefill_tokens_per_second == 0


def test_other_weights_and_other_caches_find_nothing(path: Path, tmp_path: Path) -> None:
    with akunu.load(path, context=256, cache_dir=tmp_path) as first:
        first.generate(PROMPT, max_tokens=0)
    data = bytearray(path.read_bytes())
    data[-3] ^= 1  # a byte of the last tensor
    other = tmp_path / "other.gguf"
    other.write_bytes(data)
    stamp = path.stat().st_mtime_ns
    os.utime(other, ns=(stamp, stamp))
    for file, options in ((other, {}), (path, {"kv_dtype": "q8_0"}), (path, {"quantize": "q8_0"})):
        with akunu.load(file, context=256, cache_dir=tmp_path, **options) as second:
            second.generate(PROMPT, max_tokens=0)
            assert second.stats().hits_disk == 0
    same = tmp_path / "same.gguf"
    same.write_bytes(path.read_bytes())
    os.utime(same, ns=(stamp, stamp))
    with akunu.load(same, context=256, cache_dir=tmp_path) as third:
        third.generate(PROMPT, max_tokens=0)
        assert third.stats().hits_disk == 1


def test_a_damaged_page_is_run_instead(path: Path, tmp_path: Path) -> None:
    with akunu.load(path, context=256, cache_dir=tmp_path) as first:
        expected = first.generate(PROMPT, max_tokens=8, temperature=0).ids
    files = written(tmp_path)
    assert len(files) >= 3
    for file in files:
        data = bytearray(file.read_bytes())
        data[HEADER.size + 100] ^= 1
        file.write_bytes(data)
    with akunu.load(path, context=256, cache_dir=tmp_path) as second:
        assert second.generate(PROMPT, max_tokens=8, temperature=0).ids == expected
        stats = second.stats()
        assert stats.disk_damaged == 1 and stats.disk_tokens == 0
    with akunu.load(path, context=256, cache_dir=tmp_path) as third:  # what was damaged was written again
        third.generate(PROMPT, max_tokens=8, temperature=0)
        assert third.stats().disk_tokens >= 32


def test_what_memory_had_no_room_for_comes_from_files(path: Path, tmp_path: Path) -> None:
    others = ["A dog and a cat. " * 8, "The sun and a tree. " * 8]
    with akunu.load(path, parallel=1, context=96, cache_dir=tmp_path) as small:  # four pages
        expected = small.generate(STORY * 2, max_tokens=8, temperature=0)
        small.flush()
        for other in others:
            small.generate(other, max_tokens=0)
        again = small.generate(STORY * 2, max_tokens=8, temperature=0)
        stats = small.stats()
    assert again.ids == expected.ids and again.stats.cached_tokens >= 32
    assert stats.hits_disk == 1 and stats.misses_evicted == 0


def test_sequences_that_run_together_are_kept_and_found(path: Path, tmp_path: Path) -> None:
    prompts = [STORY[i:] * 3 for i in range(0, 60, 10)]
    with akunu.load(path, context=256, parallel=3) as plain:
        expected = [c.ids for c in plain.generate_batch(prompts, max_tokens=20, seed=1)]
    for turn in range(2):
        with akunu.load(path, context=256, parallel=3, cache_dir=tmp_path) as model:
            found = [c.ids for c in model.generate_batch(prompts, max_tokens=20, seed=1)]
            assert found == expected
            assert model.stats.hits_disk == (len(prompts) if turn else 0)


def test_a_saved_session_is_not_run_again(path: Path, tmp_path: Path) -> None:
    def load() -> akunu.Model:
        model = akunu.load(path, context=512, cache_dir=tmp_path / "pages")
        model.chat_template = akunu.ChatTemplate.named("chatml", model.tokenizer)
        return model

    options = {"max_tokens": 8, "temperature": 0, "logit_bias": {1: -100.0, 2: -100.0}}
    first = load()
    session = first.session()
    session.chat(PROMPT, **options)
    session.save(tmp_path / "session.json")
    assert first.stats().disk_written > 0  # when it is saved, not when the model is closed
    with load() as second:
        loaded = akunu.Session.load(second, tmp_path / "session.json")
        answer = loaded.chat("Why?", **options)
        assert answer.stats.cached_tokens >= len(first.tokenize(PROMPT)) // 32 * 32
    assert str(answer) == str(session.chat("Why?", **options))
    first.close()


def test_a_folder_that_cannot_be_written_costs_nothing_but_a_warning(path: Path, tmp_path: Path) -> None:
    with akunu.load(path, context=256, cache_dir=tmp_path) as model:
        for folder in tmp_path.glob("pages-*"):
            folder.rmdir()
            folder.write_text("not a folder")
        with pytest.warns(RuntimeWarning, match="cache_dir"):
            assert model.generate(PROMPT, max_tokens=4).ids
            model.flush()
        assert model.stats.disk_unwritten == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cache_size": 0}, "cache_size"),
        ({"cache_size": 100}, "cache_size: 100 bytes are less than a page"),
        ({"cache_dir": "/dev/null/x"}, "cache_dir: /dev/null/x cannot be used"),
    ],
)
def test_arguments_are_checked(path: Path, tmp_path: Path, options: dict, message: str) -> None:
    with pytest.raises(akunu.InvalidArgumentError, match=message):
        akunu.load(path, **{"cache_dir": tmp_path, **options})


# -- files ---------------------------------------------------------------------------------------------------


def test_a_page_is_found_by_all_tokens_up_to_its_end(tmp_path: Path) -> None:
    files, text = store(tmp_path), ids(1)
    keys = files.keys(Prefix(text))
    assert len(keys) == 3 and files.keys(Prefix(text[:95])) == keys[:2]
    files.write(keys[1], text[:64], page(1))
    assert np.array_equal(store(tmp_path).read(keys[1], text[:64]), page(1))
    changed = text.copy()
    changed[3] += 1
    assert files.keys(Prefix(changed))[1] != keys[1]
    assert not set(store(tmp_path, identity=b"another").keys(Prefix(text))) & set(keys)


def test_a_cache_that_was_cleared_is_filled_again(tmp_path: Path) -> None:
    folder, text = tmp_path / "cache", ids(1, 32)
    files = store(folder)
    (key,) = files.keys(Prefix(text))
    for _ in range(2):
        files.write(key, text, page(1))
        assert np.array_equal(files.read(key, text), page(1))
        assert folder.stat().st_mode & 0o777 == 0o700
        shutil.rmtree(folder)


@pytest.mark.parametrize("damage", ["cut", "longer", "empty", "bytes", "header", "tokens"])
def test_damage_is_noticed_and_removed(tmp_path: Path, damage: str) -> None:
    files, text = store(tmp_path), ids(1)
    key = files.keys(Prefix(text))[0]
    files.write(key, text[:32], page(1))
    (file,) = written(tmp_path)
    data = file.read_bytes()
    asked = ids(2)[:32] if damage == "tokens" else text[:32]
    file.write_bytes(
        {
            "cut": data[:-1],
            "longer": data + b"x",
            "empty": b"",
            "bytes": data[:-1] + bytes([data[-1] ^ 1]),
            "header": b"x" + data[1:],
            "tokens": data,
        }[damage]
    )
    with pytest.raises(DamagedPageError):
        files.read(key, asked)
    assert not files.holds(key)
    with pytest.raises(FileNotFoundError):
        files.read(key, text[:32])


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    files = store(tmp_path, limit=10 * FILE)
    runs = [ids(i, 32) for i in range(10)]
    keys = [files.keys(Prefix(run))[0] for run in runs]
    for i in range(9):
        files.write(keys[i], runs[i], page(i))
        os.utime(files._path(keys[i]), ns=(i, i))
    files.touch(keys[0], time.time_ns())
    mine = tmp_path / "notes.txt"
    mine.write_text("kept")
    for i in (9, 1, 2):
        files.write(files.keys(Prefix(ids(100 + i, 32)))[0], ids(100 + i, 32), page(i))
    assert [files.holds(key) for key in keys[:4]] == [True, False, False, True]
    assert sum(f.stat().st_size for f in written(tmp_path)) <= 10 * FILE
    assert mine.read_text() == "kept"


@pytest.mark.parametrize(
    "error", [errno.EWOULDBLOCK, errno.ENOLCK, errno.EOPNOTSUPP], ids=errno.errorcode.get
)
def test_files_are_bounded_also_where_there_are_no_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    """And where another process has the lock, that one sees to it."""

    def flock(*_: object) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr("akunu.api.scheduling.page_files.fcntl.flock", flock)
    files = store(tmp_path, limit=10 * FILE)
    for i in range(20):
        files.write(files.keys(Prefix(ids(i, 32)))[0], ids(i, 32), page(i))
    assert (len(written(tmp_path)) <= 10) == (error != errno.EWOULDBLOCK)


def full_disk(monkeypatch: pytest.MonkeyPatch, folder: Path, room: int, error: int = errno.ENOSPC) -> None:
    """A write fails where the files of a folder would be more than `room` bytes."""
    real = page_files.whole_file

    @contextmanager
    def whole_file(path: Path, **options: Any) -> Iterator[Any]:
        with real(path, **options) as file:
            yield file
            file.flush()
            if sum(f.stat().st_size for f in folder.rglob("pages-*/??/*")) > room:
                raise OSError(error, os.strerror(error))

    monkeypatch.setattr(page_files, "whole_file", whole_file)


def test_on_a_full_disk_what_was_used_longest_ago_goes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full_disk(monkeypatch, tmp_path, 10 * FILE)
    files = store(tmp_path)
    keys = [files.keys(Prefix(ids(i, 32)))[0] for i in range(30)]
    for i, key in enumerate(keys):
        files.write(key, ids(i, 32), page(i))
        os.utime(files._path(key), ns=(i, i))
        held = [files.holds(key) for key in keys[: i + 1]]
        assert held == sorted(held) and sum(held) >= min(i + 1, 9)
    assert np.array_equal(files.read(keys[29], ids(29, 32)), page(29))
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize("room, error", [(FILE // 2, errno.ENOSPC), (3 * FILE, errno.EIO)])
def test_a_write_that_fails_once_more_or_otherwise_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int, error: int
) -> None:
    full_disk(monkeypatch, tmp_path, room, error)
    files = store(tmp_path)
    with pytest.raises(OSError, match=os.strerror(error)):
        for i in range(5):
            files.write(files.keys(Prefix(ids(i, 32)))[0], ids(i, 32), page(i))
    assert len(written(tmp_path)) == room // FILE
    assert not list(tmp_path.rglob("*.part"))


def test_a_folder_that_cannot_be_read_holds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a prompt that would begin with its pages is run."""
    files = store(tmp_path)
    files.write(files.keys(Prefix(ids(1)))[0], ids(1)[:32], page(1))

    def stat(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "no")

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", stat)
        assert not files.holds(files.keys(Prefix(ids(1)))[0])


def test_the_beginning_of_a_sequence_outlives_its_end(tmp_path: Path) -> None:
    files, text = store(tmp_path), ids(1, 320)
    keys = files.keys(Prefix(text))
    for i, key in enumerate(keys, 1):
        files.write(key, text[: 32 * i], page(i))
    now = time.time_ns()
    for i, key in enumerate(keys):
        files.touch(key, now - i)
    small = store(tmp_path, limit=6 * FILE)
    small.write(small.keys(Prefix(ids(2, 32)))[0], ids(2, 32), page(0))
    left = [files.holds(key) for key in keys]
    assert left == sorted(left, reverse=True) and 3 <= sum(left) <= 5


def test_what_somebody_writes_is_not_deleted(tmp_path: Path) -> None:
    """However slow it is: other pages were used since then, and take all the room there is."""
    files = store(tmp_path, limit=LIMIT)
    files.write(files.keys(Prefix(ids(0, 32)))[0], ids(0, 32), page(0))
    writing = next(tmp_path.rglob("*.page")).with_name(".page.part")
    writing.write_bytes(bytes(FILE))
    long_ago = time.time_ns() - 10 * 10**9
    os.utime(writing, ns=(long_ago, long_ago))
    for i in range(1, 50):
        files.write(files.keys(Prefix(ids(i, 32)))[0], ids(i, 32), page(i))
    assert writing.exists() and len(written(tmp_path)) <= 21


def test_processes_share_a_folder(tmp_path: Path) -> None:
    """Three of them write and read the same pages under a small limit; nobody sees half a page."""
    code = "import sys; from pathlib import Path; from api.pages import share; "
    code += "share(Path(sys.argv[1]), int(sys.argv[2]))"
    running = [
        subprocess.Popen([sys.executable, "-c", code, tmp_path, str(i)], env=environment()) for i in range(3)
    ]
    assert [process.wait() for process in running] == [0] * 3
    total = sum(f.stat().st_size for f in written(tmp_path))
    # Each sees what the others wrote when it has written a sixteenth of the limit itself, and nobody waits
    # for the one that deletes.
    assert total <= 2 * LIMIT
    assert not list(tmp_path.rglob("*.part"))


def test_a_process_that_is_killed_while_it_writes_leaves_a_usable_cache(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from api.pages import write_until_killed; "
    code += "write_until_killed(Path(sys.argv[1]))"
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", code, tmp_path], env=environment(), stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None and process.stdout.readline() == b"going\n"
            time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
    # A write that is cut anywhere leaves this, at most.
    (next(tmp_path.rglob("*.page")).parent / "cut.part").write_bytes(b"akunu")
    files, i = store(tmp_path), 0
    while files.holds(key := files.keys(Prefix(ids(i, 32)))[0]):
        assert np.array_equal(files.read(key, ids(i, 32)), page(i))
        i += 1
    assert i > 20
    # What it was writing is deleted when it is old.
    for part in tmp_path.rglob("*.part"):
        os.utime(part, ns=(0, 0))
    store(tmp_path).write(files.keys(Prefix(ids(0, 32)))[0], ids(0, 32), page(0))
    assert not list(tmp_path.rglob("*.part"))


def test_a_model_that_is_killed_while_it_writes_leaves_a_usable_cache(path: Path, tmp_path: Path) -> None:
    code = """
import sys
import akunu
prompt = sys.argv[3]
model = akunu.load(sys.argv[1], context=256, cache_dir=sys.argv[2])
print("going", flush=True)
for i in range(100000):
    model.generate(prompt[i % 90 :], max_tokens=0)
"""
    with subprocess.Popen(
        [sys.executable, "-c", code, path, tmp_path, PROMPT], env=environment(), stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"going\n"
        while len(written(tmp_path)) < 8:
            assert process.poll() is None
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
    with akunu.load(path, context=256) as plain:
        expected = [plain.generate(PROMPT[i:], max_tokens=8, temperature=0).ids for i in range(8)]
    with akunu.load(path, context=256, cache_dir=tmp_path) as model:
        found = [model.generate(PROMPT[i:], max_tokens=8, temperature=0).ids for i in range(8)]
        stats = model.stats
    assert found == expected and stats.hits_disk > 0 and stats.disk_damaged == 0


def test_only_the_owner_can_read(tmp_path: Path) -> None:
    files = store(tmp_path / "new")
    files.write(files.keys(Prefix(ids(1)))[0], ids(1)[:32], page(1))
    modes = {entry.stat().st_mode & 0o077 for entry in (tmp_path / "new").rglob("*")}
    assert modes == {0} and (tmp_path / "new").stat().st_mode & 0o077 == 0


# -- the thread ----------------------------------------------------------------------------------------------


def test_nothing_is_left_running_when_all_is_written(path: Path, tmp_path: Path) -> None:
    with akunu.load(path, context=256, cache_dir=tmp_path) as model:
        model.generate(PROMPT, max_tokens=0)
        model.flush()
        assert not any(thread.name == "akunu-pages" for thread in threading.enumerate())
        assert model.stats.disk_written == len(written(tmp_path)) > 0


def test_a_flush_does_not_wait_for_what_ends_after_it(tmp_path: Path) -> None:
    more = threading.Event()
    more.set()

    def read(prefix: Prefix, parts: list[int]) -> list[np.ndarray]:
        if more.is_set():  # sequences end faster than pages are written
            tier.keep(Prefix(ids(2 + tier.counts["written"])), 1)
        return [page(1)]

    files = store(tmp_path)
    tier = DiskTier(files, PARTS, read, lambda: False)
    tier.keep(Prefix(ids(1)), 1)
    flushing = threading.Thread(target=tier.flush, daemon=True)
    flushing.start()
    flushing.join(10)
    try:
        assert not flushing.is_alive()
        assert all(files.holds(key) for key in files.keys(Prefix(ids(1))))
    finally:
        more.clear()
    tier.flush()
    assert not tier._pending


def test_writing_rests_beside_sequences_that_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[float] = []
    for busy in (True, False):
        tier = DiskTier(
            store(tmp_path / str(busy)), PARTS, lambda ids, parts: [page(1)], lambda busy=busy: busy
        )
        monkeypatch.setattr(tier._hurry, "wait", rests.append)
        tier._write(Prefix(ids(1)), 1)
        assert len(rests) == 3 and all(rest > 0 for rest in rests)


def test_a_page_that_cannot_be_read_is_no_end_of_keeping(tmp_path: Path) -> None:
    files, asked = store(tmp_path), []

    def read(prefix: Prefix, parts: list[int]) -> list[np.ndarray]:
        asked.append(prefix)
        if len(asked) == 1:
            raise akunu.DeviceError("the device is out of memory")
        return [page(1)]

    tier = DiskTier(files, PARTS, read, lambda: False)
    with pytest.warns(RuntimeWarning, match="cache_dir: a page cannot be kept: the device is out of memory"):
        tier.keep(Prefix(ids(1)), 1)
        tier.flush()
    tier.keep(Prefix(ids(2)), 1)
    tier.flush()
    assert (tier.counts["unwritten"], tier.counts["written"]) == (1, 3)
    assert all(files.holds(key) for key in files.keys(Prefix(ids(2))))


def test_pages_are_looked_for_a_few_at_a_time_and_others_have_the_lock(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with akunu.load(path, context=256, cache_dir=tmp_path) as first:
        expected = first.generate(PROMPT, max_tokens=5, temperature=0).ids
    with akunu.load(path, context=256, cache_dir=tmp_path) as second:
        looked, holds, steps = list[tuple[str, bool]](), page_files.PageFiles.holds, list[int]()

        def free() -> bool:
            lock = second._scheduler._lock
            taken = lock.acquire(blocking=False)
            if taken:
                lock.release()
            return taken

        def slow(files: page_files.PageFiles, key: str, part: int = 0) -> bool:
            with ThreadPoolExecutor(1) as other:
                looked.append((key, other.submit(free).result()))
            steps.append(len(stepped))
            return holds(files, key, part)

        stepped = list[bool]()
        step = second._scheduler._step
        monkeypatch.setattr(page_files.PageFiles, "holds", slow)
        monkeypatch.setattr("akunu.api.scheduling.scheduler.ASIDE_SECONDS", 0.0)
        monkeypatch.setattr(second._scheduler, "_step", lambda: (stepped.append(True), step())[1])
        again = second.generate(PROMPT, max_tokens=5, temperature=0)
        monkeypatch.undo()
    assert again.ids == expected and again.stats.cached_tokens >= 64
    pages = again.stats.cached_tokens // 32
    assert [free for _, free in looked[:pages]] == [True] * pages
    assert steps[:pages] == list(range(1, pages + 1))  # one in each


def test_counts_are_read_while_the_thread_counts(tmp_path: Path) -> None:
    """It changes their numbers, and adds none."""
    files, counts = store(tmp_path), list[list[str]]()

    def read(prefix: Prefix, parts: list[int]) -> list[np.ndarray]:
        counts.append(list(tier.counts))
        return [page(1)]

    tier = DiskTier(files, PARTS, read, lambda: False)
    names = list(tier.counts)
    tier.keep(Prefix(ids(1)), 1)
    tier.flush()
    assert tier.counts["written"] == len(counts) == 3 and all(found == names for found in counts)
    assert {f"disk_{name}" for name in names} == {
        field.name for field in dataclasses.fields(akunu.ModelStats) if field.name.startswith("disk_")
    }


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o722])
def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(akunu.InvalidArgumentError, match=r"cache_dir: others may write to .*chmod go-w"):
        akunu.load("ember", cache_dir=folder, progress=False, threads=1)


def test_names_of_pages_follow_from_a_secret_of_the_folder(tmp_path: Path) -> None:
    names = []
    for name in ("one", "two", "one"):
        with akunu.load("ember", cache_dir=tmp_path / name, progress=False, threads=1) as model:
            model.generate([5 + i for i in range(70)], max_tokens=1)
            model.flush()
        names.append({path.name for path in (tmp_path / name).rglob("*.page")})
    assert names[0] == names[2]
    assert names[0] and not names[0] & names[1]
    assert (tmp_path / "one" / ".key").stat().st_mode & 0o777 == 0o600
