"""From a name to a loaded model: `load` and what it needs to know about paths, devices and progress.

A name is a local GGUF file (for a split file: its first part), a folder of SafeTensors, a model that is part
of the package, or one on the Hugging Face Hub (`akunu.base.hub_name`).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from akunu._core import DEFAULT_CONTEXT
from akunu.api.signatures import spelled_out
from akunu.base.errors import InvalidArgumentError, ModelFileError, UnsupportedError
from akunu.base.progress import Progress, reporter
from akunu.files.overrides import apply_overrides
from akunu.loading.draft_model import Assistant, Drafting, DraftModel
from akunu.loading.finding import FoundModel
from akunu.loading.options import OF_SPEECH, OF_VECTORS, OWN_HEAD, LoadOptions
from akunu.loading.placement import first_gpu, on_first, present
from akunu.speech.recognition import is_speech

if TYPE_CHECKING:
    from akunu._core import Engine, TensorFiles
    from akunu.api.encoders.model import EmbeddingModel
    from akunu.api.model import Model
    from akunu.api.scheduling.page_files import PageFiles
    from akunu.api.vision.tower import Tower
    from akunu.api.vision.towers import TowerFiles
    from akunu.base.progress import Report
    from akunu.files.describe.config import ModelSpec
    from akunu.speech.whisper_model import WhisperModel
    from akunu.tokenizer import Tokenizer

__all__ = ["from_pretrained", "load"]


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
    rope_scaling: dict[str, Any] | str | None = None,
    override_kv: dict[str, Any] | list[str] | None = None,
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
    memory: int | None = None,
    quantize: str | None = None,
    draft: str | os.PathLike[str] | bool | None = None,
    mmproj: str | os.PathLike[str] | Literal[False] | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    cache_size: int = 16 << 30,
    adapters: Mapping[str, str | os.PathLike[str]] | None = None,
    token: str | None = None,
    task: None = None,
    rope_scaling: dict[str, Any] | str | None = None,
    override_kv: dict[str, Any] | list[str] | None = None,
    progress: bool | Progress = True,
) -> Model: ...
def load(
    path: str | os.PathLike[str],
    *,
    token: str | None = None,
    progress: bool | Progress = True,
    **options: Any,
) -> Any:
    """Load a model.

    Parameters
    ----------
    path
        A GGUF file (of a split model: its first part), a folder with `config.json` and SafeTensors, a Whisper
        file of whisper.cpp, the name of a built-in model ("ember", "ember-vision", "ember-speech"; a file of
        that name is "./ember"), or `user/repo[@revision][:file]` on the Hugging Face Hub, which is downloaded
        once into the Hub's cache; its address on the web does as well. There `file` may be a file of the
        repository or a quantization such as `Q4_K_M`; a repository without GGUF files is loaded as a folder.
        Or a short name such as "qwen3:4b" (`akunu models available` lists them; with `task="transcribe"`
        also "small").
    token
        For private and gated repositories of the Hub; None: `HF_TOKEN`, or what `hf auth login` has stored.
    progress
        True: a bar on a terminal or in a notebook, unless the load is over at once; False: nothing; or a
        function called as `progress(done_bytes, total_bytes)`. One that needs a third argument gets
        what else is being done, such as "compiling kernels for NVIDIA H100 (once)", or "". An exception that
        it raises ends the load.
    **options
        The fields of `LoadOptions`.

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
    asked = LoadOptions.of(options)
    found = path
    if not isinstance(found, FoundModel):
        speech, tower = asked.task == "transcribe", asked.mmproj is None and asked.task is None
        found = FoundModel(path, token=token, progress=progress, speech=speech, tower=tower)
    if is_speech(found.path):
        return _open_speech(found, asked, progress)
    if asked.task == "transcribe":
        raise UnsupportedError(f"{found.name} is no speech model; load a Whisper model")
    drafting = Drafting.find(found, asked, token=token, progress=progress)
    described = _described(found, asked, drafting)
    smaller = drafting.smaller(described.context)
    # A large vocabulary takes as long as the weights of a small model, and those are loaded without the GIL.
    with ThreadPoolExecutor(1, "akunu-tokenizer") as pool, reporter(progress, "Loading") as report:
        tokenizer = pool.submit(found.files.tokenizer, described.spec.config.vocab_size)
        pool.submit(import_module, "akunu.api.model")  # which takes as long too
        if described.spec.config.encoder is not None:
            return _open_encoder(described, asked, tokenizer, report)
        return _open_text(described, asked, tokenizer, smaller, report)


spelled_out(load, (LoadOptions,))

from_pretrained = load
"""`load` by the name that Transformers has for it."""


@dataclass(frozen=True)
class _Described:
    """A model whose files were read, as it is going to be loaded.

    `types` are those that its matrices are quantised to, by canonical name; None: they stay as they are. The
    `tower` is what reads images, if there is one.
    """

    found: FoundModel
    spec: ModelSpec
    context: int
    types: dict[str, str] | None
    tower: TowerFiles | None
    assistant: Assistant | None = None

    @property
    def files(self) -> TensorFiles:
        """The tensors of the model and of its assistant."""
        own = self.found.files.files
        return own if self.assistant is None else self.assistant.joined(own)


def _described(found: FoundModel, asked: LoadOptions, drafting: Drafting) -> _Described:
    """Return what the files describe, as a model for that task, with that context, and with what drafts."""
    opened, context = found.files, asked.context
    apply_overrides(opened, asked.rope_scaling, asked.override_kv)
    tower = _tower(found, asked)
    sees = tower is not None or asked.mmproj is False  # then it is known that it is left out
    spec = opened.spec(context or DEFAULT_CONTEXT, sees=sees, drafts=drafting.own_head)
    trained = spec.config.context_length
    if context is not None and context > trained:
        longer = f"; where its card tells so, rope_scaling (yarn:{-(-context // trained)}) makes it longer"
        remedy = longer if spec.config.rope_sets and asked.rope_scaling is None else ""
        raise InvalidArgumentError(
            f"context: {context} is more than the {trained} tokens {found.name} was trained for{remedy}"
        )
    if context is None and trained < DEFAULT_CONTEXT:
        spec = opened.spec(trained, sees=sees, drafts=drafting.own_head)
    if drafting.assistant is not None:
        spec = drafting.assistant.join(spec)
    if asked.draft == OWN_HEAD and spec.config.drafter is None:
        raise InvalidArgumentError(
            f"draft: {found.name} has no head that drafts; expected the name of a smaller model, or nothing"
        )
    encoder = spec.config.encoder
    if asked.task == "rerank" or opened.modules.answers or (encoder is not None and encoder.task == "rank"):
        from akunu.api.encoders.loading import as_reranker

        spec = as_reranker(opened, spec)
    encoder = spec.config.encoder
    if asked.task == "embed" and encoder is None:
        raise UnsupportedError(f"{found.name} writes text; load an embedding model")
    if asked.task == "embed" and encoder is not None and encoder.task == "rank":
        raise UnsupportedError(
            f"task: {found.name} scores documents and makes no vectors; expected rerank, or none"
        )
    if asked.task == "rerank" and encoder is not None and spec.config.bidirectional and encoder.n_labels > 1:
        raise UnsupportedError(
            f"task: {found.name} is a classifier with {encoder.n_labels} labels, expected a reranker, which "
            "has one; load it without a task and use classify"
        )
    if asked.task == "rerank" and encoder is not None and encoder.task == "embed":
        raise UnsupportedError(
            f"task: {found.name} makes vectors and has no head that scores documents; expected embed, or none"
        )
    if encoder is not None:
        # How many sequences run side by side, such a model decides by itself: `parallel` means nothing to it.
        asked.refuse_others((*OF_VECTORS, "parallel"), f"{found.name} makes vectors, and such a model has")
    if tower is not None:
        if encoder is not None:
            tower = None  # of which it makes no vectors
        else:
            from akunu.api.vision.towers import with_images

            spec = with_images(spec, tower.spec)
    types = None
    if asked.quantize is not None:
        from akunu.files.describe.file_tensors import quantized_types

        types = quantized_types(spec, asked.quantize)
    context = context or min(spec.config.context_length, DEFAULT_CONTEXT)
    return _Described(found, spec, context, types, tower, drafting.assistant)


def _tower(found: FoundModel, asked: LoadOptions) -> TowerFiles | None:
    """Find what reads images, in the model's files or beside them; without it, text can still be read."""
    if asked.mmproj is False or asked.task is not None:
        return None
    from akunu.api.vision.towers import find_tower

    named = None if asked.mmproj is None else Path(asked.mmproj)
    try:
        return find_tower(found.files, found.path, named)
    except (ModelFileError, UnsupportedError) as error:
        if named is not None:
            raise
        warnings.warn(f"{found.name} reads text only: {error}", RuntimeWarning, stacklevel=5)
        return None


def _open_speech(found: FoundModel, asked: LoadOptions, progress: bool | Progress) -> WhisperModel:
    from akunu.speech.loading import load_speech

    kept = OF_SPEECH if asked.task == "transcribe" else tuple(name for name in OF_SPEECH if name != "task")
    asked.refuse_others(kept, f"{found.name} transcribes speech, which has")
    return on_first(
        present(asked.device),
        lambda device: load_speech(
            found.path,
            device=device,
            threads=asked.threads or 0,
            parallel=asked.parallel,
            progress=progress,
        ),
    )


def _open_encoder(
    model: _Described, asked: LoadOptions, tokenizer: Future[Tokenizer | None], report: Report | None
) -> EmbeddingModel:
    from akunu.api.encoders.loading import load_encoder

    return on_first(
        present(asked.device),
        lambda device: load_encoder(
            model.found.files,
            model.spec,
            model.found.path,
            tokenizer,
            device=device,
            context=asked.context,
            default_context=DEFAULT_CONTEXT,
            threads=asked.threads or 0,
            quantize=model.types,
            progress=report,
        ),
    )


def _open_text(
    model: _Described,
    asked: LoadOptions,
    tokenizer: Future[Tokenizer | None],
    smaller: DraftModel | None,
    report: Report | None,
) -> Model:
    from akunu import _core

    found, spec, devices = model.found, model.spec, present(asked.device)

    def loaded(device: str) -> tuple[Engine, Tower | None]:
        engine = _core.Engine(
            model.files,
            spec,
            device=device,
            context=model.context,
            threads=asked.threads or 0,
            kv_dtype=asked.kv_dtype,
            parallel=asked.parallel,
            kv_memory=asked.kv_memory or 0,
            memory=asked.memory or 0,
            quantize=model.types,
            progress=report,
        )
        if model.tower is None:
            return engine, None
        from akunu.api.vision.tower import Tower

        return engine, Tower(model.tower, device=first_gpu(device), threads=asked.threads or 0)

    engine, tower = on_first(devices, loaded)
    kept = _pages_in_files(model, asked, engine)
    drafts = None
    if smaller is not None:
        smaller.check(tokenizer.result(), spec.config.vocab_size, found.path)
        drafts = on_first(
            devices,
            lambda device: smaller.engine(
                device=device,
                context=engine.context,
                threads=asked.threads or 0,
                kv_dtype=asked.kv_dtype,
                parallel=asked.parallel,
            ),
        )
    from akunu.api.model import Model

    text = Model(
        engine, tokenizer.result(), spec.config, found.files.metadata, found.path, kept, drafts, tower, spec
    )
    try:
        for name, path in (asked.adapters or {}).items():
            text.add_adapter(name, path)
    except BaseException:
        text.close()
        raise
    return text


def _pages_in_files(model: _Described, asked: LoadOptions, engine: Engine) -> PageFiles | None:
    """The files of the KV cache's pages, where they are to be kept."""
    if asked.cache_dir is None:
        return None
    from akunu.api.scheduling.identity import identity
    from akunu.api.scheduling.page_files import PageFiles

    key = identity(model.found.files.files, model.spec, engine, model.types)
    return PageFiles(Path(asked.cache_dir), asked.cache_size, key, engine.part_bytes)
