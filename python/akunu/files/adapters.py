"""Adapters (LoRA) in files: llama.cpp's GGUF files, and PEFT's folders.

An adapter adds scale·B·A to matrices of the model that it was trained on. Its matrices have the model's names
in files of its own kind; a GGUF model takes a PEFT folder and the other way round, where rows have only
another order. docs/adapters.md says what is read, and what is refused.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from akunu.base.errors import AkunuError, ModelFileError, UnsupportedError, errors_of
from akunu.base.json_file import read_object
from akunu.files.describe.architectures import ARCHITECTURES
from akunu.files.describe.blocks import DeltaNet, LatentAttention, Mamba2
from akunu.files.describe.config import ModelSpec
from akunu.files.describe.file_tensors import model_tensors
from akunu.files.describe.hf_models import HF_MODELS
from akunu.files.describe.tensor_map import TensorRef

if TYPE_CHECKING:
    from akunu._core import TensorFiles

__all__ = [
    "AdapterFile",
    "AdapterPart",
    "Addition",
    "additions_of",
    "digest_of",
    "is_adapter",
    "open_adapter",
]

Floats = npt.NDArray[np.float32]

MAX_RANK: Final = 512
_WEIGHTS: Final = "adapter_model.safetensors"
_LORA_KEY: Final = re.compile(
    r"(?:base_model\.model\.)?(?P<module>.+)\.lora_(?P<side>[AB])(?:\.[^.]+)?\.weight"
)
_PREFIX: Final = re.compile(r"(?:model\.|language_model\.|text_model\.|decoder\.)*")
_REFUSED: Final[Mapping[str, tuple[object, ...]]] = {
    "use_dora": (False, None),
    "bias": ("none", None),
    "lora_bias": (False, None),
    "modules_to_save": ([], None),
    "trainable_token_indices": ([], None),
    "layer_replication": ([], None),
    "target_parameters": ([], None),
    "megatron_config": (None,),
    "alora_invocation_tokens": ([], None),
    "use_qalora": (False, None),
    "use_bdlora": (False, None),
    "kasa_config": (None,),
    "monteclora_config": (None,),
    "arrow_config": (None,),
}
"""Keys of `adapter_config.json` for what is more than B·A, with the values that ask for nothing."""
_CHANGES_BASE: Final = ("pissa", "olora", "corda", "eva_merged", "loftq", "lora_ga")
"""Beginnings of `init_lora_weights` after which the adapter is for another model than the published one."""


@dataclass(frozen=True, eq=False)
class AdapterPart:
    """The addition of an adapter to a matrix: scale·B·A.

    Attributes
    ----------
    a, b : numpy.ndarray
        float32 [rank, columns] and [rows, rank].
    """

    a: Floats
    b: Floats
    scale: float


@dataclass(frozen=True, eq=False)
class AdapterFile:
    """An adapter, opened and read.

    Attributes
    ----------
    path
        The file or folder.
    kind
        "GGUF" or "PEFT".
    arch
        The architecture that it says it is for; "" where it says none.
    parts
        What it adds to each matrix, by the names of matrices in files of its kind.
    """

    path: Path
    kind: str
    arch: str
    parts: Mapping[str, AdapterPart]

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that occur."""
        return tuple(sorted({len(part.a) for part in self.parts.values()}))

    def scaled(self, scale: float) -> AdapterFile:
        """The adapter with all that it adds multiplied."""
        parts = {name: replace(part, scale=part.scale * scale) for name, part in self.parts.items()}
        return replace(self, parts=parts)

    def of_model(self, spec: ModelSpec, linears: Mapping[str, tuple[int, int]]) -> dict[str, AdapterPart]:
        """Return the additions to the matrices that a model computes with, by their names there.

        Parameters
        ----------
        spec
            The model.
        linears
            Rows and columns of the matrices that can be added to, by name: `Engine.linears`.

        Raises
        ------
        UnsupportedError
            It changes something that cannot be added to, or belongs to another architecture.
        ModelFileError
            A shape is not the model's.
        """
        with errors_of(self.path):
            if self.arch and self.arch != spec.config.arch:
                raise UnsupportedError(
                    f"the adapter is for the architecture {self.arch!r}, and the model's is "
                    f"{spec.config.arch!r}; take the model that the adapter was trained on"
                )
            places = _places(spec, self.kind)
            found: dict[str, AdapterPart] = {}
            for name, part in self.parts.items():
                here = places.get(name) or places.get(_plain(name))
                if not here:
                    raise UnsupportedError(_why_not(name, spec))
                for canonical, rows, height in here:
                    target = canonical
                    if target == "output" and "output" not in linears:
                        target = "token_embedding"  # of tied models it is the head as well
                    if target not in linears:
                        raise UnsupportedError(_why_not(name, spec))
                    n_cols = linears[target][1]
                    if part.a.shape[1] != n_cols or len(part.b) != height:
                        raise ModelFileError(
                            f"{name}: the adapter is for a matrix of {len(part.b)} x {part.a.shape[1]}, and "
                            f"the model's is {height} x {n_cols}; take the model that the adapter was "
                            "trained on"
                        )
                    found[target] = AdapterPart(part.a, np.ascontiguousarray(part.b[rows]), part.scale)
            return found


@dataclass(frozen=True, eq=False)
class Addition:
    """The addition to rows of a tensor in a model's files: scale·B·A.

    Attributes
    ----------
    rows : numpy.ndarray
        Numbers of the rows, ascending.
    a, b : numpy.ndarray
        float32 [rank, columns] and [rows, rank].
    """

    rows: npt.NDArray[np.intp]
    a: Floats
    b: Floats
    scale: float

    def add_to(self, values: Floats, rows: npt.NDArray[np.intp]) -> None:
        """Add to `values` what belongs to these rows of the tensor."""
        place = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        own = np.flatnonzero(self.rows[place] == rows)
        if len(own):
            values[own] += np.float32(self.scale) * (self.b[place[own]] @ self.a)


def additions_of(adapter: AdapterFile, spec: ModelSpec) -> dict[str, list[Addition]]:
    """Return what merging the adapter adds, by the names of tensors in the model's files.

    Raises
    ------
    UnsupportedError, ModelFileError
        As `AdapterFile.of_model`; or tensors lie in another way, or are shared with embeddings.
    """
    matrices = {
        name: (ref.n_rows, ref.n_cols)
        for name, ref in spec.tensors.items()
        if ref.n_cols and name != "token_embedding"
    }
    found: dict[str, list[Addition]] = {}
    for name, part in adapter.of_model(spec, matrices).items():
        ref = spec.tensors[name]
        if ref.more or ref.turned or ref.swapped or ref.factor:
            raise UnsupportedError(
                f"{adapter.path}: changes {ref.source}, to which nothing can be added in this model's files; "
                "merge the adapter with PEFT"
            )
        found.setdefault(ref.source, []).append(Addition(_rows_of(ref), part.a, part.b, part.scale))
    return found


def _rows_of(ref: TensorRef) -> npt.NDArray[np.intp]:
    """Return which rows of a file's tensor are a canonical tensor's."""
    at = np.arange(ref.n_rows)
    if ref.group is not None:
        group, place = np.divmod(at, ref.group[0])
        at = group * ref.group[1] + place
    return ref.first_row + at


def digest_of(parts: Mapping[str, AdapterPart]) -> str:
    """A hash of all that an adapter adds."""
    found = blake2b(digest_size=20)
    for name, part in sorted(parts.items()):
        found.update(f"{name} {part.a.shape} {part.b.shape} {part.scale!r}\n".encode())
        found.update(part.a.tobytes())
        found.update(part.b.tobytes())
    return found.hexdigest()


def is_adapter(path: Path) -> bool:
    """Whether a file or folder says that it is an adapter; it may still be one that is not read."""
    if path.is_dir():
        return (path / "adapter_config.json").is_file()
    if path.suffix.lower() != ".gguf" or not path.is_file():
        return False
    from akunu import _core

    try:
        return _core.GgufFile(str(path)).metadata.get("general.type") == "adapter"
    except AkunuError:
        return False


def open_adapter(path: str | os.PathLike[str]) -> AdapterFile:
    """Read an adapter: a GGUF file, or PEFT's folder.

    Raises
    ------
    ModelFileError
        It is missing or damaged, or holds NaN or infinities.
    UnsupportedError
        It is no LoRA, or has more than matrices A and B, such as DoRA's magnitudes.
    """
    found = Path(path).expanduser()
    if not found.exists():
        raise ModelFileError(f"{found} does not exist; expected a GGUF file or a folder of PEFT")
    with errors_of(found):
        adapter = _of_peft(found) if found.is_dir() else _of_gguf(found)
        if not adapter.parts:
            raise ModelFileError("holds no matrices lora_a and lora_b")
        for name, part in adapter.parts.items():
            _check(name, part)
    return adapter


def _check(name: str, part: AdapterPart) -> None:
    rank = len(part.a)
    if part.b.shape[1] != rank or not 0 < rank <= MAX_RANK:
        raise ModelFileError(
            f"{name}: A and B have shapes {part.a.shape} and {part.b.shape}; "
            f"expected one rank, of at most {MAX_RANK}"
        )
    if not (np.isfinite(part.a).all() and np.isfinite(part.b).all() and math.isfinite(part.scale)):
        raise ModelFileError(f"{name}: holds NaN or an infinity; the file is damaged, fetch it again")


def _of_gguf(path: Path) -> AdapterFile:
    from akunu import _core

    file = _core.GgufFile(str(path))
    kinds = [file.metadata.get(key) for key in ("general.type", "adapter.type")]
    if kinds != ["adapter", "lora"]:
        raise UnsupportedError(
            f"found general.type {kinds[0]!r} and adapter.type {kinds[1]!r}, expected 'adapter' and 'lora'"
        )
    if file.metadata.get("adapter.alora.invocation_tokens"):
        raise UnsupportedError("is an activated LoRA (aLoRA), which is not supported")
    alpha = file.metadata.get("adapter.lora.alpha", 0.0)
    if isinstance(alpha, bool) or not isinstance(alpha, int | float):
        raise ModelFileError(f"adapter.lora.alpha: found {alpha!r}, expected a number")
    pairs: dict[str, dict[str, str]] = {}
    for tensor in file.tensors:
        name, _, side = tensor.name.rpartition(".")
        if side not in ("lora_a", "lora_b"):
            raise UnsupportedError(f"tensor {tensor.name}: expected names that end in .lora_a or .lora_b")
        pairs.setdefault(name, {})[side] = tensor.name
    parts = _read_pairs(file, pairs, "lora_a", "lora_b", lambda _, rank: alpha / rank if alpha else 1.0)
    return AdapterFile(path, "GGUF", str(file.metadata.get("general.architecture", "")), parts)


def _of_peft(path: Path) -> AdapterFile:
    from akunu import _core

    config = read_object(path / "adapter_config.json")
    if config.get("peft_type") != "LORA":
        hint = "; MLX's adapters are not read" if "lora_parameters" in config else ""
        raise UnsupportedError(f"peft_type: found {config.get('peft_type')!r}, expected 'LORA'{hint}")
    for key, neutral in _REFUSED.items():
        if config.get(key) not in neutral:
            raise UnsupportedError(
                f"adapter_config.json: {key} = {config[key]!r} is more than B·A, and is not supported; merge "
                "the adapter into its model with PEFT (model.merge_and_unload().save_pretrained(OUT))"
            )
    start = config.get("init_lora_weights")
    if isinstance(start, str) and start.lower().startswith(_CHANGES_BASE):
        raise UnsupportedError(
            f"adapter_config.json: init_lora_weights = {start!r} changes the model beside the adapter; save "
            "it with path_initial_model_for_weight_conversion, or merge it with PEFT"
        )
    if not os.path.lexists(path / _WEIGHTS):
        raise ModelFileError(
            f"{_WEIGHTS} is missing; a pickle (adapter_model.bin) can run any code and is not read: save the "
            "adapter with safe_serialization=True"
        )
    file = _core.SafetensorsFiles([str(path / _WEIGHTS)])
    pairs: dict[str, dict[str, str]] = {}
    for tensor in file.tensors:
        found = _LORA_KEY.fullmatch(tensor.name)
        if found is None:
            raise UnsupportedError(f"tensor {tensor.name}: {_kind_of(tensor.name)}, which is not supported")
        pairs.setdefault(f"{found['module']}.weight", {})[found["side"]] = tensor.name
    return AdapterFile(path, "PEFT", "", _read_pairs(file, pairs, "A", "B", _Scales(config)))


def _kind_of(name: str) -> str:
    if "lora_embedding" in name:
        return "is of an adapter of embeddings"
    if "lora_magnitude_vector" in name:
        return "is of DoRA"
    return "is no matrix lora_A or lora_B"


class _Scales:
    """The scale of each module: alpha / rank, or alpha / √rank."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._rank = _number(config, "r")
        self._alpha = _number(config, "lora_alpha")
        self._root = config.get("use_rslora") is True
        self._ranks, self._alphas = (_pattern(config, key) for key in ("rank_pattern", "alpha_pattern"))

    def __call__(self, name: str, rank: int) -> float:
        module = name.removesuffix(".weight")
        expected = _matching(self._ranks, module, self._rank)
        if rank != expected:
            raise ModelFileError(f"{name}: found rank {rank}, expected {expected:g} by adapter_config.json")
        alpha = _matching(self._alphas, module, self._alpha)
        return alpha / (math.sqrt(rank) if self._root else rank)


def _number(config: Mapping[str, Any], key: str) -> float:
    value = config.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ModelFileError(f"adapter_config.json: {key}: found {value!r}, expected a number")
    return float(value)


def _pattern(config: Mapping[str, Any], key: str) -> dict[str, float]:
    value = config.get(key) or {}
    if not isinstance(value, dict):
        raise ModelFileError(f"adapter_config.json: {key}: found {value!r}, expected an object")
    return {name: _number(value, name) for name in value}


def _matching(patterns: Mapping[str, float], module: str, default: float) -> float:
    """The value of the first pattern that is the module's name, or an end of it."""
    for pattern, value in patterns.items():
        name = pattern.removeprefix("^")
        if not re.fullmatch(r"[\w.]+", name):
            raise UnsupportedError(
                f"adapter_config.json: the pattern {pattern!r} is a regular expression; supported are names"
            )
        if module == name or (not pattern.startswith("^") and module.endswith("." + name)):
            return value
    return default


def _read_pairs(
    file: TensorFiles, pairs: Mapping[str, Mapping[str, str]], a: str, b: str, scale: Any
) -> dict[str, AdapterPart]:
    entries = {tensor.name: tensor for tensor in file.tensors}
    found = {}
    for name, sides in pairs.items():
        if set(sides) != {a, b}:
            raise ModelFileError(f"{name}: expected both {a} and {b}, found {', '.join(sides)} alone")
        shapes = [tuple(entries[sides[side]].shape) for side in (a, b)]
        if any(len(shape) != 2 for shape in shapes):
            raise UnsupportedError(
                f"{name}: A and B have shapes {shapes[0]} and {shapes[1]}, expected matrices"
            )
        if not 0 < shapes[0][0] <= MAX_RANK:
            raise ModelFileError(f"{name}: found rank {shapes[0][0]}, expected at most {MAX_RANK}")
        first, second = (_values(file, entries[sides[side]]) for side in (a, b))
        found[name] = AdapterPart(first, second, float(scale(name, len(first))))
    return found


def _values(file: TensorFiles, entry: Any) -> Floats:
    from akunu import _core

    data = np.ascontiguousarray(file.tensor_bytes(entry.name))
    return _core.dequantize(entry.dtype, data, math.prod(entry.shape)).reshape(entry.shape)


def _plain(name: str) -> str:
    """A checkpoint's name without what stands before the decoder's."""
    prefix = _PREFIX.match(name)
    return name[prefix.end() :] if prefix else name


_Place = tuple[str, npt.NDArray[np.intp], int]
"""A canonical tensor, which rows of a file's tensor are its own, and how many rows that has."""


def _places(spec: ModelSpec, kind: str) -> dict[str, list[_Place]]:
    """Return what each tensor in files of a kind holds, by its name there."""
    own = "GGUF" if spec.tensors["token_embedding"].source == "token_embd.weight" else "PEFT"
    return _own_places(spec, kind) if own == kind else _other_places(spec, kind)


def _own_places(spec: ModelSpec, kind: str) -> dict[str, list[_Place]]:
    found: dict[str, list[_Place]] = {}
    heights: dict[str, int] = {}
    for canonical, ref in spec.tensors.items():
        if not ref.n_cols or ref.more or ref.turned:
            continue
        rows = _rows_of(ref)
        names = {ref.source} | ({_plain(ref.source)} if kind == "PEFT" else set())
        for name in names:
            found.setdefault(name, []).append((canonical, rows, 0))
            heights[name] = max(heights.get(name, 0), int(rows.max()) + 1)
    if "output" not in spec.tensors:
        ref = spec.tensors["token_embedding"]
        head = "output.weight" if kind == "GGUF" else "lm_head.weight"
        found[head], heights[head] = [("output", np.arange(ref.n_rows), 0)], ref.n_rows
    for name in ("token_embd.weight", "embed_tokens.weight"):
        found.pop(name, None)
    return {name: [(c, rows, heights[name]) for c, rows, _ in here] for name, here in found.items()}


def _other_places(spec: ModelSpec, kind: str) -> dict[str, list[_Place]]:
    """Return the places in files of the other kind, which have other names and maybe other orders of rows."""
    row = ARCHITECTURES.get(spec.config.arch)
    if row is None or any(spec.config.mixers(mixer) for mixer in (DeltaNet, Mamba2, LatentAttention)):
        raise UnsupportedError(
            f"an adapter of {kind} for a {spec.config.arch} model of the other kind of files is not "
            f"supported; load the model from a {'GGUF file' if kind == 'GGUF' else 'folder'}"
        )
    styles = {model.rope_style for model in HF_MODELS.values() if model.arch == spec.config.arch}
    if len(styles) != 1 and row.rope_style == "interleaved":
        raise UnsupportedError(
            f"folders of {spec.config.arch} models differ in how heads rotate, so that an adapter of {kind} "
            "is not known to fit; load the model from files of the adapter's kind"
        )
    turns = row.rope_style == "interleaved" and styles == {"half"}
    found: dict[str, list[_Place]] = {}
    for rule, layer in model_tensors(spec):
        if rule.cols is None or rule.count is not None or not rule.source or not rule.hf:
            continue
        prefix = f"layers.{layer}." if "{n}" in rule.source else ""
        refs = [(prefix + name, spec.tensors.get(prefix + name)) for name, _ in rule.parts]
        if any(ref is None for _, ref in refs):
            continue
        first, here = 0, []
        height = sum(ref.n_rows for _, ref in refs if ref is not None)
        for i, (canonical, ref) in enumerate(refs):
            assert ref is not None
            rows = np.arange(ref.n_rows)
            heads = {"attn_q": spec.config.n_heads, "attn_k": spec.config.n_kv_heads}.get(rule.parts[i][0], 0)
            if turns and heads:
                # The model's row i is row rows[i] of the adapter's file.
                pairs = rows.reshape(heads, 2, -1).swapaxes(1, 2).reshape(-1)
                rows = pairs if kind == "PEFT" else np.argsort(pairs)
            rows = rows * len(refs) + i if rule.interleaved else first + rows
            here.append((canonical, rows, height))
            first += ref.n_rows
        name = rule.source_of(layer) if kind == "GGUF" else _plain(rule.hf_of(layer))
        if here[0][0] != "token_embedding":
            found[name] = here
    if "output" not in spec.tensors:
        n = spec.tensors["token_embedding"].n_rows
        found["output.weight" if kind == "GGUF" else "lm_head.weight"] = [("output", np.arange(n), n)]
    return found


def _why_not(name: str, spec: ModelSpec) -> str:
    if "exps" in name or "experts" in name:
        return f"{name}: adapters of experts are not supported; merge it with PEFT"
    if "embd" in name or "embed" in name:
        return f"{name}: adapters of embeddings are not supported; merge it with PEFT"
    if name in ("output.weight", "lm_head.weight") and "output" not in spec.tensors:
        return (
            f"{name}: is the matrix of embeddings, too, which cannot be merged; untie and merge it with PEFT"
        )
    return (
        f"{name}: a {spec.config.arch} model with {spec.config.n_layers} layers has no such matrix that an "
        "adapter can change; take the model that the adapter was trained on"
    )
