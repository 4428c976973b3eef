"""Writing an answer as it comes, and saying why it ended early."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from akunu.cli.console import TextWriter

if TYPE_CHECKING:
    from akunu.api.results import Completion
    from akunu.api.streams import Stream

__all__ = ["why_cut_off", "write_answer"]


def write_answer(pieces: Stream, stopped_by: tuple[type[BaseException], ...] = ()) -> None:
    """Write an answer of a chat; an exception of `stopped_by` ends the answer and nothing else.

    Reasoning is dim, and only seen on a terminal: into a pipe goes the answer alone.
    """
    from akunu.chat.deltas import Content, Reasoning

    thought = False
    with pieces, suppress(*stopped_by), TextWriter() as writer:
        for delta in pieces.deltas():
            if isinstance(delta, Reasoning) and writer.styles:
                thought = True
                writer.write(delta.text, "dim")
            elif isinstance(delta, Content):
                writer.write("\n\n" * thought + delta.text)
                thought = False


def why_cut_off(completion: Completion, max_tokens: int | None) -> str | None:
    """Why an answer ended before the model was done, if it did."""
    if completion.finish_reason != "length":
        return None
    if max_tokens is not None and completion.stats.generated_tokens >= max_tokens:
        return f"--max-tokens {max_tokens} is reached"
    return "the context is full (--context sets it)"
