"""Speech found by an ONNX model of the user's: its frames, its state, and files that are none."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from akunu import AkunuError, ModelFileError, UnsupportedError
from akunu.audio import VadOptions, silero_detector, speech_spans
from speech import tiny
from speech.babble import Babble

from .onnx_files import FLOAT, INT64, silero_like

Array = npt.NDArray[np.float32]
QUICK = VadOptions(min_silence_duration_ms=500, speech_pad_ms=0)
STATE = ("state", FLOAT, (2, "batch", 128))
STEPWISE = [("input", FLOAT, ("batch", "samples")), STATE, ("sr", INT64, ())]


class Session:
    """As of onnxruntime: hears the loudest sample of a frame, and counts frames in its state."""

    inputs: tuple[tuple[str, Any], ...] = (("input", [None, None]), ("state", [2, None, 128]), ("sr", []))

    def __init__(self, path: str, *_: object, **__: object) -> None:
        self.frames: list[Array] = []

    def get_inputs(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(name=name, shape=shape) for name, shape in self.inputs]

    def run(self, outputs: None, feed: dict[str, Array]) -> list[Array]:
        names = [name for name, _ in self.inputs if name not in ("input", "sr")]
        assert {*feed} == {name for name, _ in self.inputs}
        assert feed["input"].shape[1] == 576 and feed["input"].dtype == np.float32
        frame = feed[names[0]].flat[0]
        if frame == 0:
            self.frames.clear()
        assert frame == len(self.frames), "the state is that of another frame"
        self.frames += [*feed["input"]]
        loudest = np.abs(feed["input"][:, 64:]).max(axis=1, keepdims=True)
        return [loudest, *(feed[name] + len(feed["input"]) for name in names)]


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    module = SimpleNamespace(SessionOptions=SimpleNamespace, InferenceSession=Session)
    monkeypatch.setitem(sys.modules, "onnxruntime", module)
    path = tmp_path / "vad.onnx"
    path.write_bytes(b"")
    return path


def test_frames_follow_each_other_whatever_the_blocks(runtime: Path) -> None:
    samples = np.random.default_rng(0).uniform(-1, 1, 512 * 7 + 100).astype(np.float32)
    expected = [float(np.abs(samples[i : i + 512]).max()) for i in range(0, len(samples), 512)]
    for cuts in ([], [100, 101, 5000], [*range(0, 3000, 64)], [512, 1024]):
        detector = silero_detector(runtime)
        model = detector.probabilities.__self__._session  # type: ignore[attr-defined]
        found = np.concatenate(list(detector.probabilities(np.split(samples, cuts))))
        assert found.tolist() == pytest.approx(expected)
        whole = np.concatenate([frame[64:] for frame in model.frames])[: len(samples)]
        assert np.array_equal(whole, samples)
        assert all(
            np.array_equal(a[-64:], b[:64]) for a, b in zip(model.frames, model.frames[1:], strict=False)
        )


def test_a_file_that_takes_many_frames_in_a_call(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = (("input", ["n", 576]), ("h", [1, 1, 128]), ("c", [1, 1, 128]))
    monkeypatch.setattr(Session, "inputs", inputs)
    runtime.touch()
    blocks = np.split(np.linspace(0, 1, 5120, dtype=np.float32), [2000, 4096])
    found = np.concatenate(list(silero_detector(runtime).probabilities(blocks)))
    assert found.tolist() == pytest.approx([(512 * (i + 1) - 1) / 5119 for i in range(10)], abs=1e-3)


def test_speech_is_where_the_model_says(runtime: Path) -> None:
    samples = np.zeros(16000 * 9, np.float32)
    samples[16000 * 2 : 16000 * 4] = samples[16000 * 6 : 16000 * 7] = 0.9
    spans = speech_spans([samples], QUICK, silero_detector(runtime))
    found = [(span.start / 16000, span.end / 16000) for span in spans]
    assert found == [pytest.approx((2, 4), abs=0.033), pytest.approx((6, 7), abs=0.033)]


def test_a_model_hears_only_what_it_lets_through(runtime: Path) -> None:
    from akunu.speech.whisper_model import WhisperModel

    samples = np.zeros(16000 * 20, np.float32)
    samples[16000 * 8 : 16000 * 11] = 0.9
    options: dict[str, Any] = {"language": "en", "beam_size": 1, "temperature": 0, "max_new_tokens": 8}
    with WhisperModel(Babble(), tiny.tokenizer(), "babble", Path("babble.bin")) as model:
        for batch_size in (None, 2):
            found = model.transcribe(samples, vad=runtime, batch_size=batch_size, **options)
            assert found.segments and found.duration == 20
            assert all(7.5 < segment.start <= segment.end < 11.5 for segment in found.segments)


@pytest.mark.parametrize(
    "inputs",
    [
        (("input", [1]), ("sr", []), ("h", [2]), ("c", [2])),
        (("input", [1]),),
        (("x", [1]), ("state", [2])),
        (("input_ids", [1]), ("attention_mask", [1])),
    ],
)
def test_another_model_is_refused_by_its_inputs(
    runtime: Path, monkeypatch: pytest.MonkeyPatch, inputs: tuple[tuple[str, Any], ...]
) -> None:
    monkeypatch.setattr(Session, "inputs", inputs)
    names = ", ".join(name for name, _ in inputs)
    with pytest.raises(UnsupportedError, match=f"vad.onnx: has the inputs {names}; expected"):
        silero_detector(runtime)


def test_without_onnxruntime_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "vad.onnx"
    path.write_bytes(b"")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(AkunuError, match=r"pip install 'akunu\[vad\]'"):
        silero_detector(path)
    with pytest.raises(ModelFileError, match=r"nothing.onnx: No such file"):
        silero_detector(tmp_path / "nothing.onnx")


def test_onnxruntime_itself_runs_such_a_file(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    path = tmp_path / "vad.onnx"
    path.write_bytes(silero_like(STEPWISE, ["state"]))
    samples = np.zeros(16000 * 5, np.float32)
    samples[16000 : 16000 * 3] = 0.2
    (span,) = speech_spans([samples], QUICK, silero_detector(path))
    assert (span.start / 16000, span.end / 16000) == pytest.approx((1, 3), abs=0.05)
    path.write_bytes(b"no model")
    with pytest.raises(ModelFileError, match="onnxruntime cannot open it"):
        silero_detector(path)
