"""Where a model runs: the devices that are here, and for "auto" the first that takes the model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TypeVar

from akunu.base.errors import DeviceError, InvalidArgumentError, UnsupportedError

__all__ = ["on_first", "present"]

T = TypeVar("T")


def present(wanted: str) -> list[str]:
    """The ids that `wanted` stands for, best first: of "auto" all up to the CPU.

    Raises
    ------
    InvalidArgumentError
        There is no such device.
    """
    from akunu import _core

    ids = [device["id"] for device in _core.devices()]
    if wanted == "auto":
        return ids[: ids.index("cpu") + 1]  # what comes after it is for tests
    if wanted not in ids:
        raise InvalidArgumentError(f"device: no {wanted!r} here; there is {', '.join(ids)}")
    return [wanted]


def on_first(devices: Sequence[str], load: Callable[[str], T]) -> T:
    """What `load` gives on the first of `devices` that has room for the model and kernels for it.

    Why it is not the first of all is warned of.

    Raises
    ------
    DeviceError, UnsupportedError
        From the last.
    """
    refused = []
    for device in devices[:-1]:
        try:
            loaded = load(device)
            break
        except (DeviceError, UnsupportedError) as error:
            refused.append(f"not on {device}: {error}")
    else:
        loaded = load(devices[-1])
    if refused:
        warnings.warn(
            f"the model runs on {devices[len(refused)]}, {'; '.join(refused)}", RuntimeWarning, stacklevel=4
        )
    return loaded
