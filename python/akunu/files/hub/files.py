"""Choose the files of a repository that a name means."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.folder import INDEX, MODEL_FILES, adapter_error, pickle_error
from akunu.files.hub.projectors import is_gguf, is_projector
from akunu.tokenizer.older_files import FILES as OLDER_FILES

__all__ = ["MODEL_MODULE", "choose", "folder_files", "is_whisper_file", "joining", "model_files"]

PREFERRED: Final = ("Q4_K_M", "Q4_0", "Q8_0", "F16", "BF16")
"""The quantisations that `user/repo` means when the repository has several, the first one first."""

_WEIGHTS = re.compile(r"model(-\d+-of-\d+)?\.safetensors")
_TEMPLATE = re.compile(r"additional_chat_templates/[^/]+\.jinja")
_MODULE = re.compile(r"\d+_[A-Za-z]+/(config\.json|model\.safetensors)")
MODEL_MODULE: Final = re.compile(r"0_(Transformer|StaticEmbedding)(?=$|/)")
"""The folder in which Sentence Transformers keeps the model, if it is not at the top."""
_SPLIT = re.compile(r"-(?P<part>\d{5})-of-(?P<parts>\d{5})\.gguf$", re.IGNORECASE)
_PIECE = re.compile(
    r"(?P<whole>.*\.gguf)([._-](part|split)[-_.]?(?P<which>\d+([-_.]?of[-_.]?\d+)?|[a-z]{1,2})"
    r"|\.(?P<end>\d{2,3}|a[a-z]))",
    re.IGNORECASE,
)
"""Files cut for upload, by hand: `x.gguf.part1of2`, `x.gguf-split-a`, `x.gguf.001`, `x.gguf.aa`. GGUF's own
parts are models."""
_WHISPER = re.compile(r"(.*/)?ggml-[^/]*\.bin")
"""Files of whisper.cpp."""
_NOT_A_MODEL = re.compile(r"(^|/)(mtp|[^/]*imatrix)[^/]*$", re.IGNORECASE)
"""Heads that draft, and importance matrices."""
_BESIDE_A_MODEL = re.compile(
    r"(^|[-_.])(lora|(vision|control)[-_]?(adapter|vector)|clip|vit|siglip|(multi[-_]?modal|vision)[-_]?projector"
    r"|(audio|image|picture|speech|visual)[-_]?(encoder|tower)|vocoder|(token|code)2wav|draft|eagle\d?)([-_.]|$)",
    re.IGNORECASE,
)
"""Adapters, control vectors, towers, what drafts or speaks: words that a model's own name may have, too."""


def choose(repo: str, files: Sequence[str] | Mapping[str, object], wanted: str = "") -> list[str]:
    """The files of the model that is meant: the first part first, of SafeTensors `config.json`.

    Parameters
    ----------
    repo
        Name of the repository, for messages.
    files
        All its files.
    wanted
        A file, a quantization, or "" for the repository's only model or its best known quantization.
    """
    if wanted in files and is_whisper_file(wanted):
        return [wanted]
    models = model_files(list(filter(is_gguf, files)))
    if pieces := _pieces(files, wanted, models):
        shown = ", ".join(pieces[:4]) + (", …" if len(pieces) > 4 else "")
        raise ModelFileError(
            f"{repo} has {wanted or 'its model'} in pieces: {shown}. "
            f"Download them (hf download {repo} --local-dir .) and join them: {joining(pieces[0], files)}"
        )
    if not models:
        if not wanted and (speech := sorted(filter(is_whisper_file, files))):
            raise ModelFileError(f"{repo} has Whisper models; name one, as in {repo}:{speech[0]}")
        if wanted:
            raise ModelFileError(f"{repo} has no GGUF file; without {wanted!r} its SafeTensors are loaded")
        if found := folder_files(list(files)):
            from akunu.tokenizer.hf import other_tokenizer

            if error := other_tokenizer(repo, files):
                raise error
            return found
        if error := adapter_error(repo, files):
            raise error
        if any(file.endswith(".safetensors") for file in files):
            raise UnsupportedError(
                f"{repo} has no config.json beside its SafeTensors, so it is no model that Akunu can run"
            )
        if error := pickle_error(repo, files):
            raise error
        if beside := sorted(filter(is_gguf, files)):
            raise ModelFileError(f"{repo} has no model, only what goes with one: {', '.join(beside[:4])}")
        raise ModelFileError(f"{repo} has neither GGUF files nor SafeTensors")
    if wanted:
        for parts in models:
            if wanted in parts:
                return _whole(repo, parts)
        fitting = _quantized(models, wanted)
    elif len(models) == 1:
        return _whole(repo, models[0])
    else:
        fitting = next((some for some in (_quantized(models, kind) for kind in PREFERRED) if some), [])
    if len(fitting) == 1:
        return _whole(repo, fitting[0])
    shown = ", ".join(parts[0] for parts in (fitting or models)[:12])
    if wanted and not fitting:
        raise ModelFileError(f"{repo} has no file {wanted!r}; it has {shown}")
    raise ModelFileError(f"{repo} has several models; name one, as in {repo}:FILE: {shown}")


def is_whisper_file(name: str) -> bool:
    """Whether a file is a model of whisper.cpp, by its name."""
    return _WHISPER.fullmatch(name) is not None


def model_files(gguf: Sequence[str]) -> list[list[str]]:
    """GGUF files of a text model, the parts of a split one together."""
    found = sorted(filter(_may_be_a_model, gguf))
    alone = [file for file in found if not _BESIDE_A_MODEL.search(Path(file).name)]
    groups: dict[str, list[str]] = {}
    for file in alone or found:  # one model may be there twice, in more parts and in fewer
        groups.setdefault(_SPLIT.sub(r"-of-\g<parts>.gguf", file), []).append(file)
    return list(groups.values())


def _whole(repo: str, parts: list[str]) -> list[str]:
    """The parts of a model, if none is missing."""
    found = _SPLIT.search(parts[0])
    if found and len(parts) < int(found["parts"]):
        raise ModelFileError(f"{repo} has {len(parts)} of the {int(found['parts'])} parts of {parts[0]}")
    return parts


def _may_be_a_model(file: str) -> bool:
    return not is_projector(file) and _NOT_A_MODEL.search(file) is None


def joining(piece: str, names: Iterable[str] = ()) -> str:
    """The command that joins the pieces of a file that was cut for upload, given one; "": it is none.

    `names` are the files beside it: a shell puts `part10` before `part2`, and then all are named.
    """
    found = _PIECE.fullmatch(piece)
    if found is None:
        return ""
    begin, whole = piece[: max(found.start("which"), found.start("end"))], shlex.quote(found["whole"])
    pieces = sorted(
        {name for name in (piece, *names) if name.startswith(begin) and _PIECE.fullmatch(name)}, key=_in_order
    )
    if pieces != sorted(pieces):
        return f"cat {shlex.join(pieces)} > {whole}"
    # A star alone would stand for what is written, too.
    return f"cat {shlex.quote(begin)}{'?' * len(found['end']) if found['end'] else '*'} > {whole}"


def _in_order(name: str) -> list[tuple[str, int]]:
    """A key by which numbers are sorted by their values."""
    return [(text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d*)", name)]


def _pieces(files: Iterable[str], wanted: str, models: Sequence[list[str]]) -> list[str]:
    """Pieces of what is meant, where there is nothing whole that it can mean."""
    if (models and not wanted) or any(wanted in parts for parts in models) or _quantized(models, wanted):
        return []
    found = sorted(file for file in files if _PIECE.fullmatch(file) and _may_be_a_model(file))
    kinds = [[piece.rpartition(".gguf")[0]] for piece in found]
    fitting = [piece for piece, kind in zip(found, kinds, strict=True) if _quantized([kind], wanted)]
    return fitting if wanted and wanted not in found else found


def folder_files(files: Sequence[str]) -> list[str]:
    """Return the files of a model in SafeTensors; none where there is no such model.

    `config.json` is the first, or `modules.json` where a table of vectors has no configuration.
    """
    top = [file for file in files if "/" not in file]
    inside = next((found[0] for found in map(MODEL_MODULE.match, files) if found), None)
    if inside and "modules.json" in top and not any(file.endswith(".safetensors") for file in top):
        within = [file.removeprefix(f"{inside}/") for file in files if file.startswith(f"{inside}/")]
        found = [
            f if f == "modules.json" else f"{inside}/{f}" for f in folder_files([*within, "modules.json"])
        ]
        beside = [file for file in files if file in MODEL_FILES or _MODULE.fullmatch(file)]
        return list(dict.fromkeys([*found[:1], *beside, *found])) if found else []
    weights = sorted(file for file in top if _WEIGHTS.fullmatch(file))
    if "model.safetensors" in weights:
        weights = ["model.safetensors"]
    elif INDEX in top:
        weights.append(INDEX)
    else:
        weights = [file for file in top if file.endswith(".safetensors")]
    if not weights or not {"config.json", "modules.json"} & set(top):
        return []
    more = sorted(file for file in files if _TEMPLATE.fullmatch(file) or _MODULE.fullmatch(file))
    if "tokenizer.json" in top:  # which says what older files say
        top = [file for file in top if file not in OLDER_FILES and file != "merges.txt"]
    first = next(file for file in ("config.json", "modules.json") if file in top)
    return list(dict.fromkeys([first, *(file for file in MODEL_FILES if file in top), *more, *weights]))


def _quantized(models: Sequence[list[str]], kind: str) -> list[list[str]]:
    """Return the models whose name has `kind` as a word: Q4_K is not Q4_K_M, and Q4_K_M is not UD-Q4_K_M.

    An underscore begins a word only before letters and a digit: name_Q4_K_M has no word K_M.
    """
    word = re.compile(rf"(?<!UD)(^|[-./]|_(?=[A-Z]+\d)){re.escape(kind)}([-./]|$)", re.IGNORECASE)
    return [parts for parts in models if word.search(Path(parts[0]).name) or word.search(parts[0])]
