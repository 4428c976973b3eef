"""Errors know which argument they are about."""

from __future__ import annotations

import pytest

import akunu
from akunu.api.results import BatchError
from akunu.base.errors import AkunuError, InvalidArgumentError, ModelFileError


@pytest.mark.parametrize(
    ("message", "argument", "renamed"),
    [
        ("top_k: expected an integer", "top_k", "--top-k: expected an integer"),
        (
            "logit_bias[7]: found nan, expected a number in [0, 1]",
            "logit_bias[7]",
            "--logit-bias[7]: found nan, expected a number in [0, 1]",
        ),
        ("messages[2].content: empty", "messages[2].content", "--messages[2].content: empty"),
        ("json and regex exclude each other: one", "json", "--json and --regex exclude each other: one"),
        ("unknown argument topk; did you mean top_k?", None, "unknown argument topk; did you mean top_k?"),
        ("a/b.gguf: is damaged", None, "a/b.gguf: is damaged"),
        ("b.gguf: is damaged", None, "b.gguf: is damaged"),
        ("http://x: no", None, "http://x: no"),
    ],
)
def test_an_error_names_its_argument(message: str, argument: str | None, renamed: str) -> None:
    for kind in (InvalidArgumentError, ModelFileError, AkunuError):
        error = kind(message)
        assert error.argument == argument
        again = error.renamed(lambda name: "--" + name.replace("_", "-"))
        assert (type(again), str(again)) == (kind, renamed)


def test_an_argument_of_the_api_is_named() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        akunu.load("ember", threads=-2)
    assert caught.value.argument == "threads"


def test_an_error_about_texts_is_itself() -> None:
    error = BatchError([None], {0: ValueError("no")})
    assert error.renamed(str.upper) is error
