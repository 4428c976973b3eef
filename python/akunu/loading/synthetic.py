"""A model of a published shape with random weights: its metadata and tensors, without a file.

It is described the way a GGUF file is, so that `akunu.files.describe.gguf_config.resolve` checks it like
one, and so that `akunu.cli.bench.gguf_file` can write the same model for another engine to run.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from akunu.base.errors import InvalidArgumentError
from akunu.files.describe.architectures import ARCHITECTURES
from akunu.files.describe.config_numbers import DecoderSizes, decoder_sizes
from akunu.files.describe.filetypes import SYNTHETIC_TYPES, block_of, tensor_dtype
from akunu.files.describe.gguf_numbers import GgufNumbers
from akunu.files.describe.recurrent import recurrent_sizes
from akunu.files.describe.tensor_rules import TensorRule
from akunu.loading.shapes import SHAPES, Shape

__all__ = ["SyntheticModel", "SyntheticTensor"]

_ROPE_FREQS = "rope_freqs.weight"


@dataclass(frozen=True)
class SyntheticTensor:
    """One tensor: `shape` outermost first, `canonical` the names that the engine gives its parts."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    canonical: tuple[str, ...]

    @property
    def nbytes(self) -> int:
        """Size of its data."""
        elems, size = block_of(self.dtype)
        return math.prod(self.shape) // elems * size


class SyntheticModel:
    """Random weights of a known shape and file type.

    Parameters
    ----------
    name
        "SHAPE:TYPE", for example "qwen3-0.6b:q4_0"; see `SHAPES` and `SYNTHETIC_TYPES`.

    Raises
    ------
    InvalidArgumentError
        The shape or the type is not known.
    """

    def __init__(self, name: str) -> None:
        shape_name, separator, file_type = name.lower().partition(":")
        if not separator:
            raise InvalidArgumentError(
                f"--synthetic: found {name!r}, expected SHAPE:TYPE such as qwen3-0.6b:q4_0"
            )
        if shape_name not in SHAPES:
            raise InvalidArgumentError(
                f"--synthetic: unknown shape {shape_name!r}; known are {', '.join(sorted(SHAPES))}"
            )
        if file_type not in SYNTHETIC_TYPES:
            raise InvalidArgumentError(
                f"--synthetic: unknown type {file_type!r}; known are {', '.join(SYNTHETIC_TYPES)}"
            )
        self.name = f"{shape_name}:{file_type}"
        self.shape_name = shape_name
        self.shape: Shape = SHAPES[shape_name]
        self.file_type = file_type

    @cached_property
    def metadata(self) -> dict[str, object]:
        """The metadata of a GGUF file of this model, except the tokenizer's."""
        shape = self.shape
        prefix = shape.arch
        numbers: dict[str, object] = {
            "block_count": shape.n_layers,
            "context_length": shape.context_length,
            "embedding_length": shape.dim,
            "feed_forward_length": shape.ffn_dim,
            "attention.head_count": shape.n_heads,
            "attention.head_count_kv": shape.n_kv_heads,
            "attention.key_length": shape.head_dim,
            "attention.value_length": shape.head_dim,
            "attention.layer_norm_rms_epsilon": shape.norm_eps,
            "rope.dimension_count": shape.head_dim,
            "rope.freq_base": shape.rope_theta,
            "vocab_size": shape.vocab_size,
            **shape.extra,
        }
        return {
            "general.architecture": shape.arch,
            "general.name": "random weights",  # llama.cpp takes hints from a model's real name
            "general.size_label": shape.label,
            "general.file_type": SYNTHETIC_TYPES[self.file_type].id,
            **{f"{prefix}.{key}": value for key, value in numbers.items()},
        }

    @cached_property
    def tensors(self) -> list[SyntheticTensor]:
        """Every tensor, in the order of a file."""
        arch = ARCHITECTURES[self.shape.arch]
        outside = (*arch.tensors, *(arch.layer_inputs if self._sizes.layer_input_dim else ()))
        found = [self._tensor(rule, None) for rule in outside if self._wanted(rule)]
        if self.shape.llama3_rope or self.shape.proportional_rope:
            found.append(SyntheticTensor(_ROPE_FREQS, "f32", (self.shape.head_dim // 2,), ()))
        for layer, kind in enumerate(arch.kinds_of(self._numbers, self.shape.n_layers)):
            sizes = self._sizes.layer_symbols(layer) | self._recurrent_sizes
            present = [rule for rule in kind.tensors if self._wanted(rule) and rule.is_in(sizes)]
            found += [self._tensor(rule, layer) for rule in present]
        return found

    @cached_property
    def _numbers(self) -> GgufNumbers:
        arch = ARCHITECTURES[self.shape.arch]
        numbers = GgufNumbers(self.metadata, arch.name, arch.defaults)
        numbers.n_layers = self.shape.n_layers
        return numbers

    @cached_property
    def _recurrent_sizes(self) -> dict[str, int]:
        kinds = ARCHITECTURES[self.shape.arch].kinds_of(self._numbers, self.shape.n_layers)
        return recurrent_sizes(kinds, self._numbers).symbols(self._sizes.dim)

    @property
    def dtypes(self) -> dict[str, str]:
        """Canonical tensor name to type: the argument `synthetic` of the engine."""
        return {name: tensor.dtype for tensor in self.tensors for name in tensor.canonical}

    def tensor_bytes(self, name: str) -> npt.NDArray[np.uint8]:
        """Bytes of a tensor that is not random: the divisors of the rotary frequencies."""
        shape = self.shape
        if name != _ROPE_FREQS or not (shape.llama3_rope or shape.proportional_rope):
            raise InvalidArgumentError(f"tensor {name}: its weights are random and have no bytes")
        divisors = llama3_divisors(shape) if shape.llama3_rope else proportional_divisors(shape)
        return np.frombuffer(divisors.astype("<f4").tobytes(), np.uint8)

    @cached_property
    def _sizes(self) -> DecoderSizes:
        arch = ARCHITECTURES[self.shape.arch]
        sizes = decoder_sizes(self._numbers, shared_by_count=arch.shared_by_count, latent=arch.has_latents)
        # Gemma 3n's, of which no key tells.
        rank = 64 if sizes.streams else 0
        return dataclasses.replace(sizes, windowed=self._numbers.windowed_layers(), laurel_rank=rank)

    def _wanted(self, rule: TensorRule) -> bool:
        if rule.source == "output.weight":
            return not self.shape.tied
        if not rule.source:  # of checkpoints alone
            return False
        if rule.optional and rule.parts[0][0] == "attn_v" and self.shape.keys_are_values:
            return False
        left_out = rule.optional and rule.parts[0][0].endswith("_bias")
        return not (rule.folder_only or (left_out and rule.parts[0][0] not in self.shape.biases))

    def _tensor(self, rule: TensorRule, layer: int | None) -> SyntheticTensor:
        shape = self.shape
        sizes = (
            self._sizes.symbols(shape.vocab_size, shape.vocab_size)
            if layer is None
            else self._sizes.layer_symbols(layer)
        )
        sizes = sizes | self._recurrent_sizes
        rows = sum(sizes[symbol] for _, symbol in rule.parts)
        count: tuple[int, ...] = ()
        if rule.count is not None and rule.flat:
            rows *= sizes[rule.count]
        elif rule.count is not None:
            count = (sizes[rule.count],)
        prefix = "" if layer is None else f"layers.{layer}."
        name = rule.source.replace("{n}", str(layer))
        canonical = tuple(prefix + part for part, _ in rule.parts)
        if rule.cols is None:
            return SyntheticTensor(name, "f32", (*count, rows), canonical)
        cols = sizes[rule.cols]
        dtype = tensor_dtype(
            self.file_type,
            rule.source.removeprefix("blk.{n}.").removesuffix(".weight"),
            layer=layer or 0,
            n_layers=shape.n_layers,
            cols=cols,
            gqa=shape.n_heads // shape.n_kv_heads,
            tied=shape.tied,
            n_experts=self._sizes.experts.count if self._sizes.experts else 0,
        )
        return SyntheticTensor(name, dtype, (*count, rows, cols), canonical)


def proportional_divisors(shape: Shape) -> npt.NDArray[np.float64]:
    """Divisors by which the first pairs of a head rotate as they are, and the rest not, [head_dim/2]."""
    half = shape.head_dim // 2
    return np.where(np.arange(half) < int(half * shape.proportional_rope), 1.0, 1e30)


def llama3_divisors(shape: Shape) -> npt.NDArray[np.float64]:
    """Llama 3.1's divisors of the rotary frequencies, [head_dim/2].

    Its `rope_scaling`: low_freq_factor 1, high_freq_factor 4, original context 8192.
    """
    low, high, original = 1.0, 4.0, 8192.0
    inv_freq = shape.rope_theta ** -(np.arange(0, shape.head_dim, 2) / shape.head_dim)
    wavelength = 2.0 * math.pi / inv_freq
    smooth = (original / wavelength - low) / (high - low)
    between = 1.0 / ((1.0 - smooth) / shape.llama3_rope + smooth)
    return np.where(
        wavelength < original / high, 1.0, np.where(wavelength > original / low, shape.llama3_rope, between)
    )
