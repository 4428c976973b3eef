"""A Whisper model that runs: the protocol of `akunu.speech.model` over the compiled core."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from akunu.base.errors import UnsupportedError
from akunu.files.describe.tensor_map import TensorInfo, by_name
from akunu.speech.config import WhisperConfig
from akunu.speech.model import Logits
from akunu.speech.rules import RuleTable, TokenRules
from akunu.speech.tensors import Layout, aligned_heads, sound_stack, synthetic_tensors, text_stack

if TYPE_CHECKING:
    from akunu import _core

__all__ = ["DecodedSequence", "SpeechEngine", "Window", "load_engine", "synthetic_engine"]


class _Opened(Protocol):
    """The part of a model's opened files that loading needs."""

    @property
    def files(self) -> _core.TensorFiles: ...
    @property
    def layout(self) -> Layout: ...
    @property
    def config(self) -> WhisperConfig: ...
    @property
    def metadata(self) -> Mapping[str, object]: ...


class Window:
    """The encoded sound that the decoder keeps; its place is free when this is released or forgotten."""

    def __init__(self, sound: int, dropped: list[int]) -> None:
        self._sound: int | None = sound
        self._dropped = dropped

    @property
    def sound(self) -> int:
        """The window's number in the core."""
        if self._sound is None:
            raise ValueError("this window was released")
        return self._sound

    def release(self) -> None:
        """Give the place back."""
        # Not to the core: a call may run there.
        if self._sound is not None:
            self._dropped.append(self._sound)
            self._sound = None

    __del__ = release


class DecodedSequence:
    """A sequence that is being decoded; `slot` is its number in the core."""

    def __init__(self, slot: int, prompt: int, rules: tuple[RuleTable, int] | None = None) -> None:
        self.slot = slot
        self.prompt = prompt
        self.rules = rules


class SpeechEngine:
    """An encoder and a decoder on one device; `akunu.speech.model.SpeechModel` says what the methods do.

    It also decodes whole sequences, and ranks tokens, without giving logits to the host.
    """

    def __init__(self, core: _core.Speech, config: WhisperConfig) -> None:
        self.config = config
        self._core = core
        self._dropped: list[int] = []
        # The core has the heads layer by layer.
        by_layer = [head for layer in aligned_heads(config) for head in layer]
        self._heads = [by_layer.index(head) for head in config.alignment_heads]

    @property
    def parallel(self) -> int:
        """Most sequences that there may be at a time."""
        return self._core.parallel

    @property
    def device(self) -> str:
        """The device's name."""
        return self._core.device

    @property
    def threads(self) -> int:
        """Threads that run it."""
        return self._core.threads

    @property
    def isa(self) -> str:
        """The instruction set of its kernels."""
        return self._core.isa

    @property
    def memory(self) -> _core.Memory:
        """Bytes by purpose."""
        return self._core.memory

    def encode(self, mels: npt.NDArray[np.float32]) -> list[Window]:
        """The states of windows: normalised log-mel frames [windows, mels, 2 audio_context].

        Raises
        ------
        DeviceError
            There are as many windows as the engine was loaded for.
        """
        expected = (self.config.mels, 2 * self.config.audio_context)
        if mels.ndim != 3 or mels.shape[1:] != expected:
            raise ValueError(
                f"mels have the shape {mels.shape}, expected [windows, {expected[0]}, {expected[1]}]"
            )
        self._close_dropped()
        return [Window(self._core.encode(mel), self._dropped) for mel in mels]

    def release(self, states: Window) -> None:
        """The window is not used again."""
        states.release()
        self._close_dropped()

    def begin(
        self, states: Sequence[Window], tokens: Sequence[Sequence[int]], rows: Sequence[Sequence[int]]
    ) -> tuple[list[DecodedSequence], Logits]:
        """Sequences that hold their `tokens`, and logits [all rows, vocab] after the named ones of each."""
        sequences: list[DecodedSequence] = []
        # A last token whose logits nobody wants runs with what is sampled after it.
        late = [
            ids[-1:] if wanted[-1] < len(ids) - 1 else [] for ids, wanted in zip(tokens, rows, strict=True)
        ]
        try:
            for window, ids, rest in zip(states, tokens, late, strict=True):
                sequences.append(
                    DecodedSequence(self._core.begin(window.sound, ids[: len(ids) - len(rest)]), len(ids))
                )
            asked = [(sequence.slot, list(wanted)) for sequence, wanted in zip(sequences, rows, strict=True)]
            logits = self._core.logits(asked)
            for sequence, rest in zip(sequences, late, strict=True):
                if rest:
                    self._core.extend(sequence.slot, rest)
            return sequences, logits
        except BaseException:
            for sequence in sequences:
                self.free(sequence)
            raise

    def fork(self, sequence: DecodedSequence) -> DecodedSequence:
        """A second sequence with the same tokens."""
        return DecodedSequence(self._core.fork(sequence.slot), sequence.prompt, sequence.rules)

    def free(self, sequence: DecodedSequence) -> None:
        """Free a sequence that is not used again."""
        self._core.close_slot(sequence.slot)

    def step(self, sequences: Sequence[DecodedSequence], tokens: Sequence[int]) -> Logits:
        """Add one token to each sequence; returns the logits [sequences, vocab] after it."""
        return self._core.logits(
            [(sequence.slot, [self._add(sequence, token)]) for sequence, token in _pairs(sequences, tokens)]
        )

    def attend(self, states: Window, tokens: Sequence[int]) -> tuple[npt.NDArray[np.float32], Logits]:
        """Weights of the alignment heads [heads, tokens, audio positions], and logits [tokens, vocab]."""
        weights, logits = self._core.attend(states.sound, tokens)
        return weights[self._heads], logits

    def decode(
        self,
        sequences: Sequence[DecodedSequence],
        rules: TokenRules,
        *,
        temperature: float,
        most: int,
        seeds: Sequence[int],
        begun: int = 0,
    ) -> list[tuple[list[int], float]]:
        """Sample the rest of each sequence, `most` tokens at most, and append it.

        Parameters
        ----------
        rules
            What may be sampled.
        temperature
            0: the most probable tokens.
        seeds : sequence of int
            The seed of each sequence's random numbers, 32 bits.
        begun
            How many of the tokens that the sequences began with count as what was said.

        Returns
        -------
        list of (list of int, float)
            The tokens without the end, and log p with it.

        Raises
        ------
        UnsupportedError
            `rules.table` is None.
        """
        table = self._rule(sequences, rules, begun)
        slots = [(sequence.slot, seed & 0xFFFFFFFF) for sequence, seed in _pairs(sequences, seeds)]
        sampled = self._core.generate(slots, temperature, most, table.end)
        return [(ids[:-1] if ids and ids[-1] == table.end else ids, log_p) for ids, log_p in sampled]

    def rank(
        self,
        sequences: Sequence[DecodedSequence],
        tokens: Sequence[int] | None,
        rules: TokenRules,
        count: int,
        *,
        begun: int = 0,
    ) -> tuple[npt.NDArray[np.int64], Logits]:
        """Add one token to each sequence, unless `tokens` is None; the `count` best ones that may follow.

        Their ids and log p [sequences, count], most probable first; other parameters are those of `decode`.
        `count` is at most 20.
        """
        self._rule(sequences, rules, begun)
        if tokens is not None:
            for sequence, token in _pairs(sequences, tokens):
                self._add(sequence, token)
        return self._core.rank([sequence.slot for sequence in sequences], count)

    def plan(self, phase: str, rows: int, position: int) -> list[_core.CommandInfo]:
        """The dispatch table of "encode", a window, or of a phase of `_core.Engine.plan`."""
        return self._core.plan(phase, rows, position)

    def profile(self, phase: str, rows: int, position: int, repeats: int) -> list[_core.CommandInfo]:
        """Run that table on silence, and return it with the time of every command; a window must be free."""
        return self._core.profile(phase, rows, position, repeats)

    def cancel(self) -> None:
        """Stop the call that runs."""
        self._core.cancel()

    def close(self) -> None:
        """Free the memory."""
        self._core.close()

    def _add(self, sequence: DecodedSequence, token: int) -> int:
        """Add a token, and return its position."""
        return self._core.extend(sequence.slot, [token])

    def _rule(self, sequences: Sequence[DecodedSequence], rules: TokenRules, begun: int) -> RuleTable:
        table = rules.table
        if table is None:
            raise UnsupportedError(
                "penalties of repetition and constraints are not applied on the device: use `step`"
            )
        changed = [sequence for sequence in sequences if sequence.rules != (table, begun)]
        if changed:
            never, not_first = table.masks(self.config.vocab_size)
            for sequence in changed:
                self._core.set_rules(
                    sequence.slot,
                    prompt=sequence.prompt - begun,
                    end=table.end,
                    timestamp_begin=table.timestamp_begin,
                    max_initial=table.max_initial,
                    never=never,
                    not_first=not_first,
                )
                sequence.rules = (table, begun)
        return table

    def _close_dropped(self) -> None:
        while self._dropped:
            self._core.close_sound(self._dropped.pop())


def _pairs(sequences: Sequence[DecodedSequence], values: Sequence[int]) -> list[tuple[DecodedSequence, int]]:
    return list(zip(sequences, values, strict=True))


def load_engine(
    opened: _Opened,
    *,
    device: str = "auto",
    threads: int = 0,
    parallel: int = 8,
    windows: int = 8,
    kv_dtype: str = "f16",
    check_weights: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> SpeechEngine:
    """The model in opened files.

    Parameters
    ----------
    opened : SpeechFiles
        The files.
    device : str
        "auto", or an id of `akunu.devices()`.
    threads, kv_dtype, check_weights, progress
        As of `akunu._core.Engine`.
    parallel
        Texts at a time.
    windows
        States of windows at a time.

    Raises
    ------
    ModelFileError
        A tensor is missing, or has another shape.
    UnsupportedError
        The device, or a type of weights, is none for speech.
    """
    return _engine(
        opened.files,
        opened.config,
        opened.layout,
        by_name(opened.files.tensors),
        opened.metadata,
        device,
        threads=threads,
        kv_dtype=kv_dtype,
        parallel=parallel,
        sounds=windows,
        check_weights=check_weights,
        progress=progress,
    )


def synthetic_engine(
    config: WhisperConfig,
    dtype: str,
    *,
    device: str = "auto",
    threads: int = 0,
    parallel: int = 8,
    windows: int = 8,
    kv_dtype: str = "f16",
) -> SpeechEngine:
    """A model of these sizes with random weights, whose matrices are of that type: to be timed."""
    tensors, types = synthetic_tensors(config, dtype)
    return _engine(
        None,
        config,
        "hf",
        tensors,
        {},
        device,
        threads=threads,
        kv_dtype=kv_dtype,
        parallel=parallel,
        sounds=windows,
        synthetic=types,
    )


def _engine(
    files: _core.TensorFiles | None,
    config: WhisperConfig,
    layout: Layout,
    tensors: Mapping[str, TensorInfo],
    settings: Mapping[str, object],
    device: str,
    **options: Any,
) -> SpeechEngine:
    from akunu import _core

    sound = sound_stack(config, layout, tensors, settings)
    text = text_stack(config, layout, tensors, settings)
    return SpeechEngine(_core.Speech(files, sound, text, device=device, **options), config)
