"""Choose where a model runs: the devices that are here, and for "auto" the first that takes the model."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from akunu.base.errors import DeviceError, InvalidArgumentError, UnsupportedError

if TYPE_CHECKING:
    from akunu._core import DeviceInfo

__all__ = ["device_info", "first_gpu", "is_spread", "on_first", "present"]

T = TypeVar("T")


def _gpus(device: str) -> list[str]:
    """The ids of the GPUs that "cuda:0" or "cuda:0,1" names; none of other ids."""
    if not re.fullmatch(r"cuda:\d+(,\d+)*", device):
        return []
    numbers = [int(number) for number in device.removeprefix("cuda:").split(",")]
    return [f"cuda:{number}" if number else "cuda" for number in numbers]


def is_spread(device: str) -> bool:
    """Whether the id names several GPUs."""
    return len(_gpus(device)) > 1


def first_gpu(device: str) -> str:
    """Return the first GPU of several, on which what stands beside a model runs; other ids as they are."""
    return [*_gpus(device), device][0]


def device_info(device: str) -> DeviceInfo:
    """The row of `akunu.devices()` with this id; of several GPUs that of each of them."""
    from akunu import _core

    found = next(row for row in _core.devices() if row["id"] == first_gpu(device))
    gpus = _gpus(device)
    return {**found, "id": device, "name": f"{len(gpus)} × {found['name']}"} if len(gpus) > 1 else found


def present(wanted: str) -> list[str]:
    """The ids that `wanted` stands for, best first: of "auto" all up to the CPU.

    "cuda:0" is "cuda", and "cuda:0,1" is those two GPUs together.

    Raises
    ------
    InvalidArgumentError
        There is no such device, or a GPU is named twice.
    """
    from akunu import _core

    ids = [device["id"] for device in _core.devices()]
    if not isinstance(wanted, str):
        raise InvalidArgumentError(f"device: found {wanted!r}, expected 'auto' or one of {', '.join(ids)}")
    if wanted == "auto":
        return ids[: ids.index("cpu") + 1]  # what comes after it is for tests
    gpus = _gpus(wanted)
    for gpu in gpus:
        if gpu not in ids:
            raise InvalidArgumentError(f"device: {wanted!r} names {gpu!r}; there is {', '.join(ids)}")
        if gpus.count(gpu) > 1:
            raise InvalidArgumentError(
                f"device: {wanted!r} names {gpu!r} twice; name each GPU once, as in 'cuda:0,1'"
            )
    if len(gpus) > 1:
        return ["cuda:" + ",".join(str(int(number)) for number in wanted[len("cuda:") :].split(","))]
    wanted = first_gpu(wanted)
    if wanted not in ids:
        raise InvalidArgumentError(f"device: no {wanted!r} here; there is {', '.join(ids)}")
    return [wanted]


def on_first(devices: Sequence[str], load: Callable[[str], T]) -> T:
    """Return what `load` gives on the first of `devices` that has room for the model and kernels for it.

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
