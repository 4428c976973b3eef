"""A smaller model that drafts for a larger one, which verifies what it wrote.

It follows the sequences that it is asked about: each has a slot of its engine too. What the sequence did not
take is truncated there, what the sequence has and it has not is run, in the same call that writes the next
tokens. It samples with the sequence's own settings and seed: where the two models nearly agree, the same
random numbers choose the same tokens.
"""

from __future__ import annotations

import time
from collections.abc import Sequence as AnySequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from akunu.api.scheduling.drafts import StepCosts
from akunu.base.errors import AkunuError

if TYPE_CHECKING:
    from akunu._core import Engine
    from akunu.api.scheduling.sequence import Sequence

__all__ = ["ModelProposer", "Proposer"]

BEHIND_ROWS: Final = 64
"""Rows of sequences that it follows, in one call: what beginning to follow may cost the others."""


class Proposer(Protocol):
    """A source of drafts for an engine: a smaller model, or a head of the model's own."""

    @property
    def interrupt(self) -> BaseException | None:
        """The exception that the handler of a signal raised in the latest `write`."""

    @property
    def common(self) -> bool | None:
        """Whether the engine's own head, which drafts in chains, drafts common tokens alone; else None."""

    def choose(self, sequences: AnySequence[Sequence], step: float) -> None:
        """Decide how it writes for these sequences next; `step` is as for `seconds`."""

    def seconds(self, sequences: int, step: float) -> float:
        """Expected time to write a token for each of so many sequences; `step` is the engine's for one."""

    def learn(self, sequences: int, seconds: float) -> None:
        """Learn the time to write a token for each of so many sequences."""

    def room(self, sequence: Sequence) -> int:
        """Tokens that it can write for a sequence, at most."""

    def write(self, wanted: AnySequence[tuple[Sequence, int]]) -> list[list[int]]:
        """Write drafts.

        Parameters
        ----------
        wanted
            Sequences, and how many tokens for each.

        Returns
        -------
        list of list of int
            As many tokens for each of them, or fewer.

        Raises
        ------
        BaseException
            What a signal's handler raised meanwhile (`interrupt`), or what failed in the engine.
        """

    def leave(self, sequence: Sequence) -> None:
        """A sequence gives its slot back."""

    def close(self) -> None:
        """Free what belongs to it alone."""


@dataclass(slots=True)
class Followed:
    """A sequence, as the smaller model's engine holds it."""

    slot: int
    length: int
    """Tokens in its cache."""
    agreed: int
    """Tokens that it was told."""
    drafted: list[int] = field(default_factory=list)
    """The drafts that the smaller model wrote after these tokens."""
    ended: bool = False
    """The last of that ends the sequence."""


class DraftRows(NamedTuple):
    """A sequence's part of a step."""

    followed: Followed
    rows: int
    samples: bool
    limit: int


class ModelProposer:
    """Drafts of a smaller model.

    Parameters
    ----------
    engine
        The smaller model's, used by nobody else. It has as many slots as the larger one's.
    vocab_size
        Its ids are smaller.
    share
        The share of the larger model's time for a step that it is expected to take, until that is measured.
    """

    def __init__(self, engine: Engine, vocab_size: int, share: float) -> None:
        self._engine = engine
        self._vocab_size = vocab_size
        self._share = share
        self._costs = StepCosts()
        self._followed: dict[Sequence, Followed] = {}
        self._refused: set[Sequence] = set()
        self.interrupt: BaseException | None = None
        """The exception that the handler of a signal raised in the latest `write`."""
        self.common = None

    def choose(self, sequences: AnySequence[Sequence], step: float) -> None:
        """Do nothing: a draft model has one way to draft."""

    def seconds(self, sequences: int, step: float) -> float:
        """Expected time to write a token for each of so many sequences; `step` is the engine's for one."""
        return self._costs.expected(sequences, self._share * step)

    def learn(self, sequences: int, seconds: float) -> None:
        """Learn the time to write a token for each of so many sequences."""
        self._costs.measured(sequences, seconds)

    def room(self, sequence: Sequence) -> int:
        """Tokens that it can write for a sequence, at most."""
        return 0 if sequence in self._refused else self._engine.context - sequence.known

    def write(self, wanted: AnySequence[tuple[Sequence, int]]) -> list[list[int]]:
        """Write drafts, none for a sequence that it was too far behind, and has now come nearer to."""
        self.interrupt = None
        all_followed = [self._follow(sequence) for sequence, _ in wanted]
        most, budget = max(n for _, n in wanted), max(min(BEHIND_ROWS, self._engine.chunk), len(wanted))
        parts, going = list[DraftRows](), list[DraftRows]()
        for (sequence, n), followed in zip(wanted, all_followed, strict=True):
            if followed is None or budget == 0:
                continue
            left = sequence.known - followed.length
            rows = min(left, budget)
            steps = most if rows == left and sequence.known + most - 1 <= self._engine.context else 1
            if self._engine.reserve(followed.slot, rows, steps):
                budget -= rows
                parts.append(DraftRows(followed, rows, rows == left, 1))
                if steps > 1 and n > 1:
                    going.append(DraftRows(followed, 1, True, n - 1))
        self._run(parts, 1)
        # A step may run less than it was asked for, and samples nothing then.
        going = [part for part in going if part.followed.drafted and not part.followed.ended]
        began, steps = time.perf_counter(), max((part.limit for part in going), default=0)
        self._run(going, steps)
        if going:
            self.learn(len(going), (time.perf_counter() - began) / steps)
        # The ids that the larger model has, of what it wrote.
        return [
            list(takewhile(self._vocab_size.__gt__, followed.drafted)) if followed else []
            for followed in all_followed
        ]

    def leave(self, sequence: Sequence) -> None:
        """Follow a sequence no longer."""
        self._refused.discard(sequence)
        if (followed := self._followed.pop(sequence, None)) is not None:
            self._engine.close_slot(followed.slot)

    def close(self) -> None:
        """Free the engine."""
        self._engine.close()

    def _follow(self, sequence: Sequence) -> Followed | None:
        """Return what the engine holds of a sequence, told all of it; None where this model cannot."""
        try:
            if (followed := self._followed.get(sequence)) is None:
                return self._begin(sequence)
            self._tell(followed, sequence)
        except AkunuError:  # a token, or a setting of one, that it does not have
            self.leave(sequence)
            self._refused.add(sequence)
            return None
        return followed

    def _begin(self, sequence: Sequence) -> Followed:
        slot = self._engine.open()
        assert slot is not None
        followed = self._followed[sequence] = Followed(slot, 0, sequence.known)
        settings = {**sequence.settings, "logprobs": -1}
        prefix = sequence.prefix()
        followed.length = self._engine.begin(prefix.ids, **settings, slot=slot, **prefix.arguments)
        return followed

    def _tell(self, followed: Followed, sequence: Sequence) -> None:
        """Take back what the sequence did not take, and add what it has since."""
        prompt, tokens = len(sequence.prompt), sequence.tokens
        pairs = zip(followed.drafted, tokens[followed.agreed - prompt :], strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        known = followed.agreed + len(followed.drafted)
        if same < len(followed.drafted):  # one token at least is to be run
            known = min(followed.agreed + same, followed.length, sequence.known - 1)
            followed.length = self._engine.truncate(known, followed.slot)
        if known < sequence.known:
            self._engine.extend(followed.slot, tokens[known - prompt :])
        followed.agreed, followed.drafted, followed.ended = sequence.known, [], False

    def _run(self, parts: AnySequence[DraftRows], steps: int) -> None:
        if not parts:
            return
        chunks, interrupt = self._engine.step(
            [(part.followed.slot, part.rows, part.samples, part.limit, []) for part in parts], steps
        )
        for part, chunk in zip(parts, chunks, strict=True):
            followed = part.followed
            followed.length, followed.ended = chunk.length, chunk.ended
            followed.drafted += chunk.ids
        if interrupt is not None:
            self.interrupt = interrupt
            raise interrupt
