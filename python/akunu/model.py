"""A loaded model: text in, text out.

`Model` checks arguments, turns text into ids and back, and serves one generation at a time; the loop itself
is `akunu.generation`, the arguments are `akunu.options`.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from akunu.errors import AkunuError, InvalidArgumentError, TokenizerError
from akunu.fairlock import FairLock
from akunu.generation import Completion, Generation
from akunu.options import GenerationOptions, Limit, Sampling, resolve
from akunu.perplexity import perplexity
from akunu.tokenizer import Segment

if TYPE_CHECKING:
    from typing import Self, Unpack

    from akunu._core import Engine
    from akunu.chat import ChatTemplate
    from akunu.config import ModelConfig
    from akunu.tokenizer import Tokenizer

__all__ = ["Memory", "Messages", "Model", "Prompt", "Stream"]

Prompt = str | Sequence[int] | npt.NDArray[np.integer[Any]]
"""Text, or token ids."""
Messages = Sequence[Mapping[str, Any]]
"""Messages of a conversation, or definitions of tools."""

_TEMPLATE_KEY: Final = "tokenizer.chat_template"


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that a model uses, by purpose."""

    weights: int
    """Copied or repacked weights."""
    weights_mapped: int
    """Weights used straight from the file's mapping: the system may drop and re-read these pages."""
    kv_cache: int
    """Keys and values of the whole context."""
    scratch: int
    """Activations and logits."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.weights + self.weights_mapped + self.kv_cache + self.scratch


class Stream(Iterator[str]):
    """The pieces of a text, as the model writes it.

    The model is taken at the first piece, and released at the end, by `close`, or when the stream is dropped;
    a stream that is never read holds nothing. Closed early, it leaves the KV cache as if the generation had
    ended with the last piece that was read.

    Examples
    --------
    >>> with model.stream("Once upon a time", max_tokens=50) as pieces:  # doctest: +SKIP
    ...     for piece in pieces:
    ...         print(piece, end="", flush=True)
    >>> pieces.completion.stats.decode_tokens_per_second  # doctest: +SKIP
    """

    def __init__(self, model: Model, generation: Generation) -> None:
        self._model = model
        self._generation = generation
        self._steps = model._serve(generation, weakref.ref(self))
        self._mutex = threading.RLock()  # close() from another thread waits for the piece in the making

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        self._model._check_process()
        with self._mutex:
            return next(self._steps)

    @property
    def completion(self) -> Completion:
        """The result so far, as of `Model.generate`; before the end, its finish reason is `cancelled`."""
        self._model._check_process()
        with self._mutex:
            return self._generation.completion()

    def cancel(self) -> None:
        """End this stream at the next piece, from any thread; what was computed is still given."""
        self._model._cancel(self._generation)

    def close(self) -> None:
        """End the stream now. More pieces cannot be read."""
        if self._model._forked():
            return
        self._model._cancel(self._generation)
        with self._mutex:
            self._steps.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Model:
    """A model, as `akunu.load` returns it.

    Methods may be called from any thread; one generation runs at a time, and the others wait in the order in
    which they came. While a thread has an open stream, another generation in the same thread is an error.

    The KV cache keeps the latest prompt and its continuation, so a prompt that begins like the one before
    (a conversation) only runs what is new. The text does not depend on that.

    A model belongs to the process that loaded it. In a process forked from that one its use is an error.

    Attributes
    ----------
    config : ModelConfig
        Architecture and sizes.
    sampling : Sampling
        Defaults of the sampling arguments: the model file's recommendations, and Akunu's for the rest.
    path : Path
        The file it was loaded from.
    name : str
        `general.name` of the file, else the file's name.
    context : int
        Most tokens of prompt and generated text together.
    device : str
        Name of the device that the model runs on.
    """

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer | None,
        config: ModelConfig,
        metadata: Mapping[str, object],
        path: Path,
    ) -> None:
        self.config = config
        self.sampling = Sampling.from_metadata(metadata, engine.context)
        self.path = path
        name = metadata.get("general.name")
        self.name = name if isinstance(name, str) and name else path.stem
        self.context = engine.context
        self.device = engine.device
        self._engine = engine
        self._tokenizer = tokenizer
        # Not all of the metadata: its token list alone can take tens of megabytes.
        self._template_metadata = {k: v for k, v in metadata.items() if k.startswith(_TEMPLATE_KEY)}
        self._template: ChatTemplate | None = None
        self._lock = FairLock()
        # Guards the next three: a cancel must not hit the next generation, nor close miss one that begins.
        self._switch = threading.RLock()
        self._running: Generation | None = None
        self._stream: weakref.ref[Stream] | None = None
        self._closed = False
        self._process = os.getpid()

    # -- generating ------------------------------------------------------------------------------------------

    def generate(self, prompt: Prompt, **options: Unpack[GenerationOptions]) -> Completion:
        """Continue a prompt.

        Parameters
        ----------
        prompt
            Text, to which the tokenizer adds what the model expects (such as a BOS token), or token ids,
            which are taken as they are. Text that looks like a control token is not one.
        **options
            `max_tokens`, `temperature`, `top_k`, `top_p`, `min_p`, `typical_p`, `repeat_penalty`,
            `presence_penalty`, `frequency_penalty`, `penalty_window`, `logit_bias`, `seed`, `stop`,
            `logprobs`: see `akunu.GenerationOptions`. What is not given comes from `sampling`.

        Returns
        -------
        Completion
            Text, ids, log-probabilities, the reason to end, and statistics.

        Raises
        ------
        InvalidArgumentError
            For an argument that is unknown or out of range, or an empty prompt.
        ContextLengthError
            If the prompt does not fit the context.
        KeyboardInterrupt
            On Ctrl-C, within one chain of tokens; the model stays usable.

        Examples
        --------
        >>> result = model.generate("The capital of France is", max_tokens=8, temperature=0)  # doctest: +SKIP
        >>> result.text, result.finish_reason  # doctest: +SKIP
        """
        return _drain(self.stream(prompt, **options))

    def stream(self, prompt: Prompt, **options: Unpack[GenerationOptions]) -> Stream:
        """Continue a prompt, and give the text piece by piece.

        Takes and raises what `generate` does; arguments are checked at once, the model runs when the first
        piece is read.

        Returns
        -------
        Stream
            An iterator of texts that also holds the `completion`.
        """
        return self._start(self._prompt_ids(prompt), options)

    def chat(
        self,
        messages: Messages,
        *,
        tools: Messages | None = None,
        template_variables: Mapping[str, Any] | None = None,
        **options: Unpack[GenerationOptions],
    ) -> Completion:
        """Answer the last message of a conversation.

        Parameters
        ----------
        messages
            The whole conversation, each with `role` ("system", "user", "assistant", …) and `content`; the
            chat template of the model file formats it. A message is always text: what looks like a control
            token in it is not one.
        tools
            Functions the model may call, as JSON schemas, for templates that know them.
        template_variables
            More variables for the template, such as `{"enable_thinking": False}`.
        **options
            As in `generate`.

        Returns
        -------
        Completion
            Its text is the content of the next assistant message.

        Raises
        ------
        TemplateError
            If the model file has no chat template (see `chat_template`), or it refuses the messages.
        InvalidArgumentError, ContextLengthError, KeyboardInterrupt
            As in `generate`.

        Examples
        --------
        >>> messages = [{"role": "user", "content": "Hello!"}]
        >>> answer = model.chat(messages, max_tokens=64)  # doctest: +SKIP
        >>> messages += [{"role": "assistant", "content": answer.text}, {"role": "user", "content": "Go on."}]
        >>> model.chat(messages, max_tokens=64).stats.cached_tokens  # doctest: +SKIP
        """
        return _drain(
            self.stream_chat(messages, tools=tools, template_variables=template_variables, **options)
        )

    def stream_chat(
        self,
        messages: Messages,
        *,
        tools: Messages | None = None,
        template_variables: Mapping[str, Any] | None = None,
        **options: Unpack[GenerationOptions],
    ) -> Stream:
        """Answer the last message of a conversation, piece by piece.

        Takes and raises what `chat` does, and returns what `stream` does.
        """
        ids = self.chat_template.encode(messages, tools=tools, variables=template_variables)
        return self._start(self._prompt_ids(ids), options)

    def cancel(self) -> None:
        """End the generation that is running, from any thread; those that wait are not touched.

        A cancelled `generate` returns the text so far with the finish reason `cancelled`; a cancelled stream
        ends after the piece that is being made. Does nothing when nothing runs.
        """
        with self._switch:
            if self._running is not None:
                self._cancel(self._running)

    def _cancel(self, generation: Generation) -> None:
        """Cancel one generation, whether it runs or waits."""
        generation.cancel()
        with self._switch:
            if self._running is generation:
                self._engine.cancel()

    def _start(self, ids: npt.NDArray[np.uint32], options: GenerationOptions) -> Stream:
        self._check_open()
        request = resolve(options, self.sampling, self.config.vocab_size)
        return Stream(self, Generation(self._engine, self._tokenizer, ids, request))

    def _serve(self, generation: Generation, stream: weakref.ref[Stream]) -> Generator[str, None, None]:
        """The pieces of one generation, once it is its turn."""
        with self._lock.hold():
            with self._switch:
                self._check_open()
                self._running, self._stream = generation, stream
            try:
                with closing(generation.pieces()) as pieces:
                    for piece in pieces:
                        yield piece
                        self._lock.adopt()  # this thread reads the stream now
            finally:
                with self._switch:
                    self._running = self._stream = None

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

    @property
    def chat_template(self) -> ChatTemplate:
        """The chat template, by default the one of the model file; may be set.

        Raises
        ------
        TemplateError
            If the file has none, or it does not compile.

        Examples
        --------
        >>> model.chat_template = akunu.ChatTemplate.named("chatml", model.tokenizer)  # doctest: +SKIP
        """
        if self._template is None:
            from akunu.chat import ChatTemplate

            self._template = ChatTemplate.from_metadata(self._template_metadata, self.tokenizer)
        return self._template

    @chat_template.setter
    def chat_template(self, template: ChatTemplate) -> None:
        from akunu.chat import ChatTemplate

        if not isinstance(template, ChatTemplate):
            raise InvalidArgumentError(
                f"chat_template: expected an akunu.ChatTemplate, got {type(template).__name__}; "
                "make one of a text by ChatTemplate(text, model.tokenizer)"
            )
        self._template = template

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

    @property
    def memory(self) -> Memory:
        """Bytes that the model uses, by purpose."""
        self._check_open()
        return Memory(**self._engine.memory)

    @property
    def engine(self) -> Engine:
        """The compiled engine, for tools that print its plan or time its commands; not synchronised."""
        self._check_open()
        return self._engine

    # -- the end ---------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Free the model's memory; may be called twice. A running generation is cancelled and waited for."""
        if self._forked():  # the memory goes with the last reference
            self._closed = True
            return
        with self._switch:
            self._closed = True
            self.cancel()
            stream = self._stream() if self._stream else None
        if stream is not None:
            stream.close()
        with self._lock.hold():
            self._engine.close()

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
        """The engine for one call, when the generations before it are done."""
        self._check_open()
        with self._lock.hold():
            self._check_open()
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


def _drain(stream: Stream) -> Completion:
    with closing(stream):
        for _ in stream:
            pass
    return stream.completion
