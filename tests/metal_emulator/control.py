"""Settings and counters of the fake Metal device, for tests in the same process.

    device = Control()
    device["schedule"], device["seed"] = 1, 7
    ...
    device.drain()
    assert device["live_objects"] == 0, device.live()

The names are those of ``metal/control.cpp``.  Initial values may also come from the environment:
``AKUNU_METAL_EMULATOR="schedule=1,seed=7"``.
"""

from __future__ import annotations

import ctypes as C
from collections.abc import Iterator
from contextlib import contextmanager

from .build import build


class Control:
    """The fake device's control interface (loads the library if the process has not)."""

    def __init__(self) -> None:
        self._lib = C.CDLL(str(build() / "libfake_metal.so"), mode=C.RTLD_GLOBAL)
        self._lib.metal_emulator_get.restype = C.c_int64
        self._lib.metal_emulator_set.argtypes = (C.c_char_p, C.c_int64)
        self._lib.metal_emulator_take_faults.restype = C.c_char_p

    def __setitem__(self, name: str, value: int) -> None:
        if self._lib.metal_emulator_set(name.encode(), value):
            raise KeyError(f"the Metal emulator has no setting {name!r}")

    def __getitem__(self, name: str) -> int:
        value = int(self._lib.metal_emulator_get(name.encode()))
        if value == -1:
            raise KeyError(f"the Metal emulator has no setting or counter {name!r}")
        return value

    @contextmanager
    def settings(self, **values: int) -> Iterator[Control]:
        """Set for a block, and set back."""
        before = {name: self[name] for name in values}
        try:
            for name, value in values.items():
                self[name] = value
            yield self
        finally:
            self.drain()
            for name, value in before.items():
                self[name] = value

    def drain(self) -> None:
        """Wait until all queues are idle and all completion handlers have run."""
        self._lib.metal_emulator_drain()

    def take_faults(self) -> list[str]:
        """Messages of command buffers that failed since the last call."""
        return self._lib.metal_emulator_take_faults().decode().splitlines()

    def print_live(self) -> None:
        """Print the live Objective-C objects by class to stderr."""
        self._lib.metal_emulator_print_live()
