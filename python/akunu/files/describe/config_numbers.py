"""The numbers of a model, each read by its field and held to its bounds, whatever the file calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.describe.config_keys import CONFIG_KEYS, ConfigKey

__all__ = [
    "DecoderSizes",
    "ExpertSizes",
    "LatentSizes",
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
        """Return a key's name for a message."""
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

    def layer_reals(self, field: str, *, default: float) -> tuple[float, ...]:
        """The field's value in each layer, as in `layer_integers`."""
        value = self._value(field, default)
        if not isinstance(value, list | tuple | np.ndarray):
            return (float(self._checked(field, value)),) * self.n_layers
        values = value.tolist() if isinstance(value, np.ndarray) else list(value)
        self._check_length(self.name(field), values)
        return tuple(float(self._checked(field, each)) for each in values)

    def recurrent_layers(self) -> tuple[bool, ...]:
        """Return which layers have a recurrence in attention's place: by default all but each n-th."""
        interval = self.integer("full_attention_interval")
        return tuple((n + 1) % interval != 0 for n in range(self.n_layers))

    def windowed_layers(self) -> tuple[bool, ...]:
        """Return which layers have a sliding window."""
        raise NotImplementedError

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
class LatentSizes:
    """The sizes of latent attention: see `akunu.blocks.LatentAttention`."""

    q_rank: int
    latent: int
    nope_dim: int
    rope_dim: int
    value_dim: int

    def symbols(self, n_heads: int, dim: int) -> dict[str, int]:
        """Return the values of `TensorRule`'s symbols in a layer."""
        return {
            "latent_q_rank": self.q_rank,
            "latent_q_whole": 0 if self.q_rank else dim,
            "latent": self.latent,
            "latent_key": self.latent + self.rope_dim,
            "latent_nope": self.nope_dim,
            "latent_value": self.value_dim,
            "latent_queries": n_heads * (self.nope_dim + self.rope_dim),
            "latent_heads": n_heads * (self.nope_dim + self.value_dim),
            "latent_values": n_heads * self.value_dim,
        }


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
    latent: LatentSizes | None = None
    local_head_dim: int = 0  # of windowed layers; 0: that of the others
    windowed: tuple[bool, ...] = ()  # each layer; empty: none is
    shared_kv_layers: int = 0  # the last ones, which read the keys and values of others
    layer_input_dim: int = 0
    streams: int = 0  # residual streams, where there are several
    laurel_rank: int = 0

    def symbols(self, vocab_size: int, layer_input_rows: int = 0, positions: int = 0) -> dict[str, int]:
        """Return the values of `TensorRule`'s symbols outside of layers."""
        return {
            "vocab_size": vocab_size,
            "dim": self.dim,
            "layer_input_rows": layer_input_rows,
            "positions": positions,
            "layer_input_dim": self.layer_input_dim,
            "layer_inputs": self.layer_input_dim * self.n_layers,
            "more_streams": self.streams - 1,
        }

    def layer_head_dim(self, layer: int) -> int:
        """Elements of a head of one layer."""
        local = bool(self.windowed) and self.windowed[layer] and self.local_head_dim
        return self.local_head_dim if local else self.head_dim

    def kv_owner(self, layer: int) -> int | None:
        """The layer whose keys and values this one reads: the last one of its kind that has its own."""
        first = self.n_layers - self.shared_kv_layers
        if layer < first:
            return None
        windowed = self.windowed or (False,) * self.n_layers
        alike = [n for n in range(first) if windowed[n] == windowed[layer]]
        if not alike:
            raise ModelFileError(
                f"the last {self.shared_kv_layers} of {self.n_layers} layers read the keys and values of "
                f"others, but there is none for layer {layer} to read"
            )
        return alike[-1]

    def layer_symbols(self, layer: int) -> dict[str, int]:
        """Return the values of `TensorRule`'s symbols in a layer."""
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
        if self.latent is not None:
            sizes |= self.latent.symbols(self.n_heads[layer], self.dim)
        head_dim = self.layer_head_dim(layer)
        return sizes | {
            "one": 1,
            "n_heads": self.n_heads[layer],
            "dim": self.dim,
            "two_dims": 2 * self.dim,
            "head_dim": head_dim,
            "q_dim": self.n_heads[layer] * head_dim,
            "kv_dim": self.n_kv_heads[layer] * head_dim,
            "n_kv_heads": self.n_kv_heads[layer],
            "group_q_dim": self.n_heads[layer] // max(self.n_kv_heads[layer], 1) * head_dim,
            "ffn_dim": self.ffn_dim[layer],
            "layer_input_dim": self.layer_input_dim,
            "streams": self.streams,
            "stream_pairs": self.streams**2,
            "laurel_rank": self.laurel_rank,
        }


def latent_sizes(numbers: Numbers) -> LatentSizes:
    """The sizes of latent attention, which all layers share.

    A GGUF file has two lengths of a key, and of a value: those of a head and those of what is kept of a
    position, which follow from other numbers. Ollama's files have them the other way around; older ones have
    only those of a head.
    """
    q_rank, latent = numbers.integer("latent_q_rank"), numbers.integer("latent")
    rope = numbers.integer("latent_rope")
    if not numbers.keys(CONFIG_KEYS["latent_key_length"]):
        nope, value = numbers.integer("latent_nope"), numbers.integer("latent_value")
        return LatentSizes(q_rank, latent, nope, rope, value)
    fields = ("head_dim", "value_dim")
    if numbers.has("latent_key_length"):
        usual = ("latent_key_length", "latent_value_length")
        kept = (latent + rope, latent)
        swapped = (numbers.integer(usual[0]), numbers.integer(usual[1])) == kept
        fields = fields if swapped and tuple(map(numbers.integer, fields)) != kept else usual
    key, value = map(numbers.integer, fields)
    if key <= rope:
        raise ModelFileError(
            f"{numbers.name(fields[0])}: found {key}, expected more than the {rope} elements that rotate"
        )
    return LatentSizes(q_rank, latent, key - rope, rope, value)


def decoder_sizes(numbers: Numbers, *, shared_by_count: bool = False, latent: bool = False) -> DecoderSizes:
    """The sizes, consistent with each other.

    `shared_by_count` is as in `Architecture`; `latent`: its attention is latent attention.
    """
    n_layers = numbers.integer("n_layers")
    numbers.n_layers = n_layers
    nextn = numbers.integer("nextn_layers")
    if nextn >= n_layers:
        raise ModelFileError(
            f"{numbers.name('nextn_layers')}: found {nextn}, expected less than the {n_layers} layers"
        )
    dim = numbers.integer("dim")
    n_heads = numbers.layer_integers("n_heads")
    latents = latent_sizes(numbers) if latent else None
    has_kv_heads = numbers.has("n_kv_heads")
    n_kv_heads = numbers.layer_integers("n_kv_heads") if has_kv_heads else n_heads
    for heads, kv_heads in zip(n_heads, n_kv_heads, strict=True):
        if kv_heads and heads % kv_heads:
            raise ModelFileError(
                f"{numbers.name('n_kv_heads')}: found {kv_heads}, expected a divisor of the {heads} heads"
            )
    if latents is not None:
        head_dim = latents.nope_dim + latents.rope_dim
    else:  # a width that heads do not divide is wider than all of them, for others too
        head_dim = numbers.integer("head_dim", default=dim // n_heads[0])
    experts = _expert_sizes(numbers, shared_by_count=shared_by_count)
    # Where all layers have experts, the file need not say what size another feed-forward would have.
    absent = experts.dim if experts and numbers.has("expert_dim") else None
    ffn_dim = numbers.layer_integers("ffn_dim", default=absent)
    n = n_layers - nextn
    shared = numbers.integer("shared_kv_layers")
    if shared >= n:
        raise ModelFileError(
            f"{numbers.name('shared_kv_layers')}: found {shared}, expected less than the {n} layers"
        )
    return DecoderSizes(
        n,
        dim,
        head_dim,
        n_heads[:n],
        n_kv_heads[:n],
        ffn_dim[:n],
        experts,
        latents,
        local_head_dim=numbers.integer("local_head_dim", default=head_dim),
        shared_kv_layers=shared,
        layer_input_dim=numbers.integer("layer_input_dim"),
        streams=_streams(numbers),
        laurel_rank=numbers.integer("laurel_rank"),
    )


def _streams(numbers: Numbers) -> int:
    count, active = numbers.integer("streams"), numbers.integer("active_stream")
    if count and active >= count:
        raise ModelFileError(
            f"{numbers.name('active_stream')}: found {active}, expected less than the {count} streams"
        )
    return count


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
