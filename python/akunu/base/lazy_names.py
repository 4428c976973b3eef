"""Names of a package whose modules are imported when the name is first used.

Besides saving time, this lets several threads import. A package whose `__init__` imports its modules waits
for them, while another thread that imports one of them waits for the package. Python then gives one of the
two threads a module that is only half there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["lazy_names"]


def lazy_names(package: str, home: Mapping[str, str], names: dict[str, object]) -> Callable[[str], object]:
    """A package's `__getattr__`: `home` tells the module of a name, `names` are the package's globals."""

    def find(name: str) -> object:
        module = home.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(module), name)
        names[name] = value
        return value

    return find
