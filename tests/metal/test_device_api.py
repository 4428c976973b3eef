"""The API's tests with a real model, on the Metal device."""

from __future__ import annotations

import pytest

from akunu import Model
from api import test_tiny_llama
from api.test_tiny_llama import (
    expected,
    fresh,
    model,
    path,
    test_a_model_says_what_it_is,
    test_a_stream_closed_early_leaves_what_was_read,
    test_greedy_runs_of_smaller_weights,
    test_logits,
    test_logprobs_are_those_of_the_logits,
    test_perplexity,
)
from metal.on_metal import metal_engines
from models import llama2c

__all__ = [
    "expected",
    "fresh",
    "metal_engines",
    "model",
    "path",
    "test_a_model_says_what_it_is",
    "test_a_stream_closed_early_leaves_what_was_read",
    "test_greedy_runs_of_smaller_weights",
    "test_logits",
    "test_logprobs_are_those_of_the_logits",
    "test_perplexity",
]
pytestmark = pytest.mark.usefixtures("metal_engines")


@pytest.mark.parametrize("stop", ["Lily", ".\nL"])
def test_after_a_stop_text_a_continuation_equals_a_fresh_run(
    model: Model, fresh: Model, expected: llama2c.Expected, stop: str
) -> None:
    test_tiny_llama.test_after_a_stop_text_a_continuation_equals_a_fresh_run(model, fresh, expected, stop)
