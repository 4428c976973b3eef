"""From the metadata and tensor list of a GGUF file to a checked model specification.

`resolve` interprets one row of `akunu.architectures` and trusts nothing: each number has bounds, each tensor
must have the shape that the configuration implies, and a tensor or a feature that no rule knows is refused,
because to leave it out would give wrong text. It reads no weights, except the few rotary divisors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol

import numpy as np
import numpy.typing as npt

from akunu.architectures import (
    ARCHITECTURES,
    CONFIG_KEYS,
    NEUTRAL_VALUES,
    REFUSED_PREFIXES,
    ROPE_TENSORS,
    Activation,
    Architecture,
    RopeStyle,
)
from akunu.errors import ModelFileError, UnsupportedError

__all__ = ["GgufSource", "ModelConfig", "ModelSpec", "TensorInfo", "TensorRef", "resolve"]

_VECTOR_DTYPES = ("f32", "f16", "bf16")
_ROPE_SCALINGS = ("none", "linear", "yarn", "longrope")


class TensorInfo(Protocol):
    """One tensor of a file: `shape` is outermost first, so a linear layer is (rows, cols)."""

    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...


class GgufSource(Protocol):
    """What `resolve` needs of an open file; `akunu._core.GgufFile` is one."""

    @property
    def metadata(self) -> Mapping[str, object]: ...
    @property
    def tensors(self) -> Sequence[TensorInfo]: ...
    def tensor_bytes(self, name: str) -> npt.NDArray[np.uint8]: ...


@dataclass(frozen=True)
class TensorRef:
    """Where a canonical tensor lies: rows `first_row` to `first_row + n_rows` of tensor `source`.

    A vector (norm, bias) has one element a row, and `n_cols` 0. `add` is added to every element: some files
    hold the weights of a norm less 1.
    """

    source: str
    first_row: int
    n_rows: int
    n_cols: int
    add: float = 0.0


@dataclass(frozen=True, eq=False)
class ModelConfig:
    """All numbers of a decoder, checked; what is per layer is spelt out.

    Attributes
    ----------
    arch
        Name of the row in `akunu.architectures.ARCHITECTURES`.
    context_length
        Positions the model was trained for.
    rope_dim
        How many leading elements of a head are rotated (even, at most `head_dim`).
    inv_freq
        Radians per position, float32 [sets, rope_dim/2], scaling applied. Set 0 is the global one; set 1,
        when present, is for the layers with a local theta.
    rope_scale
        Factor on cos and sin (YaRN's and LongRoPE's attention factor), 1 for the rest.
    attn_softcap, final_softcap
        Attention scores and logits become `cap * tanh(x / cap)`; 0 = no cap.
    attn_scale
        Factor on q·k.
    embedding_scale
        Factor on the embedding.
    layer_window
        Per layer: 0 = full causal attention; w = a query at p sees the keys in (p - w, p].
    layer_rope
        Per layer: index of its set in `inv_freq`.
    """

    arch: str
    n_layers: int
    dim: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn_dim: int
    vocab_size: int
    context_length: int
    norm_eps: float
    rope_style: RopeStyle
    rope_dim: int
    inv_freq: npt.NDArray[np.float32]
    rope_scale: float
    activation: Activation
    attn_softcap: float
    final_softcap: float
    attn_scale: float
    embedding_scale: float
    layer_window: tuple[int, ...]
    layer_rope: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ModelSpec:
    """A model ready to be built.

    Attributes
    ----------
    config
        Its numbers.
    tensors
        Canonical name to its place in the file: `token_embedding`, `output_norm`, `output`, and with the
        prefix `layers.{n}.`: `attn_norm`, `attn_q|k|v|output`, `attn_q|k|v|output_bias`, `attn_q|k_norm`,
        `post_attn_norm`, `ffn_norm`, `ffn_gate|up|down`, `post_ffn_norm`. What a model lacks is absent, and
        then from every layer. Without `output` the output head is tied to `token_embedding`.
    """

    config: ModelConfig
    tensors: Mapping[str, TensorRef]


def resolve(gguf: GgufSource, *, context: int | None = None) -> ModelSpec:
    """Check a model file and describe it.

    Parameters
    ----------
    gguf
        The open file.
    context
        Positions that the engine will hold; decides between LongRoPE's two sets of divisors (the long set
        when it is more than the original training context). None: the model's own context length.

    Returns
    -------
    ModelSpec
        The configuration and the place of every tensor.

    Raises
    ------
    UnsupportedError
        The architecture, a feature or a tensor is not known.
    ModelFileError
        A key or a tensor is missing, has another type or shape, or is out of range.
    """
    arch = _architecture(gguf.metadata)
    meta = _Metadata(gguf.metadata, arch)
    meta.refuse_unknown_features()
    tensors = _by_name(gguf.tensors)

    n_layers = meta.integer("n_layers")
    meta.n_layers = n_layers
    dim = meta.integer("dim")
    n_heads = meta.integer("n_heads")
    n_kv_heads = meta.integer("n_kv_heads", default=n_heads)
    if n_heads % n_kv_heads:
        raise ModelFileError(
            f"{meta.name('n_kv_heads')}: found {n_kv_heads}, expected a divisor of the {n_heads} heads"
        )
    if not meta.has("head_dim") and dim % n_heads:
        raise ModelFileError(
            f"{meta.name('dim')}: found {dim}, expected a multiple of the {n_heads} heads, "
            f"because {meta.name('head_dim')} is absent"
        )
    head_dim = meta.integer("head_dim", default=dim // n_heads)
    value_dim = meta.integer("value_dim", default=head_dim)
    if value_dim != head_dim:
        raise UnsupportedError(
            f"{meta.name('value_dim')}: found {value_dim}, but only the key's {head_dim} is supported"
        )
    ffn_dim = meta.integer("ffn_dim")
    vocab_size = _vocab_size(tensors, gguf.metadata)
    sizes = {
        "vocab_size": vocab_size,
        "dim": dim,
        "head_dim": head_dim,
        "q_dim": n_heads * head_dim,
        "kv_dim": n_kv_heads * head_dim,
        "ffn_dim": ffn_dim,
    }
    refs = _map_tensors(arch, tensors, sizes, n_layers)

    context_length = meta.integer("context_length")
    rope_dim = meta.integer("rope_dim", default=head_dim)
    if rope_dim % 2 or rope_dim > head_dim:
        raise ModelFileError(
            f"{meta.name('rope_dim')}: found {rope_dim}, expected an even number "
            f"up to the head size {head_dim}"
        )
    layer_window = _layer_windows(meta, arch, n_layers)
    inv_freq, rope_scale = _rotary(gguf, meta, tensors, rope_dim, context_length, context or context_length)
    # A layer is local, with the second set, where it is windowed and the model has a local theta.
    has_local = meta.has("local_rope_theta") and any(layer_window)
    if has_local:
        if rope_scale != 1.0:
            raise UnsupportedError(f"{arch.name}: a local rotary theta together with YaRN or LongRoPE")
        local = _inverse_frequencies(meta.real("local_rope_theta"), rope_dim)
        inv_freq = np.stack([inv_freq, local])
    else:
        inv_freq = inv_freq[np.newaxis]
    frequencies = inv_freq.astype(np.float32)
    frequencies.flags.writeable = False

    wide = n_layers in arch.wide_scale_layers
    config = ModelConfig(
        arch=arch.name,
        n_layers=n_layers,
        dim=dim,
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        head_dim=head_dim,
        ffn_dim=ffn_dim,
        vocab_size=vocab_size,
        context_length=context_length,
        norm_eps=meta.real("norm_eps"),
        rope_style=arch.rope_style,
        rope_dim=rope_dim,
        inv_freq=frequencies,
        rope_scale=rope_scale,
        activation=arch.activation,
        attn_softcap=meta.real("attn_softcap"),
        final_softcap=meta.real("final_softcap"),
        attn_scale=meta.real("attn_scale", default=(dim / n_heads if wide else head_dim) ** -0.5),
        embedding_scale=math.sqrt(dim) if arch.scale_embedding else 1.0,
        layer_window=layer_window,
        layer_rope=tuple(int(has_local and window > 0) for window in layer_window),
    )
    return ModelSpec(config, refs)


class _Metadata:
    """Reads the numbers of one architecture, by field of `CONFIG_KEYS`."""

    def __init__(self, metadata: Mapping[str, object], arch: Architecture) -> None:
        self._metadata = metadata
        self.arch = arch
        self.n_layers = 0  # length that a per-layer array must have; 0 until it is known

    def get(self, suffix: str) -> object:
        """The raw value of `<architecture>.<suffix>`, or None."""
        return self._metadata.get(f"{self.arch.name}.{suffix}")

    def name(self, field: str) -> str:
        """The full key that a field was, or would be, read from."""
        suffixes = CONFIG_KEYS[field].suffixes
        present = [suffix for suffix in suffixes if self.get(suffix) is not None]
        return f"{self.arch.name}.{(present or suffixes)[0]}"

    def has(self, field: str) -> bool:
        """Whether the file or the architecture's row gives the field."""
        return self._metadata.get(self.name(field)) is not None or field in self.arch.defaults

    def integer(self, field: str, *, default: int | None = None) -> int:
        return int(self._number(field, default))

    def real(self, field: str, *, default: float | None = None) -> float:
        return float(self._number(field, default))

    def _number(self, field: str, default: float | None) -> int | float:
        key = CONFIG_KEYS[field]
        name = self.name(field)
        value = self._metadata.get(name)
        if value is None:
            value = self.arch.defaults.get(field, key.default if default is None else default)
        if value is None:
            raise ModelFileError(f"{name} is missing; every {self.arch.name} model needs it")
        value = self._uniform(name, value)
        # bool is a subclass of int, and a flag is not a number
        kinds = (int,) if key.kind is int else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise ModelFileError(f"{name}: found {_shown(value)}, expected {_kind(key.kind)}")
        if not key.low <= value <= key.high:  # false for NaN too
            raise ModelFileError(
                f"{name}: found {value}, expected {_kind(key.kind)} from {key.low:g} to {key.high:g}"
            )
        return value

    def _uniform(self, name: str, value: object) -> object:
        """The one value of a per-layer array whose values are all the same."""
        if not isinstance(value, list | tuple | np.ndarray):
            return value
        values = value.tolist() if isinstance(value, np.ndarray) else list(value)
        if self.n_layers == 0 or len(values) != self.n_layers:
            raise ModelFileError(
                f"{name}: found an array of {len(values)}, expected one number or one a layer"
            )
        if any(other != values[0] for other in values):
            raise UnsupportedError(
                f"{name}: the layers differ ({_shown(values)}); only equal layers are supported"
            )
        return values[0]

    def refuse_unknown_features(self) -> None:
        """Raise for a key that changes the computation in a way that is not implemented."""
        prefix = f"{self.arch.name}."
        for key, value in self._metadata.items():
            if not key.startswith(prefix):
                continue
            suffix = key[len(prefix) :]
            if suffix.startswith(REFUSED_PREFIXES):
                raise UnsupportedError(f"{key}: this feature is not supported")
            neutral = NEUTRAL_VALUES.get(suffix)
            if neutral is not None and not (isinstance(value, int | float) and value in neutral):
                raise UnsupportedError(
                    f"{key}: found {_shown(value)}, but this feature is not supported (only {neutral[0]} is)"
                )


def _architecture(metadata: Mapping[str, object]) -> Architecture:
    kind = metadata.get("general.type", "model")
    if kind != "model":
        raise UnsupportedError(f"general.type: found {_shown(kind)}, expected 'model'")
    name = metadata.get("general.architecture")
    if name is None:
        raise ModelFileError("general.architecture is missing; this is not a model file")
    row = ARCHITECTURES.get(name) if isinstance(name, str) else None
    if row is None:
        raise UnsupportedError(
            f"general.architecture: found {_shown(name)}; supported are {', '.join(sorted(ARCHITECTURES))}"
        )
    return row


def _by_name(tensors: Sequence[TensorInfo]) -> dict[str, TensorInfo]:
    found: dict[str, TensorInfo] = {}
    for tensor in tensors:
        if tensor.name in found:
            raise ModelFileError(f"tensor {tensor.name} appears twice")
        found[tensor.name] = tensor
    return found


def _vocab_size(tensors: Mapping[str, TensorInfo], metadata: Mapping[str, object]) -> int:
    """Rows of the embedding, which the tokenizer's list must have too."""
    embedding = tensors.get("token_embd.weight")
    if embedding is None:
        raise ModelFileError("tensor token_embd.weight is missing; a vocabulary-only file cannot be run")
    rows = embedding.shape[0]
    tokens = metadata.get("tokenizer.ggml.tokens")
    if isinstance(tokens, list | tuple | np.ndarray) and len(tokens) != rows:
        raise ModelFileError(
            f"token_embd.weight: found {rows} rows, expected one for each of the {len(tokens)} tokens "
            "in tokenizer.ggml.tokens"
        )
    return rows


def _map_tensors(
    arch: Architecture, tensors: Mapping[str, TensorInfo], sizes: Mapping[str, int], n_layers: int
) -> dict[str, TensorRef]:
    """Place of every canonical tensor; raises when one is missing, misshapen, or left over."""
    refs: dict[str, TensorRef] = {}
    used = set(ROPE_TENSORS)
    for rule in arch.tensors:
        prefixes = [f"layers.{n}." for n in range(n_layers)] if "{n}" in rule.source else [""]
        sources = [rule.source.replace("{n}", str(n)) for n in range(len(prefixes))]
        if rule.optional and not any(source in tensors for source in sources):
            continue
        for prefix, source in zip(prefixes, sources, strict=True):
            tensor = tensors.get(source)
            if tensor is None:
                where = (
                    f"the {n_layers} layers of this {arch.name} model need it" if prefix else "it is needed"
                )
                raise ModelFileError(f"tensor {source} is missing; {where}")
            rows = [sizes[symbol] for _, symbol in rule.parts]
            n_cols = sizes[rule.cols] if rule.cols is not None else 0
            _check_shape(tensor, (sum(rows), n_cols) if n_cols else (sum(rows),))
            first = 0
            for (name, _), n_rows in zip(rule.parts, rows, strict=True):
                refs[prefix + name] = TensorRef(source, first, n_rows, n_cols)
                first += n_rows
            used.add(source)
    for name in tensors:
        if name not in used and not any(fnmatchcase(name, pattern) for pattern in arch.ignored):
            raise UnsupportedError(
                f"tensor {name}: the architecture {arch.name} with {n_layers} layers has no such tensor, "
                "and to leave it out would change the model"
            )
    return refs


def _check_shape(tensor: TensorInfo, expected: tuple[int, ...]) -> None:
    if tuple(tensor.shape) != expected:
        raise ModelFileError(f"tensor {tensor.name}: found shape {tuple(tensor.shape)}, expected {expected}")
    if len(expected) == 1 and tensor.dtype not in _VECTOR_DTYPES:
        raise UnsupportedError(
            f"tensor {tensor.name}: found type {tensor.dtype}, expected one of {', '.join(_VECTOR_DTYPES)} "
            "for a vector"
        )


def _layer_windows(meta: _Metadata, arch: Architecture, n_layers: int) -> tuple[int, ...]:
    """Sliding window of each layer, 0 for full attention."""
    window = meta.integer("window")
    pattern = meta.get("attention.sliding_window_pattern")
    if pattern is None:
        pattern = arch.window_period
    if isinstance(pattern, list | tuple | np.ndarray) and len(pattern) == n_layers:
        local = [bool(flag) for flag in pattern]
    elif isinstance(pattern, int) and not isinstance(pattern, bool) and pattern >= 0:
        local = [pattern == 0 or n % pattern < pattern - 1 for n in range(n_layers)]
    else:
        raise ModelFileError(
            f"{arch.name}.attention.sliding_window_pattern: found {_shown(pattern)}, expected a period "
            f"or one flag for each of the {n_layers} layers"
        )
    return tuple(window if flag else 0 for flag in local)


def _rotary(
    gguf: GgufSource,
    meta: _Metadata,
    tensors: Mapping[str, TensorInfo],
    rope_dim: int,
    context_length: int,
    context: int,
) -> tuple[npt.NDArray[np.float64], float]:
    """Frequencies [rope_dim/2] of the global set, and the factor on cos and sin."""
    scaling = meta.get("rope.scaling.type")
    if scaling is None:
        scaling = "linear"  # files of 2023 give only a factor; without one, linear scaling changes nothing
    if scaling not in _ROPE_SCALINGS:
        raise UnsupportedError(
            f"{meta.arch.name}.rope.scaling.type: found {_shown(scaling)}; "
            f"supported are {', '.join(_ROPE_SCALINGS)}"
        )
    original = meta.integer("rope_original_context", default=context_length)
    inv_freq = _inverse_frequencies(meta.real("rope_theta"), rope_dim)
    divisors = "rope_freqs.weight"
    if divisors not in tensors:
        divisors = f"rope_factors_{'long' if context > original else 'short'}.weight"
    if divisors in tensors:
        inv_freq = inv_freq / _divisors(gguf, tensors[divisors], rope_dim // 2)
    elif scaling == "longrope":
        raise ModelFileError(f"tensor {divisors} is missing; LongRoPE scaling needs it")
    scale = meta.real("rope_attn_factor")
    factor = meta.real("rope_factor")
    if scaling == "linear":
        inv_freq = inv_freq / factor
    elif scaling == "yarn":
        inv_freq = _yarn(meta, inv_freq, factor, rope_dim, original)
        # YaRN, equation 22: the softmax temperature, moved into cos and sin
        scale *= meta.real("yarn_attn_factor", default=1.0 + 0.1 * math.log(max(factor, 1.0)))
    return inv_freq, scale


def _inverse_frequencies(theta: float, rope_dim: int) -> npt.NDArray[np.float64]:
    """theta**(-2i / rope_dim) for i < rope_dim / 2."""
    return np.asarray(theta ** -(np.arange(0, rope_dim, 2, dtype=np.float64) / rope_dim))


def _divisors(gguf: GgufSource, tensor: TensorInfo, n: int) -> npt.NDArray[np.float64]:
    """The values of a tensor of rotary divisors, F32 [n]."""
    _check_shape(tensor, (n,))
    if tensor.dtype != "f32":
        raise UnsupportedError(f"tensor {tensor.name}: found type {tensor.dtype}, expected f32")
    values = np.frombuffer(gguf.tensor_bytes(tensor.name).tobytes(), dtype="<f4").astype(np.float64)
    if values.shape != (n,) or not np.all((values >= 1e-3) & (values <= 1e6)):  # false for NaN too
        raise ModelFileError(f"tensor {tensor.name}: expected {n} divisors from 0.001 to 1e6")
    return values


def _yarn(
    meta: _Metadata, inv_freq: npt.NDArray[np.float64], factor: float, rope_dim: int, original: int
) -> npt.NDArray[np.float64]:
    """YaRN ("NTK-by-parts", arXiv:2309.00071): high frequencies kept, low ones divided by `factor`."""
    theta = meta.real("rope_theta")

    def index_of(rotations: float) -> float:
        """The (fractional) frequency index that makes so many rotations in the original context."""
        return rope_dim * math.log(original / (rotations * 2.0 * math.pi)) / (2.0 * math.log(theta))

    low = max(math.floor(index_of(meta.real("yarn_beta_fast"))), 0)
    high = min(math.ceil(index_of(meta.real("yarn_beta_slow"))), rope_dim - 1)
    ramp = np.clip((np.arange(rope_dim // 2) - low) / max(high - low, 1e-3), 0.0, 1.0)
    return inv_freq * (1.0 - ramp) + inv_freq / factor * ramp


def _kind(kind: type[int] | type[float]) -> str:
    return "an integer" if kind is int else "a number"


def _shown(value: object) -> str:
    """A value for a message: short, whatever the file holds."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
