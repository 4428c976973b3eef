"""Adapters that become part of the weights: W + scale·B·A."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from akunu.api.adapting import SCALE
from akunu.base.arguments import as_path
from akunu.files.adapters import Addition, additions_of, digest_of, open_adapter
from akunu.files.model_files import ModelFiles

__all__ = ["Adapters", "Merged", "merged_with"]

Adapters = str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | Mapping[str | os.PathLike[str], float]
"""Paths of adapters; a mapping says with which scales."""


@dataclass(frozen=True, eq=False)
class Merged:
    """The additions to a model's tensors, and a hash of them."""

    additions: Mapping[str, Sequence[Addition]]
    digest: str


def merged_with(model: ModelFiles, adapters: Adapters) -> Merged:
    """Read the adapters that are merged into a model.

    Raises
    ------
    ModelFileError, UnsupportedError
        An adapter is missing or damaged, or for another model.
    InvalidArgumentError
        A scale is no finite number.
    """
    spec = model.spec(drafts=None)
    found: dict[str, list[Addition]] = {}
    hashes = []
    if isinstance(adapters, str | os.PathLike):
        adapters = [adapters]
    scales = adapters if isinstance(adapters, Mapping) else dict.fromkeys(adapters, 1.0)
    for path, scale in scales.items():
        file = open_adapter(as_path("merge", path)).scaled(SCALE.check("merge", scale))
        hashes.append(digest_of(file.parts))
        for name, added in additions_of(file, spec).items():
            found.setdefault(name, []).extend(added)
    return Merged(found, " ".join(hashes))
