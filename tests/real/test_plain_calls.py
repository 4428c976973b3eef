"""Small models that were not trained on calls: what they write where tools are offered is read as calls."""

from __future__ import annotations

import pytest

import akunu

from .models import real_model
from .plain_calls import REQUESTS, answered, is_right


@pytest.mark.parametrize(("name", "least"), [("qwen2.5-coder-1.5b", 38), ("qwen2.5-coder-0.5b", 35)])
def test_plain_requests_end_in_the_right_call(name: str, least: int) -> None:
    with akunu.load(real_model(name), context=4096, progress=False) as model:
        wrong = [request.text for request in REQUESTS if not is_right(request, answered(model, request))]
        assert len(REQUESTS) - len(wrong) >= least, wrong
