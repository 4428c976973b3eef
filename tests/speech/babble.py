"""A model that says something else for every sound, at once: what it says depends on all that it is told."""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable, Sequence

import numpy as np

from akunu.speech.config import WhisperConfig
from akunu.speech.rules import TokenRules, best_tokens

from . import tiny
from .counting import Array, CountingModel

CONFIG = WhisperConfig(tiny.VOCAB, 80, 1500, 32, 2, 2, 448, 4, 2, ((1, 0),))


class Babble(CountingModel):
    """Random logits, of a window and the tokens so far; sequences end after a while."""

    config = CONFIG
    device = "fake"
    memory = {"weights": 1, "weights_mapped": 0, "kv_cache": 2, "scratch": 3}  # noqa: RUF012

    def __init__(self, delay: float = 0.0) -> None:
        super().__init__()
        self.delay = delay
        self.closed = False
        self.threads: set[int] = set()
        self.heard_windows = 0
        self._held: Callable[[], bool] | None = None

    def hold_until(self, condition: Callable[[], bool]) -> None:
        """The next window is not heard before `condition` holds."""
        self._held = condition

    def heard(self, mel: Array) -> int:
        deadline = time.monotonic() + 20
        while self._held is not None and not self._held():
            assert time.monotonic() < deadline
            time.sleep(0.001)
        self._held = None
        self.heard_windows += 1
        return zlib.crc32(np.round(mel[:, ::7] * 16).astype(np.int8).tobytes())

    def rows(self, window: int, tokens: Sequence[int], places: Sequence[int], start: int) -> Array:
        self.threads.add(threading.get_ident())
        time.sleep(self.delay)
        return np.stack([self._after(window, tokens[: place + 1], start) for place in places])

    def _after(self, window: int, tokens: Sequence[int], start: int) -> Array:
        seed = zlib.crc32(np.asarray(tokens, np.int32).tobytes(), window)
        row = np.random.default_rng(seed).normal(0, 1, tiny.VOCAB).astype(np.float32)
        special = tiny.tokenizer().special
        row[256 : special.end] += 4  # rather words than bytes
        row[special.end] += max(len(tokens) - start - 4, 0)
        row[special.timestamp_begin :] -= np.linspace(0, 8, 1501, dtype=np.float32)  # rather early times
        row[special.no_speech] = -9
        return row

    def attend(self, states: int, tokens: Sequence[int]) -> tuple[Array, Array]:
        logits = self.rows(self.windows[states], list(tokens), range(len(tokens)), 1)
        weights = np.random.default_rng(self.windows[states]).random((1, len(tokens), 1500), np.float32)
        diagonal = np.linspace(0, 1400, len(tokens)).astype(int)
        weights[0, np.arange(len(tokens)), diagonal] += 5
        return weights / weights.sum(axis=-1, keepdims=True), logits

    def close(self) -> None:
        assert not self.alive and not self.windows
        self.closed = True


class Device(Babble):
    """The same, with rules, ranking and drawing of its own, as an engine has them."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, int]] = []

    def _ruled(self, sequences: Sequence[int], rules: TokenRules, begun: int) -> Array:
        rows, said = [], []
        for sequence in sequences:
            window, held, start = self.alive[sequence]
            rows.append(self.rows(self.windows[window], held, [len(held) - 1], start)[0])
            said.append(held[start - begun :])
        logits = np.stack(rows)
        rules.apply(logits, said)
        return logits

    def rank(
        self, sequences: Sequence[int], tokens: Sequence[int], rules: TokenRules, count: int, *, begun: int
    ) -> tuple[np.ndarray, Array]:
        self.calls.append(("rank", len(sequences)))
        for sequence, token in zip(sequences, tokens, strict=True):
            self.alive[sequence][1].append(token)
        return best_tokens(self._ruled(sequences, rules, begun), count)

    def decode(
        self,
        sequences: Sequence[int],
        rules: TokenRules,
        *,
        temperature: float,
        most: int,
        seeds: Sequence[int],
        begun: int,
    ) -> list[tuple[list[int], float]]:
        self.calls.append(("decode", len(sequences)))
        end, found = tiny.tokenizer().special.end, []
        for sequence, seed in zip(sequences, seeds, strict=True):
            ids: list[int] = []
            total = 0.0
            while len(ids) < most:
                logits = self._ruled([sequence], rules, begun)
                if temperature:
                    held = len(self.alive[sequence][1])
                    logits = logits / temperature + np.random.default_rng([seed, held]).gumbel(
                        size=logits.shape
                    ).astype(np.float32)
                (token,), (log_p,) = (values[0] for values in best_tokens(logits, 1))
                total += float(log_p)
                if token == end:
                    break
                ids.append(int(token))
                self.alive[sequence][1].append(int(token))
            found.append((ids, total))
        return found
