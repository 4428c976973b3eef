"""Arguments of a generation: limits, defaults, and what a model file may recommend."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from akunu.api.options import GenerationOptions, resolve
from akunu.base.arguments import as_path
from akunu.base.errors import InvalidArgumentError
from akunu.files.describe.sampling import Sampling

VOCAB = 100


def request(**options):
    return resolve(options, Sampling(), VOCAB)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[(name, math.nan) for name in ("temperature", "top_p", "min_p", "typical_p", "repeat_penalty")],
        *[(name, math.inf) for name in ("temperature", "presence_penalty", "frequency_penalty")],
        *[(name, -1) for name in ("temperature", "top_p", "min_p")],
        *[(name, -2) for name in ("max_tokens", "penalty_window", "seed")],
        ("stop_token_ids", 5),
        ("stop_token_ids", "5"),
        ("stop_token_ids", [-1]),
        ("stop_token_ids", [10**6]),
        ("top_p", 1.01),
        ("min_p", 1.5),
        ("repeat_penalty", 0),
        ("temperature", 1e39),  # infinite as float32
        ("temperature", 10**400),
        ("top_k", -2),
        ("top_n_sigma", -2),
        ("xtc_probability", 1.5),
        ("xtc_threshold", -0.1),
        ("min_keep", -1),
        ("dry_multiplier", -1),
        ("dry_base", math.inf),
        ("dry_allowed_length", -1),
        ("dry_penalty_last_n", -2),
        ("dry_sequence_breakers", 5),
        ("dry_sequence_breakers", [""]),
        ("top_k", 2**32),
        ("wait_timeout", math.nan),
        ("wait_timeout", -1),
        ("seed", 2**64),
        ("logprobs", 21),
        ("logprobs", True),
        ("max_tokens", 1.5),
        ("max_tokens", "10"),
        ("max_tokens", np.array([3])),
        ("top_k", np.array(3.0)),
        ("top_k", 3.0),
        ("temperature", "hot"),
        ("temperature", True),
        ("top_k", np.zeros(0)),
        ("stop", ""),
        ("stop", ["a", ""]),
        ("stop", [1]),
        ("stop", 7),
        ("logit_bias", [1, 2]),
        ("logit_bias", {VOCAB: 1.0}),
        ("logit_bias", {-1: 1.0}),
        ("logit_bias", {"3": 1.0}),
        ("logit_bias", {3: math.nan}),
        ("logit_bias", {3: math.inf}),
        ("logit_bias", dict.fromkeys(range(4097), 0.0)),
    ],
)
def test_a_bad_value_is_refused_by_name(name, value):
    with pytest.raises(InvalidArgumentError, match=name):
        resolve({name: value}, Sampling(), 10_000 if name == "logit_bias" and len(value) > VOCAB else VOCAB)


@pytest.mark.parametrize("path", ["", None, 3, b"x", "a\0b", "\ud800"])
def test_what_names_no_file_is_refused(path):
    with pytest.raises(InvalidArgumentError, match=r"^cache_dir: "):
        as_path("cache_dir", path)


@pytest.mark.parametrize("name", GenerationOptions.__annotations__)
def test_none_means_the_default(name):
    assert request(**{name: None}, **({} if name == "seed" else {"seed": 1})).sampling == Sampling()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tokens", 0),
        ("temperature", 0),
        ("top_k", 0),
        ("top_p", 1),
        ("min_p", 0),
        ("min_p", 1),
        ("seed", 0),
    ],
)
def test_a_limit_itself_is_allowed(name, value):
    chosen = request(**{name: value})
    assert getattr(chosen.sampling, name, None) == value or getattr(chosen, name) == value


def test_minus_one_switches_top_k_off_as_elsewhere():
    assert request(top_k=-1).sampling == request(top_k=0).sampling == Sampling(top_k=0)


def test_numpy_numbers_are_numbers():
    chosen = request(temperature=np.float32(0.5), top_k=np.int64(7), seed=np.uint64(2**64 - 1))
    assert (chosen.sampling.temperature, chosen.sampling.top_k, chosen.seed) == (0.5, 7, 2**64 - 1)


def test_an_unknown_argument_names_the_nearest():
    with pytest.raises(InvalidArgumentError, match="unknown argument temprature; did you mean temperature"):
        request(temprature=1.0)
    with pytest.raises(InvalidArgumentError, match="unknown argument zzz; known are: max_tokens, "):
        request(zzz=1.0)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("n_predict", "max_tokens"), ("repeat_last_n", "penalty_window"), ("guided_json", "schema")],
)
def test_an_argument_of_another_program_names_what_does_the_same(theirs: str, ours: str):
    with pytest.raises(InvalidArgumentError, match=rf"unknown argument {theirs}; did you mean {ours}\?"):
        request(**{theirs: -1})


def test_a_token_can_be_forbidden():
    assert request(logit_bias={5: -math.inf}).logit_bias == {5: -math.inf}


def test_stop_takes_one_text_or_several():
    assert request(stop="a").stop == ("a",)
    assert request(stop=["a", "bc"]).stop == ("a", "bc")
    assert request().stop == ()


def test_a_seed_is_drawn_when_none_is_given():
    seeds = {request().seed for _ in range(8)}
    assert len(seeds) == 8
    assert all(0 <= seed < 2**64 for seed in seeds)


def test_the_model_file_sets_defaults():
    metadata = {
        "general.sampling.temp": float(np.float32(0.6)),
        "general.sampling.top_k": 20,
        "general.sampling.top_p": float(np.float32(0.95)),
        "general.sampling.min_p": 0.0,
        "general.sampling.penalty_repeat": float(np.float32(1.05)),
        "general.sampling.penalty_last_n": -1,
        "general.sampling.xtc_probability": 0.5,
        "general.sampling.xtc_threshold": float(np.float32(0.15)),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Sampling.from_metadata(metadata, 512) == Sampling(
            temperature=0.6,
            top_k=20,
            top_p=0.95,
            min_p=0.0,
            repeat_penalty=1.05,
            penalty_window=512,
            xtc_probability=0.5,
            xtc_threshold=0.15,
        )
        assert Sampling.from_metadata({"general.sampling.top_k": -1}, 512).top_k == 0
        assert Sampling.from_metadata({}, 512) == Sampling()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("temp", math.nan),
        ("temp", "hot"),
        ("top_p", 7.0),
        ("penalty_last_n", -2),
        ("mirostat", 2),
        ("sequence", "top_k;temperature"),
    ],
)
def test_a_recommendation_that_cannot_be_followed_is_warned_of(key, value):
    with pytest.warns(RuntimeWarning, match=f"general.sampling.{key}|sampler order"):
        assert Sampling.from_metadata({f"general.sampling.{key}": value}, 512) == Sampling()


def test_the_callers_argument_wins_over_the_file():
    assert resolve({"top_k": 3}, Sampling(top_k=20, top_p=0.5), VOCAB).sampling == Sampling(
        top_k=3, top_p=0.5
    )


def test_minus_one_and_zero_mean_what_they_mean_in_other_programs() -> None:
    assert request(max_tokens=-1).max_tokens is None
    assert 0 <= request(seed=-1).seed != request(seed=-1).seed
    assert request(penalty_window=-1).sampling.penalty_window == -1  # the engine's word for all
    assert 0 < request(top_p=0).sampling.top_p < 1e-9  # the likeliest token alone
    assert request(top_n_sigma=-1).sampling.top_n_sigma == 0
    assert 0 < request(typical_p=0).sampling.typical_p < 1e-9
