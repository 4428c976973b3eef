"""The numbers of a model, each read by its field and held to its bounds, whatever the file calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.describe.config_keys import CONFIG_KEYS, ConfigKey

__all__ = [
    "DecoderSizes",
    "ExpertSizes",
    "Numbers",
    "decoder_sizes",
    "kind_text",
    "shown",
]


class Numbers:
    """Reads the numbers of one model, by field of `CONFIG_KEYS`.

    Parameters
    ----------
    values
        What the file gives, by its own keys. None counts as absent.
    defaults
        By field; these replace the defaults of `CONFIG_KEYS`.
    owner
        The kind of model, for messages.
    """

    def __init__(self, values: Mapping[str, object], defaults: Mapping[str, float], owner: str) -> None:
        self.values = values
        self.owner = owner
        self.n_layers = 0  # length that a per-layer array must have; 0 until it is known
        self._defaults = defaults

    def keys(self, key: ConfigKey) -> tuple[str, ...]:
        """The keys of the file that may give a field; the first one present wins."""
        raise NotImplementedError

    def shown_key(self, name: str) -> str:
        """How a key is named in a message."""
        return name

    def get(self, name: str) -> object:
        """The raw value of a key, or None."""
        return self.values.get(name)

    def key(self, field: str) -> str:
        """The key that a field was, or would be, read from."""
        names = self.keys(CONFIG_KEYS[field])
        present = [name for name in names if self.get(name) is not None]
        return [*present, *names, field][0]

    def name(self, field: str) -> str:
        """`key`, as a message names it."""
        return self.shown_key(self.key(field))

    def has(self, field: str) -> bool:
        """Whether the file or the defaults give the field."""
        return self.get(self.key(field)) is not None or field in self._defaults

    def integer(self, field: str, *, default: int | None = None) -> int:
        return int(self._number(field, default))

    def real(self, field: str, *, default: float | None = None) -> float:
        return float(self._number(field, default))

    def layer_integers(self, field: str, *, default: int | None = None) -> tuple[int, ...]:
        """The field's value in each layer: a number for all of them, or an array with one for each."""
        value = self._value(field, default)
        if not isinstance(value, list | tuple | np.ndarray):
            return (int(self._checked(field, value)),) * self.n_layers
        values = value.tolist() if isinstance(value, np.ndarray) else list(value)
        self._check_length(self.name(field), values)
        return tuple(int(self._checked(field, each)) for each in values)

    def recurrent_layers(self) -> tuple[bool, ...]:
        """Which layers have a recurrence in attention's place: by default all but each n-th."""
        interval = self.integer("full_attention_interval")
        return tuple((n + 1) % interval != 0 for n in range(self.n_layers))

    def _number(self, field: str, default: float | None) -> int | float:
        return self._checked(field, self._uniform(self.name(field), self._value(field, default)))

    def _value(self, field: str, default: float | None) -> object:
        key = CONFIG_KEYS[field]
        value = self.get(self.key(field))
        if value is None:
            value = self._defaults.get(field, key.default if default is None else default)
        if value is None:
            raise ModelFileError(f"{self.name(field)} is missing; every {self.owner} model needs it")
        return value

    def _checked(self, field: str, value: object) -> int | float:
        key, name = CONFIG_KEYS[field], self.name(field)
        # bool is a subclass of int, and a flag is not a number
        kinds = (int,) if key.kind is int else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise ModelFileError(f"{name}: found {shown(value)}, expected {kind_text(key.kind)}")
        if not key.low <= value <= key.high:  # false for NaN too
            raise ModelFileError(
                f"{name}: found {shown(value)}, expected {kind_text(key.kind)} "
                f"from {key.low:g} to {key.high:g}"
            )
        return value

    def _uniform(self, name: str, value: object) -> object:
        """The one value of a per-layer array whose values are all the same."""
        if not isinstance(value, list | tuple | np.ndarray):
            return value
        values = value.tolist() if isinstance(value, np.ndarray) else list(value)
        self._check_length(name, values)
        if any(other != values[0] for other in values):
            raise UnsupportedError(
                f"{name}: the layers differ ({shown(values)}); only equal layers are supported"
            )
        return values[0]

    def _check_length(self, name: str, values: Sequence[object]) -> None:
        if self.n_layers == 0 or len(values) != self.n_layers:
            raise ModelFileError(
                f"{name}: found an array of {len(values)}, expected one number or one a layer"
            )


@dataclass(frozen=True)
class ExpertSizes:
    """The sizes of a layer with experts: see `akunu.blocks.Experts`."""

    count: int
    used: int
    dim: int
    shared_dim: int
    latent_dim: int = 0


@dataclass(frozen=True)
class DecoderSizes:
    """The sizes of a decoder's tensors. Those that may differ from layer to layer are tuples."""

    n_layers: int
    dim: int
    head_dim: int
    n_heads: tuple[int, ...]
    n_kv_heads: tuple[int, ...]
    ffn_dim: tuple[int, ...]
    experts: ExpertSizes | None = None

    def symbols(self, vocab_size: int) -> dict[str, int]:
        """What the symbols of `TensorRule` stand for outside of layers."""
        return {"vocab_size": vocab_size, "dim": self.dim}

    def layer_symbols(self, layer: int) -> dict[str, int]:
        """What the symbols of `TensorRule` stand for in a layer."""
        experts = self.experts
        sizes = (
            {
                "n_experts": experts.count,
                "expert_dim": experts.dim,
                "shared_dim": experts.shared_dim,
                "latent_dim": experts.latent_dim,
                "expert_width": experts.latent_dim or self.dim,
            }
            if experts
            else {}
        )
        return sizes | {
            "one": 1,
            "n_heads": self.n_heads[layer],
            "dim": self.dim,
            "two_dims": 2 * self.dim,
            "head_dim": self.head_dim,
            "q_dim": self.n_heads[layer] * self.head_dim,
            "kv_dim": self.n_kv_heads[layer] * self.head_dim,
            "ffn_dim": self.ffn_dim[layer],
        }


def decoder_sizes(numbers: Numbers, *, shared_by_count: bool = False) -> DecoderSizes:
    """The sizes, consistent with each other; `shared_by_count` as in `Architecture`."""
    n_layers = numbers.integer("n_layers")
    numbers.n_layers = n_layers
    nextn = numbers.integer("nextn_layers")
    if nextn >= n_layers:
        raise ModelFileError(
            f"{numbers.name('nextn_layers')}: found {nextn}, expected less than the {n_layers} layers"
        )
    dim = numbers.integer("dim")
    n_heads = numbers.layer_integers("n_heads")
    has_kv_heads = numbers.has("n_kv_heads")
    n_kv_heads = numbers.layer_integers("n_kv_heads") if has_kv_heads else n_heads
    for heads, kv_heads in zip(n_heads, n_kv_heads, strict=True):
        if kv_heads and heads % kv_heads:
            raise ModelFileError(
                f"{numbers.name('n_kv_heads')}: found {kv_heads}, expected a divisor of the {heads} heads"
            )
    if not numbers.has("head_dim") and dim % n_heads[0]:
        raise ModelFileError(
            f"{numbers.name('dim')}: found {dim}, expected a multiple of the {n_heads[0]} heads, "
            f"because {numbers.name('head_dim')} is absent"
        )
    head_dim = numbers.integer("head_dim", default=dim // n_heads[0])
    experts = _expert_sizes(numbers, shared_by_count=shared_by_count)
    # Where all layers have experts, the file need not say what size another feed-forward would have.
    absent = experts.dim if experts and numbers.has("expert_dim") else None
    ffn_dim = numbers.layer_integers("ffn_dim", default=absent)
    n = n_layers - nextn
    return DecoderSizes(n, dim, head_dim, n_heads[:n], n_kv_heads[:n], ffn_dim[:n], experts)


def _expert_sizes(numbers: Numbers, *, shared_by_count: bool) -> ExpertSizes | None:
    count = numbers.integer("n_experts")
    if count == 0:
        return None
    used = numbers.integer("experts_used")
    if not 1 <= used <= count:
        raise ModelFileError(
            f"{numbers.name('experts_used')}: found {used}, expected 1 to the {count} experts that there are"
        )
    dim = numbers.integer("expert_dim" if numbers.has("expert_dim") else "ffn_dim")
    by_count = dim * numbers.integer("shared_experts")
    shared = by_count if shared_by_count else numbers.integer("shared_dim") or by_count
    return ExpertSizes(count, used, dim, shared, numbers.integer("latent_dim"))


def kind_text(kind: type[int] | type[float]) -> str:
    """ "an integer" or "a number"."""
    return "an integer" if kind is int else "a number"


def shown(value: object) -> str:
    """A value for a message: short, whatever the file holds."""
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."
