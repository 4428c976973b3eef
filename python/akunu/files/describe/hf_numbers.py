"""Numbers of a `config.json`, and which of the model's layers are of which type."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from akunu.base.errors import ModelFileError
from akunu.files.describe.config_keys import ConfigKey
from akunu.files.describe.config_numbers import Numbers, shown

__all__ = ["FULL", "LINEAR", "SLIDING", "HfNumbers", "local_layers"]

FULL: Final = "full_attention"
SLIDING: Final = "sliding_attention"
LINEAR: Final = "linear_attention"
"""Types of layers, as `layer_types` names them."""


class HfNumbers(Numbers):
    """The numbers of `config.json`, or of an object in it. `own`: `HfModel.keys`."""

    def __init__(
        self,
        values: Mapping[str, object],
        defaults: Mapping[str, float],
        owner: str,
        where: str = "",
        own: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(values, defaults, owner)
        self._where = where
        self._own = frozenset(own.values())

    def keys(self, key: ConfigKey) -> tuple[str, ...]:
        # What the class reads is before a key of another class that stands beside it.
        return tuple(sorted(key.hf, key=lambda name: name not in self._own))

    def shown_key(self, name: str) -> str:
        return f"config.json: {self._where}{name}"

    def windowed_layers(self) -> tuple[bool, ...]:
        return tuple(local_layers(self.values, self.n_layers) or (False,) * self.n_layers)

    def recurrent_layers(self) -> tuple[bool, ...]:
        types = self.get("layer_types")
        if types is None:
            return super().recurrent_layers()
        known = (LINEAR, FULL)
        if not isinstance(types, list) or len(types) != self.n_layers or any(t not in known for t in types):
            raise ModelFileError(
                f"{self.shown_key('layer_types')}: found {shown(types)}, expected {' or '.join(known)} "
                f"for each of the {self.n_layers} layers"
            )
        return tuple(kind == LINEAR for kind in types)


def local_layers(config: Mapping[str, object], n_layers: int) -> list[bool] | None:
    """Whether each layer is windowed; None where the configuration does not say it layer by layer."""
    types = config.get("layer_types")
    if types is None:
        return None
    if not isinstance(types, list) or len(types) != n_layers or any(t not in (FULL, SLIDING) for t in types):
        raise ModelFileError(
            f"config.json: layer_types: found {shown(types)}, expected {FULL!r} or {SLIDING!r} "
            f"for each of the {n_layers} layers"
        )
    return [kind == SLIDING for kind in types]
