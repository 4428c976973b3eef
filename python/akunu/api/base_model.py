"""The base of loaded models of all kinds."""

from __future__ import annotations

import os
from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Never, Self

from akunu.api.scheduling import ModelStats
from akunu.base.errors import AkunuError, UnsupportedError
from akunu.base.memory import Memory

__all__ = ["BaseModel", "Loading"]

_KINDS: Final[Mapping[str, str]] = {
    "text": "generate stream agenerate astream generate_batch chat stream_chat achat astream_chat session "
    "chat_template sampling logits perplexity importance_matrix profile pin unpin flush clear_cache "
    "prepare_constraints prepare_chat count_tokens reads_images n_params adapters add_adapter remove_adapter",
    "vectors": "embed rerank classify dimensions prompts labels",
    "speech": "transcribe atranscribe transcribe_stream atranscribe_stream listen alisten languages notice",
    "tokens": "tokenize detokenize",
}
"""Members that only models of one kind have (text and vectors share `tokens`)."""
MEMBERS: Final[Mapping[str, str]] = {name: kind for kind, names in _KINDS.items() for name in names.split()}


class _NoSuchMemberError(UnsupportedError, AttributeError):
    """A model of another kind has the member; `hasattr` says no."""


class Loading(ABCMeta):
    """A class of models that loads one when it is called with a name: as `akunu.load`, and of that kind."""

    _task: str | None
    load: Callable[..., Any]
    """`akunu.load`, which the code that loads puts here (`akunu.loading.classes`)."""

    def __call__(cls, *parts: Any, **options: Any) -> Any:
        if not (parts and isinstance(parts[0], str | os.PathLike)):
            return super().__call__(*parts, **options)
        model = Loading.load(*parts, **{"task": cls._task, **options})
        if not isinstance(model, cls):
            model.close()
            raise UnsupportedError(
                f"{os.fspath(parts[0])}: found a model of the kind {type(model).__name__}, expected "
                f"{cls.__name__}; akunu.load loads models of any kind"
            )
        return model


class BaseModel(ABC, metaclass=Loading):
    """A loaded model. It is a context manager that frees the memory at its end.

    A model belongs to the process that loaded it. In a process forked from that one its use is an error.
    """

    _instead: ClassVar[Mapping[str, str]] = {}
    """The words about a member that only other models have, by its name or by their kind."""
    _task: ClassVar[str | None] = None
    """The task of a model that this class loads."""

    def __init__(self, name: str, path: Path) -> None:
        self._name = name
        self._path = path
        self._closed = False
        self._process = os.getpid()

    @property
    def name(self) -> str:
        """The model's name."""
        return self._name

    @property
    def path(self) -> Path:
        """The file or folder that it was loaded from."""
        return self._path

    @property
    @abstractmethod
    def context(self) -> int:
        """Most tokens of a sequence."""

    @property
    @abstractmethod
    def device(self) -> str:
        """Name of the device that the model runs on."""

    @property
    @abstractmethod
    def memory(self) -> Memory:
        """Bytes that the model uses, by purpose."""

    @property
    @abstractmethod
    def stats(self) -> ModelStats:
        """Counts since the model was loaded."""

    @abstractmethod
    def cancel(self) -> None:
        """End what runs, from any thread."""

    @abstractmethod
    def close(self) -> None:
        """Free the model's memory; may be called twice. What runs is cancelled and waited for."""

    def _forked(self) -> bool:
        return os.getpid() != self._process

    def _check_process(self) -> None:
        """Before any lock is taken: in a forked child, the thread that held it is not there to release it."""
        if self._forked():
            raise AkunuError(
                f"the model {self.name} was loaded in the process {self._process}, from which this one was "
                "forked; load it in this process, or start the process by the method 'spawn'"
            )

    def _check_open(self) -> None:
        self._check_process()
        if self._closed:
            raise AkunuError(f"the model {self.name} is closed; load it again")

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> Never:
        raise TypeError(
            f"the model {self.name} cannot be copied or pickled: it belongs to the process that loaded it; "
            "load it in each process"
        )

    def __repr__(self) -> str:
        state = " closed" if self._closed else ""
        return f"<akunu.{type(self).__name__} {self.name}{self._facts()}{state}>"

    def _facts(self) -> str:
        """Return the facts that `repr` shows."""
        return ""

    if not TYPE_CHECKING:  # a type checker is to know which members there are

        def __getattr__(self, name: str) -> Never:
            raise self._missing(name)

        def __setattr__(self, name: str, value: Any) -> None:
            if name in MEMBERS and not hasattr(type(self), name):
                raise self._missing(name)
            super().__setattr__(name, value)

    def _missing(self, name: str) -> AttributeError:
        if name not in MEMBERS:
            return AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
            )
        instead = self._instead.get(name) or self._instead[MEMBERS[name]]
        return _NoSuchMemberError(f"{self.name} {instead}")
