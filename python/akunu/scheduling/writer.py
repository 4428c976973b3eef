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

from akunu.base.errors import AkunuError
from akunu.scheduling.drafts import StepCosts

if TYPE_CHECKING:
    from akunu._core import Engine
    from akunu.scheduling.sequence import Sequence

__all__ = ["DraftWriter", "Writer"]

BEHIND_ROWS: Final = 64
"""Rows of sequences that it follows, in one call: what beginning to follow may cost the others."""


class DraftWriter(Protocol):
    """What drafts for an engine: a smaller model, or a head of the model's own."""

    @property
    def interrupt(self) -> BaseException | None:
        """What the handler of a signal raised in the latest `write`."""

    def choose(self, texts: AnySequence[Sequence], step: float) -> None:
        """Decide how it writes for these sequences next; `step` is as for `seconds`."""

    def seconds(self, texts: int, step: float) -> float:
        """Expected time to write a token for each of so many sequences; `step` is the engine's for one."""

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
    """What it wrote after these."""
    ended: bool = False
    """The last of that ends the sequence."""


class Part(NamedTuple):
    """A sequence's part of a step."""

    text: Followed
    rows: int
    draws: bool
    limit: int


class Writer:
    """Drafts of a smaller model.

    Parameters
    ----------
    engine
        The smaller model's, used by nobody else. It has as many slots as the larger one's.
    vocab_size
        Its ids are smaller.
    share
        Of the larger model's time for a step, that it is expected to take until it was measured.
    """

    def __init__(self, engine: Engine, vocab_size: int, share: float) -> None:
        self._engine = engine
        self._vocab_size = vocab_size
        self._share = share
        self._costs = StepCosts()
        self._followed: dict[Sequence, Followed] = {}
        self._refused: set[Sequence] = set()
        self.interrupt: BaseException | None = None
        """What the handler of a signal raised in the latest `write`."""

    def choose(self, texts: AnySequence[Sequence], step: float) -> None:
        """There is one way to write."""

    def seconds(self, texts: int, step: float) -> float:
        """Expected time to write a token for each of so many sequences; `step` is the engine's for one."""
        return self._costs.expected(texts, self._share * step)

    def room(self, sequence: Sequence) -> int:
        """Tokens that it can write for a sequence, at most."""
        return 0 if sequence in self._refused else self._engine.context - sequence.known

    def write(self, wanted: AnySequence[tuple[Sequence, int]]) -> list[list[int]]:
        """Write drafts, none for a sequence that it was too far behind, and has now come nearer to."""
        self.interrupt = None
        texts = [self._follow(sequence) for sequence, _ in wanted]
        most, budget = max(n for _, n in wanted), max(min(BEHIND_ROWS, self._engine.chunk), len(wanted))
        parts, going = list[Part](), list[Part]()
        for (sequence, n), text in zip(wanted, texts, strict=True):
            if text is None or budget == 0:
                continue
            left = sequence.known - text.length
            rows = min(left, budget)
            steps = most if rows == left and sequence.known + most - 1 <= self._engine.context else 1
            if self._engine.reserve(text.slot, rows, steps):
                budget -= rows
                parts.append(Part(text, rows, rows == left, 1))
                if steps > 1 and n > 1:
                    going.append(Part(text, 1, True, n - 1))
        self._run(parts, 1)
        # A step may run less than it was asked for, and draw nothing then.
        going = [part for part in going if part.text.drafted and not part.text.ended]
        began, steps = time.perf_counter(), max((part.limit for part in going), default=0)
        self._run(going, steps)
        if going:
            self._costs.measured(len(going), (time.perf_counter() - began) / steps)
        # Of what it wrote, the ids that the larger model has.
        return [list(takewhile(self._vocab_size.__gt__, text.drafted)) if text else [] for text in texts]

    def leave(self, sequence: Sequence) -> None:
        """Follow a sequence no longer."""
        self._refused.discard(sequence)
        if (text := self._followed.pop(sequence, None)) is not None:
            self._engine.close_slot(text.slot)

    def close(self) -> None:
        """Free the engine."""
        self._engine.close()

    def _follow(self, sequence: Sequence) -> Followed | None:
        """What the engine holds of a sequence, told all of it; None where this model cannot."""
        try:
            if (text := self._followed.get(sequence)) is None:
                return self._begin(sequence)
            self._tell(text, sequence)
        except AkunuError:  # a token, or a setting of one, that it does not have
            self.leave(sequence)
            self._refused.add(sequence)
            return None
        return text

    def _begin(self, sequence: Sequence) -> Followed:
        slot = self._engine.open()
        assert slot is not None
        text = self._followed[sequence] = Followed(slot, 0, sequence.known)
        settings = {**sequence.settings, "logprobs": -1}
        prefix = sequence.prefix()
        text.length = self._engine.begin(prefix.ids, **settings, slot=slot, **prefix.arguments)
        return text

    def _tell(self, text: Followed, sequence: Sequence) -> None:
        """Take back what the sequence did not take, and add what it has since."""
        prompt, tokens = len(sequence.prompt), sequence.tokens
        pairs = zip(text.drafted, tokens[text.agreed - prompt :], strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        known = text.agreed + len(text.drafted)
        if same < len(text.drafted):  # one token at least is to be run
            known = min(text.agreed + same, text.length, sequence.known - 1)
            text.length = self._engine.truncate(known, text.slot)
        if known < sequence.known:
            self._engine.extend(text.slot, tokens[known - prompt :])
        text.agreed, text.drafted, text.ended = sequence.known, [], False

    def _run(self, parts: AnySequence[Part], steps: int) -> None:
        if not parts:
            return
        chunks, interrupt = self._engine.step(
            [(part.text.slot, part.rows, part.draws, part.limit, []) for part in parts], steps
        )
        for part, chunk in zip(parts, chunks, strict=True):
            text = part.text
            text.length, text.ended = chunk.length, chunk.ended
            text.drafted += chunk.ids
        if interrupt is not None:
            self.interrupt = interrupt
            raise interrupt
