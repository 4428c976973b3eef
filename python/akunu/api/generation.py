"""One generation: the text that comes of a sequence's tokens, and where it ends.

`generate`, `stream`, `chat` and `stream_chat` all run this loop. The scheduler computes tokens for all
sequences together; this module decides where the output ends and which tokens the caller has seen.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Callable, Generator
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from akunu.api.results import Completion, FinishReason, Piece, Stats, TokenLogprob
from akunu.api.scheduling import Sequence
from akunu.api.scheduling.sequence import WHOLE_AHEAD
from akunu.base.errors import InvalidArgumentError
from akunu.base.stopping import StopMatcher
from akunu.tokenizer import StreamingDetokenizer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from akunu._core import Chunk
    from akunu.api.options import Request
    from akunu.api.reading import Reading
    from akunu.api.scheduling import ConstrainedChunk, Scheduler
    from akunu.api.scheduling.sequence import Adapter
    from akunu.api.vision.inputs import Inputs
    from akunu.chat.structured.constraint import Constraint
    from akunu.files.describe.sampling import Sampling
    from akunu.tokenizer import Tokenizer

__all__ = ["Generation"]

MAX_END_IDS: Final = 64
"""The engine's limit (`kMaxEndIds`)."""


class Generation:
    """The output for one prompt; `pieces` may be iterated once.

    After the iteration ends, in whatever way (end, stop text, limit, cancel, closed early, an exception in
    the engine or a KeyboardInterrupt), the KV cache holds the prompt and the tokens that the caller has
    seen, possibly without the last of them: that one is computed when it becomes input.

    Parameters
    ----------
    scheduler
        Runs it, with others.
    tokenizer
        Turns ids into text; None for a model without vocabulary, whose text is then empty.
    prompt
        Token ids of the prompt [n], n >= 1.
    request
        Checked arguments.
    visible
        Ids of control tokens that are to be seen in the text.
    constraint
        The constraint of the output; None: there is none.
    inputs
        Makes what the prompt has besides tokens, when the generation begins.
    adapter
        What is added to the model for it.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        tokenizer: Tokenizer | None,
        prompt: npt.NDArray[np.uint32],
        request: Request,
        visible: frozenset[int] = frozenset(),
        constraint: Constraint | None = None,
        inputs: Callable[[], Inputs] | None = None,
        adapter: Adapter | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._request = request
        self._inputs = inputs
        self._input_seconds = 0.0
        self._stop_ids, visible = _stop_ids(tokenizer, request, visible)
        self._stopped: str | None = None
        """The text of the token that ended it, if it is one of those."""
        self._sequence = Sequence(
            prompt,
            dict(
                _sampling(tokenizer, request.sampling),
                logit_bias=request.logit_bias,
                seed=request.seed,
                logprobs=-1 if request.logprobs is None else request.logprobs,
                end_ids=self._end_ids(tokenizer),
            ),
            math.inf if request.max_tokens is None else request.max_tokens,
            request.wait_timeout,
            request.speculative,
            constraint=constraint,
            salt=request.cache_salt,
            adapter=adapter,
            priority=request.priority,
        )
        trims = constraint is None or not constraint.exact
        self._detokenizer = (
            StreamingDetokenizer(tokenizer, after=prompt[-1:].tolist(), visible=visible, trims=trims)
            if tokenizer
            else None
        )
        self._matcher = StopMatcher(request.stop)
        self._ids: list[int] = []
        self._logprobs: list[TokenLogprob] = []
        self._length = 0  # characters of all tokens
        self._ends: list[int] = []  # the same, up to and with each token
        self._text: list[str] = []
        self._released = 0  # characters the caller has
        self._given = 0  # tokens the caller has
        self._finish_reason: FinishReason | None = None

    def cancel(self) -> None:
        """End as soon as possible, from any thread. The text so far is kept."""
        self._scheduler.cancel(self._sequence)

    def be_patient(self) -> None:
        """Give fewer and longer pieces, unless a stop text has to be looked for in each token."""
        if not self._request.stop:
            self._sequence.ahead = WHOLE_AHEAD

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._sequence.cancelled

    @property
    def running(self) -> bool:
        """Whether the generation has begun and not ended."""
        return self._sequence.slot is not None

    @property
    def prompt_read(self) -> tuple[int, int]:
        """Tokens of the prompt that were in the KV cache, and that are in it now; any thread may ask."""
        sequence = self._sequence
        return sequence.cached_tokens, min(sequence.length, len(sequence.prompt))

    def pieces(self, reading: Reading | None = None) -> Generator[Piece, None, None]:
        """Run, and yield the text as it becomes certain. No piece ends in half a character.

        A `reading` gives each piece what it says of an answer, and adds one for what it held back.
        """
        if self._inputs is not None:
            start = time.perf_counter()
            self._sequence.take_inputs(self._inputs())
            self._input_seconds = time.perf_counter() - start
        self._scheduler.submit(self._sequence)
        try:
            try:
                while self._finish_reason is None:
                    piece = self._proceed()
                    if piece is None:
                        continue
                    if reading is not None:
                        reading.read(piece)
                    yield piece
            finally:
                self._end()
        except BaseException:  # maybe a handler's, before that was done: nobody else would do it
            self._end()
            raise
        if reading is not None and (rest := reading.end()) is not None:
            yield rest

    def _end(self) -> None:
        """Give the slot back. The KV cache ends where the caller's knowledge ends."""
        self._scheduler.end(self._sequence, keep=len(self._sequence.prompt) + self._seen())

    def completion(self) -> Completion:
        """The result so far; a run that has not ended counts as cancelled."""
        seen, text = self._seen(), "".join(self._text)
        return Completion(
            text=text,
            ids=self._ids[:seen],
            logprobs=None if self._request.logprobs is None else self._logprobs[:seen],
            finish_reason=self._finish_reason or "cancelled",
            stats=self.stats(),
            seed=self._request.seed,
            stop=self._matcher.matched if self._stopped is None else self._stopped,
            message={"role": "assistant", "content": text},
        )

    def stats(self) -> Stats:
        """The counts and times of the generation so far."""
        sequence = self._sequence
        prefilled = len(sequence.prompt) - sequence.cached_tokens if sequence.prefill_seconds > 0 else 0
        return Stats(
            prompt_tokens=len(sequence.prompt),
            cached_tokens=sequence.cached_tokens,
            generated_tokens=self._seen(),
            time_to_first_token=self._input_seconds + sequence.first_token_seconds,
            prefill_seconds=sequence.prefill_seconds,
            decode_seconds=sequence.decode_seconds,
            prefill_tokens_per_second=_rate(prefilled, sequence.prefill_seconds),
            decode_tokens_per_second=_rate(len(sequence.tokens) - 1, sequence.decode_seconds),
            drafted_tokens=sequence.drafted,
            accepted_tokens=sequence.accepted,
            expert_hits=sequence.expert_hits,
            expert_misses=sequence.expert_misses,
            expert_bytes=sequence.expert_bytes,
            expert_seconds=sequence.expert_seconds,
            image_tokens=sum(part.count for part in sequence.inputs.rows) if sequence.inputs else 0,
        )

    def _proceed(self) -> Piece | None:
        """Take what comes next; the text that became certain by it, if any did."""
        chunk = self._scheduler.next(self._sequence)
        text = self._accept(chunk) if chunk is not None else ""
        while self._sequence.taking and not self._matcher.matched:
            if (chunk := self._scheduler.next(self._sequence)) is not None:
                text += self._accept(chunk)
        reason = self._reason_to_end(chunk)
        if reason and not self._matcher.matched:
            text += self._tail()
        # Set before the piece is given: who closes then has all of the output.
        self._finish_reason = "stop" if self._matcher.matched else reason
        self._text.append(text)
        self._released += len(text)
        tokens = slice(self._given, self._seen())
        if not text and not (self._ids[tokens] and (self._finish_reason or not self._detokenizer)):
            return None
        self._given = tokens.stop
        logprobs = None if self._request.logprobs is None else self._logprobs[tokens]
        return Piece(text, self._ids[tokens], logprobs)

    def _accept(self, chunk: Chunk | ConstrainedChunk) -> str:
        """Record the tokens of a chunk; returns the text that is certain now."""
        texts = []
        if chunk.ended:
            self._stopped = self._stop_ids.get(chunk.ids[-1])
        for i, token in enumerate(chunk.ids[:-1] if chunk.ended else chunk.ids):
            self._ids.append(token)
            if self._request.logprobs is not None:
                top = tuple(chunk.top_logprobs[i]) if chunk.top_logprobs else ()
                self._logprobs.append(TokenLogprob(token, chunk.logprobs[i], top))
            texts.append(self._feed(token))
            if self._matcher.matched:
                break
        return "".join(texts)

    def _end_ids(self, tokenizer: Tokenizer | None) -> tuple[int, ...]:
        """The tokens that end the output: those of the model, and those that the caller names."""
        ends = tokenizer.end_of_generation_ids.union(self._stop_ids) if tokenizer else self._stop_ids
        if len(ends) > MAX_END_IDS:
            raise InvalidArgumentError(
                f"stop_token_ids: {len(ends)} tokens end a text, the model's own among them; at most "
                f"{MAX_END_IDS} are supported"
            )
        return tuple(sorted(ends))

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
        """Return what was held back at the end: unfinished characters and the start of a stop text."""
        text = self._matcher.push(self._detokenizer.flush() if self._detokenizer else "")
        return text if self._matcher.matched else text + self._matcher.flush()

    def _reason_to_end(self, chunk: Chunk | ConstrainedChunk | None) -> FinishReason | None:
        """`chunk` is the last that was taken; None when no more come."""
        if chunk is None:
            return "cancelled"
        if chunk.ended:
            return "stop"
        if len(self._ids) >= self._sequence.limit:
            return "length"
        if self._sequence.cancelled:
            return "cancelled"
        return "length" if self._sequence.ended and not self._sequence.ready else None

    def _seen(self) -> int:
        """Return how many tokens the caller has seen: all, or those wholly in the text that was released."""
        if self._finish_reason and not self._matcher.matched:
            return len(self._ids)
        return bisect_right(self._ends, self._released)


def _stop_ids(
    tokenizer: Tokenizer | None, request: Request, visible: frozenset[int]
) -> tuple[dict[int, str], frozenset[int]]:
    """Tokens that the caller stops at, each with its text, and control tokens that a stop text needs to see.

    An output has no control tokens: one that is a stop text ends it as a token, one within is shown.
    """
    if tokenizer is None:
        return dict.fromkeys(request.stop_token_ids, ""), visible
    found = {token: tokenizer.token_text(token) for token in request.stop_token_ids}
    for text in request.stop:
        parts = tokenizer.split_added(text, parse_special=True)
        controls = [part for part in parts if isinstance(part, int) and part in tokenizer.control_ids]
        if len(parts) > 1:
            visible |= frozenset(controls)
        elif controls and controls[0] not in visible:
            found[controls[0]] = text
    return found, visible


def _rate(tokens: int, seconds: float) -> float:
    return tokens / seconds if seconds > 0 else 0.0


def _sampling(tokenizer: Tokenizer | None, sampling: Sampling) -> dict[str, object]:
    """Return the engine's arguments: sequence breakers as tokens, where something asks for them."""
    found = asdict(sampling)
    texts = found.pop("dry_sequence_breakers")
    if sampling.dry_multiplier and texts and tokenizer:
        from akunu.tokenizer.breakers import breakers_of

        found["dry_breakers"] = breakers_of(tokenizer, texts)
    return found
