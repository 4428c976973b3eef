"""Which models a server offers, from names, a folder, or a TOML file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from akunu.errors import InvalidArgumentError
from akunu.json_file import read_text
from akunu.loading import DEFAULT_CACHE_SIZE
from akunu.speech.recognition import is_speech

__all__ = ["ModelSpec", "from_name", "from_place"]


class ModelSpec(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A model that may be asked for; of `akunu.load`, what is None takes its default."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    path: Annotated[str, msgspec.Meta(min_length=1)]
    aliases: tuple[str, ...] = ()
    """Other names; `*` and `?` stand for any characters, as in "claude-*"."""
    preload: bool = False
    device: str = "auto"
    context: int | None = None
    threads: int | None = None
    kv_dtype: str = "f16"
    parallel: int = 8
    kv_memory: int | None = None
    task: Literal["rerank"] | None = None
    """"rerank": a chat model such as Qwen3-Reranker's scores documents."""
    draft: str | None = None
    """A smaller model that writes ahead."""
    cache_dir: Path | None = None
    cache_size: int = DEFAULT_CACHE_SIZE
    chat_template: str | None = None
    """The name of a common chat format, for a file without a template."""

    def load_arguments(self) -> dict[str, Any]:
        """Keyword arguments of `akunu.load`."""
        names = (
            "device",
            "context",
            "threads",
            "kv_dtype",
            "parallel",
            "kv_memory",
            "draft",
            "cache_dir",
            "cache_size",
            "task",
        )
        return {name: getattr(self, name) for name in names}


class _File(msgspec.Struct, forbid_unknown_fields=True):
    model: list[ModelSpec]


def from_name(text: str, **settings: Any) -> ModelSpec:
    """A model as the command line names it: `NAME=MODEL`, or MODEL, whose name is then that of its file."""
    name, separator, path = text.partition("=")
    if not separator or not name or "/" in name:
        path = text
        file = Path(text)
        is_file = file.suffix.lower() in (".gguf", ".bin") and ":" not in text
        name = file.stem.removeprefix("ggml-") if is_file else text.rstrip("/")
        if Path(text).is_dir():
            name = file.name
    return ModelSpec(name=name, path=path, preload=True, **settings)


def from_place(place: Path, **settings: Any) -> list[ModelSpec]:
    """The models of a folder (GGUF and Whisper files, and model folders), or those that a TOML file lists.

    Raises
    ------
    ModelFileError, InvalidArgumentError
        There is none, or the file is not of that form.
    """
    specs = _from_folder(place, settings) if place.is_dir() else _from_file(place, settings)
    if not specs:
        raise InvalidArgumentError(f"{place}: has no model")
    return specs


def _from_folder(folder: Path, settings: dict[str, Any]) -> list[ModelSpec]:
    from akunu.folder import is_model_folder

    specs = []
    for entry in sorted(folder.iterdir()):
        name = entry.name
        if entry.is_dir():
            if not is_model_folder([child.name for child in entry.iterdir()]):
                continue
        elif is_speech(entry):
            name = entry.stem.removeprefix("ggml-")
        elif entry.suffix.lower() != ".gguf" or ("-of-" in name and "-00001-of-" not in name):
            continue
        else:
            name = entry.stem
        specs.append(ModelSpec(name=name, path=str(entry), **settings))
    return specs


def _from_file(file: Path, settings: dict[str, Any]) -> list[ModelSpec]:
    try:
        table = tomllib.loads(read_text(file))
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgumentError(f"{file}: is not TOML: {error}") from error
    for model in table.get("model", []):
        if isinstance(model, dict):
            for name, value in settings.items():
                model.setdefault(name, value)
    try:
        found = msgspec.convert(table, _File).model
    except msgspec.ValidationError as error:
        raise InvalidArgumentError(f"{file}: {error}".replace("`", "")) from error
    # A path in a file is relative to the file.
    beside = [file.parent / spec.path for spec in found]
    return [
        msgspec.structs.replace(spec, path=str(path)) if path.exists() else spec
        for spec, path in zip(found, beside, strict=True)
    ]
