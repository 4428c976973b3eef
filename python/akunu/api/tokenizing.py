"""Text into token ids and back, as a model's methods take and give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from akunu.api.base_model import BaseModel
from akunu.base.errors import InvalidArgumentError, TokenizerError
from akunu.base.hub_name import model_name
from akunu.base.memory import Memory
from akunu.base.turns import let_others
from akunu.files.describe.config import ModelConfig
from akunu.tokenizer import Segment, StreamingDetokenizer, Tokenizer, check_fits

if TYPE_CHECKING:
    from akunu import _core

__all__ = ["Prompt", "Tokenizing"]

_PIECE: Final = 1 << 13
"""Ids that are put into text at a time."""

Prompt = str | Sequence[int] | npt.NDArray[np.integer[Any]]
"""Text, or token ids."""


class LoadedEngine(Protocol):
    """The engine of a model: `_core.Engine` or `_core.Encoder`."""

    @property
    def context(self) -> int: ...
    @property
    def device(self) -> str: ...
    @property
    def memory(self) -> _core.Memory: ...
    @property
    def memory_left(self) -> int | None: ...


class Tokenizing(BaseModel):
    """A model of texts, and what it does with its vocabulary."""

    def __init__(
        self,
        engine: LoadedEngine,
        tokenizer: Tokenizer | None,
        config: ModelConfig,
        metadata: Mapping[str, object],
        path: Path,
    ) -> None:
        name = metadata.get("general.name")
        super().__init__(name if isinstance(name, str) and name else path.stem, path)
        self._loaded = engine
        self._tokenizer = tokenizer
        self._config = config
        self._context = engine.context
        self._device, self._memory_left = engine.device, engine.memory_left

    @property
    def config(self) -> ModelConfig:
        """Architecture and sizes."""
        return self._config

    @property
    def context(self) -> int:
        """Most tokens of a sequence: of prompt and generated text together, or of a text to embed."""
        return self._context

    @property
    def device(self) -> str:
        """Name of the device that the model runs on."""
        return self._device

    @property
    def memory_left(self) -> int | None:
        """Bytes of the device's own memory that were free once the model was loaded; None where it shares the
        machine's."""
        return self._memory_left

    @property
    def memory(self) -> Memory:
        """Bytes that the model uses, by purpose."""
        self._check_open()
        return Memory(**self._loaded.memory)

    def _facts(self) -> str:
        return f" ({self.config.arch}), context {self.context}"

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the model file.

        Raises
        ------
        TokenizerError
            If the file has no vocabulary; then only token ids can be used.
        """
        if self._tokenizer is None:
            raise TokenizerError(f"{model_name(self.path)} has no vocabulary: use token ids instead of text")
        return self._tokenizer

    def tokenize(self, text: str, *, add_special: bool = True, parse_special: bool = False) -> list[int]:
        """Token ids of a text.

        Parameters
        ----------
        text
            Any text.
        add_special
            Add the tokens that the model expects around a text, such as BOS.
        parse_special
            Read the text of a control token as that token. Only for text that you trust.
        """
        return self.tokenizer.encode(text, add_special=add_special, parse_special=parse_special)

    def detokenize(self, ids: Sequence[int] | npt.NDArray[np.integer[Any]]) -> str:
        """Text of token ids."""
        array, made = self._checked_ids(ids), StreamingDetokenizer(self.tokenizer)
        texts = []
        for at in range(0, len(array), _PIECE):
            if at:
                let_others()
            texts.append(made.push(array[at : at + _PIECE].tolist()))
        return "".join(texts) + made.flush()

    def _prompt_ids(self, prompt: Prompt) -> npt.NDArray[np.uint32]:
        if isinstance(prompt, str):
            check_fits(self.tokenizer, [prompt], self.context)
            # No EOS, even where the tokenizer would add one to a whole text: this one goes on.
            ids = np.asarray(self.tokenizer.encode_segments([Segment(prompt)]), np.uint32)
        else:
            _check_prompt(prompt)
            ids = self._checked_ids(prompt)
        if ids.size == 0:
            raise InvalidArgumentError(
                "prompt: it has no tokens; give at least one (a BOS token, for example)"
            )
        return ids

    def _checked_ids(self, ids: object) -> npt.NDArray[np.uint32]:
        """`ids` [n] as the engine takes them, each in the vocabulary."""
        if isinstance(ids, str | bytes):
            raise InvalidArgumentError("token ids: expected integers, got a text; tokenize() it first")
        try:
            array = np.asarray(ids)
        except (ValueError, TypeError) as error:
            raise InvalidArgumentError(f"token ids: expected a sequence of integers: {error}") from error
        if array.size == 0:
            return np.empty(0, np.uint32)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise InvalidArgumentError(
                f"token ids: expected a sequence of integers, got {array.ndim} dimensions of {array.dtype}"
            )
        low, high = int(array.min()), int(array.max())
        if low < 0 or high >= self.config.vocab_size:
            wrong = low if low < 0 else high
            raise InvalidArgumentError(
                f"token ids: found {wrong}, expected an integer in [0, {self.config.vocab_size - 1}]"
            )
        return array.astype(np.uint32)


def _check_prompt(prompt: object) -> None:
    """Refuse what is neither a text nor a sequence, in words of the caller."""
    if isinstance(prompt, list | tuple) and any(isinstance(item, str) for item in prompt):
        raise InvalidArgumentError(
            "prompt: expected one text or its token ids, got a list of texts; generate_batch takes several"
        )
    if not isinstance(prompt, str | bytes | Sequence | np.ndarray) and not hasattr(prompt, "__array__"):
        raise InvalidArgumentError(
            f"prompt: expected a text or token ids, got {prompt!r} ({type(prompt).__name__})"
        )
