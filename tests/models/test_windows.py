"""Layers with a window keep what their next rows see: the same tokens, in a fraction of the memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from akunu import _core
from akunu._core import PAGE
from akunu.api.scheduling import Scheduler, Sequence
from akunu.api.scheduling.page_files import PageFiles
from akunu.api.scheduling.page_parts import PageParts
from akunu.base.errors import InvalidArgumentError

from . import windowed
from .reference import Reference
from .test_engine import nmse
from .test_hybrid import decode, read
from .test_same_output import DRAFTED, KEPT, Mixes
from .windowed import Windowed

DEVICE = os.environ.get("AKUNU_TEST_DEVICE", "cpu")
CONTEXT = 640
WINDOW = 50
CHUNK = 32


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("windowed") / "windowed.gguf"
    windowed.write(path)
    return path


def open_engine(path: Path, *, spec: Windowed | None = None, **options: Any) -> _core.Engine:
    file = _core.GgufFile(str(path))
    settings = {
        "device": DEVICE,
        "context": CONTEXT,
        "kv_dtype": "f32",
        "threads": 2,
        "chunk": CHUNK,
        **options,
    }
    return _core.Engine(file, (spec or Windowed(WINDOW))(file), **settings)


def prompt_of(n: int, seed: int = 1) -> list[int]:
    return np.random.default_rng(seed).integers(3, windowed.BASE.vocab_size, n).tolist()


def array(ids: list[int]) -> np.ndarray:
    return np.array(ids, np.uint32)


def alone(path: Path, ids: list[int], n: int) -> list[int]:
    """What a sequence is that nothing happens to."""
    engine = open_engine(path, parallel=1)
    slot = engine.open()
    read(engine, slot, ids)
    return decode(engine, slot, n)


def least(path: Path, more: float = 0.0, **options: Any) -> int:
    """`kv_memory` of one sequence that fills the context, and of a part of another."""
    with pytest.raises(InvalidArgumentError, match=r"needs (\d+); give as much") as caught:
        open_engine(path, kv_memory=1, **options)
    bytes_ = int(str(caught.value).split("needs ")[1].split(";")[0])
    return int(bytes_ * (1 + more))


# -- memory --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parallel", [1, 8])
def test_five_of_six_layers_with_a_window_take_less_than_a_third_of_the_memory(
    path: Path, parallel: int
) -> None:
    """By default, and as planned for a device that is not there."""
    everything = parallel * (32768 // PAGE + 1)
    options = {"spec": Windowed(1024), "context": 32768, "parallel": parallel, "chunk": None}
    for device in {DEVICE, "cpu"}:
        engine = open_engine(path, device=device, **options)
        pages = engine.pages
        (window,) = pages["windows"]
        assert pages["pages"] == everything and window["positions"] == 1024
        taken = pages["pages"] * (pages["page_bytes"] - window["page_bytes"])
        taken += window["pages"] * window["page_bytes"]
        assert engine.memory["kv_cache"] == taken <= 0.3 * everything * pages["page_bytes"]


def test_a_sequence_holds_the_pages_that_its_next_rows_see(path: Path) -> None:
    engine, ids = open_engine(path, parallel=1), prompt_of(CONTEXT - 20)
    slot = engine.open()
    at, most = engine.begin(ids, slot=slot), 0
    while at < len(ids) - 1:
        n = min(CHUNK, len(ids) - 1 - at)
        assert engine.reserve(slot, n)
        engine.step([(slot, n, False, 0, [])])
        at = engine.length(slot)
        (window,) = engine.pages["windows"]
        assert engine.pages["held"] == -(-at // PAGE)
        most = max(most, window["held"])
    assert 2 <= most <= (WINDOW + PAGE) // PAGE + 2 <= window["most_held"] < engine.pages["held"]
    decode(engine, slot, 20)
    assert engine.pages["windows"][0]["held"] <= most
    engine.close_slot(slot)
    assert engine.pages["held"] == engine.pages["windows"][0]["held"] == 0
    engine.forget()
    assert engine.pages["cached"] == engine.pages["windows"][0]["cached"] == 0


def test_memory_that_is_too_little_is_refused_and_what_is_asked_for_is_enough(path: Path) -> None:
    engine = open_engine(path, kv_memory=least(path), parallel=3)
    ids = prompt_of(CONTEXT - 8)
    slot = engine.open()
    read(engine, slot, ids)
    assert decode(engine, slot, 8) == alone(path, ids, 8)
    assert engine.memory["kv_cache"] <= least(path)


def test_a_window_of_the_whole_context_is_none(path: Path) -> None:
    engine = open_engine(path, spec=Windowed(CONTEXT))
    assert not engine.pages["windows"] and engine.part_bytes == [engine.pages["page_bytes"]]


def test_keys_that_others_see_more_of_are_kept(path: Path) -> None:
    """A layer reads the keys and values of one with a window: equal, wider, or none."""
    layer = 4 * PAGE * 2 * windowed.KV_HEADS * windowed.HEAD_DIM
    expected = {WINDOW: {WINDOW: 4 * layer}, 300: {WINDOW: 3 * layer, 300: layer}, 0: {WINDOW: 3 * layer}}
    for shared, groups in expected.items():
        engine = open_engine(path, spec=Windowed(WINDOW, shared), device="cpu")
        assert {w["positions"]: w["page_bytes"] for w in engine.pages["windows"]} == groups
        assert engine.pages["page_bytes"] == 5 * layer
        assert engine.part_bytes[0] == 5 * layer - sum(groups.values())


@pytest.mark.parametrize("shared", [WINDOW, 300, 0])
def test_logits_with_keys_of_another_layer_are_those_of_float64(path: Path, shared: int) -> None:
    ids, spec = prompt_of(400), Windowed(WINDOW, shared)
    reference = Reference(path, context=CONTEXT, resolve=spec)
    assert nmse(open_engine(path, spec=spec, device="cpu").logits(ids), reference.logits(ids)) < 1e-9


# -- what is computed ----------------------------------------------------------------------------------------


def test_logits_are_those_of_float64(path: Path) -> None:
    ids = prompt_of(260)
    reference = Reference(path, context=CONTEXT, resolve=Windowed(WINDOW))
    assert nmse(open_engine(path).logits(ids), reference.logits(ids)) < 1e-9


@pytest.mark.parametrize("kv_dtype", ["f16", "q8_0"])
def test_chunks_change_no_bit(path: Path, kv_dtype: str) -> None:
    ids = prompt_of(200, seed=2)
    expected = open_engine(path, kv_dtype=kv_dtype, chunk=256).logits(ids)
    for rows, threads in ((1, 1), (13, 2)):
        assert np.array_equal(
            open_engine(path, kv_dtype=kv_dtype, chunk=rows, threads=threads).logits(ids), expected
        )


def test_sequences_that_take_each_others_pages_are_what_they_are_alone(path: Path) -> None:
    """Chunks, chains and drafts that are refused, of sequences that run side by side in little memory."""
    rng = np.random.default_rng(3)
    sequences = {i: prompt_of(int(rng.integers(100, 400)), 10 + i) for i in range(3)}
    expected = {i: alone(path, ids, 60) for i, ids in sequences.items()}
    engine = open_engine(path, parallel=3, kv_memory=least(path, 1.5))
    slots = {i: engine.open() for i in sequences}
    for i, ids in sequences.items():
        engine.begin(ids, slot=slots[i])
    found: dict[int, list[int]] = {i: [] for i in sequences}
    while any(len(found[i]) < 60 for i in sequences):
        i = int(rng.choice([i for i in sequences if len(found[i]) < 60]))
        left = len(sequences[i]) + len(found[i]) - engine.length(slots[i])
        rows = int(min(left, rng.integers(1, CHUNK + 1)))
        known = len(found[i])
        drafts = expected[i][known : known + int(rng.integers(0, 5))] if rows == left else []
        drafts = [d if rng.random() < 0.8 else d ^ 1 for d in drafts][: 59 - known]
        steps = int(rng.integers(1, 9)) if rows == left == 1 and not drafts else 1
        assert engine.reserve(slots[i], rows, steps, len(drafts))
        (chunk,), _ = engine.step([(slots[i], rows, rows == left, 60 - known, drafts)], steps)
        found[i] += chunk.ids
    assert found == expected


def test_a_sequence_goes_back_as_far_as_its_windows_are_there(path: Path) -> None:
    ids = prompt_of(300, seed=4)
    expected = alone(path, ids, 10)
    engine = open_engine(path, parallel=2, kv_memory=least(path, parallel=2))
    slot = engine.open()
    read(engine, slot, ids)
    for n in (290, 200):  # nobody has wanted the memory yet
        assert engine.truncate(n, slot) == n
        engine.extend(slot, ids[n:])
        read_on(engine, slot, ids)
    other = engine.open()
    read(engine, other, prompt_of(280, seed=5))  # takes pages that the first one's window has passed
    back = engine.truncate(200, slot)
    assert 0 < back < 200 and back % PAGE == 0
    engine.extend(slot, ids[200:])
    read_on(engine, slot, ids)
    assert decode(engine, slot, 10) == expected


# -- what is found again -------------------------------------------------------------------------------------


def test_a_sequence_is_gone_on_with_where_it_ended_or_where_a_prompt_did(path: Path) -> None:
    ids = prompt_of(300, seed=6)
    engine = open_engine(path, parallel=2)
    slot = engine.open()
    read(engine, slot, ids)
    answer = decode(engine, slot, 40)
    engine.close_slot(slot)
    longer = [*ids, *answer, *prompt_of(9, seed=7)]
    slot = engine.open()
    assert engine.begin(longer, slot=slot) == len(ids) + len(answer) - 1
    read(engine, slot, longer)
    assert decode(engine, slot, 10) == alone(path, longer, 10)
    engine.close_slot(slot)
    # Another sequence with the beginning of the prompt, whose windows are still there.
    for n in (40, 64, 200, 299):
        slot = engine.open()
        other = [*ids[:n], *prompt_of(5, seed=n)]
        assert engine.begin(other, slot=slot) == n
        read(engine, slot, other)
        assert decode(engine, slot, 5) == alone(path, other, 5)
        engine.close_slot(slot)


def test_a_beginning_whose_windows_made_room_is_found_as_far_as_they_are_there(path: Path) -> None:
    ids = prompt_of(600, seed=8)
    engine = open_engine(path, parallel=1, kv_memory=least(path))
    slot = engine.open()
    read(engine, slot, ids)
    held = {end for end in range(PAGE, 600, PAGE) if engine.read_page(array(ids[:end]))[1] is not None}
    assert held >= {32, 64, 544, 576} and not held >= {400}
    for n in (50, 400, 599):
        other = [*ids[:n], *prompt_of(5, seed=n)]
        engine.close_slot(slot)
        slot = engine.open()
        cached = read(engine, slot, other)
        assert cached <= n
        assert decode(engine, slot, 5) == alone(path, other, 5)


def test_beginnings_stay_longer_than_what_a_long_sequence_ran_past(path: Path) -> None:
    """A prompt of many pages takes no page that a sequence ended with, and none of its own first ones."""
    engine = open_engine(path, parallel=1, kv_memory=least(path))
    (window,) = engine.pages["windows"]
    first, long = prompt_of(70, seed=9), prompt_of(600, seed=10)
    slot = engine.open()
    read(engine, slot, first)
    engine.close_slot(slot)
    slot = engine.open()
    read(engine, slot, long)
    assert engine.pages["held"] > window["pages"]
    engine.close_slot(slot)
    slot = engine.open()
    assert engine.begin([*first, 5, 6], slot=slot) >= 64
    engine.close_slot(slot)
    slot = engine.open()
    assert engine.begin([*long[:40], 5, 6], slot=slot) == 40


def test_sequences_with_other_roots_share_no_window(path: Path) -> None:
    ids = prompt_of(200, seed=11)
    engine = open_engine(path, parallel=2)
    slot = engine.open()
    read(engine, slot, ids)
    other = engine.open()
    assert engine.begin(ids, slot=other, root=5) == 0
    read(engine, other, ids)  # of root 0: the first one's pages
    assert engine.pages["windows"][0]["held"] >= 2
    assert decode(engine, slot, 5) == decode(engine, other, 5)


def test_what_is_pinned_stays_with_its_windows(path: Path) -> None:
    ids = prompt_of(300, seed=12)
    engine = open_engine(path, parallel=1, kv_memory=least(path, 1.0))
    slot = engine.open()
    read(engine, slot, ids)
    engine.close_slot(slot)
    pinned = array(ids[:256])
    assert engine.pin(pinned) and engine.pin(pinned)
    (window,) = engine.pages["windows"]
    assert engine.pages["pinned"] == 8 and window["pinned"] == window["held"] == 2
    for seed in range(3):
        slot = engine.open()
        read(engine, slot, prompt_of(600, seed=20 + seed))
        engine.close_slot(slot)
    engine.unpin(pinned)
    slot = engine.open()
    assert engine.begin(ids, slot=slot) >= 256
    engine.close_slot(slot)
    engine.unpin(pinned)
    assert engine.pages["windows"][0]["pinned"] == engine.pages["windows"][0]["held"] == 0
    with pytest.raises(InvalidArgumentError, match="are not pinned"):
        engine.unpin(pinned)
    # Its pages are there, its windows are not.
    assert not engine.pin(array(ids[:128])) or engine.read_page(array(ids[:128]))[1] is not None


# -- pages outside of the engine -----------------------------------------------------------------------------


def test_pages_go_on_in_another_engine(path: Path) -> None:
    ids = prompt_of(300, seed=13)
    source, engine = open_engine(path, parallel=1), open_engine(path, parallel=2)
    slot = source.open()
    read(source, slot, ids)
    pages = [source.read_page(array(ids[:end])) for end in range(PAGE, 257, PAGE)]
    slot = engine.open()
    assert engine.begin(ids, slot=slot) == 0
    for page in pages:
        assert engine.restore_page(slot, page)
    assert engine.finish_restoring(slot) == 256
    read_on(engine, slot, ids)
    assert decode(engine, slot, 10) == alone(path, ids, 10)
    # Without the last window's pages the sequence is run from where they are.
    engine.close_slot(slot)
    engine.forget()
    slot = engine.open()
    engine.begin(ids, slot=slot)
    for i, page in enumerate(pages):
        assert engine.restore_page(slot, [page[0], page[1] if i < 6 else None])
    with pytest.raises(InvalidArgumentError, match="its restoring was not finished"):
        engine.reserve(slot, 1)
        engine.step([(slot, 1, False, 0, [])])
    assert engine.finish_restoring(slot) == 6 * PAGE
    read_on(engine, slot, ids)
    assert decode(engine, slot, 10) == alone(path, ids, 10)
    with pytest.raises(InvalidArgumentError, match="a page has 2 parts, not 1"):
        engine.restore_page(slot, pages[0][:1])


def read_on(engine: _core.Engine, slot: int, ids: list[int]) -> None:
    while (at := engine.length(slot)) < len(ids) - 1:
        n = min(CHUNK, len(ids) - 1 - at)
        assert engine.reserve(slot, n)
        engine.step([(slot, n, False, 0, [])])


def generate(scheduler: Scheduler, ids: list[int], n: int) -> tuple[list[int], int]:
    """The tokens, and how many of the prompt were cached."""
    sequence = Sequence(array(ids), {"temperature": 0.0}, n)
    scheduler.submit(sequence)
    found: list[int] = []
    while (chunk := scheduler.next(sequence)) is not None:
        found += chunk.ids
    scheduler.end(sequence, len(ids) + n - 1)
    return found, sequence.cached_tokens


def test_files_hold_the_windows_at_the_ends_of_prompts_and_sequences(path: Path, tmp_path: Path) -> None:
    ids = prompt_of(300, seed=14)
    expected = alone(path, ids, 40)
    longer = [*ids, *expected, 3, 4, 5]

    def opened(**options: Any) -> Scheduler:
        engine = open_engine(path, parallel=2, **options)
        return Scheduler(engine, PageFiles(tmp_path, 1 << 30, b"windowed", engine.part_bytes))

    scheduler = opened()
    assert generate(scheduler, ids, 40) == (expected, 0)
    scheduler.flush()
    scheduler.close()
    files = len(list(tmp_path.rglob("*-1.page"))), len(list(tmp_path.rglob("*.page")))
    assert files[0] < files[1] - files[0] == 10
    for prompt, cached in ((ids, 288), (longer, 320), ([*ids[:150], 7, 8], 0)):
        again = opened()
        assert generate(again, prompt, 5) == (alone(path, prompt, 5), cached)
        again.flush()
        again.close()
    # Files that are gone: as far as the others reach.
    removed = sorted(tmp_path.rglob("*-1.page"), key=lambda file: file.stat().st_mtime_ns)[0]
    removed.unlink()
    again = opened()
    found, cached = generate(again, longer, 5)
    assert found == alone(path, longer, 5) and cached < 320
    again.close()


def test_which_parts_of_pages_a_sequence_needs() -> None:
    parts = PageParts((10, 20, 30), windows=(50, 100))
    assert [parts.needed(page, 8) for page in (3, 4, 5, 6, 7)] == [
        [0], [0, 2], [0, 2], [0, 1, 2], [0, 1, 2]
    ]  # fmt: skip
    assert parts.reach(0, 8, lambda page, part: True) == 8
    assert parts.reach(0, 8, lambda page, part: (page, part) != (6, 1)) == 6
    assert parts.reach(0, 8, lambda page, part: part != 2) == 0
    assert parts.reach(7, 8, lambda page, part: True) == 8
    state = PageParts((10, 5))
    assert state.state == 1 and parts.state is None
    assert [state.needed(page, 3) for page in range(3)] == [[0], [0], [0, 1]]
    assert state.reach(0, 9, lambda page, part: page == 4) == 5


# -- with everything around it -------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", ["memory", "files"])
def test_a_sequence_is_what_it_is_in_any_mix(
    path: Path, tmp_path: Path, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixes = Mixes(path, tmp_path / "pages" if kept == "files" else None, Windowed(20))
    mixes.run_until(KEPT | DRAFTED, range(40), monkeypatch, least=8)
