"""A model's tower in its files: what it is, by its numbers, and where its tensors lie.

A tower is in the folder or GGUF file of its model, or in a GGUF file beside it, whose name has "mmproj" in
it. What families have in common is `akunu.api.vision.families`; this module reads files, and trusts nothing
in them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from akunu.api.vision.families import FAMILIES
from akunu.api.vision.family import Family, Numbers, Sizes, Spread, Turning, Whole, tower_config
from akunu.api.vision.ollama_towers import OLLAMA_TOWERS
from akunu.base.errors import ModelFileError, UnsupportedError, errors_of
from akunu.base.json_file import read_optional
from akunu.files.describe.blocks import Attention
from akunu.files.describe.quantized import join_planes, with_planes
from akunu.files.describe.tensor_map import LayerTensors, TensorInfo, TensorRef, by_name, map_tensors
from akunu.files.describe.tensor_rules import TensorRule
from akunu.files.hub.projectors import projector_of

if TYPE_CHECKING:
    from akunu._core import TensorFiles
    from akunu.files.describe.config import ModelSpec
    from akunu.files.model_files import ModelFiles

__all__ = ["TowerFiles", "TowerSpec", "find_tower", "with_images"]

_NESTED: Final = "vision_tower.vision_model."
_SECTION_KEYS: Final = ("rope.dimension_sections", "rope.mrope_section", "mrope_sections")
_PROCESSOR_KEYS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "image_mean": ("image_mean",),
        "image_std": ("image_std",),
        "min_pixels": ("image_min_pixels", "min_pixels", "shortest_edge"),
        "max_pixels": ("image_max_pixels", "max_pixels", "longest_edge"),
        **{
            name: (name,)
            for name in (
                "tile_size", "min_tiles", "max_tiles", "min_image_tokens", "max_image_tokens",
                "use_thumbnail", "do_image_splitting", "max_pixels_tolerance",
            )
        },
    }
)  # fmt: skip
"""Settings of processors by their keys in GGUF files: llama.cpp's first, then Ollama's."""
_NOT_USED: Final = ("*.head.*", "*.inv_freq", "*.position_ids", "v.token_embd.*", "mm.a.*")
"""Tensors that say nothing of an image's rows: a head that pools, tables that follow from numbers, sound."""
_PREFIXES: Final = ("model.visual.", "visual.", "model.", "", "vision_tower.")


@dataclass(frozen=True, eq=False)
class TowerSpec:
    """A tower ready to be built.

    Attributes
    ----------
    family
        Whose processor its images go through: a key of `akunu.chat.pictures.preprocess.FAMILIES`.
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
    spread
        How its vectors of positions, if there are some, are spread over an image.
    turning
        How the rows of an image turn in the text; None: as tokens do.
    whole_rows
        Most rows of an image, where those of one see each other in the text; 0: where they do not.
    whole
        In which layers of the model of text they do.
    channels_last
        The values of a patch are in the order [y, x, channel].
    sides_paired
        Vectors of positions of a column and of a row take turns.
    centred
        Values of pixels go from -1 to 1.
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
    spread: Spread | None
    turning: Turning | None
    whole_rows: int = 0
    whole: Whole | None = None
    channels_last: bool = False
    sides_paired: bool = False
    centred: bool = False

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


def find_tower(files: ModelFiles, path: Path, named: Path | None = None) -> TowerFiles | None:
    """The tower of a model; None where it sees nothing.

    Parameters
    ----------
    files
        The model's, opened.
    path
        Where they are.
    named
        The `mmproj` file that has it; None: the one beside a GGUF file, by its name.

    Raises
    ------
    ModelFileError, UnsupportedError
        A number or a tensor of it is missing, or is not one that is known.
    """
    if path.is_dir() and named is None:
        config = getattr(files, "config", {})
        family = next((f for f in FAMILIES.values() if config.get("model_type") in f.model_types), None)
        if family is None or not isinstance(config.get("vision_config"), Mapping):
            return None
        with errors_of(path):
            return _from_folder(family, config, files.files, path)
    return _beside(files, path, named)


def _from_folder(
    family: Family, config: Mapping[str, Any], files: TensorFiles, path: Path
) -> TowerFiles | None:
    tensors = join_planes(config, by_name(files.tensors))
    # Transformers had a module more there before its fifth version, and published files have it.
    nested = any(_NESTED in name for name in tensors)

    def named(rule: str) -> str:
        return rule.replace("vision_tower.", _NESTED, 1) if nested else rule

    # A checkpoint may say that it sees, and have no tower.
    prefix = next((prefix for prefix in _PREFIXES if prefix + named(family.probe) in tensors), None)
    if prefix is None:
        return None
    processor = read_optional(path / "preprocessor_config.json")
    if not processor:
        found = read_optional(path / "processor_config.json").get("image_processor")
        processor = dict(found) if isinstance(found, Mapping) else {}
    text = config.get("text_config")
    if not isinstance(text, Mapping):
        text = config
    sections = _sections(text)
    given = {
        "out": text.get("hidden_size"),
        "text_eps": text.get("rms_norm_eps"),
        **config["vision_config"],
    }
    sizes = _sizes(family, Numbers(given, family.defaults, "vision_config"), config)
    rules = [replace(rule, source=prefix + named(rule.hf)) for rule in family.rules if rule.hf]
    spec = _spec(family, sizes, tensors, rules, processor, family.turning(sections), text, gguf=False)
    spec = replace(spec, tensors=_without_infinities(spec.tensors, files))
    return TowerFiles(spec, files, path.name)


def _sizes(family: Family, numbers: Numbers, config: Mapping[str, Any]) -> Sizes:
    return replace(family.sizes(numbers, config), rotary_base=numbers.rotary_base() or family.rotary_base)


def _sections(text: Mapping[str, Any]) -> object:
    """Return how many frequencies turn by time, row and column."""
    for key in ("rope_scaling", "rope_parameters"):
        if isinstance(found := text.get(key), Mapping) and "mrope_section" in found:
            return found["mrope_section"]
    return None


def _beside(files: ModelFiles, path: Path, named: Path | None) -> TowerFiles | None:
    """The tower of a model's GGUF file: in it, in an `mmproj` file beside it, or in the one that is named."""
    from akunu import _core

    arch = files.metadata.get("general.architecture")
    families = [family for family in FAMILIES.values() if arch in family.archs]
    if named is None:
        known_names = {tensor.name for tensor in files.files.tensors}
        rows = [*(family for family in OLLAMA_TOWERS if arch in family.archs), *families]
        own = next((family for family in rows if _is_among(family, known_names)), None)
        if own is not None:
            keys = files.metadata
            with errors_of(path):
                return _from_gguf(own, files.files, keys, keys, path.name, f"{arch}.vision.")
        if not families:
            return None
        names = [entry.name for entry in path.parent.iterdir()]
        found = projector_of(names, path.name)
        if found is None:
            return None
        file = path.parent / found
    else:
        file = named
    with errors_of(file):
        opened = _core.GgufFile(str(file))
        projector = opened.get("clip.projector_type") or opened.get("clip.vision.projector_type")
        family = next((family for family in families if projector in family.projectors), None)
        if family is None:
            known = ", ".join(name for each in families for name in each.projectors) or "none"
            raise UnsupportedError(
                f"clip.projector_type: found {projector!r:.60}, expected that of a tower for models of the "
                f"architecture {arch}: {known}"
            )
        tower = _from_gguf(family, opened, opened.metadata, files.metadata, file.name)
        if tower.spec.sizes.out != files.metadata.get(f"{arch}.embedding_length"):
            raise ModelFileError(
                f"its rows have {tower.spec.sizes.out} elements, those of {path.name} have "
                f"{files.metadata.get(f'{arch}.embedding_length')}: it is another model's"
            )
    return tower


def _is_among(family: Family, names: Set[str]) -> bool:
    """Whether the file of a model has this family's tower, as Ollama's have."""
    return all(
        rule.source.replace("{n}", "0") in names
        for rule in family.rules
        if rule.source and not rule.optional and "{k}" not in rule.parts[0][0]
    )


def _from_gguf(
    family: Family,
    files: TensorFiles,
    metadata: Mapping[str, Any],
    text: Mapping[str, Any],
    name: str,
    prefix: str = "clip.vision.",
) -> TowerFiles:
    """The tower of a file whose keys have this prefix. `text`: the keys of the model's file."""
    tensors = by_name(files.tensors)
    arch = str(text.get("general.architecture"))
    keys = {
        key: own.format(arch=arch) if own.startswith("{arch}") else prefix + own
        for key, own in family.gguf_keys.items()
    }
    given: dict[str, Any] = {key: metadata.get(own) for key, own in keys.items()}
    if given.get("out") is None:
        given["out"] = text.get(f"{arch}.embedding_length")
    for key, place in family.gguf_shapes.items():
        tensor, axis = place if isinstance(place, tuple) else (place, 0)
        if tensor not in tensors or len(tensors[tensor].shape) <= axis:
            raise ModelFileError(f"tensor {tensor} is missing, or has no axis {axis}")
        given[key] = tensors[tensor].shape[axis]
    patches = tensors.get("v.patch_embd.weight")
    if patches is not None:
        given["patch_values"] = tuple(patches.shape)[1:]
    if metadata.get("clip.use_silu"):
        given["hidden_act"] = "silu"
    if given.get("deepstack_visual_indexes") is None:
        deep = metadata.get(f"{prefix}is_deepstack_layers")
        given["deepstack_visual_indexes"] = [n for n, flag in enumerate(deep or []) if flag]
    processor = {
        name: next(
            (value for value in map(metadata.get, (prefix + key for key in own)) if value or value is False),
            None,
        )
        for name, own in _PROCESSOR_KEYS.items()
    }
    named_sections = (text.get(f"{arch}.{key}") for key in _SECTION_KEYS)
    sections = next((found for found in named_sections if found is not None), None)
    if sections is None:
        sections = family.defaults.get("mrope_section")
    given["rope_theta"] = metadata.get(f"{prefix}rope.freq_base")
    given["text_eps"] = text.get(f"{arch}.attention.layer_norm_rms_epsilon")
    sizes = _sizes(family, Numbers(given, family.defaults, prefix.removesuffix(".")), {})
    rules = [rule for rule in family.rules if rule.source]
    up = tensors.get("v.blk.0.ffn_up.weight")
    if up is not None and tuple(up.shape) == (sizes.dim, sizes.ffn) and sizes.dim != sizes.ffn:
        # Older converters took the two for each other.
        names = {"ffn_up": "ffn_down", "ffn_down": "ffn_up"}
        rules = [
            replace(rule, source=rule.source.replace(name, names[name]))
            if (name := rule.parts[0][0].removesuffix("_bias")) in names
            else rule
            for rule in rules
        ]
    given_processor = {key: value for key, value in processor.items() if value is not None}
    spec = _spec(family, sizes, tensors, rules, given_processor, family.turning(sections), text, gguf=True)
    return TowerFiles(replace(spec, tensors=_without_infinities(spec.tensors, files)), files, name)


def _without_infinities(refs: Mapping[str, TensorRef], files: TensorFiles) -> Mapping[str, TensorRef]:
    """The tensors but for bounds that bound nothing."""
    from akunu import _core

    types = {tensor.name: tensor.dtype for tensor in files.tensors}

    def bounds(name: str) -> bool:
        if not name.endswith(("_min", "_max")):
            return True
        source = refs[name].source
        return bool(np.isfinite(_core.dequantize(types[source], files.tensor_bytes(source), 1)).all())

    return {name: ref for name, ref in refs.items() if bounds(name)}


def _spec(
    family: Family,
    sizes: Sizes,
    tensors: Mapping[str, TensorInfo],
    rules: Sequence[TensorRule],
    processor: Mapping[str, Any],
    turning: Turning | None,
    text: Mapping[str, Any],
    *,
    gguf: bool,
) -> TowerSpec:
    roots = _roots([rule.source for rule in rules])
    flat = {
        name: _flattened(tensor, sizes) for name, tensor in tensors.items() if name.startswith(tuple(roots))
    }
    symbols = sizes.symbols()
    named: list[TensorRule] = []
    for rule in rules:
        if not any("{k}" in name for name, _ in rule.parts):
            named.append(rule)
            continue
        for k, layer in enumerate(sizes.deep_layers):
            parts = tuple((name.replace("{k}", str(k)), symbol) for name, symbol in rule.parts)
            source = rule.source.replace("{k}", str(k)).replace("{layer}", str(layer))
            named.append(replace(rule, source=source, parts=parts))
    layers = LayerTensors(tuple(rule for rule in named if "{n}" in rule.source), symbols)
    refs = map_tensors(
        [rule for rule in named if "{n}" not in rule.source],
        flat,
        symbols,
        [layers] * sizes.layers,
        owner=f"{family.name} tower",
        known=[
            rule.source.replace("{n}", str(sizes.layers + n))
            for rule in layers.rules
            for n in range(sizes.unused_layers)
        ],
        ignored=_NOT_USED,
    )
    if not gguf:
        refs |= {name: replace(refs[name], add=1.0) for name in family.hf_norms_less_one}
    refs = with_planes(refs, tensors)
    shape = tuple(tensors[refs["patches"].source].shape)
    channels_last = not gguf and (family.hf_channels_last or shape[-1] == sizes.channels != sizes.patch_size)
    return TowerSpec(
        family=family.processor,
        patch_size=sizes.patch_size,
        merge_size=sizes.merge_size,
        temporal_patch_size=1,
        image_size=sizes.image_size,
        processor=processor,
        config=tower_config(family, sizes, gguf=gguf, channels_last=channels_last),
        tensors=refs,
        sizes=sizes,
        spread=family.spread,
        turning=turning,
        whole_rows=sizes.most_rows if family.whole and family.sees_whole(text) else 0,
        whole=family.whole,
        channels_last=channels_last,
        sides_paired=not gguf and family.hf_sides_paired,
        centred=family.centred,
    )


def _roots(sources: Sequence[str]) -> set[str]:
    """Return how names of a tower's tensors begin, where other models' in the same files do not."""
    modules = (source.removeprefix("model.").partition(".")[0] for source in sources)
    nested = any(source.startswith("model.") for source in sources)
    return {f"model.{module}." if nested else f"{module}." for module in modules}


@dataclass(frozen=True)
class _Flat:
    """A convolution as a matrix, whose patches do not overlap; or two tables as one."""

    name: str
    dtype: str
    shape: tuple[int, ...]


def _flattened(tensor: TensorInfo, sizes: Sizes) -> TensorInfo:
    shape = tuple(tensor.shape)
    if shape == (sizes.dim * sizes.channels, sizes.frames, sizes.patch_size, sizes.patch_size):
        return _Flat(tensor.name, tensor.dtype, (sizes.dim, sizes.channels * math.prod(shape[1:])))
    if not shape:
        return _Flat(tensor.name, tensor.dtype, (1,))
    if len(shape) <= 2:
        return tensor
    if len(shape) == 3:
        return _Flat(tensor.name, tensor.dtype, (shape[0] * shape[1], shape[2]))
    return _Flat(tensor.name, tensor.dtype, (shape[0], math.prod(shape[1:])))


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
    if len(config.blocks) and tower.parts - 1 > config.n_layers:
        raise ModelFileError(
            f"the tower has vectors for {tower.parts - 1} layers, the model has {config.n_layers}"
        )
    sets = config.rope_sets
    if tower.turning is not None:
        sets = tuple(replace(rope, axes=tower.turning.axes(len(rope.inv_freq))) for rope in sets)
    blocks = config.blocks
    if tower.whole_rows:
        blocks = tuple(
            replace(block, mixer=replace(block.mixer, whole_images=True))
            if isinstance(block.mixer, Attention) and (tower.whole == "all" or block.mixer.window)
            else block
            for block in blocks
        )
    return replace(
        spec,
        config=replace(
            config,
            rope_sets=sets,
            blocks=blocks,
            encoded_parts=tower.parts,
            whole_image_rows=tower.whole_rows,
        ),
    )
