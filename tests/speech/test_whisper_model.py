"""A speech model: calls from many threads, streams, cancelling, and nothing left behind."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import inspect
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

from akunu import AkunuError, AudioError, InvalidArgumentError, UnsupportedError
from akunu.speech.options import TranscriptionArguments, TranscriptionOptions
from akunu.speech.whisper_model import WhisperModel

from . import tiny
from .babble import Babble, Device

QUICK: dict[str, Any] = {"language": "en", "beam_size": 2, "temperature": 0, "max_new_tokens": 8}


def sound(seconds: float, seed: int = 0) -> np.ndarray:
    """Noise whose loudness and colour change, so that every window is another one."""
    random = np.random.default_rng(seed)
    n = round(seconds * 16000)
    tone = np.sin(np.arange(n) * np.interp(np.arange(n), [0, n], random.uniform(0.1, 1.0, 2)))
    return (0.1 * random.normal(0, 1, n) * np.interp(np.arange(n), [0, n], [1, 0.2]) + 0.2 * tone).astype(
        np.float32
    )


@pytest.fixture
def engine() -> Iterator[Babble]:
    babble = Babble()
    yield babble
    assert not babble.alive and not babble.windows


@pytest.fixture
def model(engine: Babble) -> Iterator[WhisperModel]:
    with loaded(engine) as found:
        yield found
    assert engine.closed


def loaded(engine: Babble) -> WhisperModel:
    return WhisperModel(engine, tiny.tokenizer(), "babble", Path("babble.bin"))


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.002)


def test_a_recording_becomes_a_transcription(model: WhisperModel) -> None:
    done: list[tuple[float, float | None]] = []
    audio = sound(70)
    found = model.transcribe(audio, progress=lambda *seconds: done.append(seconds), **QUICK)
    assert found.text and found.text == str(found) == "".join(s.text for s in found.segments).strip()
    assert (found.language, found.language_probability, found.duration) == ("en", 1.0, 70.0)
    assert [segment.id for segment in found.segments] == list(range(len(found.segments)))
    assert all(0 <= segment.start <= segment.end <= 70 for segment in found.segments)
    assert done[-1] == (70.0, 70.0) and sorted(done) == done
    assert found.words == ()
    assert found.to("srt").startswith("1\n00:00:0")
    words = model.transcribe(audio, word_timestamps=True, **QUICK).words
    assert words and all(word.start <= word.end for word in words)


def test_the_language_is_detected_where_none_is_given(model: WhisperModel) -> None:
    found = model.transcribe(sound(5), **QUICK | {"language": None})
    assert found.language in model.languages and 0 < found.language_probability < 1


def test_segments_come_while_the_recording_is_read(model: WhisperModel) -> None:
    read: list[int] = []

    def pieces() -> Iterator[np.ndarray]:
        for i in range(200):
            read.append(i)
            yield sound(1, i)

    with model.transcribe_stream(pieces(), **QUICK) as segments:
        next(segments)
        assert 30 <= len(read) < 70
        assert segments.transcription.text and segments.language == "en"


@pytest.mark.parametrize("options", [{}, {"beam_size": 1}, {"temperature": 0.7, "best_of": 3}])
def test_the_text_of_windows_does_not_depend_on_how_many_run_together(
    engine: Babble, model: WhisperModel, options: dict[str, Any]
) -> None:
    audio = sound(170)
    clips = [0, 20, 25, 55, 60, 170]
    alone = model.transcribe(audio, batch_size=1, clip_timestamps=clips, **QUICK | options)
    assert len(alone.segments) > 6
    starts = [segment.start for segment in alone.segments]
    assert starts == sorted(starts)
    engine.steps.clear()
    for size, together in ((2, 2), (3, 3), (16, 3)):
        engine.hold_until(lambda least=together: model.stats.running >= least)  # type: ignore[misc]
        assert model.transcribe(audio, batch_size=size, clip_timestamps=clips, **QUICK | options) == alone
    assert max(engine.steps) > 2 * min(engine.steps)


def test_calls_from_many_threads_have_the_texts_that_they_have_alone(
    engine: Babble, model: WhisperModel
) -> None:
    recordings = [sound(40, seed) for seed in range(3)]

    def transcribe(audio: np.ndarray) -> Any:
        return model.transcribe(audio, **QUICK)

    alone = [transcribe(audio) for audio in recordings]
    engine.threads.clear()
    engine.steps.clear()
    engine.hold_until(lambda: model.stats.running == 3)
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(transcribe, recordings)) == alone
    assert max(engine.steps) > 2  # rows of several windows in one step


def test_a_stream_that_nobody_reads_blocks_nobody(model: WhisperModel) -> None:
    stream = model.transcribe_stream(sound(90), batch_size=4, clip_timestamps=[0, 90], **QUICK)
    next(stream)
    assert model.transcribe(sound(3), **QUICK).duration == 3
    stream.close()
    assert list(stream) == []


def test_a_dropped_stream_leaves_nothing(engine: Babble, model: WhisperModel) -> None:
    stream = model.transcribe_stream(sound(90), batch_size=2, clip_timestamps=[0, 90], **QUICK)
    next(stream)
    del stream
    gc.collect()
    assert not engine.alive and not engine.windows


@pytest.mark.parametrize("batch_size", [None, 3])
def test_cancel_ends_a_call_in_another_thread_with_what_it_found(batch_size: int | None) -> None:
    engine = Babble(delay=0.002)
    with loaded(engine) as model, ThreadPoolExecutor(1) as pool:
        options = {"batch_size": batch_size, "clip_timestamps": [0, 3000], **QUICK}
        running = pool.submit(model.transcribe, (sound(1, i) for i in range(3000)), **options)
        wait_until(lambda: engine.heard_windows > 3)
        model.cancel()
        assert running.result(20).duration < 3000
        assert not engine.alive and not engine.windows
        assert model.transcribe(sound(2), **QUICK).duration == 2  # it stays usable


@pytest.mark.usefixtures("no_collection")
def test_ctrl_c_frees_everything() -> None:
    import _thread

    engine = Babble(delay=0.002)
    with loaded(engine) as model:

        def interrupt() -> None:
            wait_until(lambda: engine.heard_windows > 1)
            _thread.interrupt_main()

        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            model.transcribe((sound(1, i) for i in range(3000)), **QUICK)
        assert not engine.alive and not engine.windows
        assert model.transcribe(sound(2), **QUICK).duration == 2


def test_closing_ends_what_runs(engine: Babble) -> None:
    engine.delay = 0.002
    model = loaded(engine)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(model.transcribe, (sound(1, i) for i in range(3000)), **QUICK)
        wait_until(lambda: engine.heard_windows > 1)
        model.close()
        with pytest.raises(AkunuError, match="closed"):
            running.result(20)
    model.close()
    with pytest.raises(AkunuError, match="the model babble is closed; load it again"):
        model.transcribe(sound(1))


def test_a_failing_step_fails_the_call_and_not_the_model(engine: Babble, model: WhisperModel) -> None:
    step = engine.step

    def fails(*_: Any) -> Any:
        raise MemoryError("no room")

    engine.step = fails  # type: ignore[method-assign]
    with pytest.raises(MemoryError, match="no room"):
        model.transcribe(sound(3), **QUICK)
    engine.step = step  # type: ignore[method-assign]
    assert model.transcribe(sound(3), **QUICK).text


def test_a_task_that_is_cancelled_ends_the_work() -> None:
    engine = Babble(delay=0.002)

    async def pieces() -> AsyncIterator[np.ndarray]:
        for i in range(3000):
            yield sound(1, i)

    async def scenario(model: WhisperModel) -> None:
        for audio in ((sound(1, i) for i in range(3000)), pieces()):
            before = engine.heard_windows
            task = asyncio.create_task(model.atranscribe(audio, **QUICK))
            while engine.heard_windows < before + 2:
                await asyncio.sleep(0.002)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not engine.alive and not engine.windows

    with loaded(engine) as model:
        asyncio.run(scenario(model))


def test_the_asynchronous_twins_say_the_same(model: WhisperModel) -> None:
    audio = sound(40)
    expected = model.transcribe(audio, **QUICK)

    async def pieces() -> AsyncIterator[bytes]:
        pcm = (audio * 32768).astype("<i2")
        for start in range(0, len(pcm), 5000):
            await asyncio.sleep(0)
            yield pcm[start : start + 5000].tobytes()

    async def scenario() -> None:
        assert await model.atranscribe(audio, **QUICK) == expected
        async with model.atranscribe_stream(audio, **QUICK) as stream:
            assert tuple([segment async for segment in stream]) == expected.segments
        assert (await model.atranscribe(pieces(), **QUICK)).duration == 40

    asyncio.run(scenario())


def test_a_source_that_was_cancelled_has_not_come_to_its_end(model: WhisperModel) -> None:
    """What it awaits was, by somebody else than the caller."""

    async def pieces() -> AsyncIterator[np.ndarray]:
        yield sound(35)
        recorder = asyncio.create_task(asyncio.sleep(1000))
        recorder.cancel()
        await recorder

    async def scenario() -> None:
        with pytest.raises(asyncio.CancelledError):
            await model.atranscribe(pieces(), **QUICK)
        with pytest.raises(asyncio.CancelledError):
            async for _ in model.alisten(pieces(), **QUICK):
                pass

    asyncio.run(scenario())


def test_an_error_of_the_recording_is_raised_where_it_is_read(model: WhisperModel) -> None:
    audio = sound(40)
    audio[35 * 16000] = np.nan

    def pieces() -> Iterator[np.ndarray]:
        yield audio[: 32 * 16000]
        yield audio[32 * 16000 :]

    with pytest.raises(AudioError, match="is nan"):
        model.transcribe(audio, **QUICK)
    stream = model.transcribe_stream(pieces(), **QUICK)
    assert next(stream).text
    with pytest.raises(AudioError, match="is nan"):
        list(stream)
    with pytest.raises(AudioError, match="no samples"):
        model.transcribe(np.zeros(0, np.float32), **QUICK)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_sise": 5}, "beam_sise: no such option; did you mean beam_size?"),
        ({"beam_size": 0}, "beam_size: found 0, expected an integer of at least 1"),
        ({"beam_size": "5"}, "beam_size: found '5'"),
        ({"beam_size": None}, "beam_size: found None"),
        ({"beam_size": 5000}, "beam_size: 5000 texts side by side, expected at most 63"),
        ({"patience": 0}, "patience: found 0"),
        ({"length_penalty": 10**400}, "length_penalty: found 1000.*, expected a number"),
        ({"temperature": (0, -1)}, "temperature: found"),
        ({"language": "klingon"}, "language: found 'klingon'"),
        ({"task": "sing"}, "task: found 'sing', expected one of transcribe, translate"),
        ({"clip_timestamps": "3,2"}, "clip_timestamps: found '3,2', expected seconds in rising order"),
        ({"clip_timestamps": "inf"}, "clip_timestamps: found 'inf', expected seconds in rising order"),
        ({"clip_timestamps": [0.0, 10**400]}, "clip_timestamps: found .*, expected seconds in rising order"),
        ({"log_prob_threshold": math.nan}, "log_prob_threshold: found nan, expected a number"),
        ({"patience": 10**400}, "patience: found 1000.*, expected a number"),
        ({"temperature": 10**400}, "temperature: found 1000.*, expected a number in"),
        ({"vad": 3}, r"vad: expected a path, got 3 \(int\)"),
        ({"vad": ""}, "vad: expected a path, got ''"),
        ({"progress": True}, "progress: expected a function or None, got True"),
        ({"clip_timestamps": "a"}, "clip_timestamps: found 'a'"),
        ({"clip_timestamps": [5.0], "batch_size": 2}, "clip_timestamps: found .*the last end is needed"),
        ({"vad_parameters": {"treshold": 1}}, "vad_parameters: no 'treshold'; there is threshold,"),
        ({"vad_parameters": 3}, "vad_parameters: found 3"),
        ({"vad_parameters": {"speech_pad_ms": "1"}}, "speech_pad_ms is '1', expected at least 0"),
        ({"temperature": "hot"}, "temperature: found 'hot', expected numbers of at least 0"),
        ({"temperature": float("inf")}, "temperature: found inf"),
        ({"temperature": True}, "temperature: found True"),
        ({"temperature": 1e307}, "temperature: found 1e.307, expected a number in"),
        ({"temperature": np.array(0.5)}, "temperature: found array"),
        ({"repetition_penalty": 1e40}, "repetition_penalty: found 1e.40, expected a number in .* 3.4"),
        ({"initial_prompt": np.array(5)}, "initial_prompt: found array"),
        ({"sampling_rate": "16000", "progress": print}, "sampling_rate: found '16000'"),
        ({"temperature": [0, "a"]}, "temperature: found"),
        ({"patience": float("inf")}, r"patience: found inf, expected a number in \(0,"),
        ({"length_penalty": "1"}, "length_penalty: found '1', expected a number"),
        ({"length_penalty": float("nan")}, "length_penalty: found nan, expected a number"),
        ({"log_prob_threshold": "low"}, "log_prob_threshold: found 'low', expected a number"),
        ({"word_timestamps": "yes"}, "word_timestamps: found 'yes', expected True or False"),
        ({"language": 5}, "language: found 5, expected text or None"),
        ({"hotwords": 7}, "hotwords: found 7, expected text or None"),
        ({"initial_prompt": 5}, "initial_prompt: found 5, expected text or a list of token ids"),
        ({"suppress_tokens": -1}, "suppress_tokens: found -1, expected a list of token ids"),
        ({"suppress_tokens": None}, "suppress_tokens: found None"),
        ({"suppress_tokens": [10**7]}, "suppress_tokens: found 10000000, expected -1 or an id below"),
        ({"suppress_tokens": [-5]}, "suppress_tokens: found -5"),
        ({"initial_prompt": [5, 10**7]}, "initial_prompt: found the id 10000000, expected one below"),
        ({"initial_prompt": [-1]}, "initial_prompt: found the id -1"),
        ({"initial_prompt": b"so"}, "initial_prompt: found b'so'"),
    ],
)
def test_wrong_options_are_refused_at_once(model: WhisperModel, options: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        model.transcribe_stream(sound(1), **{"language": "en", **options})


def test_numbers_of_numpy_are_options(model: WhisperModel) -> None:
    ours = {**QUICK, "temperature": [0, 0.5], "suppress_tokens": [-1]}
    numpys = {**QUICK, "temperature": np.array([0, 0.5], np.float32), "suppress_tokens": np.array([-1])}
    assert model.transcribe(sound(1), **ours) == model.transcribe(sound(1), **numpys)
    ours |= {"initial_prompt": [5, 6], "temperature": 3, "length_penalty": -1}
    numpys |= {"initial_prompt": np.array([5, 6]), "temperature": np.uint8(3), "length_penalty": np.int8(-1)}
    assert model.transcribe(sound(1), **ours) == model.transcribe(sound(1), **numpys)


def test_ids_may_come_from_an_iterator(model: WhisperModel) -> None:
    for name in ("initial_prompt", "suppress_tokens"):
        listed = model.transcribe(sound(1), **QUICK, **{name: [5, 6]})
        assert model.transcribe(sound(1), **QUICK, **{name: iter([5, 6])}) == listed


def test_the_arguments_are_the_fields_of_the_options_and_the_signature_shows_them() -> None:
    fields = {field.name: field.type for field in dataclasses.fields(TranscriptionOptions) if field.init}
    assert fields == dict(TranscriptionArguments.__annotations__) | fields
    assert list(fields) == list(TranscriptionArguments.__annotations__)
    hints = get_type_hints(TranscriptionOptions)
    assert {name: hints[name] for name in fields} == get_type_hints(TranscriptionArguments)
    for method in ("transcribe", "transcribe_stream", "atranscribe", "atranscribe_stream"):
        parameters = inspect.signature(getattr(WhisperModel, method)).parameters
        assert set(fields) < set(parameters)
        assert parameters["beam_size"].default == 5
        assert "Beams at temperature 0; 1 is greedy." in getattr(WhisperModel, method).__doc__


@pytest.mark.parametrize("name", ["generate", "stream", "achat", "chat", "embed", "rerank", "pin"])
def test_what_draws_text_is_an_error(model: WhisperModel, name: str) -> None:
    assert not hasattr(model, name)
    with pytest.raises(UnsupportedError, match="babble transcribes speech"):
        getattr(model, name)("Hello")


def test_it_says_what_it_is(engine: Babble, model: WhisperModel) -> None:
    assert repr(model) == "<akunu.WhisperModel babble>"
    assert (model.device, model.context, model.memory.total) == ("fake", 448, 6)
    assert len(model.languages) == 99
    model.transcribe(sound(2), **QUICK)
    assert model.stats.steps > 2 and model.stats.running == 0


@pytest.mark.parametrize("batch_size", [None, 2])
def test_clips_may_go_on_far_after_the_end(model: WhisperModel, batch_size: int | None) -> None:
    """As long as a number can say, in the time and the memory of the recording."""
    options = {**QUICK, "batch_size": batch_size}
    expected = model.transcribe(sound(40), clip_timestamps=[0, 40], **options)
    assert expected.segments
    for clips in ([0, 1e9], [0, 1e18], [0, 1.7e308], [0, 40, 1e300, 1e301]):
        assert model.transcribe(sound(40), clip_timestamps=clips, **options) == expected


@pytest.mark.parametrize("batch_size", [None, 2])
def test_empty_clips_are_no_recording(model: WhisperModel, batch_size: int | None) -> None:
    found = model.transcribe(sound(5), clip_timestamps=[0, 0, 3, 3], batch_size=batch_size, **QUICK)
    assert not found.segments


def test_clips_are_all_that_is_heard(engine: Babble, model: WhisperModel) -> None:
    found = model.transcribe(sound(100), clip_timestamps="10,20,50.5,60", **QUICK)
    assert engine.heard_windows >= 2
    inside = [(10, 20), (50.5, 60)]
    assert all(any(a <= s.start and s.end <= b for a, b in inside) for s in found.segments)
    assert {s.start >= 50 for s in found.segments} == {True, False}


@pytest.mark.parametrize(
    "options", [{"beam_size": 3}, {"beam_size": 1}, {"beam_size": 1, "prefix": "and so"}]
)
def test_a_model_that_applies_the_rules_itself_says_the_same(options: dict[str, Any]) -> None:
    audio, options = sound(70), QUICK | {"max_new_tokens": 40} | options
    with loaded(Babble()) as model:
        expected = model.transcribe(audio, **options)
        penalised = model.transcribe(audio, repetition_penalty=1.2, **options)
    device = Device()
    with loaded(device) as model:
        found = model.transcribe(audio, **options)
        assert {name for name, _ in device.calls} == {"rank" if options["beam_size"] > 1 else "decode"}
        device.calls.clear()
        assert model.transcribe(audio, repetition_penalty=1.2, **options) == penalised != expected
        assert not device.calls  # of rules that it does not have
    assert found.text == expected.text
    for a, b in zip(found.segments, expected.segments, strict=True):
        assert a.tokens == b.tokens and a.avg_logprob == pytest.approx(b.avg_logprob, abs=1e-5)


@pytest.mark.parametrize("options", [{"beam_size": 3}, {"beam_size": 1}, {"temperature": 0.8, "best_of": 3}])
def test_such_a_model_is_asked_for_several_windows_at_once(options: dict[str, Any]) -> None:
    device, audio = Device(), sound(120)
    with loaded(device) as model:
        clips = [0, 30, 30, 60, 60, 90, 90, 120]
        alone = model.transcribe(audio, batch_size=1, clip_timestamps=clips, **QUICK | options)
        rows_alone = max(rows for _, rows in device.calls)
        device.calls.clear()
        device.hold_until(lambda: model.stats.running == 4)  # the first window is heard alone
        assert model.transcribe(audio, batch_size=4, clip_timestamps=clips, **QUICK | options) == alone
        assert max(rows for _, rows in device.calls) > rows_alone
