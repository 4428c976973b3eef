"""Plan steps: which sequences have slots, and how many rows, pages and drafts each has in the next one.

Who goes first is a matter of turns: the order of arrival, in which a higher priority is a head start, and in
which the owners of sequences (their salts) take turns. Where all slots are taken, the owner with most of them
gives one to an owner that has less than its share.

A step has a budget of rows. Running sequences come first, each with a row, then prompts in their turns, of
which each owner has a share: a short prompt does not wait for another owner's long ones.
Without prompts a step is a chain of tokens, as long as the longest that its sequences would take alone, or
those of the owner with the shortest: who wants two tokens does not wait for another's hundred. It ends early
when somebody comes. Where sequences repeat themselves or each other, it is one token and drafts of
those that follow. Beside a sequence that has a constraint it is one token for all: what may come next is
known when that is sampled, and a chain has no rows that are forced. Tokens that the constraint leaves no
choice about are rows of the next step.

A sequence can be suspended at any time: its tokens are known, its pages stay in the cache as long as there is
room, and what is sampled depends on seed and position alone. That is what happens to readers that went away,
when others wait for a slot, and to the youngest, when there are no pages left. It keeps its place in the
order of arrival. Squeezed out for want of pages, it comes back when there is room for all of it, and nobody
overtakes it meanwhile: the oldest always goes on, so everybody's turn comes.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from akunu._core import MAX_CHAIN, PAGE
from akunu.api.scheduling.choosing import NO_DRAFTS, Drafts, choose_drafts
from akunu.api.scheduling.counts import Beginnings, ModelStats
from akunu.api.scheduling.drafts import UsualTrust
from akunu.api.scheduling.sequence import Ran, Sequence
from akunu.api.scheduling.sharing import ReaderTurns, Sharing, fitting, row_shares
from akunu.api.scheduling.turns import Turns
from akunu.base.errors import AkunuError

if TYPE_CHECKING:
    from akunu._core import Chunk, Engine
    from akunu.api.scheduling.disk import DiskTier
    from akunu.api.scheduling.model_proposer import Proposer

__all__ = ["Plan", "Planner", "StepRows"]

ABSENT_SECONDS: Final = 0.25
"""A reader that leaves its sequence unread for so long, while others wait for a slot, has gone away."""


class StepRows(NamedTuple):
    """A sequence's part of a step: what `Engine.step` takes, and how many drafts are to be written first."""

    sequence: Sequence
    written: int
    slot: int
    rows: int
    samples: bool
    limit: int
    drafts: list[int]


class Plan(NamedTuple):
    """A planned step."""

    parts: list[StepRows]
    steps: int = 1
    decoding: bool = False
    """Each part is a sequence's last token, and maybe drafts."""
    without_heaviest: bool = False
    """The owner with most sequences waits meanwhile."""
    drafts: int = 0
    """Drafts of every sequence that the model's own head writes, and each step of the chain verifies."""

    def verified(self, part: StepRows, chunk: Chunk) -> list[tuple[int, int]]:
        """Return how many drafts each step verified of a part that gave this, and how many held."""
        if not self.drafts:
            return [(len(part.drafts), len(chunk.ids) - 1)] if part.drafts and chunk.ids else []
        left, found = part.sequence.limit - len(part.sequence.tokens), list[tuple[int, int]]()
        for tokens in chunk.of_steps:
            found.append((int(min(chunk.drafts, left - 1)), tokens - 1))
            left -= tokens
        return found


_turn = attrgetter("turn")


def _chain(writing: Iterable[Sequence], context: int, drafts: int = 0) -> int:
    """Return how many steps a chain of these sequences may be, each of which verifies so many drafts."""
    rows, longest = 1 + drafts, dict[str | None, float]()
    most = float(MAX_CHAIN // rows)
    for s in writing:
        most = min(most, (context - s.length) // rows)
        if drafts:
            most = min(most, s.proposer_trust.steps)
        if s.constraint is not None:
            most = min(most, s.constraint.ahead)
        own = min(s.chain, s.limit - len(s.tokens))
        longest[s.salt] = max(longest.get(s.salt, 0.0), own)
    return int(max(1, min(most, *longest.values())))


class Planner:
    """The sequences of one engine, by turn. Knows no threads: one calls it at a time, between two steps.

    Parameters
    ----------
    engine
        Has their slots and pages.
    disk
        Where pages are found that the engine has not, and those that sequences leave go.
    proposer
        Writes drafts for the engine.

    Attributes
    ----------
    waiting, running : list of Sequence
        Sequences without a slot and with one.
    """

    def __init__(self, engine: Engine, disk: DiskTier | None, proposer: Proposer | None) -> None:
        self._engine = engine
        self._disk = disk
        self._proposer = proposer
        self._turns = Turns()
        self._usual = UsualTrust()
        self._sharing = Sharing(engine.chunk, engine.max_logits)
        self._readers = ReaderTurns()
        self._beginnings = Beginnings()
        self._totals: Counter[str] = Counter()
        self._pages = engine.pages  # while a step runs nobody asks the engine
        self.waiting: list[Sequence] = []
        self.running: list[Sequence] = []

    def arrive(self, sequence: Sequence) -> None:
        """A sequence lines up for a slot."""
        # At least one token is sampled, and all known ones can be run.
        sequence.follow(min(self._engine.context - sequence.known, sequence.limit - 1))
        self._turns.arrive(sequence)
        sequence.proposer_trust = self._usual.begin()
        insort(self.waiting, sequence, key=_turn)

    def leave(self, sequence: Sequence, keep: int) -> None:
        """A sequence ends; the cache keeps its first `keep` tokens."""
        if sequence.slot is not None:
            self._usual.learn(sequence.proposer_trust)
            if sequence.length > keep:
                sequence.length = self._engine.truncate(keep, sequence.slot)
            self._release(sequence)
            self.settle()
        elif sequence in self.waiting:
            self.waiting.remove(sequence)

    def suspend(self, sequence: Sequence) -> None:
        """Take a sequence's slot; it lines up again, where its turn is."""
        self._release(sequence)
        insort(self.waiting, sequence, key=_turn)

    def make_room(self, tokens: int) -> None:
        """Suspend sequences until a slot and pages for so many tokens are free."""
        while tokens and self.running and not self._has_free(tokens):
            self.suspend(self.running[-1])

    def settle(self) -> None:
        """Count the engine's pages, as they are between two steps."""
        self._pages = self._engine.pages

    def stop_drafting(self) -> None:
        """Plan without the smaller model from now on."""
        self._proposer = None

    def clear(self) -> None:
        """Forget all sequences, the engine being about to end; files keep what is computed."""
        for sequence in self.running:
            self._keep(sequence)
        self.waiting.clear()
        self.running.clear()

    def plan(self) -> Plan:
        """The next step."""
        self._admit()
        writing, prompts = list[Sequence](), list[Sequence]()
        for sequence in self.running:
            if sequence.hungry and not sequence.fetching:
                (writing if sequence.writing else prompts).append(sequence)
        alone = self._sharing.leave_heaviest_out(writing, prompts)
        context, budget = self._engine.context, self._engine.chunk
        all_rows = sum(s.left for s in writing)
        steps, decoding, drafts = 1, not prompts and all_rows == len(writing), dict[Sequence, Drafts]()
        chained = 0
        if prompts:
            budget = min(budget, self._sharing.with_prompts(writing, prompts, all_rows))
        elif writing:
            most = self._sharing.with_drafts(writing, all_rows)
            drafts = choose_drafts(writing, all_rows, most, context, self._sharing.costs, self._proposer)
            chained = next((d.written for d in drafts.values() if d.chained), 0)
            if decoding and (chained or not drafts):
                steps = _chain(writing, context, chained)
                if alone:
                    steps = min(steps, self._sharing.owed_tokens(all_rows * (1 + chained)))
        parts, reserve = list[StepRows](), self._engine.reserve
        shares = row_shares(prompts, budget - all_rows)
        for number, sequence in enumerate((*writing, *prompts)):
            left, slot = sequence.left, sequence.slot
            rows = min(left, budget)
            if number >= len(writing):
                rows = min(rows, shares[sequence.salt])
            if rows > 0 and self._engine.whole_images:
                used = sum(part.rows + len(part.drafts) for part in parts)
                rows = sequence.whole_images(rows, self._engine.max_rows - used)
            if rows <= 0 or slot is None:  # no budget left, or suspended for one before
                continue
            guess, written, _ = drafts.get(sequence, NO_DRAFTS) if rows == left else NO_DRAFTS
            if not reserve(slot, rows, steps, written or len(guess)):
                guess, written, _ = NO_DRAFTS
                steps, chained = 1, 0  # no sequence makes way for long chains
                if not self._reserve(sequence, rows, steps, parts):
                    continue
            samples = rows == left and sequence.limit > 0
            parts.append(StepRows(sequence, written, slot, rows, samples, _limit(sequence), guess))
            budget -= rows
            if number >= len(writing):
                shares[sequence.salt] -= rows
        return Plan(parts, steps, decoding, alone, chained)

    def record(
        self,
        plan: Plan,
        chunks: list[Chunk],
        failed: Mapping[Sequence, AkunuError],
        times: tuple[float, float, float],
    ) -> bool:
        """Note what a step gave; False when that is nothing.

        Parameters
        ----------
        failed
            Sequences without an allowed token.
        times
            When it began with drafts that are written, when the engine began, when it ended.
        """
        began, start, ended = times
        sharing = self._sharing
        sharing.costs.paused(began - sharing.ended_at)
        sharing.ended_at = ended
        steps, seconds = plan.steps, ended - began
        ran = Ran(steps, fitting(steps, seconds, MAX_CHAIN), seconds, ended, self._engine.context)
        sharing.ran((part.sequence.salt for part in plan.parts), seconds, plan.without_heaviest)
        moved, rows, run, most, sampled = False, 0, 0, 0, 0
        for part, chunk in zip(plan.parts, chunks, strict=True):
            sequence, new, verified = part.sequence, len(chunk.ids), plan.verified(part, chunk)
            rows += part.rows + (chunk.drafts if plan.drafts else len(part.drafts))
            run += chunk.length - sequence.length
            moved = moved or new > 0 or chunk.length != sequence.length
            if part.samples and sequence.constraint is not None:
                sharing.masked(sequence.salt, sequence.mask_seconds)
            most = max(most, len(verified) if plan.drafts and chunk.drafts else new)
            if sequence in failed:  # what was sampled without a mask is dropped
                sequence.error = failed[sequence]
                continue
            forced = sequence.take(chunk, ran, verified, part.written > 0)
            if forced:
                self._engine.extend(part.slot, forced)
            sampled += new
            for drafted, accepted in verified:
                self._totals["drafted_tokens"] += drafted
                self._totals["accepted_tokens"] += accepted
                if part.written:
                    self._totals["model_drafted_tokens"] += drafted
                    self._totals["model_accepted_tokens"] += accepted
        self._readers.ran(self.running, ended, sharing.others_lately)
        if most and plan.decoding:
            step = (ended - start) / min(steps, most)
            if plan.drafts:
                step -= self._writing(len(plan.parts), rows, step)
            sharing.costs.measured(rows, step)
        elif not plan.decoding and run > 0:
            sharing.read(run, seconds)
        self._totals["generated_tokens"] += sampled
        self._totals["steps"] += moved
        return moved

    def _writing(self, sequences: int, rows: int, seconds: float) -> float:
        """Learn from a step of so many rows that began with writing the drafts among them: its share of time.

        A chain is measured as a whole, so what is known of both decides about their shares.
        """
        drafts = rows // sequences - 1
        if self._proposer is None or not drafts:
            return 0.0
        verifying = self._sharing.costs.expected(rows, seconds)
        each = self._proposer.seconds(sequences, self._sharing.costs.expected(1, seconds))
        each *= seconds / (verifying + drafts * each)
        self._proposer.learn(sequences, each)
        return drafts * each

    def stats(self) -> ModelStats:
        """Return what was counted, for `Model.stats`."""
        return ModelStats(
            waiting=sum(not sequence.cancelled for sequence in self.waiting),
            running=len(self.running),
            parallel=self._engine.parallel,
            pages=self._pages["pages"],
            pages_held=self._pages["held"],
            pages_pinned=self._pages["pinned"],
            pages_cached=self._pages["cached"],
            page_bytes=self._pages["page_bytes"],
            **{f"disk_{name}": n for name, n in self._disk.counts.items()} if self._disk else {},
            **self._totals,
        )

    def _reserve(self, sequence: Sequence, rows: int, steps: int, parts: list[StepRows]) -> bool:
        """Pages for a part, taken from the youngest others if need be; False when it has to wait."""
        while not self._engine.reserve(_slot(sequence), rows, steps):
            planned = [part.sequence for part in parts]
            others = [s for s in self.running if s is not sequence and s not in planned]
            idle = [s for s in others if not s.hungry]
            if idle:
                self.suspend(idle[-1])
            elif others and self.running.index(others[-1]) > self.running.index(sequence):
                self._squeeze_out(others[-1])
            elif planned or others:
                self._squeeze_out(sequence)
                return False
            else:
                raise AkunuError(
                    "the cache has no page left for a sequence that runs alone; this is a defect of Akunu"
                )
        return True

    def _admit(self) -> None:
        """Slots for those who wait, in their order; for readers that went away when they have come back."""
        refused = set[str | None]()  # owners that have their share
        for sequence in [s for s in self.waiting if s.hungry and not s.due]:
            if sequence.salt in refused or self._soon_cached(sequence):
                continue
            while sequence.squeezed_out and not self._has_room(sequence):
                if not self._suspend_absent():
                    return  # nor is there for those behind it, or it would never have
            if (slot := self._engine.open()) is None:
                if not (self._suspend_absent() or self._make_way(sequence)):
                    refused.add(sequence.salt)
                    continue  # another's behind it may have a right to a slot
                slot = self._engine.open()
                assert slot is not None
            self.waiting.remove(sequence)
            self._turns.begin(sequence)
            try:
                prefix = sequence.prefix()
                more = dict(sequence.inputs.arguments) if sequence.inputs is not None else {}
                if sequence.adapter is not None:
                    more |= {"adapter": sequence.adapter.number, "adapter_scale": sequence.adapter.scale}
                cached = self._engine.begin(
                    prefix.ids, **sequence.settings, slot=slot, **prefix.arguments, **more
                )
            except BaseException as error:
                self._engine.close_slot(slot)
                sequence.error = error
                continue
            sequence.place(slot, cached)
            insort(self.running, sequence, key=_turn)
            if self._disk is not None:
                # Not here: many pages take long to look for, and others wait for the lock.
                sequence.sought = 0
            else:
                self.count_prompt(sequence)

    def _suspend_absent(self) -> bool:
        """Take the slot of a sequence whose reader went away; False when there is none."""
        absent = [s for s in self.running if s.idle_for() > ABSENT_SECONDS]
        if absent:
            self.suspend(absent[-1])
            self.settle()
        return bool(absent)

    def _make_way(self, sequence: Sequence) -> bool:
        """Take a slot from the owner with most of them, for one that has less than its share; False: none."""
        held = Counter(s.salt for s in self.running)
        owners = held.keys() | {s.salt for s in self.waiting if s.hungry}
        share = max(1, self._engine.parallel // len(owners))
        most = max(held, key=held.__getitem__, default=None)
        if held[sequence.salt] >= share or held[most] <= share:
            return False
        self.suspend(next(s for s in reversed(self.running) if s.salt == most))
        self.settle()
        return True

    def _soon_cached(self, sequence: Sequence) -> bool:
        """Whether a sequence that runs still reads a beginning that this one shares: better wait for it."""
        prompt = sequence.prefix(len(sequence.prompt))
        return any(
            other.hungry
            and other.length < len(other.prompt)
            and prompt.common(other.prefix(len(other.prompt))) - other.length >= PAGE
            for other in self.running
        )

    def _has_free(self, tokens: int) -> bool:
        """Whether a slot and so many tokens' pages are free."""
        pages = self._engine.pages
        wanted = -(-tokens // PAGE)
        return (
            len(self.running) < self._engine.parallel
            and wanted <= pages["pages"] - pages["held"]
            and all(min(wanted, w["most_held"]) <= w["pages"] - w["held"] for w in pages["windows"])
        )

    def _has_room(self, sequence: Sequence) -> bool:
        """Whether there are pages for all of a sequence, and one more for each that runs."""
        if not self.running:
            return True
        prefix = sequence.prefix()
        shared = max(min(prefix.common(other.prefix()), other.length) for other in self.running) // PAGE
        own, pledged = sequence.known // PAGE + 1, [other.left // PAGE + 1 for other in self.running]
        return own - shared + sum(pledged) <= self._pages["pages"] - self._pages["held"] and all(
            sum(min(n, w["most_held"]) for n in (own, *pledged)) <= w["pages"] - w["held"]
            for w in self._pages["windows"]
        )

    def count_prompt(self, sequence: Sequence) -> None:
        """Count the prompt of a sequence that has a slot, once it is known which pages of it are kept."""
        if sequence.counted:
            return
        sequence.counted = True
        prompt, cached = sequence.prompt, min(sequence.length, len(sequence.prompt))
        known = self._beginnings.known(sequence.prefix(len(prompt) - 1))  # the last token always runs
        whole = cached // PAGE * PAGE + len(sequence.kept) * PAGE if sequence.kept else cached
        kind = "misses_evicted" if whole < known else "hits" if whole >= PAGE else "misses_new"
        self._totals.update({"prompts": 1, "prompt_tokens": len(prompt), "cached_tokens": cached, kind: 1})
        self._totals["hits_disk"] += bool(sequence.kept)

    def _squeeze_out(self, sequence: Sequence) -> None:
        self.suspend(sequence)
        sequence.squeezed_out = True

    def _release(self, sequence: Sequence) -> None:
        """Give a slot back; the cache keeps what it can."""
        self._beginnings.remember(sequence.prefix(sequence.length))
        self._keep(sequence)
        if self._proposer is not None:
            self._proposer.leave(sequence)
        self._engine.close_slot(_slot(sequence))
        sequence.displace()
        self.running.remove(sequence)

    def _keep(self, sequence: Sequence) -> None:
        if self._disk is not None:
            self._disk.keep(sequence.prefix(sequence.length), len(sequence.prompt))


def _slot(sequence: Sequence) -> int:
    assert sequence.slot is not None
    return sequence.slot


def _limit(sequence: Sequence) -> int:
    """Tokens that it may still generate, in 32 bits; 0: as many as fit."""
    left = sequence.limit - len(sequence.tokens)
    return 0 if left >= 1 << 32 else int(left)
