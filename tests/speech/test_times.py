"""When words are said, by the model that comes along: beside OpenAI's Whisper and Transformers' (optional).

All three run the same weights over the same frames, so that only rounding may part them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from akunu import _core
from akunu.audio import load_audio, log_mel
from akunu.loading.finding import find_model
from akunu.speech.alignment import POSITIONS_PER_SECOND, TimedWord, align_words
from akunu.speech.batching import Batcher
from akunu.speech.config import WhisperConfig
from akunu.speech.engine import load_engine
from akunu.speech.files import open_speech
from akunu.speech.tokenizer import WhisperTokenizer

from . import model_files
from .golden import never, transformers_model

SECONDS = 10


class Spoken(NamedTuple):
    """A piece of the sample, what Akunu says of it, and when."""

    mel: npt.NDArray[np.float32]
    frames: int
    ids: list[int]
    words: list[TimedWord]


class Speech(NamedTuple):
    config: WhisperConfig
    tokenizer: WhisperTokenizer
    weights: dict[str, npt.NDArray[np.float32]]
    pieces: list[Spoken]


@pytest.fixture(scope="module")
def speech(tmp_path_factory: pytest.TempPathFactory) -> Speech:
    path = find_model("ember-speech")
    opened = open_speech(path)
    config, tokenizer = opened.config, opened.tokenizer()
    weights = {
        each.name: _core.dequantize(
            each.dtype.lower(), opened.files.tensor_bytes(each.name), int(np.prod(each.shape))
        ).reshape([size for size in each.shape if size > 1])
        for each in opened.files.tensors
        if each.dtype != "i8"  # a record of text behind the weights
    }
    file = model_files.ggml(tmp_path_factory.mktemp("speech") / "f32.bin", config, weights, "f32")
    engine = load_engine(file, device="cpu", threads=1, kv_dtype="f32")
    special = tokenizer.special
    start = [*tokenizer.start_sequence("en"), special.no_timestamps]
    audio = load_audio(path.with_suffix(".ogg"))
    pieces = []
    for first in range(0, len(audio) - 16000, SECONDS * 16000):
        samples = audio[first : first + SECONDS * 16000]
        mel = log_mel(samples, config.mels, padding=2 * config.audio_context * 160 - len(samples))
        (window,) = engine.encode(mel[None])
        ids: list[int] = []
        (text,), logits = engine.begin([window], [start], [[len(start) - 1]])
        while (token := int(logits[0, : special.end + 1].argmax())) != special.end:
            ids.append(token)
            logits = engine.step([text], [token])
        engine.free(text)
        frames = len(samples) // 160
        work = align_words(window, tokenizer, start[:-1], tokenizer.words(ids), frames // 2)
        pieces.append(Spoken(mel, frames, ids, Batcher(engine).run(work, 1)))
    assert len(pieces) == 2 and all(len(piece.words) > 15 for piece in pieces)
    return Speech(config, tokenizer, weights, pieces)


class OpenAITokenizer:
    """What OpenAI's alignment asks a tokenizer."""

    def __init__(self, own: WhisperTokenizer) -> None:
        self._own = own
        self.sot_sequence = own.start_sequence("en")
        self.no_timestamps = own.special.no_timestamps
        self.eot = own.special.end

    def split_to_word_tokens(self, ids: list[int]) -> tuple[list[str], list[list[int]]]:
        words = self._own.words(ids[:-1])
        return [*(word for word, _ in words), ""], [*(list(own) for _, own in words), [self.eot]]


@pytest.mark.long
def test_words_have_openais_times(speech: Speech) -> None:
    """Each word's start and end, to the position."""
    whisper = pytest.importorskip("whisper.model", reason="pip install openai-whisper")
    timing = pytest.importorskip("whisper.timing")
    torch = pytest.importorskip("torch")
    c = speech.config
    model = whisper.Whisper(
        whisper.ModelDimensions(
            c.mels, c.audio_context, c.width, c.audio_heads, c.audio_layers,
            c.vocab_size, c.text_context, c.width, c.text_heads, c.text_layers,
        )
    ).eval()  # fmt: skip
    expected = model.state_dict()
    model.load_state_dict(
        {name: torch.from_numpy(w.reshape(expected[name].shape)) for name, w in speech.weights.items()}
    )
    heads = torch.zeros(c.text_layers, c.text_heads, dtype=torch.bool)
    heads[tuple(zip(*c.alignment_heads, strict=True))] = True
    model.register_buffer("alignment_heads", heads.to_sparse(), persistent=False)
    for piece in speech.pieces:
        theirs = timing.find_alignment(
            model, OpenAITokenizer(speech.tokenizer), piece.ids, torch.from_numpy(piece.mel), piece.frames
        )
        ours = [(word.word, word.tokens, word.start, word.end) for word in piece.words]
        assert ours == [(word.word, word.tokens, word.start, word.end) for word in theirs]
        probabilities = [word.probability for word in theirs]
        assert [word.probability for word in piece.words] == pytest.approx(probabilities, abs=1e-4)


@pytest.mark.long
def test_tokens_have_transformers_times(speech: Speech) -> None:
    """Transformers gives a token the row that it is read in, so the time of the token after it, and leaves
    the rows before the text out of the mean: where the attention rests, the path may turn elsewhere."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    config, special = speech.config, speech.tokenizer.special
    times = range(special.timestamp_begin, config.vocab_size)
    model = transformers_model(
        config,
        speech.tokenizer,
        suppress_tokens=[*never(speech.tokenizer), *times],
        alignment_heads=[list(head) for head in config.alignment_heads],
    )
    names = {model_files.plain_name(name.removeprefix("model.")): name for name in model.state_dict()}
    weights: dict[str, Any] = {names[name]: torch.from_numpy(w) for name, w in speech.weights.items()}
    expected = model.state_dict()
    weights = {name: w.reshape(expected[name].shape) for name, w in weights.items()}
    model.load_state_dict(weights | {"proj_out.weight": weights["model.decoder.embed_tokens.weight"]})
    model.generation_config.is_multilingual = False
    apart: list[float] = []
    for piece in speech.pieces:
        with torch.no_grad():
            found = model.generate(
                torch.from_numpy(piece.mel)[None],
                return_timestamps=False,
                return_token_timestamps=True,
                return_dict_in_generate=True,
                num_frames=piece.frames,
            )
        assert found["sequences"][0].tolist()[-len(piece.ids) - 1 :] == [*piece.ids, special.end]
        theirs = found["token_timestamps"][0].numpy()[-len(piece.ids) - 1 : -1]
        first = np.cumsum([len(word.tokens) for word in piece.words])[1:-1]  # of its rows, one begins at 0
        ours = np.array([word.start for word in piece.words[2:]])
        apart += np.abs(theirs[first - 1] - ours).tolist()
    assert np.mean(np.array(apart) < 0.5 / POSITIONS_PER_SECOND) > 0.85 and max(apart) < 0.1
