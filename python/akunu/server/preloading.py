"""Loads a model as a server's settings say: in a thread of the server, or before there is one."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from akunu.loading.finding import FoundModel
from akunu.loading.load import load
from akunu.server.catalog import ModelSpec
from akunu.server.fitting import fitted

if TYPE_CHECKING:
    from akunu.server.kinds import ServedModel

__all__ = ["LoadedModel", "Preload", "find_model", "load_model"]

_log = logging.getLogger("akunu.server")


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model, and what a server has to know of it."""

    model: ServedModel
    unfit: Mapping[str, str]
    """Settings for all models that it was loaded without, and why."""
    bytes: int
    """Bytes of its files."""


def find_model(spec: ModelSpec) -> FoundModel:
    """The files of a model, fetched if need be."""
    return FoundModel(spec.path, progress=False, tower=spec.mmproj is None and spec.task is None)


def load_model(spec: ModelSpec, found: FoundModel) -> LoadedModel:
    """The model itself.

    Raises
    ------
    AkunuError, OSError
        It cannot be loaded.
    """
    arguments, unfit = fitted(spec, found)
    if unfit:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in unfit.items())
        _log.info("%s takes what fits it of the settings for all models; %s", spec.name, reasons)
    model = load(found, progress=_log_once(spec.name), **arguments)
    if spec.chat_template is not None:
        from akunu.chat import ChatTemplate

        model.chat_template = ChatTemplate.named(spec.chat_template, model.tokenizer)
    return LoadedModel(model, unfit, found.bytes)


@dataclass(frozen=True, slots=True)
class Preload:
    """A model that loads while what serves it is imported: weights load without Python's lock."""

    spec: ModelSpec
    began: float = field(default_factory=time.monotonic)
    loaded: Future[LoadedModel] = field(default_factory=Future)

    def begin(self) -> None:
        """Begin in a thread that nobody waits for: a program that ends does not load to the end."""
        threading.Thread(target=self._run, name="akunu-preload", daemon=True).start()

    def _run(self) -> None:
        try:
            self.loaded.set_result(load_model(self.spec, find_model(self.spec)))
        except BaseException as error:
            self.loaded.set_exception(error)


def _log_once(name: str) -> Callable[[int, int, str], None]:
    """The progress of a load: what takes long besides reading weights is said when it begins."""
    said = ""

    def progress(done: int, total: int, what: str) -> None:
        nonlocal said
        if what and what != said:
            said = what
            _log.info("%s: %s", name, what)

    return progress
