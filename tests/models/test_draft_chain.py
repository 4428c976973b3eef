"""Chains whose drafts the model's own head writes: their tokens, and what they leave, are plain decoding's.

Heads of random weights draft little that holds where sampling is greedy, and nearly everything where the
temperature is so high that the random number of each position decides, which drafts share. So every
acceptance is among these.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from akunu import _core
from akunu._core import MAX_CHAIN, PAGE
from akunu.files.describe.gguf_config import resolve

from . import assistants, families, qwen35
from .test_assistant import gguf_files
from .test_draft_head import in_folder

DEVICE = os.environ.get("AKUNU_TEST_DEVICE", "cpu")  # tests/metal sets another
CONTEXT = 256
SETTINGS: dict[str, Any] = {"device": DEVICE, "context": CONTEXT, "kv_dtype": "f32", "threads": 2}

Open = Callable[..., _core.Engine]
Settings = dict[str, Any]

GREEDY: Settings = {}
OFTEN: Settings = {"temperature": 4.0, "seed": 11}
ALWAYS: Settings = {"temperature": 1e6, "seed": 5}
OTHER: Settings = {"temperature": 2.0, "seed": 3, "top_k": 60, "repeat_penalty": 1.1}


def head_of_a_hybrid(folder: Path) -> tuple[Any, Any]:
    file = _core.GgufFile(str(qwen35.write_gguf(qwen35.ALL["qwen35"], folder / "hybrid.gguf", drafts="in")))
    return file, resolve(file, context=CONTEXT, drafts=True)


def head_of_latents(folder: Path) -> tuple[Any, Any]:
    return in_folder(families.ALL["glm4_moe_lite"], folder)


def head_of_experts(folder: Path) -> tuple[Any, Any]:
    return in_folder(families.ALL["qwen3next"], folder)


def assistant_with_windows(folder: Path) -> tuple[Any, Any]:
    return gguf_files(assistants.ALL["gemma4_e_assistant"], folder)


MODELS = (head_of_a_hybrid, head_of_latents, head_of_experts, assistant_with_windows)


@pytest.fixture(scope="module", params=MODELS, ids=lambda made: made.__name__)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Open:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        files, spec = request.param(tmp_path_factory.mktemp("chain"))
    return lambda **options: _core.Engine(files, spec, **SETTINGS | options)


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory: pytest.TempPathFactory) -> Open:
    files, spec = head_of_a_hybrid(tmp_path_factory.mktemp("hybrid"))
    return lambda **options: _core.Engine(files, spec, **SETTINGS | options)


def prompt_of(engine: _core.Engine, n: int, seed: int = 1) -> list[int]:
    return np.random.default_rng(seed).integers(3, engine.vocab, n).tolist()


def begin(engine: _core.Engine, ids: list[int], settings: Settings, **options: Any) -> int:
    """A slot with a sequence that has been run up to its last token."""
    slot = engine.open()
    assert slot is not None
    at = engine.begin(ids, slot=slot, **settings, **options)
    while at < len(ids) - 1:
        n = min(len(ids) - 1 - at, engine.chunk)
        assert engine.reserve(slot, n)
        (chunk,), _ = engine.step([(slot, n, False, 0, [])])
        at = chunk.length
    return slot


def plain(engine: _core.Engine, slot: int, n: int) -> list[_core.Chunk]:
    """What steps of one token give, until there are `n`, or the sequence ends."""
    chunks, given = list[_core.Chunk](), 0
    while given < n and not (chunks and chunks[-1].ended):
        assert engine.reserve(slot, 1)
        (chunk,), _ = engine.step([(slot, 1, True, 0, [])])
        chunks.append(chunk)
        given += len(chunk.ids)
    return chunks


def chained(
    engine: _core.Engine, slots: dict[int, int], drafts: int, steps: int
) -> dict[int, list[_core.Chunk]]:
    """What chains of sequences give, each until it has so many, or ends."""
    chunks: dict[int, list[_core.Chunk]] = {slot: [] for slot in slots}
    while True:
        left = {slot: n - len(ids_of(chunks[slot])) for slot, n in slots.items()}
        going = [s for s, n in left.items() if n > 0 and not (chunks[s] and chunks[s][-1].ended)]
        if not going:
            return chunks
        for slot in going:
            assert engine.reserve(slot, 1, steps, drafts)
        made, interrupt = engine.draft_and_verify([(slot, left[slot]) for slot in going], drafts, steps)
        assert interrupt is None
        for slot, chunk in zip(going, made, strict=True):
            check(chunk, drafts, steps)
            chunks[slot].append(chunk)


def check(chunk: _core.Chunk, drafts: int, steps: int) -> None:
    """What a chain says of its steps is what it gave."""
    assert len(chunk.of_steps) <= steps and chunk.drafts <= drafts
    if chunk.of_steps:
        assert sum(chunk.of_steps) == len(chunk.ids)
        assert all(1 <= tokens <= 1 + chunk.drafts for tokens in chunk.of_steps)
    else:
        assert len(chunk.ids) == 1 and chunk.drafts == 0


def ids_of(chunks: list[_core.Chunk]) -> list[int]:
    return [token for chunk in chunks for token in chunk.ids]


def bits(page: list[Any] | None) -> list[bytes | None]:
    assert page is not None
    return [None if part is None else part.tobytes() for part in page]


def share_held(chunks: list[_core.Chunk]) -> float:
    steps = [(tokens - 1, chunk.drafts) for chunk in chunks for tokens in chunk.of_steps]
    return sum(held for held, _ in steps) / sum(drafts for _, drafts in steps)


# -- tokens --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("drafts", "steps"), [(1, 1), (1, 64), (3, 5), (8, 16)])
@pytest.mark.parametrize("settings", [GREEDY, OFTEN, ALWAYS], ids=["greedy", "often", "always"])
def test_a_chain_is_what_plain_decoding_is(settings: Settings, drafts: int, steps: int, opened: Open) -> None:
    engine = opened()
    ids, n = prompt_of(engine, 45), 60
    expected = ids_of(plain(engine, begin(engine, ids, settings), n))
    slot = begin(engine, ids, settings)
    found = chained(engine, {slot: n}, drafts, min(steps, (CONTEXT - 45 - n) // (1 + drafts)))[slot]
    assert ids_of(found) == expected
    assert found[0].of_steps == []  # the prompt's last token was run without being sampled
    if settings is ALWAYS:
        assert share_held(found) > 0.8
    if settings is GREEDY:
        assert share_held(found) < 0.5


def test_sequences_of_a_chain_are_what_each_is_alone(opened: Open) -> None:
    alone, together = opened(), opened(parallel=4)
    asked = [(33, 50, GREEDY), (64, 30, ALWAYS), (20, 44, OFTEN), (90, 37, OTHER)]
    expected, slots = list[list[int]](), dict[int, int]()
    for seed, (length, n, settings) in enumerate(asked):
        ids = prompt_of(alone, length, seed)
        slot = begin(alone, ids, settings)
        expected.append(ids_of(plain(alone, slot, n)))
        alone.close_slot(slot)
        slots[begin(together, ids, settings)] = n
    found = chained(together, slots, 3, 7)
    assert [ids_of(found[slot]) for slot in slots] == expected


def test_chains_and_other_steps_take_turns(opened: Open) -> None:
    """Drafts of the host, plain chains, and a row of another sequence, between chains of drafts."""
    engine = opened(parallel=2)
    ids, n = prompt_of(engine, 40), 90
    expected = ids_of(plain(engine, begin(engine, ids, OFTEN), n))
    slot, rng = begin(engine, ids, OFTEN), np.random.default_rng(1)
    said: list[int] = []
    while len(said) < n:
        kind, left = rng.integers(0, 3), n - len(said)
        if kind == 0:
            said += ids_of(chained(engine, {slot: min(left, 9)}, 2, 3)[slot])
        elif kind == 1:
            right = expected[len(said) : len(said) + 2]
            drafts = [*right, 5][: left - 1]
            assert engine.reserve(slot, 1, 1, len(drafts))
            said += engine.step([(slot, 1, True, left, drafts)])[0][0].ids
        else:
            assert engine.reserve(slot, 1, 3)
            said += engine.step([(slot, 1, True, left, [])], 3)[0][0].ids
    assert said == expected


@pytest.mark.parametrize("settings", [GREEDY, ALWAYS], ids=["greedy", "always"])
def test_a_sequence_that_ends_in_a_chain_ends_there(settings: Settings, opened: Open) -> None:
    """At an end token, or at its limit; another one goes on."""
    engine = opened(parallel=3)
    first, second = prompt_of(engine, 30), prompt_of(engine, 50, 2)
    whole = [ids_of(plain(engine, begin(engine, ids, settings), 40)) for ids in (first, second)]
    at = next(i for i, token in enumerate(whole[0]) if i >= 11 and token not in whole[0][:i])
    engine.close_slot(0), engine.close_slot(1)
    ending = begin(engine, first, {**settings, "end_ids": [whole[0][at]]})
    other, limited = begin(engine, second, settings), begin(engine, second, settings)
    found = chained(engine, {ending: 40, other: 40, limited: 17}, 4, 20)
    assert [ids_of(found[slot]) for slot in (ending, other, limited)] == [
        whole[0][: at + 1],
        whole[1],
        whole[1][:17],
    ]
    assert [found[slot][-1].ended for slot in (ending, other, limited)] == [True, False, False]
    assert engine.length(limited) == len(second) + 16  # of the last token there is nothing yet
    assert ids_of(plain(engine, limited, 20)) == whole[1][17:37]


def test_a_chain_fills_the_context(opened: Open) -> None:
    engine = opened()
    ids = prompt_of(engine, 40)
    n = CONTEXT - len(ids) + 1
    expected = ids_of(plain(engine, begin(engine, ids, ALWAYS), n))
    slot, said = begin(engine, ids, ALWAYS), list[int]()
    while len(said) < n:
        room = CONTEXT - engine.length(slot)
        drafts = min(4, room - 1)
        if drafts:
            assert engine.reserve(slot, 1, room // (1 + drafts), drafts)
            said += engine.draft_and_verify([(slot, 0)], drafts, room // (1 + drafts))[0][0].ids
        else:
            assert engine.reserve(slot, 1)
            said += engine.step([(slot, 1, True, 0, [])])[0][0].ids
    assert said == expected and engine.length(slot) == CONTEXT


def test_log_probabilities_are_plain_decodings(opened: Open) -> None:
    engine = opened()
    ids, settings = prompt_of(engine, 37), {**OFTEN, "logprobs": 3}
    expected = plain(engine, begin(engine, ids, settings), 30)
    slot = begin(engine, ids, settings)
    found = chained(engine, {slot: 30}, 3, 5)[slot]
    assert max(len(chunk.of_steps) for chunk in found) == 1  # records are those of one step
    assert ids_of(found) == ids_of(expected)
    logprobs = [[p for chunk in chunks for p in chunk.logprobs] for chunks in (found, expected)]
    top = [[p for chunk in chunks for p in chunk.top_logprobs] for chunks in (found, expected)]
    if SETTINGS["device"] == "cpu":
        assert logprobs[0] == logprobs[1] and top[0] == top[1]
    else:
        assert np.allclose(*logprobs, atol=1e-2) and len(top[0]) == 30


def test_an_adapter_is_part_of_a_chain(hybrid: Open) -> None:
    """One of two sequences has an adapter, which changes nothing in the head."""
    engine, rng = hybrid(parallel=2), np.random.default_rng(4)
    tensors = {
        name: (
            rng.normal(size=(4, cols)).astype(np.float32),
            rng.normal(size=(rows, 4)).astype(np.float32),
            0.1,
        )
        for name, (rows, cols) in list(engine.linears.items())[::3]
    }
    choices: list[Settings] = [{"adapter": engine.add_adapter(tensors), "root": 9}, {}]
    ids, expected = prompt_of(engine, 30), list[list[int]]()
    for choice in choices:
        slot = begin(engine, ids, OFTEN, **choice)
        expected.append(ids_of(plain(engine, slot, 40)))
        engine.close_slot(slot)
    assert expected[0] != expected[1]
    slots = [begin(engine, ids, OFTEN, **choice) for choice in choices]
    found = chained(engine, dict.fromkeys(slots, 40), 3, 6)
    assert [ids_of(found[slot]) for slot in slots] == expected


# -- what a chain leaves -------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [GREEDY, OFTEN, ALWAYS], ids=["greedy", "often", "always"])
def test_pages_and_states_are_those_of_plain_steps(settings: Settings, opened: Open) -> None:
    """To the bit, and so are the log-probabilities of what follows."""
    if SETTINGS["device"] != "cpu":
        pytest.skip("rows of a GPU's step are rounded otherwise than one alone")
    left = []
    for drafts in (0, 1, 5):
        engine = opened()
        ids, n = prompt_of(engine, 50), 100
        slot = begin(engine, ids, settings)
        said = ids_of(chained(engine, {slot: n}, drafts, 6)[slot] if drafts else plain(engine, slot, n))
        engine.close_slot(slot)
        tokens = np.array(ids + said, np.uint32)
        pages = [bits(engine.read_page(tokens[:end])) for end in range(PAGE, len(tokens) - 1, PAGE)]
        slot = begin(engine, ids + said, {**settings, "logprobs": 4})
        after = plain(engine, slot, 20)
        left.append((said, pages, [(c.ids, c.logprobs, c.top_logprobs) for c in after]))
    assert left[1] == left[0]
    assert left[2] == left[0]


def test_a_state_goes_over_a_checkpoint(hybrid: Open) -> None:
    """A chain ends where one is due, and the next one goes on."""
    engine = hybrid(context=640)
    ids, n = prompt_of(engine, 490), 60
    expected = ids_of(plain(engine, begin(engine, ids, ALWAYS), n))
    slot = begin(engine, ids, ALWAYS)
    assert ids_of(chained(engine, {slot: n}, 4, 12)[slot]) == expected
    assert engine.pages["checkpoints"] > 0
    engine.close_slot(slot)
    again = engine.open()
    assert again is not None
    assert engine.begin(ids + expected, slot=again, **ALWAYS) >= 512  # found again by the checkpoint


# -- ends from outside ---------------------------------------------------------------------------------------


def test_a_chain_that_is_to_yield_ends_after_its_step(opened: Open) -> None:
    engine = opened()
    ids = prompt_of(engine, 40)
    expected = ids_of(plain(engine, begin(engine, ids, OFTEN), 60))
    slot = begin(engine, ids, OFTEN)
    said = ids_of(plain(engine, slot, 1))
    while len(said) < 60:
        assert engine.reserve(slot, 1, 8, 3)
        engine.stop_after_step()
        (chunk,), _ = engine.draft_and_verify([(slot, 60 - len(said))], 3, 8)
        # A step, or as many as a GPU has been given meanwhile.
        assert len(chunk.of_steps) == 1 if SETTINGS["device"] == "cpu" else len(chunk.of_steps) <= 8
        said += chunk.ids
    assert said == expected


def test_a_chain_that_is_cancelled_loses_nothing(opened: Open) -> None:
    """Wherever that is: what it gave is right, and the sequence goes on."""
    engine = opened()
    ids, n = prompt_of(engine, 40), 150
    expected = ids_of(plain(engine, begin(engine, ids, OFTEN), n))
    slot, said, ended = begin(engine, ids, OFTEN), list[int](), threading.Event()

    def cancel() -> None:
        while not ended.wait(0.003):
            engine.cancel()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    try:
        until = time.monotonic() + 60
        while len(said) < n and time.monotonic() < until:
            length = engine.length(slot)
            known = len(ids) + len(said)
            if known - length > 1:  # a state went back to a checkpoint
                assert engine.reserve(slot, known - length - 1)
                engine.step([(slot, known - length - 1, False, 0, [])])
                continue
            assert engine.reserve(slot, 1, 6, 3)
            said += engine.draft_and_verify([(slot, n - len(said))], 3, 6)[0][0].ids
    finally:
        ended.set()
        canceller.join()
    assert said == expected


# -- refusals ------------------------------------------------------------------------------------------------


def test_what_is_no_such_chain_is_refused(hybrid: Open) -> None:
    engine = hybrid(parallel=4)
    slot = begin(engine, prompt_of(engine, 20), GREEDY)
    plain(engine, slot, 1)
    for drafts in (0, 9):
        with pytest.raises(ValueError, match=f"a head writes 1..8 drafts at a time, not {drafts}"):
            engine.draft_and_verify([(slot, 0)], drafts, 1)
    with pytest.raises(ValueError, match="a step has 36 rows that sample, more than 32"):
        engine.draft_and_verify([(slot, 0)] * 4, 8, 1)
    with pytest.raises(ValueError, match="a step has 0 steps"):
        engine.draft_and_verify([(slot, 0)], 1, 0)
    assert MAX_CHAIN == 256
