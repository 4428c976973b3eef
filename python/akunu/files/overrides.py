"""Replace what a model's files say: rotary scaling, and keys of a GGUF file."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from akunu.base.arguments import Limit
from akunu.base.errors import InvalidArgumentError

__all__ = ["apply_overrides", "gguf_scaling", "hf_scaling", "key_overrides", "rope_scaling"]

_KINDS: Final = ("linear", "yarn")
_FACTOR: Final = Limit(float, 1.0, 1e3)
_ORIGINAL: Final = Limit(int, 1, (1 << 31) - 1)
_NUMBERS: Final = {
    "factor": _FACTOR,
    "original_max_position_embeddings": _ORIGINAL,
    "beta_fast": Limit(float, 1e-3, 1e6),
    "beta_slow": Limit(float, 1e-3, 1e6),
    "attention_factor": Limit(float, 1e-3, 1e3),
}
_GGUF: Final = {
    "factor": "factor",
    "original_max_position_embeddings": "original_context_length",
    "beta_fast": "yarn_beta_fast",
    "beta_slow": "yarn_beta_slow",
    "attention_factor": "yarn_attn_factor",
}
"""The names of these settings in GGUF, below `rope.scaling`."""
_OVERRIDE: Final = re.compile(r"(?P<key>[^=\s]+)=(?P<kind>int|float|bool|str):(?P<value>.*)", re.DOTALL)
_BOOLS: Final = {"true": True, "false": False}


def rope_scaling(given: object) -> dict[str, Any] | None:
    """The scaling as `config.json` writes it: of a mapping, its JSON text, or `TYPE:FACTOR[:ORIGINAL]`.

    Raises
    ------
    InvalidArgumentError
        It is not of that form.
    """
    if given is None:
        return None
    value: Any = given
    if isinstance(given, str) and not given.lstrip().startswith("{"):
        value = _spelled(given)
    elif isinstance(given, str):
        try:
            value = json.loads(given)
        except (ValueError, RecursionError) as error:
            raise InvalidArgumentError(f"rope_scaling: the text is not JSON: {error}") from error
    if not isinstance(value, Mapping):
        raise InvalidArgumentError(
            f"rope_scaling: found {given!r}, expected a mapping as config.json has it, or yarn:FACTOR"
        )
    found = dict(value)
    kind = found.pop("type", found.pop("rope_type", None))
    found.pop("rope_type", None)
    if kind not in _KINDS:
        raise InvalidArgumentError(f"rope_scaling: rope_type: found {kind!r}, expected {' or '.join(_KINDS)}")
    if "factor" not in found:
        raise InvalidArgumentError("rope_scaling: factor: missing; it says how much longer the context gets")
    for name, number in found.items():
        if name not in _NUMBERS:
            raise InvalidArgumentError(
                f"rope_scaling: {name}: not known; expected rope_type, {', '.join(_NUMBERS)}"
            )
        found[name] = _NUMBERS[name].check(f"rope_scaling: {name}", number)
    return {"rope_type": kind, **found}


def _spelled(text: str) -> dict[str, Any]:
    kind, *numbers = text.split(":")
    try:
        found = {"rope_type": kind, "factor": float(numbers[0])}
        if len(numbers) > 1:
            found["original_max_position_embeddings"] = int(numbers[1])
    except (ValueError, IndexError):
        found = {}
    if not found or len(numbers) > 2:
        raise InvalidArgumentError(
            f"rope_scaling: found {text!r}, expected TYPE:FACTOR or TYPE:FACTOR:ORIGINAL, as in yarn:4:32768"
        )
    return found


def gguf_scaling(metadata: Mapping[str, object], scaling: Mapping[str, Any]) -> dict[str, object]:
    """The keys of a GGUF file that say so; the context grows by the factor."""
    owner = metadata.get("general.architecture")
    trained = metadata.get(f"{owner}.rope.scaling.original_context_length") or metadata.get(
        f"{owner}.context_length"
    )
    original = scaling.get("original_max_position_embeddings", trained)
    found: dict[str, object] = {f"{owner}.rope.scaling.type": scaling["rope_type"]}
    found |= {f"{owner}.rope.scaling.{_GGUF[key]}": scaling[key] for key in _GGUF if key in scaling}
    if isinstance(original, int):
        found[f"{owner}.rope.scaling.original_context_length"] = original
        found[f"{owner}.context_length"] = math.floor(original * scaling["factor"])
    return found


def hf_scaling(config: Mapping[str, Any], scaling: Mapping[str, Any]) -> dict[str, Any]:
    """`config.json` with this scaling; the context grows by the factor."""
    inner = config.get("text_config")
    if isinstance(inner, Mapping):
        return {**config, "text_config": hf_scaling(inner, scaling)}
    place = "rope_parameters" if isinstance(config.get("rope_parameters"), Mapping) else "rope_scaling"
    before = config.get(place) or {}
    trained = before.get("original_max_position_embeddings") or config.get("max_position_embeddings")
    original = scaling.get("original_max_position_embeddings", trained)
    kept = {key: before[key] for key in ("rope_theta", "partial_rotary_factor") if key in before}
    found = {**config, place: {**kept, **scaling}}
    if isinstance(original, int):
        found[place]["original_max_position_embeddings"] = original
        found["max_position_embeddings"] = math.floor(original * scaling["factor"])
    if scaling["rope_type"] == "linear":
        found[place].pop("original_max_position_embeddings", None)
    return found


def key_overrides(given: object) -> dict[str, object] | None:
    """Keys and values, of a mapping or of texts such as ``tokenizer.ggml.add_bos_token=bool:false``.

    Raises
    ------
    InvalidArgumentError
        It is not of that form.
    """
    if given is None or given == () or given == []:
        return None
    if isinstance(given, Mapping):
        for key, value in given.items():
            if not isinstance(key, str) or not isinstance(value, bool | int | float | str):
                raise InvalidArgumentError(
                    f"override_kv: {key!r}: found {value!r}, expected a number, True, False or a text"
                )
        return dict(given)
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, Iterable):
        raise InvalidArgumentError(f"override_kv: found {given!r}, expected a mapping of key to value")
    return dict(map(_override, texts))


class Overridable(Protocol):
    """Files of a model, some of whose numbers may be given another value."""

    def override(self, keys: Mapping[str, object], scaling: Mapping[str, Any]) -> None: ...


def apply_overrides(model: Overridable, scaling: object, keys: object) -> None:
    """Give a model the scaling and the keys that were asked for, as `load` takes them.

    Raises
    ------
    InvalidArgumentError
        One is not of the form that `load` takes.
    UnsupportedError
        The files have no such keys.
    """
    wanted, values = rope_scaling(scaling), key_overrides(keys)
    if wanted or values:
        model.override(values or {}, wanted or {})


def _override(text: object) -> tuple[str, object]:
    found = _OVERRIDE.fullmatch(text) if isinstance(text, str) else None
    if found is not None:
        kind, value = found["kind"], found["value"]
        try:
            if kind == "str":
                return found["key"], value
            if kind == "bool":
                return found["key"], _BOOLS[value.lower()]
            number = int(value) if kind == "int" else float(value)
        except (KeyError, ValueError):
            pass
        else:
            if math.isfinite(number):
                return found["key"], number
    raise InvalidArgumentError(
        f"override_kv: found {text!r}, expected KEY=TYPE:VALUE with the type int, float, bool or str"
    )
