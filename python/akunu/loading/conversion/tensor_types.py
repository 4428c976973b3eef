"""Types that the caller wants for some tensors of a GGUF file, in place of those of the mix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from akunu.base.errors import InvalidArgumentError
from akunu.files.describe.filetypes import EXACT, FILE_TYPES, block_of
from akunu.loading.conversion.planned import PlannedTensor

__all__ = ["TensorTypes", "checked_tensor_types", "retyped"]

TensorTypes = Sequence[tuple[str, str, str]]
"""Each choice holds the name of its argument, a regular expression for tensor names, and a weight type."""

TYPES: Final = tuple(dict.fromkeys(row.dtype for row in FILE_TYPES.values()))


def checked_tensor_types(
    tensor_types: Mapping[str, str] | Iterable[str] | None,
    output_tensor_type: str | None,
    token_embedding_type: str | None,
) -> TensorTypes:
    """Check the arguments of `akunu.convert`; the last choice whose expression matches a tensor counts.

    Raises
    ------
    InvalidArgumentError
        A pattern is no regular expression, or a type is none.
    """
    if tensor_types is None:
        given: list[tuple[str, str]] = []
    elif isinstance(tensor_types, Mapping):
        given = [(str(pattern), str(kind)) for pattern, kind in tensor_types.items()]
    elif isinstance(tensor_types, str | bytes) or not isinstance(tensor_types, Iterable):
        raise InvalidArgumentError("tensor_types: expected a mapping, or a list of PATTERN=TYPE")
    else:
        given = []
        for choice in tensor_types:
            pattern, equals, kind = str(choice).rpartition("=")
            if not equals or not pattern:
                raise InvalidArgumentError(f"tensor_types: found {choice!r}, expected PATTERN=TYPE")
            given.append((pattern, kind))
    choices = [("tensor_types", pattern, kind) for pattern, kind in given]
    if output_tensor_type is not None:
        choices.append(("output_tensor_type", r"^output\.weight$", output_tensor_type))
    if token_embedding_type is not None:
        choices.append(("token_embedding_type", r"^token_embd\.weight$", token_embedding_type))
    for argument, pattern, kind in choices:
        if kind.lower() not in TYPES:
            raise InvalidArgumentError(f"{argument}: no type {kind!r}; there is {', '.join(TYPES)}")
        try:
            re.compile(pattern)
        except re.error as error:
            raise InvalidArgumentError(
                f"{argument}: {pattern!r} is no regular expression: {error}"
            ) from error
    return [(argument, pattern, kind.lower()) for argument, pattern, kind in choices]


def retyped(tensors: Sequence[PlannedTensor], choices: TensorTypes) -> tuple[PlannedTensor, ...]:
    """Return the tensors with the types that are wanted. Vectors and what must stay exact keep theirs.

    Raises
    ------
    InvalidArgumentError
        A choice fits no matrix, or a row is not whole blocks of the type.
    """
    found = list(tensors)
    for argument, pattern, kind in choices:
        expression, fits = re.compile(pattern), 0
        for i, tensor in enumerate(found):
            stem = re.sub(r"^blk\.\d+\.", "", tensor.name).removesuffix(".weight")
            if not tensor.matrix or stem in EXACT:
                continue
            if not expression.search(tensor.name):
                continue
            fits += 1
            elements, columns = block_of(kind)[0], tensor.shape[-1]
            if columns % elements:
                raise InvalidArgumentError(
                    f"{argument}: {tensor.name} has rows of {columns}, no multiple of the {elements} in a "
                    f"block of {kind}; take a type with smaller blocks, such as q8_0"
                )
            found[i] = replace(tensor, dtype=kind)
        if not fits:
            what = (
                f"{pattern!r} fits no matrix"
                if argument == "tensor_types"
                else "the model has no such tensor"
            )
            names = ", ".join(t.name for t in found[:3] if len(t.shape) > 1)
            raise InvalidArgumentError(f"{argument}: {what}; names are such as {names}")
    return tuple(found)
