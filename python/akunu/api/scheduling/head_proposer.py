"""Drafts by what reads the model's own states: a head of multi-token prediction, or an assistant.

The head goes on from the state of a sequence's last row, which the engine has as long as the sequence was in
its last step. What it keeps of sequences is in their pages, so it follows none.
"""

from __future__ import annotations

import time
from collections.abc import Sequence as AnySequence
from typing import TYPE_CHECKING, Final

from akunu.api.scheduling.drafts import PROPOSER_MOST, StepCosts

if TYPE_CHECKING:
    from akunu._core import Engine
    from akunu.api.scheduling.sequence import Sequence
    from akunu.files.describe.config import ModelConfig

__all__ = ["HeadProposer", "share_of_head"]

LATEST: Final = 64
"""Latest tokens of a sequence that tell whether it has common ones."""
HELD: Final = 0.7
"""The probability that a draft holds, for choosing between drafts of all tokens and of common ones."""


def share_of_head(config: ModelConfig, rows: int | None = None) -> float:
    """About how much of a step's time a draft takes: its layers, and so many rows of the output matrix."""
    layer, output = 12 * config.dim**2, config.vocab_size * config.dim
    outputs = config.vocab_size if rows is None else rows
    own = layer + outputs * config.dim
    if config.drafter is not None and config.drafter.dim:
        dim = config.drafter.dim
        if clusters := config.drafter.clusters:
            outputs = clusters + config.vocab_size * config.drafter.clusters_used // clusters
        own = len(config.drafter.blocks) // 2 * 12 * dim**2 + (outputs + 3 * config.dim) * dim
    return own / (config.n_layers * layer + output)


class HeadProposer:
    """Writes drafts by the model's own head.

    Where the vocabulary is large, most of a draft's time goes into the output matrix. The head may choose
    among the common tokens alone, which are the first ids, and does where the sequences have few others.

    Parameters
    ----------
    engine
        The model's own.
    config
        The model's.
    """

    def __init__(self, engine: Engine, config: ModelConfig) -> None:
        self._engine = engine
        self._tokens = engine.common_tokens
        self._shares = {False: share_of_head(config), True: share_of_head(config, self._tokens)}
        self._costs = {False: StepCosts(), True: StepCosts()}
        self._common = self._tokens > 0
        self.interrupt: BaseException | None = None
        """The exception that the handler of a signal raised in the latest `write`."""

    def seconds(self, sequences: int, step: float) -> float:
        """Return the expected time of a draft for each of so many sequences; `step` is the engine's time."""
        return self._seconds(sequences, step, common=self._common)

    def _seconds(self, sequences: int, step: float, *, common: bool) -> float:
        return self._costs[common].expected(sequences, self._shares[common] * step)

    @property
    def common(self) -> bool:
        """Whether the next drafts are of common tokens alone."""
        return self._common

    def learn(self, sequences: int, seconds: float) -> None:
        """Learn the time of a draft for each of so many sequences."""
        self._costs[self._common].measured(sequences, seconds)

    def choose(self, sequences: AnySequence[Sequence], step: float) -> None:
        """Decide whether the next drafts are of common tokens, by the latest ones of these sequences."""
        if not self._tokens:
            return
        share = self._share_of_common(sequences)
        common, whole = (self._seconds(len(sequences), step, common=which) for which in (True, False))
        self._common = (1 + HELD * share) * (step + whole) > (1 + HELD) * (step + common)

    def _share_of_common(self, sequences: AnySequence[Sequence]) -> float:
        said = [token for sequence in sequences for token in sequence.tokens[-LATEST:]]
        return sum(token < self._tokens for token in said) / len(said) if said else 1.0

    def room(self, sequence: Sequence) -> int:
        """Return the most tokens that it can draft for a sequence."""
        return PROPOSER_MOST

    def write(self, wanted: AnySequence[tuple[Sequence, int]]) -> list[list[int]]:
        """Write drafts, none for a sequence that was not in the last step."""
        began = time.perf_counter()
        slots = [(sequence.slot, n) for sequence, n in wanted if sequence.slot is not None]
        drafts, self.interrupt = self._engine.draft(slots, self._common)
        if self.interrupt is not None:
            raise self.interrupt
        if longest := max(map(len, drafts), default=0):
            self.learn(len(slots), (time.perf_counter() - began) / longest)
        return drafts

    def leave(self, sequence: Sequence) -> None:
        """Keep nothing: the head has nothing of a sequence."""

    def close(self) -> None:
        """Free nothing: the engine is the model's."""
