"""The mixers with a state: their sizes, which all layers that have one share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from akunu.base.errors import ModelFileError
from akunu.files.describe.blocks import DeltaNet, Mamba2, Mixer, ShortConvolution
from akunu.files.describe.config_keys import CONFIG_KEYS
from akunu.files.describe.config_numbers import Numbers
from akunu.files.describe.tensor_rules import LayerKind, MixerKind

__all__ = ["RecurrentSizes", "recurrent_sizes"]


@dataclass(frozen=True)
class RecurrentSizes:
    """The sizes of a model's recurrent mixers.

    Attributes
    ----------
    kind
        The mixer; None: the model has none.
    key_heads, value_heads, key_dim, value_dim
        Of a delta net; of Mamba-2, the groups, the heads, the elements of a state for each of a head's, and a
        head's elements.
    taps
        The taps of the convolution.
    """

    kind: MixerKind | None = None
    key_heads: int = 0
    value_heads: int = 0
    key_dim: int = 0
    value_dim: int = 0
    taps: int = 0

    def symbols(self, dim: int) -> dict[str, int]:
        """Return the values of `TensorRule`'s symbols in a layer of a model of that width."""
        if self.kind is None:
            return {}
        if self.kind == "short_convolution":
            return {"conv_parts": 3 * dim, "conv_taps": self.taps}
        values = self.value_heads * self.value_dim
        return {
            "delta_channels": 2 * self.key_heads * self.key_dim + values,
            "delta_values": values,
            "delta_key_heads": self.key_heads,
            "delta_key_dim": self.key_dim,
            "delta_group_heads": self.value_heads // self.key_heads,
            "delta_group_values": values // self.key_heads,
            "delta_value_heads": self.value_heads,
            "delta_value_dim": self.value_dim,
            "delta_taps": self.taps,
        }

    def mixer(self, *, grouped: bool) -> Mixer:
        """The mixer of these sizes; `grouped` as in `DeltaNet`."""
        sizes = (self.key_heads, self.value_heads, self.key_dim, self.value_dim, self.taps)
        match self.kind:
            case "short_convolution":
                return ShortConvolution(self.taps)
            case "mamba2":
                return Mamba2(*sizes)
        return DeltaNet(*sizes, grouped=grouped)


def recurrent_sizes(kinds: Sequence[LayerKind], numbers: Numbers) -> RecurrentSizes:
    """The sizes of the recurrent mixer that some layers have."""
    known: tuple[MixerKind, ...] = ("delta_net", "mamba2", "short_convolution")
    own = next((mixer for kind in kinds for mixer in kind.mixers if mixer in known), None)
    if own is None:
        return RecurrentSizes()
    if own == "short_convolution":
        return RecurrentSizes(own, taps=numbers.integer("conv_taps"))
    key_heads, value_heads = numbers.integer("delta_key_heads"), numbers.integer("delta_value_heads")
    if value_heads % key_heads:
        raise ModelFileError(
            f"{numbers.name('delta_value_heads')}: found {value_heads}, expected a multiple of the "
            f"{key_heads} {'key heads' if own == 'delta_net' else 'groups'}"
        )
    if numbers.keys(CONFIG_KEYS["delta_values"]):  # a GGUF file has the size of all heads
        values = numbers.integer("delta_values")
        if values % value_heads:
            raise ModelFileError(
                f"{numbers.name('delta_values')}: found {values}, expected a multiple of the "
                f"{value_heads} {'value heads' if own == 'delta_net' else 'heads'}"
            )
        value_dim = values // value_heads
    else:
        value_dim = numbers.integer("delta_value_dim")
    return RecurrentSizes(
        own,
        key_heads,
        value_heads,
        numbers.integer("delta_key_dim"),
        value_dim,
        numbers.integer("delta_taps"),
    )
