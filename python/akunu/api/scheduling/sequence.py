"""A sequence as the scheduler sees it: its tokens, its place, what its reader has yet to take."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from akunu.api.scheduling.drafts import Drafter, Proposal, ProposerTrust
from akunu.api.scheduling.prefix import Prefix
from akunu.base.errors import AkunuError

if TYPE_CHECKING:
    from akunu._core import Chunk, Lookup
    from akunu.api.vision.inputs import Inputs
    from akunu.chat.structured.constraint import Constraint

__all__ = ["WHOLE_AHEAD", "Adapter", "ConstrainedChunk", "Ran", "Sequence"]

HEAD_START: Final = 64
"""Sequences that came before, which one with a priority higher by one goes ahead of."""


AHEAD: Final = 2
"""Chunks that a sequence runs ahead of a reader who wants each as soon as it is there."""
WHOLE_AHEAD: Final = 16
"""Chunks that it runs ahead of one who wants only all of them: threads that wake up cost more than a step."""


class Ran(NamedTuple):
    """A step that ran, as its sequences see it."""

    steps: int
    """Steps of a chain."""
    fitting: int
    """Tokens of one that takes `CHAIN_SECONDS`."""
    seconds: float
    ended: float
    """`time.perf_counter()`."""
    context: int
    """Most tokens of a sequence."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter that the engine has, as a sequence uses it.

    Attributes
    ----------
    number
        The adapter's number in the engine.
    scale
        Multiplies what it adds.
    digest
        A hash of what it adds.
    """

    number: int
    scale: float
    digest: str

    @property
    def key(self) -> str:
        """The key by which the sequence's pages are known."""
        return f"{self.digest}*{self.scale!r}"


@dataclass(frozen=True, slots=True)
class ConstrainedChunk:
    """The result of a step for a constrained sequence: a `Chunk`, with the tokens that were forced."""

    ids: list[int]
    ended: bool
    logprobs: list[float]
    top_logprobs: list[list[tuple[int, float]]]


@dataclass(eq=False, slots=True)
class Sequence:
    """One sequence, from its prompt to its last token.

    Its reader takes what is `ready`; the scheduler alone changes the rest, but for `cancelled`.
    """

    prompt: npt.NDArray[np.uint32]
    """Token ids [n], n >= 1."""
    settings: Mapping[str, Any]
    """Sampling settings, as `Engine.begin` takes them."""
    limit: float = math.inf
    """Tokens to generate at most; 0: only the prompt is run."""
    wait_timeout: float | None = None
    """Most seconds to wait for a slot."""
    speculative: bool = True
    """Tokens may be drafted."""
    constraint: Constraint | None = None
    """The constraint of the output, if there is one; it is told of all `tokens`."""

    salt: str | None = None
    """The owner's salt: the sequence shares what is cached, and drafts, with those of the same salt, and
    takes turns with those of others. None is one too."""
    contents: npt.NDArray[np.uint64] | None = None
    """Hashes of what stands at its positions where that is no token: see `Prefix`. Those of its `inputs`."""
    adapter: Adapter | None = None
    """The adapter, which is added to the model's products for the sequence."""
    inputs: Inputs | None = None
    """The inputs that the prompt has besides tokens, such as images."""
    priority: int = 0
    """The waiting sequence with the highest priority goes first."""
    turn: tuple[int, int] = (0, 0)
    """The sequence's place in the order of arrival; the smallest goes first."""
    round: int = 0
    """The round of its owner's turns, without its priority: see `Turns`."""
    tokens: list[int] = field(default_factory=list)
    """The tokens that have been generated, an end token included."""
    forced: int = 0
    """The number of these that the constraint forced after the last sampled one: rows of the next step."""
    ahead: int = AHEAD
    """Chunks that it runs ahead of its reader, who is woken when half of them are ready, and takes all."""
    in_turn: bool = False
    """Whether its reader is woken when it is `called`, as those of many sequences are: see `ReaderTurns`."""
    called: bool = False
    """Whether its reader is woken now, for all that is ready."""
    ready: deque[Chunk | ConstrainedChunk] = field(default_factory=deque)
    """Generated, and not taken by the reader yet."""
    taking: bool = False
    """Whether its reader has begun to take what is ready."""
    taken_at: float = 0.0
    """`time.perf_counter()` when its reader last took something; 0: it has had nothing."""
    ready_at: float = 0.0
    """`time.perf_counter()` when the last of it was made ready."""
    slot: int | None = None
    """The slot in which the engine keeps the sequence; None while it waits."""
    known: int = field(init=False)
    """Tokens that are known: the prompt, and what was sampled."""
    length: int = 0
    """Tokens in the engine's cache."""
    kept: deque[str] = field(default_factory=deque)
    """Pages that follow in the cache's files, to be read before anything is run."""
    sought: int | None = None
    """Pages that were looked for in these files so far; None: all, or there are no files."""
    seek_names: list[str] = field(default_factory=list)
    """The names of all these pages in the files."""
    seek_time: int = 0
    """`time.time_ns()` when looking for them began."""
    counted: bool = False
    """Whether the prompt has been counted in `ModelStats`."""
    squeezed_out: bool = False
    """Whether it had to give its slot back for want of pages, and waits until there is room for all of it."""
    ended: bool = False
    """An end token was sampled, or nothing is left to run: it needs no more steps."""
    cancelled: bool = False
    error: BaseException | None = None
    chain: int = 1
    """Steps of its next chain: 1, 2, 4, … up to what fits in `CHAIN_SECONDS`, or as many as others had."""
    drafter: Drafter = field(default_factory=Drafter)
    proposer_trust: ProposerTrust = field(default_factory=ProposerTrust)
    drafted: int = 0
    accepted: int = 0
    """Tokens that were drafted, and those of them that were sampled."""

    began: float | None = None
    """`time.perf_counter()` when it was first given a slot."""
    cached_tokens: int = 0
    """Tokens of the prompt that were in the cache then."""
    first_token_seconds: float = 0.0
    """Seconds from `began` to the first token."""
    mask_seconds: float = 0.0
    """The time that the constraint's masks for the last step took."""
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0
    """Time in steps, for the prompt and for the tokens after the first."""
    expert_hits: int = 0
    expert_misses: int = 0
    expert_bytes: int = 0
    expert_seconds: float = 0.0
    """Seconds that `Engine.paged_experts` counted in this sequence's steps."""

    def arrive(self, number: int, arrival: int) -> None:
        """Put the sequence into round `number`, as the `arrival`-th that came.

        Each step of priority goes ahead of `HEAD_START` rounds that came before, so whoever waits is
        overtaken by so many later ones at most, and its turn comes.
        """
        self.round = number
        self.turn = (number - HEAD_START * self.priority, arrival)

    def __post_init__(self) -> None:
        self.known = len(self.prompt) + len(self.tokens)

    def take_inputs(self, inputs: Inputs) -> None:
        """Have these inputs besides the prompt's tokens. Before it is submitted."""
        self.inputs = inputs
        self.contents = inputs.contents

    @property
    def left(self) -> int:
        """Known tokens that have to be run."""
        return self.known - self.length

    @property
    def writing(self) -> bool:
        """Whether the rows to run are the token that was sampled last, and those that are forced after it."""
        return 0 < self.known - self.length <= 1 + self.forced and len(self.tokens) > self.forced

    @property
    def fetching(self) -> bool:
        """Whether its pages are still looked for in files, or read from them, before anything is run."""
        return self.sought is not None or bool(self.kept)

    @property
    def hungry(self) -> bool:
        """Whether more should be computed. A sequence runs ahead while its reader wakes up."""
        ahead = WHOLE_AHEAD if self.in_turn else self.ahead
        return len(self.ready) < ahead and not (self.ended or self.cancelled or self.error)

    @property
    def due(self) -> bool:
        """Whether its reader should take what is ready."""
        ready = len(self.ready)
        if not ready or self.taking or not self.hungry:
            return ready > 0
        return 2 * ready >= self.ahead and (self.called or not (self.in_turn and self.taken_at))

    @property
    def leads_on(self) -> bool:
        """Whether its reader, who led a step, leads the next one, too: then no other is woken for that.

        That is where it waits for several chunks. A step that follows at once has no rows of readers who want
        each, and have not taken the last one yet.
        """
        patient = self.in_turn or self.ahead > AHEAD
        return patient and self.slot is not None and self.hungry and not self.due

    def pop(self) -> Chunk | ConstrainedChunk:
        """Take the oldest of what is ready."""
        chunk = self.ready.popleft()
        self.taking, self.called, self.taken_at = bool(self.ready), False, time.perf_counter()
        return chunk

    def idle_for(self) -> float:
        """Seconds since something was made ready that is not taken; infinite when it needs no steps."""
        if self.ended or self.cancelled or self.error:
            return math.inf
        return time.perf_counter() - self.ready_at if self.due else 0.0

    def whole_images(self, rows: int, most: int) -> int:
        """Return how many rows may run, where `rows` are wanted and no step may end within an image.

        More than are wanted where it begins with an image, up to `most`; 0 where that is not enough.
        """
        end = self.length + rows
        for part in self.inputs.rows if self.inputs is not None else ():
            if part.start < end < part.start + part.count:
                if part.start > self.length:
                    return part.start - self.length
                whole = part.start + part.count - self.length
                return whole if whole <= most else 0
        return rows

    def ids(self) -> npt.NDArray[np.uint32]:
        """All known tokens."""
        return np.concatenate([self.prompt, np.array(self.tokens, np.uint32)]) if self.tokens else self.prompt

    def prefix(self, n: int | None = None) -> Prefix:
        """Return the first `n` known tokens, or all, and what else the sequence's pages are known by."""
        inside = n is not None and n <= len(self.prompt)
        ids = self.prompt if inside else self.ids()
        contents = None if self.contents is None else self.contents[:n]
        return Prefix(ids[:n], self.salt, contents, self.adapter.key if self.adapter else None)

    def place(self, slot: int, cached: int) -> None:
        """Give the sequence a slot, whose cache holds the first `cached` tokens."""
        self.slot, self.length, self.squeezed_out = slot, cached, False
        if self.began is None:
            # What its constraint forced at its beginning may be in the cache too, and in files, and is no
            # prompt.
            self.began, self.cached_tokens = time.perf_counter(), min(cached, len(self.prompt))

    def displace(self) -> None:
        """Take the sequence's slot away. Its reader may take what is ready at once."""
        self.slot, self.length, self.sought, self.in_turn = None, 0, None, False
        self.kept.clear()

    def restored(self, length: int) -> None:
        """The cache holds its first `length` tokens, the last of them from a file."""
        self.length = length
        if not self.prefill_seconds:
            self.cached_tokens = min(length, len(self.prompt))

    def lookup(self) -> Lookup:
        """The sequence's tokens, as drafts are looked up in them."""
        lookup = self.drafter.lookup
        if (n := len(lookup)) < self.known:
            lookup.extend(self.tokens[n - len(self.prompt) :] if n else self.ids().tolist())
        return lookup

    def room_for_drafts(self, context: int) -> int:
        """Drafts that may be run with its next token: one more is sampled."""
        return int(min(self.limit - len(self.tokens), context - self.length) - 1)

    def propose(self, others: SequenceOf[Lookup], context: int) -> Proposal:
        """Look for drafts."""
        drafter = self.drafter
        drafter.propose(others)
        return Proposal(drafter.trust, min(len(drafter.proposal), self.room_for_drafts(context)))

    def masks(self, drafts: SequenceOf[int], vocab: int) -> npt.NDArray[np.uint32] | None:
        """Return what the constraint allows next, and after each of these drafts; None: everything.

        Where the constraint leaves no choice only its tokens are sampled, as if there were no drafts. What
        follows a draft that is not allowed is never sampled.

        Returns
        -------
        uint32 [words], or [1 + drafts, words] where there are some

        Raises
        ------
        AkunuError
            No token may come.
        """
        if self.constraint is None:
            return None
        if not drafts:
            return self.constraint.mask()
        masks = np.full((1 + len(drafts), (vocab + 31) // 32), 0xFFFFFFFF, np.uint32)
        state, forced = self.constraint.fork(), list[int]()
        free = True
        for mask, draft in zip_longest(masks, drafts):
            if forced:
                mask[:], free = 0, False
                mask[forced[0] // 32] = 1 << forced[0] % 32
            elif (allowed := state.mask()) is not None:
                mask[:], free = allowed, False
            if draft is None or not mask[draft // 32] >> draft % 32 & 1:
                break
            state.advance([draft])
            forced = [state.end_id] if state.finished else forced[1:] or self._forced_by(state)
        return None if free else masks

    def _forced_by(self, constraint: Constraint) -> list[int]:
        """Return the tokens that the constraint forces.

        Where log-probabilities are wanted every token is sampled, if only from one: a token that is a row of
        the next step has no logits of its own.
        """
        return constraint.forced() if self.settings.get("logprobs", -1) < 0 else []

    def follow(self, room: float) -> list[int]:
        """Append the tokens that its constraint leaves no choice about, at most `room`; returns them."""
        found: list[int] = []
        if self.constraint is not None:
            while len(found) < room and (forced := self._forced_by(self.constraint)):
                forced = forced[: int(min(room - len(found), len(forced)))]
                self.constraint.advance(forced)
                found += forced
        self.tokens += found
        self.known += len(found)
        self.forced = len(found)
        return found

    def take(
        self, chunk: Chunk, ran: Ran, verified: SequenceOf[tuple[int, int]] = (), written: bool = False
    ) -> list[int]:
        """Record what a step, or a chain, gave; returns the tokens forced by it.

        Parameters
        ----------
        verified
            Of each step with drafts, how many there were, and how many of them held.
        written
            A smaller model, or a head, has written the drafts.
        """
        writing, self.length, ids = self.writing, chunk.length, chunk.ids
        steps, fitting, seconds, ended, context = ran
        if writing:
            self.decode_seconds += seconds
            if (len(verified) if chunk.drafts else 0 if verified else len(ids)) == steps:
                self.chain = min(2 * max(self.chain, steps), fitting)
        else:
            self.prefill_seconds += seconds
        given: Chunk | ConstrainedChunk = chunk
        forced: list[int] = []
        self.tokens += ids
        self.known += len(ids)
        for drafted, accepted in verified:
            self.drafted += drafted
            self.accepted += accepted
            if written:
                self.proposer_trust.learn(drafted, accepted)
        if chunk.drafts and verified:
            self.proposer_trust.chained(sum(accepted for _, accepted in verified))
        if not self.first_token_seconds and ids and self.began is not None:
            self.first_token_seconds = ended - self.began
        if self.constraint is not None and ids:
            try:
                given, forced = self._obey(self.constraint, chunk, context)
            except AkunuError as error:
                self.error = error
        if self.drafter.proposal:
            self.drafter.learn(ids + forced)
        full = self.known > context or (bool(ids) and len(self.tokens) >= self.limit)
        self.ended = given.ended or full or self.left == 0
        if self.error is None and (ids or self.ended):
            self.ready.append(given)
            self.ready_at = ended
        return [] if self.ended or self.error else forced

    def _obey(self, constraint: Constraint, chunk: Chunk, context: int) -> tuple[ConstrainedChunk, list[int]]:
        """Return what a step gave, and what the constraint forces after that, the sequence's end included."""
        forced, ended = list[int](), chunk.ended
        before = len(self.tokens) - len(chunk.ids)
        told = 0 if before == self.forced else before  # what is forced first is untold
        constraint.advance(chunk.ids)
        if not ended:
            forced = self.follow(min(context + 1 - self.known, self.limit - len(self.tokens)))
            ended = constraint.finished
        ids = self.tokens[told:] + [constraint.end_id] * (ended and not chunk.ended)
        return ConstrainedChunk(ids, ended, chunk.logprobs, chunk.top_logprobs), forced
