"""Adapters (LoRA) of a loaded model: which there are, and how they come and go."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from akunu._core import Engine
from akunu.api.scheduling import Scheduler
from akunu.api.scheduling.sequence import Adapter
from akunu.base.arguments import FLOAT32_MAX, Limit, as_path
from akunu.base.errors import InvalidArgumentError, UnsupportedError
from akunu.files.describe.config import ModelSpec

__all__ = ["AdapterInfo", "Adapting"]

SCALE: Final = Limit(float, -FLOAT32_MAX, FLOAT32_MAX)


@dataclass(frozen=True)
class AdapterInfo:
    """An adapter that a model has.

    Attributes
    ----------
    path
        Its file or folder.
    kind
        "GGUF" or "PEFT".
    scale
        Multiplies what it adds, where a generation names no other scale.
    ranks
        The ranks of its matrices.
    matrices
        How many matrices of the model it adds to.
    digest
        A hash of what it adds.
    """

    path: Path
    kind: str
    scale: float
    ranks: tuple[int, ...]
    matrices: int
    digest: str


class Adapting:
    """The adapters of a model."""

    _engine: Engine
    _scheduler: Scheduler
    _spec: ModelSpec | None
    _adapters: dict[str, tuple[AdapterInfo, Adapter]]
    _adapter_lock: threading.Lock

    @property
    def adapters(self) -> Mapping[str, AdapterInfo]:
        """The adapters that generations may name, by name."""
        return {name: info for name, (info, _) in self._adapters.items()}

    def add_adapter(self, name: str, path: str | os.PathLike[str], *, scale: float = 1.0) -> AdapterInfo:
        """Load an adapter (LoRA) beside the model, while others generate.

        Parameters
        ----------
        name
            What `generate(adapter=)` names it by.
        path
            llama.cpp's GGUF file, or PEFT's folder.
        scale
            Multiplies what it adds, besides its own alpha / rank.

        Raises
        ------
        ModelFileError
            The file is missing or damaged, or its shapes are not the model's.
        UnsupportedError
            It is no LoRA of linear layers, or for another model; or the device has no kernels for adapters.
        InvalidArgumentError
            There is an adapter of that name.

        Examples
        --------
        >>> model.add_adapter("pirate", "pirate-lora.gguf")  # doctest: +SKIP
        >>> model.generate("Good morning", adapter="pirate")  # doctest: +SKIP
        """
        if not isinstance(name, str) or not name:
            raise InvalidArgumentError(f"name: expected a text that names the adapter, got {name!r}")
        scale = SCALE.check("scale", scale)
        if self._spec is None:
            raise UnsupportedError("adapter: this model is not of files, whose tensors an adapter names")
        from akunu.files.adapters import digest_of, open_adapter

        file = open_adapter(as_path("path", path))
        parts = file.of_model(self._spec, self._engine.linears)
        digest = digest_of(parts)
        tensors = {of: (part.a, part.b, part.scale) for of, part in parts.items()}
        with self._adapter_lock:
            if name in self._adapters:
                raise InvalidArgumentError(
                    f"name: there is an adapter {name!r}; remove it, or give another name"
                )
            added = self._scheduler.add_adapter(tensors, digest)
            info = AdapterInfo(file.path, file.kind, scale, file.ranks, len(parts), digest)
            self._adapters[name] = info, replace(added, scale=scale)
        return info

    def remove_adapter(self, name: str) -> None:
        """Take an adapter out of memory.

        Raises
        ------
        InvalidArgumentError
            There is no adapter of that name.
        BusyError
            Generations that run or wait have it.
        """
        with self._adapter_lock:
            _, adapter = self._named(name)
            self._scheduler.remove_adapter(adapter)
            del self._adapters[name]

    def _named(self, name: str) -> tuple[AdapterInfo, Adapter]:
        found = self._adapters.get(name)
        if found is None:
            there = ", ".join(map(repr, self._adapters)) or "none; add_adapter loads one"
            raise InvalidArgumentError(f"adapter: no {name!r}; there is {there}")
        return found

    def _adapter(self, name: str | None, scale: float | None) -> Adapter | None:
        """The adapter of a generation."""
        if name is None:
            if scale is not None:
                raise InvalidArgumentError("adapter_scale: is of an adapter, and adapter names none")
            return None
        _, adapter = self._named(name)
        return adapter if scale is None else replace(adapter, scale=scale)

    def _adapted(self, name: str | None, scale: float | None) -> dict[str, Any]:
        """Return an adapter's arguments for the engine's runs. Call it in a turn: none is removed then."""
        if scale is not None:
            scale = SCALE.check("adapter_scale", scale)
        adapter = self._adapter(name, scale)
        return {} if adapter is None else {"adapter": adapter.number, "adapter_scale": adapter.scale}
