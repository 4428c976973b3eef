"""Drafts by lookup: what is proposed, when it is run, and that no output depends on it."""

from __future__ import annotations

import random

import numpy as np
import pytest

import akunu
from akunu.api.scheduling import Scheduler, Sequence
from akunu.api.scheduling.drafts import Drafter, Proposal, StepCosts, UsualTrust
from models import llama2c

from .fakes import FakeEngine, decide_drafts


def drafter(*tokens: int) -> Drafter:
    made = Drafter()
    made.learn(tokens)
    return made


def proposed(own: Drafter, *others: Drafter) -> list[int]:
    own.propose([other.lookup for other in others])
    return own.proposal


def costs(first: float = 1.0, row: float = 0.1) -> StepCosts:
    """A machine where a step takes `first` seconds, and `row` more for each further row."""
    made = StepCosts()
    for _ in range(200):
        for rows in (1, 2, 4, 8, 16, 32):
            made.measured(rows, first + row * (rows - 1))
    return made


def test_what_followed_the_longest_match_is_proposed() -> None:
    first, last = [1, 2, 3, 4, 10, 11], [9, 2, 3, 4, 20, 21]
    assert proposed(drafter(*first, *last, 1, 2, 3, 4))[:2] == [10, 11]
    assert proposed(drafter(*first, *last, 8, 2, 3, 4))[:2] == [20, 21]  # of equals the latest


def test_too_short_a_match_proposes_nothing() -> None:
    assert proposed(drafter(1, 2, 3, 4, 8, 3, 4)) == []
    assert proposed(drafter(1)) == proposed(Drafter()) == []


def test_a_sequence_fed_in_pieces_proposes_the_same() -> None:
    rng = random.Random(0)
    tokens = [rng.randrange(3) for _ in range(60)]
    pieces = Drafter()
    for token in tokens:
        pieces.learn([token])
        pieces.propose([])
    pieces.propose([])
    assert pieces.proposal == proposed(drafter(*tokens))


def test_a_period_goes_on() -> None:
    assert proposed(drafter(*[1, 2, 3] * 3))[:7] == [1, 2, 3, 1, 2, 3, 1]


def test_neighbours_are_asked_where_the_sequence_itself_has_no_long_match() -> None:
    neighbour = drafter(5, 6, 7, 8, 30, 31)
    assert proposed(drafter(1, 5, 6, 7, 8), neighbour) == [30, 31]
    assert proposed(drafter(6, 7, 8, 40, 5, 6, 7, 8), neighbour) == [30, 31]
    assert proposed(drafter(4, 5, 6, 7, 8, 40, 4, 5, 6, 7, 8), neighbour)[0] == 40
    assert proposed(drafter(1, 7, 30, 31), neighbour) == []  # its end, where nothing follows


def test_of_runs_with_one_key_only_equal_ones_match() -> None:
    """Tokens are compared, keys are not trusted: whatever agrees is a match, and nothing else is."""
    rng = random.Random(3)
    for _ in range(300):
        tokens = [rng.randrange(4) for _ in range(rng.randint(0, 40))]
        ends = [n for n in range(3, len(tokens)) if tokens[n - 3 : n] == tokens[-3:]]
        expected: list[int] = []
        if ends:
            longest = max(ends[-8:], key=lambda n: (agreement(tokens[:n], tokens), n))
            follow = tokens[longest:]
            expected = (follow * 16)[:16]
        assert proposed(drafter(*tokens)) == expected


def agreement(a: list[int], b: list[int]) -> int:
    n = 0
    while n < min(len(a), len(b), 24) and a[-1 - n] == b[-1 - n]:
        n += 1
    return n


def test_trust_follows_what_held_though_nothing_was_drafted() -> None:
    own = drafter(1, 2, 3, 4)
    trust = []
    for i, following in enumerate((50, 51, 52, 53, 53, 53, 53)):
        own.learn([1, 2, 3])
        own.propose([])
        trust.append(own.trust)
        own.learn([following, 100 + i])
    assert trust[:5] == sorted(trust[:5], reverse=True) and trust[4] < 0.5 * trust[0]
    assert trust[4] < trust[5] < trust[6]


def test_more_drafts_pay_the_likelier_they_are() -> None:
    lengths = [costs().worth(1, [Proposal(trust, 16)], 32)[1][0] for trust in (0.05, 0.5, 0.8, 0.95)]
    assert lengths[0] == 0 and lengths == sorted(lengths) and 0 < lengths[1] < lengths[3] <= 16


def test_rows_go_to_the_sequence_that_is_likelier_and_no_step_is_too_large() -> None:
    likely, unlikely = costs(row=0.01).worth(2, [Proposal(0.9, 16), Proposal(0.3, 16)], 32)[1]
    assert likely > 2 * unlikely
    assert sum(costs(row=0.0).worth(10, [Proposal(1.0, 16)] * 10, 16)[1]) == 6
    assert costs().worth(16, [Proposal(1.0, 16)] * 16, 16) == (0.0, [0] * 16)


def test_where_rows_cost_as_much_as_steps_nothing_is_drafted() -> None:
    assert costs(row=1.0).worth(1, [Proposal(0.95, 16)], 32)[1] == [0]
    assert StepCosts().worth(1, [Proposal(0.95, 16)], 32)[1] == [0]  # before the first step


def test_work_between_steps_is_a_cost_of_drafts() -> None:
    """A chain has it once for its 40 ms, a step with drafts every time; what is no work does not count."""
    fast = costs(first=0.004, row=0.001)
    length = fast.worth(1, [Proposal(0.6, 16)], 32)[1][0]
    for _ in range(100):
        fast.paused(3.0)
    assert fast.worth(1, [Proposal(0.6, 16)], 32)[1][0] == length > 0
    for _ in range(100):
        fast.paused(0.004)
    assert fast.worth(1, [Proposal(0.6, 16)], 32)[1][0] == 0
    slow = costs(first=0.4, row=0.1)  # whose chains are one token
    for _ in range(100):
        slow.paused(0.004)
    assert slow.worth(1, [Proposal(0.6, 16)], 32)[1][0] == length


def test_rows_that_were_slow_while_others_worked_are_tried_again() -> None:
    busy = costs(row=2.0)
    for _ in range(3000):
        busy.measured(1, 1.0)
    assert busy.worth(1, [Proposal(0.95, 16)], 32)[1][0] > 0


def test_a_step_without_drafts_takes_no_longer_than_one_with_some() -> None:
    """Where each step has drafts, none without is measured: it must not seem to be as slow as it once was."""
    made = costs(first=1.0, row=0.1)
    made.measured(1, 2.0)  # others worked meanwhile
    for _ in range(30):
        made.measured(2, 1.1)
    assert made.of(1) <= made.of(2)
    assert made.worth(1, [Proposal(0.0, 8, True)], 32, 0.05) == (0.0, [0])


#: Times of steps of 1, 2, … rows, and of a draft of common tokens, in steps of one row, as measured: Q4_0 of
#: 0.6B and Q4_K_M of 4B with AVX-512, and the same with AVX2 (docs/performance-notes.md).
MEASURED = [
    ((1, 0.97, 0.9, 0.91, 1.01, 1.16, 1.4, 1.46, 1.7), 0.086),
    ((1, 1.01, 1.0, 1.16, 1.4, 1.65, 1.84, 2.0, 2.3), 0.21),
    ((1, 1.14, 1.35, 1.6, 2.14, 2.48, 2.78, 2.85, 3.2), 0.086),
    ((1, 1.46, 1.91, 2.25, 2.79, 3.27, 3.57, 3.95, 4.4), 0.21),
]


@pytest.mark.parametrize(("steps", "draft"), MEASURED)
def test_a_head_none_of_whose_drafts_hold_costs_little(steps: tuple[float, ...], draft: float) -> None:
    """The controller alone, on times that are set: what several sequences lose by drafts that are refused."""
    costs, usual, tokens = StepCosts(), UsualTrust(), 256
    for _ in range(4):
        trust, total, drafted = usual.begin(), 0.0, 0
        for at in range(tokens):
            n = 0
            if costs.may_pay(1, 32):
                room = min(trust.most, tokens - at - 1)
                _, (n,) = costs.worth(1, [Proposal(trust.value, room, True)], 32, draft * costs.of(1))
            seconds = steps[n]
            costs.measured(1 + n, seconds)
            total += seconds + n * draft
            drafted += n
            trust.learn(n, 0) if n else trust.hope()
        usual.learn(trust)
        assert tokens / total > 0.985
        assert drafted < 20


def test_nothing_is_looked_up_where_no_draft_could_pay() -> None:
    for row in (0.01, 0.1, 0.5, 0.9, 1.5):
        for rows in (1, 3, 8, 16, 31):
            best = costs(row=row).worth(rows, [Proposal(1.0, 32)], 32)[1][0]
            assert costs(row=row).may_pay(rows, 32) == (best > 0)
    assert not costs(row=0.01).may_pay(16, 16) and not StepCosts().may_pay(1, 32)


def everything(
    _: StepCosts, rows: int, proposals: list[Proposal], most: int, writing: float = 0.0
) -> tuple[float, list[int]]:
    """Draft whatever fits."""
    lengths = []
    for proposal in proposals:
        lengths.append(max(min(proposal.tokens, most - rows), 0))
        most -= lengths[-1]
    return float(sum(lengths)), lengths


def read(scheduler: Scheduler, sequence: Sequence) -> list[int]:
    scheduler.submit(sequence)
    ids: list[int] = []
    while (chunk := scheduler.next(sequence)) is not None:
        ids += chunk.ids
    scheduler.end(sequence, sequence.known - 1)
    return ids


def test_a_sequence_that_repeats_takes_fewer_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    decide_drafts(monkeypatch, everything)
    runs = {}
    for speculative in (False, True):
        engine = FakeEngine(lambda tokens: len(tokens) % 7, context=300, chunk=16)
        sequence = Sequence(np.arange(4, dtype=np.uint32), {}, 100, speculative=speculative)
        runs[speculative] = read(Scheduler(engine), sequence)
        rows = [steps for _, steps in engine.steps]
        assert (sequence.accepted > 80 and len(rows) < 30) if speculative else sequence.drafted == 0
    assert runs[True] == runs[False] and len(runs[True]) == 100


def test_drafts_end_with_the_limit_and_the_context(monkeypatch: pytest.MonkeyPatch) -> None:
    decide_drafts(monkeypatch, everything)
    for limit, context in ((41, 300), (1000, 50)):
        engine = FakeEngine(lambda tokens: len(tokens) % 3, context=context, chunk=16)
        sequence = Sequence(np.arange(5, dtype=np.uint32), {}, limit)
        ids = read(Scheduler(engine), sequence)
        assert len(ids) == min(limit, context - 5 + 1) and sequence.accepted > 20


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> akunu.Model:
    return akunu.load(llama2c.write("F16", tmp_path_factory.mktemp("llama2c") / "tiny.gguf"))


TOLD = " She saw a big red ball. She saw a big"


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": 0.0},
        {"temperature": 0.9, "seed": 5},
        {
            "temperature": 0.7,
            "seed": 6,
            "repeat_penalty": 1.2,
            "frequency_penalty": 0.1,
            "logit_bias": {3: -1.0},
        },
        {"temperature": 0.0, "logprobs": 3, "stop": " the "},
        {"temperature": 0.0, "dry_multiplier": 0.8, "dry_allowed_length": 4},
        {"temperature": 0.9, "seed": 6, "xtc_probability": 0.5, "top_n_sigma": 2.0, "dry_multiplier": 0.5},
    ],
    ids=["greedy", "sampled", "penalties", "logprobs", "DRY", "XTC"],
)
def test_sequences_are_those_without_drafts(
    model: akunu.Model, settings: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    decide_drafts(monkeypatch, everything)
    story = model.generate("Once upon a time", max_tokens=60, temperature=0).text
    prompts = ["Once upon a time" + story + " Once upon", TOLD * 3, "Once"]
    options = {**settings, "max_tokens": 50}
    plain = [model.generate(p, **options, speculative=False) for p in prompts]
    drafted = [model.generate(p, **options) for p in prompts]
    together = model.generate_batch(prompts, **options)
    for one, other, third in zip(plain, drafted, together, strict=True):
        assert other.ids == one.ids == third.ids and other.text == one.text
        if one.logprobs is not None:
            assert other.logprobs == one.logprobs == third.logprobs
    assert not any(one.stats.drafted_tokens for one in plain)
    stats = [one.stats for one in drafted]
    assert sum(s.drafted_tokens for s in stats) >= sum(s.accepted_tokens for s in stats) > 0


def test_speculative_is_true_or_false(model: akunu.Model) -> None:
    with pytest.raises(akunu.InvalidArgumentError, match="speculative: found 4, expected True or False"):
        model.generate("Once", speculative=4)
