"""Find a request's adapter: by the name of its model, by a field, or as its model says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from akunu.server.errors import ApiError
from akunu.server.foreign_fields import LORA
from akunu.server.models import Entry, Registry

__all__ = ["adapter_id", "one_of", "with_adapter"]


def adapter_id(registry: Registry, entry: Entry, name: str) -> str:
    """Return the name of a model with an adapter in requests: the adapter's, where that says which it is."""
    return name if registry.named(name) == (entry, name) else f"{entry.spec.name}:{name}"


def with_adapter(registry: Registry, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a generation by the model `name`, with the adapter that it has.

    Raises
    ------
    ApiError
        400: two are asked for, or one that is not there.
    """
    found = dict(options)
    entry, own = registry.named(name)
    pairs = found.pop(LORA, None)
    if own is not None:
        if pairs is not None or found.get("adapter") not in (None, own):
            raise ApiError(
                400, f"adapter: the model {name!r} has the adapter {own!r}; ask for {entry.spec.name!r} to "
                "name another", param="adapter", code="invalid_value",
            )  # fmt: skip
        return found | {"adapter": own}
    if pairs is None:
        if found.get("adapter") is None and entry.adapter is not None:
            found |= {"adapter": entry.adapter[0], "adapter_scale": entry.adapter[1]}
        return found
    if found.get("adapter") is not None:
        raise ApiError(
            400, "lora: is another name of adapter, which is given too; give one of them",
            param=LORA, code="invalid_value",
        )  # fmt: skip
    chosen = one_of(entry, pairs, LORA)
    return found if chosen is None else found | {"adapter": chosen[0], "adapter_scale": chosen[1]}


def one_of(entry: Entry, pairs: Any, field: str) -> tuple[str, float] | None:
    """The adapter of llama-server's pairs of a number and a scale; None: all scales are 0.

    Raises
    ------
    ApiError
        400: there is no adapter of such a number, or several are to be added together.
    """
    names = list(entry.adapters)
    for pair in pairs:
        if not 0 <= pair.id < len(names):
            there = f"the ids of its adapters are 0..{len(names) - 1}" if names else "it has no adapters"
            raise ApiError(
                400, f"{field}: no id {pair.id} of {entry.spec.name}; {there}", param=field,
                code="invalid_value",
            )  # fmt: skip
    chosen = [(names[pair.id], pair.scale) for pair in pairs if pair.scale != 0]
    if len(chosen) > 1:
        raise ApiError(
            400, f"{field}: {len(chosen)} adapters have a scale, and a text has one adapter at most",
            param=field, code="unsupported_value",
        )  # fmt: skip
    return chosen[0] if chosen else None
