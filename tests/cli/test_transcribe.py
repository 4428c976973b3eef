"""`akunu transcribe`: text, files, progress, what goes wrong with some of the files, Ctrl-C."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
import threading
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
import soundfile

import akunu
from akunu.base.errors import ModelFileError
from akunu.cli import recorder
from akunu.cli.commands import transcribe
from akunu.cli.console import visible
from akunu.cli.recorder import LiveLine, recorded
from akunu.speech.whisper_model import WhisperModel
from own_view import give_own_view
from speech import tiny
from speech.babble import Babble
from speech.test_live import Hearer, spoken, text_of
from speech.test_whisper_model import wait_until
from tokenizer.vocabularies import data_file

from .conftest import Ran

Run = Callable[..., Ran]


@pytest.fixture
def engine() -> Babble:
    return Babble()


@pytest.fixture
def run(akunu_cli: Run, engine: Babble, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Run `akunu transcribe ARGS…` with a model of `engine`; `loaded` are the arguments of `akunu.load`."""
    loaded: list[Any] = []

    def load(name: str, **options: Any) -> WhisperModel:
        loaded.append((name, options))
        return WhisperModel(engine, tiny.tokenizer(), "babble", Path("babble.bin"))

    monkeypatch.setattr(akunu, "load", load)

    def transcribe(*args: str | Path, stdin: bytes = b"") -> Ran:
        return akunu_cli("transcribe", "--beam-size", "1", "-l", "en", *map(str, args), stdin=stdin)

    transcribe.loaded = loaded  # type: ignore[attr-defined]
    yield transcribe
    assert not engine.alive and not engine.windows


def wav(samples: np.ndarray, rate: int = 16000) -> bytes:
    data = io.BytesIO()
    with wave.open(data, "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes((samples * 32767).astype("<i2").tobytes())
    return data.getvalue()


@pytest.fixture
def talks(tmp_path: Path) -> list[Path]:
    """Two recordings that differ."""
    folder = tmp_path / "talks"
    folder.mkdir()
    paths = [folder / name for name in ("a.wav", "b.wav")]
    for i, path in enumerate(paths):
        path.write_bytes(wav(np.random.default_rng(i).normal(0, 0.1 + i / 10, 16000 * 3)))
    (folder / "notes.txt").write_text("no sound")
    return paths


def test_text_goes_to_standard_output(run: Run, talks: list[Path]) -> None:
    ran = run(talks[0])
    assert ran.status == 0 and ran.out.strip()
    unsure, *more = ran.err.splitlines()  # what babbles is sure of nothing
    assert "a.wav: the text is probably wrong" in unsure and not more
    assert run.loaded == [  # type: ignore[attr-defined]
        ("ember-speech", {"device": "auto", "threads": None, "task": "transcribe"})
    ]
    assert run(talks[0], "--quiet").err == ran.err
    assert run("-", stdin=talks[0].read_bytes()).out == ran.out
    assert run(*talks).out.startswith(ran.out)


@pytest.mark.parametrize("form", ["srt", "vtt", "json", "tsv"])
def test_other_formats(run: Run, talks: list[Path], form: str) -> None:
    out = run(talks[0], "--format", form, "--word-timestamps").out
    assert {"srt": "00:00:0", "vtt": "WEBVTT", "json": '{"segments"', "tsv": "start\tend"}[form] in out
    if form == "json":
        assert json.loads(out)["language"] == "en" and json.loads(out)["segments"][0]["words"]


def test_files_of_a_folder_become_files_of_several_formats(run: Run, talks: list[Path]) -> None:
    texts = talks[0].parent.parent / "texts"
    ran = run(talks[0].parent, "-f", "txt", "-f", "json", "--output-dir", texts)
    assert (ran.status, ran.out) == (0, "")
    assert sorted(path.name for path in texts.iterdir()) == ["a.json", "a.txt", "b.json", "b.txt"]
    assert (texts / "a.txt").read_text() == run(talks[0]).out
    assert json.loads((texts / "b.json").read_text())["text"]


@pytest.mark.parametrize("ffmpeg", [True, False])
def test_a_folder_names_what_it_passes_over(
    run: Run, talks: list[Path], ffmpeg: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for transcripts and hidden files: macOS puts ._a.wav beside a.wav."""
    folder = talks[0].parent
    expected = run(*talks).out
    for name in ("memo.m4a", "film.MP4", "._a.wav", "slides.pdf", "a.srt"):
        (folder / name).write_bytes(bytes(2000))
    (folder / "more").mkdir()
    monkeypatch.setattr("akunu.audio.foreign.available", lambda: ffmpeg)
    ran = run(folder)
    lines = [line for line in ran.err.splitlines() if "probably wrong" not in line]
    assert ran.out == expected and any("passed over more/, slides.pdf]" in line for line in lines)
    assert not any(name in ran.err for name in ("._a.wav", "a.srt", "notes.txt"))
    if ffmpeg:
        assert ran.status == 1 and all(
            f"{name} is not a recording" in ran.err for name in ("memo.m4a", "film.MP4")
        )
    else:
        assert ran.status == 0 and "passed over film.MP4, memo.m4a. MP4, M4A, WebM" in lines[0]
        assert "pip install 'akunu[av]'" in lines[0]


def test_a_file_that_cannot_be_read_does_not_keep_the_others_waiting(
    run: Run, talks: list[Path], tmp_path: Path
) -> None:
    bad = tmp_path / "bad.wav"
    bad.write_text("This is text, no sound.")
    ran = run(bad, talks[0], tmp_path / "none.flac")
    assert ran.status == 1 and ran.out == run(talks[0]).out
    lines = [line for line in ran.err.splitlines() if "probably wrong" not in line]
    assert len(lines) == 3 and "bad.wav is not a recording" in lines[0] and "none.flac" in lines[1]
    assert lines[2] == "[2 of 3 files failed]"
    alone = run(bad)
    assert alone.status == 1 and alone.err.count("\n") == 1 and alone.err.startswith("akunu: error: ")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["x.wav", "-f", "srt", "-f", "txt"], "several formats need --output-dir"),
        (["x.wav", "y.wav", "-f", "srt"], "several files as srt need --output-dir"),
        (["x.wav", "--clip", "5,3"], "--clip: found '5,3', expected seconds in rising order"),
        (["x.wav", "--temperature", "-1"], "--temperature: found"),
        (["x.wav", "--temp", "-1"], "--temp: found"),
        (["x.wav", "-l", "klingon"], "-l: found 'klingon'"),
        (["-", "--live", "--no-condition-on-previous-text"], "--no-condition-on-previous-text has no effect"),
        (["x.wav", "--rate", "8000"], "--rate has no effect without --live"),
        (["x.wav", "--live"], '--live hears standard input: name the file "-"'),
        (["-", "--live", "--batch-size", "3"], "--batch-size has no effect: --live writes"),
        (["a/x.wav", "b/x.wav", "-o", "out"], "two files are named 'x'"),
    ],
)
def test_wrong_usage_is_known_before_a_model_is_loaded(
    run: Run, args: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run(*args)
    assert ran.status == 2 and message in ran.err and not run.loaded  # type: ignore[attr-defined]


def test_without_the_shipped_model_it_says_so(akunu_cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from akunu.loading.finding import BUILT_IN
    from akunu.loading.load import load

    monkeypatch.setattr(akunu, "load", load)
    monkeypatch.setitem(BUILT_IN, "ember-speech", "nowhere.bin")
    ran = akunu_cli("transcribe", "x.wav")
    assert ran.status == 1 and "the built-in model 'ember-speech' is missing" in ran.err
    with pytest.raises(ModelFileError, match="name another"):
        load("ember-speech")


@pytest.mark.usefixtures("no_collection")
def test_ctrl_c_keeps_whole_files(run: Run, engine: Babble, tmp_path: Path) -> None:
    import _thread

    engine.delay = 0.001
    long = tmp_path / "long.wav"
    long.write_bytes(wav(np.random.default_rng(0).normal(0, 0.1, 16000 * 600)))

    def interrupt() -> None:
        wait_until(lambda: any("2\n00:" in path.read_text() for path in tmp_path.glob(".long.srt.*.part")))
        _thread.interrupt_main()

    threading.Thread(target=interrupt).start()
    ran = run(long, "-f", "json", "-f", "srt", "-o", tmp_path)
    assert ran.status == 130
    found = json.loads((tmp_path / "long.json").read_text())["segments"]
    assert len(found) > 1 and found[-1]["end"] < 600
    assert (tmp_path / "long.srt").read_text().count("-->") == len(found)


@pytest.mark.usefixtures("no_collection")
def test_a_recording_whose_end_is_damaged_becomes_whole_files_of_what_there_was(
    run: Run, tmp_path: Path
) -> None:
    samples = np.random.default_rng(0).normal(0, 0.1, 16000 * 100)
    soundfile.write(tmp_path / "cut.flac", samples, 16000)
    data = (tmp_path / "cut.flac").read_bytes()
    (tmp_path / "cut.flac").write_bytes(data[: len(data) * 3 // 4])
    ran = run(tmp_path / "cut.flac", "-f", "json", "-f", "srt", "-o", tmp_path / "texts")
    assert ran.status == 1 and "cut.flac is damaged or cut off after" in ran.err
    found = json.loads((tmp_path / "texts/cut.json").read_text())["segments"]
    assert found and (tmp_path / "texts/cut.srt").read_text().count("-->") == len(found)


def test_a_full_disk_leaves_what_was_there(
    run: Run, talks: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.srt").write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    ran = run(*talks, "-f", "srt", "-o", tmp_path)
    assert ran.status == 1 and ran.err.lower().count("no space left on device") == 2
    assert (tmp_path / "a.srt").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.srt", "talks"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("no_colour", [False, True])
def test_on_a_terminal_colours_say_how_sure_words_are(
    engine: Babble, talks: list[Path], monkeypatch: pytest.MonkeyPatch, no_colour: bool
) -> None:
    from akunu.cli.transcripts import Outputs

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1" if no_colour else "")
    shown = Terminal()
    monkeypatch.setattr(sys, "stdout", shown)
    with WhisperModel(engine, tiny.tokenizer(), "babble", Path("babble.bin")) as model:
        stream = model.transcribe_stream(talks[0], language="en", beam_size=1, word_timestamps=True)
        Outputs(None, ("txt",), ["a.wav"]).write("a.wav", stream, lambda: "en")
    assert ("\x1b[31m" in shown.getvalue()) is not no_colour
    lines = [visible(s.text).replace("\n", " ").strip() for s in stream.transcription.segments]
    assert click.unstyle(shown.getvalue()).splitlines() == lines


def test_live_text_comes_from_a_pipe(akunu_cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    hearer = Hearer()

    def load(*_: Any, **__: Any) -> WhisperModel:
        return WhisperModel(hearer, tiny.tokenizer(), "hearer", Path("hearer.bin"))

    monkeypatch.setattr(akunu, "load", load)
    pcm = (spoken([0, 1, 2, 3], pause=0.5) * 32767).astype("<i2").tobytes()
    ran = akunu_cli("transcribe", "-", "--live", "-l", "en", "--beam-size", "1", stdin=pcm + b"\0")
    assert (ran.status, ran.out, ran.err) == (0, text_of([0, 1, 2, 3]).strip() + "\n", "")


def test_a_reader_that_goes_away_ends_all_files(
    run: Run, talks: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Gone())
    ran = run(*talks)
    assert (ran.status, ran.err) == (1, "")


def test_sound_is_taken_as_it_comes_in_whole_samples() -> None:
    import os

    read, write = os.pipe()
    with open(read, "rb") as source:
        pieces = recorded(source, 16000)
        os.write(write, b"abc")
        assert next(pieces) == b"ab"
        os.write(write, b"defg")
        assert next(pieces) == b"cdef"
        os.close(write)
        assert list(pieces) == []


def test_a_device_that_is_gone_ends_the_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    """What came before is text, and the error is told."""
    pcm = (spoken([0, 1], pause=0.5) * 32767).astype("<i2").tobytes()
    given = io.BytesIO(pcm)

    def read(_: int, size: int) -> bytes:
        data = given.read(size)
        if not data:
            raise OSError(errno.EIO, "Input/output error")
        return data

    class Device:
        buffer = open(os.devnull, "rb")  # noqa: SIM115

    give_own_view(monkeypatch, recorder, "os", read=read)
    pieces, failed = recorded(Device.buffer, 16000), pytest.raises(OSError, match="Input/output error")
    found = b""
    with failed:
        for piece in pieces:
            found += piece
    assert found == pcm
    given.seek(0)
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stdin", Device)
    monkeypatch.setattr(sys, "stdout", shown)
    with WhisperModel(Hearer(), tiny.tokenizer(), "hearer", Path("hearer.bin")) as model, failed:
        transcribe._listen(model, 16000, {"language": "en", "beam_size": 1})
    assert shown.getvalue() == text_of([0, 1]).strip() + "\n"
    Device.buffer.close()


def test_a_guess_is_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "20")
    shown = Terminal()
    monkeypatch.setattr(sys, "stdout", shown)
    line = LiveLine()
    line.show(" and so you say", " that the lines")
    line.show(" so it is", "")
    line.end()
    first, second, end = click.unstyle(shown.getvalue()).split("\r")[1:]
    assert (first, second) == ("and so you say that", "and so you say so\nit is")
    assert end == "it is\n"


def test_inspect_shows_a_speech_model(akunu_cli: Run) -> None:
    file = str(data_file("whisper/for-tests-ggml-tiny.bin"))
    ran = akunu_cli("inspect", file)
    assert ran.status == 0 and "whisper.cpp" in ran.out and "audio_layers" in ran.out
    report = json.loads(akunu_cli("inspect", file, "--json").out)
    assert report["config"]["width"] == 384 and report["metadata"]["ftype"] == "F16"
    refused = akunu_cli("inspect", file, "--plan")  # the file has no weights
    assert refused.status == 1 and "tensor encoder." in refused.err and "is missing" in refused.err
