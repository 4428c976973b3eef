"""The scheduler for a long time: random arrivals, lengths, cancels, page shortages, readers that go away.

The engine is fake and counts: slots, pages, positions. The clock is its own. What happens to one while a
step runs (somebody comes, cancels or leaves) happens inside the engine's call, as other threads do it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

from akunu._core import PAGE
from akunu.api.scheduling import Scheduler, Sequence, scheduler, sequence
from akunu.api.scheduling.planning import Planner

from .fakes import FakeChunk

CONTEXT, CHUNK, PARALLEL, PAGES = 512, 64, 6, 24
MOST_TEXTS = 20
END = 0


class Clock:
    """Stands for the module `time`."""

    def __init__(self) -> None:
        self.now = 1.0

    def perf_counter(self) -> float:
        return self.now

    monotonic = perf_counter


@dataclass
class Slot:
    key: int
    tokens: int  # that are known
    length: int
    pages: int
    prompt: int
    checkpoints: list[int] = field(default_factory=list)


def token(key: int, position: int, prompt: int) -> int:
    """What a sequence's model writes: a third of them repeat themselves; some end."""
    n = position - prompt
    if key % 7 == 0 and n == key % 50:
        return END
    return 1 + (key * 31 + (n % 5 if key % 3 == 0 else n * n)) % 97


@dataclass
class CountingEngine:
    """Slots and pages, each of which is somebody's or nobody's."""

    clock: Clock
    rng: random.Random
    during: Any = None  # called inside each step
    slots: dict[int, Slot] = field(default_factory=dict)
    free: int = PAGES
    calls: int = 0
    steps: int = 0
    stopped: bool = False
    every: int = 0
    """Their state goes back to multiples of this or a prompt's last page; 0: there is none."""
    went_back: int = 0
    pinned: int = 0
    """Pages; what a sequence needs to fill the context is left."""
    context = CONTEXT
    chunk = CHUNK
    parallel = PARALLEL
    max_logits = 32
    whole_images = False
    paged_experts: ClassVar = {"bytes": 0}

    @property
    def pages(self) -> dict[str, Any]:
        return {
            "pages": PAGES,
            "held": PAGES - self.free,
            "pinned": self.pinned,
            "cached": 0,
            "page_bytes": 1,
            "windows": [],
        }

    def pin(self, pages: int) -> None:
        """So many more are pinned, or fewer; as many as are free and may be."""
        pages = max(min(pages, self.free, PAGES - CONTEXT // PAGE - 1 - self.pinned), -self.pinned)
        self.pinned += pages
        self.free -= pages

    def open(self) -> int | None:
        for slot in range(PARALLEL):
            if slot not in self.slots:
                self.slots[slot] = Slot(0, 0, 0, 0, 0)
                return slot
        return None

    def close_slot(self, slot: int) -> None:
        self.free += self.slots.pop(slot).pages
        assert self.free <= PAGES

    def begin(self, ids: Any, *, slot: int, key: int, prompt: int, root: int = 0) -> int:
        """Goes on with what the sequence's model wrote; some of it may be cached."""
        at = self.slots[slot]
        assert at.pages == 0 and prompt <= len(ids) <= CONTEXT
        assert ids[prompt:].tolist() == [token(key, i, prompt) for i in range(prompt, len(ids))]
        cached = self.rng.choice((0, 0, (len(ids) - 1) // PAGE * PAGE))
        if cached // PAGE > self.free:
            cached = 0
        self.slots[slot] = Slot(key, len(ids), cached, cached // PAGE, prompt, [0, cached])
        self.free -= cached // PAGE
        return cached

    def reserve(self, slot: int, rows: int, steps: int = 1, drafts: int = 0) -> bool:
        at = self.slots[slot]
        end = at.length + rows + drafts + steps - 1
        assert rows >= 1 and at.length + rows <= at.tokens and end <= CONTEXT
        more = max(-(-end // PAGE) - at.pages, 0)
        if more > self.free:
            return False
        at.pages += more
        self.free -= more
        return True

    def step(self, parts: Any, steps: int = 1, masks: None = None) -> tuple[list[FakeChunk], None]:
        self.calls += 1
        self.stopped = False
        rows = sum(n + len(drafts) for _, n, _, _, drafts in parts)
        assert parts and rows <= max(CHUNK, 32) and len({slot for slot, *_ in parts}) == len(parts)
        self.during()
        done = 1 if self.stopped else steps
        self.steps += done
        self.clock.now += 0.001 * done * (1 + 0.05 * rows)
        chunks = [
            self._run(slot, n, samples, limit, done, drafts) for slot, n, samples, limit, drafts in parts
        ]
        if self.every and self.stopped and self.rng.random() < 0.5:  # in the middle of a step
            for chunk, (slot, *_) in zip(chunks, parts, strict=True):
                chunk.length = self._go_back(slot, self.slots[slot].length, lost=True)
        return chunks, None

    def _go_back(self, slot: int, n: int, lost: bool = False) -> int:
        at = self.slots[slot]
        if self.every and (lost or n < at.length):
            n = max(c for c in at.checkpoints if c <= n)
            self.went_back += 1
        at.length = n
        at.checkpoints = [c for c in at.checkpoints if c <= n]
        self.free += at.pages - -(-n // PAGE)
        at.pages = -(-n // PAGE)
        return n

    def _run(
        self, slot: int, rows: int, samples: bool, limit: int, steps: int, drafts: list[int]
    ) -> FakeChunk:
        at = self.slots[slot]
        assert at.length + rows + len(drafts) + steps - 1 <= at.pages * PAGE, "not reserved"
        ids: list[int] = []
        if self.every:
            room = self.every - at.length % self.every
            if at.length < (end := (at.prompt - 1) // PAGE * PAGE):
                room = min(room, end - at.length)
            samples = samples and rows <= room
            rows, steps = min(rows, room), min(steps, room)
            drafts = drafts[: room - rows]
        at.length += rows
        if samples:
            assert at.length == at.tokens
            while True:
                ids.append(token(at.key, at.tokens, at.prompt))
                at.tokens += 1
                goes_on = ids == drafts[: len(ids)] if drafts else len(ids) < steps
                if not goes_on or ids[-1] == END or len(ids) == limit:
                    break
                at.length += 1
        if self.every and (at.length % self.every == 0 or at.length == (at.prompt - 1) // PAGE * PAGE):
            at.checkpoints.append(at.length)
        return FakeChunk(ids, at.length, ids[-1:] == [END])

    def truncate(self, n: int, slot: int) -> int:
        at = self.slots[slot]
        assert n <= at.length
        at.tokens = n
        return self._go_back(slot, n)

    def cancel(self) -> None:
        self.stopped = True

    stop_after_step = cancel


@dataclass
class Reader:
    sequence: Sequence
    key: int
    progressed: int  # the engine's call at which something was last ready, or it came back
    taken: int = 0
    back: float = 0.0  # reads nothing before this time


class Simulation:
    def __init__(
        self,
        seed: int,
        monkeypatch: pytest.MonkeyPatch,
        priorities: tuple[int, ...] = (0,),
        every: int = 0,
        pins: bool = False,
        salts: tuple[str | None, ...] = (None,),
    ) -> None:
        self.pins = random.Random(seed) if pins else None
        self.rng = random.Random(seed)
        self.priorities, self.favours = priorities, random.Random(seed)
        self.salts = salts
        self.sequences: list[Sequence] = []
        self.arrived: dict[Sequence, float] = {}
        self.clock = Clock()
        monkeypatch.setattr(scheduler, "time", self.clock)
        monkeypatch.setattr(sequence, "time", self.clock)
        self.engine = CountingEngine(self.clock, self.rng, every=every)
        self.engine.during = self.others
        self.scheduler = Scheduler(self.engine)
        self.readers: list[Reader] = []
        self.finished = self.left = self.keys = 0
        self.longest_wait = 0

    def arrive(self) -> None:
        rng = self.rng
        self.keys += 1
        n = rng.randint(1, 300) if rng.random() < 0.3 else rng.randint(1, 40)
        made = Sequence(
            np.full(n, self.keys % 1000, np.uint32) + np.arange(n, dtype=np.uint32) % 3,
            {"key": self.keys, "prompt": n},
            limit=rng.choice((0, 1, 5, 60, 400)),
            speculative=rng.random() < 0.3,
            priority=self.favours.choice(self.priorities),
            salt=self.favours.choice(self.salts),
        )
        self.sequences.append(made)
        self.arrived[made] = self.clock.now
        self.scheduler.submit(made)
        self.readers.append(Reader(made, self.keys, self.engine.calls))

    def leave(self, reader: Reader) -> None:
        self.readers.remove(reader)
        self.scheduler.end(reader.sequence, len(reader.sequence.prompt) + reader.taken)

    def others(self) -> None:
        """What other threads do, before, between and inside steps."""
        rng = self.rng
        if self.pins is not None and self.pins.random() < 0.1:
            self.engine.pin(self.pins.randint(-9, 9))
        if rng.random() < 0.2 and len(self.readers) < MOST_TEXTS:
            self.arrive()
        if self.readers and rng.random() < 0.01:
            self.scheduler.cancel(rng.choice(self.readers).sequence)
        if self.readers and rng.random() < 0.01:
            self.leave(rng.choice(self.readers))
            self.left += 1
        if self.readers and rng.random() < 0.01:
            rng.choice(self.readers).back = self.clock.now + rng.choice((0.1, 3.0))

    def read(self, reader: Reader) -> None:
        s, now = reader.sequence, self.engine.calls
        if self.clock.now < reader.back:
            reader.progressed = now
            return
        while s.ready:
            for found in s.ready.popleft().ids:
                assert found == token(reader.key, len(s.prompt) + reader.taken, len(s.prompt))
                reader.taken += 1
            reader.progressed = now
        assert s.error is None
        if s.ended or s.cancelled:
            self.finished += s.ended
            self.leave(reader)
        else:
            self.longest_wait = max(self.longest_wait, now - reader.progressed)

    def run(self, steps: int) -> None:
        while self.engine.steps < steps:
            self.others()
            if not self.readers:
                self.arrive()
            self.scheduler._leading = True
            progress = self.scheduler._step()
            self.scheduler._stop_leading()
            if not progress:
                self.clock.now += 0.02
            for reader in list(self.readers):
                self.read(reader)
            if self.engine.calls % 64 == 0:
                self.check()

    def check(self) -> None:
        """Every page is somebody's or free, and slots are those of sequences that run."""
        slots = self.engine.slots
        assert self.engine.free + self.engine.pinned + sum(slot.pages for slot in slots.values()) == PAGES
        running = self.scheduler.running()
        assert sorted(s.slot for s in running) == sorted(slots)
        assert all(slots[s.slot].length == s.length for s in running)

    def finish(self) -> None:
        for reader in list(self.readers):
            self.leave(reader)
        assert not self.engine.slots and self.engine.free + self.engine.pinned == PAGES
        assert not self.scheduler.running() and not self.scheduler.stats.waiting


def simulate(
    seed: int,
    steps: int,
    monkeypatch: pytest.MonkeyPatch,
    priorities: tuple[int, ...] = (0,),
    every: int = 0,
    pins: bool = False,
    salts: tuple[str | None, ...] = (None,),
) -> Simulation:
    simulation = Simulation(seed, monkeypatch, priorities, every, pins, salts)
    simulation.run(steps)
    simulation.finish()
    return simulation


@pytest.mark.table
@pytest.mark.parametrize("seed", range(3))
def test_nobody_starves_and_no_page_is_lost(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    done = simulate(seed, 10_000, monkeypatch)
    stats = done.scheduler.stats
    assert done.longest_wait < 500
    assert done.finished > 400 and done.left > 30 and stats.accepted_tokens > 1000


@pytest.mark.table
@pytest.mark.parametrize("seed", range(2))
def test_nor_where_pages_are_pinned(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    done = simulate(seed, 10_000, monkeypatch, pins=True)
    assert done.longest_wait < 500 and done.finished > 300


@pytest.mark.table
@pytest.mark.parametrize("seed", range(2))
def test_nor_where_sequences_have_a_state_that_goes_back_to_checkpoints_only(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = simulate(seed, 10_000, monkeypatch, every=4 * PAGE)
    assert done.longest_wait < 500
    assert done.finished > 300 and done.engine.went_back > 100


def waiting(simulation: Simulation, priority: int) -> float:
    """Mean seconds that sequences of a priority waited for their slots."""
    begun = [
        sequence
        for sequence in simulation.sequences
        if sequence.priority == priority and sequence.began is not None
    ]
    return sum(sequence.began - simulation.arrived[sequence] for sequence in begun) / len(begun)


def test_a_higher_priority_goes_first_and_a_lower_one_is_not_starved(monkeypatch: pytest.MonkeyPatch) -> None:
    done = simulate(1, 20_000, monkeypatch, priorities=(-1, 0, 0, 1))
    assert done.longest_wait < 2000
    assert waiting(done, 1) < 0.5 * waiting(done, 0) < 0.5 * waiting(done, -1)


def test_who_asks_for_little_waits_for_little_beside_one_who_asks_for_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = simulate(1, 20_000, monkeypatch, salts=("much",) * 30 + ("little",))

    def mean(salt: str) -> float:
        begun = [
            sequence for sequence in done.sequences if sequence.salt == salt and sequence.began is not None
        ]
        assert len(begun) > 20
        return sum(sequence.began - done.arrived[sequence] for sequence in begun) / len(begun)

    assert done.longest_wait < 2000
    assert mean("little") < 0.4 * mean("much")


def test_owners_take_turns_and_sequences_of_one_are_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = Simulation(2, monkeypatch)

    def submitted(salt: str | None, n: int) -> list[Sequence]:
        prompt = np.ones(5, np.uint32)
        made = [Sequence(prompt, {"key": 0, "prompt": 5}, limit=5, salt=salt) for _ in range(n)]
        for each in made:
            simulation.scheduler.submit(each)
        return made

    bob, alice, eve = submitted("bob", 6), submitted("alice", 2), submitted(None, 1)
    order = simulation.scheduler._planner.waiting
    assert order == [bob[0], alice[0], eve[0], bob[1], alice[1], *bob[2:]]


def test_a_sequence_is_overtaken_by_a_bounded_number_of_later_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many of a higher priority come."""
    simulation = Simulation(2, monkeypatch)
    low = Sequence(np.ones(5, np.uint32), {"key": 0, "prompt": 5}, limit=5)
    rest = [Sequence(np.ones(5, np.uint32), {"key": 0, "prompt": 5}, priority=2) for _ in range(500)]
    for each in (low, *rest):
        simulation.scheduler.submit(each)
    order = simulation.scheduler._planner.waiting
    assert order.index(low) == 2 * sequence.HEAD_START - 1
    assert [sequence for sequence in order if sequence is not low] == rest


def test_sequences_without_room_do_not_run_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was squeezed out comes back when there is room for it, not to be squeezed out again at once."""
    squeezed = []
    monkeypatch.setattr(
        Planner,
        "_squeeze_out",
        lambda self, sequence, do=Planner._squeeze_out: (squeezed.append(sequence), do(self, sequence)),
    )
    done = simulate(4, 10_000, monkeypatch)
    assert 10 < len(squeezed) < done.scheduler.stats.prompts


@pytest.mark.long
@pytest.mark.in_turn
def test_a_million_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    assert simulate(9, 1_000_000, monkeypatch).longest_wait < 2000
