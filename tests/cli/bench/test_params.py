"""Options become lists, lists a cross product in llama-bench's order."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from akunu.base.errors import InvalidArgumentError
from akunu.cli.bench.params import BenchParams, list_cases, parse_ints, parse_pair


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("512", [512]),
        ("1,2,4", [1, 2, 4]),
        ("1,", [1]),
        ("4-7", [4, 5, 6, 7]),
        ("5-5", [5]),
        ("10-20+5", [10, 15, 20]),
        ("10-19+5", [10, 15]),
        ("512-4096*2", [512, 1024, 2048, 4096]),
        ("1-3,10,16-64*4", [1, 2, 3, 10, 16, 64]),
        ("2-2+0,2", None),
        ("8-4", None),
        ("0-8*2", None),
        ("1-8*1", None),
        ("1-999999999", None),
        ("-1", None),
        ("", None),
        ("a", None),
        ("1-2-3", None),
        ("1+2", None),
        ("1;2", None),
        ("1.5", None),
        ("٣", None),
    ],
)
def test_ranges(text, values):
    if values is None:
        with pytest.raises(InvalidArgumentError):
            parse_ints(text)
    else:
        assert parse_ints(text) == values


def test_a_range_may_begin_below_zero_where_allowed():
    assert parse_ints("-1,99", low=-1) == [-1, 99]
    assert parse_ints("-1-1", low=-1) == [-1, 0, 1]


@given(st.integers(0, 500), st.integers(0, 500), st.integers(1, 50))
def test_a_stepped_range_is_pythons(first, length, step):
    assert parse_ints(f"{first}-{first + length}+{step}") == list(range(first, first + length + 1, step))


@given(st.text("0123456789-+*,", max_size=12))
def test_any_text_is_a_list_or_an_error(text):
    with contextlib.suppress(InvalidArgumentError):
        assert parse_ints(text)


def test_pairs():
    assert parse_pair("512,128") == (512, 128)
    for text in ("512", "1,2,3", "a,b", "-1,2", ""):
        with pytest.raises(InvalidArgumentError):
            parse_pair(text)


def test_cross_product_has_llama_benchs_order():
    params = BenchParams(
        models=("a", "b"),
        n_prompt=(16, 0, 32),
        n_gen=(4,),
        n_pg=((8, 2), (0, 0)),
        n_depth=(0, 64),
        n_threads=(1, 2),
        n_ubatch=(128, 256),
    )
    found = [(c.model, c.n_ubatch, c.n_threads, c.name) for c in list_cases(params)]
    # outermost first: model, batch sizes, threads, depth; then prompts, generations, pairs
    tests = [f"{name}{depth}" for depth in ("", " @ d64") for name in ("pp16", "pp32", "tg4", "pp8+tg2")]
    assert found == [(m, ub, t, name) for m in "ab" for ub in (128, 256) for t in (1, 2) for name in tests]


def test_defaults_are_llama_benchs():
    assert [(c.name, c.n_batch, c.n_ubatch, c.type_k, c.n_gpu_layers) for c in list_cases(BenchParams())] == [
        ("pp512", 2048, 512, "f16", -1),
        ("tg128", 2048, 512, "f16", -1),
    ]


def test_tests_that_differ_only_in_size_share_an_engine():
    cases = list_cases(BenchParams(n_prompt=(1, 2), n_gen=(3,), n_depth=(0, 5), n_threads=(1, 2)))
    assert len({case.engine_key for case in cases}) == 2


def test_the_context_holds_depth_prompt_and_generation():
    case = list_cases(BenchParams(n_prompt=(0,), n_gen=(0,), n_pg=((8, 4),), n_depth=(16,)))[0]
    assert case.n_context == 16 + 8 + 4 + 1
