"""What is said live: text that is committed stays, all of it comes, and memory is bounded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from akunu.base.errors import InvalidArgumentError
from akunu.speech.live import LiveText
from akunu.speech.whisper_model import WhisperModel

from . import tiny
from .babble import CONFIG
from .counting import CountingModel
from .scripted import stamp

Array = npt.NDArray[np.float32]
WORDS = (" the", " in", " and", " so", " say", " you")
HZ = (300, 450, 700, 1050, 1500, 2100)
GREEDY: dict[str, Any] = {"language": "en", "beam_size": 1, "temperature": 0, "log_prob_threshold": None}


def spoken(words: Sequence[int], pause: float = 0.0) -> Array:
    """A word a second: 0.8 seconds of a tone that swells, and silence."""
    time = np.arange(12800) / 16000
    shape = np.sin(np.pi * time / 0.8) * 0.3
    pieces = [np.zeros(round(pause * 16000))]
    for word in words:
        pieces += [np.sin(2 * np.pi * HZ[word] * time) * shape, np.zeros(3200)]
    return np.concatenate([*pieces, np.zeros(round(pause * 16000))]).astype(np.float32)


class Hearer(CountingModel):
    """Writes down the tones of a window; of one that is not over yet, something else each time."""

    config = CONFIG
    device = "fake"
    memory = {"weights": 0, "weights_mapped": 0, "kv_cache": 0, "scratch": 0}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()
        self.longest = 0
        self.prompts: list[list[int]] = []
        self._bins = {int(np.argmax(self._mel(HZ[i]))): i for i in range(len(HZ))}

    @staticmethod
    def _mel(hz: float) -> Array:
        from akunu.audio import log_mel

        sound = np.sin(2 * np.pi * hz * np.arange(8000) / 16000).astype(np.float32)
        return log_mel(sound)[:, 10:40].mean(axis=1)

    def heard(self, mel: Array) -> list[tuple[int, float, float]]:
        """Token, begin and end in seconds of each word."""
        loud = np.flatnonzero(mel.max(axis=0) > mel.max() - 0.6)
        runs = np.split(loud, np.flatnonzero(np.diff(loud) > 8) + 1)
        self.longest = max(self.longest, int(loud[-1]) if loud.size else 0)
        words = []
        for run in runs:
            if not run.size:
                continue
            near = int(np.argmax(mel[:, run].mean(axis=1)))
            word = self._bins[min(self._bins, key=lambda b: abs(b - near))]
            if run.size < 45:  # it has just begun, or is cut off
                word = (word + run.size) % len(WORDS)
            words.append((tiny.tokenizer().encode(WORDS[word])[0], run[0] / 100, run[-1] / 100))
        return words

    def rows(self, window: Any, tokens: Sequence[int], places: Sequence[int], start: int) -> Array:
        return np.stack([self._after(window, tokens[: place + 1]) for place in places])

    def _after(self, words: Any, tokens: Sequence[int]) -> Array:
        special = tiny.tokenizer().special
        row = np.full(tiny.VOCAB, -20, np.float32)
        if special.transcribe not in tokens:
            row[0] = 0
            return row
        text = list(tokens)[list(tokens).index(special.transcribe) + 1 :]
        said = [token for token in text if token < special.end]
        if not text:
            row[stamp(0)] = 5
        elif len(said) < len(words):
            row[words[len(said)][0]] = 5
        elif text[-1] < special.end:
            row[stamp(words[-1][2] if words else 1)] = 5
        else:
            row[special.end] = 5
        return row

    def begin(self, states: Any, tokens: Any, rows: Any) -> Any:
        self.prompts += [list(each) for each in tokens]
        return super().begin(states, tokens, rows)

    def attend(self, states: int, tokens: Sequence[int]) -> tuple[Array, Array]:
        special, words = tiny.tokenizer().special, self.windows[states]
        start = list(tokens).index(special.no_timestamps)
        weights = np.full((1, len(tokens), 1500), 1e-4, np.float32)
        weights[0, :start, 0] = 1
        for i in range(len(tokens) - start):
            _, begin, end = words[min(i, len(words) - 1)]
            if i < len(words):
                weights[0, start + i, int(begin * 50) : int(end * 50) + 1] = 1
            else:
                weights[0, start + i, int(end * 50) + 2 :][:5] = 1
        logits = np.zeros((len(tokens), tiny.VOCAB), np.float32)
        return weights / weights.sum(axis=-1, keepdims=True), logits

    def close(self) -> None:
        assert not self.alive and not self.windows


@pytest.fixture
def hearer() -> Hearer:
    return Hearer()


@pytest.fixture
def model(hearer: Hearer) -> Iterator[WhisperModel]:
    with WhisperModel(hearer, tiny.tokenizer(), "hearer", Path("hearer.bin")) as found:
        yield found


def pieces(sound: Array, size: int = 3200) -> Iterator[Array]:
    return (sound[i : i + size] for i in range(0, len(sound), size))


def text_of(words: Sequence[int]) -> str:
    return "".join(WORDS[word] for word in words)


def whole(texts: Sequence[LiveText]) -> str:
    return "".join(text.committed for text in texts)


RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("size", [1600, 7001, 80_000])
@pytest.mark.parametrize("count", [3, 70])
def test_every_word_is_committed_once_and_in_order(model: WhisperModel, size: int, count: int) -> None:
    words = RANDOM.integers(0, len(WORDS), count).tolist()
    texts = list(model.listen(pieces(spoken(words, pause=0.5), size), **GREEDY))
    assert whole(texts) == text_of(words)
    assert texts[-1].tentative == "" and texts[-1].seconds == pytest.approx(count + 1)


def test_text_comes_soon_and_the_rest_is_a_guess(model: WhisperModel) -> None:
    words = RANDOM.integers(0, len(WORDS), 25).tolist()
    texts = list(model.listen(pieces(spoken(words)), step=0.5, **GREEDY))
    for text, before in zip(texts, np.cumsum([len(t.committed.split()) for t in texts]), strict=True):
        assert before >= text.seconds - 4
    assert any(text.tentative for text in texts)


def test_a_second_of_silence_commits_what_was_said(model: WhisperModel) -> None:
    sound = np.concatenate([spoken([0, 1, 2]), np.zeros(16000 * 40, np.float32), spoken([3, 4])])
    texts = list(model.listen(pieces(sound), **GREEDY))
    by_time = {text.seconds: whole(texts[: i + 1]) for i, text in enumerate(texts)}
    assert next(said for seconds, said in by_time.items() if seconds >= 5) == text_of([0, 1, 2])
    assert whole(texts) == text_of([0, 1, 2, 3, 4])


def test_silence_is_not_heard_and_what_is_settled_is_the_prompt(hearer: Hearer, model: WhisperModel) -> None:
    assert whole(list(model.listen(pieces(np.zeros(16000 * 60, np.float32)), **GREEDY))) == ""
    assert hearer.prompts == []
    sound = np.concatenate([spoken([0, 1]), np.zeros(16000 * 3, np.float32), spoken([3])])
    list(model.listen(pieces(sound), hotwords="he", **GREEDY))
    special, encode = tiny.tokenizer().special, tiny.tokenizer().encode
    assert hearer.prompts[-1][:5] == [special.start_of_previous, *encode(" he"), *encode(" the in")]


def test_what_is_looked_back_on_is_bounded(hearer: Hearer, model: WhisperModel) -> None:
    list(model.listen(pieces(spoken([i % 6 for i in range(100)])), **GREEDY))
    assert 1000 < hearer.longest < 2600  # frames


def test_a_stream_that_is_closed_leaves_nothing(hearer: Hearer, model: WhisperModel) -> None:
    with model.listen(pieces(spoken([i % 6 for i in range(100)])), **GREEDY) as texts:
        next(texts)
        next(texts)
    assert list(texts) == [] and not hearer.alive and not hearer.windows


def test_the_asynchronous_twin_and_its_cancelling(hearer: Hearer, model: WhisperModel) -> None:
    words = [i % 6 for i in range(8)]

    async def microphone(forever: bool) -> AsyncIterator[bytes]:
        for piece in pieces(spoken(words)):
            await asyncio.sleep(0)
            yield (piece * 32767).astype("<i2").tobytes()
        while forever:
            await asyncio.sleep(60)

    async def scenario() -> None:
        texts = [text async for text in model.alisten(microphone(False), **GREEDY)]
        assert whole(texts) == text_of(words)
        heard: list[LiveText] = []

        async def listen() -> None:
            async for text in model.alisten(microphone(True), **GREEDY):
                heard.append(text)

        task = asyncio.create_task(listen())
        while len(heard) < 5:
            await asyncio.sleep(0.01)
        task.cancel()  # while it waits for more sound
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not hearer.alive and not hearer.windows

    asyncio.run(asyncio.wait_for(scenario(), 30))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 2}, "batch_size: has no meaning for what is heard live"),
        ({"step": 60}, "step: found 60, expected 0.1 to 5 seconds"),
        ({"language": "klingon"}, "language: found 'klingon'"),
    ],
)
def test_what_has_no_meaning_is_refused(model: WhisperModel, options: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        model.listen(pieces(spoken([1])), **options)
