"""Who runs in the next step.

There is no thread of its own: of the threads that wait for text, one leads. It plans a step for all sequences
whose readers keep up, runs it, hands out what came of it, and makes way. So a lone reader
drives the engine itself, and many readers share steps.

Who goes first is a matter of turns: the order of arrival, in which a higher priority is a head start. A step
has a budget of rows. Running texts come first, each with a row, then prompts in the order of their
arrival. Without prompts a step is a chain of tokens, as long as the shortest that its texts would take alone;
it ends early when somebody comes. Where texts repeat themselves or each other, it is one token and drafts of
those that follow. Beside a text that has a form it is one token for all: what may come next is known when
that is drawn, and a chain has no rows that are forced. Tokens that the form leaves no choice about are rows
of the next step.

A text can be suspended at any time: its tokens are known, its pages stay in the cache as long as there is
room, and what is drawn depends on seed and position alone. That is what happens to readers that went away,
when others wait for a slot, and to the youngest, when there are no pages left. It keeps its place in the
order of arrival. Squeezed out for want of pages, it comes back when there is room for all of it, and nobody
overtakes it meanwhile: the oldest always goes on, so everybody's turn comes.
"""

from __future__ import annotations

import math
import threading
import time
from bisect import insort
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from akunu.errors import AkunuError, BusyError, InvalidArgumentError
from akunu.interrupts import allowed, check, held, wait
from akunu.scheduling.choosing import NO_DRAFTS, Drafts, choose_drafts
from akunu.scheduling.counts import PAGE, Beginnings, ModelStats
from akunu.scheduling.disk import ASIDE_SECONDS, BESIDE_SECONDS, DiskTier
from akunu.scheduling.drafts import StepCosts
from akunu.scheduling.sequence import Ran, Sequence, fitting

if TYPE_CHECKING:
    import numpy.typing as npt

    from akunu._core import Chunk, Engine
    from akunu.scheduling.page_files import PageFiles
    from akunu.scheduling.sequence import Written
    from akunu.scheduling.writer import Writer

__all__ = ["Scheduler"]

ABSENT_SECONDS: Final = 0.25
"""A reader that leaves its text unread for so long, while others wait for a slot, has gone away."""
MIXED_ROWS: Final = 64
"""Rows of prompts in a step that others draw tokens in: what a new prompt may cost them."""
MAX_STALLED: Final = 8
"""Steps in a row that gave nothing."""


class Part(NamedTuple):
    """A text's part of a step: what `Engine.step` takes, and how many drafts are to be written first."""

    sequence: Sequence
    written: int
    slot: int
    rows: int
    draws: bool
    limit: int
    drafts: list[int]


class Plan(NamedTuple):
    """A step."""

    parts: list[Part]
    steps: int = 1
    decoding: bool = False
    """Each part is a text's last token, and maybe drafts."""


_turn = attrgetter("turn")


class Scheduler:
    """The texts of one engine.

    Parameters
    ----------
    engine
        Used by nobody else.
    files
        Where pages are kept that outlive the memory, and the process.
    writer
        Writes ahead of the engine.
    """

    def __init__(self, engine: Engine, files: PageFiles | None = None, writer: Writer | None = None) -> None:
        self._engine = engine
        self._writer = writer
        self._disk = DiskTier(files, self._read_page, lambda: bool(self._running)) if files else None
        self._between: deque[tuple[npt.NDArray[np.uint32], Future[npt.NDArray[np.uint8] | None]]] = deque()
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._leading = False
        self._readers = 0  # that wait for a step
        self._calls = 0  # that wait for the engine between two steps
        self._called = False  # one had it since the last step
        self._stepping: list[Part] = []
        self._arrivals = count()
        self._waiting: list[Sequence] = []  # both in the order of their turns
        self._running: list[Sequence] = []
        self._ending: deque[tuple[Sequence, int]] = deque()
        self._releasing = False
        self._costs = StepCosts()
        self._ended_at = -math.inf  # the last step
        self._beginnings = Beginnings()
        self._totals: Counter[str] = Counter()
        self._pinned: set[bytes] = set()
        self._pages = engine.pages
        self._stalled = 0
        self._closed = False

    # -- for readers -----------------------------------------------------------------------------------------

    def submit(self, sequence: Sequence) -> None:
        """Line up for a slot."""
        with held, self._lock:
            self._check_open()
            # At least one token is drawn, and all known ones can be run.
            sequence.follow(min(self._engine.context - sequence.known, sequence.limit - 1))
            sequence.arrive(next(self._arrivals))
            insort(self._waiting, sequence, key=_turn)
            self._engine_wanted()

    def next(self, sequence: Sequence) -> Chunk | Written | None:
        """The next tokens of a text; None when it has ended or was cancelled. Waits, or leads.

        Raises
        ------
        BusyError
            If no slot became free within its `wait_timeout`.
        """
        patience = math.inf if sequence.wait_timeout is None else sequence.wait_timeout
        deadline = patience if patience == math.inf else time.monotonic() + patience
        while True:
            check()  # not under the lock: a handler may wait for another thread
            with self._lock:
                if sequence.ready:
                    return sequence.ready.popleft()
                if sequence.error is not None:
                    raise sequence.error
                if sequence.ended or sequence.cancelled:
                    return None
                if self._leading or (self._calls and not self._called):
                    self._check_patience(sequence, deadline)
                    self._readers += 1
                    try:
                        wait(self._changed, 0.02 if sequence.began is None and patience < math.inf else None)
                    finally:
                        self._readers -= 1
                    continue
                self._leading = True
            progress = False
            try:
                progress = self._step()
            finally:
                self._stop_leading()
            with self._lock:
                if not progress and not (self._leading or sequence.ready or sequence.cancelled):
                    self._check_patience(sequence, deadline)
                    wait(self._changed, 0.02)  # until a slot or pages are free

    def _check_patience(self, sequence: Sequence, deadline: float) -> None:
        waits = sequence.began is None and len(self._running) >= self._engine.parallel
        if waits and time.monotonic() >= deadline:
            raise BusyError(
                f"the model is still busy after {sequence.wait_timeout:g} s (wait_timeout); wait longer, or "
                "end what runs by Model.cancel()"
            )

    def cancel(self, sequence: Sequence) -> None:
        """End a text as soon as possible, whether it runs or waits; what it has is kept."""
        with held, self._lock:
            sequence.cancelled = True
            if self._in_step(sequence):
                # A prompt's chunk may take long; a chain with others ends after its token.
                if len(self._stepping) == 1:
                    self._engine.cancel()
                else:
                    self._engine.stop_after_step()
            self._changed.notify_all()

    def end(self, sequence: Sequence, keep: int) -> None:
        """Give a text's slot back; the cache keeps its first `keep` tokens."""
        with held, self._lock:
            sequence.cancelled = True
            self._ending.append((sequence, keep))
            if not self._leading:
                self._release_ended()
            elif self._in_step(sequence):
                self._engine.stop_after_step()
            self._changed.notify_all()

    def running(self) -> list[Sequence]:
        """The texts that have slots."""
        with self._lock:
            return list(self._running)

    @property
    def stats(self) -> ModelStats:
        """Counts, those of pages as of the end of the latest step."""
        with self._lock:
            return ModelStats(
                waiting=sum(not sequence.cancelled for sequence in self._waiting),
                running=len(self._running),
                parallel=self._engine.parallel,
                pages=self._pages["pages"],
                pages_held=self._pages["held"],
                pages_pinned=self._pages["pinned"],
                pages_cached=self._pages["cached"],
                page_bytes=self._pages["page_bytes"],
                **{f"disk_{name}": n for name, n in self._disk.counts.items()} if self._disk else {},
                **self._totals,
            )

    def pin(self, ids: npt.NDArray[np.uint32]) -> bool:
        """Keep the pages of `ids`, whole ones, in the cache until `unpin`; False where it does not hold them.

        Pinned twice is pinned once.
        """
        key = ids.tobytes()
        with self.exclusive() as engine:
            if key not in self._pinned:
                if not engine.pin(ids):
                    return False
                self._pinned.add(key)
        return True

    def unpin(self, ids: npt.NDArray[np.uint32]) -> None:
        """Let the cache give these pages away again.

        Raises
        ------
        InvalidArgumentError
            They are not pinned.
        """
        key = ids.tobytes()
        with self.exclusive() as engine:
            if key not in self._pinned:
                raise InvalidArgumentError("prompt: it is not pinned")
            self._pinned.remove(key)
            engine.unpin(ids)

    @contextmanager
    def exclusive(self, tokens: int = 0) -> Iterator[Engine]:
        """The engine for one call, between two steps, with a slot and pages free for a text of so many.

        A call that waits goes before the next step, and a step that is waited for before the next call.
        """
        with held:
            with self._lock:
                self._check_open()
                self._engine_wanted()
                self._calls += 1
                try:
                    while self._leading or (self._called and self._readers):
                        self._changed.wait(0.02)
                    self._check_open()
                    self._leading = self._called = True
                finally:
                    self._calls -= 1
                    self._changed.notify_all()
            try:
                check()
                with self._lock:
                    while tokens and self._running and not self._has_free(tokens):
                        self._suspend(self._running[-1])
                with allowed(self._engine.cancel):
                    yield self._engine
            finally:
                self._stop_leading()

    def close(self) -> None:
        """Cancel what runs, wait for it, and free the engine; may be called twice."""
        with held, self._lock:
            self._closed = True
            for sequence in self._running:
                sequence.cancelled = True
            for sequence in self._waiting:
                sequence.error = _closed()
            if self._leading:
                self._engine.cancel()
            self._changed.notify_all()
            while self._leading:
                self._changed.wait()
            for sequence in self._running:
                self._keep(sequence)
            for waiting in (self._waiting, self._running, self._ending):
                waiting.clear()
        self.flush()
        with held, self._lock:
            self._engine.close()
            if self._writer is not None:
                self._writer.close()

    def flush(self) -> None:
        """Wait until the pages of texts that have ended are in their files."""
        if self._disk is not None:
            self._disk.flush()

    # -- for the leader --------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise _closed()

    def _in_step(self, sequence: Sequence) -> bool:
        return any(part.sequence is sequence for part in self._stepping)

    def _engine_wanted(self) -> None:
        if self._leading:
            self._engine.stop_after_step()

    def _read_page(self, ids: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint8] | None:
        """`Engine.read_page` between two steps, for a thread that reads no text."""
        with self._lock:
            if not self._leading:
                return self._engine.read_page(ids)
            page: Future[npt.NDArray[np.uint8] | None] = Future()
            self._between.append((ids, page))
        return page.result()

    def _stop_leading(self) -> None:
        with self._lock:
            self._stepping = []
            while self._between:
                ids, page = self._between.popleft()
                try:
                    page.set_result(self._engine.read_page(ids))
                except Exception as error:
                    page.set_exception(error)
            self._leading = False
            self._changed.notify_all()
            self._release_ended()
            if not self._closed:
                self._pages = self._engine.pages

    def _step(self) -> bool:
        """Plan and run one step; False when nothing could run."""
        with self._lock:
            self._check_open()
            self._called = False
            parts, steps, decoding = self._plan()
            kept = [s for s in self._running if s.kept] if self._disk is not None else []
            self._stepping = parts
        if kept:
            self._restore(kept, bool(parts))
        if not parts:
            return bool(kept)
        began = time.perf_counter()
        self._costs.paused(began - self._ended_at)
        parts = self._write_ahead(parts)
        formed = [part for part in parts if part.draws and part.sequence.constraint is not None]
        failed = dict[Sequence, AkunuError]()
        masks = (lambda: self._set_masks(formed, failed)) if formed else None
        asked = [part[2:] for part in parts]
        start = time.perf_counter()
        try:
            with allowed(self._engine.cancel):
                chunks, interrupt = self._engine.step(asked, steps, masks)
        except BaseException as error:
            with self._lock:
                for part in parts:
                    part.sequence.error = error
            if isinstance(error, Exception):  # of these texts; their readers raise it
                return True
            raise
        ended = self._ended_at = time.perf_counter()
        with self._lock:
            ran = Ran(steps, fitting(steps, ended - began), ended - began, ended, self._engine.context)
            moved, rows, most, drawn = False, 0, 0, 0
            for part, chunk in zip(parts, chunks, strict=True):
                sequence, drafts, new = part.sequence, len(part.drafts), len(chunk.ids)
                rows += part.rows + drafts
                moved = moved or new > 0 or chunk.length != sequence.length
                most = max(most, new)
                if sequence in failed:  # what was drawn without a mask is dropped
                    sequence.error = failed[sequence]
                    continue
                forced = sequence.take(chunk, ran, drafts, part.written > 0)
                if forced:
                    self._engine.extend(part.slot, forced)
                drawn += new
                if drafts and new:
                    self._totals["drafted_tokens"] += drafts
                    self._totals["accepted_tokens"] += new - 1
                    if part.written:
                        self._totals["written_tokens"] += drafts
                        self._totals["written_accepted_tokens"] += new - 1
            if most and decoding:
                self._costs.measured(rows, (ended - start) / min(steps, most))
            self._totals["generated_tokens"] += drawn
        if interrupt is not None:
            raise interrupt
        # A step that was cancelled, maybe for a text that is no more, gives nothing.
        self._stalled = 0 if moved or failed else self._stalled + 1
        self._totals["steps"] += moved
        if self._stalled == MAX_STALLED:
            raise AkunuError("the engine makes no progress; this is a defect of Akunu, please report it")
        return True

    def _write_ahead(self, parts: list[Part]) -> list[Part]:
        """The parts with the drafts that the smaller model writes for them."""
        if self._writer is None or not (wanted := [(p.sequence, p.written) for p in parts if p.written]):
            return parts
        found = dict(zip((s for s, _ in wanted), self._writer.write(wanted), strict=True))
        return [part._replace(drafts=found.get(part.sequence, part.drafts)) for part in parts]

    def _set_masks(self, parts: list[Part], failed: dict[Sequence, AkunuError]) -> None:
        """While the engine runs what comes before, tell it what forms allow next; some may allow nothing."""
        for part in parts:
            try:
                masks = part.sequence.masks(part.drafts, self._engine.vocab)
                if masks is not None:
                    self._engine.set_mask(part.slot, masks)
            except AkunuError as error:
                failed[part.sequence] = error

    def _restore(self, sequences: list[Sequence], beside: bool) -> None:
        """Read pages that texts begin with from their files."""
        assert self._disk is not None
        until = time.perf_counter() + (BESIDE_SECONDS if beside else ASIDE_SECONDS)
        for sequence in sequences:
            self._disk.restore(self._engine, sequence, until)

    def _plan(self) -> Plan:
        """The next step."""
        self._release_ended()
        self._admit()
        writing, prompts = list[Sequence](), list[Sequence]()
        for sequence in self._running:
            if sequence.hungry and not sequence.kept:
                (writing if sequence.writing else prompts).append(sequence)
        context, budget = self._engine.context, self._engine.chunk
        all_rows = sum(s.left for s in writing)
        steps, decoding, drafts = 1, not prompts and all_rows == len(writing), dict[Sequence, Drafts]()
        if prompts and writing:
            budget = min(budget, all_rows + MIXED_ROWS)
        elif writing:
            most = self._engine.max_logits
            drafts = choose_drafts(writing, all_rows, most, context, self._costs, self._writer)
            if decoding and not drafts:
                chain, wanted = math.inf, 0.0
                for s in writing:
                    chain = min(chain, s.chain, context - s.length)
                    if s.constraint is not None:
                        chain = min(chain, s.constraint.ahead)
                    wanted = max(wanted, s.limit - len(s.tokens))
                steps = int(max(1, min(chain, wanted)))
        parts, reserve = list[Part](), self._engine.reserve
        for sequence in (*writing, *prompts):
            left, slot = sequence.left, sequence.slot
            rows = min(left, budget)
            if rows <= 0 or slot is None:  # no budget left, or suspended for one before
                continue
            guess, written = drafts.get(sequence, NO_DRAFTS)
            if not reserve(slot, rows, steps, written or len(guess)):
                guess, written = NO_DRAFTS
                if not self._reserve(sequence, rows, steps, parts):
                    continue
            draws = rows == left and sequence.limit > 0
            parts.append(Part(sequence, written, slot, rows, draws, _limit(sequence), guess))
            budget -= rows
        return Plan(parts, steps, decoding)

    def _reserve(self, sequence: Sequence, rows: int, steps: int, parts: list[Part]) -> bool:
        """Pages for a part, taken from the youngest others if need be; False when it has to wait."""
        while not self._engine.reserve(_slot(sequence), rows, steps):
            planned = [part.sequence for part in parts]
            others = [s for s in self._running if s is not sequence and s not in planned]
            idle = [s for s in others if not s.hungry]
            if idle:
                self._suspend(idle[-1])
            elif others and self._running.index(others[-1]) > self._running.index(sequence):
                self._squeeze_out(others[-1])
            elif planned or others:
                self._squeeze_out(sequence)
                return False
            else:
                raise AkunuError(
                    "the cache has no page left for a text that is alone; this is a defect of Akunu"
                )
        return True

    def _admit(self) -> None:
        """Slots for those who wait, in their order; for readers that went away when they have come back."""
        for sequence in [s for s in self._waiting if s.hungry and not s.ready]:
            if self._soon_cached(sequence):
                continue
            while sequence.squeezed_out and not self._has_room(sequence):
                if not self._suspend_absent():
                    return  # nor is there for those behind it, or it would never have
            if (slot := self._engine.open()) is None:
                if not self._suspend_absent():
                    return
                slot = self._engine.open()
                assert slot is not None
            self._waiting.remove(sequence)
            try:
                cached = self._engine.begin(sequence.ids(), **sequence.settings, slot=slot)
            except BaseException as error:
                self._engine.close_slot(slot)
                sequence.error = error
                continue
            if self._disk is not None:
                sequence.kept.extend(self._disk.find(sequence.ids(), cached))
            if sequence.began is None:
                self._count_prompt(sequence, min(cached, len(sequence.prompt)))
            sequence.place(slot, cached)
            insort(self._running, sequence, key=_turn)

    def _suspend_absent(self) -> bool:
        """Take the slot of a text whose reader went away; False when there is none."""
        absent = [s for s in self._running if s.idle_for() > ABSENT_SECONDS]
        if absent:
            self._suspend(absent[-1])
            self._pages = self._engine.pages
        return bool(absent)

    def _soon_cached(self, sequence: Sequence) -> bool:
        """Whether a text that runs is still reading a beginning that this one shares: better wait for it."""
        return any(
            other.hungry
            and other.length < len(other.prompt)
            and _common(sequence.prompt, other.prompt) - other.length >= PAGE
            for other in self._running
        )

    def _has_free(self, tokens: int) -> bool:
        """Whether a slot and so many tokens' pages are free."""
        pages = self._engine.pages
        free = pages["pages"] - pages["held"]
        return len(self._running) < self._engine.parallel and free * PAGE >= tokens

    def _has_room(self, sequence: Sequence) -> bool:
        """Whether there are pages for all of a text, and one more for each that runs."""
        if not self._running:
            return True
        ids = sequence.ids()
        shared = max(min(_common(ids, other.ids()), other.length) for other in self._running) // PAGE
        pledged = sum(other.left // PAGE + 1 for other in self._running)
        return sequence.known // PAGE + 1 - shared + pledged <= self._pages["pages"] - self._pages["held"]

    def _count_prompt(self, sequence: Sequence, cached: int) -> None:
        prompt = sequence.prompt
        known = self._beginnings.known(prompt[:-1])  # the last token always runs
        whole = cached // PAGE * PAGE + len(sequence.kept) * PAGE if sequence.kept else cached
        kind = "misses_evicted" if whole < known else "hits" if whole >= PAGE else "misses_new"
        self._totals.update({"prompts": 1, "prompt_tokens": len(prompt), "cached_tokens": cached, kind: 1})
        self._totals["hits_disk"] += bool(sequence.kept)

    def _suspend(self, sequence: Sequence) -> None:
        """Take a text's slot; it lines up again, where its turn is."""
        self._release(sequence)
        insort(self._waiting, sequence, key=_turn)

    def _squeeze_out(self, sequence: Sequence) -> None:
        self._suspend(sequence)
        sequence.squeezed_out = True

    def _release_ended(self) -> None:
        """Take back the slots of texts that have ended.

        One may end at any line of this class: where the garbage collector finds its stream. So an end is only
        noted, and what is noted meanwhile is done here too.
        """
        while self._ending and not (self._releasing or self._closed):
            self._releasing = True
            try:
                if self._ending:
                    self._take_back(*self._ending.popleft())
            finally:
                self._releasing = False

    def _take_back(self, sequence: Sequence, keep: int) -> None:
        if sequence.slot is not None:
            if sequence.length > keep:
                sequence.length = self._engine.truncate(keep, sequence.slot)
            self._release(sequence)
            self._pages = self._engine.pages
        elif sequence in self._waiting:
            self._waiting.remove(sequence)

    def _release(self, sequence: Sequence) -> None:
        """Give a slot back; the cache keeps what it can."""
        self._beginnings.remember(sequence.ids()[: sequence.length])
        self._keep(sequence)
        if self._writer is not None:
            self._writer.leave(sequence)
        self._engine.close_slot(_slot(sequence))
        sequence.displace()
        self._running.remove(sequence)

    def _keep(self, sequence: Sequence) -> None:
        if self._disk is not None:
            self._disk.keep(sequence.ids()[: sequence.length])


def _closed() -> AkunuError:
    return AkunuError("the model is closed; load it again")


def _common(a: npt.NDArray[np.uint32], b: npt.NDArray[np.uint32]) -> int:
    """Tokens that two texts begin with alike."""
    n = min(len(a), len(b))
    differ = np.flatnonzero(a[:n] != b[:n])
    return int(differ[0]) if differ.size else n


def _slot(sequence: Sequence) -> int:
    assert sequence.slot is not None
    return sequence.slot


def _limit(sequence: Sequence) -> int:
    """Tokens that it may still draw, in 32 bits; 0: as many as fit."""
    left = sequence.limit - len(sequence.tokens)
    return 0 if left >= 1 << 32 else int(left)
