"""A loaded model that makes vectors: texts in, embeddings or scores out."""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, overload

import numpy as np
import numpy.typing as npt

from akunu._core import Encoder
from akunu.api.encoders.asking import ENDING, question
from akunu.api.scheduling import ModelStats
from akunu.api.tokenizing import Prompt, Tokenizing
from akunu.base.arguments import Limit, flag
from akunu.base.errors import AkunuError, ContextLengthError, InvalidArgumentError, UnsupportedError
from akunu.base.progress import check_callback
from akunu.files.describe.config import EncoderConfig, ModelConfig
from akunu.files.describe.encoder_modules import Modules
from akunu.tokenizer import Tokenizer, check_fits

__all__ = ["EmbeddingModel", "Output", "Precision"]

Output = Literal["float32", "int8", "binary"]
"""Types of vectors, each converted on its own."""
_OUTPUTS: Final = ("float32", "int8", "binary")

Precision = Literal["float32", "int8", "uint8", "binary", "ubinary"]
"""Types of vectors as `quantize_embeddings` of Sentence Transformers has them."""
_PRECISIONS: Final = ("float32", "int8", "uint8", "binary", "ubinary")

Ids = npt.NDArray[np.uint32]
Scores = npt.NDArray[np.float64]

_SCORES: Final[Mapping[str, Callable[[Scores], Scores]]] = {
    "sigmoid": lambda scores: 1.0 / (1.0 + np.exp(-scores)),
    "tanh": np.tanh,
    "": lambda scores: scores,
}
"""The functions that a score goes through, as `Modules.score` names them."""

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

    `akunu.EmbeddingModel("minilm")` is `akunu.load("minilm", task="embed")`, with the same options; a
    reranker needs `task="rerank"`.

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

    _task = "embed"

    @overload
    def __init__(self, model: str | os.PathLike[str], /, **options: Any) -> None: ...
    @overload
    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer | None,
        config: ModelConfig,
        metadata: Mapping[str, object],
        path: Path,
        modules: Modules,
    ) -> None: ...
    def __init__(  # type: ignore[misc]  # a name loads, and makes no call of this
        self,
        encoder: Any,
        tokenizer: Any,
        config: ModelConfig,
        metadata: Mapping[str, object],
        path: Path,
        modules: Modules,
    ) -> None:
        super().__init__(encoder, tokenizer, config, metadata, path)
        assert config.encoder is not None
        self._encoder: Encoder = encoder
        self._settings: EncoderConfig = config.encoder
        self._modules = modules
        self._calls = threading.RLock()  # a handler within a call does not wait: the engine refuses it
        self._totals: Counter[str] = Counter()
        self._warned = False  # that a prompt was given by its name

    @property
    def dimensions(self) -> int:
        """Elements of a vector, unless `embed` is asked for others."""
        return min(self._modules.dimensions or self._encoder.width, self._encoder.width)

    @property
    def prompts(self) -> Mapping[str, str]:
        """Texts that stand before an input to say what it is for, by name."""
        return self._modules.prompts

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes of a classifier, in the order of `classify`; () for other models."""
        if self._settings.task != "rank" or self._encoder.width == 1 or not self.config.bidirectional:
            return ()
        named = self._modules.labels
        if len(named) == self._encoder.width:
            return named
        return tuple(f"LABEL_{i}" for i in range(self._encoder.width))

    def embed(
        self,
        texts: str | Sequence[Prompt],
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        dimensions: int | None = None,
        normalize: bool | None = None,
        normalize_embeddings: bool | None = None,
        truncate: bool = False,
        precision: Precision | None = None,
        output: Output = "float32",
        parse_special: bool = True,
        progress: Callable[[int, int], None] | None = None,
    ) -> npt.NDArray[Any]:
        """Compute the embedding vectors of texts.

        Parameters
        ----------
        texts
            Each a string, to which the tokenizer adds what the model expects, or token ids, which are taken
            as they are. A lone string is a list of one.
        prompt_name
            The name of one of `prompts`, which is put before each text.
        prompt
            A text that is put before each one; "" puts none there. A name of `prompts` still stands for its
            text, with a warning. Without it and without `prompt_name`, the model's default prompt is used, if
            it has one.
        dimensions
            Keep the first so many elements, for models that were trained for it ("Matryoshka"); None: all, or
            as many as the model's files say (`truncate_dim`).
        normalize, normalize_embeddings
            Scale each vector to the length 1, after it was shortened. None: yes, unless the model's files say
            that lengths count (a `similarity_fn_name` other than cosine without a module Normalize).
        truncate
            Cut texts that are longer than `context`, and warn of them. Without it they are an error.
        precision
            "float32"; "int8" or "uint8": each dimension scaled from its range in these vectors to that of the
            type; "binary" or "ubinary": a bit for each element, whether it is positive, the first in the
            highest bit of an int8 (from which 128 is subtracted) or uint8. As in Sentence Transformers.
        output
            "float32"; "int8": each vector scaled so that its greatest element is 127, which keeps cosines and
            does not depend on the other vectors; "binary": as the precision "ubinary".
        parse_special
            Read control tokens in texts, such as "[SEP]", as such, as Transformers does.
        progress
            Called as `progress(done, texts)` now and then.

        Returns
        -------
        ndarray
            float32, int8 or uint8 [n, dimensions], or for bits [n, ceil(dimensions / 8)].

        Raises
        ------
        ContextLengthError
            A text is longer than `context`.
        InvalidArgumentError
            An argument is out of range, or a text has no tokens.
        UnsupportedError
            The model is a reranker or a classifier.

        Examples
        --------
        >>> model.embed(["one", "two"], prompt_name="query", dimensions=256).shape  # doctest: +SKIP
        (2, 256)
        """
        if self.labels:
            raise UnsupportedError(f"{self.name} is a classifier: use classify(texts)")
        if self._settings.task == "rank":
            raise UnsupportedError(f"{self.name} is a reranker: use rerank(query, documents)")
        check_callback(progress)
        if output not in _OUTPUTS:
            raise InvalidArgumentError(f"output: found {output!r}, expected one of {', '.join(_OUTPUTS)}")
        if precision is not None and precision not in _PRECISIONS:
            raise InvalidArgumentError(
                f"precision: found {precision!r}, expected one of {', '.join(_PRECISIONS)}"
            )
        if precision is not None and output != "float32":
            raise InvalidArgumentError("precision: is another way to say output; give one of them")
        if normalize is not None and normalize_embeddings is not None:
            raise InvalidArgumentError("normalize_embeddings: is another name of normalize; give one of them")
        scaled = flag("normalize", normalize, default=self._modules.normalize)
        scaled = flag("normalize_embeddings", normalize_embeddings, default=scaled)
        special = flag("parse_special", parse_special, default=True)
        size = self.dimensions
        if dimensions is not None:
            size = Limit(int, 1, self._encoder.width).check("dimensions", dimensions)
        prefix = self._prompt(prompt_name, prompt)
        if not isinstance(texts, Iterable) or isinstance(texts, bytes | Mapping):
            raise InvalidArgumentError(f"texts: expected a list of texts, got {type(texts).__name__}")
        items: list[Prompt] = [texts] if isinstance(texts, str) else list(texts)
        vectors = self._vectors(
            len(items),
            lambda i: self._text(i, items[i], prefix, special, truncate),
            truncate=truncate,
            progress=progress,
        )
        vectors = _normalized(vectors[:, :size]) if scaled else np.ascontiguousarray(vectors[:, :size])
        return _converted(vectors, output) if precision is None else _quantized(vectors, precision)

    def classify(
        self,
        texts: Sequence[str | tuple[str, str]],
        *,
        raw: bool = False,
        truncate: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> npt.NDArray[np.float32]:
        """Compute the scores of all classes for texts, or for pairs of texts.

        Parameters
        ----------
        texts
            Each a string, or a pair of strings for a model that compares two, such as one for inference.
        raw
            Give the model's own scores (logits); else probabilities, by a softmax, or by a sigmoid where
            `config.json` says `"problem_type": "multi_label_classification"`.
        truncate
            Cut inputs that are longer than `context`, and warn of them.
        progress
            Called as `progress(done, texts)` now and then.

        Returns
        -------
        ndarray
            float32 [n, classes], by the order of `labels`.

        Raises
        ------
        ContextLengthError, InvalidArgumentError
            As in `embed`.
        UnsupportedError
            The model is not a classifier.

        Examples
        --------
        >>> model.labels, model.classify([("It rains.", "It is dry.")])  # doctest: +SKIP
        (('contradiction', 'entailment', 'neutral'), array([[0.98, 0.01, 0.01]], dtype=float32))
        """
        if not self.labels:
            kind = (
                "a reranker: use rerank" if self._settings.task == "rank" else "an embedding model: use embed"
            )
            raise UnsupportedError(f"{self.name} is {kind}")
        check_callback(progress)
        if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
            raise InvalidArgumentError("texts: expected a list of texts or pairs of texts")
        items = list(texts)

        def rows(i: int) -> _Rows:
            item = items[i]
            if isinstance(item, str):
                return self._text(i, item, "", True, truncate)
            if isinstance(item, tuple | list) and len(item) == 2 and all(isinstance(t, str) for t in item):
                first, second = (self._bounded(text, f"text {i}", truncate) for text in item)
                return self._pair(self._encode(first, add_special=False, parse_special=True), second)
            raise InvalidArgumentError(
                f"texts: number {i}: expected a text or a pair of texts, got {item!r:.80}"
            )

        scores = self._vectors(len(items), rows, truncate=truncate, progress=progress)
        if raw:
            return scores
        if self._modules.multi_label:
            return np.asarray(_SCORES["sigmoid"](scores.astype(np.float64)), np.float32)
        powers = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True), np.float32)

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
        """Score how relevant documents are for a query.

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
                f"{self.name} is a classifier with {width} labels: use classify(pairs); "
                "reranking needs a model with one label"
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
        query = self._bounded(query, "the query", False)
        first = [] if asked else self._encode(query, add_special=False, parse_special=True)

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

    @property
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

    def _prompt(self, name: str | None, text: str | None) -> str:
        """Return what is put before each text."""
        if name is not None:
            if text is not None:
                raise InvalidArgumentError("prompt_name: there is a prompt, too; give one of them")
            if not isinstance(name, str) or name not in self.prompts:
                known = f"there is {', '.join(self.prompts)}" if self.prompts else "the model has none"
                raise InvalidArgumentError(
                    f"prompt_name: no {name!r}; {known}. Any other text can be given as the prompt"
                )
            return self.prompts[name]
        if text is None:
            default = self._modules.default_prompt
            return self.prompts[default] if default is not None else ""
        if not isinstance(text, str):
            raise InvalidArgumentError(f"prompt: expected a text, got {text!r:.80} ({type(text).__name__})")
        if text not in self.prompts:
            return text
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"prompt: {text!r} is the name of a prompt, and its text is used; write prompt_name={text!r} "
                "instead, as with Sentence Transformers, where prompt is always a text",
                UserWarning,
                stacklevel=3,
            )
        return self.prompts[text]

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

    def _text(self, i: int, text: Prompt, prefix: str, special: bool, truncate: bool) -> _Rows:
        if isinstance(text, str):
            text = self._bounded(text, f"text {i}", truncate)
            ids = self._encode(prefix + text, add_special=not self._modules.static, parse_special=special)
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

    def _encode(self, text: str, *, add_special: bool = True, parse_special: bool = False) -> list[int]:
        given = text.lower() if self._modules.lowercase else text
        return self.tokenizer.encode(given, add_special=add_special, parse_special=parse_special)

    def _pair(self, query: list[int], document: str) -> _Rows:
        """Query and document as one text, the second part of another kind where the model knows kinds."""
        pair = self.tokenizer.template.pair
        begin = [*pair.before, *query]
        second = self._encode(document, add_special=False, parse_special=True)
        ids = [*begin, *pair.between, *second, *pair.after]
        kind = 0
        if self._config.kinds > 1 and pair.first_kind is not None:
            kind = len(begin) + pair.first_kind
        return self._ended(
            ids,
            kind,
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
        """Rows that keep the tokens `after` a text when cut; where the front is cut, the `first` ones."""
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


def _normalized(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-12))
    return np.asarray(vectors / lengths, np.float32)


def _converted(vectors: npt.NDArray[np.float32], output: Output) -> npt.NDArray[Any]:
    if output == "binary":
        return np.asarray(np.packbits(vectors > 0, axis=1))
    if output == "int8":
        top = np.maximum(np.abs(vectors).max(axis=1, keepdims=True, initial=0), np.float32(1e-30))
        return np.asarray(np.rint(vectors * (127 / top)).astype(np.int8))
    return vectors


def _quantized(vectors: npt.NDArray[np.float32], precision: Precision) -> npt.NDArray[Any]:
    """Convert vectors as `quantize_embeddings` of Sentence Transformers does without calibration."""
    if precision == "float32":
        return vectors
    if precision in ("binary", "ubinary"):
        bits = np.packbits(vectors > 0, axis=1)
        return np.asarray(bits if precision == "ubinary" else (bits.astype(np.int16) - 128).astype(np.int8))
    if not len(vectors):
        return np.asarray(vectors.astype(precision))
    low = vectors.min(axis=0)
    step = np.maximum((vectors.max(axis=0) - low) / np.float32(255), np.float32(1e-30))
    codes = np.clip((vectors - low) / step, 0, 255)
    return np.asarray(codes.astype(np.uint8) if precision == "uint8" else (codes - 128).astype(np.int8))
