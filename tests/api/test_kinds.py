"""Models of each kind have their own members, and say which model has the others."""

from __future__ import annotations

import inspect

import pytest

import akunu
from akunu.api.base_model import MEMBERS, BaseModel

KINDS = {akunu.Model: "text", akunu.EmbeddingModel: "vectors", akunu.WhisperModel: "speech"}


def members(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers_static(kind) if not name.startswith("_")}


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_that_only_others_have_is_in_the_table(kind: type) -> None:
    others = set().union(*map(members, KINDS)) - members(kind)
    assert {name for name in MEMBERS if name not in members(kind)} == others - {"memory_left"}
    assert all(
        kind._instead.get(name) or kind._instead.get(MEMBERS[name]) for name in MEMBERS if name in others
    )


def test_none_of_them_is_another(model: akunu.Model) -> None:
    assert all(issubclass(kind, BaseModel) for kind in KINDS)
    assert not any(issubclass(one, other) for one in KINDS for other in KINDS if one is not other)


def test_a_model_says_what_has_the_member(model: akunu.Model) -> None:
    with pytest.raises(akunu.UnsupportedError, match="fake writes text; load an embedding model"):
        model.embed(["x"])
    with pytest.raises(akunu.UnsupportedError, match="fake writes text; load a reranker"):
        model.rerank("x", ["y"])
    with pytest.raises(akunu.UnsupportedError, match="fake reads text; load a Whisper model"):
        model.transcribe("x.wav")
    assert not hasattr(model, "embed")
    with pytest.raises(AttributeError, match="'Model' object has no attribute 'nothing'"):
        model.nothing  # noqa: B018
