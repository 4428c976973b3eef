"""Texts that cannot fit a context are refused before they are put into tokens."""

from __future__ import annotations

import pytest

import akunu
from akunu.base.errors import ContextLengthError
from akunu.tokenizer import Tokenizer, check_fits


@pytest.fixture(scope="module")
def model():
    with akunu.load("ember", progress=False, threads=1, context=256) as found:
        yield found


@pytest.fixture
def encoded(monkeypatch) -> list[int]:
    """Lengths of the texts that were put into tokens."""
    lengths: list[int] = []
    whole, inside = Tokenizer.encode_segments, Tokenizer.encode_inside

    def segments(self, given, **options):
        given = list(given)
        lengths.append(sum(len(segment.text) for segment in given))
        return whole(self, given, **options)

    def piece(self, text):
        lengths.append(len(text))
        return inside(self, text)

    monkeypatch.setattr(Tokenizer, "encode_segments", segments)
    monkeypatch.setattr(Tokenizer, "encode_inside", piece)
    return lengths


def test_a_token_stands_for_no_more_bytes_than_the_longest(model):
    tokenizer = model.tokenizer
    assert tokenizer.longest == max(len(tokenizer.id_to_piece(i)) for i in range(tokenizer.vocab_size))
    text = "a b c" * 50
    check_fits(tokenizer, [text], len(tokenizer.encode(text)))  # what fits is never refused


@pytest.mark.parametrize("text", ["ab cd " * 500_000, "é" * 1_000_000, "\n" * 1_000_000, "x" * 5_000])
def test_what_is_plainly_too_long_is_not_put_into_tokens(model, encoded, text):
    said = r"the prompt has at least \d+ tokens, the context holds 256"
    for call in (
        lambda: model.generate(text, max_tokens=1),
        lambda: model.chat([{"role": "user", "content": text}], max_tokens=1),
        lambda: model.chat([{"role": "user", "content": [{"type": "text", "text": text}]}]),
        lambda: model.chat([{"role": "system", "content": text}, {"role": "user", "content": "Hi"}]),
    ):
        with pytest.raises(ContextLengthError, match=said) as refused:
            call()
        least = int(str(refused.value).split()[5])
        assert 256 < least <= len(text.encode())
    assert encoded == []


def test_what_many_messages_and_what_tools_add_is_refused_too(model, encoded):
    many = [{"role": "user", "content": ""}] * 300
    with pytest.raises(ContextLengthError, match="at least 300 tokens"):
        model.chat(many)
    tool = {"type": "function", "function": {"name": "a", "description": "long " * 2000, "parameters": {}}}
    with pytest.raises(ContextLengthError, match="at least"):
        model.chat([{"role": "user", "content": "Hi"}], tools=[tool])
    assert encoded == []


class _LongTokens:
    """A tokenizer one of whose tokens is long, though none of the text's is."""

    longest = 1000

    def __init__(self) -> None:
        self.calls: list[int] = []

    def encode_inside(self, text: str) -> list[int]:
        self.calls.append(len(text))
        return [0] * (len(text) // 4)


def test_of_a_text_that_long_tokens_could_make_fit_only_the_beginning_is_looked_at():
    tokenizer = _LongTokens()
    with pytest.raises(ContextLengthError, match="at least"):
        check_fits(tokenizer, ["x" * 90_000, "x" * 900_000], 1000)
    assert sum(tokenizer.calls) < 30_000
    tokenizer.calls.clear()
    check_fits(tokenizer, ["x" * 7_000], 1000)  # as likely as not, which the tokens themselves tell
    assert tokenizer.calls == []


def test_texts_to_embed_are_refused_or_cut_before_they_are_tokens(tmp_path, encoded):
    from api.encoders import wordpiece

    path = wordpiece.write_model("bert", tmp_path)
    with akunu.load(path, progress=False, threads=1) as model:
        most = model.context * model.tokenizer.longest
        with pytest.raises(ContextLengthError, match="text 1 has at least"):
            model.embed(["short", "cats " * most])
        assert max(encoded) < 100
        with pytest.warns(UserWarning, match="1 of 1 texts were cut"):
            cut = model.embed(["cats " * most], truncate=True)
        assert max(encoded) <= most
        with pytest.warns(UserWarning):
            assert (cut == model.embed(["cats " * (most // 10)], truncate=True)).all()


def test_of_a_batch_the_others_are_written(model):
    for prompts, failed in ((["Hi", "x " * 9000], 1), (["x " * 9000, "Hi"], 0)):
        with pytest.raises(akunu.BatchError) as error:
            model.generate_batch(prompts, max_tokens=2, progress=False)
        assert list(error.value.errors) == [failed]
        assert isinstance(error.value.errors[failed], ContextLengthError)
