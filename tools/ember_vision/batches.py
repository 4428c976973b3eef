"""Batches of pictures with questions, drawn by processes that hand them on through shared memory."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
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
from tools.ember_vision.scene import SLOTS, Asked, Scene

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
EARLY_SECONDS = 100  # in which most pictures are small, for a new model


@dataclass
class Batch:
    """`ids`, what follows each, IGNORED where nothing is learned, int16, and how much that counts, in 64ths,
    uint8, all [count, length]; `parts` uint8 and `places` int16 [count, length], as in a Conversation;
    `patches` uint8 [count, 4 * cells, VALUES]; `cells` uint8 [count, cells, SLOTS + 2]; `grids` int16
    [count, 2]."""

    ids: NDArray[np.int16]
    targets: NDArray[np.int16]
    weights: NDArray[np.uint8]
    parts: NDArray[np.uint8]
    places: NDArray[np.int16]
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
            places=array(np.int16, count, bucket.length),
            weights=array(np.uint8, count, bucket.length),
            parts=array(np.uint8, count, bucket.length),
            patches=array(np.uint8, count, MERGE**2 * n, VALUES),
            cells=array(np.uint8, count, n, SLOTS + 2),
        )

    def put(self, n: int, scene: Scene, grid: tuple[int, int], said: Conversation) -> None:
        """Row `n`: a picture and what is said about it."""
        end = len(said.ids)
        self.ids[n, :end], self.weights[n, : end - 1] = said.ids, said.weights[1:]
        self.parts[n, :end], self.places[n, :end] = said.parts, said.places
        self.targets[n] = IGNORED
        self.targets[n, : end - 1] = np.where(self.weights[n, : end - 1], self.ids[n, 1:end], IGNORED)
        self.patches[n] = in_patches(scene.finished())
        self.cells[n] = scene.cells.reshape(self.cells.shape[1], -1)
        self.grids[n] = grid

    @staticmethod
    def bytes(bucket: Bucket) -> int:
        """Bytes of its arrays."""
        each = 8 * bucket.length + bucket.cells * (MERGE**2 * VALUES + SLOTS + 2) + 4
        return bucket.count * each


def in_patches(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A picture as patches [patches, VALUES], those of a cell together, each as [channel, y, x]."""
    rows, columns = (side // PATCH for side in picture.shape[:2])
    cut = picture.reshape(rows // MERGE, MERGE, PATCH, columns // MERGE, MERGE, PATCH, 3)
    return cut.transpose(0, 3, 1, 4, 6, 2, 5).reshape(rows * columns, VALUES)


@dataclass
class Conversation:
    """Tokens of one row; how much each counts, in 64ths: those of a long answer more than those of a short
    one, but less than by its length; the part that each belongs to; its place in the text.

    Part 0 is seen by all that follows. A token of another part sees part 0 and its own: each question is
    asked as if it were the only one.
    """

    ids: list[int] = field(default_factory=list)
    weights: list[int] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)

    def say(self, more: list[int], learn: bool, part: int = 0) -> None:
        follows = bool(self.parts) and (part == 0 or self.parts[-1] == part)
        place = self.places[-1] + 1 if follows else self.parts.count(0)
        self.ids += more
        self.weights += [round(64 * len(more) ** -0.5) if learn else 0] * len(more)
        self.parts += [part] * len(more)
        self.places += range(place, place + len(more))


CHAINED = 0.15
"""Share of the pictures whose questions are asked one after the other, each with the answers before it."""


def conversation(
    rng: Random,
    asked: list[Asked],
    grid: tuple[int, int],
    length: int,
    chained: float = CHAINED,
    plain: bool = False,
) -> Conversation:
    """Questions about a picture with their answers, in any order, as many as there is room for.

    Questions are as people type them, or as they stand if they are to be `plain`.
    """
    asked = list(asked)
    rng.shuffle(asked)
    made = Conversation()
    made.say([tokens.BEGIN], False)
    shown = tokens.picture(*grid)
    chain = rng.random() < chained
    if not chain:
        made.say([tokens.ASK, *shown], False)
    elif rng.random() < 0.07:  # before the picture, which does not always come first
        who = tokens.spelt(rng.choice(("Who are you?", "What are you?", "Hello!")))
        made.say([tokens.ASK, *who, tokens.ANSWER], False)
        made.say([*tokens.spelt(WHO), tokens.END], True)
    said_so_far = 0
    for question, answer in asked:
        text = tokens.spelt(question if plain else _worded(rng, question))
        if chain:
            # A picture stands before its question, seldom behind it.
            before = rng.random() < 0.8
            first = (shown + text if before else text + shown) if not said_so_far else text
            turn = [tokens.ASK, *first, tokens.ANSWER]
        else:
            turn = [*text, tokens.ANSWER]
        said = [*tokens.spelt(answer), tokens.END]
        if len(made.ids) + len(turn) + len(said) > length:
            if not said_so_far:
                raise ValueError(f"a question needs more than {length} tokens: {question} {answer}")
            continue
        said_so_far += 1
        part = 0 if chain else said_so_far
        made.say(turn, False, part)
        made.say(said, True, part)
    return made


def _worded(rng: Random, question: str) -> str:
    """A question as people type it: at times in small letters, without its mark."""
    kind = rng.random()
    if kind < 0.08:
        return question.rstrip("?.")
    if kind < 0.14 and '"' not in question:
        return question.rstrip("?.")[0].lower() + question.rstrip("?.")[1:]
    return question


def fill(
    batch: Batch,
    rng: Random,
    fonts: Fonts,
    bucket: Bucket,
    kind: str | None = None,
    chained: float = CHAINED,
) -> list[list[Asked]]:
    """Draw a batch; what was asked of each picture."""
    found = []
    for array in (batch.ids, batch.weights, batch.parts, batch.places):
        array[:] = 0
    for n in range(len(batch.ids)):
        grid = rng.choice(bucket.grids)
        scene = draw(rng, fonts, *grid, kind)
        batch.put(n, scene, grid, conversation(rng, scene.asked, grid, bucket.length, chained))
        found.append(scene.asked)
    return found


def _draw(
    memory: Any, size: int, free: Any, ready: Any, folder: Path, seed: str, small: int, new: bool
) -> None:
    """Fill slots of the memory for ever, behind what else there is to do."""
    os.nice(10)
    rng, fonts, began = Random(seed), Fonts.of(folder), time.monotonic()
    while True:
        slot = free.get()
        early = new and time.monotonic() - began < EARLY_SECONDS
        which = rng.choices(range(len(BUCKETS)), [b.early if early else b.share for b in BUCKETS])[0]
        bucket = BUCKETS[which]
        batch = Batch.over(memoryview(memory)[slot * size : (slot + 1) * size], bucket, small or bucket.count)
        fill(batch, rng, fonts, bucket)
        ready.put((slot, which))


class Drawn:
    """Processes that draw batches, for a `new` model mostly small ones at first. `take` gives the next one,
    which `done` gives back."""

    def __init__(
        self, folder: Path, workers: int, slots: int, seed: int, small: int = 0, new: bool = True
    ) -> None:
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
                args=(self._memory, self._size, self._free, self._ready, folder, f"{seed}/{n}", small, new),
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
        yield bucket, batch, fill(batch, rng, fonts, bucket, chained=0)
