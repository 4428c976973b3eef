"""Open the engine of a model for measuring: without a tokenizer, and for random weights without a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from akunu.files.describe.filetypes import SYNTHETIC_TYPES
from akunu.loading.facts import ModelFacts, model_facts
from akunu.loading.placement import device_info, present
from akunu.loading.shapes import SHAPES

if TYPE_CHECKING:
    from akunu._core import DeviceInfo, Engine
    from akunu.files.describe.config import ModelConfig, ModelSpec

__all__ = ["OpenEngine", "find_device", "is_synthetic", "open_engine"]


@dataclass(frozen=True)
class OpenEngine:
    """An engine, the configuration of its model, and what a table says about it."""

    engine: Engine
    config: ModelConfig
    facts: ModelFacts


def is_synthetic(name: str) -> bool:
    """Whether a model's name is SHAPE:TYPE, random weights of a known shape."""
    shape, separator, file_type = name.lower().partition(":")
    return bool(separator) and shape in SHAPES and file_type in SYNTHETIC_TYPES


@contextmanager
def open_engine(
    model: str,
    *,
    device: str = "auto",
    context: int = 512,
    threads: int | None = None,
    kv_dtype: str = "f16",
    chunk: int | None = None,
    parallel: int = 8,
    activations_apart: bool = False,
) -> Iterator[OpenEngine]:
    """Open an engine and close it again; arguments as in `open_unmanaged`."""
    opened = open_unmanaged(
        model, device=device, context=context, threads=threads or 0, kv_dtype=kv_dtype, chunk=chunk,
        parallel=parallel, activations_apart=activations_apart,
    )  # fmt: skip
    try:
        yield opened
    finally:
        opened.engine.close()


def open_unmanaged(
    model: str,
    *,
    device: str,
    context: int,
    threads: int,
    kv_dtype: str,
    chunk: int | None = None,
    parallel: int = 8,
    activations_apart: bool = False,
    rope_scaling: object = None,
    override_kv: object = None,
) -> OpenEngine:
    """Open an engine that the caller closes.

    Parameters
    ----------
    model
        A model's name as `akunu.load` takes it, or SHAPE:TYPE for random weights.
    device, threads, kv_dtype
        As in `akunu.load`; `threads` 0 is the default. Device "plan:M4 Max" is a chip that need not be
        here: the engine only plans.
    context
        Tokens that the KV cache must hold.
    chunk
        Most rows of one prefill; None: what suits the device.
    parallel
        Sequences at a time.
    activations_apart
        Whether no two activations share memory, so that one can see what each command wrote.
    rope_scaling, override_kv
        As in `akunu.load`, of a model that is read from files.

    Raises
    ------
    InvalidArgumentError
        A number is out of range, or there is no such device.
    """
    from akunu import _core
    from akunu.base.errors import InvalidArgumentError
    from akunu.base.progress import reporter
    from akunu.files.describe.gguf_config import resolve
    from akunu.files.model_files import open_model
    from akunu.files.overrides import apply_overrides
    from akunu.loading.finding import find_model
    from akunu.loading.options import SIZE, THREADS
    from akunu.loading.synthetic import SyntheticModel

    SIZE.check("context", context)
    if chunk is not None:
        SIZE.check("chunk", chunk)
    if threads:
        THREADS.check("threads", threads)
    device_id = device if device.startswith("plan:") else find_device(device)["id"]
    with reporter(True, "Loading") as report:
        if is_synthetic(model):
            if rope_scaling or override_kv:
                raise InvalidArgumentError("random weights have no keys to override and no scaling to change")
            source = SyntheticModel(model)
            spec = _stretched(resolve(source, context=context), context)
            engine = _core.Engine(
                None, spec, device=device_id, context=context, threads=threads, kv_dtype=kv_dtype,
                chunk=chunk, parallel=parallel, activations_apart=activations_apart,
                synthetic=source.dtypes, progress=report,
            )  # fmt: skip
            facts = model_facts(source.name, source.metadata, source.tensors, load_mode="none")
        else:
            path = find_model(model)
            opened = open_model(path)
            apply_overrides(opened, rope_scaling, override_kv)
            spec = _stretched(opened.spec(context), context)
            engine = _core.Engine(
                opened.files, spec, device=device_id, context=context, threads=threads, kv_dtype=kv_dtype,
                chunk=chunk, parallel=parallel, activations_apart=activations_apart, progress=report,
            )  # fmt: skip
            facts = model_facts(str(path), opened.metadata, opened.weights)
    return OpenEngine(engine, spec.config, facts)


def _stretched(spec: ModelSpec, context: int) -> ModelSpec:
    """Return the model for a context beyond its training, which changes what it writes but not how fast."""
    return replace(spec, config=replace(spec.config, context_length=max(spec.config.context_length, context)))


def find_device(wanted: str) -> DeviceInfo:
    """The device with this id; "auto" is a GPU where there is one, "none" (llama-bench's word) is the CPU.

    Raises
    ------
    InvalidArgumentError
        There is no such device.
    """
    return device_info(present("cpu" if wanted == "none" else wanted)[0])
