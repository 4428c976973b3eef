"""Which files of a repository a name means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from akunu.errors import ModelFileError, UnsupportedError

__all__ = ["choose", "model_files"]

PREFERRED: Final = ("Q4_K_M", "Q4_0", "Q8_0", "F16", "BF16")
"""Which quantization `user/repo` means when the repository has several."""

_SPLIT = re.compile(r"-\d{5}-of-\d{5}\.gguf$")
_NOT_A_MODEL = re.compile(r"(^|/)(mmproj|imatrix|mtp|[^/]*imatrix[^/]*\.gguf)", re.IGNORECASE)


def choose(repo: str, files: Sequence[str] | Mapping[str, object], wanted: str = "") -> list[str]:
    """The files of the model that is meant, the first part first.

    Parameters
    ----------
    repo
        Name of the repository, for messages.
    files
        All its files.
    wanted
        A file, a quantization, or "" for the repository's only model or its best known quantization.
    """
    models = model_files([file for file in files if file.endswith(".gguf")])
    if not models:
        if any(file.endswith(".safetensors") for file in files):
            raise UnsupportedError(
                f"{repo} holds SafeTensors, which are not supported yet, and no GGUF file; "
                "look for a repository of the same model with GGUF in its name"
            )
        raise ModelFileError(f"{repo} has no GGUF file")
    if wanted:
        for parts in models:
            if wanted in parts:
                return parts
        found = _quantized(models, wanted)
    elif len(models) == 1:
        return models[0]
    else:
        found = next((some for some in (_quantized(models, kind) for kind in PREFERRED) if some), [])
    if len(found) == 1:
        return found[0]
    shown = ", ".join(parts[0] for parts in (found or models)[:12])
    if wanted and not found:
        raise ModelFileError(f"{repo} has no file {wanted!r}; it has {shown}")
    raise ModelFileError(f"{repo} has several models; name one, as in {repo}:FILE: {shown}")


def model_files(gguf: Sequence[str]) -> list[list[str]]:
    """GGUF files of a text model, the parts of a split one together."""
    groups: dict[str, list[str]] = {}
    for file in sorted(gguf):
        if not _NOT_A_MODEL.search(file):
            groups.setdefault(_SPLIT.sub(".gguf", file), []).append(file)
    return list(groups.values())


def _quantized(models: Sequence[list[str]], kind: str) -> list[list[str]]:
    """Those whose name has `kind` as a word: Q4_K is not Q4_K_M, and Q4_K_M is not UD-Q4_K_M.

    An underscore begins a word only before letters and a digit: name_Q4_K_M has no word K_M.
    """
    word = re.compile(rf"(?<!UD)(^|[-./]|_(?=[A-Z]+\d)){re.escape(kind)}([-./]|$)", re.IGNORECASE)
    return [parts for parts in models if word.search(Path(parts[0]).name) or word.search(parts[0])]
