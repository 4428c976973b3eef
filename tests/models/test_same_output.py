"""Same output: whatever runs beside it, however it is cut, cached, drafted, set aside or masked.

Random mixes of sequences run through the scheduler on real engines, with everything at once: chunks of any
size, few pages (so that some are squeezed out), earlier ones in memory, pinned there and in files, forks,
drafts by lookup and by another model whether they pay or not, masks, readers in no order, some of whom leave
or cancel. Each is compared with what it is in an engine of its own: ids, and on the CPU the bits of the
log-probabilities.
"""

from __future__ import annotations

import contextlib
import copy
import random
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from akunu import _core
from akunu._core import PAGE
from akunu.api.scheduling import ModelStats, Scheduler, Sequence, planning
from akunu.api.scheduling.drafts import Proposal, StepCosts
from akunu.api.scheduling.model_proposer import ModelProposer, Proposer
from akunu.api.scheduling.page_files import PageFiles
from akunu.api.scheduling.prefix import Prefix
from akunu.base.errors import InvalidArgumentError
from akunu.files.describe.config import ModelSpec
from akunu.files.describe.gguf_config import resolve
from api.fakes import decide_drafts

from . import tiny

DEVICE = "cpu"  # tests/metal sets another
CONTEXT = 128
TOP = 5
"""Log-probabilities that are compared at each token, besides that of the token itself."""


class EveryThird:
    """A constraint that leaves out a third of the tokens, others at each, and forces one now and then."""

    end_id = 0
    exact = True
    finished = False
    ahead = 1.0

    def __init__(self, vocab: int) -> None:
        self._vocab = vocab
        self._n = 0

    def mask(self) -> np.ndarray:
        allowed = (np.arange(-(-self._vocab // 32) * 32) + self._n) % 3 != 0
        return np.packbits(allowed, bitorder="little").view(np.uint32)

    def advance(self, tokens: Iterable[int]) -> None:
        self._n += len(list(tokens))

    def fork(self) -> EveryThird:
        return copy.copy(self)

    def forced(self) -> list[int]:
        return [self._n % self._vocab] * (self._n % 7 == 6)


@dataclass
class Case:
    """A sequence, what it is alone, and how far a mix has got with it."""

    prompt: list[int]
    settings: dict[str, Any]
    limit: int
    masked: bool
    expected: list[tuple[int, float, tuple[tuple[int, float], ...]]] = field(default_factory=list)

    def sequence(self, vocab: int, *, speculative: bool = True) -> Sequence:
        constraint = EveryThird(vocab) if self.masked else None
        return Sequence(
            np.array(self.prompt, np.uint32),
            self.settings,
            self.limit,
            speculative=speculative,
            constraint=constraint,
        )


def tokens_of(chunk: Any) -> list[tuple[int, float, tuple[tuple[int, float], ...]]]:
    """The tokens of a chunk with their log-probabilities, where there are some."""
    if not chunk.logprobs:
        return [(token, 0.0, ()) for token in chunk.ids]
    return [
        (token, p, tuple(top))
        for token, p, top in zip(chunk.ids, chunk.logprobs, chunk.top_logprobs, strict=True)
    ]


Happenings = dict[str, Callable[[list[ModelStats]], bool]]
"""What could change an output, and how the counts of some mixes say that it happened."""

FOUND: Happenings = {"pages are found": lambda mixed: any(stats.hits for stats in mixed)}
KEPT: Happenings = {
    "pages are found or make room": lambda mixed: any(
        stats.hits or stats.hits_disk or stats.misses_evicted for stats in mixed
    ),
}
DRAFTED: Happenings = {"drafts hold": lambda mixed: any(stats.accepted_tokens for stats in mixed)}
MODEL_DRAFTED: Happenings = {
    "a model drafts": lambda mixed: sum(stats.model_drafted_tokens for stats in mixed) > 50,
}
BOTH_DRAFTED: Happenings = {
    "drafts of the model hold": lambda mixed: any(stats.model_accepted_tokens for stats in mixed),
    "drafts by lookup hold": lambda mixed: any(
        stats.accepted_tokens > stats.model_accepted_tokens for stats in mixed
    ),
}


class Mixes:
    """Mixes of sequences on one model."""

    def __init__(self, path: Path, folder: Path | None, resolve: Callable[..., ModelSpec] = resolve) -> None:
        self.seed = zlib.crc32(path.stem.encode())  # other mixes for each model
        self._folder, self._resolve = folder, resolve  # without a folder no pages are kept in files
        self._file = _core.GgufFile(str(path))
        self._alone = Scheduler(self.engine(parallel=1))
        self._cases: list[Case] = []

    def engine(self, **options: Any) -> _core.Engine:
        spec = self._resolve(self._file, context=CONTEXT)
        self.vocab = spec.config.vocab_size
        return _core.Engine(self._file, spec, device=DEVICE, context=CONTEXT, **options)

    def proposer(self, engine: _core.Engine) -> Proposer:
        """What drafts for an engine."""
        return ModelProposer(self.engine(parallel=engine.parallel, kv_dtype="q8_0"), self.vocab, 0.1)

    def case(self, rng: random.Random) -> Case:
        """One of an earlier mix, or one that begins like another, repeats itself, or neither."""
        others = self._cases
        if others and rng.random() < 0.4:
            return rng.choice(others)
        n = rng.choice((1, 7, 32, 33, 60, 90))
        kind = rng.random()
        if others and kind < 0.5:
            other = rng.choice(others)
            whole = other.prompt + [token for token, *_ in other.expected]
            prompt = whole[: rng.randint(1, len(whole))] + [rng.randrange(self.vocab)] * rng.randint(0, 3)
        elif kind < 0.7:
            prompt = ([rng.randrange(self.vocab) for _ in range(5)] * n)[: max(n, 12)]
        else:
            prompt = [rng.randrange(self.vocab) for _ in range(n)]
        sampled = {"temperature": 1.2, "top_k": 20, "seed": rng.randrange(1 << 40), "repeat_penalty": 1.1}
        masked, asked = rng.random() < 0.2, rng.random() < 0.6
        case = Case(
            prompt[: CONTEXT - 8],
            {**rng.choice(({"temperature": 0.0}, sampled)), "logprobs": TOP if asked and not masked else -1},
            rng.randint(1, 40),
            masked,
        )
        sequence = case.sequence(self.vocab, speculative=False)
        self._alone.submit(sequence)
        while (chunk := self._alone.next(sequence)) is not None:
            case.expected += tokens_of(chunk)
        self._alone.end(sequence, 0)
        with self._alone.exclusive() as engine:
            engine.forget()
        others.append(case)
        return case

    def run_until(
        self, happened: Happenings, seeds: range, monkeypatch: pytest.MonkeyPatch, least: int
    ) -> None:
        """Run a mix of each seed until all of these have happened, `least` mixes at least.

        Which mix has what is not the seed's alone: the scheduler's thread and the readers run side by side.
        """
        mixed = list[ModelStats]()
        for seed in seeds:
            mixed.append(self.run(seed, monkeypatch))
            missing = [name for name, shown in happened.items() if not shown(mixed)]
            if len(mixed) >= least and not missing:
                break
        assert not missing

    def run(
        self, seed: int, monkeypatch: pytest.MonkeyPatch, *, bits: bool = True, reads: int = 100
    ) -> ModelStats:
        """One mix; returns what was counted."""
        rng = random.Random(seed)
        monkeypatch.setattr(planning, "ABSENT_SECONDS", 0.0)  # who is not reading now has gone away

        def worth(
            _: StepCosts, rows: int, proposals: list[Proposal], most: int, writing: float = 0.0
        ) -> tuple[float, list[int]]:
            lengths = []
            for proposal in proposals:
                lengths.append(rng.randint(0, max(min(proposal.tokens, most - rows - sum(lengths)), 0)))
            return (rng.random() if any(lengths) else 0.0), lengths

        decide_drafts(monkeypatch, worth)
        parallel = rng.randint(1, 4)
        options = {"chunk": rng.choice((1, 5, 16, 40, 128)), "threads": rng.randint(1, 2)}
        engine = self.engine(parallel=parallel, **options)
        page = engine.pages["page_bytes"]
        if rng.random() < 0.6:  # a context and a few more pages
            states = engine.pages["state_bytes"] * (parallel + 2)
            engine = self.engine(parallel=parallel, kv_memory=page * rng.randint(5, 7) + states, **options)
        files = proposer = None
        if rng.random() < 0.6 and self._folder is not None:
            files = PageFiles(self._folder, page * 40, b"the same", engine.part_bytes)
        if rng.random() < 0.5:
            proposer = self.proposer(engine)
        mix = Scheduler(engine, files, proposer)
        reading: list[tuple[Case, Sequence, list[Any]]] = []
        pinned, pins = list[np.ndarray](), random.Random(seed)
        for _ in range(reads):
            if engine.pages["state_bytes"] == 0 and pins.random() < 0.2:
                self._pin(mix, pinned, pins)
            if len(reading) < 6 and (not reading or rng.random() < 0.3):
                # One that runs already is ahead: what it wrote are drafts for the other by lookup.
                case = rng.choice(reading)[0] if reading and rng.random() < 0.3 else self.case(rng)
                sequence = case.sequence(self.vocab)
                mix.submit(sequence)
                reading.append((case, sequence, []))
            if reading:
                self._read(mix, reading, rng, bits)
        while reading:
            self._read(mix, reading, rng, bits, stay=True)
        mix.flush()
        for ids in pinned:
            mix.unpin(Prefix(ids))
        stats = mix.stats
        assert (
            stats.pages_held
            == stats.pages_pinned
            == stats.running
            == stats.waiting
            == stats.disk_damaged
            == 0
        )
        mix.close()
        return stats

    def _pin(self, mix: Scheduler, pinned: list[np.ndarray], rng: random.Random) -> None:
        """Pin the beginning of an earlier sequence, if it is cached and there is room, or unpin one."""
        if pinned and rng.random() < 0.4:
            mix.unpin(Prefix(pinned.pop(rng.randrange(len(pinned)))))
            return
        prompts = [case.prompt for case in self._cases if len(case.prompt) >= PAGE]
        if not prompts:
            return
        prompt = rng.choice(prompts)
        ids = np.array(prompt[: PAGE * rng.randint(1, len(prompt) // PAGE)], np.uint32)
        with contextlib.suppress(InvalidArgumentError):
            if mix.pin(Prefix(ids)) and not any(np.array_equal(ids, other) for other in pinned):
                pinned.append(ids)

    @staticmethod
    def _read(mix: Scheduler, reading: list[Any], rng: random.Random, bits: bool, stay: bool = False) -> None:
        entry = rng.choice(reading)
        case, sequence, found = entry
        what = 1.0 if stay else rng.random()
        if what < 0.03:
            mix.cancel(sequence)
        chunk = None if 0.03 <= what < 0.06 else mix.next(sequence)
        found += tokens_of(chunk) if chunk is not None else []
        expected = case.expected[: len(found)]
        if bits:
            assert found == expected, (case.prompt, case.settings)
        else:
            assert [token for token, *_ in found] == [token for token, *_ in expected]
        if chunk is None:
            reading.remove(entry)
            left = sequence.cancelled or 0.03 <= what < 0.06
            assert left or len(found) == len(case.expected)
            mix.end(sequence, len(case.prompt) + (rng.randint(0, len(found)) if found else 0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("same_output")


@pytest.fixture(params=tiny.ALL)
def mixes(request: pytest.FixtureRequest, folder: Path) -> Mixes:
    path = folder / f"{request.param}.gguf"
    if not path.exists():
        tiny.write(request.param, "F32", path)
    return Mixes(path, folder / f"{request.param}-pages")


@pytest.mark.table
def test_a_sequence_is_what_it_is_alone(mixes: Mixes, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(2):
        mixes.run(mixes.seed + seed, monkeypatch)


@pytest.mark.long
def test_a_sequence_is_what_it_is_alone_in_many_mixes(mixes: Mixes, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what could change it happens: pages are found or had to make room, drafts of both kinds hold.

    With some models that takes a few mixes more.
    """
    mixes.run_until(KEPT | BOTH_DRAFTED, range(100, 140), monkeypatch, least=6)
