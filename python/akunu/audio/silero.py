"""Find speech with Silero's model, from an ONNX file of the user's. It needs `onnxruntime`."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from akunu.audio.activity import Detector
from akunu.audio.pcm import SAMPLE_RATE, Samples
from akunu.base.arguments import as_path
from akunu.base.errors import AkunuError, ModelFileError, UnsupportedError

__all__ = ["silero_detector"]

FRAME: Final = 512
"""Samples that a probability is of."""
BEFORE: Final = 64
"""Samples before them that the model hears too."""

_SAMPLES, _RATE = "input", "sr"
_STATES: Final = (("state",), ("h", "c"))
"""The inputs that keep a model's state: frame by frame, or in files that take many frames in a call."""


def silero_detector(path: str | os.PathLike[str]) -> Detector:
    """A detector for `speech_spans` that runs a Silero VAD model, version 5 or 6.

    Parameters
    ----------
    path
        Its ONNX file.

    Raises
    ------
    ModelFileError
        The file is missing, or no ONNX file.
    UnsupportedError
        It is another model: its inputs are others.
    AkunuError
        `onnxruntime` is not installed.

    Examples
    --------
    >>> from akunu.audio import audio_blocks, speech_spans
    >>> detector = silero_detector("silero_vad.onnx")  # doctest: +SKIP
    >>> list(speech_spans(audio_blocks("talk.wav"), detector=detector))  # doctest: +SKIP
    """
    file = as_path("path", path)
    try:
        changed = file.stat().st_mtime_ns
    except OSError as error:
        raise ModelFileError(f"{file}: {error.strerror or error}") from error
    model = _opened(file, changed)
    return Detector(FRAME, model.probabilities)


@functools.lru_cache(maxsize=4)
def _opened(file: Path, changed: int) -> _Silero:
    return _Silero(file)


class _Silero:
    """The model in a file. Safe to share between threads: a recording's state is not kept here."""

    def __init__(self, file: Path) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise AkunuError("vad: onnxruntime is not installed; pip install 'akunu[vad]'") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4  # what is wrong is raised
        try:
            self._session = onnxruntime.InferenceSession(
                str(file), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime's own classes have no common one
            reason = str(error).strip().partition("\n")[0]
            raise ModelFileError(f"{file}: onnxruntime cannot open it: {reason}") from error
        shapes = {each.name: each.shape for each in self._session.get_inputs()}
        self._states = next((names for names in _STATES if {*names} == {*shapes} - {_SAMPLES, _RATE}), None)
        if self._states is None or _SAMPLES not in shapes or (_RATE in shapes and len(self._states) > 1):
            raise UnsupportedError(
                f"{file}: has the inputs {', '.join(shapes)}; expected those of Silero VAD 5 or 6: input and "
                "state, with or without sr, or input, h and c"
            )
        self._rate = {_RATE: np.array(SAMPLE_RATE, np.int64)} if _RATE in shapes else {}
        self._begin = {
            name: np.zeros([n if isinstance(n, int) else 1 for n in shapes[name]], np.float32)
            for name in self._states
        }

    def probabilities(self, blocks: Iterable[Samples]) -> Iterator[npt.NDArray[np.float32]]:
        """Return the probability of each frame of mono samples at 16 kHz; the last is filled with silence."""
        state: dict[str, Any] = dict(self._begin)
        at_once = 1 if len(self._begin) == 1 else None
        heard = np.zeros(BEFORE, np.float32)  # what the next frame has before it, and what is left of a block
        for block in blocks:
            heard = np.concatenate([heard, block])
            frames = (len(heard) - BEFORE) // FRAME
            if frames:
                yield self._run(_frames(heard, frames), state, at_once)
                heard = heard[frames * FRAME :]
        if len(heard) > BEFORE:
            yield self._run(_frames(np.pad(heard, (0, FRAME)), 1), state, at_once)

    def _run(self, frames: Samples, state: dict[str, Any], at_once: int | None) -> npt.NDArray[np.float32]:
        found = []
        for start in range(0, len(frames), at_once or len(frames)):
            piece = frames[start : start + at_once] if at_once else frames
            output, *states = self._session.run(None, {_SAMPLES: piece, **self._rate, **state})
            state.update(zip(state, states, strict=True))
            found.append(output.reshape(-1))
        return np.concatenate(found)


def _frames(heard: Samples, count: int) -> Samples:
    """Frames with what is before each: [count, BEFORE + FRAME]."""
    return np.lib.stride_tricks.sliding_window_view(heard, BEFORE + FRAME)[: count * FRAME : FRAME].copy()
