"""Pages without a model, for tests of the files that keep them. Other processes of the tests use it too."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from akunu.api.scheduling.page_files import HEADER, PageFiles
from akunu.api.scheduling.page_parts import PageParts
from akunu.api.scheduling.prefix import Prefix

SIZE = 1000  # of a page
PARTS = PageParts((SIZE,))
FILE = SIZE + HEADER.size
LIMIT = 20 * FILE


def ids(seed: int, n: int = 96) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 100, n).astype(np.uint32)


def page(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, SIZE).astype(np.uint8)


def store(folder: Path, *, limit: int = 1 << 30, identity: bytes = b"a model") -> PageFiles:
    return PageFiles(folder, limit, identity, [SIZE])


def share(folder: Path, seed: int) -> None:
    """Read pages that others write too, or write them."""
    files, rng, read = store(folder, limit=LIMIT), np.random.default_rng(seed), 0
    for _ in range(300):
        i = int(rng.integers(0, 30))
        key = files.keys(Prefix(ids(i, 32)))[0]
        try:
            assert np.array_equal(files.read(key, ids(i, 32)), page(i))
            read += 1
        except FileNotFoundError:
            files.write(key, ids(i, 32), page(i))
    assert read > 50


def write_until_killed(folder: Path) -> None:
    files = store(folder)
    for i in range(1_000_000):
        files.write(files.keys(Prefix(ids(i, 32)))[0], ids(i, 32), page(i))
        if i == 20:
            print("going", flush=True)
