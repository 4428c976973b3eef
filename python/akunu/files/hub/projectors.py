"""Find the file beside a model that has its tower: llama.cpp's `mmproj` files, by their names.

A repository has one model in several types, and maybe its tower in several. A user's folder may have many
models, each with a tower or without one: there a tower has to bear the model's name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

__all__ = ["is_gguf", "is_projector", "projector_of"]

_PROJECTOR: Final = re.compile(r"(mmproj|mm[-_]?proj(ector)?|vision[-_]?(encoder|tower))", re.IGNORECASE)
_TYPE: Final = re.compile(
    r"(?<![a-z0-9])((ud-)?(i?q\d\w*|tq\d_\d|mxfp4\w*|nvfp4|int\d)|b?f(p)?(16|32)|fp8|\d{5}-of-\d{5})(?![a-z0-9])",
    re.IGNORECASE,
)
_PREFERRED: Final = ("f16", "fp16", "bf16", "f32", "q8_0")
"""Types of a tower, the best first: what is in half precision is as good as what is larger."""
_SAID_ANYWAY: Final = ("gguf", "model", "text")


def is_gguf(file: str) -> bool:
    """Whether a file is GGUF's, by its name."""
    return file.lower().endswith(".gguf")


def is_projector(file: str) -> bool:
    """Whether a file is a tower and no model, by its name."""
    return _PROJECTOR.search(PurePosixPath(file).name) is not None


def projector_of(files: Sequence[str], model: str) -> str | None:
    """The file with a model's tower, if there is one.

    Parameters
    ----------
    files
        All files of the repository or folder, the model's among them.
    model
        The model's file; of a split model the first part.

    Returns
    -------
    str or None
        The one of `files` in the model's folder or above it; of several, the one whose type suits best.
    """
    folder = PurePosixPath(model).parent
    gguf = list(filter(is_gguf, files))
    found = [file for file in gguf if is_projector(file)]
    # A folder for each type of a large model is below the one with the tower.
    near = [
        place for place in (folder, *folder.parents) if any(PurePosixPath(f).parent == place for f in found)
    ]
    if not near or model in found:
        return None
    found = [file for file in found if PurePosixPath(file).parent == near[0]]
    name = _bare(model)
    own = [file for file in found if _bare(file) == name]
    others = {_bare(file) for file in gguf if not is_projector(file)} - {name}
    if not own and others:
        # Where there are several models, one may be meant by the beginning of its name.
        own = [file for file in found if (bare := _bare(file)) and name.startswith(bare)]
        if any(other.startswith(_bare(file)) for file in own for other in others):
            return None
    elif not own:
        own = found
    return min(own, key=_rank, default=None)


def _bare(file: str) -> str:
    """The name of a model without its type, and of a tower without what says that it is one."""
    words = _PROJECTOR.sub("-", PurePosixPath(file).name.lower())
    words = _TYPE.sub("-", words)
    return "".join(word for word in re.split(r"[^a-z0-9]+", words) if word not in _SAID_ANYWAY)


def _rank(file: str) -> tuple[int, str]:
    words = re.split(r"[^a-z0-9_]+|(?<=mmproj)_", file.lower().removesuffix(".gguf"))
    return next((n for n, kind in enumerate(_PREFERRED) if kind in words), len(_PREFERRED)), file
