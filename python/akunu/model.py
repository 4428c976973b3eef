"""A loaded model: text in, text out.

`Model` checks arguments, turns text into ids and back, and starts generations; the loop itself
is `akunu.generation`, the arguments are `akunu.options`.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, Unpack, overload

import numpy as np
import numpy.typing as npt

from akunu._core import Engine
from akunu.chat import ChatTemplate
from akunu.chat.reading import Reading
from akunu.chatting import Chatting
from akunu.config import ModelConfig
from akunu.conversion.importance import ImportanceMatrix
from akunu.errors import AkunuError, InvalidArgumentError, TokenizerError, UnsupportedError
from akunu.generation import Completion, Generation
from akunu.memory import Memory
from akunu.options import GenerationOptions, Limit, Sampling, resolve
from akunu.perplexity import perplexity
from akunu.scheduling import ModelStats, Scheduler
from akunu.scheduling.page_files import PageFiles
from akunu.scheduling.writer import Writer
from akunu.signatures import spelled_out
from akunu.streams import AsyncStream, Stream, acompleted, acompleted_all, completed
from akunu.tokenizer import Segment, Tokenizer

if TYPE_CHECKING:
    from akunu.structured.compiler import Compiler

__all__ = ["Model", "Prompt"]

Prompt = str | Sequence[int] | npt.NDArray[np.integer[Any]]
"""Text, or token ids."""

MAX_TEXTS: Final = 256
"""Texts of one prompt."""
_TEMPLATE_KEY: Final = "tokenizer.chat_template"


class Model(Chatting):
    """A model, as `akunu.load` returns it.

    Methods may be called from any thread. Generations run together, up to `parallel` of them in each step;
    others wait in the order in which they came. None of them changes the text of another.

    The KV cache keeps earlier prompts and their continuations as long as it has room, so a prompt that begins
    like any of them (a conversation, a system prompt) only runs what is new, without a change to the text.

    A model belongs to the process that loaded it. In a process forked from that one its use is an error.
    """

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer | None,
        config: ModelConfig,
        metadata: Mapping[str, object],
        path: Path,
        page_files: PageFiles | None = None,
        draft: Engine | None = None,
    ) -> None:
        self._config = config
        self._sampling = Sampling.from_metadata(metadata, engine.context)
        self._path = path
        name = metadata.get("general.name")
        self._name = name if isinstance(name, str) and name else path.stem
        self._context = engine.context
        self._device = engine.device
        self._engine = engine
        self._tokenizer = tokenizer
        # Not all of the metadata: its token list alone can take tens of megabytes.
        self._template_metadata = {k: v for k, v in metadata.items() if k.startswith(_TEMPLATE_KEY)}
        self._template: ChatTemplate | None = None
        writer = None
        if draft is not None:
            sizes = [Memory(**e.memory) for e in (draft, engine)]
            smaller, larger = (size.weights + size.weights_mapped for size in sizes)
            writer = Writer(draft, config.vocab_size, smaller / larger)
        self._draft = draft
        self._scheduler = Scheduler(engine, page_files, writer)
        self._streams: weakref.WeakSet[Stream] = weakref.WeakSet()
        self._closed = False
        self._process = os.getpid()

    @property
    def config(self) -> ModelConfig:
        """Architecture and sizes."""
        return self._config

    @property
    def sampling(self) -> Sampling:
        """Defaults of the sampling arguments: the model file's recommendations, and Akunu's for the rest."""
        return self._sampling

    @property
    def path(self) -> Path:
        """The file it was loaded from."""
        return self._path

    @property
    def name(self) -> str:
        """`general.name` of the file, else the file's name."""
        return self._name

    @property
    def context(self) -> int:
        """Most tokens of prompt and generated text together."""
        return self._context

    @property
    def device(self) -> str:
        """Name of the device that the model runs on."""
        return self._device

    # -- generating ------------------------------------------------------------------------------------------

    @overload
    def generate(self, prompt: Prompt, **options: Unpack[GenerationOptions]) -> Completion: ...
    @overload
    def generate(
        self, prompt: Prompt, *, n: int, **options: Unpack[GenerationOptions]
    ) -> list[Completion]: ...
    @spelled_out
    def generate(
        self, prompt: Prompt, *, n: int | None = None, **options: Unpack[GenerationOptions]
    ) -> Completion | list[Completion]:
        """Continue a prompt.

        Parameters
        ----------
        prompt
            Text, to which the tokenizer adds what the model expects (such as a BOS token), or token ids,
            which are taken as they are. Text that looks like a control token is not one.
        n
            Texts to write, at most 256, as a list; the prompt is run once. Text i has the seed `seed + i`
            (modulo 2**64), so it is that of a call of its own with that seed.
        **options
            See `akunu.GenerationOptions`. What is not given comes from `sampling`.

        Returns
        -------
        Completion
            Text, ids, log-probabilities, the reason to end, and statistics. With `n`, a list of `n` of them.

        Raises
        ------
        InvalidArgumentError
            For an argument that is unknown or out of range, or an empty prompt.
        ContextLengthError
            If the prompt does not fit the context.
        BusyError
            If other generations did not end within `wait_timeout`.
        KeyboardInterrupt
            On Ctrl-C, within one chain of tokens; the model stays usable.

        Examples
        --------
        >>> result = model.generate("The capital of France is", max_tokens=8, temperature=0)  # doctest: +SKIP
        >>> result.text, result.finish_reason  # doctest: +SKIP
        """
        if n is None:
            return completed(self.stream(prompt, **options))
        return self._completed_all([self.stream(prompt, **one) for one in self._seeded(n, options)])

    @spelled_out
    def stream(self, prompt: Prompt, **options: Unpack[GenerationOptions]) -> Stream:
        """Continue a prompt, and give the text piece by piece.

        Raises what `generate` does; arguments are checked at once, the model runs when the first piece is
        read.

        Parameters
        ----------
        prompt
            As in `generate`.
        **options
            See `akunu.GenerationOptions`.

        Returns
        -------
        Stream
            An iterator of `Piece`, a `str` with its token ids, that also holds the `completion`.
        """
        return self._start(prompt, options)

    @overload
    async def agenerate(self, prompt: Prompt, **options: Unpack[GenerationOptions]) -> Completion: ...
    @overload
    async def agenerate(
        self, prompt: Prompt, *, n: int, **options: Unpack[GenerationOptions]
    ) -> list[Completion]: ...
    @spelled_out
    async def agenerate(
        self, prompt: Prompt, *, n: int | None = None, **options: Unpack[GenerationOptions]
    ) -> Completion | list[Completion]:
        """Continue a prompt, for asyncio: `generate` that leaves the event loop free.

        When its task is cancelled, the generation ends and the model is free for others.

        Parameters
        ----------
        prompt
            As in `generate`.
        n
            As in `generate`.
        **options
            See `akunu.GenerationOptions`.

        Examples
        --------
        >>> result = await model.agenerate("The capital of France is")  # doctest: +SKIP
        """
        if n is None:
            return await acompleted(self.astream(prompt, **options))
        return await acompleted_all([self.astream(prompt, **one) for one in self._seeded(n, options)])

    @spelled_out
    def astream(self, prompt: Prompt, **options: Unpack[GenerationOptions]) -> AsyncStream:
        """Continue a prompt, piece by piece, for asyncio.

        Raises what `generate` does; arguments are checked at once.

        Parameters
        ----------
        prompt
            As in `generate`.
        **options
            See `akunu.GenerationOptions`.

        Returns
        -------
        AsyncStream
            For `async for`; also an asynchronous context manager.

        Examples
        --------
        >>> async for piece in model.astream("Once upon a time"):  # doctest: +SKIP
        ...     print(piece, end="", flush=True)
        """
        return AsyncStream(self.stream(prompt, **options))

    def generate_batch(
        self,
        prompts: Sequence[Prompt],
        *,
        progress: Callable[[int, int], None] | None = None,
        **options: Unpack[GenerationOptions],
    ) -> list[Completion]:
        """Continue many prompts, as many of them together as the model runs at a time.

        Parameters
        ----------
        prompts
            Each as in `generate`.
        progress
            Called as `progress(done, prompts)` after each of them, in order.
        **options
            See `akunu.GenerationOptions`; the same for all. With a `seed`, each text is the one it is alone.

        Returns
        -------
        list of Completion
            One for each prompt, in their order.

        Raises
        ------
        InvalidArgumentError, ContextLengthError, KeyboardInterrupt
            As in `generate`, for any of them; the others are then cancelled.

        Examples
        --------
        >>> [str(c) for c in model.generate_batch(["One", "Two"], max_tokens=5)]  # doctest: +SKIP
        """
        return self._completed_all([self.stream(prompt, **options) for prompt in prompts], progress)

    def _completed_all(
        self, streams: Sequence[Stream], progress: Callable[[int, int], None] | None = None
    ) -> list[Completion]:
        """Run all to their ends, as many together as there are slots."""
        done: list[Completion] = []
        with ThreadPoolExecutor(self._engine.parallel, "akunu-batch") as pool:
            try:
                for completion in pool.map(completed, streams):
                    done.append(completion)
                    if progress is not None:
                        progress(len(done), len(streams))
            except BaseException:
                for stream in streams:
                    stream.cancel()
                raise
        return done

    def cancel(self) -> None:
        """End the generations that are running, from any thread; those that wait are not touched.

        A cancelled `generate` returns the text so far with the finish reason `cancelled`; a cancelled stream
        ends after the piece that is being made. Does nothing when nothing runs.
        """
        for stream in list(self._streams):
            if stream.running:
                stream.cancel()

    @cached_property
    def _forms(self) -> Compiler:
        from akunu.structured.compiler import Compiler

        return Compiler(self.tokenizer, self.config.vocab_size)

    def prepare_forms(self) -> None:
        """Do now what the first text that has a form (`schema`, …) would otherwise wait for.

        It takes 0.8 s for a vocabulary of 150,000 tokens, in which no other thread of Python's runs.

        Raises
        ------
        TokenizerError, UnsupportedError
            There is no vocabulary, or it has no token that ends a text: texts of this model have no form.
        """
        self._check_open()
        self._forms.prepare()

    def _seeded(self, n: int, options: GenerationOptions) -> list[GenerationOptions]:
        """The options of each of `n` texts of one prompt."""
        count = Limit(int, 1, MAX_TEXTS).check("n", n)
        seed = resolve(options, self.sampling, self.config.vocab_size).seed
        return [{**options, "seed": (seed + i) % (1 << 64)} for i in range(count)]

    def _start(self, prompt: Prompt, options: GenerationOptions, reading: Reading | None = None) -> Stream:
        self._check_open()
        ids = self._prompt_ids(prompt)
        request = resolve(options, self.sampling, self.config.vocab_size)
        constraint = None if request.structure is None else self._forms.constraint(request.structure)
        if reading is not None and reading.budget is not None:
            constraint = self._forms.thinking(reading.budget, constraint)
        visible = reading.visible if reading else frozenset[int]()
        generation = Generation(self._scheduler, self._tokenizer, ids, request, visible, constraint)
        stream = Stream(self, generation, reading)
        self._streams.add(stream)
        return stream

    # -- vectors ---------------------------------------------------------------------------------------------

    def embed(
        self,
        texts: str | Sequence[Prompt],
        *,
        prompt: str | None = None,
        dimensions: int | None = None,
        normalize: bool = True,
        truncate: bool = False,
        output: Literal["float32", "int8", "binary"] = "float32",
        progress: Callable[[int, int], None] | None = None,
    ) -> npt.NDArray[Any]:
        """Vectors of texts, of an embedding model: see `akunu.encoders.model.EmbeddingModel.embed`."""
        raise UnsupportedError(f"{self.name} draws tokens; load an embedding model to make vectors")

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
        """Scores of documents, if this is a reranker: see `akunu.encoders.model.EmbeddingModel.rerank`."""
        raise UnsupportedError(f"{self.name} draws tokens; load a reranker to score documents")

    def transcribe(self, audio: Any, **options: Any) -> Any:
        """What is said in a recording, of a speech model: see `akunu.WhisperModel.transcribe`."""
        raise UnsupportedError(f"{self.name} reads text; load a Whisper model to transcribe speech")

    # -- text and ids ----------------------------------------------------------------------------------------

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the model file.

        Raises
        ------
        TokenizerError
            If the file has no vocabulary; then only token ids can be used.
        """
        if self._tokenizer is None:
            raise TokenizerError(f"{self.path.name} has no vocabulary: use token ids instead of text")
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
        return self.tokenizer.decode(self._checked_ids(ids).tolist())

    def _prompt_ids(self, prompt: Prompt) -> npt.NDArray[np.uint32]:
        if isinstance(prompt, str):
            # No EOS, even where the tokenizer would add one to a whole text: this one goes on.
            ids = np.asarray(self.tokenizer.encode_segments([Segment(prompt)]), np.uint32)
        else:
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
            raise InvalidArgumentError(f"token ids: {wrong} is not in [0, {self.config.vocab_size - 1}]")
        return array.astype(np.uint32)

    # -- looking inside --------------------------------------------------------------------------------------

    def logits(self, ids: Sequence[int] | npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.float32]:
        """Logits after each of `ids`, in a fresh run.

        Parameters
        ----------
        ids
            Token ids [n], at least one, at most the context.

        Returns
        -------
        ndarray
            float32 [n, vocab_size]; row i is for the token that follows `ids[i]`.

        Raises
        ------
        InvalidArgumentError, ContextLengthError
            For ids that are not in the vocabulary, or too many.
        """
        checked = self._prompt_ids(self._checked_ids(ids))
        with self._turn():
            return self._engine.logits(checked)

    def profile(self, *, position: int = 0, repeats: int = 16) -> list[dict[str, Any]]:
        """Run the dispatch table of one token, between two steps of what else runs, and time its commands.

        Parameters
        ----------
        position
            Tokens before that one.
        repeats
            Runs; the median counts.

        Returns
        -------
        list of dict
            For each command its `label`, `op`, `kernel`, `bytes`, `flops`, `seconds`, ….
        """
        with self._turn():
            return [dict(command) for command in self._engine.profile("decode", 1, position, repeats)]

    def perplexity(
        self,
        text: str,
        *,
        context: int | None = None,
        stride: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> float:
        """How surprised the model is by a text: exp of the mean negative log-likelihood of its tokens.

        Every token is scored once, by the window of `context` tokens that ends at most `stride` tokens after
        it; so it sees at least `context - stride` tokens before it, except at the beginning of the text. Each
        window begins with the BOS token if the model wants one. BOS itself, and without it the first token of
        the text, are not scored. A text that fits the context is one window. (llama.cpp's default figure is
        another one: it scores only the second half of each window of 512.)

        Parameters
        ----------
        text
            At least two tokens of it.
        context
            Tokens in a window; None: the model's context.
        stride
            Tokens by which the window moves; None: half a window.
        progress
            Called as `progress(tokens_scored, tokens)` after each window.

        Returns
        -------
        float
            At least 1; the vocabulary's size for a model that knows nothing.
        """
        tokenizer = self.tokenizer
        prefix = [tokenizer.bos_id] if tokenizer.add_bos and tokenizer.bos_id is not None else []
        ids = self._checked_ids(tokenizer.encode(text, add_special=False))
        if progress is not None and not callable(progress):
            raise InvalidArgumentError(f"progress: expected a function, got {progress!r}")
        size = self.context if context is None else Limit(int, 2, self.context).check("context", context)
        with self._turn():
            return perplexity(
                self._engine.nll,
                ids,
                prefix=prefix,
                context=size,
                stride=stride,
                progress=progress,
            )

    def importance_matrix(
        self, text: str, *, name: str = "text", progress: Callable[[int, int], None] | None = None
    ) -> ImportanceMatrix:
        """How much an error in each column of the weights counts, for `akunu.convert`.

        The text is run in windows of 512 tokens, or what the context holds, and each begins with the BOS
        token if the model wants one.

        Parameters
        ----------
        text
            Of the kind that the model is for; some ten thousand tokens are plenty.
        name
            What a file says of where it is from.
        progress
            Called as `progress(windows_done, windows)`.

        Returns
        -------
        ImportanceMatrix
            The mean square of each input of each matrix in the layers.

        Raises
        ------
        UnsupportedError
            The model is not on the CPU.
        """
        from akunu.conversion import importance

        tokenizer = self.tokenizer
        prefix = [tokenizer.bos_id] if tokenizer.add_bos and tokenizer.bos_id is not None else []
        ids = self._checked_ids(tokenizer.encode(text, add_special=False))
        window = min(importance.WINDOW, self.context)
        windows = importance.text_windows(ids, prefix, window)
        report = None if progress is None else lambda done: progress(done, len(windows))
        with self._turn():
            squares = self._engine.input_squares(windows, report)
        tokens = sum(len(one) for one in windows)
        return importance.from_squares(squares, self.config, tokens, window=window, texts=(name,))

    def stats(self) -> ModelStats:
        """Counts of what runs, waits, is cached, and was done since the model was loaded."""
        self._check_open()
        return self._scheduler.stats

    @property
    def memory(self) -> Memory:
        """Bytes that the model uses, by purpose, and the one that drafts for it."""
        self._check_open()
        own = Memory(**self._engine.memory)
        return own if self._draft is None else own + Memory(**self._draft.memory)

    def flush(self) -> None:
        """Wait until what ended texts left in the KV cache is in the files of `cache_dir`, if there is one.

        `close` does that too. Without either, what was not written yet when the process ends is run again.
        """
        self._check_open()
        self._scheduler.flush()

    # -- the end ---------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Free the model's memory; may be called twice. Running generations are cancelled and waited for."""
        self._closed = True
        if not self._forked():  # there, the memory goes with the last reference
            self._scheduler.close()

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

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """The engine for one call, between two steps of the generations."""
        self._check_open()
        with self._scheduler.exclusive():
            yield

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = " closed" if self._closed else ""
        return f"<akunu.Model {self.name} ({self.config.arch}), context {self.context}{state}>"
