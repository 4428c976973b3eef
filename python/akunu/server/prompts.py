"""Prompts of completions: texts whose control tokens are read, and gaps between two texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from akunu.api.model import Model
from akunu.api.results import TokenLogprob
from akunu.server.errors import ApiError
from akunu.tokenizer import Segment, check_fits

__all__ = ["infill_ids", "prompt_ids", "prompt_logprobs"]


def prompt_ids(model: Model, text: str, *, parse_special: bool = True, add_special: bool = True) -> list[int]:
    """The token ids of a prompt that a client has put together itself.

    Parameters
    ----------
    model
        Whose tokens they are.
    text
        The prompt.
    parse_special
        Read what spells a control token as that token.
    add_special
        Begin with what the model expects before a prompt (BOS), unless the text begins with it.

    Raises
    ------
    ContextLengthError
        It is so long that it cannot fit.
    """
    check_fits(model.tokenizer, [text], model.context)
    if not add_special:
        return model.tokenize(text, add_special=False, parse_special=parse_special)
    ids = model.tokenizer.encode_segments([Segment(text, parse_special=parse_special)])
    before = list(model.tokenizer.template.before)
    twice = before and ids[: 2 * len(before)] == before * 2
    return ids[len(before) :] if twice else ids


class _Marks(NamedTuple):
    """Control tokens around a gap's two sides."""

    prefix: str
    suffix: str
    middle: str
    file: str = ""
    suffix_first: bool = False


_MARKS: Final = (
    _Marks("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>"),  # Qwen 2.5 Coder, CodeGemma
    _Marks("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<file_sep>"),  # StarCoder, Granite
    _Marks("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),  # SantaCoder
    _Marks("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # DeepSeek Coder
    _Marks("▁<PRE>", "▁<SUF>", "▁<MID>"),  # Code Llama
    _Marks("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),  # GLM 4
    _Marks("[PREFIX]", "[SUFFIX]", "[MIDDLE]", suffix_first=True),  # Codestral
)
"""The marks of fill-in-the-middle, by the models' cards."""


def infill_ids(model: Model, prefix: str, suffix: str, files: Sequence[tuple[str, str]] = ()) -> list[int]:
    """The prompt for what stands between two texts, after other files by name and text.

    Raises
    ------
    ApiError
        400: the model has no tokens for it.
    ContextLengthError
        The texts are so long that they cannot fit.
    """
    check_fits(model.tokenizer, [prefix, suffix, *(part for file in files for part in file)], model.context)

    def token(mark: str) -> int | None:
        ids = model.tokenize(mark, add_special=False, parse_special=True) if mark else []
        return ids[0] if len(ids) == 1 else None

    found = ((each, [token(mark) for mark in each[:4]]) for each in _MARKS)
    marks, (first, second, third, file) = next(
        ((each, ids) for each, ids in found if None not in ids[:3]), (None, [None] * 4)
    )
    if marks is None or first is None or second is None or third is None:
        raise ApiError(
            400, "suffix: this model has no tokens for filling in the middle (fill-in-the-middle), such as "
            "<|fim_prefix|>; code models have", param="suffix", code="unsupported_value",
        )  # fmt: skip

    def text(part: str) -> list[int]:
        return model.tokenize(part, add_special=False)

    ids = list(model.tokenizer.template.before)
    if file is not None:
        for name, content in files:
            ids += [file, *text(f"{name}\n{content}\n")]
    before, after = [first, *text(prefix)], [second, *text(suffix)]
    return ids + after + before if marks.suffix_first else [*ids, *before, *after, third]


_MOST_LOGITS: Final = 1 << 30
"""Bytes of logits of one prompt."""


def prompt_logprobs(model: Model, ids: Sequence[int], top: int) -> list[TokenLogprob]:
    """The log-probability of each token of a prompt but the first, given those before it.

    Parameters
    ----------
    model
        Which runs the prompt by itself.
    ids
        The prompt.
    top
        How many of the most likely tokens are given beside each.

    Raises
    ------
    ApiError
        400: the logits of so many tokens would take too much memory.
    """
    vocabulary = model.config.vocab_size
    most = _MOST_LOGITS // (4 * vocabulary)
    if len(ids) > most:
        raise ApiError(
            400, f"echo: found a prompt of {len(ids)} tokens; with logprobs it may have {most}, as the "
            f"vocabulary has {vocabulary}", param="echo", code="unsupported_value",
        )  # fmt: skip
    found = []
    for row, token in zip(model.logits(ids), ids[1:], strict=False):
        values = row - row.max()
        values -= np.log(np.exp(values).sum())
        best = np.argpartition(-values, top)[:top] if top else ()
        ranked = sorted(((int(i), float(values[i])) for i in best), key=lambda pair: -pair[1])
        found.append(TokenLogprob(int(token), float(values[token]), tuple(ranked)))
    return found
