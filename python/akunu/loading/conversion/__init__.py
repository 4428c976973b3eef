"""Models written in other types. `akunu.convert` is the entrance; docs/convert.md is the guide."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from akunu.base.arguments import as_path
from akunu.base.errors import InvalidArgumentError, UnsupportedError
from akunu.base.hub_name import model_name
from akunu.base.progress import Progress, reporter
from akunu.files.describe.filetypes import FILE_TYPES, MLX_TYPES
from akunu.files.importance import ImportanceMatrix

if TYPE_CHECKING:
    from akunu.loading.conversion.merged import Adapters

__all__ = ["convert", "importance_of"]


def convert(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    type: str,
    *,
    imatrix: ImportanceMatrix | str | os.PathLike[str] | None = None,
    tensor_types: Mapping[str, str] | Iterable[str] | None = None,
    output_tensor_type: str | None = None,
    token_embedding_type: str | None = None,
    merge: Adapters | None = None,
    threads: int | None = None,
    overwrite: bool = False,
    progress: bool | Progress = True,
) -> Path:
    """Write a model with weights of another type: a GGUF file, or a folder for MLX.

    Parameters
    ----------
    source
        A model, as `load` takes it: a GGUF file, a folder of SafeTensors, `user/repo[:file]`.
    out
        The file to write, `*.gguf`; for a type of MLX the folder, which must not exist. It is there when it
        is whole. Beside it lies a hidden one until then, from which a conversion that was stopped goes on
        when it is started again.
    type
        A file type: "q4_k_m", "q8_0", "f16", … (`akunu.files.describe.filetypes.FILE_TYPES`). Most matrices
        have the type of its name; those that matter more have more bits. Or a type of a folder: "mlx-4bit"
        and its like with 2, 3, 5, 6 and 8 bits, in groups of 64; "mlx-f16", "mlx-bf16" and "mlx-f32", which
        Transformers loads too.
    imatrix
        What an error in each column of the weights counts: of `Model.importance_matrix`, or a file of
        llama.cpp's `llama-imatrix`, or a text, for which the model is run first.
    tensor_types
        Types of matrices in place of the mix's, for a GGUF file: by a regular expression that is found in
        their names there (`{"ffn_down": "q6_k"}`), or as `PATTERN=TYPE`. The last one that fits counts.
    output_tensor_type, token_embedding_type
        The types of `output.weight` and of `token_embd.weight`.
    merge
        Adapters (LoRA) that become part of the weights: llama.cpp's GGUF files or PEFT's folders; a mapping
        of path to number multiplies what each adds.
    threads
        CPU threads; None: one for each physical core that this process may use.
    overwrite
        Replace a file `out` if it exists.
    progress
        As in `load`; counted in bytes of the new file.

    Returns
    -------
    Path
        `out`.

    Raises
    ------
    ModelFileError
        The model, or an adapter, is missing or damaged; a weight is NaN or infinite.
    UnsupportedError
        The model is of a kind that Akunu does not know, or that the new files cannot describe; an adapter is
        for another model, or more than a LoRA of linear layers.
    InvalidArgumentError
        There is no such type, or `out` is not a name for its files, exists, or is the model itself.

    Examples
    --------
    >>> import akunu
    >>> akunu.convert("ember", "ember-q4.gguf", "q4_k_m")  # doctest: +SKIP
    """
    from akunu.files.model_files import open_model
    from akunu.loading.conversion import importance_of
    from akunu.loading.conversion.merged import merged_with
    from akunu.loading.conversion.tensor_types import checked_tensor_types
    from akunu.loading.conversion.to_gguf import write_gguf
    from akunu.loading.conversion.to_mlx import write_mlx
    from akunu.loading.finding import find_model
    from akunu.loading.options import THREADS
    from akunu.speech.recognition import is_speech

    wishes = checked_tensor_types(tensor_types, output_tensor_type, token_embedding_type)
    if wishes and type in MLX_TYPES:
        raise InvalidArgumentError(f"{wishes[0][0]}: is for GGUF files, and {type} makes a folder")
    if imatrix is not None and type in MLX_TYPES:
        raise InvalidArgumentError(f"imatrix: in a folder no errors are weighed, and {type} makes one")
    if type not in (*FILE_TYPES, *MLX_TYPES):
        raise InvalidArgumentError(f"type: no {type!r}; there is {', '.join((*FILE_TYPES, *MLX_TYPES))}")
    n_threads = 0 if threads is None else THREADS.check("threads", threads)
    path = _checked_out(as_path("out", out).expanduser(), type, overwrite)
    model_path = find_model(source, progress=progress)
    if is_speech(model_path):
        raise UnsupportedError(
            f"{model_name(model_path)} transcribes speech; models of speech are not converted (whisper.cpp's "
            "quantize makes smaller files of them, which Akunu runs)"
        )
    model = open_model(model_path)
    if path.exists() and any(path.samefile(file) for file in model.files.paths):
        raise InvalidArgumentError(f"out: {path} is the model that is to be converted; give another name")
    merged = None if merge is None else merged_with(model, merge)
    if merged is not None and imatrix is not None and not _is_measured(imatrix):
        raise InvalidArgumentError(
            "imatrix: is measured of the model without the adapter; merge it into a file of f16 first, "
            "and convert that"
        )
    weights = importance_of(imatrix, model_path, threads, progress)
    with reporter(progress, "Converting") as report:
        if type in MLX_TYPES:
            write_mlx(model, path, MLX_TYPES[type], report, merged)
        else:
            write_gguf(model, path, type, weights, n_threads, report, wishes, merged)
    return path


def _checked_out(path: Path, type: str, overwrite: bool) -> Path:
    is_gguf = type in FILE_TYPES
    if is_gguf and path.suffix.lower() != ".gguf":
        raise InvalidArgumentError(f"out: found {str(path)!r}, expected a name that ends in .gguf")
    if not is_gguf and path.suffix.lower() == ".gguf":
        raise InvalidArgumentError(f"out: found {str(path)!r}, expected the name of a folder for {type}")
    if not path.parent.is_dir():
        raise InvalidArgumentError(f"out: the folder {path.parent} does not exist")
    if is_gguf and path.is_dir():
        raise InvalidArgumentError(f"out: {path} is a folder")
    if os.path.lexists(path) and not is_gguf:  # a folder cannot take a link's place
        raise InvalidArgumentError(f"out: {path} exists; remove it, or give another name")
    if path.exists() and not overwrite:
        raise InvalidArgumentError(f"out: {path} exists; overwrite=True (--overwrite) replaces it")
    return path


def _is_measured(imatrix: ImportanceMatrix | str | os.PathLike[str]) -> bool:
    """Whether it is an importance matrix already, and no text."""
    from akunu.files.importance import is_importance_file

    return isinstance(imatrix, ImportanceMatrix) or is_importance_file(
        as_path("imatrix", imatrix).expanduser()
    )


def importance_of(
    imatrix: ImportanceMatrix | str | os.PathLike[str] | None,
    model: Path,
    threads: int | None,
    progress: bool | Progress,
) -> ImportanceMatrix | None:
    """The matrix that `akunu.convert` was given: itself, in a file, or of a text that `model` is run over."""
    if imatrix is None or isinstance(imatrix, ImportanceMatrix):
        return imatrix
    from akunu.files.importance import is_importance_file

    path = as_path("imatrix", imatrix).expanduser()
    if is_importance_file(path):
        return ImportanceMatrix.read(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(
            f"imatrix: {path} is neither UTF-8 text nor an importance matrix: {error}"
        ) from error
    if not text:
        raise InvalidArgumentError(f"imatrix: {path} is empty")
    from akunu.loading.load import load

    with (
        load(model, device="cpu", context=None, threads=threads, parallel=1, progress=progress) as loaded,
        reporter(progress, "Measuring", unit="count") as report,
    ):
        return loaded.importance_matrix(text, name=path.name, progress=report)
