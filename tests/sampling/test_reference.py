"""The reference itself: its random numbers against published vectors, its steps against what they mean."""

from __future__ import annotations

import numpy as np
import pytest

from .reference import Settings, draw, gumbel, penalised, philox4x32, probabilities, words

# Random123's kat_vectors, "philox4x32 10".
VECTORS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]
LOGITS = np.log([0.5, 0.2, 0.15, 0.1, 0.05])


@pytest.mark.parametrize(("counter", "key", "expected"), VECTORS)
def test_philox_gives_the_published_words(counter, key, expected) -> None:
    assert [int(word) for word in philox4x32(counter, key)] == list(expected)


def test_four_tokens_share_a_counter() -> None:
    seed, position = 0x299F31D0_A4093822, 77
    one = [
        philox4x32((token // 4, position, 0, 0), (0xA4093822, 0x299F31D0))[token % 4] for token in range(11)
    ]
    assert words(seed, position, 11).tolist() == [int(word) for word in one]


def test_noise_is_gumbel() -> None:
    noise = np.concatenate([gumbel(seed, 5, 20_000) for seed in range(10)])
    for quantile in (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999):
        below = (noise < -np.log(-np.log(quantile))).mean()
        assert abs(below - quantile) < 4 * np.sqrt(quantile * (1 - quantile) / len(noise)), quantile


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        (Settings(), [0, 1, 2, 3, 4]),
        (Settings(top_k=2), [0, 1]),
        (Settings(top_k=9), [0, 1, 2, 3, 4]),
        (Settings(top_p=0.69), [0, 1]),
        (Settings(top_p=0.71), [0, 1, 2]),
        (Settings(top_p=0.01), [0]),
        (Settings(min_p=0.25), [0, 1, 2]),
        (Settings(min_p=1.0), [0]),
        (Settings(top_k=2, top_p=0.71), [0]),  # 0.5 of the 0.7 that are left
        (Settings(top_k=2, top_p=0.72), [0, 1]),
        # The entropy is 1.333: the surprises 0.693, 1.609, 1.897, 2.303, 2.996 are 0.640, 0.276, ... from it.
        (Settings(typical_p=0.1), [1]),
        (Settings(typical_p=0.34), [1, 2]),
        (Settings(typical_p=0.36), [0, 1, 2]),
        (Settings(typical_p=0.34, top_p=0.5), [1]),
        # The logits' standard deviation is 0.762; the distances from the best are 0.916, 1.204, 1.609, 2.303.
        (Settings(top_n_sigma=1.0), [0]),
        (Settings(top_n_sigma=1.25), [0, 1]),
        (Settings(top_n_sigma=1.6), [0, 1, 2]),
        (Settings(xtc_probability=1.0, xtc_threshold=0.15), [2, 3, 4]),
        (Settings(xtc_probability=1.0, xtc_threshold=0.3), [0, 1, 2, 3, 4]),  # one alone stays
        (Settings(xtc_probability=1.0, xtc_threshold=0.15, min_keep=4), [0, 1, 2, 3, 4]),
        (Settings(xtc_probability=1.0, xtc_threshold=0.51), [0, 1, 2, 3, 4]),
        (Settings(top_p=0.1, min_p=0.9, min_keep=3), [0, 1, 2]),
    ],
)
def test_what_survives(settings: Settings, kept: list[int]) -> None:
    p = probabilities(LOGITS, [], settings)
    assert np.flatnonzero(p).tolist() == kept
    np.testing.assert_allclose(p[kept], np.exp(LOGITS)[kept] / np.exp(LOGITS)[kept].sum())


def test_ties_keep_the_lowest_ids() -> None:
    flat = np.zeros(10)
    for settings in (Settings(top_k=3), Settings(top_p=0.25), Settings(typical_p=0.25)):
        assert np.flatnonzero(probabilities(flat, [], settings)).tolist() == [0, 1, 2], settings
    assert draw(flat, [], Settings(temperature=0), 1) == 0


def test_penalties_count_the_window() -> None:
    logits = np.array([2.0, -2.0, 1.0, 4.0])
    s = Settings(repeat_penalty=2.0, presence_penalty=0.5, frequency_penalty=0.25, penalty_window=4)
    # The last four of these: 0 twice, 1 and 2 once; 3 is before the window.
    assert penalised(logits, [3, 3, 0, 1, 0, 2], s).tolist() == [
        1.0 - 0.5 - 0.5,
        -4.0 - 0.75,
        0.5 - 0.75,
        4.0,
    ]
    everything = Settings(presence_penalty=1.0, penalty_window=-1)
    assert penalised(logits, [3, 3, 0, 1, 0, 2], everything).tolist() == [1.0, -3.0, 0.0, 3.0]
    assert (
        penalised(logits, [0], Settings(presence_penalty=1.0, penalty_window=0)).tolist() == logits.tolist()
    )


def test_dry_penalises_what_goes_on_with_a_repeat() -> None:
    flat = np.zeros(10)

    def penalties(history: list[int], **settings) -> dict[int, float]:
        x = penalised(flat, history, Settings(dry_multiplier=1.0, dry_base=2.0, **settings))
        return {int(token): -float(x[token]) for token in np.flatnonzero(x)}

    # The sequence ends with 1 2 3, after which came 4; and with 3 after 9, after which came 5.
    assert penalties([1, 2, 3, 4, 9, 3, 5, 1, 2, 3]) == {4: 2.0}
    assert penalties([1, 2, 3, 4, 9, 3, 5, 1, 2, 3], dry_allowed_length=1) == {4: 4.0, 5: 1.0}
    assert penalties([1, 2, 3, 4, 9, 3, 5, 1, 2, 3], dry_penalty_last_n=8, dry_allowed_length=1) == {
        4: 1.0,
        5: 1.0,
    }
    # A repeat begins behind the last breaker, of one token or of two; a breaker itself is not penalised.
    assert penalties([1, 2, 3, 4, 1, 2, 3], dry_breakers={2: [()]}, dry_allowed_length=1) == {4: 1.0}
    assert penalties([1, 2, 3, 4, 1, 2, 3], dry_breakers={1: [(2,)]}, dry_allowed_length=1) == {4: 1.0}
    assert penalties([1, 2, 3, 4, 1, 2, 3], dry_breakers={1: [(3,)], 2: [(2,)]}) == {4: 2.0}
    assert penalties([1, 2, 3, 4, 1, 2, 3], dry_breakers={4: [()]}) == {}


def test_bias_comes_before_the_penalties() -> None:
    s = Settings(repeat_penalty=2.0, logit_bias={0: 3.0, 1: -np.inf})
    assert penalised(np.array([-1.0, 5.0, 0.0]), [0, 1], s).tolist() == [1.0, -np.inf, 0.0]
