"""One generation: the loop that drives the engine, the text it gives, and what the KV cache holds after it.

`generate`, `stream`, `chat` and `stream_chat` all run this loop. The engine computes chains of tokens; this
module decides how long a chain is, where the text ends, and which tokens the caller has seen.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, Literal, Self

from akunu.errors import AkunuError
from akunu.stopping import StopMatcher
from akunu.tokenizer import StreamingDetokenizer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from akunu._core import Chunk, Engine
    from akunu.options import Request
    from akunu.tokenizer import Tokenizer

__all__ = ["Completion", "FinishReason", "Generation", "Piece", "Stats", "TokenLogprob"]

FinishReason = Literal["stop", "length", "cancelled"]

CHAIN_SECONDS: Final = 0.040
"""How long a chain may take: text still flows, and the cost of a submission is far below one per cent."""
MAX_CHAIN: Final = 256
"""Most tokens in a chain, whatever their speed."""


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """Log-probabilities (natural logarithm) at one generated token, before any sampling setting.

    Attributes
    ----------
    id : int
        The token chosen.
    logprob : float
        Its log-probability.
    top : tuple[tuple[int, float], ...]
        The most likely (token id, log-probability) pairs, best first: as many as `logprobs` asked for.
    """

    id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts and times of one generation. Times are wall-clock seconds, without the caller's own time.

    Attributes
    ----------
    prompt_tokens : int
        Tokens of the prompt.
    cached_tokens : int
        Those of them that were in the KV cache already, and were not run again.
    generated_tokens : int
        Length of `Completion.ids`.
    time_to_first_token : float
        From the start of the run to the first token; 0 when there was none.
    prefill_seconds : float
        In the engine, for the prompt; the first token is sampled in it.
    decode_seconds : float
        In the engine, for the tokens after the first.
    prefill_tokens_per_second : float
        Prompt tokens run, cached ones not counted, a second; 0 when none was run.
    decode_tokens_per_second : float
        Tokens computed after the first (an end token and those behind a stop text included) a second; or 0.
    """

    prompt_tokens: int
    cached_tokens: int
    generated_tokens: int
    time_to_first_token: float
    prefill_seconds: float
    decode_seconds: float
    prefill_tokens_per_second: float
    decode_tokens_per_second: float


@dataclass(frozen=True, slots=True)
class Completion:
    """The result of a generation. `str(completion)` is its text.

    Attributes
    ----------
    text : str
        The generated text, without the prompt and without a stop text.
    ids : list[int]
        The generated token ids, without an end-of-generation token. After a stop text: the tokens that lie
        wholly before it, so `text` may be a few characters longer than theirs.
    logprobs : list[TokenLogprob] | None
        One entry for each of `ids`, or None when they were not asked for.
    finish_reason : FinishReason
        `stop`: an end-of-generation token or a stop text; `length`: `max_tokens` or the context is reached;
        `cancelled`: by `Model.cancel` or by closing the stream.
    stats : Stats
        Counts and times.
    seed : int
        Seed of the random numbers: the same seed, prompt and settings give the same text.
    stop : str | None
        The stop text that ended it, if one did.
    """

    text: str
    ids: list[int]
    logprobs: list[TokenLogprob] | None
    finish_reason: FinishReason
    stats: Stats
    seed: int
    stop: str | None = None

    def __hash__(self) -> int:
        return hash((self.text, self.finish_reason, self.stats, self.seed, self.stop))  # what cannot change

    def __str__(self) -> str:
        return self.text


class Piece(str):
    """A piece of a generated text: a `str` that knows its tokens.

    A token whose characters reach into the next piece belongs to that one. A piece is empty only where tokens
    have no text: at the end, or with a model that has no vocabulary.

    Attributes
    ----------
    ids : list of int
        The token ids; those of all pieces together are `Completion.ids`.
    logprobs : list of TokenLogprob, or None
        One entry for each of `ids`, or None when they were not asked for.
    """

    __slots__ = ("ids", "logprobs")

    ids: list[int]
    logprobs: list[TokenLogprob] | None

    def __new__(
        cls, text: str, ids: Sequence[int] = (), logprobs: Sequence[TokenLogprob] | None = None
    ) -> Self:
        piece = super().__new__(cls, text)
        piece.ids = list(ids)
        piece.logprobs = None if logprobs is None else list(logprobs)
        return piece


class ChainLength:
    """How many tokens the next chain computes: 1, 2, 4, … up to what fits in `CHAIN_SECONDS`."""

    def __init__(self) -> None:
        self.next = 1

    def measured(self, tokens: int, seconds: float) -> None:
        """Learn from a chain of `tokens` that took `seconds`."""
        fits = int(CHAIN_SECONDS * tokens / seconds) if seconds > 0 else MAX_CHAIN
        self.next = max(1, min(2 * self.next, fits, MAX_CHAIN))


class Generation:
    """A run of the engine over one prompt; `pieces` may be iterated once.

    After the iteration ends, in whatever way (end, stop text, limit, cancel, closed early, an exception in
    the engine or a KeyboardInterrupt), the KV cache holds the prompt and the tokens that the caller has
    seen, possibly without the last of them: that one is computed when it becomes input.

    Parameters
    ----------
    engine
        The engine, not used by anyone else before `pieces` ends.
    tokenizer
        Turns ids into text; None for a model without vocabulary, whose text is then empty.
    prompt
        Token ids of the prompt [n], n >= 1.
    request
        Checked arguments.
    """

    def __init__(
        self, engine: Engine, tokenizer: Tokenizer | None, prompt: npt.NDArray[np.uint32], request: Request
    ) -> None:
        self._engine = engine
        self._prompt = prompt
        self._request = request
        self._end_ids = tuple(sorted(tokenizer.end_of_generation_ids)) if tokenizer else ()
        self._detokenizer = StreamingDetokenizer(tokenizer, after=prompt[-1:].tolist()) if tokenizer else None
        self._matcher = StopMatcher(request.stop)
        self.cancelled = False
        """Whether `cancel` was called."""
        self._begun = False
        self._ids: list[int] = []
        self._logprobs: list[TokenLogprob] = []
        self._length = 0  # characters of all tokens
        self._ends: list[int] = []  # the same, up to and with each token
        self._text: list[str] = []
        self._released = 0  # characters the caller has
        self._given = 0  # tokens the caller has
        self._finish_reason: FinishReason | None = None
        self._cached = 0
        self._computed = 0
        self._first_token = self._prefill_seconds = self._decode_seconds = 0.0

    def cancel(self) -> None:
        """End as soon as possible, from any thread. The text so far is kept."""
        self.cancelled = True

    @property
    def wait_timeout(self) -> float | None:
        """Most seconds to wait for the engine."""
        return self._request.wait_timeout

    def pieces(self) -> Generator[Piece, None, None]:
        """Run, and yield the text as it becomes certain. No piece ends in half a character."""
        try:
            yield from self._run()
        finally:
            self._settle()

    def completion(self) -> Completion:
        """The result so far; a run that has not ended counts as cancelled."""
        seen = self._seen()
        prefilled = len(self._prompt) - self._cached if self._prefill_seconds > 0 else 0
        return Completion(
            text="".join(self._text),
            ids=self._ids[:seen],
            logprobs=None if self._request.logprobs is None else self._logprobs[:seen],
            finish_reason=self._finish_reason or "cancelled",
            stats=Stats(
                prompt_tokens=len(self._prompt),
                cached_tokens=self._cached,
                generated_tokens=seen,
                time_to_first_token=self._first_token,
                prefill_seconds=self._prefill_seconds,
                decode_seconds=self._decode_seconds,
                prefill_tokens_per_second=_rate(prefilled, self._prefill_seconds),
                decode_tokens_per_second=_rate(self._computed, self._decode_seconds),
            ),
            seed=self._request.seed,
            stop=self._matcher.matched,
        )

    def _run(self) -> Generator[Piece, None, None]:
        engine, request = self._engine, self._request
        start = time.perf_counter()
        self._cached = engine.begin(
            self._prompt,
            **asdict(request.sampling),
            logit_bias=request.logit_bias,
            seed=request.seed,
            logprobs=-1 if request.logprobs is None else request.logprobs,
            end_ids=self._end_ids,
        )
        self._begun = True
        chunk = self._prefill(sample=request.max_tokens != 0)
        if request.max_tokens == 0 or chunk is None:
            self._finish_reason = "length" if chunk else "cancelled"
            return
        self._first_token = time.perf_counter() - start

        chain = ChainLength()
        limit = math.inf if request.max_tokens is None else request.max_tokens
        while True:
            piece = self._accept(chunk)
            reason = self._reason_to_end(chunk, limit)
            if reason and not self._matcher.matched:
                piece += self._tail()
            # Set before the yield: closed there, the caller has all of the text.
            self._finish_reason = "stop" if self._matcher.matched else reason
            self._text.append(piece)
            self._released += len(piece)
            tokens = slice(self._given, self._seen())
            if piece or (self._ids[tokens] and (self._finish_reason or not self._detokenizer)):
                self._given = tokens.stop
                logprobs = None if request.logprobs is None else self._logprobs[tokens]
                yield Piece(piece, self._ids[tokens], logprobs)
            if self._finish_reason:
                return
            chunk = self._decode(chain, limit)

    def _prefill(self, sample: bool) -> Chunk | None:
        """Run the prompt, one engine chunk after the other; None when cancelled."""
        left = len(self._prompt) - self._cached
        while not self.cancelled:
            start = time.perf_counter()
            now_left, chunk = self._engine.prefill(sample)
            self._prefill_seconds += time.perf_counter() - start
            if now_left == 0:
                return chunk
            if now_left == left and not self.cancelled:
                raise _no_progress("prefill")
            left = now_left
        return None

    def _decode(self, chain: ChainLength, limit: float) -> Chunk:
        """Run one chain; an empty chunk means that the context is full or that we are cancelled."""
        n = int(min(chain.next, limit - len(self._ids)))
        start = time.perf_counter()
        chunk = self._engine.decode(n)
        seconds = time.perf_counter() - start
        self._decode_seconds += seconds
        self._computed += len(chunk.ids)
        if len(chunk.ids) == n:
            chain.measured(n, seconds)
        if not (chunk.ids or self.cancelled or self._full()):
            raise _no_progress("decode")
        return chunk

    def _full(self) -> bool:
        return self._engine.position >= self._engine.context

    def _accept(self, chunk: Chunk) -> str:
        """Record the tokens of a chunk; returns the text that is certain now."""
        texts = []
        for i, token in enumerate(chunk.ids[:-1] if chunk.ended else chunk.ids):
            self._ids.append(token)
            if self._request.logprobs is not None:
                top = tuple(chunk.top_logprobs[i]) if chunk.top_logprobs else ()
                self._logprobs.append(TokenLogprob(token, chunk.logprobs[i], top))
            texts.append(self._feed(token))
            if self._matcher.matched:
                break
        return "".join(texts)

    def _feed(self, token: int) -> str:
        """Count the text of a token; returns what the stop texts let through."""
        if self._detokenizer is None:
            self._ends.append(0)
            return ""
        text = self._detokenizer.push(token)
        self._length += len(text)
        # A token that leaves a character unfinished is not seen before that character is.
        self._ends.append(self._length + (self._detokenizer.pending > 0))
        return self._matcher.push(text)

    def _tail(self) -> str:
        """What was held back, when the text is over: unfinished characters and the start of a stop text."""
        text = self._matcher.push(self._detokenizer.flush() if self._detokenizer else "")
        return text if self._matcher.matched else text + self._matcher.flush()

    def _reason_to_end(self, chunk: Chunk, limit: float) -> FinishReason | None:
        if chunk.ended:
            return "stop"
        if len(self._ids) >= limit:
            return "length"
        if self.cancelled:
            return "cancelled"
        return "length" if self._full() else None

    def _seen(self) -> int:
        """How many tokens the caller has seen: all of them, or those wholly in the text that was released."""
        if self._finish_reason and not self._matcher.matched:
            return len(self._ids)
        return bisect_right(self._ends, self._released)

    def _settle(self) -> None:
        """Make the KV cache end where the caller's knowledge ends."""
        keep = len(self._prompt) + self._seen()
        if self._begun and self._engine.position > keep:
            self._engine.truncate(keep)


def _rate(tokens: int, seconds: float) -> float:
    return tokens / seconds if seconds > 0 else 0.0


def _no_progress(phase: str) -> AkunuError:
    return AkunuError(f"the engine made no progress in {phase}; this is a defect of Akunu, please report it")
