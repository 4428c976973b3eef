"""From a model's name to its local files.

A name is a local GGUF file (for a split file: its first part), a folder of SafeTensors, a model that is part
of the package, one on the Hugging Face Hub (`akunu.base.hub_name`), or a short name of such a one
(`akunu.files.hub.short_names`).
"""

from __future__ import annotations

import difflib
import os
import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from akunu.base import hub_name
from akunu.base.arguments import as_model_name
from akunu.base.errors import AkunuError, ModelFileError
from akunu.base.json_file import read_optional
from akunu.base.progress import Progress, check_progress
from akunu.files.folder import is_model_folder, pickle_error
from akunu.files.hub import short_names
from akunu.files.hub.files import joining
from akunu.files.hub.projectors import is_gguf
from akunu.speech.recognition import is_speech

if TYPE_CHECKING:
    from akunu.files.model_files import ModelFiles

__all__ = ["BUILT_IN", "FoundModel", "find_model"]

BUILT_IN: Final = {
    "ember": "ember.gguf",
    "ember-speech": "ember-speech.bin",
    "ember-vision": "ember-vision.gguf",
}
"""Models that are part of the package: name to file in `akunu/models`."""


_SPLIT_PART = re.compile(r"^(?P<stem>.*)-(?P<part>\d{5})-of-(?P<parts>\d{5})\.gguf$")


class FoundModel(os.PathLike[str]):
    """A model that was found: for `load` a path, whose files it does not read again if they were looked into.

    Parameters
    ----------
    path, token, progress
        As in `load`, and what it raises for them.
    speech
        A speech model is wanted, whose size alone is a short name.
    tower
        Whether the file by which the model reads images is wanted too, from a repository.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        token: str | None = None,
        progress: bool | Progress = True,
        speech: bool = False,
        tower: bool = False,
    ) -> None:
        self.path = find_model(path, token=token, progress=progress, speech=speech, tower=tower)

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def name(self) -> str:
        """The model's name."""
        return hub_name.model_name(self.path)

    @cached_property
    def files(self) -> ModelFiles:
        """The files, opened; not of a model of speech."""
        from akunu.files.model_files import open_model

        return open_model(self.path)

    @cached_property
    def bytes(self) -> int:
        """Bytes of the file, or of all files in the folder."""
        files = self.path.rglob("*") if self.path.is_dir() else [self.path]
        return sum(file.stat().st_size for file in files if file.is_file())


def find_model(
    path: str | os.PathLike[str],
    *,
    token: str | None = None,
    progress: bool | Progress = True,
    argument: str = "path",
    speech: bool = False,
    tower: bool = False,
) -> Path:
    """The local file or folder that a model's name stands for, fetched from the Hub if need be.

    Parameters
    ----------
    path, token, progress
        As in `load`.
    argument
        What an error calls `path`.
    speech, tower
        As for `FoundModel`.

    Raises
    ------
    ModelFileError
        There is no such file, repository or built-in model; the message says what is near it.
    UnsupportedError
        It is certainly neither a GGUF file nor a folder of SafeTensors, by the names.
    """
    name = as_model_name(argument, path)
    check_progress(progress)
    if path in BUILT_IN:  # first, so that what lies in the current folder cannot change its meaning
        return _built_in(name)
    try:
        file = Path(name).expanduser()
        is_there = file.exists()
        special = is_there and not file.is_dir() and not file.is_file()
        no_model = _directory_error(file) if file.is_dir() else None
    except (OSError, RuntimeError) as error:  # too long, a home or a folder that cannot be looked into
        raise ModelFileError(f"no model {name!r}: {error}") from error
    if no_model:
        raise no_model
    if special:  # a pipe would be waited for, for ever
        raise ModelFileError(f"{name}: is not a regular file")
    if is_there:
        if not file.is_dir():
            _check_kind(file)
        return file
    if file.is_symlink():
        raise ModelFileError(
            f"no model {name!r}: it is a link to {os.readlink(file)}, which leads to no file"
        )
    if isinstance(path, str) and (on_hub := hub_name.parse(path)):
        from akunu.files.hub import download as hub

        return hub.fetch(on_hub, token=token, progress=progress, tower=tower)
    if isinstance(path, str) and (short := short_names.meaning(path, speech=speech, memory=_memory())):
        from akunu.files.hub import download as hub

        on_hub = hub_name.parse(short.target)
        assert on_hub is not None
        return hub.fetch(on_hub, token=token, progress=progress, tower=tower)
    raise _not_found(name, file)


def _memory() -> int:
    """Return the bytes of memory that a model on the CPU may take here."""
    from akunu._core import devices

    return next(device["memory"] for device in devices() if device["id"] == "cpu")


def _built_in(name: str) -> Path:
    file = Path(__file__).parent.parent / "models" / BUILT_IN[name]
    if not file.exists():
        raise ModelFileError(
            f"the built-in model {name!r} is missing from this installation: no file {file}; name another"
        )
    return file


def _check_kind(file: Path) -> None:
    """Refuse what is certainly not the file to open; everything else is for the GGUF reader to judge."""
    if file.suffix.lower() == ".safetensors":
        raise ModelFileError(
            f"{file} holds weights alone; load the folder that it lies in, {file.absolute().parent}"
        )
    if not is_speech(file):
        # A file of a fixed name is told by those beside it.
        names = [entry.name for entry in file.parent.iterdir()] if file.name == "model.bin" else [file.name]
        if pickled := pickle_error(file, names):
            raise pickled
    if command := joining(file.name, [entry.name for entry in file.parent.iterdir()]):
        raise ModelFileError(
            f"{file} is a piece of a file that was cut for upload; join the pieces in their folder, "
            f"{file.absolute().parent}: {command}"
        )
    part = _SPLIT_PART.match(file.name)
    if part and int(part["part"]) != 1:
        first = f"{part['stem']}-00001-of-{part['parts']}.gguf"
        raise ModelFileError(
            f"{file} is part {int(part['part'])} of {int(part['parts'])}; "
            f"load the first one, {file.with_name(first)}"
        )


def _directory_error(folder: Path) -> AkunuError | None:
    """Why a folder is no model, if it is none."""
    names = sorted(entry.name for entry in folder.iterdir())
    gguf = list(filter(is_gguf, names))
    if is_model_folder(names) and ("config.json" in names or not gguf):
        return None
    if gguf:
        shown = ", ".join(gguf[:5]) + (", …" if len(gguf) > 5 else "")
        return ModelFileError(f"{folder} is a directory; name a file in it: {shown}")
    model_type = read_optional(folder / "config.json").get("model_type")
    return pickle_error(folder, names, model_type) or ModelFileError(
        f"{folder} is a directory without GGUF or SafeTensors files"
    )


def _not_found(name: str, file: Path) -> ModelFileError:
    folder = file.parent
    near = [str(folder / close) for close in _close_names(file)] if folder.is_dir() else []
    near += difflib.get_close_matches(name, BUILT_IN, n=1)
    near += short_names.close_names(name) if file.parent == Path() else []
    if near:
        return ModelFileError(f"no model {name!r}; did you mean {' or '.join(near)}?")
    if not folder.is_dir():
        return ModelFileError(f"no model {name!r}: the folder {folder} does not exist")
    return ModelFileError(
        f"no model {name!r}; expected a GGUF file, a folder, user/repo[@revision][:file] on the Hugging "
        "Face Hub, a short name (akunu models available lists them), or a built-in model "
        f"({', '.join(BUILT_IN)})"
    )


def _close_names(file: Path) -> list[str]:
    """GGUF files beside `file` whose names resemble it; the suffix, which all share, does not count."""
    try:
        names = [entry.name for entry in file.parent.iterdir() if is_gguf(entry.name)]
    except OSError:
        return []
    stems = {Path(name).stem.lower(): name for name in names}
    wanted = file.name.lower().removesuffix(".gguf")
    return [stems[stem] for stem in difflib.get_close_matches(wanted, stems, n=3)]
