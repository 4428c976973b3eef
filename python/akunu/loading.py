"""From a name to a loaded model: `load` and what it needs to know about paths, devices and progress.

A name is a local GGUF file (for a split file: its first part), a folder of SafeTensors, a model that is part
of the package, or one on the Hugging Face Hub (`akunu.hub_name`).
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from akunu import hub_name
from akunu._core import DEFAULT_CONTEXT, MAX_PARALLEL, MAX_THREADS
from akunu.errors import AkunuError, InvalidArgumentError, ModelFileError, UnsupportedError
from akunu.filetypes import FILE_TYPES, KV_DTYPES
from akunu.folder import is_model_folder, pickle_error
from akunu.json_file import read_optional
from akunu.options import Limit, as_path
from akunu.placement import on_first, present
from akunu.progress import Progress, check_progress, reporter
from akunu.speech.recognition import is_speech

if TYPE_CHECKING:
    from akunu.config import ModelSpec
    from akunu.encoders.model import EmbeddingModel
    from akunu.model import Model
    from akunu.model_files import ModelFiles
    from akunu.speech.whisper_model import WhisperModel

__all__ = ["BUILT_IN", "FoundModel", "find_model", "load"]

BUILT_IN: Final = {"ember": "ember.gguf", "ember-speech": "ember-speech.bin"}
"""Models that are part of the package: name to file in `akunu/models`."""

DEFAULT_CACHE_SIZE: Final = 16 << 30
"""Bytes of pages in files."""

SIZE: Final = Limit(int, 1, (1 << 31) - 1)
THREADS: Final = Limit(int, 1, MAX_THREADS)
_BYTES: Final = Limit(int, 1, (1 << 63) - 1)
_SIZES: Final = {
    "context": SIZE,
    "threads": THREADS,
    "parallel": Limit(int, 1, MAX_PARALLEL),
    "kv_memory": _BYTES,
    "cache_size": _BYTES,
}
_OPTIONAL: Final = ("context", "threads", "kv_memory")
"""None stands for what suits the model."""

_SPLIT_PART = re.compile(r"^(?P<stem>.*)-(?P<part>\d{5})-of-(?P<parts>\d{5})\.gguf$")


@overload
def load(
    path: str | os.PathLike[str],
    *,
    device: str = "auto",
    threads: int | None = None,
    parallel: int = 8,
    token: str | None = None,
    task: Literal["transcribe"],
    progress: bool | Progress = True,
) -> WhisperModel: ...
@overload
def load(
    path: str | os.PathLike[str],
    *,
    device: str = "auto",
    context: int | None = None,
    threads: int | None = None,
    quantize: str | None = None,
    token: str | None = None,
    task: Literal["embed", "rerank"],
    progress: bool | Progress = True,
) -> EmbeddingModel: ...
@overload
def load(
    path: str | os.PathLike[str],
    *,
    device: str = "auto",
    context: int | None = None,
    threads: int | None = None,
    kv_dtype: str = "f16",
    parallel: int = 8,
    kv_memory: int | None = None,
    quantize: str | None = None,
    draft: str | os.PathLike[str] | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    cache_size: int = DEFAULT_CACHE_SIZE,
    token: str | None = None,
    task: None = None,
    progress: bool | Progress = True,
) -> Model: ...
def load(
    path: str | os.PathLike[str],
    *,
    device: str = "auto",
    context: int | None = None,
    threads: int | None = None,
    kv_dtype: str = "f16",
    parallel: int = 8,
    kv_memory: int | None = None,
    quantize: str | None = None,
    draft: str | os.PathLike[str] | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    cache_size: int = DEFAULT_CACHE_SIZE,
    token: str | None = None,
    task: Literal["embed", "rerank", "transcribe"] | None = None,
    progress: bool | Progress = True,
) -> Any:
    """Load a model.

    Parameters
    ----------
    path
        A GGUF file (of a split model: its first part), a folder with `config.json` and SafeTensors, a Whisper
        file of whisper.cpp, the name of a built-in model ("ember", "ember-speech"; a file of that name is
        "./ember"), or `user/repo[@revision][:file]` on the Hugging Face Hub, which is downloaded once into
        the Hub's cache; its address on the web does as well. There `file` may be a file of the repository or
        a quantization such as `Q4_K_M`; a repository without GGUF files is loaded as a folder.
    device
        "auto" (a GPU if there is one that has room for the model and kernels for it, else the CPU, with a
        warning that says why) or an id of `akunu.devices()`.
    context
        Most tokens of prompt and generated text together; None: what the model was trained for, but at most
        4096. The KV cache has room for one such text at least.
    threads
        CPU threads; None: one for each physical core that this process may use.
    kv_dtype
        Type of the KV cache: "f16", "f32" or "q8_0" (int8 with a scale for every 32 values).
    parallel
        Texts that are generated at a time, at most 256; others wait.
    kv_memory
        Bytes of the KV cache; None: `context` tokens for each of `parallel` texts, but at most half of the
        device's memory. What texts do not need keeps earlier ones, so that a prompt that begins like one of
        them runs only what is new. Memory is taken as it is used.
    quantize
        A file type, such as "q4_k_m" or "q8_0": the weights are quantised as they are loaded, as
        `akunu.convert` would quantise them. What has another quantised type is quantised again.
    draft
        A smaller model with the same vocabulary, named like `path`. It writes a few tokens ahead, which the
        model verifies in one step, where that is faster; the text does not depend on it. Models that make
        vectors have no use for it.
    cache_dir
        A folder in which pages of the KV cache are kept when texts end, so that a prompt that begins like a
        text of an earlier process runs only what is new. It is made if need be, and may be that of other
        models and processes. The files hold the texts' tokens, and only their owner may read them. None:
        memory only. Models that make vectors keep nothing.
    cache_size
        Bytes of the files in `cache_dir`, those of other models included; what was used longest ago is
        deleted.
    token
        For private and gated repositories of the Hub; None: `HF_TOKEN`, or what `hf auth login` has stored.
    task
        "embed", "rerank", "transcribe": the model has to make vectors, score documents, or be one of speech;
        type checkers then know its class. For "rerank" a chat model such as Qwen3-Reranker's is asked for a
        yes or a no. None: what the files say: text, vectors or speech.
    progress
        True: a bar on a terminal or in a notebook, unless the load is over at once; False: nothing; or a
        function called as `progress(done_bytes, total_bytes)`. One that needs a third argument gets
        what else is being done, such as "compiling kernels for NVIDIA H100 (once)", or "". An exception that
        it raises ends the load.

    Returns
    -------
    Model
        Ready to generate; for a model that makes vectors of texts, an `EmbeddingModel`; for one that
        transcribes speech, a `WhisperModel`. It is a context manager that frees the memory at its end.

    Raises
    ------
    ModelFileError
        The file does not exist, cannot be fetched, or is damaged.
    UnsupportedError
        The file's format, architecture, tokenizer or a tensor's type is not one that Akunu knows.
    InvalidArgumentError
        An argument is out of range, or there is no such device.

    Examples
    --------
    >>> import akunu
    >>> model = akunu.load("ember")
    >>> print(model.generate("The old clock", max_tokens=20))  # doctest: +SKIP
    """
    from akunu import _core

    sizes = check_settings(
        context=context,
        threads=threads,
        parallel=parallel,
        kv_memory=kv_memory,
        cache_size=cache_size,
        kv_dtype=kv_dtype,
        task=task,
    )
    requested, limit, n_parallel = sizes["context"], sizes["cache_size"], sizes["parallel"]
    n_threads, kv_bytes = sizes["threads"] or 0, sizes["kv_memory"] or 0
    folder = None if cache_dir is None else as_path("cache_dir", cache_dir)
    devices = present(device)
    if quantize is not None and quantize not in tuple(FILE_TYPES):
        raise InvalidArgumentError(f"quantize: no {quantize!r}; there is {', '.join(FILE_TYPES)}")
    found = path if isinstance(path, FoundModel) else FoundModel(path, token=token, progress=progress)
    file_path, called = found.path, hub_name.model_name(found.path)
    # What is of texts that are written alone; the defaults are those of such a model.
    refused: dict[str, object] = {"kv_memory": kv_memory, "draft": draft, "cache_dir": cache_dir}
    if kv_dtype != "f16":
        refused["kv_dtype"] = kv_dtype
    if is_speech(file_path):
        from akunu.speech.loading import load_speech

        if task in ("embed", "rerank"):
            refused["task"] = task
        refused |= {"context": context, "quantize": quantize}
        _refuse(f"{called} transcribes speech, which has", refused)
        return on_first(
            devices,
            lambda device: load_speech(
                file_path, device=device, threads=n_threads, parallel=n_parallel, progress=progress
            ),
        )
    if task == "transcribe":
        raise UnsupportedError(f"{called} is no speech model; load a Whisper model")
    opened = found.files
    spec = _spec_for(opened, called, requested, task)
    most_tokens = requested or min(spec.config.context_length, DEFAULT_CONTEXT)
    if spec.config.encoder is not None:
        _refuse(f"{called} makes vectors, and such a model has", refused)
    types = None
    if quantize is not None:
        from akunu.conversion.plan import quantized_types

        types = quantized_types(spec, quantize)
    # A large vocabulary takes as long as the weights of a small model, and those are loaded without the GIL.
    with ThreadPoolExecutor(1, "akunu-tokenizer") as pool, reporter(progress, "Loading") as report:
        n_tokens = spec.config.vocab_size
        tokenizer = pool.submit(opened.tokenizer, n_tokens)
        pool.submit(import_module, "akunu.model")  # which takes as long as the weights of a small model
        if spec.config.encoder is not None:
            from akunu.encoders.loading import load_encoder

            return on_first(
                devices,
                lambda device: load_encoder(
                    opened,
                    spec,
                    file_path,
                    tokenizer,
                    device=device,
                    context=requested,
                    default_context=DEFAULT_CONTEXT,
                    threads=n_threads,
                    quantize=types,
                    progress=report,
                ),
            )
        # Before the larger one is loaded: what is wrong with it is known at once.
        smaller = None
        if draft is not None:
            from akunu.draft_model import DraftModel

            writer = find_model(draft, token=token, progress=progress, argument="draft")
            smaller = DraftModel.open(writer, most_tokens)
        engine = on_first(
            devices,
            lambda device: _core.Engine(
                opened.files,
                spec,
                device=device,
                context=most_tokens,
                threads=n_threads,
                kv_dtype=kv_dtype,
                parallel=n_parallel,
                kv_memory=kv_bytes,
                quantize=types,
                progress=report,
            ),
        )
        kept = None
        if folder is not None:
            if engine.pages["state_bytes"]:
                raise UnsupportedError(
                    f"cache_dir: {called} keeps a state of each text besides its pages, which files "
                    "do not hold; load it without"
                )
            from akunu.scheduling.identity import identity
            from akunu.scheduling.page_files import PageFiles

            key = identity(opened.files, spec, engine, types)
            kept = PageFiles(folder, limit, key, engine.pages["page_bytes"])
        drafts = None
        if smaller is not None:
            smaller.check(tokenizer.result(), n_tokens, file_path)
            drafts = on_first(
                devices,
                lambda device: smaller.engine(
                    device=device,
                    context=engine.context,
                    threads=n_threads,
                    kv_dtype=kv_dtype,
                    parallel=n_parallel,
                ),
            )
        from akunu.model import Model

        return Model(engine, tokenizer.result(), spec.config, opened.metadata, file_path, kept, drafts)


def _spec_for(opened: ModelFiles, called: str, context: int | None, task: str | None) -> ModelSpec:
    """What the files describe, as a model for that task and with that context."""
    spec = opened.spec(context or DEFAULT_CONTEXT)
    trained = spec.config.context_length
    if context is not None and context > trained:
        raise InvalidArgumentError(
            f"context: {context} is more than the {trained} tokens {called} was trained for"
        )
    if context is None and trained < DEFAULT_CONTEXT:
        spec = opened.spec(trained)
    encoder = spec.config.encoder
    if task == "rerank" or opened.modules.answers or (encoder is not None and encoder.task == "rank"):
        from akunu.encoders.loading import as_reranker

        spec = as_reranker(opened, spec)
    if task == "embed" and spec.config.encoder is None:
        raise UnsupportedError(f"{called} writes text; load an embedding model")
    return spec


def _refuse(what: str, settings: Mapping[str, object]) -> None:
    """Refuse the settings that are given, of which a model has none."""
    for name, value in settings.items():
        if value is not None:
            raise UnsupportedError(f"{name}: {what} no such setting")


def check_settings(
    *,
    kv_dtype: object,
    task: object,
    **sizes: object,
) -> dict[str, Any]:
    """What can be said of arguments of `load` before a model is looked for; gives the sizes as integers.

    Raises
    ------
    InvalidArgumentError
        One is out of range.
    """
    if task not in (None, "embed", "rerank", "transcribe"):
        raise InvalidArgumentError(f"task: found {task!r}, expected 'embed', 'rerank', 'transcribe' or None")
    if kv_dtype not in KV_DTYPES:
        raise InvalidArgumentError(f"kv_dtype: no {kv_dtype!r}; there is {', '.join(KV_DTYPES)}")
    return {
        name: None if size is None and name in _OPTIONAL else _SIZES[name].check(name, size)
        for name, size in sizes.items()
    }


class FoundModel(os.PathLike[str]):
    """A model that was found: for `load` a path, whose files it does not read again if they were looked into.

    Parameters
    ----------
    path, token, progress
        As in `load`, and what it raises for them.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        token: str | None = None,
        progress: bool | Progress = True,
    ) -> None:
        self.path = find_model(path, token=token, progress=progress)

    def __fspath__(self) -> str:
        return str(self.path)

    @cached_property
    def files(self) -> ModelFiles:
        """The files, opened; not of a model of speech."""
        from akunu.model_files import open_model

        return open_model(self.path)

    @cached_property
    def bytes(self) -> int:
        """Of the file, or of all in the folder."""
        files = self.path.rglob("*") if self.path.is_dir() else [self.path]
        return sum(file.stat().st_size for file in files if file.is_file())


def find_model(
    path: str | os.PathLike[str],
    *,
    token: str | None = None,
    progress: bool | Progress = True,
    argument: str = "path",
) -> Path:
    """The local file or folder that a model's name stands for, fetched from the Hub if need be.

    Parameters
    ----------
    path, token, progress
        As in `load`.
    argument
        What an error calls `path`.

    Raises
    ------
    ModelFileError
        There is no such file, repository or built-in model; the message says what is near it.
    UnsupportedError
        It is certainly neither a GGUF file nor a folder of SafeTensors, by the names.
    """
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(name, str):
        raise InvalidArgumentError(
            f"{argument}: expected a text or a path, got {path!r} ({type(path).__name__})"
        )
    if not name:
        raise InvalidArgumentError(f"{argument}: expected the name of a model, got an empty text")
    check_progress(progress)
    if path in BUILT_IN:  # first, so that what lies in the current folder cannot change its meaning
        return _built_in(name)
    try:
        file = Path(name).expanduser()
        is_there = file.exists()
        no_model = _directory_error(file) if file.is_dir() else None
    except (OSError, RuntimeError) as error:  # too long, a home or a folder that cannot be looked into
        raise ModelFileError(f"no model {name!r}: {error}") from error
    if no_model:
        raise no_model
    if is_there:
        if not file.is_dir():
            _check_kind(file)
        return file
    if file.is_symlink():
        raise ModelFileError(
            f"no model {name!r}: it is a link to {os.readlink(file)}, which leads to no file"
        )
    if isinstance(path, str) and (on_hub := hub_name.parse(path)):
        from akunu import hub

        return hub.fetch(on_hub, token=token, progress=progress)
    raise _not_found(name, file)


def _built_in(name: str) -> Path:
    file = Path(__file__).parent / "models" / BUILT_IN[name]
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
    gguf = [name for name in names if name.endswith(".gguf")]
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
    if near:
        return ModelFileError(f"no model {name!r}; did you mean {' or '.join(near)}?")
    if not folder.is_dir():
        return ModelFileError(f"no model {name!r}: the folder {folder} does not exist")
    return ModelFileError(
        f"no model {name!r}; expected a GGUF file, a folder, user/repo[@revision][:file] on the "
        f"Hugging Face Hub, or a built-in model ({', '.join(BUILT_IN)})"
    )


def _close_names(file: Path) -> list[str]:
    """GGUF files beside `file` whose names resemble it; the suffix, which all share, does not count."""
    try:
        names = [entry.name for entry in file.parent.iterdir() if entry.name.lower().endswith(".gguf")]
    except OSError:
        return []
    stems = {Path(name).stem.lower(): name for name in names}
    wanted = file.name.lower().removesuffix(".gguf")
    return [stems[stem] for stem in difflib.get_close_matches(wanted, stems, n=3)]
