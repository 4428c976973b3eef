"""The head that drafts for the shipped model: its file, and how it does on stories."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import akunu
from akunu.loading.draft_model import head_beside
from api.fakes import decide_drafts
from api.test_drafts import everything
from bench.own_head import DEPTH, STORIES, open_head, shares_held


def test_it_lies_beside_the_model_and_is_small(ember_path: Path) -> None:
    head = head_beside(ember_path)
    assert head is not None
    assert head.stat().st_size <= 1_000_000


def test_most_of_its_drafts_hold(ember_path: Path) -> None:
    with akunu.load("ember", draft=False, progress=False) as model:
        prompts = [model.tokenize(text) for text in STORIES[:3]]
    tried, held = np.zeros(DEPTH, int), np.zeros(DEPTH, int)
    for ids in prompts:
        engine = open_head(ember_path, 512, 2)
        for total, found in zip((tried, held), shares_held(engine, ids, 120, temperature=0.0), strict=True):
            total += found
        engine.close()
    assert tried.sum() > 200
    assert (held > 0.75 * tried).all()


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_a_story_is_the_same_with_it_and_without(temperature: float, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"max_tokens": 150, "temperature": temperature, "seed": 4}
    with akunu.load("ember", draft=False, progress=False) as model:
        expected = model.generate(STORIES[1], **options).ids
    decide_drafts(monkeypatch, everything)
    with akunu.load("ember", progress=False) as model:
        assert model.generate(STORIES[1], **options).ids == expected
        assert model.stats().model_accepted_tokens > 50
