"""A loaded model of any kind, and the dispatch table that options choose of it: to be planned or timed."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import click

from akunu.base.hub_name import model_name
from akunu.cli.options import refuse_unused
from akunu.cli.phases import ROWS, TableOptions, table_options

if TYPE_CHECKING:
    from akunu._core import CommandInfo, Memory

__all__ = ["OpenTable", "find_or_explain", "is_random", "open_table"]

_WRITES: Final = ("decode", "batch", "prefill")
_PROMPT: Final = ROWS["prefill"]


class _Runner(Protocol):
    """The engine that runs a model."""

    @property
    def device(self) -> str: ...
    @property
    def isa(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def memory(self) -> Memory: ...


@dataclass(frozen=True)
class OpenTable:
    """A dispatch table of a loaded model.

    Attributes
    ----------
    name
        What the model is.
    runner
        What it runs on.
    asked
        Which table, every option with its value.
    unit, count
        What a run of the table makes, and how many of it.
    plan
        Its commands.
    profile
        And with the time of each, the median of so many runs.
    predicted
        Tables that say how fast the model is, by phase, and the tokens of each.
    """

    name: str
    runner: _Runner
    asked: TableOptions
    unit: str
    count: int
    plan: Callable[[], list[CommandInfo]]
    profile: Callable[[int], list[CommandInfo]]
    predicted: Callable[[], Mapping[str, tuple[int, list[CommandInfo]]]]


def is_random(model: str) -> bool:
    """Whether a model's name is SHAPE:TYPE, random weights of a published shape."""
    from akunu.loading.engines import is_synthetic
    from akunu.loading.synthetic_speech import is_speech_shape

    return is_synthetic(model) or is_speech_shape(model)


@contextmanager
def open_table(
    model: str, asked: TableOptions, options: Mapping[str, Any], *, predicts: bool = False
) -> Iterator[OpenTable]:
    """Load a model, and close it at the end.

    Parameters
    ----------
    model
        As the commands take it: a model's name, or SHAPE:TYPE.
    asked
        Which table; what is None there depends on the model.
    options
        Those of `loading_options`. Device "plan:M4 Max" is a chip that need not be here.
    predicts
        With room for the tables of `predicted`.

    Raises
    ------
    click.UsageError
        The model has no such table.
    """
    from akunu.files.model_files import open_model
    from akunu.loading.synthetic_speech import is_speech_shape
    from akunu.speech.recognition import is_speech

    if is_speech_shape(model):
        opened = _speech(model, None, asked, options)
    elif is_random(model):
        opened = _decoder(model, asked, options, predicts)
    elif is_speech(path := find_or_explain(model)):
        opened = _speech(model, path, asked, options)
    elif open_model(path).spec().config.encoder is not None:
        opened = _encoder(path, asked, options)
    else:
        opened = _decoder(str(path), asked, options, predicts)
    table, close = opened
    try:
        yield table
    finally:
        close()


def find_or_explain(model: str) -> Path:
    """The model that a name stands for; an error says what SHAPE:TYPE the name may have been meant for.

    Raises
    ------
    ModelFileError, UnsupportedError
        As of `akunu.loading.finding.find_model`.
    """
    from akunu.base.errors import ModelFileError
    from akunu.files.describe.filetypes import FILE_TYPES
    from akunu.loading import shapes
    from akunu.loading import synthetic_speech as speech
    from akunu.loading.finding import find_model

    try:
        return find_model(model)
    except ModelFileError as error:
        shape, colon, _ = model.lower().partition(":")
        spoken = shape in speech.SHAPES
        if spoken or shape in shapes.SHAPES:
            types = ", ".join(speech.SPEECH_TYPES if spoken else FILE_TYPES)
            raise ModelFileError(f"{error}; as SHAPE:TYPE, {shape} has the types {types}") from error
        close = difflib.get_close_matches(shape, [*shapes.SHAPES, *speech.SHAPES], n=1) if colon else []
        if close:
            raise ModelFileError(f"{error}; as SHAPE:TYPE, did you mean {close[0]}?") from error
        raise


_Opened = tuple[OpenTable, Callable[[], None]]


def _chosen(asked: TableOptions, model: str, kind: str, phases: tuple[str, ...]) -> TableOptions:
    """Return the choice with one of the model's phases: the first unless another is asked for."""
    phase = asked.phase or phases[0]
    if phase not in phases:
        raise click.UsageError(f"--phase {phase}: {model} {kind}, and has {', '.join(phases)}")
    if phase == "encode":
        refuse_unused(["position"], "a phase that writes texts")
    else:
        refuse_unused(["texts"], "--phase encode of a model that makes vectors")
    return replace(asked, phase=phase)


def _decoder(model: str, asked: TableOptions, options: Mapping[str, Any], predicts: bool) -> _Opened:
    from akunu.loading.engines import open_unmanaged

    asked = _chosen(asked, Path(model).name, "writes texts", _WRITES)
    phase, rows, position = asked.phase or "", asked.rows or ROWS[asked.phase or ""], asked.position
    prompt = rows if phase == "prefill" else _PROMPT
    room = table_options(options["context"], phase, rows, position)
    if predicts and options["context"] is None:
        room["context"] = max(room["context"], position + prompt + 1)
    opened = open_unmanaged(model, **{**options, **room, "threads": options["threads"] or 0})
    engine = opened.engine

    def predicted() -> dict[str, tuple[int, list[CommandInfo]]]:
        """One token at `position`, and a prompt from the beginning of an empty cache."""
        n = min(prompt, engine.context, engine.chunk)
        return {
            "decode": (1, engine.plan("decode", 1, position)),
            "prefill": (n, engine.plan("prefill", n, 0)),
        }

    table = OpenTable(
        name=opened.facts.type,
        runner=engine,
        asked=replace(asked, rows=rows, texts=None),
        unit="tokens",
        count=rows,
        plan=lambda: engine.plan(phase, rows, position),
        profile=lambda repeats: engine.profile(phase, rows, position, repeats),
        predicted=predicted,
    )
    return table, engine.close


def _encoder(path: Path, asked: TableOptions, options: Mapping[str, Any]) -> _Opened:
    from akunu.api.encoders.loading import open_encoder
    from akunu.base.progress import reporter
    from akunu.files.model_files import open_model
    from akunu.loading.facts import model_facts

    asked = _chosen(asked, model_name(path), "makes vectors", ("encode",))
    refuse_unused(["kv_dtype"], "a KV cache, and a model that makes vectors has none")
    opened = open_model(path)
    trained = opened.spec().config.context_length
    rows, texts = asked.rows or min(ROWS["encode"], trained), asked.texts or 1
    context = options["context"] or rows
    if max(rows, context) > trained:
        name = "--rows" if rows > trained else "--context"
        raise click.UsageError(
            f"{name} {max(rows, context)} is more than the {trained} tokens "
            f"{model_name(path)} was trained for"
        )
    if rows > context:
        raise click.UsageError(f"--rows {rows} need --context {rows}, found {context}")
    with reporter(True, "Loading") as report:
        encoder = open_encoder(
            opened,
            opened.spec(context),
            device=_device(options["device"]),
            context=context,
            threads=options["threads"] or 0,
            quantize=None,
            progress=report,
        )
    table = OpenTable(
        name=model_facts(str(path), opened.metadata, opened.files.tensors).type,
        runner=encoder,
        asked=replace(asked, rows=rows, texts=texts),
        unit="tokens",
        count=rows * texts,
        plan=lambda: encoder.plan(rows, texts),
        profile=lambda repeats: encoder.profile(rows, texts, repeats),
        predicted=lambda: {"encode": (rows * texts, encoder.plan(rows, texts))},
    )
    return table, encoder.close


def _speech(model: str, path: Path | None, asked: TableOptions, options: Mapping[str, Any]) -> _Opened:
    from akunu.loading.synthetic_speech import SHAPES
    from akunu.speech.engine import load_engine, synthetic_engine
    from akunu.speech.files import open_speech

    asked = _chosen(asked, model, "transcribes speech", ("encode", *_WRITES))
    phase, position = asked.phase or "", asked.position
    refuse_unused(["context"], "a model of texts: a transcript's is the model's own")
    windows = phase == "encode"
    if windows:
        refuse_unused(["rows", "texts"], "a model of texts: a window has always as many rows")
    rows = 1 if windows else asked.rows or ROWS[phase]
    settings: dict[str, Any] = {
        "device": _device(options["device"]),
        "threads": options["threads"] or 0,
        "kv_dtype": options["kv_dtype"],
        "parallel": rows if phase == "batch" else 1,
        "windows": 1,
    }
    if path is None:
        shape, _, dtype = model.lower().partition(":")
        engine, name = synthetic_engine(SHAPES[shape], dtype, **settings), model.lower()
    else:
        opened = open_speech(path)
        engine, name = load_engine(opened, **settings), opened.name
    if windows:
        rows = engine.config.audio_context
    elif phase == "prefill" and asked.rows is None:
        rows = max(1, min(rows, engine.config.text_context - position))
    table = OpenTable(
        name=name,
        runner=engine,
        asked=replace(asked, rows=rows, texts=None),
        unit="windows" if windows else "tokens",
        count=1 if windows else rows,
        plan=lambda: engine.plan(phase, rows, position),
        profile=lambda repeats: engine.profile(phase, rows, position, repeats),
        predicted=lambda: {phase: (rows, engine.plan(phase, rows, position))},
    )
    return table, engine.close


def _device(wanted: str) -> str:
    from akunu.loading.engines import find_device

    return wanted if wanted.startswith("plan:") else find_device(wanted)["id"]
