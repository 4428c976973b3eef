"""Each published size with random weights beside Transformers: states, logits, where the heads of alignment
look, language, greedy text, beams.

Widths, heads, mels and vocabularies are the published ones; of layers those wider than base have a few, since
the kernels and their shapes are the same in each. `AKUNU_WHOLE_SIZES=1` gives them all of theirs, which takes
up to 20 GB. Transformers is optional, and takes minutes.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from akunu._core import WhisperFile
from akunu.loading.synthetic_speech import SHAPES
from akunu.speech.batching import Batcher
from akunu.speech.config import WhisperConfig
from akunu.speech.decoding import decode_window, language_probabilities
from akunu.speech.engine import SpeechEngine
from akunu.speech.options import TranscriptionOptions
from akunu.speech.tokenizer import WhisperTokenizer
from akunu.tokenizer.bytelevel import CHAR_OF_BYTE
from formats import whisper_bytes

from . import model_files
from .golden import never, transformers_model
from .test_engine import limit, load_engine, nmse

NEW = 16
PLAIN = TranscriptionOptions(
    temperature=0, max_new_tokens=NEW, log_prob_threshold=None, compression_ratio_threshold=None,
    suppress_blank=False, suppress_tokens=(),
)  # fmt: skip


def cut(name: str) -> WhisperConfig:
    """A published shape; wide ones with 2 layers of the encoder, and at most 3 of the decoder."""
    shape = SHAPES[name]
    if shape.width <= SHAPES["whisper-base"].width or os.environ.get("AKUNU_WHOLE_SIZES"):
        return shape
    return replace(shape, audio_layers=2, text_layers=min(3, shape.text_layers), alignment_heads=())


def tokenizer_of(config: WhisperConfig, folder: Path) -> WhisperTokenizer:
    """As many tokens as the published vocabulary has, without its text."""
    texts = [bytes([byte]) for byte in sorted(range(256), key=CHAR_OF_BYTE.__getitem__)]
    texts += [f" w{i}".encode() for i in range(256, 50257)]
    path = folder / "vocabulary.bin"
    path.write_bytes(whisper_bytes.file((), texts, (config.vocab_size, *whisper_bytes.TINY[1:])))
    return WhisperTokenizer.from_file(WhisperFile(str(path)))


def random_model(config: WhisperConfig, tokenizer: WhisperTokenizer) -> Any:
    """Transformers' model of a shape; what Akunu never draws is suppressed there too."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    torch.manual_seed(0)
    model = transformers_model(config, tokenizer, suppress_tokens=never(tokenizer))
    with torch.no_grad():
        for weights in model.parameters():
            if weights.ndim == 1:  # biases are zeros there, and norms ones
                weights += 0.05 * torch.randn_like(weights)
    return model


def said(engine: SpeechEngine, states: Any, tokenizer: WhisperTokenizer, **options: Any) -> list[int]:
    chosen = replace(PLAIN, **options)
    prompt = list(tokenizer.start_sequence("en"))
    if chosen.without_timestamps:
        prompt.append(tokenizer.special.no_timestamps)
    work = decode_window(engine, states, tokenizer, prompt, chosen)
    return Batcher(engine).run(work, chosen.beam_size + 1).tokens


@pytest.mark.long
@pytest.mark.parametrize("name", SHAPES)
def test_transformers_says_the_same(name: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    outputs = pytest.importorskip("transformers.modeling_outputs")
    config = cut(name)
    tokenizer = tokenizer_of(config, tmp_path)
    expected = random_model(config, tokenizer)
    weights = {key: w.numpy() for key, w in expected.model.state_dict().items()}
    engine = load_engine(model_files.hf(tmp_path, config, weights), kv_dtype="f32")
    mel = np.random.default_rng(1).normal(0, 0.5, (1, config.mels, 3000)).astype(np.float32)
    features = torch.from_numpy(mel)
    tokens = [*tokenizer.start_sequence("en"), 5, 260, 17, 99, 3, 1500, 700, 41, 8]
    (window,) = engine.encode(mel)
    times = range(tokenizer.special.timestamp_begin, config.vocab_size)
    untimed = {"without_timestamps": True, "suppress_tokens": tuple(times)}

    with torch.no_grad():
        states = expected.model.encoder(features).last_hidden_state
        assert nmse(engine._core.states(), states[0].numpy()) < limit(engine, 1e-9)
        heard = outputs.BaseModelOutput(states)  # once: that takes longer than the questions
        expected.model.encoder.forward = lambda *_, **__: heard
        read = expected(
            encoder_outputs=(states,), decoder_input_ids=torch.tensor([tokens]), output_attentions=True
        )
        language = int(expected.detect_language(features)[0])
        given = {"language": "en", "task": "transcribe", "max_new_tokens": NEW}
        timed = expected.generate(features, **given, return_segments=True)["segments"][0]
        given |= {"return_timestamps": False, "suppress_tokens": [*never(tokenizer), *times]}
        greedy = expected.generate(features, **given)[0].tolist()
        beams = expected.generate(features, **given, num_beams=5)[0].tolist()
    (text,), found = engine.begin([window], [tokens], [range(len(tokens))])
    engine.free(text)
    assert nmse(found, read.logits[0].numpy()) < limit(engine, 1e-8)
    heads = config.alignment_heads
    looked = np.stack([read.cross_attentions[layer][0, head].numpy() for layer, head in heads])
    assert nmse(engine.attend(window, tokens)[0], looked) < limit(engine, 1e-8)
    (best, _), *_ = Batcher(engine).run(language_probabilities(engine, window, tokenizer), 1)
    assert tokenizer.special.languages[best] == language
    segment = timed[0]["tokens"].tolist()  # others may be of what it hears again, from the last timestamp on
    assert said(engine, window, tokenizer, beam_size=1)[: len(segment)] == segment
    assert said(engine, window, tokenizer, beam_size=1, **untimed) == greedy
    assert said(engine, window, tokenizer, beam_size=5, **untimed) == beams
    assert len(greedy) == len(beams) == NEW and len(segment) > 1
