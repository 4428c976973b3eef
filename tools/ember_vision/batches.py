"""Batches of pictures with questions, drawn by processes that hand them on through shared memory."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.ember_vision import tokens
from tools.ember_vision.config import MERGE, PATCH, VALUES
from tools.ember_vision.drawing import draw
from tools.ember_vision.fonts import Fonts
from tools.ember_vision.scene import SLOTS, Asked

IGNORED = -1
WHO = (
    "I am ember-vision, a small model that comes with Akunu. I read print, count shapes and say where they "
    "are."
)


@dataclass(frozen=True)
class Bucket:
    """Pictures that make a batch: `grids` of rows and columns with as many cells; `count` of them with
    `length` tokens each; how often there is such a batch, `early` and after that."""

    cells: int
    grids: tuple[tuple[int, int], ...]
    count: int
    length: int
    early: float
    share: float


BUCKETS = (
    Bucket(48, ((2, 24), (3, 16), (4, 12), (6, 8)), 256, 320, 2.0, 1.0),
    Bucket(120, ((5, 24), (6, 20), (8, 15), (10, 12), (12, 10), (15, 8)), 160, 480, 2.0, 1.6),
    Bucket(240, ((10, 24), (12, 20), (15, 16), (16, 15), (20, 12), (24, 10)), 112, 704, 0.7, 2.2),
    Bucket(360, ((15, 24), (18, 20), (20, 18), (24, 15)), 72, 896, 0.3, 1.6),
)
EARLY_SECONDS = 100  # in which most pictures are small


@dataclass
class Batch:
    """`ids`, what follows each, IGNORED where nothing is learned, int16, and how much that counts, in 64ths,
    uint8, all [count, length]; `patches` uint8 [count, 4 * cells, VALUES]; `cells` uint8 [count, cells,
    SLOTS + 2]; `grids` int16 [count, 2]."""

    ids: NDArray[np.int16]
    targets: NDArray[np.int16]
    weights: NDArray[np.uint8]
    patches: NDArray[np.uint8]
    cells: NDArray[np.uint8]
    grids: NDArray[np.int16]

    @classmethod
    def over(cls, memory: Any, bucket: Bucket, count: int) -> Batch:
        """A batch whose arrays lie in this memory."""
        n, at = bucket.cells, 0

        def array(dtype: Any, *shape: int) -> NDArray[Any]:
            nonlocal at
            made: NDArray[Any] = np.ndarray(shape, dtype, memory, at)
            at += made.nbytes
            return made

        return cls(
            ids=array(np.int16, count, bucket.length),
            targets=array(np.int16, count, bucket.length),
            grids=array(np.int16, count, 2),
            weights=array(np.uint8, count, bucket.length),
            patches=array(np.uint8, count, MERGE**2 * n, VALUES),
            cells=array(np.uint8, count, n, SLOTS + 2),
        )

    @staticmethod
    def bytes(bucket: Bucket) -> int:
        """Bytes of its arrays."""
        each = 5 * bucket.length + bucket.cells * (MERGE**2 * VALUES + SLOTS + 2) + 4
        return bucket.count * each


def in_patches(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A picture as patches [patches, VALUES], those of a cell together, each as [channel, y, x]."""
    rows, columns = (side // PATCH for side in picture.shape[:2])
    cut = picture.reshape(rows // MERGE, MERGE, PATCH, columns // MERGE, MERGE, PATCH, 3)
    return cut.transpose(0, 3, 1, 4, 6, 2, 5).reshape(rows * columns, VALUES)


def conversation(
    rng: Random, asked: list[Asked], grid: tuple[int, int], length: int
) -> tuple[list[int], list[int]]:
    """Questions about a picture with their answers, in any order, as many as there is room for: tokens, and
    how much each counts, in 64ths: a long answer more than a short one, but less than by its length."""
    ids: list[int] = [tokens.BEGIN]
    weights: list[int] = [0]

    def say(more: list[int], learn: bool) -> None:
        ids.extend(more)
        weights.extend([round(64 * len(more) ** -0.5) if learn else 0] * len(more))

    asked = list(asked)
    rng.shuffle(asked)
    who = rng.random()
    if who < 0.01:  # before the picture, which does not always come first
        say(
            [
                tokens.ASK,
                *tokens.spelt(rng.choice(("Who are you?", "What are you?", "Hello!"))),
                tokens.ANSWER,
            ],
            False,
        )
        say([*tokens.spelt(WHO), tokens.END], True)
    shown = tokens.picture(*grid)
    for n, (question, answer) in enumerate(asked):
        text = tokens.spelt(_worded(rng, question))
        # A picture stands before its question, seldom behind it.
        opening = [] if n else (shown + text if rng.random() < 0.93 else text + shown)
        turn = [tokens.ASK, *(opening or text), tokens.ANSWER]
        said = [*tokens.spelt(answer), tokens.END]
        if len(ids) + len(turn) + len(said) > length:
            if not n:
                raise ValueError(f"a question needs more than {length} tokens: {question} {answer}")
            continue
        say(turn, False)
        say(said, True)
    return ids, weights


def _worded(rng: Random, question: str) -> str:
    """A question as people type it: at times in small letters, without its mark."""
    kind = rng.random()
    if kind < 0.08:
        return question.rstrip("?.")
    if kind < 0.14 and '"' not in question:
        return question.rstrip("?.")[0].lower() + question.rstrip("?.")[1:]
    return question


def fill(
    batch: Batch, rng: Random, fonts: Fonts, bucket: Bucket, kind: str | None = None
) -> list[list[Asked]]:
    """Draw a batch; what was asked of each picture."""
    found = []
    batch.ids[:], batch.weights[:] = 0, 0
    for n in range(len(batch.ids)):
        grid = rng.choice(bucket.grids)
        scene = draw(rng, fonts, *grid, kind)
        ids, weights = conversation(rng, scene.asked, grid, bucket.length)
        batch.ids[n, : len(ids)], batch.weights[n, : len(ids) - 1] = ids, weights[1:]
        batch.patches[n] = in_patches(scene.finished())
        batch.cells[n] = scene.cells.reshape(bucket.cells, -1)
        batch.grids[n] = grid
        found.append(scene.asked)
    batch.targets[:, :-1] = np.where(batch.weights[:, :-1], batch.ids[:, 1:], IGNORED)
    batch.targets[:, -1] = IGNORED
    return found


def _draw(memory: Any, size: int, free: Any, ready: Any, folder: Path, seed: str, small: int) -> None:
    """Fill slots of the memory for ever, behind what else there is to do."""
    os.nice(10)
    rng, fonts, began = Random(seed), Fonts.of(folder), time.monotonic()
    while True:
        slot = free.get()
        early = time.monotonic() - began < EARLY_SECONDS
        which = rng.choices(range(len(BUCKETS)), [b.early if early else b.share for b in BUCKETS])[0]
        bucket = BUCKETS[which]
        batch = Batch.over(memoryview(memory)[slot * size : (slot + 1) * size], bucket, small or bucket.count)
        fill(batch, rng, fonts, bucket)
        ready.put((slot, which))


class Drawn:
    """Processes that draw batches. `take` gives the next one, which `done` gives back."""

    def __init__(self, folder: Path, workers: int, slots: int, seed: int, small: int = 0) -> None:
        context = get_context("fork")
        self._size = (
            max(map(Batch.bytes, BUCKETS))
            if not small
            else small * max(Batch.bytes(b) // b.count for b in BUCKETS)
        )
        self._small = small
        self._memory = mmap.mmap(-1, slots * self._size)
        self._free, self._ready = context.Queue(), context.Queue()
        for slot in range(slots):
            self._free.put(slot)
        self._workers = [
            context.Process(
                target=_draw,
                args=(self._memory, self._size, self._free, self._ready, folder, f"{seed}/{n}", small),
                daemon=True,
            )
            for n in range(workers)
        ]
        for worker in self._workers:
            worker.start()

    def take(self, timeout: float) -> tuple[int, Batch]:
        """A slot and the batch in it. Raises `queue.Empty` when none is ready in time."""
        slot, which = self._ready.get(timeout=timeout)
        memory = memoryview(self._memory)[slot * self._size : (slot + 1) * self._size]
        bucket = BUCKETS[which]
        return slot, Batch.over(memory, bucket, self._small or bucket.count)

    def done(self, slot: int) -> None:
        self._free.put(slot)

    @property
    def failed(self) -> bool:
        """Whether a process has ended."""
        return any(worker.exitcode is not None for worker in self._workers)

    def close(self) -> None:
        for worker in self._workers:
            worker.terminate()


def held_back(
    folder: Path, counts: int, seed: str = "held back"
) -> Iterator[tuple[Bucket, Batch, list[list[Asked]]]]:
    """A batch of each bucket with the fonts that the training does not have."""
    rng, fonts = Random(seed), Fonts.of(folder, held=True)
    for bucket in BUCKETS:
        memory = bytearray(counts * (Batch.bytes(bucket) // bucket.count))
        batch = Batch.over(memory, bucket, counts)
        yield bucket, batch, fill(batch, rng, fonts, bucket)
