"""A loaded speech model: recordings in, transcripts out."""

from __future__ import annotations

import asyncio
import numbers
import os
import weakref
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeVar, Unpack, overload

from akunu.api.base_model import BaseModel
from akunu.api.item_streams import AsyncItems
from akunu.api.scheduling import ModelStats
from akunu.api.signatures import spelled_out
from akunu.audio import AudioSource, audio_blocks
from akunu.audio.pcm import Samples
from akunu.audio.source import audio_channels, audio_seconds
from akunu.base.errors import InvalidArgumentError
from akunu.base.memory import Memory
from akunu.base.progress import check_callback
from akunu.speech.batching import Batcher
from akunu.speech.channels import ChannelsTranscriber
from akunu.speech.config import WhisperConfig
from akunu.speech.constraints import CONSTRAINTS
from akunu.speech.languages import LANGUAGES
from akunu.speech.live import AT_ONCE, Listener, LiveText
from akunu.speech.model import SpeechModel
from akunu.speech.options import TranscriptionArguments, TranscriptionOptions, transcription_options
from akunu.speech.streams import AsyncSegmentStream, SegmentStream, SpeechStream, transcribed
from akunu.speech.tokenizer import WhisperTokenizer
from akunu.speech.transcript import Transcription
from akunu.speech.transcription import Transcriber

if TYPE_CHECKING:
    from akunu import _core

__all__ = ["Engine", "WhisperModel"]

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S", bound=SpeechStream[Any])

TranscriptionProgress = Callable[[float, float | None], None]
"""Called as `progress(seconds_done, seconds)`; `seconds` is None where the length is not known."""


class Engine(SpeechModel, Protocol):
    """The engine that runs the model."""

    @property
    def device(self) -> str:
        """Name of the device."""

    @property
    def memory(self) -> _core.Memory:
        """Bytes by purpose."""

    def close(self) -> None:
        """Free everything."""


def _documented(function: F) -> F:
    return spelled_out(function, (TranscriptionOptions,))


class WhisperModel(BaseModel):
    """A Whisper model, as `akunu.load` returns it for one.

    Methods may be called from any thread. The windows of all calls run side by side, and none of them changes
    the text of another.

    `akunu.WhisperModel("small")` is `akunu.load("small", task="transcribe")`, with the same options.

    Examples
    --------
    >>> model = akunu.load("ember-speech")  # doctest: +SKIP
    >>> print(model.transcribe("talk.flac", language="en"))  # doctest: +SKIP
    """

    _instead: ClassVar = dict.fromkeys(
        ("text", "vectors", "tokens"),
        "transcribes speech (transcribe, transcribe_stream); load a text model for the rest",
    )

    _task = "transcribe"

    @overload
    def __init__(self, model: str | os.PathLike[str], /, **options: Any) -> None: ...
    @overload
    def __init__(
        self, engine: Engine, tokenizer: WhisperTokenizer, name: str, path: Path, windows: int = 8
    ) -> None: ...
    def __init__(  # type: ignore[misc]  # a name loads, and makes no call of this
        self, engine: Any, tokenizer: Any, name: str, path: Path, windows: int = 8
    ) -> None:
        super().__init__(name, path)
        self._engine: Engine = engine
        self._tokenizer: WhisperTokenizer = tokenizer
        self._batcher = Batcher(engine, windows)
        self._streams: weakref.WeakSet[SpeechStream[Any]] = weakref.WeakSet()

    @property
    def config(self) -> WhisperConfig:
        """The sizes."""
        return self._engine.config

    @property
    def tokenizer(self) -> WhisperTokenizer:
        """The tokenizer."""
        return self._tokenizer

    @property
    def device(self) -> str:
        """Name of the device that it runs on."""
        return self._engine.device

    @property
    def context(self) -> int:
        """Most tokens of a window's prompt and text together."""
        return self.config.text_context

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes of the languages that it knows."""
        if not self._tokenizer.multilingual:
            return ("en",)
        return tuple(code for code in LANGUAGES if code in self._tokenizer.special.languages)

    @property
    def notice(self) -> str | None:
        """The notice in the model's own files that every user should know; None where they have none."""
        return self._tokenizer.settings.notice

    # -- transcribing ----------------------------------------------------------------------------------------

    @_documented
    def transcribe(
        self,
        audio: AudioSource,
        *,
        sampling_rate: int | None = None,
        progress: TranscriptionProgress | None = None,
        **options: Unpack[TranscriptionArguments],
    ) -> Transcription:
        """Write down what is said in a recording.

        Parameters
        ----------
        audio
            A recording's path, its bytes, or an open binary file; an array [n] or [n, channels]; or an
            iterator of arrays or of pieces of little-endian 16-bit PCM: see `akunu.audio.audio_blocks`.
        sampling_rate
            Samples a second of an array or an iterator, 16000 when not given.
        progress
            Called as `progress(seconds_done, seconds)` after each window; `seconds` is None where nobody
            knows the length.
        **options
            See `akunu.speech.options.TranscriptionOptions`.

        Returns
        -------
        Transcription
            Text, language, segments, and words where they were asked for.

        Raises
        ------
        AudioError
            The recording is missing, damaged, cut off, empty, or has samples that are not finite.
        InvalidArgumentError
            An option is unknown or out of range.
        KeyboardInterrupt
            On Ctrl-C, within one step; the model stays usable.

        Examples
        --------
        >>> result = model.transcribe("talk.flac", word_timestamps=True)  # doctest: +SKIP
        >>> print(result.language, result.text)  # doctest: +SKIP
        >>> Path("talk.srt").write_text(result.to("srt"))  # doctest: +SKIP
        """
        return transcribed(self._start(audio, sampling_rate, progress, options))

    @_documented
    def transcribe_stream(
        self,
        audio: AudioSource,
        *,
        sampling_rate: int | None = None,
        progress: TranscriptionProgress | None = None,
        **options: Unpack[TranscriptionArguments],
    ) -> SegmentStream:
        """Write down what is said in a recording, segment by segment, while it is read.

        Raises what `transcribe` does; options are checked at once, the model runs when the first segment is
        read.

        Parameters
        ----------
        audio, sampling_rate, progress
            As in `transcribe`.
        **options
            See `akunu.speech.options.TranscriptionOptions`.

        Returns
        -------
        SegmentStream
            An iterator of `Segment` that also holds the `transcription`.
        """
        return self._start(audio, sampling_rate, progress, options)

    @_documented
    async def atranscribe(
        self,
        audio: AudioSource | AsyncIterable[Any],
        *,
        sampling_rate: int | None = None,
        progress: TranscriptionProgress | None = None,
        **options: Unpack[TranscriptionArguments],
    ) -> Transcription:
        """Write down what is said in a recording, for asyncio: `transcribe` that leaves the event loop free.

        When its task is cancelled, the work ends before the task goes on.

        Parameters
        ----------
        audio
            As in `transcribe`, or an asynchronous iterator of such pieces.
        sampling_rate, progress
            As in `transcribe`; `progress` is called in another thread.
        **options
            See `akunu.speech.options.TranscriptionOptions`.
        """
        stream = self._astart(audio, sampling_rate, progress, options)
        async with stream:
            async for _ in stream:
                pass
        return stream.transcription

    @_documented
    def atranscribe_stream(
        self,
        audio: AudioSource | AsyncIterable[Any],
        *,
        sampling_rate: int | None = None,
        progress: TranscriptionProgress | None = None,
        **options: Unpack[TranscriptionArguments],
    ) -> AsyncSegmentStream:
        """Write down what is said in a recording, segment by segment, for asyncio.

        Parameters
        ----------
        audio, sampling_rate, progress
            As in `atranscribe`.
        **options
            See `akunu.speech.options.TranscriptionOptions`.

        Returns
        -------
        AsyncSegmentStream
            For `async for`; also an asynchronous context manager.

        Examples
        --------
        >>> async for segment in model.atranscribe_stream("talk.flac"):  # doctest: +SKIP
        ...     print(segment.text)
        """
        return self._astart(audio, sampling_rate, progress, options)

    @_documented
    def listen(
        self,
        audio: AudioSource,
        *,
        sampling_rate: int | None = None,
        step: float = 1.0,
        **options: Unpack[TranscriptionArguments],
    ) -> SpeechStream[LiveText]:
        """Write down what is said while it is said.

        What two hearings in a row agree on is committed, and no later sound changes it; a second of silence
        commits all that was said. It looks back 30 seconds at most, and memory does not grow.

        Parameters
        ----------
        audio
            An iterator of arrays, or of pieces of little-endian 16-bit PCM, as they are recorded; or as in
            `transcribe`.
        sampling_rate
            Samples a second, 16000 when not given.
        step
            Least seconds of new sound between two hearings.
        **options
            See `akunu.speech.options.TranscriptionOptions`; `clip_timestamps`, `batch_size`, `channels`,
            `prefix`, `word_timestamps` and constraints have no effect here and are refused.

        Returns
        -------
        SpeechStream
            An iterator of `akunu.speech.live.LiveText`.

        Examples
        --------
        >>> for text in model.listen(microphone(), language="en"):  # doctest: +SKIP
        ...     print(text.committed, end="", flush=True)
        """
        return self._listening(audio, sampling_rate, step, options)

    @_documented
    def alisten(
        self,
        audio: AudioSource | AsyncIterable[Any],
        *,
        sampling_rate: int | None = None,
        step: float = 1.0,
        **options: Unpack[TranscriptionArguments],
    ) -> AsyncItems[LiveText]:
        """Write down what is said while it is said, for asyncio: `listen`.

        Parameters
        ----------
        audio
            As in `listen`, or an asynchronous iterator of such pieces.
        sampling_rate, step
            As in `listen`.
        **options
            See `akunu.speech.options.TranscriptionOptions`.
        """
        return AsyncItems(
            self._bridged(audio, lambda source: self._listening(source, sampling_rate, step, options))
        )

    def _listening(
        self, audio: AudioSource, sampling_rate: int | None, step: float, options: TranscriptionArguments
    ) -> SpeechStream[LiveText]:
        self._check_open()
        for name in ("batch_size", "channels", "clip_timestamps", "prefix", "word_timestamps", *CONSTRAINTS):
            if name in options:
                raise InvalidArgumentError(f"{name}: has no meaning for what is heard live")
        if not isinstance(step, numbers.Real) or not 0.1 <= step <= AT_ONCE:
            raise InvalidArgumentError(f"step: found {step!r}, expected 0.1 to {AT_ONCE:g} seconds")
        blocks = audio_blocks(audio, sampling_rate=sampling_rate)
        listener = Listener(self._batcher, self._tokenizer, blocks, self._options(options), step)
        return self._opened(SpeechStream(listener))

    def _options(self, given: TranscriptionArguments) -> TranscriptionOptions:
        """Return what the caller chose, and for the rest what the model was trained for."""
        return transcription_options(given, self._tokenizer.settings.options)

    def _bridged(self, audio: AudioSource | AsyncIterable[Any], start: Callable[[AudioSource], S]) -> S:
        """A stream of what may be an asynchronous iterator."""
        if not isinstance(audio, AsyncIterable):
            return start(audio)
        pieces = _Bridge(audio)
        stream = start(pieces)
        stream.on_cancel(pieces.cancel)
        return stream

    def _astart(
        self,
        audio: AudioSource | AsyncIterable[Any],
        sampling_rate: int | None,
        progress: TranscriptionProgress | None,
        options: TranscriptionArguments,
    ) -> AsyncSegmentStream:
        return AsyncSegmentStream(
            self._bridged(audio, lambda source: self._start(source, sampling_rate, progress, options))
        )

    def _start(
        self,
        audio: AudioSource,
        sampling_rate: int | None,
        progress: TranscriptionProgress | None,
        options: TranscriptionArguments,
    ) -> SegmentStream:
        check_callback(progress)
        chosen = self._options(options)
        if chosen.channels:
            return self._opened(SegmentStream(self._apart(audio, sampling_rate, progress, chosen)))
        blocks = audio_blocks(audio, sampling_rate=sampling_rate)
        report = None
        if progress is not None:
            total = audio_seconds(audio, sampling_rate)
            report = partial(_report, progress, total)
        return self._opened(SegmentStream(self._transcriber(blocks, chosen, report)))

    def _apart(
        self,
        audio: AudioSource,
        sampling_rate: int | None,
        progress: TranscriptionProgress | None,
        options: TranscriptionOptions,
    ) -> ChannelsTranscriber:
        """Transcribe each channel by itself; each reads the recording anew."""
        if hasattr(audio, "read"):
            audio = audio.read()
        if not (isinstance(audio, str | os.PathLike | bytes) or hasattr(audio, "__array__")):
            raise InvalidArgumentError("channels: needs a recording or an array, not pieces as they come")
        count = audio_channels(audio)
        done = [0.0] * count
        total = None if progress is None else audio_seconds(audio, sampling_rate)

        def report(channel: int, seconds: float) -> None:
            done[channel] = seconds
            assert progress is not None
            _report(progress, total, min(done))

        return ChannelsTranscriber(
            [
                self._transcriber(
                    audio_blocks(audio, sampling_rate=sampling_rate, channel=channel),
                    options,
                    None if progress is None else partial(report, channel),
                )
                for channel in range(count)
            ]
        )

    def _transcriber(
        self,
        blocks: Iterable[Samples],
        options: TranscriptionOptions,
        report: Callable[[float], None] | None = None,
    ) -> Transcriber:
        self._check_open()
        return Transcriber(self._batcher, self._tokenizer, blocks, options, report)

    def _opened(self, stream: S) -> S:
        self._streams.add(stream)
        return stream

    def cancel(self) -> None:
        """End all transcriptions that run, from any thread; those who asked get what was found so far."""
        for stream in list(self._streams):
            stream.cancel()

    # -- looking inside --------------------------------------------------------------------------------------

    @property
    def stats(self) -> ModelStats:
        """Counts: `running` windows, and `steps` since the model was loaded."""
        self._check_open()
        return ModelStats(
            running=self._batcher.running, parallel=self._engine.parallel, steps=self._batcher.rounds
        )

    @property
    def memory(self) -> Memory:
        """Bytes that the model uses, by purpose."""
        self._check_open()
        return Memory(**self._engine.memory)

    # -- the end ---------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Free the model's memory; may be called twice. What runs is cancelled and waited for."""
        closed, self._closed = self._closed, True
        if not closed and not self._forked():
            self._batcher.close()
            self._engine.close()


def _report(progress: TranscriptionProgress, total: float | None, seconds: float) -> None:
    progress(seconds if total is None else min(seconds, total), total)


class _Bridge(Iterator[Any]):
    """The pieces of an asynchronous iterator, for a thread that is not the event loop's."""

    def __init__(self, pieces: AsyncIterable[Any]) -> None:
        self._pieces = aiter(pieces)
        self._loop = asyncio.get_running_loop()
        self._waiting: Future[Any] | None = None
        self._cancelled = False

    def __next__(self) -> Any:
        self._waiting = asyncio.run_coroutine_threadsafe(self._following(), self._loop)
        if self._cancelled:  # since the last look
            self._waiting.cancel()
        try:
            piece = self._waiting.result()
        except CancelledError:
            if not self._cancelled:  # by the caller's own doing: not the end of the sound
                raise asyncio.CancelledError from None
            raise StopIteration from None
        if piece is _END:
            raise StopIteration
        return piece

    async def _following(self) -> Any:
        return await anext(self._pieces, _END)

    def cancel(self) -> None:
        """No more pieces come."""
        self._cancelled = True
        if self._waiting is not None:
            self._waiting.cancel()


_END: Final = object()
