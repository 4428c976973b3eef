"""Open what drafts for a model (`load(draft=…)`): a smaller model, an assistant, or a head, if they fit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from akunu.base.errors import InvalidArgumentError, UnsupportedError, errors_of
from akunu.base.hub_name import model_name
from akunu.files.describe.assistant import (
    ASSISTANT_TENSORS,
    with_gguf_assistant,
    with_hf_assistant,
)
from akunu.files.describe.known_missing import ASSISTANTS
from akunu.files.model_files import GgufModel, ModelFiles, open_model
from akunu.loading.finding import find_model
from akunu.loading.options import OWN_HEAD

if TYPE_CHECKING:
    from akunu._core import Engine, TensorFiles
    from akunu.base.progress import Progress
    from akunu.files.describe.config import ModelSpec
    from akunu.loading.finding import FoundModel
    from akunu.loading.options import LoadOptions
    from akunu.tokenizer import Tokenizer

__all__ = ["Assistant", "DraftModel", "Drafting", "head_beside", "joins_head"]


def head_beside(model: Path) -> Path | None:
    """Return what drafts for ``NAME.gguf``, ``mtp-NAME.gguf``, or for a folder, NAME-assistant; if any."""
    if model.is_dir():
        beside = Path(f"{model.absolute()}-assistant")
        return beside if (beside / "config.json").is_file() else None
    if model.suffix != ".gguf":
        return None
    beside = model.with_name(f"mtp-{model.name}")
    return beside if beside.is_file() else None


def joins_head(model: ModelFiles, other: ModelFiles) -> bool:
    """Take from a file the head that drafts for a model, if that is what the file has."""
    return isinstance(model, GgufModel) and isinstance(other, GgufModel) and model.join_head(other)


@dataclass(frozen=True)
class Assistant:
    """An opened model that reads the keys and values of the one that it drafts for (Gemma 4's)."""

    opened: ModelFiles

    @classmethod
    def of(cls, opened: ModelFiles) -> Assistant | None:
        """Return the assistant that a file or folder has; None where that is something else."""
        name = opened.metadata.get("general.architecture")
        return cls(opened) if name in ASSISTANTS else None

    def join(self, spec: ModelSpec) -> ModelSpec:
        """Return the larger model with it.

        Raises
        ------
        UnsupportedError
            It is the assistant of another model.
        """
        tensors = self.opened.files.tensors
        with errors_of("draft"):
            if isinstance(self.opened, GgufModel):
                return with_gguf_assistant(spec, self.opened.metadata, tensors)
            return with_hf_assistant(spec, getattr(self.opened, "config", {}), tensors)

    def joined(self, files: TensorFiles) -> TensorFiles:
        """Return the larger model's tensors, and its own."""
        from akunu import _core

        return _core.JoinedFiles(files, self.opened.files, added=ASSISTANT_TENSORS)


@dataclass(frozen=True)
class DraftModel:
    """An opened model that is to draft.

    Attributes
    ----------
    path
        Where it is.
    opened, spec
        Its files, and its numbers.
    """

    path: Path
    opened: ModelFiles
    spec: ModelSpec

    @classmethod
    def of(cls, path: Path, opened: ModelFiles, context: int) -> DraftModel:
        """Read the numbers of a model that is to draft for sequences of up to `context` tokens.

        Raises
        ------
        ModelFileError, UnsupportedError
            They cannot be read, or it generates no tokens.
        """
        spec = opened.spec(context)
        if spec.config.context_length < context:
            spec = opened.spec(spec.config.context_length)
        if spec.config.encoder is not None:
            raise UnsupportedError(f"draft: {model_name(path)} makes vectors and writes no text")
        return cls(path, opened, spec)

    def check(self, tokenizer: Tokenizer | None, vocab_size: int, larger: Path) -> None:
        """Compare vocabularies. One may have more ids than the other: rows that no text uses.

        Raises
        ------
        InvalidArgumentError
            They differ; the message names the first difference.
        """
        mine, own_size = self.opened.tokenizer(self.spec.config.vocab_size), self.spec.config.vocab_size
        if mine is None or tokenizer is None:
            if mine is not tokenizer or own_size != vocab_size:
                raise InvalidArgumentError(
                    f"draft: {model_name(self.path)} has {own_size} tokens and {model_name(larger)} "
                    f"{vocab_size}, not both with texts; a model that drafts has the same vocabulary"
                )
            return
        pairs = zip(mine.all_pieces(), tokenizer.all_pieces(), strict=False)
        for i, (piece, other) in enumerate(pairs):
            if piece != other:
                raise InvalidArgumentError(
                    f"draft: token {i} is {piece!r} in {model_name(self.path)} and {other!r} in "
                    f"{model_name(larger)}; a model that drafts has the same vocabulary"
                )

    def engine(self, *, device: str, context: int, threads: int, kv_dtype: str, parallel: int) -> Engine:
        """Load it, with the settings of the larger model."""
        from akunu import _core

        return _core.Engine(
            self.opened.files,
            self.spec,
            device=device,
            context=min(context, self.spec.config.context_length),
            threads=threads,
            kv_dtype=kv_dtype,
            parallel=parallel,
        )


@dataclass(frozen=True)
class Drafting:
    """The model, assistant or head that drafts for a model; it is opened first, and so are its errors told.

    Attributes
    ----------
    own_head
        The model's own head drafts, if it has one; it may have come from a file beside it.
    path, opened
        Another model, or None.
    assistant
        That model, if it reads the keys and values of the one that it drafts for.
    """

    own_head: bool
    path: Path | None = None
    opened: ModelFiles | None = None
    assistant: Assistant | None = None

    @classmethod
    def find(
        cls, model: FoundModel, asked: LoadOptions, *, token: str | None, progress: bool | Progress
    ) -> Drafting:
        """Open what `draft=` names, or what lies beside the model.

        Raises
        ------
        ModelFileError, UnsupportedError
            It cannot be read.
        """
        own_head, path = asked.draft in (None, OWN_HEAD), None
        if asked.draft_model is not None:
            path = find_model(asked.draft_model, token=token, progress=progress, argument="draft")
        elif own_head and asked.task is None:
            path = head_beside(model.path)
        if path is None:
            return cls(own_head)
        opened = open_model(path)
        assistant = Assistant.of(opened)
        if assistant is None:
            own_head = joins_head(model.files, opened) or own_head
        return cls(own_head, path, opened, assistant)

    def smaller(self, context: int) -> DraftModel | None:
        """Return the smaller model that drafts for up to `context` tokens; None where none does."""
        if self.path is None or self.opened is None or self.assistant is not None or self.own_head:
            return None
        return DraftModel.of(self.path, self.opened, context)
