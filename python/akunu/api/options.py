"""The arguments of a generation: their defaults, where a model file may set them, and their limits.

This is the only place that knows what a valid argument is; the engine receives numbers that were checked
here. What each sampling setting does is defined in docs/sampling.md.
"""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypedDict, cast

from akunu._core import MAX_LOGIT_BIAS, MAX_LOGPROBS
from akunu.base.arguments import FLOAT32_MAX, Limit, flag
from akunu.base.errors import InvalidArgumentError
from akunu.chat.structured.structure import Structure, structure_of
from akunu.chat.structured.tags import StructuralTag
from akunu.files.describe.sampling import SAMPLING_LIMITS, Sampling

__all__ = ["MAX_PRIORITY", "GenerationOptions", "Request", "own_names", "resolve"]

MAX_PRIORITY: Final = 8
_MAX_U64: Final = (1 << 64) - 1


class GenerationOptions(TypedDict, total=False):
    """Keyword arguments of `Model.generate`, `stream`, `chat`, `stream_chat` and their asynchronous twins.

    An argument that is absent or None takes the model's default (`Model.sampling`).

    Attributes
    ----------
    max_tokens : int | None
        Most tokens to generate; None or -1: until the context is full; 0: only evaluate the prompt.
    temperature : float | None
        Divides the logits; 0 is greedy decoding.
    top_k : int | None
        Keep the `top_k` most likely tokens; 0 or -1: off.
    top_p : float | None
        Keep the fewest most likely tokens whose probabilities sum to at least `top_p`, in [0, 1]; 1: off.
    min_p : float | None
        Drop tokens less likely than `min_p` times the most likely one, in [0, 1]; 0: off.
    typical_p : float | None
        Locally typical sampling's mass, in [0, 1]; 1: off.
    repeat_penalty : float | None
        Divides positive logits of recent tokens and multiplies negative ones, > 0; 1: off.
    presence_penalty : float | None
        Subtracted once from the logit of each recent token; 0: off.
    frequency_penalty : float | None
        Subtracted from a logit for each recent occurrence of its token; 0: off.
    penalty_window : int | None
        How many of the latest tokens, prompt included, count as recent; 0 turns the penalties off, -1: all.
    top_n_sigma : float | None
        Drop tokens whose logit is more than this many standard deviations below the best; 0 or -1: off.
    xtc_probability : float | None
        Probability, at each token, of dropping all likely ones but the least likely of them (XTC); 0: off.
    xtc_threshold : float | None
        From which probability on XTC takes a token as likely; above 0.5 XTC is off.
    min_keep : int | None
        Tokens that `typical_p`, `top_p`, `min_p` and XTC leave at least; 0 is as 1.
    dry_multiplier : float | None
        DRY: subtracted from the logit of a token that would go on with a repeat of what the sequence ends
        with, times `dry_base` for each token of it beyond `dry_allowed_length`; 0: off.
    dry_base : float | None
        Base of DRY's penalty; below 1: off.
    dry_allowed_length : int | None
        Length of the shortest repeat that DRY penalises, in tokens.
    dry_penalty_last_n : int | None
        How many of the latest tokens DRY looks at; 0: off, -1: all.
    dry_sequence_breakers : Sequence[str] | None
        Texts that a repeat does not go beyond; an empty sequence: none.
    logit_bias : Mapping[int, float] | None
        Added to the logits of these token ids; `-inf` forbids a token. At most 4096 entries.
    seed : int | None
        Seed of the random numbers, 0 <= seed < 2**64; None or -1: a random one (`Completion.seed`).
    stop : str | Sequence[str] | None
        Strings that end the generation; they are not part of the result. Control tokens may be among them.
    stop_token_ids : Sequence[int] | None
        Tokens that end the generation, as an end-of-generation token does; they are not part of the result.
    logprobs : int | None
        None: no log-probabilities; 0: those of the tokens chosen; n <= 20: also the n most likely ones.
    wait_timeout : float | None
        Most seconds to wait for the generations before this one; None: as long as it takes.
    priority : int | None
        Waiting requests with a higher priority go first. Each step of priority is a head start of 64
        requests. From -8 to 8; None: 0.
    speculative : bool | None
        Speculative decoding: tokens that followed the same tokens before, in this sequence or in others that
        run, or that the draft model proposes, are verified several at a time, where that is faster. The
        output does not depend on it. None: True.
    cache_salt : str | None
        Sequences share pages of the KV cache, in memory and in `cache_dir`, and drafts only with sequences of
        the same salt, and take turns with those of others. One for each tenant keeps them from telling by a
        fast answer what others asked, and from waiting for all that others asked. None: a salt, too.
    adapter : str | None
        The name of an adapter (LoRA) that the model has (`Model.add_adapter`); None: the model as it is.
    adapter_scale : float | None
        Multiplies what the adapter adds; None: the scale that it was added with.
    schema : Mapping[str, Any] | str | None
        The output is JSON that this JSON schema, a mapping or a JSON string, accepts. At most one of `schema`
        and the five constraints that follow may be given. The output satisfies it, or the finish reason is
        not `stop`.
    json : bool | None
        The output is a JSON object.
    regex : str | None
        The whole output matches this regular expression (Rust's `regex`: no look-around, no references).
    grammar : str | None
        The output follows this grammar (Lark or llama.cpp's GBNF).
    choice : Sequence[str] | None
        The output is one of these strings.
    structural_tag : StructuralTag | None
        Parts of the output are constrained: calls of tools, or what follows a reasoning block.
    max_new_tokens : int | None
        Transformers' name of `max_tokens`.
    repetition_penalty : float | None
        `repeat_penalty` over the whole sequence, as in Transformers and vLLM, or over `penalty_window`.
    response_format : Mapping[str, Any] | None
        OpenAI's `{"type": "json_object"}` or `{"type": "json_schema", "json_schema": {"schema": …}}`.
    """

    max_tokens: int | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    typical_p: float | None
    repeat_penalty: float | None
    presence_penalty: float | None
    frequency_penalty: float | None
    penalty_window: int | None
    top_n_sigma: float | None
    xtc_probability: float | None
    xtc_threshold: float | None
    min_keep: int | None
    dry_multiplier: float | None
    dry_base: float | None
    dry_allowed_length: int | None
    dry_penalty_last_n: int | None
    dry_sequence_breakers: Sequence[str] | None
    logit_bias: Mapping[int, float] | None
    seed: int | None
    stop: str | Sequence[str] | None
    stop_token_ids: Sequence[int] | None
    logprobs: int | None
    wait_timeout: float | None
    priority: int | None
    speculative: bool | None
    cache_salt: str | None
    adapter: str | None
    adapter_scale: float | None
    schema: Mapping[str, Any] | str | None
    json: bool | None
    regex: str | None
    grammar: str | None
    choice: Sequence[str] | None
    structural_tag: StructuralTag | None
    max_new_tokens: int | None
    repetition_penalty: float | None
    response_format: Mapping[str, Any] | None


_OTHER_LIMITS: Final[Mapping[str, Limit]] = {
    "max_tokens": Limit(int, -1, _MAX_U64),
    "seed": Limit(int, -1, _MAX_U64),
    "logprobs": Limit(int, 0, MAX_LOGPROBS),
    "wait_timeout": Limit(float, 0.0, math.inf),
    "priority": Limit(int, -MAX_PRIORITY, MAX_PRIORITY),
    "adapter_scale": Limit(float, -FLOAT32_MAX, FLOAT32_MAX),
}


@dataclass(frozen=True, slots=True)
class Request:
    """The checked arguments of one generation."""

    sampling: Sampling
    seed: int
    max_tokens: int | None = None
    logit_bias: Mapping[int, float] | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    logprobs: int | None = None
    wait_timeout: float | None = None
    priority: int = 0
    speculative: bool = True
    cache_salt: str | None = None
    adapter: str | None = None
    adapter_scale: float | None = None
    structure: Structure | None = None


def _response_format(value: Any) -> dict[str, Any]:
    """Read OpenAI's `response_format`, and the one of llama-cpp-python with a `schema` beside its type."""
    kind = value.get("type") if isinstance(value, Mapping) else None
    if kind == "text":
        return {}
    if kind == "json_object":
        return {"json": True} if value.get("schema") is None else {"schema": value["schema"]}
    if kind == "json_schema":
        inner = value.get("json_schema", value)
        if isinstance(inner, Mapping) and inner.get("schema") is not None:
            return {"schema": inner["schema"]}
        raise InvalidArgumentError("response_format: expected a schema under json_schema.schema, found none")
    raise InvalidArgumentError(
        f"response_format: found {value!r:.80}, expected a mapping of type text, json_object or json_schema"
    )


_ALIASES: Final[Mapping[str, Callable[[Any], dict[str, Any]]]] = {
    "repetition_penalty": lambda value: {"repeat_penalty": value, "penalty_window": -1},
    "max_new_tokens": lambda value: {"max_tokens": value},
    "response_format": _response_format,
    "chat_template_kwargs": lambda value: {"template_variables": value},
}
"""Our arguments for one of Transformers', vLLM's or OpenAI's.

`repetition_penalty` counts the whole sequence there, so the window is all of it.
"""


_ELSEWHERE: Final[Mapping[str, str]] = {
    "guided_choice": "choice",
    "guided_grammar": "grammar",
    "guided_json": "schema",
    "guided_regex": "regex",
    "json_schema": "schema",
    "max_completion_tokens": "max_tokens",
    "n_predict": "max_tokens",
    "n_probs": "logprobs",
    "num_predict": "max_tokens",
    "repeat_last_n": "penalty_window",
    "stop_sequences": "stop",
    "stop_strings": "stop",
    "temp": "temperature",
    "top_logprobs": "logprobs",
    "typ_p": "typical_p",
}
"""Names of other programs that are no arguments here, and what does the same."""


def _translated(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options by our own names.

    Raises
    ------
    InvalidArgumentError
        An argument is given by both names, or `response_format` is none.
    """
    own = {name: value for name, value in options.items() if name not in _ALIASES}
    for name in _ALIASES.keys() & options.keys():
        if options[name] is None:
            continue
        for meant, value in _ALIASES[name](options[name]).items():
            if own.get(meant) is None:
                own[meant] = value
            elif meant != "penalty_window":
                raise InvalidArgumentError(f"{name}: is another name of {meant}; give one of them")
    return own


def own_names(options: Mapping[str, object], known: type[GenerationOptions]) -> dict[str, Any]:
    """Return the options by our own names, whatever program's names they have, and refuse unknown ones.

    Raises
    ------
    InvalidArgumentError
        An argument is unknown; the error has the one that may be meant. Or it is given by two names.
    """
    names = known.__annotations__
    for name in options:
        if name not in names:
            meant = _ELSEWHERE.get(name)
            close = [meant] if meant in names else difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known are: {', '.join(names)}"
            raise InvalidArgumentError(f"unknown argument {name}; {hint}")
    return _translated(options)


def resolve(options: Mapping[str, object], defaults: Sampling, vocab_size: int) -> Request:
    """Check the caller's arguments and fill in the defaults.

    Raises
    ------
    InvalidArgumentError
        For an unknown argument, or a value of the wrong type or out of range.
    """
    options = own_names(options, GenerationOptions)

    def number(name: str) -> Any:
        value = options.get(name)
        return (
            None if value is None else (SAMPLING_LIMITS.get(name) or _OTHER_LIMITS[name]).check(name, value)
        )

    chosen = {name: number(name) for name in SAMPLING_LIMITS}
    chosen["dry_sequence_breakers"] = _breakers(options.get("dry_sequence_breakers"))
    # llama.cpp's -1: a seed of its own, as many tokens as there is room for.
    seed, max_tokens = (None if value == -1 else value for value in map(number, ("seed", "max_tokens")))
    return Request(
        sampling=Sampling(**{k: getattr(defaults, k) if v is None else v for k, v in chosen.items()}),
        seed=int.from_bytes(os.urandom(8)) if seed is None else seed,
        max_tokens=max_tokens,
        logit_bias=_logit_bias(options.get("logit_bias"), vocab_size),
        stop=_stop(options.get("stop")),
        stop_token_ids=_stop_ids(options.get("stop_token_ids"), vocab_size),
        logprobs=number("logprobs"),
        wait_timeout=number("wait_timeout"),
        priority=number("priority") or 0,
        speculative=flag("speculative", options.get("speculative"), default=True),
        cache_salt=salt(options.get("cache_salt")),
        adapter=_adapter(options.get("adapter")),
        adapter_scale=number("adapter_scale"),
        structure=structure_of(options),
    )


def _adapter(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InvalidArgumentError(f"adapter: expected a name, got {value!r} ({type(value).__name__})")
    return value


def salt(value: object) -> str | None:
    """A `cache_salt`; an `InvalidArgumentError` if it is neither a text nor None."""
    if value is not None and not isinstance(value, str):
        raise InvalidArgumentError(f"cache_salt: expected a text, got {value!r} ({type(value).__name__})")
    try:
        _ = (value or "").encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"cache_salt: {value!r} is no text in Unicode") from error
    return value


def _logit_bias(value: object, vocab_size: int) -> dict[int, float] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise InvalidArgumentError(
            f"logit_bias: expected a mapping of token id to bias, got {type(value).__name__}"
        )
    if len(value) > MAX_LOGIT_BIAS:
        raise InvalidArgumentError(
            f"logit_bias: {len(value)} entries, at most {MAX_LOGIT_BIAS} are supported"
        )
    bias_limit = Limit(float, -math.inf, FLOAT32_MAX)
    id_limit = Limit(int, 0, vocab_size - 1)
    return {
        id_limit.check("logit_bias: token id", key): bias_limit.check(f"logit_bias[{key}]", bias)
        for key, bias in value.items()
    }


def _stop_ids(value: object, vocab_size: int) -> tuple[int, ...]:
    if value is None:
        return ()
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InvalidArgumentError(f"stop_token_ids: expected a sequence of token ids, got {value!r}")
    limit = Limit(int, 0, vocab_size - 1)
    return tuple(dict.fromkeys(limit.check("stop_token_ids", token) for token in value))


def _breakers(value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    texts = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else None
    if texts is None or not all(isinstance(text, str) and text for text in texts):
        raise InvalidArgumentError(
            f"dry_sequence_breakers: expected a sequence of texts that are not empty, got {value!r}"
        )
    return cast("tuple[str, ...]", texts)


def _stop(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    texts = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else None
    if texts is None or not all(isinstance(text, str) for text in texts):
        raise InvalidArgumentError(f"stop: expected a text or a sequence of texts, got {value!r}")
    if "" in texts:
        raise InvalidArgumentError("stop: an empty text would end every generation at once; leave it out")
    return cast("tuple[str, ...]", texts)
