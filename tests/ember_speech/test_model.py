"""The shipped speech model: its file, its vocabulary, and what it hears."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

import akunu
from akunu._core import WhisperFile
from akunu.audio import load_audio
from akunu.speech.files import open_speech
from akunu.speech.tokenizer import WhisperTokenizer
from order import Draw
from tokenizer.vocabularies import data_file
from tools.ember_speech.sample import PAUSE, SENTENCES
from tools.ember_speech.sentences import sentences
from tools.ember_speech.settings import SETTINGS, settings
from tools.ember_speech.tokens import Vocabulary


@pytest.fixture(scope="module")
def file(speech_path: Path) -> WhisperFile:
    return WhisperFile(str(speech_path))


@pytest.fixture(scope="module")
def model() -> Iterator[Any]:
    with akunu.load("ember-speech") as loaded:
        yield loaded


@pytest.fixture(scope="module")
def sample_path(speech_path: Path) -> Path:
    return speech_path.with_suffix(".ogg")


def test_it_fits_in_the_package(speech_path: Path, sample_path: Path) -> None:
    assert speech_path.stat().st_size <= 10_000_000
    assert sample_path.stat().st_size <= 200_000


def test_its_words_are_timed_by_the_heads_that_learned_it(speech_path: Path) -> None:
    assert open_speech(speech_path).config.alignment_heads == ((1, 0), (2, 0))


def test_it_says_of_decoding_what_the_export_writes(speech_path: Path) -> None:
    assert open_speech(speech_path).generation == json.loads(SETTINGS.read_text())
    assert speech_path.read_bytes().endswith(settings())


def test_its_tokens_are_those_it_was_trained_with(file: WhisperFile) -> None:
    tokenizer, trained = WhisperTokenizer.from_file(file), Vocabulary()
    special = tokenizer.special
    assert (special.end, special.start, special.start_of_previous) == (
        trained.end,
        trained.start,
        trained.before,
    )
    assert (special.no_speech, special.no_timestamps) == (trained.no_speech, trained.no_timestamps)
    assert (special.timestamp_begin, file.sizes["n_vocab"]) == (trained.zero, trained.size)
    assert not tokenizer.multilingual
    for sentence in islice(sentences(1), 200):
        ids = [i for written, _ in sentence.words for i in trained.word(written)]
        assert tokenizer.encode(" " + sentence.text) == ids
        assert trained.text(ids) == tokenizer.decode(ids) == " " + sentence.text


def test_it_may_write_a_time_with_its_colon(speech_path: Path) -> None:
    tokenizer = open_speech(speech_path).tokenizer()
    assert not {*tokenizer.encode(" at 10:45.")} & {*tokenizer.suppressed}
    assert {*tokenizer.encode("(")} <= {*tokenizer.suppressed}


def test_the_sample_is_heard_as_it_was_said(model: Any, sample_path: Path) -> None:
    segments = model.transcribe(sample_path).segments
    assert [segment.text.strip() for segment in segments] == [sentence.text for sentence in SENTENCES]
    assert abs(segments[0].start - PAUSE) <= 0.2
    for before, after in pairwise(segments):
        assert abs(after.start - before.end - PAUSE) <= 0.2


def test_silence_and_noise_have_no_text(model: Any) -> None:
    noise = np.random.default_rng(1).normal(0, 0.1, 80_000).astype(np.float32)
    for sound in (np.zeros(80_000, np.float32), noise):
        assert model.transcribe(sound).text == ""


def test_a_long_recording_is_written_whole_by_default(model: Any, sample_path: Path, draw: Draw) -> None:
    """With the text of the window before as a prompt, and without."""
    sound = np.concatenate([load_audio(sample_path), np.zeros(16000, np.float32)] * 4)
    said = " ".join(sentence.text for sentence in SENTENCES)
    assert model.transcribe(sound).text == " ".join([said] * 4)
    for given in draw((True, False)):
        found = model.transcribe(sound, beam_size=1, condition_on_previous_text=given).text
        assert found == " ".join([said] * 4)


TIME = np.arange(16000 * 12) / 16000


def notes(*frequencies: float, seconds: float, decay: float) -> np.ndarray:
    """Tones one after the other, each as a struck string has it."""
    count = round(16000 * seconds)
    pitch = np.repeat(np.resize(frequencies, -(-len(TIME) // count)), count)[: len(TIME)]
    strike = np.exp(-decay * (TIME % seconds))
    return strike * sum(np.sin(2 * np.pi * n * np.cumsum(pitch) / 16000) / n for n in (1, 2, 3))


@pytest.mark.parametrize(
    "sound",
    [
        np.sin(2 * np.pi * 440 * TIME),
        np.sign(np.sin(2 * np.pi * 150 * TIME)) * (1 + np.sin(2 * np.pi * 4 * TIME)),
        sum(np.sin(2 * np.pi * pitch * TIME) for pitch in (262, 330, 392)),
        np.sin(2 * np.pi * 880 * TIME) * (TIME % 0.5 < 0.2),
        notes(220, 262, 330, 196, 247, 294, seconds=0.25, decay=3),
        notes(131, 196, 262, 294, 330, 349, seconds=0.125, decay=9),
    ],
    ids=["tone", "tremolo", "chord", "beeps", "melody", "quick melody"],
)
def test_tones_and_music_have_no_text(model: Any, sound: np.ndarray, draw: Draw) -> None:
    """Nor what is dropped for its low probability."""
    every = {"log_prob_threshold": None, "no_speech_threshold": None, "temperature": 0.0}
    for options in draw(({}, every)):
        assert model.transcribe((0.2 * sound).astype(np.float32), beam_size=1, **options).text == ""


def test_music_between_sentences_adds_no_text(model: Any, sample_path: Path) -> None:
    speech = load_audio(sample_path)
    music = (0.1 * notes(220, 262, 330, 196, 247, 294, seconds=0.25, decay=3)).astype(np.float32)
    said = " ".join(sentence.text for sentence in SENTENCES)
    sound = np.concatenate([music, speech, music, speech, music])
    assert model.transcribe(sound).text == f"{said} {said}"


def test_of_people_it_says_that_it_does_not_know_them(
    model: Any, sample_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Once, with the way to a model that does; what is improbable is left out."""
    from akunu.cli import main

    people = str(data_file("whisper/jfk.flac"))
    assert main(["transcribe", people, people]) == 0
    told = capfd.readouterr()
    assert told.out == "" and told.err.count("synthetic English voices only") == 1
    assert "--model openai/whisper-base" in told.err and told.err.count("no speech was found") == 2
    assert main(["transcribe", "--quiet", str(sample_path)]) == 0
    assert capfd.readouterr().err == ""
    found = model.transcribe(sample_path)
    assert 0.8 < found.probability <= 1 and model.transcribe(people).probability is None


def test_another_language_is_refused_as_it_was_called(model: Any, sample_path: Path) -> None:
    assert model.transcribe(sample_path, language="English", clip_timestamps=[0, 1], beam_size=1) is not None
    for language in ("German", "de"):
        with pytest.raises(
            akunu.InvalidArgumentError, match=f"found '{language}', but this model knows only"
        ):
            model.transcribe_stream(sample_path, language=language)


def test_channels_are_transcribed_apart(model: Any, sample_path: Path, tmp_path: Path, draw: Draw) -> None:
    """A call with a speaker on each; the second begins four seconds later."""
    sound, later = load_audio(sample_path), 4 * 16000
    call = np.zeros((len(sound) + later, 2), np.float32)
    call[: len(sound), 0] = call[later:, 1] = sound
    path = tmp_path / "call.wav"
    soundfile.write(path, call, 16000)
    done: list[float] = []
    wanted = [sentence.text for sentence in SENTENCES]
    given = draw((call, path, path.read_bytes(), io.BytesIO(path.read_bytes())))
    for audio in given:
        found = model.transcribe(audio, channels=True, beam_size=1, progress=lambda s, _: done.append(s))
        for channel in (0, 1):
            said = [one for one in found.segments if one.channel == channel]
            assert [one.text.strip() for one in said] == wanted
        starts = [one.start for one in found.segments]
        assert starts == sorted(starts) and [one.id for one in found.segments] == [*range(len(starts))]
        assert found.language == "en" and abs(found.duration - len(call) / 16000) < 0.1
    assert done == sorted(done[: len(done) // len(given)]) * len(given)
    with model.transcribe_stream(path, channels=True, beam_size=1) as segments:
        assert next(segments).channel is not None  # and no more: what runs for the others ends
    with pytest.raises(akunu.InvalidArgumentError, match="channels: needs a recording or an array"):
        model.transcribe(iter([sound]), channels=True)
    with pytest.raises(akunu.InvalidArgumentError, match="channels: has no meaning for what is heard live"):
        model.listen(iter([sound]), channels=True)


def test_the_command_tells_channels_and_lays_out_subtitles(
    sample_path: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from akunu.cli import main

    sound = load_audio(sample_path)[: 16000 * 3]
    path = tmp_path / "call.wav"
    soundfile.write(path, np.stack([sound, np.zeros_like(sound)], axis=1), 16000)
    lines = ["--max-line-width", "16", "--max-line-count", "1"]
    assert main(["transcribe", "-q", str(path), "--channels", "-f", "srt", *lines]) == 0
    shown = capfd.readouterr().out.split("\n")
    assert [line for line in shown if "channel" in line] == [
        *("[channel 0] Good morning,", "[channel 0] and welcome to", "[channel 0] the museum."),
    ]
    assert main(["transcribe", str(path), *lines]) == 2
    assert "add --format srt" in capfd.readouterr().err
