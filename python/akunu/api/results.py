"""The results of a generation: pieces while it runs, and a completion at its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as AnySequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self

from akunu.base.errors import AkunuError
from akunu.chat.deltas import Delta

if TYPE_CHECKING:
    pass

__all__ = ["BatchError", "Completion", "FinishReason", "Piece", "Stats", "TokenLogprob"]

FinishReason = Literal["stop", "length", "cancelled"]


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
    drafted_tokens : int
        Tokens that were drafted and run several at a time (`speculative`).
    accepted_tokens : int
        Those of them that were sampled.
    expert_hits : int
        Experts that a layer used and found in memory, in the steps of this generation, of a model whose
        experts stay in their file (`memory` of `akunu.load`). Sequences that run at the same time share
        steps, and each counts all of a step.
    expert_misses : int
        Those that were not in memory, and were read.
    expert_bytes : int
        Read for the latter.
    expert_seconds : float
        In which that took a thread, on average: what these steps waited for.
    image_tokens : int
        Tokens of the prompt that are rows of images.
    """

    prompt_tokens: int
    cached_tokens: int
    generated_tokens: int
    time_to_first_token: float
    prefill_seconds: float
    decode_seconds: float
    prefill_tokens_per_second: float
    decode_tokens_per_second: float
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    expert_hits: int = 0
    expert_misses: int = 0
    expert_bytes: int = 0
    expert_seconds: float = 0.0
    image_tokens: int = 0


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
        Seed of the random numbers: the same seed, prompt and settings give the same output.
    stop : str | None
        The stop text that ended it, if one did, or the text of the token of `stop_token_ids` that did.
    message : dict[str, Any]
        The text as the assistant's message in OpenAI's form, with `role` and `content`. The answer of a chat
        also has `reasoning_content` and `tool_calls` where there are some; then `content` is the rest, while
        `text` is all that the model wrote, marks included.
    """

    text: str
    ids: list[int]
    logprobs: list[TokenLogprob] | None
    finish_reason: FinishReason
    stats: Stats
    seed: int
    stop: str | None = None
    message: dict[str, Any] = field(kw_only=True)

    def __hash__(self) -> int:
        return hash((self.text, self.finish_reason, self.stats, self.seed, self.stop))  # what cannot change

    def __str__(self) -> str:
        return self.text


class BatchError(AkunuError):
    """Prompts of `Model.generate_batch` failed. It is raised when the others are written, and has them.

    Attributes
    ----------
    completions : list of Completion, or None
        One for each prompt, in their order; None for a prompt that failed.
    errors : dict of int to Exception
        What went wrong, by the prompt's place in the list.
    """

    def __init__(self, completions: AnySequence[Completion | None], errors: Mapping[int, Exception]) -> None:
        super().__init__(completions, errors)  # all that it is made of, so that it can be pickled
        self.completions = list(completions)
        self.errors = dict(errors)

    def __str__(self) -> str:
        first = min(self.errors)
        return (
            f"{len(self.errors)} of {len(self.completions)} outputs failed (`completions` of this error has "
            f"the others), the first of prompts[{first}]: {self.errors[first]}"
        )


class Piece(str):
    """A piece of an output: a `str` that knows its tokens.

    A token whose characters reach into the next piece belongs to that one. A piece is empty only where tokens
    have no text: at the end, or with a model that has no vocabulary.

    Attributes
    ----------
    ids : list of int
        The token ids; those of all pieces together are `Completion.ids`.
    logprobs : list of TokenLogprob, or None
        One entry for each of `ids`, or None when they were not asked for.
    deltas : sequence of Delta
        In an answer of a chat, what the text up to here has said and no earlier piece: content, reasoning,
        calls of tools (`akunu.chat`).
    """

    __slots__ = ("deltas", "ids", "logprobs")

    ids: list[int]
    logprobs: list[TokenLogprob] | None
    deltas: AnySequence[Delta]

    def __new__(
        cls, text: str, ids: Iterable[int] = (), logprobs: Iterable[TokenLogprob] | None = None
    ) -> Self:
        piece = super().__new__(cls, text)
        piece.ids = list(ids)
        piece.logprobs = None if logprobs is None else list(logprobs)
        piece.deltas = ()
        return piece
