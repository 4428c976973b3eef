"""Schedule steps: one of the threads that wait for tokens runs the next one for all.

There is no thread of its own: of the threads that wait for tokens, one leads. It has a step planned for all
sequences whose readers keep up (`planning`), runs it, hands out what came of it, and makes way. So a lone
reader drives the engine itself, and many readers share steps.

After a step those readers wake up who have something to take, and one more, the heir, who leads the next one
where nobody else does before. The others sleep on: a hundred who wait for a slot cost a step nothing.

A call that needs the engine for itself goes between two steps. Signals wait while the books are open.
"""

from __future__ import annotations

import math
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from akunu.api.scheduling.disk import ASIDE_SECONDS, BESIDE_SECONDS, DiskTier, PageData
from akunu.api.scheduling.interrupts import allowed, check, held, wait
from akunu.api.scheduling.page_parts import PageParts
from akunu.api.scheduling.planning import Plan, Planner, StepRows
from akunu.api.scheduling.sequence import Adapter, Sequence
from akunu.base.errors import AkunuError, BusyError, InvalidArgumentError

if TYPE_CHECKING:
    from akunu._core import AdapterTensors, Chunk, Engine, PagedExperts
    from akunu.api.scheduling.counts import ModelStats
    from akunu.api.scheduling.model_proposer import Proposer
    from akunu.api.scheduling.page_files import PageFiles
    from akunu.api.scheduling.prefix import Prefix
    from akunu.api.scheduling.sequence import ConstrainedChunk

__all__ = ["Scheduler"]

MAX_STALLED: Final = 8
"""Steps in a row that gave nothing, and that nobody cancelled."""


class Scheduler:
    """The sequences of one engine.

    Parameters
    ----------
    engine
        Used by nobody else.
    files
        Where pages are kept that outlive the memory, and the process.
    proposer
        Writes drafts for the engine.
    """

    def __init__(
        self, engine: Engine, files: PageFiles | None = None, proposer: Proposer | None = None
    ) -> None:
        self._engine = engine
        self._proposer = proposer
        self._drafts = proposer is not None  # until it fails
        self._disk = (
            DiskTier(files, PageParts.of(engine), self._read_page, lambda: bool(self._planner.running))
            if files
            else None
        )
        self._planner = Planner(engine, self._disk, proposer)
        experts = engine.paged_experts
        self._experts: PagedExperts | None = experts if experts["bytes"] else None
        self._between: deque[tuple[Prefix, list[int], Future[PageData | None]]] = deque()
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._leading = False
        self._leader = 0  # the thread that does, or did
        self._readers = dict[Sequence, threading.Condition]()  # those that wait, and what wakes each
        self._heir: Sequence | None = None  # whose reader was woken to lead
        self._calls = 0  # that wait for the engine between two steps
        self._called = False  # one had it since the last step
        self._stepping: list[StepRows] = []
        self._chaining = False  # the step is of more than one token
        self._ending: deque[tuple[Sequence, int]] = deque()
        self._releasing = False
        self._pinned: set[tuple[tuple[str | None, str | None], bytes]] = set()
        self._adapters = set[int]()  # numbers of those that the engine has
        self._stalled = 0
        self._closed = False
        self._frees = False  # the leader frees the engine when it has stopped

    # -- for readers -----------------------------------------------------------------------------------------

    def submit(self, sequence: Sequence) -> None:
        """Line up for a slot."""
        with held, self._lock:
            self._check_open()
            if sequence.adapter is not None and sequence.adapter.number not in self._adapters:
                raise InvalidArgumentError("adapter: it was removed before the generation began")
            self._planner.arrive(sequence)
            self._engine_wanted()

    def next(self, sequence: Sequence) -> Chunk | ConstrainedChunk | None:
        """The next tokens of a sequence; None when it has ended or was cancelled. Waits, or leads.

        Raises
        ------
        BusyError
            If no slot became free within its `wait_timeout`.
        """
        try:
            return self._next(sequence)
        finally:
            with self._lock:
                if self._heir is sequence:  # it has not led: another one has to
                    self._heir = None
                    self._wake_heir()

    def _next(self, sequence: Sequence) -> Chunk | ConstrainedChunk | None:
        patience = math.inf if sequence.wait_timeout is None else sequence.wait_timeout
        deadline = patience if patience == math.inf else time.monotonic() + patience
        while True:
            check()  # not under the lock: a handler may wait for another thread
            with self._lock:
                if sequence.due:
                    chunk = sequence.pop()
                    self._come_back(sequence)
                    return chunk
                if sequence.error is not None:
                    raise sequence.error
                if sequence.ended or sequence.cancelled:
                    return None
                if self._leading or (self._calls and not self._called):
                    self._check_own_step()
                    self._check_patience(sequence, deadline)
                    self._wait(sequence, 0.02 if sequence.began is None and patience < math.inf else None)
                    continue
                self._lead()
                self._heir = sequence  # where nothing can run, it tries again
            progress = False
            try:
                progress = self._step()
            finally:
                self._stop_leading(progress and not sequence.leads_on)
            with self._lock:
                if not progress and not (self._leading or sequence.due or sequence.cancelled):
                    self._check_patience(sequence, deadline)
                    self._wait(sequence, 0.02)  # until a slot or pages are free

    def _come_back(self, sequence: Sequence) -> None:
        """A reader has taken what was ready. A chain that began without its owner ends now.

        The sequence had run as far ahead as it may, and would wait for the whole of that chain.
        """
        if not self._chaining or not sequence.hungry or sequence.slot is None:
            return
        if all(part.sequence.salt != sequence.salt for part in self._stepping):
            self._engine.stop_after_step()

    def _wait(self, sequence: Sequence, seconds: float | None) -> None:
        """Have a reader sleep until its sequence has something, or it is to lead."""
        changed = self._readers[sequence] = threading.Condition(self._lock)
        try:
            wait(changed, seconds)
        finally:
            del self._readers[sequence]

    def _wake(self) -> None:
        """Wake calls that wait for the engine, readers that have what they wait for, and an heir."""
        self._changed.notify_all()
        for sequence, changed in self._readers.items():
            if sequence.due or not sequence.hungry:
                changed.notify()
        self._wake_heir()

    def _wake_heir(self) -> None:
        """Have a reader that waits lead, unless somebody does, or is about to."""
        if self._leading:
            return
        if self._heir is None:
            idle = [each for each in self._readers if each.hungry and not each.due]
            self._heir = next((each for each in idle if each.slot is not None), idle[0] if idle else None)
        if self._heir in self._readers:
            self._readers[self._heir].notify()

    def _check_patience(self, sequence: Sequence, deadline: float) -> None:
        waits = sequence.began is None and len(self._planner.running) >= self._engine.parallel
        if waits and time.monotonic() >= deadline:
            raise BusyError(
                f"the model is still busy after {sequence.wait_timeout:g} s (wait_timeout); wait longer, or "
                "end what runs by Model.cancel()"
            )

    def cancel(self, sequence: Sequence) -> None:
        """End a sequence as soon as possible, whether it runs or waits; what it has is kept."""
        with held, self._lock:
            sequence.cancelled = True
            if self._in_step(sequence):
                # A prompt's chunk may take long; a chain with others ends after its token.
                if len(self._stepping) == 1:
                    self._cancel_step()
                else:
                    self._engine.stop_after_step()
            self._wake()

    def end(self, sequence: Sequence, keep: int) -> None:
        """Give back a sequence's slot; the cache keeps its first `keep` tokens. Twice is as once."""
        with held, self._lock:
            sequence.cancelled = True
            self._ending.append((sequence, keep))
            if not self._leading:
                self._release_ended()
            elif self._in_step(sequence):
                self._engine.stop_after_step()
            self._wake()

    def running(self) -> list[Sequence]:
        """The sequences that have slots."""
        with self._lock:
            return list(self._planner.running)

    @property
    def stats(self) -> ModelStats:
        """Counts, those of pages as of the end of the latest step."""
        with self._lock:
            return self._planner.stats()

    def pin(self, prefix: Prefix) -> bool:
        """Keep the pages of a sequence, whole ones, in the cache until `unpin`; False where it lacks some.

        Pinned twice is pinned once.
        """
        key = prefix.owner, prefix.ids.tobytes()
        with self.exclusive() as engine:
            if key not in self._pinned:
                if not engine.pin(prefix.ids, **prefix.arguments):
                    return False
                self._pinned.add(key)
        return True

    def unpin(self, prefix: Prefix) -> None:
        """Let the cache give these pages away again.

        Raises
        ------
        InvalidArgumentError
            They are not pinned.
        """
        key = prefix.owner, prefix.ids.tobytes()
        with self.exclusive() as engine:
            if key not in self._pinned:
                raise InvalidArgumentError("prompt: it is not pinned")
            self._pinned.remove(key)
            engine.unpin(prefix.ids, **prefix.arguments)

    def add_adapter(self, tensors: Mapping[str, AdapterTensors], digest: str) -> Adapter:
        """Give the engine an adapter, between two steps."""
        with self.exclusive() as engine:
            number = engine.add_adapter(tensors)
            self._adapters.add(number)
        return Adapter(number, 1.0, digest)

    def remove_adapter(self, adapter: Adapter) -> None:
        """Take an adapter from the engine.

        Raises
        ------
        BusyError
            Sequences that run or wait have it.
        """
        with self.exclusive() as engine:
            with self._lock:
                sequences = [*self._planner.running, *self._planner.waiting]
                users = sum(s.adapter is not None and s.adapter.number == adapter.number for s in sequences)
                if not users:
                    self._adapters.discard(adapter.number)
            if users:
                raise BusyError(f"adapter: {users} generations have it; wait for them, or end them first")
            engine.remove_adapter(adapter.number)

    @contextmanager
    def exclusive(self, tokens: int = 0) -> Iterator[Engine]:
        """The engine for one call, between two steps, with a slot and pages free for a sequence of so many.

        A call that waits goes before the next step, and a step that is waited for before the next call.
        """
        with held:
            with self._lock:
                self._check_open()
                self._check_own_step()
                self._engine_wanted()
                self._calls += 1
                try:
                    while self._leading or (self._called and self._readers):
                        self._changed.wait(0.02)
                    self._check_open()
                    self._lead()
                    self._called = True
                finally:
                    self._calls -= 1
                    self._wake()
            try:
                check()
                with self._lock:
                    self._planner.make_room(tokens)
                with allowed(self._cancel_step):
                    yield self._engine
            finally:
                self._stop_leading()

    def close(self) -> None:
        """Cancel what runs, wait for it, and free the engine; may be called twice."""
        with held, self._lock:
            self._closed = True
            for sequence in self._planner.running:
                sequence.cancelled = True
            for sequence in self._planner.waiting:
                sequence.error = _closed()
            if self._leading:
                self._engine.cancel()
            self._wake()
            if self._in_own_step():
                self._frees = True
                return
            while self._leading:
                self._changed.wait()
        self._free()

    def _free(self) -> None:
        with held, self._lock:
            self._planner.clear()
            self._ending.clear()
        self.flush()
        with held, self._lock:
            self._engine.close()
            if self._proposer is not None:
                self._proposer.close()

    def flush(self) -> None:
        """Wait until the pages of sequences that have ended are in their files."""
        if self._disk is not None:
            self._disk.flush()

    # -- for the leader --------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise _closed()

    def _lead(self) -> None:
        self._leading, self._leader, self._heir = True, threading.get_ident(), None

    def _in_own_step(self) -> bool:
        """This is a signal's handler, or a progress function, to which its thread's step or call gave way."""
        return self._leading and self._leader == threading.get_ident()

    def _check_own_step(self) -> None:
        if self._in_own_step():
            raise AkunuError(
                "the handler of a signal, or a progress function, cannot wait for a model that its own "
                "thread runs; raise an exception, call cancel() or close(), or have another thread do it"
            )

    def _in_step(self, sequence: Sequence) -> bool:
        return any(part.sequence is sequence for part in self._stepping)

    def _cancel_step(self) -> None:
        """Have the step that runs give nothing, or the next one, maybe of others: no fault of the engine."""
        self._stalled = 0
        self._engine.cancel()

    def _engine_wanted(self) -> None:
        if self._leading:
            self._engine.stop_after_step()

    def _read_page(self, prefix: Prefix, parts: list[int]) -> PageData | None:
        """`Engine.read_page` between two steps, for a thread that reads no sequence."""
        with self._lock:
            if not self._leading:
                return self._engine.read_page(prefix.ids, parts=parts, **prefix.arguments)
            page: Future[PageData | None] = Future()
            self._between.append((prefix, parts, page))
        return page.result()

    def _stop_leading(self, hands_on: bool = True) -> None:
        with self._lock:
            self._stepping, self._chaining = [], False
            while self._between:
                prefix, parts, page = self._between.popleft()
                try:
                    page.set_result(self._engine.read_page(prefix.ids, parts=parts, **prefix.arguments))
                except Exception as error:
                    page.set_exception(error)
            self._leading = False
            if hands_on:
                self._heir = None
            self._wake()
            self._release_ended()
            if not self._closed:
                self._planner.settle()
            frees, self._frees = self._frees, False
        if frees:
            self._free()

    def _release_ended(self) -> None:
        """Take back the slots of sequences that have ended.

        One may end at any line of this class or the planner: where the garbage collector finds its stream. So
        an end is only noted, and what is noted meanwhile is done here too.
        """
        while self._ending and not (self._releasing or self._closed):
            self._releasing = True
            try:
                if self._ending:
                    self._planner.leave(*self._ending.popleft())
            finally:
                self._releasing = False

    def _step(self) -> bool:
        """Plan and run one step; False when nothing could run."""
        with self._lock:
            self._check_open()
            self._called = False
            self._release_ended()
            plan = self._planner.plan()
            parts = plan.parts
            fetching = [s for s in self._planner.running if s.fetching] if self._disk is not None else []
            self._stepping, self._chaining = parts, plan.steps > 1
        if fetching:
            self._fetch(fetching, bool(parts))
        if not parts:
            return bool(fetching)
        began = time.perf_counter()
        try:
            if not plan.drafts:
                plan = self._write_drafts(plan)
        except Exception as error:
            if self._proposer is None or error is self._proposer.interrupt:
                raise
            self._drafts = False  # no sequence depends on the smaller model
            with self._lock:
                self._planner.stop_drafting()
            warnings.warn(
                f"the draft model failed; sequences go on without it: {error}", RuntimeWarning, stacklevel=1
            )
            plan = plan._replace(parts=[part._replace(written=0) for part in parts])
        parts = plan.parts
        formed = [part for part in parts if part.samples and part.sequence.constraint is not None]
        failed = dict[Sequence, AkunuError]()
        masks = (lambda: self._set_masks(formed, failed)) if formed else None
        start = time.perf_counter()
        try:
            with allowed(self._cancel_step):
                chunks, interrupt = self._run(plan, masks)
        except BaseException as error:
            with self._lock:
                for part in parts:
                    part.sequence.error = error
            if isinstance(error, Exception):  # of these sequences; their readers raise it
                return True
            raise
        ended = time.perf_counter()
        if self._experts is not None:
            self._count_experts([part.sequence for part in parts], self._experts)
        with self._lock:
            moved = self._planner.record(plan, chunks, failed, (began, start, ended))
            self._stalled = 0 if moved or failed else self._stalled + 1
        if interrupt is not None:
            raise interrupt
        if self._stalled == MAX_STALLED:
            raise AkunuError("the engine makes no progress; this is a defect of Akunu, please report it")
        return True

    def _run(
        self, plan: Plan, masks: Callable[[], object] | None
    ) -> tuple[list[Chunk], BaseException | None]:
        if plan.drafts:
            assert self._proposer is not None
            asked = [(part.slot, part.limit) for part in plan.parts]
            return self._engine.draft_and_verify(asked, plan.drafts, plan.steps, bool(self._proposer.common))
        return self._engine.step([part[2:] for part in plan.parts], plan.steps, masks)

    def _count_experts(self, sequences: list[Sequence], before: PagedExperts) -> None:
        """Add what a step did with experts that stay in their file to the sequences that it was for."""
        now = self._engine.paged_experts
        for sequence in sequences:
            sequence.expert_hits += now["hits"] - before["hits"]
            sequence.expert_misses += now["misses"] - before["misses"]
            sequence.expert_bytes += now["read_bytes"] - before["read_bytes"]
            sequence.expert_seconds += now["seconds"] - before["seconds"]
        self._experts = now

    def _write_drafts(self, plan: Plan) -> Plan:
        """The plan with the drafts that the smaller model writes for it."""
        wanted = [(part.sequence, part.written) for part in plan.parts if part.written]
        if self._proposer is None or not (self._drafts and wanted):
            return plan
        found = dict(zip((s for s, _ in wanted), self._proposer.write(wanted), strict=True))
        return plan._replace(
            parts=[part._replace(drafts=found.get(part.sequence, part.drafts)) for part in plan.parts]
        )

    def _set_masks(self, parts: list[StepRows], failed: dict[Sequence, AkunuError]) -> None:
        """While the engine runs the body, tell it what constraints allow next; some may allow nothing."""
        for part in parts:
            began = time.perf_counter()
            try:
                masks = part.sequence.masks(part.drafts, self._engine.vocab)
                if masks is not None:
                    self._engine.set_mask(part.slot, masks)
            except AkunuError as error:
                failed[part.sequence] = error
            part.sequence.mask_seconds = time.perf_counter() - began

    def _fetch(self, sequences: list[Sequence], beside: bool) -> None:
        """Look for pages that sequences begin with, and read them from files; others may have the lock."""
        assert self._disk is not None
        until = time.perf_counter() + (BESIDE_SECONDS if beside else ASIDE_SECONDS)
        for sequence in sequences:
            if sequence.sought is not None and self._disk.seek(sequence, until):
                with self._lock:
                    self._planner.count_prompt(sequence)
            if sequence.sought is None:
                self._disk.restore(self._engine, sequence, until)


def _closed() -> AkunuError:
    return AkunuError("the model is closed; load it again")
