"""From a name to a loaded model: `load` and what it needs to know about paths, devices and progress.

A name is a local GGUF file (for a split file: its first part), a folder of SafeTensors, a model that is part
of the package, or one on the Hugging Face Hub (`akunu.base.hub_name`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, overload

from akunu._core import DEFAULT_CONTEXT
from akunu.base import hub_name
from akunu.base.arguments import as_path
from akunu.base.errors import InvalidArgumentError, UnsupportedError
from akunu.base.progress import Progress, reporter
from akunu.describe.filetypes import FILE_TYPES
from akunu.loading.finding import FoundModel, find_model
from akunu.loading.options import DEFAULT_CACHE_SIZE, check_settings
from akunu.loading.placement import on_first, present
from akunu.speech.recognition import is_speech

if TYPE_CHECKING:
    from akunu.api.model import Model
    from akunu.describe.config import ModelSpec
    from akunu.encoders.model import EmbeddingModel
    from akunu.files.model_files import ModelFiles
    from akunu.speech.whisper_model import WhisperModel

__all__ = ["load"]


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
        from akunu.describe.file_tensors import quantized_types

        types = quantized_types(spec, quantize)
    # A large vocabulary takes as long as the weights of a small model, and those are loaded without the GIL.
    with ThreadPoolExecutor(1, "akunu-tokenizer") as pool, reporter(progress, "Loading") as report:
        n_tokens = spec.config.vocab_size
        tokenizer = pool.submit(opened.tokenizer, n_tokens)
        pool.submit(import_module, "akunu.api.model")  # which takes as long as the weights of a small model
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
            from akunu.loading.draft_model import DraftModel

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
        from akunu.api.model import Model

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
