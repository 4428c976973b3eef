"""Gemma 4's assistant: a small model that drafts for a larger one, whose keys and values it reads.

Facts: Transformers' `gemma4_assistant`, llama.cpp's `gemma4-assistant`.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.describe.blocks import Attention, Block, DraftHead, FeedForward
from akunu.files.describe.config import ModelSpec
from akunu.files.describe.config_numbers import Numbers, shown
from akunu.files.describe.decoder_config import rows_of_table
from akunu.files.describe.gemma4 import ASSISTANT_LAYER
from akunu.files.describe.gguf_numbers import GgufNumbers
from akunu.files.describe.hf_numbers import HfNumbers
from akunu.files.describe.known_missing import ASSISTANTS
from akunu.files.describe.layer_rules import GLOBAL, matrix
from akunu.files.describe.quantized import join_planes, with_planes
from akunu.files.describe.tensor_map import (
    LayerTensors,
    TensorInfo,
    TensorRef,
    by_name,
    check_shape,
    map_tensors,
)
from akunu.files.describe.tensor_rules import TensorRule

__all__ = ["ASSISTANT_TENSORS", "with_gguf_assistant", "with_hf_assistant"]

ASSISTANT_TENSORS: Final = "assistant:"
"""The prefix of an assistant's tensors, where they stand beside the larger model's."""

_PREFIX: Final = "assistant."
_DEFAULTS: Final = MappingProxyType({"norm_eps": 1e-6})
_JOINED: Final = (
    matrix("nextn.pre_projection.weight", "pre_projection.weight", "joined", "dim", "two_model_dims"),
    matrix("nextn.post_projection.weight", "post_projection.weight", "next_state", "model_dim", "dim"),
)
_OUTER: Final = (
    "backbone_hidden_size", "use_ordered_embeddings", "num_centroids", "centroid_intermediate_top_k",
)  # fmt: skip
_CENTROIDS: Final = "masked_embedding.centroids.weight"
_ORDER: Final = "masked_embedding.token_ordering"
_MOST_CLUSTERS: Final = (2048, 32)
"""Kernels choose among the first number of clusters, at most the second."""
# A GGUF file does not say how many clusters a draft looks at; to look at all tokens is slower, not worse.
_IGNORED: Final = ("rope_freqs.weight", "masked_embd*", "masked_embedding.*", "lm_head.weight")


def with_gguf_assistant(
    spec: ModelSpec, metadata: Mapping[str, object], tensors: Sequence[TensorInfo]
) -> ModelSpec:
    """Return a model with the assistant of a GGUF file."""
    numbers = GgufNumbers(metadata, ASSISTANTS[0], _DEFAULTS)
    return _with_assistant(spec, numbers, (*GLOBAL[:2], *_JOINED), ASSISTANT_LAYER, by_name(tensors))


def with_hf_assistant(
    spec: ModelSpec, config: Mapping[str, object], tensors: Sequence[TensorInfo]
) -> ModelSpec:
    """Return a model with the assistant of a folder."""
    text = config.get("text_config")
    if not isinstance(text, Mapping):
        raise ModelFileError(f"config.json: text_config: found {shown(text)}, expected an object")
    outer = {key: config[key] for key in _OUTER if key in config}
    numbers = HfNumbers({**text, **outer}, _DEFAULTS, ASSISTANTS[1])
    found = join_planes(config, by_name(tensors))

    def named(rules: Sequence[TensorRule], prefix: str = "model.") -> tuple[TensorRule, ...]:
        return tuple(dataclasses.replace(rule, source=prefix + rule.hf) for rule in rules)

    rules = (*named(GLOBAL[:2]), *named(_JOINED, ""))
    return _with_assistant(spec, numbers, rules, named(ASSISTANT_LAYER), found)


def _with_assistant(
    spec: ModelSpec,
    numbers: Numbers,
    rules: Sequence[TensorRule],
    of_layer: tuple[TensorRule, ...],
    tensors: Mapping[str, TensorInfo],
) -> ModelSpec:
    config = spec.config
    n_layers = numbers.n_layers = numbers.integer("n_layers")
    dim, model_dim = numbers.integer("dim"), numbers.integer("model_dim")
    vocab_size = rows_of_table(tensors, [rules[0].source])
    for name, found, expected in (
        (numbers.name("model_dim"), model_dim, config.dim),
        ("tokens", vocab_size, config.vocab_size),
    ):
        if found != expected:
            raise UnsupportedError(
                f"{name}: found {found}, but the model that it is to draft for has {expected}: it is the "
                "assistant of another one"
            )
    n_heads, ffn_dim = numbers.layer_integers("n_heads"), numbers.layer_integers("ffn_dim")
    windowed = numbers.windowed_layers()
    blocks, layers = list[Block](), list[LayerTensors]()
    for n in range(n_layers):
        prefix, attention = f"{_PREFIX}layers.{n}.", _reading(config.blocks, n_heads[n], windowed=windowed[n])
        blocks += [Block(prefix, n, attention), Block(prefix, n, FeedForward(ffn_dim[n], "gelu_tanh"))]
        sizes = {
            "one": 1,
            "dim": dim,
            "head_dim": attention.head_dim,
            "q_dim": attention.n_heads * attention.head_dim,
            "ffn_dim": ffn_dim[n],
        }
        layers.append(LayerTensors(of_layer, sizes))
    clusters, used = _clusters(numbers, vocab_size)
    sizes = {
        "dim": dim, "vocab_size": vocab_size, "model_dim": model_dim, "two_model_dims": 2 * model_dim,
        "clusters": clusters,
    }  # fmt: skip
    if clusters:
        rules = (*rules, matrix(_CENTROIDS, _CENTROIDS, "centroids", "clusters", "dim"))
    refs = map_tensors(rules, tensors, sizes, layers, owner="Gemma 4 assistant", ignored=_IGNORED)
    if clusters:
        refs["token_order"] = _order(tensors, vocab_size)
    head = DraftHead(
        _PREFIX,
        tuple(blocks),
        normed_state=True,
        dim=dim,
        norm_eps=numbers.real("norm_eps"),
        clusters=clusters,
        clusters_used=used,
    )
    return ModelSpec(
        dataclasses.replace(config, drafter=head),
        {
            **spec.tensors,
            **{_PREFIX + name: _beside(ref) for name, ref in with_planes(refs, tensors).items()},
        },
    )


def _clusters(numbers: Numbers, vocab_size: int) -> tuple[int, int]:
    """Return how many clusters of tokens there are and how many a draft looks at; zeros: at all tokens."""
    if not numbers.get("use_ordered_embeddings"):
        return 0, 0
    count, used = numbers.integer("clusters"), numbers.integer("clusters_used")
    if vocab_size % count or used > count:
        raise ModelFileError(
            f"{numbers.name('clusters')}: found {count}, of which {used} are used, expected a divisor of "
            f"{vocab_size} tokens and no more than itself"
        )
    most, most_used = _MOST_CLUSTERS
    if count > most or used > most_used:
        warnings.warn(
            f"{numbers.name('clusters')}: found {count}, of which {used} are used; kernels know up to {most} "
            f"and {most_used}, so drafts look at all tokens, which takes longer",
            RuntimeWarning,
            stacklevel=2,
        )
        return 0, 0
    return count, used


def _order(tensors: Mapping[str, TensorInfo], vocab_size: int) -> TensorRef:
    """Return the rule of the tokens' numbers, cluster by cluster."""
    tensor = tensors.get(_ORDER)
    if tensor is None:
        raise ModelFileError(f"tensor {_ORDER} is missing; it is needed")
    check_shape(tensor, (vocab_size,), vector=False)
    if tensor.dtype not in ("i64", "i32"):
        raise UnsupportedError(f"tensor {_ORDER}: found type {tensor.dtype}, expected i64 or i32")
    return TensorRef(_ORDER, 0, vocab_size, 0)


def _beside(ref: TensorRef) -> TensorRef:
    """The place of a tensor whose file is joined to the larger model's."""

    def added(name: str) -> str:
        return name and ASSISTANT_TENSORS + name

    return dataclasses.replace(
        ref,
        source=added(ref.source),
        more=tuple(map(added, ref.more)),
        more_planes=tuple((added(a), added(b), added(c)) for a, b, c in ref.more_planes),
        scales=added(ref.scales),
        biases=added(ref.biases),
    )


def _reading(blocks: Sequence[Block], n_heads: int, *, windowed: bool) -> Attention:
    """Attention that reads the last keys and values of its kind.

    It has the larger model's rotation, as keys are rotated so. Its query is at the position of the last
    token, whose own keys and values are not there yet.
    """
    alike = [
        (index, block.mixer)
        for index, block in enumerate(blocks)
        if isinstance(block.mixer, Attention)
        and block.mixer.kv_owner is None
        and (block.mixer.window > 0) == windowed
    ]
    if not alike:
        kind = "with" if windowed else "without"
        raise UnsupportedError(
            f"the assistant has a layer {kind} a window, and the model that it is to draft for none whose "
            "keys and values it could read"
        )
    index, owner = alike[-1]
    if n_heads % owner.n_kv_heads:
        raise UnsupportedError(
            f"the assistant has {n_heads} heads of queries, expected a multiple of the model's "
            f"{owner.n_kv_heads} heads of keys"
        )
    return dataclasses.replace(
        owner,
        n_heads=n_heads,
        window=max(owner.window - 1, 1) if windowed else 0,
        whole_images=False,
        kv_owner=index,
    )
