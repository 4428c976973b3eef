"""A loaded model: text in, text out.

`Model` starts generations; the loop itself is `akunu.api.generation`, the arguments are `akunu.api.options`.
Chats, token ids and measurements are in the classes that it is made of.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Unpack, overload

import numpy as np
import numpy.typing as npt

from akunu._core import PAGE, Engine
from akunu.api.adapting import SCALE, AdapterInfo
from akunu.api.chatting import Chatting
from akunu.api.generation import Generation
from akunu.api.measuring import Measuring
from akunu.api.options import GenerationOptions, resolve, salt
from akunu.api.reading import Reading
from akunu.api.results import BatchError, Completion
from akunu.api.scheduling import ModelStats, Scheduler
from akunu.api.scheduling.head_proposer import HeadProposer
from akunu.api.scheduling.interrupts import held
from akunu.api.scheduling.model_proposer import ModelProposer, Proposer
from akunu.api.scheduling.page_files import PageFiles
from akunu.api.scheduling.prefix import Prefix
from akunu.api.scheduling.sequence import Adapter
from akunu.api.seeing import PlacedRows, Sight
from akunu.api.signatures import spelled_out
from akunu.api.streams import AsyncStream, Stream, acompleted, acompleted_all, completed
from akunu.api.tokenizing import Prompt
from akunu.api.vision.tower import Tower
from akunu.base.arguments import Limit
from akunu.base.errors import AkunuError, ContextLengthError, InvalidArgumentError
from akunu.base.memory import Memory
from akunu.base.progress import Progress, check_progress, reporter
from akunu.chat import ChatTemplate
from akunu.files.describe.config import ModelConfig, ModelSpec
from akunu.files.describe.sampling import Sampling
from akunu.tokenizer import Tokenizer

if TYPE_CHECKING:
    from akunu.chat.structured.compiler import Compiler

__all__ = ["Model"]

MAX_GENERATIONS: Final = 256
"""Most outputs of one prompt."""
_TEMPLATE_KEY: Final = "tokenizer.chat_template"


class Model(Chatting, Measuring):
    """A model, as `akunu.load` returns it.

    Methods may be called from any thread. Generations run together, up to `parallel` of them in each step;
    others wait in the order in which they came. None of them changes the output of another.

    The KV cache keeps earlier prompts and their continuations as long as it has room, so a prompt that begins
    like any of them (a conversation, a system prompt) only runs what is new, without a change to the output.

    A model belongs to the process that loaded it. In a process forked from that one its use is an error.
    """

    _instead: ClassVar = {
        "vectors": "writes text; load an embedding model to make vectors",
        "rerank": "writes text; load a reranker to score documents",
        "speech": "reads text; load a Whisper model to transcribe speech",
    }

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer | None,
        config: ModelConfig,
        metadata: Mapping[str, object],
        path: Path,
        page_files: PageFiles | None = None,
        draft: Engine | None = None,
        tower: Tower | None = None,
        spec: ModelSpec | None = None,
    ) -> None:
        super().__init__(engine, tokenizer, config, metadata, path)
        self._sampling = Sampling.from_metadata(metadata, engine.context, folder=path.is_dir())
        self._engine = engine
        # Not all of the metadata: its token list alone can take tens of megabytes.
        self._template_metadata = {k: v for k, v in metadata.items() if k.startswith(_TEMPLATE_KEY)}
        self._template: ChatTemplate | None = None
        self._sight = None
        if tower is not None:
            self._sight = Sight(tower, self.tokenizer, engine.context)
        proposer: Proposer | None = None
        if config.drafter is not None:
            proposer = HeadProposer(engine, config)
        elif draft is not None:
            sizes = [Memory(**e.memory) for e in (draft, engine)]
            smaller, larger = (size.weights + size.weights_mapped for size in sizes)
            proposer = ModelProposer(draft, config.vocab_size, smaller / larger)
        self._draft = draft
        self._scheduler = Scheduler(engine, page_files, proposer)
        self._spec = spec
        self._adapters: dict[str, tuple[AdapterInfo, Adapter]] = {}
        self._adapter_lock = threading.Lock()
        self._streams: weakref.WeakSet[Stream] = weakref.WeakSet()

    @property
    def sampling(self) -> Sampling:
        """Defaults of the sampling arguments: the model file's recommendations, and Akunu's for the rest."""
        return self._sampling

    @property
    def n_params(self) -> int | None:
        """The number of weights, those of all experts included and those of a head for drafts left out.

        None for random weights.
        """
        if self._spec is None:
            return None
        last = self.config.n_layers
        total = 0
        for name, tensor in self._spec.tensors.items():
            kind, _, rest = name.partition(".")
            if kind != "layers" or int(rest.partition(".")[0]) < last:  # those behind them write drafts
                total += tensor.n_rows * max(tensor.n_cols, 1)
        return total

    # -- generating ------------------------------------------------------------------------------------------

    @overload
    def generate(self, prompt: Prompt, **options: Unpack[GenerationOptions]) -> Completion: ...
    @overload
    def generate(  # type: ignore[overload-overlap]  # 1 is an int, too
        self, prompt: Prompt, *, n: Literal[1], **options: Unpack[GenerationOptions]
    ) -> Completion: ...
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
            The number of outputs, at most 256; the prompt is prefilled once. Output i has the seed `seed + i`
            (modulo 2**64), so it equals that of a separate call with that seed.
        **options
            See `akunu.GenerationOptions`. What is not given comes from `sampling`.

        Returns
        -------
        Completion
            Text, ids, log-probabilities, the reason to end, and statistics. With `n` > 1, a list of `n`.

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
        results = self._completed_all([self.stream(prompt, **one) for one in self._seeded(n, options)])
        return results[0] if n == 1 else results

    @spelled_out
    def stream(self, prompt: Prompt, **options: Unpack[GenerationOptions]) -> Stream:
        """Continue a prompt, and give the output piece by piece.

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
    async def agenerate(  # type: ignore[overload-overlap]  # 1 is an int, too
        self, prompt: Prompt, *, n: Literal[1], **options: Unpack[GenerationOptions]
    ) -> Completion: ...
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
        results = await acompleted_all([self.astream(prompt, **one) for one in self._seeded(n, options)])
        return results[0] if n == 1 else results

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

    @spelled_out
    def generate_batch(
        self,
        prompts: Sequence[Prompt],
        *,
        progress: bool | Progress = True,
        **options: Unpack[GenerationOptions],
    ) -> list[Completion]:
        """Continue many prompts, as many of them together as the model runs at a time.

        Parameters
        ----------
        prompts
            Each as in `generate`.
        progress
            True: a bar on a terminal or in a notebook; False: nothing; or a function called as
            `progress(done, prompts)` after each prompt. An exception that it raises ends the batch.
        **options
            See `akunu.GenerationOptions`, for all prompts. With a `seed`, each is as it would be alone.

        Returns
        -------
        list of Completion
            One for each prompt, in their order.

        Raises
        ------
        InvalidArgumentError
            An argument or a prompt is not one; before anything runs.
        BatchError
            A prompt failed, such as one that does not fit the context. The others are completed first:
            the error has them.
        KeyboardInterrupt
            As in `generate`; all are then cancelled.

        Examples
        --------
        >>> [str(c) for c in model.generate_batch(["One", "Two"], max_tokens=5)]  # doctest: +SKIP
        """
        self._check_open()
        check_progress(progress)
        ids_of_all = self._ids_of_all(prompts)
        starts: list[Callable[[], Stream]] = [partial(self.stream, ids, **options) for ids in ids_of_all]
        first = next((i for i, ids in enumerate(ids_of_all) if not isinstance(ids, str)), None)
        if first is not None:
            # One stream checks the options of all. The others are made as their turn comes: constraints take
            # memory and time.
            starts[first] = partial(_same, starts[first]())
        with reporter(progress, "Generating", unit="count") as report:
            futures = self._run_all(starts, lambda done, _: report and report(done, len(starts)))
        errors: dict[int, Exception] = {}
        completions = list[Completion | None]()
        for i, future in enumerate(futures):
            error = future.exception()
            if isinstance(error, Exception):
                errors[i] = error
            completions.append(None if error else future.result())
        if errors:
            raise BatchError(completions, errors) from errors[min(errors)]
        return [completion for completion in completions if completion is not None]

    def _ids_of_all(self, prompts: Sequence[Prompt]) -> list[npt.NDArray[np.uint32] | str]:
        """Token ids of each prompt, or its text if it is too long; a message names the one that has none."""
        if isinstance(prompts, str):
            raise InvalidArgumentError("prompts: expected a list of prompts, got a text; put it in a list")
        if not isinstance(prompts, Iterable) or isinstance(prompts, bytes | Mapping):
            raise InvalidArgumentError(f"prompts: expected a list of prompts, got {type(prompts).__name__}")
        found: list[npt.NDArray[np.uint32] | str] = []
        for i, prompt in enumerate(prompts):
            try:
                found.append(self._prompt_ids(prompt))
            except ContextLengthError:  # of its own prompt: the others are completed
                found.append(str(prompt))
            except AkunuError as error:
                raise type(error)(f"prompts[{i}]: {error}") from error
        return found

    def _completed_all(self, streams: Sequence[Stream]) -> list[Completion]:
        """The results of all; when one fails, the others are cancelled."""
        starts = [partial(_same, stream) for stream in streams]
        return [future.result() for future in self._run_all(starts, lambda _, future: future.result())]

    def _run_all(
        self, starts: Sequence[Callable[[], Stream]], each: Callable[[int, Future[Completion]], object]
    ) -> list[Future[Completion]]:
        """Run all to their ends, as many together as there are slots; a stream is made when it begins.

        `each` gets how many have ended and the last of them; an exception that it raises cancels the others.
        """
        ended: SimpleQueue[Future[Completion]] = SimpleQueue()
        running = set[Stream]()
        stopped = False

        def run(start: Callable[[], Stream]) -> Completion:
            stream = start()
            running.add(stream)
            if stopped:
                stream.cancel()
            try:
                return completed(stream)
            finally:
                running.discard(stream)

        with ThreadPoolExecutor(self._engine.parallel, "akunu-batch") as pool:
            try:
                # What a handler raises in the midst of a future would leave its lock to nobody.
                with held:
                    futures = [pool.submit(run, start) for start in starts]
                    for future in futures:
                        future.add_done_callback(ended.put)
                for done in range(1, len(futures) + 1):
                    each(done, ended.get())
            except BaseException:
                stopped = True
                pool.shutdown(wait=False, cancel_futures=True)
                for stream in running.copy():
                    stream.cancel()
                raise
        return futures

    def cancel(self) -> None:
        """End the generations that are running, from any thread; those that wait are not touched.

        A cancelled `generate` returns the text so far with the finish reason `cancelled`; a cancelled stream
        ends after the piece that is being made. Does nothing when nothing runs.
        """
        for stream in list(self._streams):
            if stream.running:
                stream.cancel()

    @cached_property
    def _compiler(self) -> Compiler:
        from akunu.chat.structured.compiler import Compiler

        return Compiler(self.tokenizer, self.config.vocab_size)

    def prepare_constraints(self) -> None:
        """Do now what the first constrained output (`schema`, …) would otherwise wait for.

        It takes 0.3 to 0.5 s for a vocabulary of 150,000 tokens, in which no other thread of Python's runs.

        Raises
        ------
        TokenizerError, UnsupportedError
            There is no vocabulary, or it has no token that ends an output: nothing can be constrained.
        """
        self._check_open()
        self._compiler.prepare()

    def _seeded(self, n: int, options: GenerationOptions) -> list[GenerationOptions]:
        """The options of each of `n` outputs of one prompt."""
        count = Limit(int, 1, MAX_GENERATIONS).check("n", n)
        seed = resolve(options, self.sampling, self.config.vocab_size).seed
        return [{**options, "seed": (seed + i) % (1 << 64)} for i in range(count)]

    def _start(
        self,
        prompt: Prompt,
        options: GenerationOptions,
        reading: Reading | None = None,
        rows: PlacedRows = (),
    ) -> Stream:
        self._check_open()
        ids = self._prompt_ids(prompt)
        request = resolve(options, self.sampling, self.config.vocab_size)
        begun = "" if reading is None else reading.begun
        structure = request.structure
        constraint = None if structure is None else self._compiler.constraint(structure, begun)
        if reading is not None and reading.budget is not None:
            constraint = self._compiler.thinking(reading.budget, constraint)
        if reading is not None and reading.late is not None and self.tokenizer.end_of_generation_ids:
            constraint = self._compiler.late(reading.late, constraint)
        visible = reading.visible if reading else frozenset[int]()
        inputs = partial(self._sight.inputs, len(ids), rows) if self._sight and rows else None
        adapter = self._adapter(request.adapter, request.adapter_scale)
        generation = Generation(
            self._scheduler, self._tokenizer, ids, request, visible, constraint, inputs, adapter
        )
        stream = Stream(self, generation, reading)
        self._streams.add(stream)
        return stream

    # -- looking inside --------------------------------------------------------------------------------------

    @property
    def stats(self) -> ModelStats:
        """Counts of what runs, waits, is cached, and was done since the model was loaded."""
        self._check_open()
        return self._scheduler.stats

    @property
    def memory(self) -> Memory:
        """Bytes that the model uses, by purpose, its tower and the one that drafts for it."""
        self._check_open()
        found = Memory(**self._engine.memory)
        if self._draft is not None:
            found += Memory(**self._draft.memory)
        return found if self._sight is None else found + Memory(**self._sight.tower.memory)

    def pin(
        self,
        prompt: Prompt,
        *,
        cache_salt: str | None = None,
        adapter: str | None = None,
        adapter_scale: float | None = None,
    ) -> int:
        """Keep a beginning of prompts in the KV cache, whatever else needs its memory, until `unpin`.

        What sequences share is cached anyway, and what was used longest ago goes first. This is for a
        beginning that must be there also after a while without it. It is run now if it is not in the cache.

        Parameters
        ----------
        prompt
            As in `generate`; of a conversation, what `chat_template.encode` gives.
        cache_salt
            The salt of the sequences that it is kept for: see `akunu.GenerationOptions`.
        adapter, adapter_scale
            The adapter of the sequences that it is kept for.

        Returns
        -------
        int
            Tokens that are kept: those of whole pages, of 32 tokens.

        Raises
        ------
        InvalidArgumentError
            The cache (`kv_memory`) would have no room left for a sequence that fills the context.
        UnsupportedError
            The model keeps a recurrent state of each sequence besides its pages.

        Examples
        --------
        >>> rules = [{"role": "system", "content": "Answer briefly."}]
        >>> ids = model.chat_template.encode(rules, add_generation_prompt=False)  # doctest: +SKIP
        >>> model.pin(ids)  # doctest: +SKIP
        """
        text = self._whole_pages(prompt, cache_salt, adapter, adapter_scale)
        while text.ids.size and not self._scheduler.pin(text):
            ran = self.generate(
                text.ids,
                max_tokens=0,
                cache_salt=cache_salt,
                adapter=adapter,
                adapter_scale=adapter_scale,
            )
            if ran.finish_reason == "cancelled":
                raise AkunuError("pin: the run of the prompt was cancelled")
        return len(text.ids)

    def unpin(
        self,
        prompt: Prompt,
        *,
        cache_salt: str | None = None,
        adapter: str | None = None,
        adapter_scale: float | None = None,
    ) -> None:
        """Let what `pin` keeps of a prompt go when its memory is needed.

        Raises
        ------
        InvalidArgumentError
            It is not pinned.
        """
        if (text := self._whole_pages(prompt, cache_salt, adapter, adapter_scale)).ids.size:
            self._scheduler.unpin(text)

    def _whole_pages(
        self, prompt: Prompt, cache_salt: str | None, adapter: str | None, scale: float | None
    ) -> Prefix:
        self._check_open()
        ids = self._prompt_ids(prompt)
        own = self._adapter(adapter, None if scale is None else SCALE.check("adapter_scale", scale))
        return Prefix(ids[: len(ids) // PAGE * PAGE], salt(cache_salt), adapter=own.key if own else None)

    def clear_cache(self) -> None:
        """Forget what the KV cache keeps of ended sequences, and give its memory back to the system.

        Without it, that memory grows up to the size of the cache (`memory.kv_cache`, set by `kv_memory`) and
        is used again by later ones. What is pinned, what runs, and what is in files of `cache_dir` stays. On
        a GPU the memory is the cache's from the beginning, and stays its own.
        """
        self._check_open()
        self._scheduler.flush()
        with self._scheduler.exclusive() as engine:
            engine.forget()
            engine.discard_unused()

    def flush(self) -> None:
        """Wait until the files of `cache_dir` hold what the KV cache keeps of ended sequences.

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
            if self._sight is not None:
                self._sight.close()

    @contextmanager
    def _turn(self, tokens: int) -> Iterator[None]:
        """The engine for one call, between two steps of the generations, with room for so many tokens."""
        self._check_open()
        with self._scheduler.exclusive(tokens):
            yield


def _same(stream: Stream) -> Stream:
    return stream
