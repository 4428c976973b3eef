"""Recordings over HTTP: OpenAI's client, every format, streams, and what is refused."""

from __future__ import annotations

import asyncio
import io
import json
import wave
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import openai
import pytest
import soundfile

from akunu.loading.finding import FoundModel
from akunu.server import ModelSpec, Settings
from akunu.server import preloading as server_preloading
from akunu.speech.whisper_model import WhisperModel
from speech import tiny
from speech.babble import Babble

from .conftest import EMBER, Served, serving, wait_until
from .published import openai_client

TRANSCRIBE = "/v1/audio/transcriptions"


def wav(seconds: float, seed: int = 0) -> bytes:
    data = io.BytesIO()
    with wave.open(data, "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        sound = np.random.default_rng(seed).normal(0, 3000, round(seconds * 16000))
        file.writeframes(sound.astype("<i2").tobytes())
    return data.getvalue()


@pytest.fixture(scope="module")
def engine() -> Babble:
    return Babble()


@pytest.fixture(scope="module")
def heard(engine: Babble, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of ember and of a speech model that babbles."""
    path = tmp_path_factory.mktemp("speech") / "babble.bin"
    path.write_bytes(b"lmgg")
    speech = ModelSpec(name="speech", path=str(path), aliases=("whisper-1",))
    load = server_preloading.load

    def loaded(found: FoundModel, **options: object) -> object:
        if found.path == path:
            return WhisperModel(engine, tiny.tokenizer(), "babble", path)
        return load(found, **options)

    server_preloading.load = loaded
    try:
        with serving(EMBER, speech, settings=Settings(max_upload=4 << 20)) as served:
            yield served
    finally:
        server_preloading.load = load


@pytest.fixture
def client(heard: Served) -> Iterator[openai.OpenAI]:
    with openai_client(heard.url) as found:
        yield found


def post(
    heard: Served, path: str = TRANSCRIBE, file: bytes | None = None, **fields: object
) -> httpx.Response:
    fields = {"model": "speech", "language": "en", "beam_size": 1, **fields}
    data = {name: value for name, value in fields.items() if value is not None}
    return heard.http.post(TRANSCRIBE, data=data, files={"file": ("a.wav", wav(2) if file is None else file)})


def test_the_official_client_transcribes(client: openai.OpenAI, heard: Served) -> None:
    found = client.audio.transcriptions.create(model="whisper-1", file=("talk.wav", wav(3)), language="en")
    assert found.text and found.usage.seconds == 3
    assert found.text == post(heard, file=wav(3), beam_size=5).json()["text"]


def test_verbose_json_has_segments_and_words(client: openai.OpenAI) -> None:
    found = client.audio.transcriptions.create(
        model="speech",
        file=io.BytesIO(wav(40)),
        language="german",
        prompt="Names: Ada.",
        temperature=0.2,
        response_format="verbose_json",
        timestamp_granularities=["word", "segment"],
    )
    assert (found.language, found.duration) == ("german", 40.0)
    assert found.segments and found.words and found.text
    assert found.segments[0].temperature == 0.2
    assert all(word.start <= word.end <= 40.01 for word in found.words)
    words = client.audio.transcriptions.create(
        model="speech", file=io.BytesIO(wav(3)), language="en", response_format="verbose_json",
        timestamp_granularities=["word"],
    )  # fmt: skip
    assert words.words and words.segments is None


@pytest.mark.parametrize(
    ("form", "begin"), [("srt", "1\n00:00:0"), ("vtt", "WEBVTT\n\n00:0"), ("lrc", "[00:0"), ("text", "")]
)
def test_other_formats_are_plain_text(client: openai.OpenAI, form: str, begin: str) -> None:
    found = client.audio.transcriptions.create(
        model="speech", file=io.BytesIO(wav(3)), language="en", response_format=form
    )
    assert isinstance(found, str) and found.startswith(begin) and found.strip()


def test_channels_are_apart_and_subtitles_laid_out(heard: Served) -> None:
    both = io.BytesIO()
    sound = np.random.default_rng(0).normal(0, 0.1, (32000, 2))
    soundfile.write(both, sound, 16000, format="WAV")
    found = post(heard, file=both.getvalue(), channels="true", response_format="verbose_json").json()
    assert {segment["channel"] for segment in found["segments"]} == {0, 1}
    plain = post(heard, response_format="verbose_json", condition_on_previous_text="false").json()
    assert plain["segments"] and "channel" not in plain["segments"][0]
    srt = post(heard, response_format="srt", max_words_per_line=1).text
    assert srt.count("-->") > post(heard, response_format="srt").text.count("-->")
    refused = post(heard, response_format="srt", max_line_count=2)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "max_line_count")


def test_a_text_has_the_form_that_is_asked_for(client: openai.OpenAI, heard: Served) -> None:
    choices = ["turn on", "turn off"]
    found = client.audio.transcriptions.create(
        model="speech", file=io.BytesIO(wav(3)), language="en", extra_body={"choice": choices}
    )
    assert found.text in choices
    assert post(heard, regex="[a-c]{4}", prompt="so").json()["text"].strip("abc") == ""


def test_keywords_are_hot_words(client: openai.OpenAI, heard: Served) -> None:
    said = client.audio.transcriptions.create(
        model="speech", file=io.BytesIO(wav(3)), language="en", keywords=["so", "you"]
    )
    assert said.text == post(heard, file=wav(3), beam_size=5, hotwords="so, you").json()["text"]


def test_a_stream_has_the_text_piece_by_piece(client: openai.OpenAI) -> None:
    file = wav(70)
    whole = client.audio.transcriptions.create(model="speech", file=io.BytesIO(file), language="en").text
    events = list(
        client.audio.transcriptions.create(model="speech", file=io.BytesIO(file), language="en", stream=True)
    )
    assert [event.type for event in events] == ["transcript.text.delta"] * (len(events) - 1) + [
        "transcript.text.done"
    ]
    assert len(events) > 3
    assert "".join(event.delta for event in events[:-1]).strip() == events[-1].text == whole


def test_translations(client: openai.OpenAI) -> None:
    found = client.audio.translations.create(
        model="speech", file=io.BytesIO(wav(3)), response_format="verbose_json"
    )
    assert found.text and found.duration == 3


def test_the_model_is_in_the_lists_and_is_loaded_and_unloaded(heard: Served, engine: Babble) -> None:
    assert post(heard).status_code == 200
    card = heard.http.get("/v1/models/whisper-1").json()
    assert (card["loaded"], card["kind"], card["context"]) == (True, "a speech model", 448)
    engines = heard.http.get("/admin/engine").json()["models"]
    assert any(each["kind"] == "a speech model" for each in engines)
    assert heard.post("/admin/unload", model="speech").json()["loaded"] is False and engine.closed
    card = heard.http.get("/v1/models/whisper-1").json()
    assert (card["loaded"], card["kind"]) == (False, "a speech model")  # the page still offers the microphone
    assert heard.post("/admin/load", model="speech").json()["memory"]["weights"] == 1
    assert "akunu_audio_seconds_total" in heard.http.get("/metrics").text


@pytest.mark.parametrize(
    ("fields", "status", "param", "message"),
    [
        ({"nonsense": "1"}, 400, "nonsense", "no such field"),
        ({"model": "ember"}, 400, "model", "is a text model, for /v1/chat/completions"),
        ({"model": "nobody"}, 404, "model", "no 'nobody' here; there is ember, speech"),
        ({"model": None}, 400, "model", "model"),
        ({"language": "klingon"}, 400, "language", "expected a code or an English name"),
        ({"response_format": "xml"}, 400, "response_format", "xml"),
        ({"temperature": "2"}, 400, "temperature", "expected"),
        ({"temperature": "hot"}, 400, "temperature", "expected"),
        ({"beam_size": "0"}, 400, "beam_size", "at least 1"),
        ({"timestamp_granularities[]": "word"}, 400, "timestamp_granularities[]", "verbose_json"),
        ({"include[]": "logprobs"}, 400, "include", "supports only"),
        ({"choice[]": "a", "regex": "b"}, 400, "regex", "exclude each other"),
        ({"regex": "(?=b)"}, 400, "regex", "regex"),
        ({"keywords[]": "a", "hotwords": "b"}, 400, "hotwords", "the same as keywords"),
        ({"vad": "vad.onnx"}, 400, "vad", "no such field"),
        ({"stream": "true", "response_format": "srt"}, 400, "response_format", "does not come as a stream"),
        ({"file": b"This is text, no sound."}, 400, "file", "not a recording"),
        ({"file": b""}, 400, "file", "empty"),
        ({"file": wav(0)}, 400, "file", "no samples"),
        ({"file": bytes(5 << 20)}, 413, None, "has more than 4194304 bytes"),
    ],
)
def test_what_is_wrong_is_named(heard: Served, fields: dict, status: int, param: str, message: str) -> None:
    answer = post(heard, **fields)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (status, param), error
    assert message in error["message"]


def test_a_stream_tells_of_an_error_as_an_answer_does(heard: Served) -> None:
    answer = post(heard, file=b"no sound", stream="true")
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "file"


def test_bodies_that_are_no_forms(heard: Served) -> None:
    def send(body: bytes, kind: str, **headers: str) -> httpx.Response:
        return heard.http.post(TRANSCRIBE, content=body, headers={"content-type": kind, **headers})

    assert send(b"{}", "application/json").status_code == 415
    assert send(b"x", "multipart/form-data").status_code == 415
    form = "multipart/form-data; boundary=xx"
    for body in (b"", b"--xx", b"--xx\r\nhello\r\n--xx--", b"--xx\r\ncontent-type: a/b\r\n\r\n1\r\n--xx--"):
        answer = send(body, form)
        assert answer.status_code == 400 and "no whole form" in answer.json()["error"]["message"]
    twice = b'--xx\r\ncontent-disposition: form-data; name="model"\r\n\r\na\r\n' * 2 + b"--xx--"
    assert "there twice" in send(twice, form).text
    assert "model" in send(b"--xx--", form).json()["error"]["message"]
    assert send(b"--xx--", form, origin="https://evil.example").status_code == 403
    assert send(b"--xx--", form, origin=heard.url).status_code == 400


def test_who_goes_away_ends_the_work(heard: Served, engine: Babble) -> None:
    async def scenario(**fields: str) -> None:
        async with httpx.AsyncClient(base_url=heard.url, trust_env=False) as http:
            work = http.post(
                TRANSCRIBE,
                data={"model": "speech", "language": "en", **fields},
                files={"file": ("a.wav", wav(60))},
            )
            task = asyncio.create_task(work)
            before = engine.heard_windows
            while engine.heard_windows == before:
                await asyncio.sleep(0.005)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    engine.delay = 0.01
    try:
        for fields in ({}, {"stream": "true"}):
            asyncio.run(scenario(**fields))
            wait_until(lambda: not engine.alive and not engine.windows)
            wait_until(lambda: heard.server.models.find("speech").users == 0)
    finally:
        engine.delay = 0


def test_the_description_has_the_form(heard: Served) -> None:
    document = heard.http.get("/openapi.json").json()
    content = document["paths"][TRANSCRIBE]["post"]["requestBody"]["content"]
    name = content["multipart/form-data"]["schema"]["$ref"].rsplit("/", 1)[-1]
    assert "timestamp_granularities[]" in json.dumps(document["components"]["schemas"][name])


def test_whisper_files_of_a_folder_are_offered(tmp_path: Path) -> None:
    from akunu.server.catalog import from_name, from_place

    (tmp_path / "ggml-tiny.bin").write_bytes(b"lmgg")
    (tmp_path / "other.bin").write_bytes(b"PK")
    assert [spec.name for spec in from_place(tmp_path)] == ["tiny"]
    assert from_name(str(tmp_path / "ggml-base.en.bin")).name == "base.en"
