"""The Python side of the C interface (`cpp/c_api/akunu.h`), whose library calls these functions.

Each returns a tuple that begins with an `akunu_status`: 0 and what was found, or an error's and its message.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from akunu.base.errors import (
    AkunuError,
    BusyError,
    ContextLengthError,
    InvalidArgumentError,
    ModelFileError,
    UnsupportedError,
)
from akunu.base.version import __version__ as VERSION

if TYPE_CHECKING:
    from akunu.api.streams import Stream

__all__ = [
    "VERSION",
    "cancel",
    "chat",
    "close",
    "detokenize",
    "embed",
    "generate",
    "load",
    "tokenize",
    "transcribe",
]

Emit = Callable[[str], bool]
"""Gives a text to the caller; says whether the output is to end."""

Answer = tuple[Any, ...]

_STATUS: Final = (
    (InvalidArgumentError, 2),
    (ModelFileError, 3),
    (UnsupportedError, 4),
    (ContextLengthError, 5),
    (BusyError, 6),
    (MemoryError, 7),
)
_FINISH: Final = {"stop": 0, "length": 1, "cancelled": 2}


def _answering(function: Callable[..., Answer]) -> Callable[..., Answer]:
    @functools.wraps(function)
    def answered(*arguments: Any) -> Answer:
        try:
            return (0, *function(*arguments))
        except (AkunuError, MemoryError, OSError) as error:
            return next((status for kind, status in _STATUS if isinstance(error, kind)), 1), str(error)
        except TypeError as error:  # an option that is unknown
            return 2, str(error)
        except Exception as error:
            return 1, f"internal error: {type(error).__name__}: {error}"

    return answered


def _options(text: str) -> dict[str, Any]:
    options = _json("options", text) if text else {}
    if not isinstance(options, dict):
        raise InvalidArgumentError(f"options: found {text[:60]!r}, expected a JSON object")
    return options


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidArgumentError(f"{name}: not JSON: {error}") from error


@_answering
def load(name: str, device: str, context: int, threads: int, options: str) -> Answer:
    """Load a model; 0 stands for the default of `context` and `threads`."""
    import akunu

    arguments = {"device": device, **_options(options)}
    arguments |= {key: value for key, value in (("context", context), ("threads", threads)) if value}
    return (akunu.load(name, **{"progress": False, **arguments}),)


@_answering
def close(model: Any) -> Answer:
    """Release a model."""
    model.close()
    return ()


@_answering
def cancel(model: Any) -> Answer:
    """End all outputs of a model."""
    model.cancel()
    return ()


@_answering
def tokenize(model: Any, text: str) -> Answer:
    """Return the token ids as the bytes of 32-bit integers."""
    import numpy as np

    return (np.asarray(model.tokenize(text), dtype=np.uint32).tobytes(),)


@_answering
def detokenize(model: Any, ids: bytes, _options: str, _emit: Emit | None) -> Answer:
    """Return the text of token ids."""
    import numpy as np

    return _result(model.detokenize(np.frombuffer(ids, dtype=np.uint32)), {})


@_answering
def generate(model: Any, prompt: str, options: str, emit: Emit | None) -> Answer:
    """Continue a prompt."""
    return _streamed(model.stream(prompt, **_options(options)), emit)


@_answering
def chat(model: Any, messages: str, options: str, emit: Emit | None) -> Answer:
    """Answer a chat."""
    stream = model.stream_chat(_json("messages", messages), **_options(options))
    return _streamed(stream, emit, contents=True)


@_answering
def embed(model: Any, texts: list[str], options: str) -> Answer:
    """Return the vectors of texts, as the bytes of 32-bit floats."""
    import numpy as np

    vectors = model.embed(texts, **_options(options))
    return (np.ascontiguousarray(vectors, dtype=np.float32).tobytes(),)


@_answering
def transcribe(model: Any, sound: str | bytes, options: str, emit: Emit | None) -> Answer:
    """Write down the speech in a file, or in samples: the bytes of 32-bit floats."""
    import numpy as np

    recording = sound if isinstance(sound, str) else np.frombuffer(sound, dtype=np.float32)
    stream, finish = model.transcribe_stream(recording, **_options(options)), "stop"
    for segment in stream:
        if emit is not None and emit(segment.text):
            finish = "cancelled"
            stream.cancel()
            break
    found = stream.transcription
    return _result(found.text, dataclasses.asdict(found), finish=finish)


def _streamed(stream: Stream, emit: Emit | None, *, contents: bool = False) -> Answer:
    """Give the pieces of an output to `emit`; of a chat only what is its content."""
    from akunu.chat.deltas import Content

    with stream:
        pieces = (d.text for d in stream.deltas() if isinstance(d, Content)) if contents else map(str, stream)
        for text in pieces:
            if emit is not None and text and emit(text):
                stream.cancel()
                break
        done = stream.completion
    stats, message = done.stats, done.message
    details = {"ids": done.ids, "seed": done.seed, "stop": done.stop, "message": message}
    if done.logprobs is not None:
        details["logprobs"] = [dataclasses.asdict(entry) for entry in done.logprobs]
    text = str(message.get("content") or "") if contents else done.text
    return _result(
        text, details, stats.prompt_tokens, stats.cached_tokens, stats.generated_tokens,
        done.finish_reason, stats.time_to_first_token, stats.decode_tokens_per_second,
    )  # fmt: skip


def _result(
    text: str,
    details: dict[str, Any],
    prompt_tokens: int = 0,
    cached_tokens: int = 0,
    generated_tokens: int = 0,
    finish: str = "stop",
    first: float = 0.0,
    speed: float = 0.0,
) -> Answer:
    """Return what becomes an `akunu_result`."""
    told = json.dumps(details, ensure_ascii=False, default=float)
    return text, told, prompt_tokens, cached_tokens, generated_tokens, _FINISH[finish], first, speed
