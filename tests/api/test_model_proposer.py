"""Speculative decoding with a draft model: no output depends on it, and it stops where it does not pay."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import akunu
from akunu.api.scheduling import Scheduler, Sequence
from akunu.api.scheduling.drafts import PROPOSER_MOST, PROPOSER_TRUST, Proposal, ProposerTrust, UsualTrust
from akunu.api.scheduling.model_proposer import ModelProposer
from akunu.loading.draft_model import DraftModel
from models import llama2c

from .fakes import FakeEngine, decide_drafts, hashed
from .test_drafts import costs, everything, read

VOCAB = 50


def engines(agree: float, **options: int) -> tuple[FakeEngine, FakeEngine]:
    """A model, and one that agrees with it in this share of places."""
    model = hashed(VOCAB, 4)

    def smaller(tokens: list[int]) -> int:
        token = model(tokens)
        return token if random.Random(token * 1000 + len(tokens)).random() < agree else (token + 1) % VOCAB

    settings = {"vocab": VOCAB, "context": 300, "chunk": 64, **options}
    return FakeEngine(model, **settings), FakeEngine(smaller, **settings)


def sequence_of(seed: int, n: int = 20, limit: float = 60) -> Sequence:
    return Sequence(
        np.random.default_rng(seed).integers(0, VOCAB, n).astype(np.uint32), {"end_ids": (3,)}, limit
    )


@pytest.mark.parametrize("agree", [0.0, 0.7, 1.0])
def test_sequences_are_those_without_it(monkeypatch: pytest.MonkeyPatch, agree: float) -> None:
    decide_drafts(monkeypatch, everything)
    engine, smaller = engines(agree)
    plain, drafted = (
        Scheduler(engines(agree)[0]),
        Scheduler(engine, proposer=ModelProposer(smaller, VOCAB, 0.1)),
    )
    for seed in range(5):
        sequence = sequence_of(seed)
        assert read(drafted, sequence) == read(plain, sequence_of(seed))
    stats = drafted.stats
    assert stats.model_drafted_tokens > 100 and not smaller.sequences
    share = stats.model_accepted_tokens / stats.model_drafted_tokens
    assert share == agree if agree in (0, 1) else 0.1 < share < 0.9


def test_many_sequences_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slots for three, some sequences suspended in the middle, some left: each is what it is alone."""
    decide_drafts(monkeypatch, everything)
    rng, (engine, smaller) = random.Random(1), engines(0.8, parallel=3)
    scheduler = Scheduler(engine, proposer=ModelProposer(smaller, VOCAB, 0.1))
    plain = Scheduler(engines(0.8)[0])
    running: list[tuple[int, Sequence, list[int]]] = []
    finished = 0
    for seed in range(250):
        if len(running) < 5:
            sequence = sequence_of(seed, rng.randint(1, 90), rng.randint(1, 40))
            scheduler.submit(sequence)
            running.append((seed, sequence, []))
        entry = rng.choice(running)
        _, sequence, ids = entry
        if rng.random() < 0.05 and len(scheduler.running()) == 3:
            scheduler._planner.suspend(scheduler.running()[-1])
        if rng.random() < 0.02:
            scheduler.end(sequence, len(sequence.prompt))
            running.remove(entry)
        elif (chunk := scheduler.next(sequence)) is None:
            scheduler.end(sequence, sequence.known - 1)
            running.remove(entry)
            finished += 1
            assert ids == read(plain, Sequence(sequence.prompt, sequence.settings, sequence.limit))
        else:
            ids += chunk.ids
    for _, sequence, _ in running:
        scheduler.end(sequence, len(sequence.prompt))
    assert finished > 8 and not smaller.sequences and scheduler.stats.model_accepted_tokens > 100


def test_a_long_prompt_is_followed_a_piece_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    decide_drafts(monkeypatch, everything)
    engine, smaller = engines(1.0, context=2000, chunk=512)
    rows: list[int] = []
    step = smaller.step
    monkeypatch.setattr(
        smaller, "step", lambda parts, steps=1: (rows.append(sum(p[1] for p in parts)), step(parts, steps))[1]
    )
    sequence = sequence_of(1, 900)
    read(Scheduler(engine, proposer=ModelProposer(smaller, VOCAB, 0.1)), sequence)
    assert max(rows) <= 64 and sequence.accepted > 10


def test_tokens_that_the_larger_model_does_not_have_are_not_drafted(monkeypatch: pytest.MonkeyPatch) -> None:
    decide_drafts(monkeypatch, everything)
    engine = FakeEngine(hashed(VOCAB, 4), vocab=VOCAB, context=300)
    smaller = FakeEngine(lambda tokens: VOCAB + 5, vocab=VOCAB + 10, context=300)
    sequence = sequence_of(1)
    read(Scheduler(engine, proposer=ModelProposer(smaller, VOCAB, 0.1)), sequence)
    assert len(sequence.tokens) > 5 and sequence.drafted == 0


def test_where_it_fails_sequences_go_on_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    decide_drafts(monkeypatch, everything)
    engine, smaller = engines(1.0)
    scheduler = Scheduler(engine, proposer=ModelProposer(smaller, VOCAB, 0.1))
    plain = Scheduler(engines(1.0)[0])
    sequence = sequence_of(1)
    scheduler.submit(sequence)
    got = scheduler.next(sequence).ids
    while not sequence.accepted:
        got += scheduler.next(sequence).ids

    def fail(*_: object) -> None:
        raise RuntimeError("the device is out of memory")

    monkeypatch.setattr(smaller, "step", fail)
    with pytest.warns(RuntimeWarning, match="the draft model failed; sequences go on without it: the device"):
        while (chunk := scheduler.next(sequence)) is not None:
            got += chunk.ids
    scheduler.end(sequence, sequence.known - 1)
    assert got == read(plain, sequence_of(1))
    written = scheduler.stats.model_drafted_tokens
    assert (
        read(scheduler, sequence_of(2)) == read(plain, sequence_of(2))
        and scheduler.stats.model_drafted_tokens == written
    )


def test_what_a_signal_raises_beside_it_is_not_its_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    decide_drafts(monkeypatch, everything)
    engine, smaller = engines(1.0)
    scheduler = Scheduler(engine, proposer=ModelProposer(smaller, VOCAB, 0.1))
    sequence, step = sequence_of(1), smaller.step
    monkeypatch.setattr(smaller, "step", lambda *asked: (step(*asked)[0], TimeoutError("from a handler")))
    scheduler.submit(sequence)
    with pytest.raises(TimeoutError, match="from a handler"):
        while scheduler.next(sequence) is not None:
            pass
    monkeypatch.undo()
    decide_drafts(monkeypatch, everything)
    while scheduler.next(sequence) is not None:
        pass
    assert sequence.accepted > 5
    scheduler.end(sequence, sequence.known - 1)


def test_it_writes_where_its_time_pays() -> None:
    proposal = [Proposal(0.8, 8, True)]
    assert costs().worth(1, proposal, 32, 0.05)[1][0] > 2
    assert 0 < costs().worth(1, proposal, 32, 0.2)[1][0] < costs().worth(1, proposal, 32, 0.01)[1][0]
    assert costs().worth(1, proposal, 32, 0.9) == (0.0, [0])
    # Two sequences share the time of writing.
    one, two = (costs(row=0.01).worth(n, [Proposal(0.6, 8, True)] * n, 32, 0.3)[1] for n in (1, 2))
    assert two[0] >= one[0]


def test_trust_in_it_follows_what_held_and_comes_back() -> None:
    trust = ProposerTrust()
    for _ in range(30):
        trust.learn(4, 0)
    assert trust.value < 0.3
    for _ in range(200):
        trust.hope()
    assert trust.value < 0.3  # where nothing holds it is seldom tried
    for _ in range(30_000):
        trust.hope()
    assert trust.value == pytest.approx(PROPOSER_TRUST, rel=0.05)
    trust = ProposerTrust()
    trust.learn(4, 0)
    low = trust.value
    trust.learn(1, 1)  # the next one held: it comes back fast
    for _ in range(2000):
        trust.hope()
    assert low < PROPOSER_TRUST and trust.value == pytest.approx(PROPOSER_TRUST, rel=0.05)
    for _ in range(30):
        trust.learn(4, 4)
    assert trust.value > 0.95


def test_it_drafts_less_after_each_time_that_none_held() -> None:
    trust = ProposerTrust()
    mosts = []
    for _ in range(5):
        trust.learn(3, 0)
        mosts.append(trust.most)
    assert mosts == [4, 2, 1, 1, 1]
    trust.learn(0, 0)  # it drafted nothing
    assert trust.most == 1
    trust.learn(1, 1)
    assert trust.most == PROPOSER_MOST


def test_a_new_sequence_is_not_tried_as_if_others_had_not_been() -> None:
    usual = UsualTrust()
    assert usual.begin().value == PROPOSER_TRUST
    for _ in range(10):
        bad = usual.begin()
        for _ in range(30):
            bad.learn(3, 0)
        usual.learn(bad)
    assert PROPOSER_TRUST / 2 < usual.begin().value < 0.6 * PROPOSER_TRUST
    for _ in range(5):  # one that was not tried says nothing
        usual.learn(usual.begin())
    assert usual.begin().value < 0.6 * PROPOSER_TRUST
    for _ in range(10):
        good = usual.begin()
        for _ in range(30):
            good.learn(3, 3)
        usual.learn(good)
    assert usual.begin().value > PROPOSER_TRUST


def test_where_it_is_never_right_it_is_soon_not_asked() -> None:
    engine, smaller = engines(0.0, context=1000)
    scheduler = Scheduler(engine, proposer=ModelProposer(smaller, VOCAB, 0.05))
    scheduler._planner._sharing.costs = costs(row=0.05)
    scheduler._planner._sharing.costs.measured = lambda rows, seconds: None
    scheduler._proposer._costs = costs(first=0.05, row=0.0)
    scheduler._proposer._costs.measured = lambda rows, seconds: None
    sequence = sequence_of(1, limit=900)
    sequence.settings = {}
    read(scheduler, sequence)
    assert 0 < sequence.drafted < 25
    for _ in range(8):
        later = sequence_of(1, limit=900)
        later.settings = {}
        read(scheduler, later)
    assert 0 < later.drafted < 0.7 * sequence.drafted


# -- real models ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("proposer")
    return {name: llama2c.write(name, folder / f"{name}.gguf") for name in ("F32", "Q8_0")}


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_sequence_is_that_of_the_larger_model(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch, temperature: float
) -> None:
    options = {"max_tokens": 60, "temperature": temperature, "seed": 5}
    prompts = ["Once upon a time", "One day, a little dog named", "The sun"]
    with akunu.load(files["F32"], context=256) as plain:
        expected = [c.ids for c in plain.generate_batch(prompts, **options)]
    decide_drafts(monkeypatch, everything)
    with akunu.load(files["F32"], context=256, parallel=2, draft=files["Q8_0"]) as model:
        assert [c.ids for c in model.generate_batch(prompts, **options)] == expected
        stats, memory = model.stats, model.memory
        assert stats.model_accepted_tokens > 0.7 * stats.model_drafted_tokens > 40
    assert memory.weights + memory.weights_mapped > plain_bytes(files["F32"])


def plain_bytes(path: Path) -> int:
    with akunu.load(path, context=64) as model:
        return model.memory.weights + model.memory.weights_mapped


def test_of_models_without_sequences_the_sizes_are_compared() -> None:
    bare = SimpleNamespace(tokenizer=lambda n: None)
    model = DraftModel(Path("a.gguf"), bare, SimpleNamespace(config=SimpleNamespace(vocab_size=5)))
    model.check(None, 5, Path("b.gguf"))
    with pytest.raises(akunu.InvalidArgumentError, match=r"^draft: a.gguf has 5 tokens and b.gguf 6"):
        model.check(None, 6, Path("b.gguf"))


def test_another_vocabulary_is_refused(files: dict[str, Path]) -> None:
    with pytest.raises(
        akunu.InvalidArgumentError, match=r"^draft: token \d+ is .* in ember.gguf and .* in F32.gguf"
    ):
        akunu.load(files["F32"], draft="ember")
    with pytest.raises(akunu.ModelFileError, match="no model 'nothing'"):
        akunu.load(files["F32"], draft="nothing")
