"""A loaded model that makes vectors: texts in, embeddings or scores out."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import numpy as np
import numpy.typing as npt

from akunu._core import Encoder
from akunu.api.tokenizing import Prompt, Tokenizing
from akunu.base.arguments import Limit
from akunu.base.errors import AkunuError, ContextLengthError, InvalidArgumentError, UnsupportedError
from akunu.base.progress import check_callback
from akunu.describe.config import EncoderConfig, ModelConfig
from akunu.describe.encoder_modules import Modules
from akunu.encoders.asking import ENDING, question
from akunu.scheduling import ModelStats
from akunu.tokenizer import Tokenizer, check_fits

__all__ = ["EmbeddingModel", "Output"]

Output = Literal["float32", "int8", "binary"]
"""Types of vectors."""
_OUTPUTS: Final = ("float32", "int8", "binary")

Ids = npt.NDArray[np.uint32]
Scores = npt.NDArray[np.float64]

_SCORES: Final[Mapping[str, Callable[[Scores], Scores]]] = {
    "sigmoid": lambda scores: 1.0 / (1.0 + np.exp(-scores)),
    "tanh": np.tanh,
    "": lambda scores: scores,
}
"""What a score goes through, as `Modules.score` names it."""

_BATCH: Final = 4096
"""Texts that are tokens at a time, whatever their number."""


@dataclass(frozen=True)
class _Rows:
    """A text as the engine takes it: ids [n], where rows of a second kind begin, and how many last ids stay
    when it is cut; `first`: how many first ids stay where the front is cut, None where it is not.
    """

    ids: Ids
    second: int = 0
    kept: int = 0
    first: int | None = None

    def cut(self, n: int) -> _Rows:
        """Ids of both ends, of which only those that are kept of one."""
        kept = min(self.kept, n) if self.first is None else n - self.first
        ids = np.concatenate([self.ids[: n - kept], self.ids[self.ids.size - kept :]])
        return _Rows(ids, self.second, kept)


class EmbeddingModel(Tokenizing):
    """An embedding model or a reranker, as `akunu.load` returns it for one.

    Methods may be called from any thread; a call waits for the one before it. Texts of a call run together,
    without padding.

    Examples
    --------
    >>> model = akunu.load("minilm")  # doctest: +SKIP
    >>> vectors = model.embed(["A cat sits.", "Ein Hund rennt."])  # doctest: +SKIP
    >>> vectors @ vectors.T  # doctest: +SKIP
    """

    _instead: ClassVar = {
        "text": "makes vectors and writes no text: use embed or rerank",
        "speech": "makes vectors of texts; load a Whisper model to transcribe speech",
        "profile": "has no table of one token; `akunu profile` times those of its texts",
        "importance_matrix": "makes vectors, of which there are no importance matrices",
    }

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer | None,
        config: ModelConfig,
        metadata: Mapping[str, object],
        path: Path,
        modules: Modules,
    ) -> None:
        super().__init__(encoder, tokenizer, config, metadata, path)
        assert config.encoder is not None
        self._encoder = encoder
        self._settings: EncoderConfig = config.encoder
        self._modules = modules
        self._calls = threading.RLock()  # a handler within a call does not wait: the engine refuses it
        self._totals: Counter[str] = Counter()

    @property
    def dimensions(self) -> int:
        """Elements of a vector, unless `embed` is asked for others."""
        return min(self._modules.dimensions or self._encoder.width, self._encoder.width)

    @property
    def prompts(self) -> Mapping[str, str]:
        """Texts that stand before a text to say what it is for, by name."""
        return self._modules.prompts

    def embed(
        self,
        texts: str | Sequence[Prompt],
        *,
        prompt: str | None = None,
        dimensions: int | None = None,
        normalize: bool = True,
        truncate: bool = False,
        output: Output = "float32",
        progress: Callable[[int, int], None] | None = None,
    ) -> npt.NDArray[Any]:
        """Vectors of texts.

        Parameters
        ----------
        texts
            Each a text, to which the tokenizer adds what the model expects, or token ids, which are taken as
            they are. A lone text is a list of one.
        prompt
            The name of one of `prompts`, which is put before each text; None: the model's default, if it has
            one. Any other text can be put there by the caller.
        dimensions
            Keep the first so many elements, for models that were trained for it ("Matryoshka"); None: all, or
            as many as the model's files say (`truncate_dim`).
        normalize
            Scale each vector to the length 1, after it was shortened.
        truncate
            Cut texts that are longer than `context`, and warn of them. Without it they are an error.
        output
            "float32"; "int8": each vector scaled so that its greatest element is 127, which keeps cosines;
            "binary": a bit for each element, whether it is positive, the first in the highest bit of a byte.
        progress
            Called as `progress(done, texts)` now and then.

        Returns
        -------
        ndarray
            float32 or int8 [n, dimensions], or uint8 [n, ceil(dimensions / 8)].

        Raises
        ------
        ContextLengthError
            A text is longer than `context`.
        InvalidArgumentError
            An argument is out of range, or a text has no tokens.
        UnsupportedError
            The model is a reranker.

        Examples
        --------
        >>> model.embed(["one", "two"], prompt="query", dimensions=256).shape  # doctest: +SKIP
        (2, 256)
        """
        if self._settings.task == "rank":
            raise UnsupportedError(f"{self.name} is a reranker: use rerank(query, documents)")
        check_callback(progress)
        if output not in _OUTPUTS:
            raise InvalidArgumentError(f"output: found {output!r}, expected one of {', '.join(_OUTPUTS)}")
        size = self.dimensions
        if dimensions is not None:
            size = Limit(int, 1, self._encoder.width).check("dimensions", dimensions)
        prefix = self._prompt(prompt)
        if not isinstance(texts, Iterable) or isinstance(texts, bytes | Mapping):
            raise InvalidArgumentError(f"texts: expected a list of texts, got {type(texts).__name__}")
        items: list[Prompt] = [texts] if isinstance(texts, str) else list(texts)
        vectors = self._vectors(
            len(items),
            lambda i: self._text(i, items[i], prefix, truncate),
            truncate=truncate,
            progress=progress,
        )
        return _converted(vectors[:, :size], normalize, output)

    def rerank(
        self,
        query: str,
        documents: Sequence[str],
        *,
        instruction: str | None = None,
        raw: bool = False,
        truncate: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[float]:
        """How relevant documents are for a query.

        Parameters
        ----------
        query, documents
            Texts.
        instruction
            What the query is for, of models that are asked in words, such as Qwen3-Reranker; None: to find
            passages that answer it.
        raw
            Give the model's own score, any number; else what it becomes by the function that the files
            name, by a sigmoid where they name none, in [0, 1]. Their order is the same.
        truncate
            Cut documents that with the query are longer than `context`, and warn of them.
        progress
            Called as `progress(done, documents)` now and then.

        Returns
        -------
        list of float
            A score for each document, in their order.

        Raises
        ------
        ContextLengthError, InvalidArgumentError
            As in `embed`.
        UnsupportedError
            The model is not a reranker.

        Examples
        --------
        >>> model.rerank("What do cats eat?", ["Cats eat mice.", "Rome is a city."])  # doctest: +SKIP
        [0.99, 0.0]
        """
        if self._settings.task != "rank":
            raise UnsupportedError(f"{self.name} is no reranker: compare vectors of embed")
        asked = not self.config.bidirectional
        width = self._encoder.width
        if width != 1 and not (asked and width == 2):
            raise UnsupportedError(
                f"{self.name} gives {width} scores for a pair of texts, as a classifier does; "
                "reranking needs a model with one (one label in its config.json)"
            )
        if asked and "<|im_start|>" not in self.tokenizer.control_texts():
            raise UnsupportedError(
                f'{self.name} is asked as Qwen3-Reranker is, but its tokenizer has no token "<|im_start|>"'
            )
        if instruction is not None and not asked:
            raise InvalidArgumentError(f"instruction: {self.name} is not asked in words and takes none")
        check_callback(progress)
        if not isinstance(documents, Sequence | np.ndarray):
            raise InvalidArgumentError(f"documents: expected a list of texts, got {type(documents).__name__}")
        for i, text in enumerate([query, *([documents] if isinstance(documents, str) else documents)]):
            if not isinstance(text, str):
                what = "query" if i == 0 else f"documents: number {i - 1}"
                raise InvalidArgumentError(f"{what}: expected a text, got {type(text).__name__}")
        if isinstance(documents, str):
            raise InvalidArgumentError("documents: expected texts, got one text; put it into a list")
        first = self._encode(self._bounded(query, "the query", False), add_special=False)

        def rows(document: str) -> _Rows:
            return self._question(query, document, instruction) if asked else self._pair(first, document)

        alone = rows("").ids.size
        if alone >= self.context:
            raise ContextLengthError(
                f"query: has {alone} tokens with what stands around it, which leaves no room for a document "
                f"in the {self.context} that the model takes; shorten it"
            )
        made = self._vectors(
            len(documents),
            lambda i: rows(self._bounded(documents[i], f"text {i}", truncate)),
            truncate=truncate,
            progress=progress,
        ).astype(np.float64)
        scores = made[:, 0] - made[:, 1] if width == 2 else made[:, 0]
        return [float(score) for score in _SCORES["" if raw else self._modules.score](scores)]

    def stats(self) -> ModelStats:
        """Counts since the model was loaded: `prompts` and `prompt_tokens` of what was run, and `steps`."""
        self._check_open()
        return ModelStats(**self._totals)

    def cancel(self) -> None:
        """End the call that runs, from any thread: it raises `AkunuError`."""
        self._encoder.cancel()

    def close(self) -> None:
        """Free the model's memory; may be called twice. A running call is cancelled and waited for."""
        self._closed = True
        if not self._forked():
            with contextlib.suppress(AkunuError):  # closed already
                self._encoder.cancel()
            with self._calls, contextlib.suppress(AkunuError):  # within a call, at its end
                self._encoder.close()

    # -- inside ----------------------------------------------------------------------------------------------

    @contextmanager
    def _turn(self, tokens: int = 0) -> Iterator[None]:
        self._check_process()
        with self._calls:
            self._check_open()
            try:
                yield
            finally:
                if self._closed:  # meanwhile
                    self._encoder.close()

    def _prompt(self, name: str | None) -> str:
        if name is None:
            default = self._modules.default_prompt
            return self.prompts[default] if default is not None else ""
        if not isinstance(name, str) or name not in self.prompts:
            known = f"there is {', '.join(self.prompts)}" if self.prompts else "the model has none"
            raise InvalidArgumentError(
                f"prompt: no {name!r}; {known}. Another text can be put before each text itself"
            )
        return self.prompts[name]

    def _bounded(self, text: str, what: str, truncate: bool) -> str:
        """A text that may fit, or that is cut to one that is still too long.

        Raises
        ------
        ContextLengthError
            It cannot fit.
        """
        if len(text) <= self.context:
            return text
        if not truncate:
            check_fits(self.tokenizer, [text], self.context, what)
            return text
        most = self.context * self.tokenizer.longest
        return text[-most:] if self._modules.cuts_front else text[:most]

    def _text(self, i: int, text: Prompt, prefix: str, truncate: bool) -> _Rows:
        if isinstance(text, str):
            ids = self._encode(prefix + self._bounded(text, f"text {i}", truncate))
            around = self.tokenizer.template
            return self._ended(ids, 0, len(around.before), around.after)
        if not isinstance(text, Sequence) and not hasattr(text, "__array__"):
            raise InvalidArgumentError(
                f"texts: number {i}: expected a text or its token ids, got {text!r} ({type(text).__name__})"
            )
        try:
            return _Rows(self._checked_ids(text))
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"texts: number {i}: {error}") from None

    def _encode(self, text: str, *, add_special: bool = True) -> list[int]:
        given = text.lower() if self._modules.lowercase else text
        return self.tokenizer.encode(given, add_special=add_special)

    def _pair(self, query: list[int], document: str) -> _Rows:
        """Query and document as one text, the second part of another kind where the model knows kinds."""
        pair = self.tokenizer.template.pair
        begin = [*pair.before, *query]
        ids = [*begin, *pair.between, *self._encode(document, add_special=False), *pair.after]
        second = 0
        if self._config.kinds > 1 and pair.first_kind is not None:
            second = len(begin) + pair.first_kind
        return self._ended(
            ids,
            second,
            len(begin) + len(pair.between),
            pair.after,
        )

    def _question(self, query: str, document: str, instruction: str | None) -> _Rows:
        """The question whether the document is relevant, up to where "yes" or "no" would follow."""
        encode = self.tokenizer.encode_segments
        tail = encode([ENDING], add_bos=False)
        ids = encode(question(query, document, instruction))
        return _Rows(np.asarray(ids, np.uint32), kept=len(tail))

    def _ended(self, ids: list[int], second: int, first: int, after: tuple[int, ...]) -> _Rows:
        """Of which the tokens `after` a text are kept, or where the front is cut so many first ones."""
        kept = len(after) if after and tuple(ids[-len(after) :]) == after else 0
        return _Rows(np.asarray(ids, np.uint32), second, kept, first if self._modules.cuts_front else None)

    def _vectors(
        self,
        n: int,
        make: Callable[[int], _Rows],
        *,
        truncate: bool,
        progress: Callable[[int, int], None] | None,
    ) -> npt.NDArray[np.float32]:
        """float32 [n, width] of the texts that `make` gives, by their numbers."""
        check_callback(progress)
        cut = 0
        parts = [np.empty((0, self._encoder.width), np.float32)]
        start = 0

        def report(done: int) -> None:
            self._totals["steps"] += 1
            if progress is not None:
                progress(start + done, n)

        for start in range(0, n, _BATCH):
            texts = []
            for i in range(start, min(n, start + _BATCH)):
                rows = make(i)
                if rows.ids.size == 0:
                    raise InvalidArgumentError(f"texts: number {i} has no tokens")
                if rows.ids.size > self.context:
                    if not truncate:
                        raise ContextLengthError(
                            f"text {i} has {rows.ids.size} tokens, the model takes {self.context}; "
                            "shorten it, or have it cut (truncate)"
                        )
                    rows = rows.cut(self.context)
                    cut += 1
                texts.append((rows.ids, rows.second))
            with self._turn():
                parts.append(self._encoder.encode(texts, report))
                self._totals["prompts"] += len(texts)
                self._totals["prompt_tokens"] += sum(ids.size for ids, _ in texts)
        if cut:
            warnings.warn(f"{cut} of {n} texts were cut to {self.context} tokens", stacklevel=3)
        return np.concatenate(parts)


def _converted(vectors: npt.NDArray[np.float32], normalize: bool, output: Output) -> npt.NDArray[Any]:
    if output == "binary":
        return np.asarray(np.packbits(vectors > 0, axis=1))
    if output == "int8":
        top = np.maximum(np.abs(vectors).max(axis=1, keepdims=True, initial=0), np.float32(1e-30))
        return np.asarray(np.rint(vectors * (127 / top)).astype(np.int8))
    if normalize:
        lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-12))
        return np.asarray(vectors / lengths, np.float32)
    return np.ascontiguousarray(vectors)
