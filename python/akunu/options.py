"""The arguments of a generation: their defaults, where a model file may set them, and their limits.

This is the only place that knows what a valid argument is; the engine receives numbers that were checked
here. What each sampling setting does is defined in docs/sampling.md.
"""

from __future__ import annotations

import difflib
import math
import operator
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, TypedDict, cast

from akunu._core import MAX_LOGIT_BIAS, MAX_LOGPROBS
from akunu.errors import InvalidArgumentError
from akunu.structured.structure import Structure, structure_of
from akunu.structured.tags import StructuralTag

__all__ = [
    "FLOAT32_MAX",
    "MAX_PRIORITY",
    "GenerationOptions",
    "Limit",
    "Request",
    "Sampling",
    "as_path",
    "check_names",
    "flag",
    "resolve",
]

FLOAT32_MAX: Final = 3.4028234663852886e38  # what the engine computes with
MAX_PRIORITY: Final = 8
_MAX_U32: Final = (1 << 32) - 1
_MAX_U64: Final = (1 << 64) - 1


class GenerationOptions(TypedDict, total=False):
    """Keyword arguments of `Model.generate`, `stream`, `chat`, `stream_chat` and their asynchronous twins.

    An argument that is absent or None takes the model's default (`Model.sampling`).

    Attributes
    ----------
    max_tokens : int | None
        Most tokens to generate; None: until the context is full; 0: only evaluate the prompt.
    temperature : float | None
        Divides the logits; 0 is greedy decoding.
    top_k : int | None
        Keep the `top_k` most likely tokens; 0 or -1: off.
    top_p : float | None
        Keep the fewest most likely tokens whose probabilities sum to at least `top_p`, in (0, 1]; 1: off.
    min_p : float | None
        Drop tokens less likely than `min_p` times the most likely one, in [0, 1]; 0: off.
    typical_p : float | None
        Locally typical sampling's mass, in (0, 1]; 1: off.
    repeat_penalty : float | None
        Divides positive logits of recent tokens and multiplies negative ones, > 0; 1: off.
    presence_penalty : float | None
        Subtracted once from the logit of each recent token; 0: off.
    frequency_penalty : float | None
        Subtracted from a logit for each recent occurrence of its token; 0: off.
    penalty_window : int | None
        How many of the latest tokens, prompt included, count as recent; 0 turns the penalties off.
    logit_bias : Mapping[int, float] | None
        Added to the logits of these token ids; `-inf` forbids a token. At most 4096 entries.
    seed : int | None
        Seed of the random numbers, 0 <= seed < 2**64; None draws one, reported in `Completion.seed`.
    stop : str | Sequence[str] | None
        Texts that end the generation; they are not part of the result.
    logprobs : int | None
        None: no log-probabilities; 0: those of the tokens chosen; n <= 20: also the n most likely ones.
    wait_timeout : float | None
        Most seconds to wait for the generations before this one; None: as long as it takes.
    priority : int | None
        Of those that wait, a text with a higher one goes first, ahead of up to 64 a step of it that came
        before. From -8 to 8; None: 0.
    speculative : bool | None
        Whether tokens that followed the same tokens before, in this text or in others that run, are drafted
        and verified several at a time, where that is faster. The text does not depend on it. None: True.
    cache_salt : str | None
        Texts share what is in the KV cache, in memory and in `cache_dir`, and drafts, with those of the same
        salt only. One for each tenant keeps them from telling by a fast answer what others asked. None: with
        texts that have none.
    schema : Mapping[str, Any] | str | None
        The text is JSON that this JSON schema, a mapping or JSON text, accepts. Of `schema` and the five that
        follow, one at most may be given. The text has the form, or the finish reason is not `stop`.
    json : bool | None
        The text is a JSON object.
    regex : str | None
        The whole text matches this regular expression (of Rust's `regex`: no look-around, no references).
    grammar : str | None
        The text is one of this grammar, in Lark's form or in GBNF (llama.cpp's).
    choice : Sequence[str] | None
        The text is one of these.
    structural_tag : StructuralTag | None
        Stretches of the text have a form: calls of tools, or what follows a reasoning block.
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
    logit_bias: Mapping[int, float] | None
    seed: int | None
    stop: str | Sequence[str] | None
    logprobs: int | None
    wait_timeout: float | None
    priority: int | None
    speculative: bool | None
    cache_salt: str | None
    schema: Mapping[str, Any] | str | None
    json: bool | None
    regex: str | None
    grammar: str | None
    choice: Sequence[str] | None
    structural_tag: StructuralTag | None


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling settings, every one with a value: see `GenerationOptions`. The defaults are llama.cpp's."""

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    typical_p: float = 1.0
    repeat_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    penalty_window: int = 64

    def __post_init__(self) -> None:
        if self.top_k == -1:  # Hugging Face and vLLM write -1 for "off"
            object.__setattr__(self, "top_k", 0)

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, object], context: int, *, folder: bool = False) -> Sampling:
        """The defaults of one model file.

        Reads the `general.sampling.*` keys of GGUF (gguf-py `constants.py`, llama.cpp pull request 17120). A
        value that is out of range, or that asks for a sampler that Akunu does not have, is warned of and not
        used: a recommendation must not keep a model from loading.

        Parameters
        ----------
        metadata
            The file's metadata.
        context
            The model's context, in tokens: what a `penalty_last_n` of -1 stands for.
        folder
            What stands under these keys is from `generation_config.json`, and warnings call it as that does.
        """
        called: dict[str, str] = {}
        if folder:
            from akunu.folder import SAMPLING

            called = {key: f"generation_config.json: {name}" for name, key in SAMPLING.items()}
        values: dict[str, Any] = {}
        for key, name in _FILE_KEYS.items():
            value = metadata.get(_PREFIX + key)
            if value is None:
                continue
            if isinstance(value, int | float) and not isinstance(value, bool):
                if name == "penalty_window" and value == -1:
                    value = context
                elif isinstance(value, float):
                    value = float(f"{value:.7g}")  # 0.95 is stored as the float32 0.949999988
            try:
                values[name] = _SAMPLING_LIMITS[name].check(called.get(key, _PREFIX + key), value)
            except InvalidArgumentError as error:
                _warn(f"the model's files recommend a value that is not used: {error}")
        for key in ("xtc_probability", "mirostat"):
            if metadata.get(_PREFIX + key):
                _warn(
                    f"the model file recommends {_PREFIX}{key} = {metadata[_PREFIX + key]}, "
                    "which Akunu does not have"
                )
        sequence = metadata.get(_PREFIX + "sequence")
        if isinstance(sequence, str) and sequence:
            _warn(
                f"the model file recommends the sampler order {sequence!r}; "
                "Akunu's order is fixed (docs/sampling.md)"
            )
        return cls(**values)


_PREFIX: Final = "general.sampling."
_FILE_KEYS: Final[Mapping[str, str]] = {
    "temp": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "typical_p": "typical_p",  # not in GGUF, but in a folder's generation_config.json
    "penalty_repeat": "repeat_penalty",
    "penalty_last_n": "penalty_window",
}


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=4)


@dataclass(frozen=True, slots=True)
class Limit:
    """The values that one number may take."""

    kind: type[int] | type[float]
    low: float
    high: float
    open_low: bool = False

    def check(self, name: str, value: object) -> Any:
        """`value` as `kind`, or an `InvalidArgumentError` that states the limits."""
        number = _as_integer(value) if self.kind is int else _as_float(value)
        if number is None:
            expected = "an integer" if self.kind is int else "a number"
            raise InvalidArgumentError(f"{name}: expected {expected}, got {value!r} ({type(value).__name__})")
        above = number > self.low if self.open_low else number >= self.low
        if not (above and number <= self.high):  # written so that NaN fails
            raise InvalidArgumentError(f"{name}: {value!r} is not in {self}")
        return number

    def __str__(self) -> str:
        if self.high == math.inf:
            return f"the numbers {'>' if self.open_low else '>='} {self.low:g}"
        return f"{'(' if self.open_low else '['}{_show(self.low)}, {_show(self.high)}]"


def as_path(name: str, value: object) -> Path:
    """The file or folder that an argument names.

    Raises
    ------
    InvalidArgumentError
        It is empty, neither a text nor a path, or no file can have that name.
    """
    path = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(path, str) or not path:
        raise InvalidArgumentError(f"{name}: expected a path, got {value!r} ({type(value).__name__})")
    try:  # the system's calls would raise errors that are none of theirs
        possible = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise InvalidArgumentError(f"{name}: no file can have the name {path!r}")
    return Path(path)


def _show(bound: float) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:g}"


def _as_integer(value: object) -> int | None:
    """An int from an int or an integer of NumPy; None for anything else, bool and 3.0 included."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(cast(Any, value))
    except TypeError:  # an array has the method too, whatever is in it
        return None


def _as_float(value: object) -> float | None:
    if isinstance(value, bool | str | bytes) or not (
        hasattr(value, "__float__") or hasattr(value, "__index__")
    ):
        return None
    try:
        return float(cast(Any, value))
    except (TypeError, ValueError, OverflowError):
        return None


_SAMPLING_LIMITS: Final[Mapping[str, Limit]] = {
    "temperature": Limit(float, 0.0, FLOAT32_MAX),
    "top_k": Limit(int, -1, _MAX_U32),
    "top_p": Limit(float, 0.0, 1.0, open_low=True),
    "min_p": Limit(float, 0.0, 1.0),
    "typical_p": Limit(float, 0.0, 1.0, open_low=True),
    "repeat_penalty": Limit(float, 0.0, FLOAT32_MAX, open_low=True),
    "presence_penalty": Limit(float, -FLOAT32_MAX, FLOAT32_MAX),
    "frequency_penalty": Limit(float, -FLOAT32_MAX, FLOAT32_MAX),
    "penalty_window": Limit(int, 0, _MAX_U32),
}
_OTHER_LIMITS: Final[Mapping[str, Limit]] = {
    "max_tokens": Limit(int, 0, _MAX_U64),
    "seed": Limit(int, 0, _MAX_U64),
    "logprobs": Limit(int, 0, MAX_LOGPROBS),
    "wait_timeout": Limit(float, 0.0, math.inf),
    "priority": Limit(int, -MAX_PRIORITY, MAX_PRIORITY),
}


@dataclass(frozen=True, slots=True)
class Request:
    """The checked arguments of one generation."""

    sampling: Sampling
    seed: int
    max_tokens: int | None = None
    logit_bias: Mapping[int, float] | None = None
    stop: tuple[str, ...] = ()
    logprobs: int | None = None
    wait_timeout: float | None = None
    priority: int = 0
    speculative: bool = True
    cache_salt: str | None = None
    structure: Structure | None = None


def check_names(options: Mapping[str, object], known: type[GenerationOptions]) -> None:
    """Refuse arguments that there are not.

    Raises
    ------
    InvalidArgumentError
        For the first of them, with the one that may be meant.
    """
    names = known.__annotations__
    for name in options:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known are: {', '.join(names)}"
            raise InvalidArgumentError(f"unknown argument {name}; {hint}")


def resolve(options: Mapping[str, object], defaults: Sampling, vocab_size: int) -> Request:
    """Check the caller's arguments and fill in the defaults.

    Raises
    ------
    InvalidArgumentError
        For an unknown argument, or a value of the wrong type or out of range.
    """
    check_names(options, GenerationOptions)

    def number(name: str) -> Any:
        value = options.get(name)
        return (
            None if value is None else (_SAMPLING_LIMITS.get(name) or _OTHER_LIMITS[name]).check(name, value)
        )

    chosen = {field.name: number(field.name) for field in fields(Sampling)}
    seed = number("seed")
    return Request(
        sampling=Sampling(**{k: getattr(defaults, k) if v is None else v for k, v in chosen.items()}),
        seed=int.from_bytes(os.urandom(8)) if seed is None else seed,
        max_tokens=number("max_tokens"),
        logit_bias=_logit_bias(options.get("logit_bias"), vocab_size),
        stop=_stop(options.get("stop")),
        logprobs=number("logprobs"),
        wait_timeout=number("wait_timeout"),
        priority=number("priority") or 0,
        speculative=flag("speculative", options.get("speculative"), default=True),
        cache_salt=salt(options.get("cache_salt")),
        structure=structure_of(options),
    )


def salt(value: object) -> str | None:
    """A `cache_salt`; an `InvalidArgumentError` if it is neither a text nor None."""
    if value is not None and not isinstance(value, str):
        raise InvalidArgumentError(f"cache_salt: expected a text, got {value!r} ({type(value).__name__})")
    try:
        _ = (value or "").encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"cache_salt: {value!r} is no text in Unicode") from error
    return value


def flag(name: str, value: object, *, default: bool) -> bool:
    """`value`, or the default for None; an `InvalidArgumentError` if it is anything but True or False."""
    if value is None:
        return default
    if not isinstance(value, bool):
        raise InvalidArgumentError(f"{name}: expected True or False, got {value!r}")
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


def _stop(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    texts = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else None
    if texts is None or not all(isinstance(text, str) for text in texts):
        raise InvalidArgumentError(f"stop: expected a text or a sequence of texts, got {value!r}")
    if "" in texts:
        raise InvalidArgumentError("stop: an empty text would end every generation at once; leave it out")
    return cast("tuple[str, ...]", texts)
