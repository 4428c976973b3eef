"""Names that other programs have made familiar mean here what they mean there, one by one."""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import akunu
from api.encoders import wordpiece

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.fixture(scope="module")
def model() -> Iterator[akunu.Model]:
    with akunu.from_pretrained("ember", context=256, progress=False) as loaded:
        yield loaded


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[akunu.EmbeddingModel]:
    folder: Path = wordpiece.write_model("bert", tmp_path_factory.mktemp("bert"))
    with akunu.EmbeddingModel(folder, progress=False) as loaded:
        yield loaded


def test_from_pretrained_is_load() -> None:
    ours, theirs = inspect.signature(akunu.load), inspect.signature(akunu.from_pretrained)
    assert list(ours.parameters)[1:] == list(theirs.parameters)[1:]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"max_new_tokens": 4}, {"max_tokens": 4}),
        ({"repetition_penalty": 1.3}, {"repeat_penalty": 1.3, "penalty_window": -1}),
        ({"response_format": {"type": "json_object", "schema": SCHEMA}}, {"schema": SCHEMA}),
        ({"response_format": {"type": "json_object"}}, {"json": True}),
    ],
)
def test_an_option_of_a_generation(model: akunu.Model, theirs: dict, ours: dict) -> None:
    common = {"temperature": 0} if "max_new_tokens" in theirs else {"temperature": 0, "max_tokens": 12}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model.generate("Once upon a time", **common, **theirs)
    assert found.ids == model.generate("Once upon a time", **common, **ours).ids


def test_the_variables_of_a_template(model: akunu.Model) -> None:
    messages = [{"role": "user", "content": "Hello"}]
    theirs = model.chat(
        messages, chat_template_kwargs={"enable_thinking": False}, max_tokens=3, temperature=0
    )
    ours = model.chat(messages, template_variables={"enable_thinking": False}, max_tokens=3, temperature=0)
    assert theirs.ids == ours.ids


def test_one_of_one_is_a_result_and_several_are_a_list(model: akunu.Model) -> None:
    assert isinstance(model.generate("Once", n=1, max_tokens=2), akunu.Completion)
    assert [type(one) for one in model.generate("Once", n=2, max_tokens=2)] == [akunu.Completion] * 2


def test_stats_are_read_the_same_way_everywhere(model: akunu.Model, vectors: akunu.EmbeddingModel) -> None:
    completion = model.generate("Once", max_tokens=2)
    stream = model.stream("Once", max_tokens=2)
    list(stream)
    assert completion.stats.generated_tokens == stream.stats.generated_tokens == 2
    assert model.stats.prompts >= 2 and vectors.stats.prompts >= 0
    assert model.stats() == model.stats  # as it was written before


def test_prompts_and_precisions_of_sentence_transformers(vectors: akunu.EmbeddingModel) -> None:
    named = vectors.embed(["a cat"], prompt_name="query")
    np.testing.assert_array_equal(vectors.embed(["a cat"], prompt="query: "), named)
    long = vectors.embed(["a cat"], normalize_embeddings=False)
    assert np.linalg.norm(long) != pytest.approx(1) == np.linalg.norm(named)
    for precision, kind in {
        "float32": "f4",
        "int8": "i1",
        "uint8": "u1",
        "binary": "i1",
        "ubinary": "u1",
    }.items():
        assert vectors.embed(["a cat", "a dog"], precision=precision).dtype == np.dtype(kind)
    signs = vectors.embed(["a cat"]) > 0
    np.testing.assert_array_equal(vectors.embed(["a cat"], precision="ubinary"), np.packbits(signs, axis=1))


def test_speech_as_in_faster_whisper() -> None:
    with akunu.WhisperModel("ember-speech", progress=False) as hearing:
        segments, info = hearing.transcribe(np.zeros(16000, np.float32), language="en", beam_size=1)
    assert list(segments) == list(info.segments) and info.language == "en"


def test_a_short_name_of_whisper_is_one_of_speech(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def fetched(name: object, **_: object) -> Path:
        asked.append(str(name))
        raise akunu.ModelFileError("no network here")

    monkeypatch.setattr("akunu.files.hub.download.fetch", fetched)
    with pytest.raises(akunu.ModelFileError):
        akunu.WhisperModel("small", progress=False)
    assert len(asked) == 1 and "whisper-small" in asked[0]


def test_answers_are_read_as_what_they_are(model: akunu.Model) -> None:
    form = {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": {**SCHEMA, "additionalProperties": False}},
    }
    answer = model.chat(
        [{"role": "user", "content": "A number."}], response_format=form, max_new_tokens=60, temperature=0
    )
    assert set(json.loads(answer.text)) == {"n"}


def test_dir_has_the_public_names_alone() -> None:
    assert dir(akunu) == sorted(akunu.__all__)
    assert all(getattr(akunu, name) is not None for name in akunu.__all__)
