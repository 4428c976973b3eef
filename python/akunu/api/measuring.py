"""Measurements of a model: logits, times of its commands, how well it predicts a text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from akunu.api.adapting import Adapting
from akunu.api.perplexity import WINDOW, perplexity
from akunu.api.scheduling.interrupts import check
from akunu.api.tokenizing import Tokenizing
from akunu.base.arguments import Limit
from akunu.base.progress import check_callback
from akunu.files.importance import ImportanceMatrix

__all__ = ["Measuring"]

_MOST_RUNS: Final = 1 << 20
"""Most runs of one table."""


class Measuring(Adapting, Tokenizing):
    """The measurements of a `Model`, each of which takes one turn between two steps of its generations."""

    @abstractmethod
    def _turn(self, tokens: int) -> AbstractContextManager[None]:
        """The engine for one call, between two steps of the generations, with room for so many tokens."""

    def _text_ids(
        self, text: str, *, parse_special: bool = False
    ) -> tuple[list[int], npt.NDArray[np.uint32]]:
        """Return what each window of a text begins with, and the text's tokens."""
        tokenizer = self.tokenizer
        prefix = list(tokenizer.template.before)
        ids = tokenizer.encode(text, add_special=False, parse_special=parse_special)
        return prefix, self._checked_ids(ids)

    def logits(
        self,
        ids: Sequence[int] | npt.NDArray[np.integer[Any]],
        *,
        adapter: str | None = None,
        adapter_scale: float | None = None,
    ) -> npt.NDArray[np.float32]:
        """Logits after each of `ids`, in a fresh run.

        Parameters
        ----------
        ids
            Token ids [n], at least one, at most the context.
        adapter, adapter_scale
            As `generate` has them.

        Returns
        -------
        ndarray
            float32 [n, vocab_size]; row i is for the token that follows `ids[i]`.

        Raises
        ------
        InvalidArgumentError, ContextLengthError
            For ids that are not in the vocabulary, or too many, or an adapter that is not there.
        """
        checked = self._prompt_ids(self._checked_ids(ids))
        with self._turn(len(checked)):
            return self._engine.logits(checked, **self._adapted(adapter, adapter_scale))

    def profile(self, *, position: int = 0, repeats: int = 16) -> list[dict[str, Any]]:
        """Run the dispatch table of one token, between two steps of what else runs, and time its commands.

        Parameters
        ----------
        position
            Tokens before that one, less than the context.
        repeats
            Runs, at least one; the median counts.

        Returns
        -------
        list of dict
            For each command its `label`, `op`, `kernel`, `bytes`, `flops`, `seconds`, ….
        """
        before = Limit(int, 0, self.context - 1).check("position", position)
        runs = Limit(int, 1, _MOST_RUNS).check("repeats", repeats)
        with self._turn(before + 1):
            return [dict(command) for command in self._engine.profile("decode", 1, before, runs)]

    def perplexity(
        self,
        text: str,
        *,
        context: int | None = None,
        stride: int | None = None,
        adapter: str | None = None,
        adapter_scale: float | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> float:
        """Return how surprised the model is by a text: exp of the mean negative log-likelihood of its tokens.

        As llama.cpp's `llama-perplexity` has it by default, so that figures can be compared: the text is cut
        into windows of 512 tokens, and the second half of each is scored; the rest of the text is left out.
        With `stride`, a window slides over the text instead: every token is scored once, by the window of
        `context` tokens that ends at most `stride` tokens after it, and so sees at least `context - stride`
        before it, except at the beginning. Each window begins with the BOS token if the model wants one. BOS
        itself, and without it the first token of the text, are not scored. A text that fits a window is one,
        and all of it is scored.

        Parameters
        ----------
        text
            At least two tokens of it.
        context
            Tokens in a window; None: 512, or the model's context if that is less.
        stride
            Tokens by which a sliding window moves, less than are in it; None: windows side by side.
        adapter, adapter_scale
            As `generate` has them.
        progress
            Called as `progress(tokens_scored, tokens)` after each window.

        Returns
        -------
        float
            At least 1; the vocabulary's size for a model that knows nothing.

        Raises
        ------
        InvalidArgumentError
            The text or a window has no token that can be scored, a size is out of range, or there is no such
            adapter.
        """
        prefix, ids = self._text_ids(text)
        check_callback(progress)
        size = (
            min(WINDOW, self.context)
            if context is None
            else Limit(int, 2, self.context).check("context", context)
        )

        with self._turn(size):
            adapted = self._adapted(adapter, adapter_scale)

            def nll(window: npt.NDArray[np.uint32], first: int) -> npt.NDArray[np.float32]:
                check()  # a signal between two windows has ended neither
                return self._engine.nll(window, first, **adapted)

            return perplexity(
                nll,
                ids,
                prefix=prefix,
                context=size,
                stride=stride,
                progress=progress,
            )

    def importance_matrix(
        self,
        text: str,
        *,
        name: str = "text",
        parse_special: bool = False,
        adapter: str | None = None,
        adapter_scale: float | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> ImportanceMatrix:
        """Measure how much an error in each column of the weights counts, for `akunu.convert`.

        The text is run in windows of 512 tokens, or what the context holds, and each begins with the BOS
        token if the model wants one.

        Parameters
        ----------
        text
            A text of the kind that the model is for; some ten thousand tokens are plenty.
        name
            What a file says of where it is from.
        parse_special
            The text has special tokens, such as conversations in the form of the model's chat template.
        adapter, adapter_scale
            As `generate` has them: the matrix is for a model into which the adapter is merged.
        progress
            Called as `progress(windows_done, windows)`.

        Returns
        -------
        ImportanceMatrix
            The mean square of each input of each matrix in the layers.

        Raises
        ------
        UnsupportedError
            The model is on an Apple GPU.
        InvalidArgumentError
            `progress` is no function, the text has no tokens, or there is no such adapter.
        """
        from akunu.files import importance

        check_callback(progress)
        prefix, ids = self._text_ids(text, parse_special=parse_special)
        window = min(importance.WINDOW, self.context)
        windows = importance.text_windows(ids, prefix, window)

        def report(done: int) -> None:
            check()  # a signal between two windows has ended neither
            if progress is not None:
                progress(done, len(windows))

        with self._turn(window):
            squares = self._engine.input_squares(windows, report, **self._adapted(adapter, adapter_scale))
        tokens = sum(len(one) for one in windows)
        return importance.from_squares(squares, self.config, tokens, window=window, texts=(name,))
