"""The numbers of a GGUF file, by its keys, and the layers that its keys say a window is for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.describe.architectures import ARCHITECTURES
from akunu.files.describe.config_keys import (
    CONFIG_KEYS,
    NEUTRAL_VALUES,
    REFUSED_PREFIXES,
    SOFT_CAPS,
    ZERO_IF_UNSET,
    ConfigKey,
)
from akunu.files.describe.config_numbers import Numbers, shown

__all__ = ["GgufNumbers", "local_by_period", "local_layers_of"]


class GgufNumbers(Numbers):
    """The numbers of a GGUF file: `<architecture>.<suffix>`. `soft_caps`: those that the model has."""

    def __init__(
        self,
        metadata: Mapping[str, object],
        name: str,
        defaults: Mapping[str, float],
        *,
        soft_caps: Sequence[str] = (),
    ) -> None:
        super().__init__(metadata, defaults, name)
        self._foreign = self._names(field for field in SOFT_CAPS if field not in soft_caps)
        self._zero_if_unset = self._names(ZERO_IF_UNSET)

    def _names(self, fields: Iterable[str]) -> frozenset[str]:
        return frozenset(name for field in fields for name in self.keys(CONFIG_KEYS[field]))

    def get(self, name: str) -> object:
        value = super().get(name)
        unset = isinstance(value, int | float) and value == 0 and name in self._zero_if_unset
        return None if unset or name in self._foreign else value

    def keys(self, key: ConfigKey) -> tuple[str, ...]:
        return tuple(f"{self.owner}.{suffix}" for suffix in key.suffixes)

    @property
    def suffixes(self) -> dict[str, object]:
        """The values of all keys of the architecture, by what follows its prefix."""
        prefix = f"{self.owner}."
        return {name[len(prefix) :]: self.get(name) for name in self.values if name.startswith(prefix)}

    def suffixed(self, suffix: str) -> object:
        """The raw value of `<architecture>.<suffix>`, or None."""
        return self.get(f"{self.owner}.{suffix}")

    def recurrent_layers(self) -> tuple[bool, ...]:
        key = f"{self.owner}.attention.recurrent_layers"
        flags = self.get(key)
        if flags is None:  # heads of keys may also be 0 there
            heads = self.layer_integers("n_kv_heads", default=1)
            return tuple(n == 0 for n in heads) if 0 in heads else super().recurrent_layers()
        if isinstance(flags, np.ndarray):
            flags = flags.tolist()
        if not isinstance(flags, list | tuple) or len(flags) != self.n_layers:
            raise ModelFileError(
                f"{key}: found {shown(flags)}, expected a flag for each of {self.n_layers} layers"
            )
        return tuple(map(bool, flags))

    def windowed_layers(self) -> tuple[bool, ...]:
        row = ARCHITECTURES.get(self.owner)
        return tuple(local_layers_of(self, self.n_layers, row.window_period if row else 0))

    def refuse_unknown_features(self, *known: str, prefixes: Sequence[str] = ()) -> None:
        """Raise for a key that changes the computation in a way that is not implemented.

        `known` are those that this kind of model has, and `prefixes` begin those of features that it has.
        """
        refused = tuple(prefix for prefix in REFUSED_PREFIXES if prefix not in prefixes)
        prefix = f"{self.owner}."
        for key, value in self.values.items():
            if not key.startswith(prefix):
                continue
            suffix = key[len(prefix) :]
            if suffix.startswith(refused) and not (isinstance(value, bool | float) or value == 0):
                raise UnsupportedError(f"{key}: found {shown(value)}, but this feature is not supported")
            neutral = NEUTRAL_VALUES.get(suffix)
            if (
                suffix not in known
                and neutral is not None
                and not (isinstance(value, int | float) and value in neutral)
            ):
                raise UnsupportedError(
                    f"{key}: found {shown(value)}, but this feature is not supported (only {neutral[0]} is)"
                )


def local_by_period(n_layers: int, period: int, *, full_first: bool = False) -> list[bool]:
    """Return which layers have a window: all but the last (the first) of each `period`, 0: all."""
    full = 0 if full_first else period - 1
    return [period == 0 or n % period != full for n in range(n_layers)]


def local_layers_of(meta: GgufNumbers, n_layers: int, period: int, *, full_first: bool = False) -> list[bool]:
    """Return which layers have a window: as the file says, else by `local_by_period`."""
    pattern = meta.suffixed("attention.sliding_window_pattern")
    if pattern is None:
        pattern = period
    if isinstance(pattern, np.ndarray):
        pattern = pattern.tolist()
    if (
        isinstance(pattern, list | tuple)
        and len(pattern) == n_layers
        and all(isinstance(flag, int) for flag in pattern)
    ):
        return [bool(flag) for flag in pattern]
    if isinstance(pattern, int) and not isinstance(pattern, bool) and pattern >= 0:
        return local_by_period(n_layers, pattern, full_first=full_first)
    raise ModelFileError(
        f"{meta.owner}.attention.sliding_window_pattern: found {shown(pattern)}, expected a period "
        f"or one flag for each of the {n_layers} layers"
    )
