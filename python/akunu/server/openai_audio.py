"""OpenAI's recordings to text: `/v1/audio/transcriptions`, `/v1/audio/translations`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import IO, TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, cast

import msgspec
from msgspec import Meta
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from akunu.server.errors import ApiError, error_body
from akunu.server.fields import Fields, form_fields
from akunu.server.generations import RequestRecord, Server
from akunu.server.kinds import SPEECH
from akunu.server.limits import queue_place, too_long
from akunu.server.models import Entry
from akunu.server.multipart import read_form
from akunu.server.replies import json_response
from akunu.server.sse import EventStream, event, unless_gone

if TYPE_CHECKING:
    from akunu.speech.options import TranscriptionArguments
    from akunu.speech.segments import Segment
    from akunu.speech.streams import AsyncSegmentStream
    from akunu.speech.transcript import Transcription

__all__ = ["TranscriptionRequest", "TranslationRequest", "transcriptions", "translations"]

PATH: Final = "/v1/audio/"
LISTS: Final = ("timestamp_granularities[]", "include[]", "keywords[]", "choice[]")
"""Fields that a form repeats."""

Format = Literal["json", "text", "srt", "verbose_json", "vtt", "lrc"]
"""OpenAI's, and one for players of songs."""


class TranslationRequest(Fields, kw_only=True):
    """The request of `/v1/audio/translations`: OpenAI's fields, and extensions."""

    model: str
    file: bytes
    prompt: str | None = None
    response_format: Format = "json"
    temperature: Annotated[float, Meta(ge=0, le=1)] | None = None
    # Extensions.
    beam_size: int | None = None
    batch_size: int | None = None
    hotwords: str | None = None
    vad_filter: bool | None = None
    condition_on_previous_text: bool | None = None
    channels: bool | None = None
    max_line_width: Annotated[int, Meta(ge=1)] | None = None
    max_line_count: Annotated[int, Meta(ge=1)] | None = None
    max_words_per_line: Annotated[int, Meta(ge=1)] | None = None
    grammar: str | None = None
    regex: str | None = None
    choice: list[str] | None = msgspec.field(name="choice[]", default=None)

    task: ClassVar[str] = "translate"

    def options(self) -> TranscriptionArguments:
        """Arguments of the transcription."""
        found: dict[str, Any] = {
            "initial_prompt": self.prompt,
            "temperature": self.temperature,
            "beam_size": self.beam_size,
            "batch_size": self.batch_size,
            "hotwords": self.hotwords,
            "vad_filter": self.vad_filter,
            "condition_on_previous_text": self.condition_on_previous_text,
            "channels": self.channels,
            "word_timestamps": True if any(self.layout.values()) else None,
            "grammar": self.grammar,
            "regex": self.regex,
            "choice": self.choice,
        }
        given = {name: value for name, value in found.items() if value is not None}
        return cast("TranscriptionArguments", {"task": self.task, **given})

    @property
    def layout(self) -> dict[str, int | None]:
        """The layout of subtitles."""
        return {
            "max_line_width": self.max_line_width,
            "max_line_count": self.max_line_count,
            "max_words_per_line": self.max_words_per_line,
        }

    @property
    def streams(self) -> bool:
        """Whether the answer is a stream."""
        return False

    @property
    def granularities(self) -> tuple[str, ...]:
        """The parts that have times in verbose JSON."""
        return ("segment",)


class TranscriptionRequest(TranslationRequest, kw_only=True):
    """The request of `/v1/audio/transcriptions`: OpenAI's fields, and extensions."""

    accepted: ClassVar = {"include": ([],), "chunking_strategy": ("auto",)}
    task: ClassVar[str] = "transcribe"

    language: str | None = None
    stream: bool | None = None
    timestamp_granularities: list[Literal["word", "segment"]] = msgspec.field(
        name="timestamp_granularities[]", default_factory=list
    )
    keywords: list[str] = msgspec.field(name="keywords[]", default_factory=list)
    # Known, and refused.
    include: Any = msgspec.field(name="include[]", default=None)
    chunking_strategy: Any = None

    def options(self) -> TranscriptionArguments:
        options = super().options()
        if self.language:
            options["language"] = self.language
        if "word" in self.timestamp_granularities:
            options["word_timestamps"] = True
        if self.keywords and self.hotwords:
            raise ApiError(
                400,
                "hotwords: means the same as keywords[]; give one",
                param="hotwords",
                code="invalid_value",
            )
        if self.keywords:
            options["hotwords"] = ", ".join(self.keywords)
        return options

    @property
    def streams(self) -> bool:
        return bool(self.stream)

    @property
    def granularities(self) -> tuple[str, ...]:
        return tuple(self.timestamp_granularities) or ("segment",)


async def transcriptions(request: Request) -> Response:
    """Transcribe a recording."""
    return await _answer(request, *_fields(await read_form(request), TranscriptionRequest))


async def translations(request: Request) -> Response:
    """Translate a recording into English."""
    return await _answer(request, *_fields(await read_form(request), TranslationRequest))


def _fields(form: FormData, kind: type[TranslationRequest]) -> tuple[TranslationRequest, IO[bytes]]:
    """The fields, and the recording, which is closed with the request."""
    values: dict[str, Any] = {}
    for given, value in form.multi_items():
        name = f"{given}[]" if f"{given}[]" in LISTS else given
        if isinstance(value, str) == (name == "file"):
            expected = "a file, found a text" if name == "file" else "a text, found a file"
            raise ApiError(400, f"{name}: expected {expected}", param=name, code="invalid_type")
        if name in LISTS:
            values.setdefault(name, []).append(value)
        elif name in values:
            raise ApiError(400, f"{name}: it is there twice", param=name, code="invalid_value")
        else:
            values[name] = value
    upload: UploadFile | None = values.pop("file", None)
    # Checked without the recording, which is no text to be converted.
    fields = form_fields({**values, "file": ""} if upload is not None else values, kind)
    assert upload is not None  # a field that has to be there
    if fields.granularities != ("segment",) and fields.response_format != "verbose_json":
        raise ApiError(
            400, f"timestamp_granularities[]: {fields.response_format} has no place for them; expected the "
            "response_format verbose_json", param="timestamp_granularities[]", code="invalid_value",
        )  # fmt: skip
    if fields.streams and fields.response_format not in ("json", "text"):
        raise ApiError(
            400, f"response_format: {fields.response_format} does not come as a stream; expected json",
            param="response_format", code="invalid_value",
        )  # fmt: skip
    from akunu.speech.options import transcription_options
    from akunu.speech.subtitles import Layout

    transcription_options(fields.options())
    Layout(**fields.layout)
    return fields, upload.file


async def _answer(request: Request, fields: TranslationRequest, recording: IO[bytes]) -> Response:
    server: Server = request.app.state.server
    record = RequestRecord.of(request)
    record.stream = fields.streams
    if fields.streams:
        return EventStream(
            _events(server, record, fields, recording),
            server.settings,
            on_error=lambda error: event({"type": "error", **error_body(error, PATH)}),
        )
    found = await unless_gone(request, _transcribed(server, record, fields, recording))
    if fields.response_format == "json":
        return json_response({"text": found.text, "usage": _usage(found)})
    if fields.response_format == "verbose_json":
        return json_response(_verbose(found, fields))
    form = "txt" if fields.response_format == "text" else fields.response_format
    return PlainTextResponse(found.to(form, **fields.layout))


async def _transcribed(
    server: Server, record: RequestRecord, fields: TranslationRequest, recording: IO[bytes]
) -> Transcription:
    found: list[Transcription] = []
    async with aclosing(_segments(server, record, fields, recording, found)) as segments:
        async for _ in segments:
            pass
    return found[0]


async def _segments(
    server: Server,
    record: RequestRecord,
    fields: TranslationRequest,
    recording: IO[bytes],
    found: list[Transcription],
) -> AsyncGenerator[Segment, None]:
    """The segments as they come; at their end, `found` gets the whole."""
    async with server.models.use(fields.model, SPEECH) as entry:
        record.model = entry.spec.name
        with queue_place(entry, 1, server.settings, record.holder):

            def opened() -> AsyncSegmentStream:
                stream: AsyncSegmentStream = entry.loaded.atranscribe_stream(recording, **fields.options())
                return stream.run_in(server.workers.streams)

            constrained = fields.grammar or fields.regex or fields.choice
            stream = await (server.workers.compiled(opened) if constrained else asyncio.to_thread(opened))
            async with stream:
                while (segment := await _next(server, record, entry, stream)) is not None:
                    yield segment
            found.append(stream.transcription)
            server.meters.audio_seconds.labels(record.model).inc(found[0].duration)


async def _next(
    server: Server, record: RequestRecord, entry: Entry, stream: AsyncSegmentStream
) -> Segment | None:
    limit = server.settings.max_seconds
    try:
        with entry.wanted():
            async with asyncio.timeout(record.at + limit - time.monotonic()):
                segment = await anext(stream, None)
    except TimeoutError as error:
        raise too_long(limit) from error
    if segment is not None and record.first_token_seconds is None:
        record.first_token_seconds = time.monotonic() - record.at
    return segment


async def _events(
    server: Server, record: RequestRecord, fields: TranslationRequest, recording: IO[bytes]
) -> AsyncGenerator[bytes, None]:
    found: list[Transcription] = []
    began = False
    async with aclosing(_segments(server, record, fields, recording, found)) as segments:
        async for segment in segments:
            text = segment.text if began else segment.text.lstrip()
            began = began or bool(text)
            yield event({"type": "transcript.text.delta", "delta": text})
    yield event({"type": "transcript.text.done", "text": found[0].text, "usage": _usage(found[0])})


def _usage(found: Transcription) -> dict[str, Any]:
    return {"type": "duration", "seconds": round(found.duration, 2)}


def _verbose(found: Transcription, fields: TranslationRequest) -> dict[str, Any]:
    from akunu.speech.languages import LANGUAGES

    answer: dict[str, Any] = {
        "task": fields.task,
        "language": LANGUAGES[found.language] if found.language else None,
        "duration": found.duration,
        "text": found.text,
        "usage": _usage(found),
    }
    if "segment" in fields.granularities:
        answer["segments"] = [
            {
                "id": segment.id,
                "seek": round(segment.start * 100),
                "start": segment.start,
                "end": segment.end,
                "text": segment.text,
                "tokens": segment.tokens,
                "temperature": segment.temperature,
                "avg_logprob": segment.avg_logprob,
                "compression_ratio": segment.compression_ratio,
                "no_speech_prob": segment.no_speech_prob,
                **({} if segment.channel is None else {"channel": segment.channel}),
            }
            for segment in found.segments
        ]
    if "word" in fields.granularities:
        answer["words"] = [
            {"word": word.word.strip(), "start": word.start, "end": word.end} for word in found.words
        ]
    return answer
