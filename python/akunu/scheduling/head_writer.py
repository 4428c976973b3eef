"""A head of the model's own that writes ahead of it: multi-token prediction.

It goes on from the state of a text's last row, which the engine has as long as the text was in its last step.
What it keeps of texts is in their pages, so it follows none.
"""

from __future__ import annotations

import time
from collections.abc import Sequence as AnySequence
from typing import TYPE_CHECKING

from akunu.scheduling.drafts import KNOTS, WRITER_MOST, StepCosts

if TYPE_CHECKING:
    from akunu._core import Engine
    from akunu.describe.config import ModelConfig
    from akunu.scheduling.sequence import Sequence

__all__ = ["HeadWriter", "share_of_head"]


def share_of_head(config: ModelConfig) -> float:
    """About how much of a step's time a draft takes: a layer, and the output matrix."""
    layer, output = 12 * config.dim**2, config.vocab_size * config.dim
    return (layer + output) / (config.n_layers * layer + output)


class HeadWriter:
    """Drafts of a head.

    Parameters
    ----------
    engine
        The model's own.
    share
        Of its time for a step, that a draft is expected to take until it was measured.
    """

    def __init__(self, engine: Engine, share: float) -> None:
        self._engine = engine
        self._share = share
        self._costs = StepCosts()
        self.interrupt: BaseException | None = None
        """What the handler of a signal raised in the latest `write`."""

    def seconds(self, texts: int, step: float) -> float:
        """Expected time to write a token for each of so many texts; `step` is the engine's for one."""
        return self._costs.of(min(texts, KNOTS[-1])) if self._costs.known else self._share * step

    def room(self, sequence: Sequence) -> int:
        """Tokens that it can write for a text, at most."""
        return WRITER_MOST

    def write(self, wanted: AnySequence[tuple[Sequence, int]]) -> list[list[int]]:
        """Drafts for texts.

        Parameters
        ----------
        wanted
            Texts, and how many tokens of each.

        Returns
        -------
        list of list of int
            As many for each of them, or fewer: none of a text that was not in the last step.

        Raises
        ------
        BaseException
            What a signal's handler raised meanwhile (`interrupt`), or what failed in the engine.
        """
        began = time.perf_counter()
        slots = [(sequence.slot, n) for sequence, n in wanted if sequence.slot is not None]
        drafts, self.interrupt = self._engine.draft(slots)
        if self.interrupt is not None:
            raise self.interrupt
        if longest := max(map(len, drafts), default=0):
            self._costs.measured(len(slots), (time.perf_counter() - began) / longest)
        return drafts

    def leave(self, sequence: Sequence) -> None:
        """Nothing is kept of a text."""

    def close(self) -> None:
        """Nothing belongs to it alone."""
