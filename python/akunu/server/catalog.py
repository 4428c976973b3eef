"""List the models that a server offers, from names, a folder, or a TOML file."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from akunu.base.arguments import as_path
from akunu.base.errors import InvalidArgumentError
from akunu.base.hub_name import model_name
from akunu.base.json_file import read_text
from akunu.files.hub.projectors import is_projector
from akunu.loading.options import LoadOptions
from akunu.speech.recognition import is_speech

__all__ = ["ModelSpec", "from_name", "from_place"]

_log = logging.getLogger("akunu.server")


class _Listed(LoadOptions, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A model as a file lists it, with the options of `akunu.load`."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    path: Annotated[str, msgspec.Meta(min_length=1)]
    aliases: tuple[str, ...] = ()
    """Other names that clients may ask for; `*` and `?` stand for any characters, as in "claude-*"."""
    preload: bool = False
    draft: str | bool | None = None
    mmproj: str | Literal[False] | None = None
    cache_dir: Path | None = None
    adapters: dict[str, str] | None = None
    chat_template: str | None = None
    """The name of a common chat format, for a file without a template."""

    def load_arguments(self) -> dict[str, Any]:
        """Keyword arguments of `akunu.load`."""
        return {name: getattr(self, name) for name in LoadOptions.__struct_fields__}


class ModelSpec(_Listed, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A model that may be asked for."""

    shared: frozenset[str] = frozenset()
    """Settings that were given for all models: it takes what fits it (`server.fitting`)."""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    model: list[_Listed]


def _decoded(kind: type, value: object) -> object:
    """Values of types that TOML does not have."""
    if kind is Path:
        return as_path("cache_dir", value)
    raise NotImplementedError(kind)


def from_name(text: str, **shared: Any) -> ModelSpec:
    """A model as the command line names it: `NAME=MODEL`, or MODEL, whose name is then that of its file.

    `shared` are settings for all models that they fit.
    """
    name, separator, path = text.partition("=")
    if not separator or not name or "/" in name:
        path = text
        file = Path(text)
        is_file = file.suffix.lower() in (".gguf", ".bin") and ":" not in text
        name = file.stem.removeprefix("ggml-") if is_file else text.rstrip("/")
        if Path(text).is_dir():
            name = model_name(file)
    return ModelSpec(name=name, path=path, preload=True, shared=frozenset(shared), **shared)


def from_place(place: Path, **shared: Any) -> list[ModelSpec]:
    """The models of a folder (GGUF and Whisper files, and model folders), or those that a TOML file lists.

    `shared` are settings for all models that they fit, and that the file says nothing else for.

    Raises
    ------
    ModelFileError, InvalidArgumentError
        There is none, or the file is not of that form.
    """
    specs = _from_folder(place, shared) if place.is_dir() else _from_file(place, shared)
    if not specs:
        raise InvalidArgumentError(f"{place}: has no model")
    return specs


def _from_folder(folder: Path, shared: dict[str, Any]) -> list[ModelSpec]:
    from akunu.files.folder import is_model_folder

    specs = []
    for entry in sorted(folder.iterdir()):
        name = entry.name
        if name != name.encode(errors="replace").decode():
            _log.warning("%a is left out: its name is no text, so no request could say it", name)
            continue
        if entry.is_dir():
            try:
                children = [child.name for child in entry.iterdir()]
            except OSError as error:  # as of a disk's lost+found
                _log.warning("%s is left out: %s", entry, error.strerror)
                continue
            if not is_model_folder(children):
                continue
        elif not entry.is_file():  # a pipe, or a link to nothing
            continue
        elif is_speech(entry):
            name = entry.stem.removeprefix("ggml-")
        elif (
            entry.suffix.lower() != ".gguf"
            or ("-of-" in name and "-00001-of-" not in name)
            or is_projector(name)
        ):
            continue
        else:
            name = entry.stem
        specs.append(ModelSpec(name=name, path=str(entry), shared=frozenset(shared), **shared))
    return specs


def _from_file(file: Path, shared: dict[str, Any]) -> list[ModelSpec]:
    import tomllib

    try:
        table = tomllib.loads(read_text(file))
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgumentError(f"{file}: is not TOML: {error}") from error
    try:
        listed = msgspec.convert(table, _File, dec_hook=_decoded).model
    except msgspec.ValidationError as error:
        from akunu.server.fields import refusal

        told = refusal(str(error))
        hint = "; each model is a table [[model]] with a name and a path"
        if told.code == "unknown_field" and str(told.param).startswith("model["):
            names = dict.fromkeys((*_Listed.__annotations__, *_Listed.__struct_fields__))
            hint = f"; there is {', '.join(names)}"
        raise InvalidArgumentError(f"{file}: {told.message}{hint}") from error
    specs = []
    for model, given in zip(listed, table["model"], strict=True):
        settings = msgspec.structs.asdict(model)
        others = {name: value for name, value in shared.items() if name not in given}
        try:
            model.checked()  # what would be an error later is one when the server starts
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{file}: model {model.name}: {error}") from error
        for name in ("path", "draft", "mmproj"):  # a path in a file is relative to the file
            if isinstance(settings[name], str) and (path := file.parent / settings[name]).exists():
                settings[name] = str(path)
        if model.cache_dir is not None:
            settings["cache_dir"] = file.parent / model.cache_dir
        if model.adapters is not None:
            settings["adapters"] = {name: str(file.parent / at) for name, at in model.adapters.items()}
        specs.append(ModelSpec(**{**settings, **others, "shared": frozenset(others)}))
    return specs
