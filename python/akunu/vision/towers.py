"""A model's tower in its files: what it is, by its numbers, and where its tensors lie.

A tower is in the folder or GGUF file of its model, or in a GGUF file beside it, whose name has "mmproj" in
it. What families have in common is `akunu.vision.families`; this module reads files, and trusts nothing in
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from akunu.base.errors import ModelFileError, errors_of
from akunu.base.json_file import read_optional
from akunu.describe.tensor_map import LayerTensors, TensorInfo, TensorRef, by_name, map_tensors
from akunu.describe.tensor_rules import TensorRule
from akunu.vision.families import FAMILIES, Family, Numbers, Sizes, Turning, tower_config

if TYPE_CHECKING:
    from akunu._core import TensorFiles
    from akunu.describe.config import ModelSpec
    from akunu.files.model_files import ModelFiles

__all__ = ["TowerFiles", "TowerSpec", "find_tower", "with_images"]

_PREFIXES: Final = ("model.visual.", "visual.", "model.", "")


@dataclass(frozen=True, eq=False)
class TowerSpec:
    """A tower ready to be built.

    Attributes
    ----------
    family
        Whose processor its images go through: a key of `akunu.vision.preprocess.FAMILIES`.
    patch_size
        Pixels of a patch's side.
    merge_size
        Patches on the side of the square that becomes one row.
    temporal_patch_size
        Frames of a patch. A picture is one, also where the tower was trained with films.
    image_size
        Pixels of the side of a picture that the tower was trained with, or of the grid of its positions.
    processor
        Settings of the images' processor, by the names of `preprocessor_config.json`.
    config
        The tower's numbers, as `akunu._core.ImageEncoder` takes them.
    tensors
        Canonical name to its place in the files.
    sizes
        Its numbers by name.
    turning
        How the rows of an image turn in the text; None: as tokens do.
    """

    family: str
    patch_size: int
    merge_size: int
    temporal_patch_size: int
    image_size: int
    processor: Mapping[str, Any]
    config: Mapping[str, object]
    tensors: Mapping[str, TensorRef]
    sizes: Sizes
    turning: Turning | None

    @property
    def parts(self) -> int:
        """Vectors of each row: the embedding, and those that are added behind the model's first layers."""
        return 1 + len(self.sizes.deep_layers)


@dataclass(frozen=True, eq=False)
class TowerFiles:
    """A tower and the files that it is in."""

    spec: TowerSpec
    files: TensorFiles
    name: str


def find_tower(files: ModelFiles, path: Path) -> TowerFiles | None:
    """The tower of a model; None where it sees nothing.

    Parameters
    ----------
    files
        The model's, opened.
    path
        Where they are.

    Raises
    ------
    UnsupportedError
        The tower is of a family that is not known.
    ModelFileError
        A number or a tensor of it is missing, or wrong.
    """
    if path.is_dir():
        config = getattr(files, "config", {})
        vision = config.get("vision_config")
        if not isinstance(vision, Mapping):
            return None
        family = next((f for f in FAMILIES.values() if config.get("model_type") in f.model_types), None)
        if family is None:
            return None
        with errors_of(path):
            return _from_folder(family, config, files.files, path)
    return None


def _from_folder(
    family: Family, config: Mapping[str, Any], files: TensorFiles, path: Path
) -> TowerFiles | None:
    tensors = by_name(files.tensors)
    prefix = next(
        (p for p in _PREFIXES if p + family.probe in tensors), None
    )  # a checkpoint may say that it sees, and have no tower
    if prefix is None:
        return None
    numbers = Numbers(config["vision_config"], family.hf_keys, family.defaults, "vision_config.")
    processor = read_optional(path / "preprocessor_config.json")
    if not processor:
        found = read_optional(path / "processor_config.json").get("image_processor")
        processor = dict(found) if isinstance(found, Mapping) else {}
    text = config.get("text_config")
    turning = family.turning_of_folder(text if isinstance(text, Mapping) else config)
    sizes = family.sizes(numbers, config)
    rules = [(rule, prefix) for rule in family.hf_rules]
    return TowerFiles(_spec(family, sizes, tensors, rules, processor, turning), files, path.name)


def _spec(
    family: Family,
    sizes: Sizes,
    tensors: Mapping[str, TensorInfo],
    rules: Sequence[tuple[TensorRule, str]],
    processor: Mapping[str, Any],
    turning: Turning | None,
) -> TowerSpec:
    flat = {name: _flattened(tensor) for name, tensor in tensors.items()}
    named: list[TensorRule] = []
    in_layers: list[TensorRule] = []
    for rule, prefix in rules:
        whole = rule if rule.source.startswith("/") else replace(rule, source=prefix + rule.source)
        whole = replace(whole, source=whole.source.removeprefix("/"))
        if "{n}" in whole.source:
            in_layers.append(whole)
        elif "{k}" in whole.source:
            for k, layer in enumerate(sizes.deep_layers):
                parts = tuple((name.replace("{k}", str(k)), symbol) for name, symbol in whole.parts)
                source = whole.source.replace("{k}", str(k)).replace("{layer}", str(layer))
                named.append(replace(whole, source=source, parts=parts))
        else:
            named.append(whole)
    symbols = sizes.symbols()
    layers = [LayerTensors(tuple(in_layers), symbols)] * sizes.layers
    refs = map_tensors(named, flat, symbols, layers, owner=f"{family.name} tower", ignored=("*",))
    return TowerSpec(
        family=family.processor,
        patch_size=sizes.patch_size,
        merge_size=sizes.merge_size,
        temporal_patch_size=1,
        image_size=sizes.image_size,
        processor=processor,
        config=tower_config(family, sizes),
        tensors=refs,
        sizes=sizes,
        turning=turning,
    )


@dataclass(frozen=True)
class _Flat:
    """A convolution as a matrix: its patches do not overlap."""

    name: str
    dtype: str
    shape: tuple[int, ...]


def _flattened(tensor: TensorInfo) -> TensorInfo:
    shape = tuple(tensor.shape)
    if len(shape) <= 2:
        return tensor
    columns = 1
    for n in shape[1:]:
        columns *= n
    return _Flat(tensor.name, tensor.dtype, (shape[0], columns))


def with_images(spec: ModelSpec, tower: TowerSpec) -> ModelSpec:
    """The model of text, whose texts may have rows of this tower.

    Raises
    ------
    ModelFileError
        The two do not belong together.
    """
    config = spec.config
    if tower.sizes.out != config.dim:
        raise ModelFileError(
            f"the tower makes rows of {tower.sizes.out} elements, the model has {config.dim}; "
            "they do not belong together"
        )
    if tower.parts > 1 and len(config.blocks) and tower.parts > config.n_layers:
        raise ModelFileError(
            f"the tower has vectors for {tower.parts - 1} layers, the model has {config.n_layers}"
        )
    sets = config.rope_sets
    if tower.turning is not None:
        sets = tuple(replace(rope, axes=tower.turning.axes(len(rope.inv_freq))) for rope in sets)
    return replace(spec, config=replace(config, rope_sets=sets, encoded_parts=tower.parts))
