"""The two stacks in the core say what the model in float64 says, whatever the file and whoever is beside."""

from __future__ import annotations

import gc
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from akunu.base.errors import (
    AkunuError,
    ContextLengthError,
    DeviceError,
    InvalidArgumentError,
    ModelFileError,
    UnsupportedError,
)
from akunu.speech import engine as speech
from akunu.speech.batching import Begin
from akunu.speech.config import WhisperConfig
from akunu.speech.decoding import decode_window
from akunu.speech.engine import DecodedSequence, SpeechEngine
from akunu.speech.options import TranscriptionOptions
from akunu.speech.rules import TokenRules, log_softmax

from . import golden, model_files, tiny
from .numpy_whisper import NumpyWhisper

# Vocabulary, mels, positions, width, heads and layers of the encoder; positions, heads, layers of the other.
SHAPES = {
    "tiny": WhisperConfig(1864, 80, 100, 32, 2, 2, 64, 4, 2),
    "odd": WhisperConfig(1701, 7, 37, 96, 3, 1, 48, 4, 3, alignment_heads=((2, 3), (0, 1), (2, 0))),
    "long": WhisperConfig(1511, 128, 301, 64, 1, 2, 40, 2, 1, alignment_heads=((0, 0),)),
}
TOKENS = [5, 260, 17, 99, 3, 1500, 700, 41, 8]
DEVICE = os.environ.get("AKUNU_TEST_DEVICE", "auto")
"""What runs the models: tests/metal and tests/cuda name another."""


def load_engine(opened: Any, **options: Any) -> SpeechEngine:
    return speech.load_engine(opened, **{"device": DEVICE, **options})


def nmse(found: npt.NDArray[Any], expected: npt.NDArray[Any]) -> float:
    return float(((found - expected) ** 2).sum() / (expected**2).sum())


def reference(name: str, seed: int = 0) -> NumpyWhisper:
    return NumpyWhisper(SHAPES[name], seed)


def mels(config: WhisperConfig, count: int = 1) -> npt.NDArray[np.float32]:
    random = np.random.default_rng(3)
    return random.normal(0, 0.5, (count, config.mels, 2 * config.audio_context)).astype(np.float32)


def states_of(model: NumpyWhisper, mel: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """The encoder's output for the first window."""
    return model.windows[model.encode(mel)[0]]


def attended(
    model: NumpyWhisper, states: npt.NDArray[np.float64], tokens: list[int]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The weights of the alignment heads, and the logits."""
    logits, attention = model.logits(states, tokens)
    return np.stack([attention[layer][head] for layer, head in model.config.alignment_heads]), logits


def engine(folder: Path, name: str, kind: str = "f32", **options: Any) -> SpeechEngine:
    model = reference(name)
    opened = model_files.ggml(folder / f"{name}-{kind}.bin", model.config, model.weights, kind)
    return load_engine(opened, **{"kv_dtype": "f32", "threads": 2, **options})


@pytest.fixture(scope="module", params=SHAPES)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[NumpyWhisper, SpeechEngine]:
    return reference(request.param), engine(tmp_path_factory.mktemp("speech"), request.param)


def begin(
    model: SpeechEngine, window: Any, tokens: list[int]
) -> tuple[DecodedSequence, npt.NDArray[np.float32]]:
    sequences, logits = model.begin([window], [tokens], [range(len(tokens))])
    return sequences[0], logits


def on_gpu(model: SpeechEngine) -> bool:
    """Whose kernels sum in another order for one row, for a few and for many: bits are the CPU's promise."""
    return model.isa.startswith(("apple", "sm_"))


def same(model: SpeechEngine, found: npt.NDArray[np.float32], wanted: npt.NDArray[np.float32]) -> bool:
    """Bits on the CPU."""
    return nmse(found, wanted) < 1e-10 if on_gpu(model) else np.array_equal(found, wanted)


FIXED = {"avx512_amx": 2.5e-9, "avx512_vnni": 1.2e-8, "avx2_vnni": 1.2e-8, "avx2": 1.2e-8}
"""What each matmul adds of its square, for sets that encode sounds with 16-bit integers (cpp/cpu/digits.h,
cpp/cpu/fixed.h). Attention without AMX adds 1.5e-8 to 3.6e-8 where scores vary by up to 1, as those of random
weights do."""


def limit(model: SpeechEngine, exact: float) -> float:
    """Of an error in the mean square, where sums of F32 have `exact`.

    Three times that of six matmuls a layer, attention, which counts as three, and the convolutions', for what
    norms make larger.
    """
    return max(exact, 3 * FIXED.get(model.isa, 0) * (9 * model.config.audio_layers + 2))


def near(model: SpeechEngine, atol: float) -> float:
    """Of the largest of many numbers of about 1, where sums of F32 have `atol`."""
    return 7 * math.sqrt(limit(model, 0)) if model.isa in FIXED else atol


def are_weights(model: SpeechEngine, found: npt.NDArray[np.float32], wanted: npt.NDArray[np.float64]) -> bool:
    """Of attention to a sound, up to 1."""
    return np.allclose(found, wanted, atol=near(model, 1e-5))


def test_encoder_states_are_those_of_the_model(pair: tuple[NumpyWhisper, SpeechEngine]) -> None:
    expected, model = pair
    mel = mels(model.config)
    model.encode(mel)
    assert nmse(model._core.states(), states_of(expected, mel)) < limit(model, 1e-10)


def test_logits_and_attention_are_those_of_the_model(pair: tuple[NumpyWhisper, SpeechEngine]) -> None:
    expected, model = pair
    mel = mels(model.config)
    (window,) = model.encode(mel)
    states = states_of(expected, mel)
    sequence, logits = begin(model, window, TOKENS)
    assert nmse(logits, expected.logits(states, TOKENS)[0]) < limit(model, 1e-9)
    model.free(sequence)
    weights, again = model.attend(window, TOKENS)
    assert are_weights(model, weights, attended(expected, states, TOKENS)[0])
    assert same(model, again, logits)


def test_a_sequence_of_more_tokens_than_a_step_attends_whole(tmp_path: Path) -> None:
    expected, model = reference("tiny"), engine(tmp_path, "tiny")
    tokens = [i * 31 % 1800 for i in range(61)]
    (window,) = model.encode(mels(model.config))
    weights, logits = model.attend(window, tokens)
    found, wanted = attended(expected, states_of(expected, mels(model.config)), tokens)
    assert are_weights(model, weights, found) and nmse(logits, wanted) < limit(model, 1e-9)


def test_a_model_cannot_be_closed_by_what_a_call_asks_of_its_arguments(tmp_path: Path) -> None:
    """The ids of `attend` may be of any class, whose methods run while the call has the model."""
    model = engine(tmp_path, "tiny")
    (window,) = model.encode(mels(model.config))
    refused = []

    class Ids:
        def __iter__(self) -> Any:
            for token in TOKENS:
                with pytest.raises(AkunuError) as caught:
                    model._core.close()
                refused.append(caught.value)
                yield token

    weights, _ = model._core.attend(window.sound, Ids())
    assert np.array_equal(weights, model._core.attend(window.sound, TOKENS)[0])
    assert len(refused) == len(TOKENS)


@pytest.mark.parametrize("kind", ["f16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"])
def test_files_of_whisper_cpp_of_every_type(kind: str, tmp_path: Path) -> None:
    """Activations of matmuls with quantised weights are int8."""
    expected, model = reference("tiny"), engine(tmp_path, "tiny", kind, kv_dtype="f16")
    expected.weights = model_files.as_stored(expected.weights, kind)
    (window,) = model.encode(mels(model.config))
    logits = begin(model, window, TOKENS)[1]
    assert nmse(logits, expected.logits(states_of(expected, mels(model.config)), TOKENS)[0]) < (
        1e-5 if kind == "f16" else 2e-3
    )


@pytest.mark.parametrize(("bits", "bound"), [(0, 1e-9), (8, 5e-3), (4, 0.2)])
def test_mlx_folders(bits: int, bound: float, tmp_path: Path) -> None:
    expected = reference("tiny")
    model = load_engine(model_files.mlx(tmp_path, expected.config, expected.weights, bits), kv_dtype="f32")
    (window,) = model.encode(mels(model.config))
    logits = begin(model, window, TOKENS)[1]
    assert nmse(logits, expected.logits(states_of(expected, mels(model.config)), TOKENS)[0]) < limit(
        model, bound
    )


@pytest.mark.parametrize(("dtype", "bound"), [("F32", 1e-9), ("F16", 1e-5), ("BF16", 1e-3)])
def test_folders_of_hugging_face(dtype: str, bound: float, tmp_path: Path) -> None:
    expected = reference("odd")
    model = load_engine(model_files.hf(tmp_path, expected.config, expected.weights, dtype), kv_dtype="f32")
    (window,) = model.encode(mels(model.config))
    logits = begin(model, window, TOKENS)[1]
    assert nmse(logits, expected.logits(states_of(expected, mels(model.config)), TOKENS)[0]) < limit(
        model, bound
    )


def test_sequences_of_several_windows_in_one_step_are_those_of_each_alone(
    pair: tuple[NumpyWhisper, SpeechEngine],
) -> None:
    model = pair[1]
    windows = model.encode(mels(model.config, 3))
    prompts = [TOKENS[: 3 + i] for i in range(3)]
    rows = [[1, len(prompt) - 1] for prompt in prompts]
    alone = []
    for window, prompt, wanted in zip(windows, prompts, rows, strict=True):
        (sequence,), first = model.begin([window], [prompt], [wanted])
        steps = [model.step([sequence], [token])[0] for token in (9, 1200)]
        alone.append((first, steps))
        model.free(sequence)
    sequences, together = model.begin(windows, prompts, rows)
    sequences.append(model.fork(sequences[1]))
    assert same(model, together, np.concatenate([first for first, _ in alone]))
    order = (2, 0, 3, 1)
    for i, token in enumerate((9, 1200)):
        found = model.step([sequences[k] for k in order], [token] * 4)
        for row, k in zip(found, order, strict=True):
            assert same(model, row, alone[1 if k == 3 else k][1][i])
    for sequence in sequences:
        model.free(sequence)


def test_forks_go_their_own_ways(pair: tuple[NumpyWhisper, SpeechEngine]) -> None:
    """Whether what they share ends within a page of 32 positions, or with one."""
    model = pair[1]
    (window,) = model.encode(mels(model.config))
    for length in (7, 31, 32, 33):
        prompt = [(7 * i + length) % 1500 for i in range(length)]
        sequence = begin(model, window, prompt)[0]
        other = model.fork(sequence)
        third = model.fork(other)
        said: list[list[int]] = [list(prompt) for _ in range(3)]
        for tokens in ((1, 2, 3), (4, 5, 6)):
            logits = model.step([sequence, other, third], tokens)
            for own, token, row in zip(said, tokens, logits, strict=True):
                own.append(token)
                alone, whole = begin(model, window, own)
                assert same(model, row, whole[-1])
                model.free(alone)
        for one in (other, sequence, third):
            model.free(one)


RULES = TokenRules(tiny.tokenizer(), TranscriptionOptions())


def by_hand(
    model: SpeechEngine, sequence: DecodedSequence, logits: npt.NDArray[np.float32], most: int
) -> tuple[list[int], float]:
    """The most probable sequence by `step` and the rules of the host."""
    end = tiny.tokenizer().special.end
    tokens: list[int] = []
    total = 0.0
    row = logits[-1:].copy()
    while True:
        RULES.apply(row, [tokens])
        log_p = log_softmax(row)
        best = int(log_p[0].argmax())
        total += float(log_p[0, best])
        if best == end:
            return tokens, total
        tokens.append(best)
        if len(tokens) == most:
            return tokens, total
        row = model.step([sequence], [best])


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> SpeechEngine:
    """Of the tokenizer's vocabulary."""
    model = tiny.model()
    folder = tmp_path_factory.mktemp("spoken")
    opened = model_files.ggml(folder / "tiny.bin", model.config, model.weights, "f32", tiny.TOKENS)
    return load_engine(opened, threads=2, kv_dtype="f32")


def test_sampled_sequences_are_those_of_single_steps(spoken: SpeechEngine) -> None:
    """Of several windows side by side, some of which end before the others."""
    model, prompt = spoken, list(tiny.tokenizer().start_sequence("en"))
    windows = model.encode(np.stack([tiny.mel(seed) for seed in range(4)]))
    expected = []
    for window in windows:
        sequence, logits = begin(model, window, prompt)
        expected.append(by_hand(model, sequence, logits, 50))
        model.free(sequence)
    sequences = [begin(model, window, prompt)[0] for window in windows]
    sampled = model.decode(sequences, RULES, temperature=0, most=50, seeds=range(4))
    assert [tokens for tokens, _ in sampled] == [tokens for tokens, _ in expected]
    assert [p for _, p in sampled] == pytest.approx([p for _, p in expected], rel=1e-4)
    for sequence in sequences:
        model.free(sequence)


def test_a_last_token_that_runs_late_changes_nothing(spoken: SpeechEngine) -> None:
    """Where the logits after a prompt are not asked for, its last token runs with what comes after it."""
    model, prompt = spoken, list(tiny.tokenizer().start_sequence("en"))
    (window,) = model.encode(tiny.mel()[None])
    whole, after = begin(model, window, prompt)
    (late,), first = model.begin([window], [prompt], [[0]])
    assert same(model, first, after[:1])
    forks = [model.fork(sequence) for sequence in (whole, late)]
    sampled = [
        model.decode([sequence], RULES, temperature=0, most=20, seeds=[0])[0] for sequence in (whole, late)
    ]
    assert sampled[0][0] == sampled[1][0] and sampled[0][1] == pytest.approx(sampled[1][1], rel=1e-6)
    assert same(model, *(model.step([sequence], [65])[0] for sequence in forks))
    for sequence in (whole, late, *forks):
        model.free(sequence)


@pytest.mark.parametrize(("beams", "rows"), [(1, [0]), (5, [0, 2])])
def test_only_beams_ask_for_the_logits_after_the_prompt(
    beams: int, rows: list[int], spoken: SpeechEngine
) -> None:
    """The model generates other sequences, which then need not run the prompt's end twice."""
    prompt = list(tiny.tokenizer().start_sequence("en"))
    options = TranscriptionOptions(beam_size=beams)
    request = next(decode_window(spoken, None, tiny.tokenizer(), prompt, options))
    assert isinstance(request, Begin) and len(prompt) == 3 and request.rows == rows


@pytest.mark.parametrize("seed", golden.SEEDS)
def test_transformers_says_the_same(seed: int, tmp_path: Path) -> None:
    """Of its text, it drops what follows the last pair of timestamps."""
    expected = json.loads(golden.PATH.read_text())[str(seed)]
    weights, prompt = tiny.model(seed).weights, list(tiny.tokenizer().start_sequence("en"))
    model = load_engine(model_files.hf(tmp_path, tiny.config(), weights), kv_dtype="f32")
    (window,) = model.encode(tiny.mel(seed)[None])
    assert np.allclose(model._core.states()[::20, 3], expected["states"], atol=near(model, 1e-4))
    sequence, logits = begin(model, window, [*prompt, *golden.TEXT])
    assert np.allclose(logits[::4, 7], expected["logits"], atol=near(model, 1e-3))
    model.free(sequence)
    ((found, _),) = model.decode([begin(model, window, prompt)[0]], RULES, temperature=0, most=32, seeds=[0])
    assert found[: len(expected["greedy"])] == expected["greedy"]


@pytest.mark.long
def test_a_model_of_the_smallest_published_size_says_what_transformers_says(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    config = WhisperConfig(51865, 80, 1500, 384, 6, 4, 448, 6, 4)
    torch.manual_seed(0)
    expected = transformers.WhisperForConditionalGeneration(transformers.WhisperConfig()).eval()
    weights = {name: w.numpy() for name, w in expected.model.state_dict().items()}
    model = load_engine(model_files.hf(tmp_path, config, weights), kv_dtype="f32")
    mel = mels(config)
    (window,) = model.encode(mel)
    with torch.no_grad():
        states = expected.model.encoder(torch.from_numpy(mel)).last_hidden_state
        assert nmse(model._core.states(), states[0].numpy()) < limit(model, 1e-9)
        logits = (
            expected(encoder_outputs=(states,), decoder_input_ids=torch.tensor([TOKENS])).logits[0].numpy()
        )
    assert nmse(begin(model, window, TOKENS)[1], logits) < limit(model, 1e-8)


@pytest.mark.parametrize("dtype", ["f16", "q8_0"])
def test_random_weights_run(dtype: str) -> None:
    model = speech.synthetic_engine(SHAPES["tiny"], dtype, device=DEVICE)
    (window,) = model.encode(mels(model.config))
    assert np.isfinite(begin(model, window, TOKENS)[1]).all()


def test_samples_follow_their_seeds_alone(spoken: SpeechEngine) -> None:
    model, prompt = spoken, list(tiny.tokenizer().start_sequence("en"))
    (window,) = model.encode(tiny.mel()[None])
    sequence = begin(model, window, prompt)[0]

    def sampled(seeds: list[int]) -> list[list[int]]:
        sequences = [model.fork(sequence) for _ in seeds]
        found = model.decode(sequences, RULES, temperature=1.0, most=20, seeds=seeds)
        for one in sequences:
            model.free(one)
        return [tokens for tokens, _ in found]

    one, two, three = sampled([1, 2, 3])
    assert one != two and sampled([3, 1]) == [three, one]
    model.free(sequence)


def test_the_best_tokens_are_those_of_the_rules(spoken: SpeechEngine) -> None:
    model, prompt = spoken, list(tiny.tokenizer().start_sequence("en"))
    (window,) = model.encode(tiny.mel()[None])
    sequence, logits = begin(model, window, prompt)
    said: list[int] = []
    for _ in range(6):
        row = logits[-1:].copy()
        RULES.apply(row, [said])
        expected = log_softmax(row)[0]
        ids, log_p = model.rank([sequence], said[-1:] or None, RULES, 6)
        assert ids[0].tolist() == np.argsort(-expected, kind="stable")[:6].tolist()
        assert np.allclose(log_p[0], expected[ids[0]], atol=1e-4)
        said.append(int(ids[0, 2]))
        other, logits = begin(model, window, [*prompt, *said])
        model.free(other)
    model.free(sequence)


def test_what_was_said_before_counts(spoken: SpeechEngine) -> None:
    """A given beginning: the rules go on behind it."""
    model, special = spoken, tiny.tokenizer().special
    prompt = [*tiny.tokenizer().start_sequence("en"), special.timestamp_begin, 65, 66]
    (window,) = model.encode(tiny.mel()[None])
    sequence, logits = begin(model, window, prompt)
    row = logits[-1:].copy()
    RULES.apply(row, [prompt[-3:]])
    ids, log_p = model.rank([sequence], None, RULES, 1, begun=3)
    assert ids[0, 0] == row.argmax() and log_p[0, 0] == pytest.approx(log_softmax(row).max(), abs=1e-4)
    model.free(sequence)


def test_penalties_are_the_hosts(spoken: SpeechEngine) -> None:
    rules = TokenRules(tiny.tokenizer(), TranscriptionOptions(repetition_penalty=1.5))
    assert rules.table is None
    with pytest.raises(UnsupportedError, match="use `step`"):
        spoken.rank([], None, rules, 1)


def test_windows_are_given_back(spoken: SpeechEngine) -> None:
    mel = tiny.mel()[None]
    windows = [spoken.encode(mel)[0] for _ in range(8)]
    with pytest.raises(DeviceError, match="all 8 windows"):
        spoken.encode(mel)
    spoken.release(windows.pop())
    windows += spoken.encode(mel)
    # A window stays as long as a sequence is decoded from it.
    sequence = begin(spoken, windows[0], [1, 2])[0]
    spoken.release(windows.pop(0))
    with pytest.raises(DeviceError, match="all 8 windows"):
        spoken.encode(mel)
    spoken.free(sequence)
    windows += spoken.encode(mel)
    del windows
    gc.collect()
    assert len(spoken.encode(np.repeat(mel, 8, axis=0))) == 8


def test_what_cannot_be_is_refused(spoken: SpeechEngine) -> None:
    (window,) = spoken.encode(tiny.mel()[None])
    with pytest.raises(ContextLengthError, match="65 tokens, the context holds 64"):
        begin(spoken, window, [1] * 65)
    with pytest.raises(InvalidArgumentError, match="outside the vocabulary"):
        begin(spoken, window, [99999])
    with pytest.raises(ValueError, match="expected \\[windows, 80, 200\\]"):
        spoken.encode(np.zeros((1, 80, 100), np.float32))
    sequences = [begin(spoken, window, [1])[0] for _ in range(spoken.parallel)]
    with pytest.raises(DeviceError, match="all 8 sequences are in use"):
        spoken.fork(sequences[0])
    for sequence in sequences:
        spoken.free(sequence)
    spoken.release(window)
    with pytest.raises(ValueError, match="released"):
        begin(spoken, window, [1])


def test_a_lacking_tensor_is_named(tmp_path: Path) -> None:
    model = reference("tiny")
    weights = {
        name: w for name, w in model.weights.items() if name != "decoder.layers.1.encoder_attn.v_proj.bias"
    }
    opened = model_files.ggml(tmp_path / "x.bin", model.config, weights, "f32")
    with pytest.raises(ModelFileError, match=r"decoder\.blocks\.1\.cross_attn\.value\.bias is missing"):
        load_engine(opened)
