"""A row of the kernel table."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from .builders import BUILDERS, Traits
from .problem import Problem
from .weights import has_levels, is_affine, is_planar, recoded

BOTH = ("f32", "q8")


#: What multiplies with one of several matrices.
_OF_PARTS = ("experts_gate_up", "experts_down", "head_matmul")


@dataclass(frozen=True)
class Case:
    """One row."""

    builder: str
    args: tuple[tuple[str, Any], ...]

    @property
    def id(self) -> str:
        """A name that is unique and says everything."""
        parts = []
        for name, value in self.args:
            text = "+".join(map(str, value)) if isinstance(value, tuple) else str(value)
            parts.append(text if isinstance(value, str | tuple) else f"{name}={text}")
        return "-".join([self.builder, *parts])

    def get(self, name: str, default: Any = None) -> Any:
        """An argument."""
        return dict(self.args).get(name, default)

    def runs_on(self, device: str) -> bool:
        """Whether the device knows it.

        A GPU's heads have 512 elements at most. Gate and up of planar types are two commands there, and
        Metal's planar types are the affine ones alone. Types with codebooks run on the CPU.
        """
        dtype = stored = self.get("dtype", "f32")
        if device != "cpu" and self.builder == "attention":
            _, _, head_dim = self.get("shape")
            if head_dim > 512:
                return False
        if device == "cpu":
            return True
        if has_levels(dtype):
            return False
        dtype = recoded(dtype)
        if not is_planar(dtype):
            return True
        # Norms are commands of their own before planar types on CUDA, and the lab recodes no experts for it.
        norms = self.builder.startswith("norm_")
        if (device == "cuda" and norms) or (dtype != stored and (norms or self.builder in _OF_PARTS)):
            return False
        return self.builder != "gate_up" and (device == "cuda" or is_affine(dtype))

    def build(self, traits: Traits, checking: bool = True) -> Problem:
        """The problem; the same data in every run. "q8" stands for the device's compact format."""
        problem = Problem(checking=checking)
        rng = np.random.default_rng(zlib.crc32(self.id.encode()))
        args = dict(self.args)
        if "formats" in args:
            compact = traits.matmul_input("q4_0")
            args["formats"] = tuple(compact if f == "q8" else f for f in args["formats"])
        BUILDERS[self.builder](problem, traits, rng, **args)
        return problem


def case(builder: str, **args: Any) -> Case:
    """A row."""
    return Case(builder, tuple(args.items()))
