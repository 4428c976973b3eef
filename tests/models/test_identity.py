"""Cached pages are found by sequences of their identity: salt, tokens, what stands in their place."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from akunu import _core
from akunu._core import PAGE
from akunu.api.scheduling import Scheduler, Sequence
from akunu.api.scheduling.page_files import PageFiles
from akunu.api.scheduling.prefix import Prefix
from akunu.base.errors import InvalidArgumentError
from akunu.files.describe.gguf_config import resolve

from . import tiny

CONTEXT = 160
SALTS = (None, "", "one", "another")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write("llama3", "F32", tmp_path_factory.mktemp("tiny") / "llama3.gguf").path


def opened(path: Path, pages: int) -> _core.Engine:
    file = _core.GgufFile(str(path))
    spec = resolve(file, context=CONTEXT)
    options = {"context": CONTEXT, "chunk": 64, "kv_dtype": "f32", "threads": 1, "parallel": 3}
    page_bytes = _core.Engine(file, spec, device="cpu", **options).pages["page_bytes"]
    return _core.Engine(file, spec, device="cpu", **options, kv_memory=pages * page_bytes)


def random_prefix(rng: random.Random, salts: tuple[str | None, ...] = SALTS) -> Prefix:
    """One of a few that begin alike, with one of a few salts, and maybe with other things at places."""
    n = rng.randint(2, 120)
    ids = np.array([(i * 7) % 50 for i in range(n)], np.uint32)
    if rng.random() < 0.5:
        ids[rng.choice((5, 40, 70)) :] += 1
    contents = None
    if rng.random() < 0.5:
        contents = np.zeros(rng.randint(0, n), np.uint64)
        # A hash may have the very number of the token that stands there, and any bits.
        at = rng.choice((0, 3, 33, 64))
        contents[at : at + 2] = rng.choice((1, 7, 2**32 + 21, 2**64 - 1))
    return Prefix(ids, rng.choice(salts), contents)


def keys(prefix: Prefix) -> list[tuple[int, int]]:
    contents = [] if prefix.contents is None else prefix.contents.tolist()
    contents += [0] * (len(prefix.ids) - len(contents))
    return [
        (0, token) if other == 0 else (1, other | 1 << 63)
        for token, other in zip(prefix.ids, contents, strict=True)
    ]


def common(a: Prefix, b: Prefix) -> int:
    """Counted otherwise than `Prefix.common` does."""
    n = 0
    if a.salt == b.salt:
        for left, right in zip(keys(a), keys(b), strict=False):
            if left != right:
                break
            n += 1
    return n


@pytest.mark.parametrize("pages", [12, 200], ids=["few pages", "many pages"])
@pytest.mark.parametrize("seed", range(3))
def test_a_sequence_finds_what_sequences_of_its_identity_left(seed: int, pages: int, model: Path) -> None:
    engine, rng = opened(model, pages), random.Random(seed)
    earlier: list[Prefix] = []
    found = 0
    for _ in range(150):
        prefix = random_prefix(rng)
        slot = engine.open()
        assert slot is not None
        cached = engine.begin(prefix.ids, slot=slot, **prefix.arguments)
        alike = max((min(common(prefix, other), len(prefix.ids) - 1) for other in earlier), default=0)
        assert cached <= alike
        found += cached
        left = len(prefix.ids) - cached
        while left > 0:
            rows = min(left, 64)
            assert engine.reserve(slot, rows)
            engine.step([(slot, rows, False, 0, [])])
            left -= rows
        if rng.random() < 0.3:  # goes back, and on with tokens, in a page that was known
            n = rng.randint(1, len(prefix.ids))
            earlier.append(prefix.first(len(prefix.ids) // PAGE * PAGE))  # whole pages can be found by now
            engine.truncate(n, slot)
            contents = None if prefix.contents is None else prefix.contents[:n]
            earlier.append(Prefix(prefix.ids[:n], prefix.salt, contents))
            more = np.array([3, 1, 4], np.uint32)
            engine.extend(slot, more)
            assert engine.reserve(slot, engine.length(slot) and 3)
            engine.step([(slot, 3, False, 0, [])])
            prefix = Prefix(np.concatenate([prefix.ids[:n], more]), prefix.salt, contents)
        earlier.append(prefix)
        engine.close_slot(slot)
    assert found > (1000 if pages == 200 else 200)


def test_pages_of_equal_tokens_and_other_identities_are_apart(
    model: Path,
) -> None:
    """Sequences of equal tokens: each has bytes of its own, in memory and in what is read of it."""
    engine = opened(model, 60)
    ids = np.arange(65, dtype=np.uint32)
    image = np.zeros(40, np.uint64)
    image[30:34] = 9
    other = image.copy()
    other[31] = 10
    tokens = image.copy()
    tokens[30:34] = ids[30:34]  # hashes with the numbers of the tokens
    prefixes = [Prefix(ids, salt, what) for salt in SALTS for what in (None, image, other, tokens)]
    size = engine.pages["page_bytes"]
    pages = {
        (n, k): np.random.default_rng([n, k]).integers(0, 256, size, np.uint8)
        for n in range(16)
        for k in (1, 2)
    }
    for n, prefix in enumerate(prefixes):
        slot = engine.open()
        assert slot is not None
        assert engine.begin(prefix.ids, slot=slot, reuse=False, **prefix.arguments) == 0
        assert engine.restore_page(slot, [pages[n, 1]]) and engine.restore_page(slot, [pages[n, 2]])
        engine.close_slot(slot)
    for n, prefix in enumerate(prefixes):
        for k in (1, 2):
            part = prefix.first(k * PAGE)
            found = engine.read_page(part.ids, **part.arguments)
            assert found is not None and np.array_equal(found[0], pages[n, k])
        part = prefix.first(2 * PAGE)
        assert engine.pin(part.ids, **part.arguments)
        assert engine.pages["pinned"] == 2
        with pytest.raises(InvalidArgumentError, match="not pinned"):
            another = prefixes[n - 1].first(2 * PAGE)
            engine.unpin(another.ids, **another.arguments)
        engine.unpin(part.ids, **part.arguments)


def test_contents_are_of_positions_of_the_sequence(model: Path) -> None:
    engine = opened(model, 12)
    with pytest.raises(InvalidArgumentError, match="contents of 4 positions, of a sequence of 3"):
        engine.begin([1, 2, 3], slot=engine.open(), contents=np.ones(4, np.uint64))


@pytest.mark.parametrize("seed", range(3))
def test_through_the_scheduler_and_files(seed: int, tmp_path: Path, model: Path) -> None:
    """Few pages, sequences that are set aside, and a process after another that find them in files."""
    rng = random.Random(seed)
    earlier: list[Prefix] = []
    found = disk = 0
    for _ in range(3):
        engine = opened(model, 14)
        files = PageFiles(tmp_path, 1 << 28, b"a model", engine.part_bytes)
        scheduler = Scheduler(engine, files)
        for _ in range(25):
            prefixes = [random_prefix(rng) for _ in range(rng.randint(1, 3))]
            sequences = [Sequence(t.ids, {}, 3, salt=t.salt, contents=t.contents) for t in prefixes]
            for sequence in sequences:
                scheduler.submit(sequence)
            done = list[Prefix]()
            for sequence, prefix in zip(sequences, prefixes, strict=True):
                while scheduler.next(sequence) is not None:
                    pass
                done.append(sequence.prefix(sequence.length))
                alike = max(
                    (
                        common(prefix, other)
                        for other in [*earlier, *done[:-1], *prefixes]
                        if other is not prefix
                    ),
                    default=0,
                )
                assert sequence.cached_tokens <= alike
                found += sequence.cached_tokens
            for sequence in sequences:
                scheduler.end(sequence, sequence.known)
            earlier += done
        scheduler.flush()
        disk += scheduler.stats.disk_tokens
        scheduler.close()
    assert found > 300 and disk > 100


def test_names_of_files_are_of_one_identity(tmp_path: Path) -> None:
    files = PageFiles(tmp_path, 1 << 20, b"a model", [100])
    ids = np.arange(96, dtype=np.uint32)
    image = np.zeros(96, np.uint64)
    image[70] = 5
    names = [set(files.keys(Prefix(ids, salt, what))) for salt in SALTS for what in (None, image)]
    plain, pictured = names[::2], names[1::2]
    assert len(set().union(*plain)) == 3 * len(SALTS)
    # What stands in the third page changes its name alone.
    assert all(len(a & b) == 2 for a, b in zip(plain, pictured, strict=True))
    assert len(set().union(*names)) == 4 * len(SALTS)
    nothing = np.zeros(40, np.uint64)
    assert set(files.keys(Prefix(ids, None, nothing))) == plain[0]


def test_the_common_beginning() -> None:
    rng = random.Random(1)
    for _ in range(300):
        a, b = random_prefix(rng, (None, "one")), random_prefix(rng, (None, "one"))
        assert a.common(b) == b.common(a) == common(a, b)
