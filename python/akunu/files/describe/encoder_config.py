"""From the files of an encoder to a checked specification.

The counterpart of `akunu.files.describe.gguf_config` and `akunu.files.describe.hf_config`, and as strict.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.describe.architectures import ARCHITECTURES
from akunu.files.describe.blocks import Attention, Block
from akunu.files.describe.config import EncoderConfig, ModelConfig, ModelSpec
from akunu.files.describe.config_keys import ConfigKey
from akunu.files.describe.config_numbers import Numbers, decoder_sizes, shown
from akunu.files.describe.decoder_config import model_config
from akunu.files.describe.distances import Distances
from akunu.files.describe.encoder_modules import DENSE, NO_POOLING, STATIC, Modules, is_classifier
from akunu.files.describe.encoder_rows import ENCODERS, HF_ENCODERS, HeadRule, Row
from akunu.files.describe.gguf_config import resolve, vocabulary_size
from akunu.files.describe.gguf_numbers import GgufNumbers, local_by_period, local_layers_of
from akunu.files.describe.gguf_rotary import GgufSource, gguf_rotary
from akunu.files.describe.hf_config import refuse_unknown_features, resolve_hf
from akunu.files.describe.hf_numbers import HfNumbers, local_layers
from akunu.files.describe.hf_rotary import HfRotary
from akunu.files.describe.layer_rules import with_fused_qkv
from akunu.files.describe.quantized import join_planes, with_planes
from akunu.files.describe.rotary import inverse_frequencies
from akunu.files.describe.tensor_map import LayerTensors, TensorInfo, by_name, map_tensors, rows_of
from akunu.files.describe.tensor_rules import Activation, Pooling, TensorRule

__all__ = [
    "ACTIVATIONS",
    "POOLING_TYPES",
    "RANK",
    "SEEING_ALL",
    "as_yes_no",
    "resolve_gguf_vectors",
    "resolve_hf_vectors",
]

ACTIVATIONS: Final[Mapping[str, Activation]] = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "swiglu": "silu",
    "geglu": "gelu",
}
"""Values of `hidden_act`, `hidden_activation` and `activation_function`."""

_STATIC_TOKENS: Final = 1 << 15
"""Most tokens of an input of a table of vectors, which has no positions."""

_NEUTRAL: Final[Mapping[str, tuple[object, ...]]] = {
    "add_cross_attention": (False,),
    "causal": (False,),
    "conv_kernel_size": (0,),
    "is_decoder": (False,),
    "is_encoder_decoder": (False,),
    "num_experts": (0,),
    "parallel_block": (False,),
    "position_embedding_type": ("absolute",),
    "prenorm": (False,),
    "rotary_emb_fraction": (1.0,),
    "rotary_emb_interleaved": (False,),
    "rotary_emb_scale_base": (None,),
    "rotary_scaling_factor": (None,),
    "use_rms_norm": (False,),
}
"""Keys whose feature is not implemented, with the values besides null that mean "not used"."""

POOLING_TYPES: Final[Mapping[int, Pooling]] = {1: "mean", 2: "cls", 3: "last"}
"""Values of `pooling_type` in GGUF files, and of `classifier.pooling_type`."""
CLASSIFIER: Final = "cls.output.weight"
"""The tensor in GGUF files that makes a score of a text."""
RANK: Final = 4
"""The one of a model that scores texts."""

_FIRST_NAMES: Final = re.compile(r"(?<=\.LayerNorm\.)(weight|bias)$")
_GAMMA_BETA: Final = {"weight": "gamma", "bias": "beta"}

_BIDIRECTIONAL: Final = ("gemma3", "gemma3_text")
"""Model types that `use_bidirectional_attention` is for; `is_causal` false is for all."""

SEEING_ALL: Final = {"gemma3": "gemma-embedding"}
"""Decoders, and what they are called in GGUF files where their rows see what comes after them."""


def _gguf_pooling(
    metadata: Mapping[str, object], owner: str, tensors: Mapping[str, TensorInfo]
) -> tuple[Pooling | None, bool]:
    """The pooling that a GGUF file names, if any, and whether the model ranks.

    A file that does not say how to pool, but has the head of a classifier, ranks.
    """
    key = f"{owner}.pooling_type"
    value = metadata.get(key)
    if value in NO_POOLING:
        return None, CLASSIFIER in tensors
    if not isinstance(value, int) or isinstance(value, bool) or value not in (*POOLING_TYPES, RANK):
        raise UnsupportedError(
            f"{key}: found {shown(value)}; supported are 1 (mean), 2 (CLS), 3 (last), 4 (rank)"
        )
    if value != RANK:
        return POOLING_TYPES[value], False
    key = f"{owner}.classifier.pooling_type"
    inner = metadata.get(key)
    if inner in NO_POOLING:
        return None, True
    if not isinstance(inner, int) or isinstance(inner, bool) or inner not in POOLING_TYPES:
        raise UnsupportedError(f"{key}: found {shown(inner)}; supported are 1 (mean), 2 (CLS), 3 (last)")
    return POOLING_TYPES[inner], True


def resolve_gguf_vectors(gguf: GgufSource, *, context: int | None = None) -> ModelSpec:
    """Check a GGUF file whose model makes vectors, and describe it.

    Raises what `akunu.files.describe.gguf_config.resolve` does.
    """
    name = str(gguf.metadata["general.architecture"])
    return (
        _gguf_encoder(gguf)
        if name in ENCODERS and ENCODERS[name].in_gguf
        else _gguf_decoder(gguf, name, context)
    )


def resolve_hf_vectors(
    config: Mapping[str, object],
    tensors: Sequence[TensorInfo],
    modules: Modules,
    *,
    context: int | None = None,
) -> ModelSpec:
    """Check a folder whose model makes vectors, and describe it.

    Parameters
    ----------
    config
        The object in `config.json`.
    tensors
        Those of the SafeTensors files.
    modules
        What the folder's other files say.
    context
        As in `akunu.files.describe.gguf_config.resolve`.
    """
    inner = [tensor for tensor in tensors if not tensor.name.startswith(DENSE)]
    if modules.static:
        spec = _static(inner)
    elif config.get("model_type") in HF_ENCODERS:
        spec = _hf_encoder(config, inner, modules.pooling)
    else:
        spec = _hf_decoder(config, inner, modules.pooling, context)
    if spec.config.encoder is not None and spec.config.encoder.task == "rank" and modules.default_prompt:
        raise UnsupportedError(
            "config_sentence_transformers.json: default_prompt_name: a reranker has no prompts here"
        )
    refs, head, width = dict(spec.tensors), [], spec.config.dim
    found = {tensor.name: tensor for tensor in tensors}
    for i, layer in enumerate(modules.dense):
        if layer.n_in != width:
            raise ModelFileError(
                f"{layer.path.name}: takes {layer.n_in} elements, but the model gives {width}"
            )
        width = layer.n_out
        rules = [TensorRule(f"{DENSE}{i}.linear.weight", "", ((f"head.{i}", "rows"),), "cols")]
        if f"{DENSE}{i}.linear.bias" in found:
            rules.append(TensorRule(f"{DENSE}{i}.linear.bias", "", ((f"head.{i}_bias", "rows"),)))
        names = {rule.source: found[rule.source] for rule in rules if rule.source in found}
        refs |= map_tensors(rules, names, {"rows": layer.n_out, "cols": layer.n_in}, owner=layer.path.name)
        head.append((layer.n_out, layer.activation))
    if not head:
        return spec
    assert spec.config.encoder is not None
    encoder = dataclasses.replace(spec.config.encoder, head=tuple(head))
    return ModelSpec(dataclasses.replace(spec.config, encoder=encoder), refs)


def _static(tensors: Sequence[TensorInfo]) -> ModelSpec:
    """Describe a table of vectors, a model without layers, as Sentence Transformers and model2vec name it."""
    found = by_name(tensors)
    name = "embeddings" if "embeddings" in found else "embedding.weight"
    table = found.get(name)
    if table is None or len(table.shape) != 2:
        raise ModelFileError("tensor embedding.weight is missing, or is no matrix")
    for other in ("mapping", "weights"):
        if other in found:
            raise UnsupportedError(
                f"tensor {other}: tokens of this table share rows or have weights (model2vec's quantised "
                "vocabulary), which is not supported; expected a row for each token"
            )
    vocab_size, dim = table.shape
    rules = [TensorRule(name, name, (("token_embedding", "rows"),), "cols")]
    refs = map_tensors(rules, {name: table}, {"rows": vocab_size, "cols": dim}, owner=STATIC)
    config = ModelConfig(
        arch=STATIC,
        n_layers=0,
        dim=dim,
        vocab_size=vocab_size,
        context_length=_STATIC_TOKENS,
        norm_eps=1e-12,
        final_softcap=0.0,
        embedding_scale=1.0,
        rope_sets=(),
        blocks=(),
        encoder=EncoderConfig("mean"),
    )
    return ModelSpec(config, refs)


def _gguf_decoder(gguf: GgufSource, name: str, context: int | None) -> ModelSpec:
    tensors = by_name(gguf.tensors)
    pooling, ranks = _gguf_pooling(gguf.metadata, name, tensors)
    spec = resolve(gguf, context=context, ignored=("cls.*", "dense_*.weight"))
    sources = (CLASSIFIER,) if ranks else ("dense_2.weight", "dense_3.weight")
    usual: Pooling = "mean" if ARCHITECTURES[name].bidirectional else "last"
    return _as_encoder(
        spec,
        EncoderConfig(pooling or usual, task="rank" if ranks else "embed"),
        sources if ranks or any(source in tensors for source in sources) else (),
        tensors,
        bidirectional=ARCHITECTURES[name].bidirectional,
        halved=ARCHITECTURES[name].bidirectional,
    )


def _hf_decoder(
    config: Mapping[str, object], tensors: Sequence[TensorInfo], pooling: Pooling | None, context: int | None
) -> ModelSpec:
    both = "use_bidirectional_attention"
    halved = config.get("model_type") in _BIDIRECTIONAL and config.get(both) is True
    left_out = {"is_causal", *([both] if halved else [])}
    # No head is needed: one that is there is left out, as that of a tied model.
    plain = {key: value for key, value in config.items() if key not in left_out}
    spec = resolve_hf(plain | {"tie_word_embeddings": True}, tensors, context=context, ignored=("score.*",))
    found = join_planes(config, by_name(tensors))
    return _as_encoder(
        spec,
        EncoderConfig(pooling or "last", task="embed" if pooling else "rank"),
        [] if pooling else ["score.weight"],
        found,
        bidirectional=halved or config.get("is_causal") is False,
        halved=halved,
    )


def _as_encoder(
    spec: ModelSpec,
    encoder: EncoderConfig,
    head: Sequence[str],
    tensors: Mapping[str, TensorInfo],
    *,
    bidirectional: bool,
    halved: bool,
) -> ModelSpec:
    """A decoder whose rows are pooled, and go through the layers of these tensors.

    `halved`: a window lies around a row, of a bidirectional model; else so many rows are on each side.
    """
    refs = {name: ref for name, ref in spec.tensors.items() if name != "output"}
    layers, cols = [], spec.config.dim
    for i, source in enumerate(head):
        tensor = tensors.get(source)
        rows = rows_of(tensor) if tensor is not None else 0
        rule = TensorRule(source, "", ((f"head.{i}", "rows"),), "cols")
        known = {source: tensor} if tensor is not None else {}
        places = map_tensors([rule], known, {"rows": rows, "cols": cols}, owner=spec.config.arch)
        refs |= with_planes(places, known)
        layers.append((rows, ""))
        cols = rows

    def seeing_all(block: Block) -> Block:
        attention = block.mixer
        if not bidirectional or not isinstance(attention, Attention):
            return block
        window = attention.window and (_half(attention.window) if halved else attention.window + 1)
        return dataclasses.replace(
            block, mixer=dataclasses.replace(attention, window=window, bidirectional=True)
        )

    config = dataclasses.replace(
        spec.config,
        arch=SEEING_ALL.get(spec.config.arch, spec.config.arch) if bidirectional else spec.config.arch,
        blocks=tuple(map(seeing_all, spec.config.blocks)),
        encoder=dataclasses.replace(encoder, head=tuple(layers)),
    )
    return ModelSpec(config, refs)


def as_yes_no(spec: ModelSpec, yes: int, no: int) -> ModelSpec:
    """A decoder that scores a text by the logits of two tokens after it, its head's rows."""
    head = spec.tensors.get("output", spec.tensors["token_embedding"])
    refs = {name: ref for name, ref in spec.tensors.items() if name != "output"}
    for i, token in enumerate((yes, no)):
        refs[f"head.0.{i}"] = dataclasses.replace(head, first_row=head.first_row + token, n_rows=1)
    encoder = EncoderConfig("last", head=((2, ""),), task="rank")
    return ModelSpec(dataclasses.replace(spec.config, encoder=encoder), refs)


def _half(window: int) -> int:
    """A window that lies around a row: half of it on each side, and the row itself."""
    return window // 2 + 1


class _EncoderNumbers(GgufNumbers):
    """The numbers of an encoder, whose norms are no RMS norms."""

    def keys(self, key: ConfigKey) -> tuple[str, ...]:
        return tuple(name for name in super().keys(key) if not name.endswith("_rms_epsilon"))


def _gguf_encoder(gguf: GgufSource) -> ModelSpec:
    row = ENCODERS[str(gguf.metadata["general.architecture"])]
    numbers = _EncoderNumbers(gguf.metadata, row.name, row.defaults)
    numbers.refuse_unknown_features("attention.causal")
    causal = numbers.suffixed("attention.causal")
    if causal not in (None, False):
        raise UnsupportedError(f"{row.name}.attention.causal: found {shown(causal)}; only False is supported")
    tensors = by_name(gguf.tensors)
    pooling, ranks = _gguf_pooling(gguf.metadata, row.name, tensors)
    names = _Names(row, lambda rule: rule.source, row.head, hf=False, prefix="")
    activation = numbers.suffixed("hidden_activation")
    return _resolve(
        row,
        names,
        numbers,
        tensors,
        vocab_size=vocabulary_size(tensors, gguf.metadata),
        activation=row.activation if activation is None else _activation("hidden_activation", activation),
        encoder=EncoderConfig(
            pooling or (row.rank_pooling if ranks else "mean"), task="rank" if ranks else "embed"
        ),
        rotary=lambda head_dim, windowed: gguf_rotary(
            gguf, numbers, tensors, head_dim, None, windowed=windowed
        ),
        ignored=row.ignored,
        local=local_layers_of(numbers, numbers.integer("n_layers"), row.window_period, full_first=True),
    )


def _hf_encoder(
    config: Mapping[str, object], tensors: Sequence[TensorInfo], pooling: Pooling | None
) -> ModelSpec:
    model_type = str(config["model_type"])
    kind = HF_ENCODERS[model_type]
    row = ENCODERS[kind.arch]
    refuse_unknown_features(config, _NEUTRAL)
    config = {key: value for key, value in config.items() if key not in kind.foreign}
    config |= {usual: config[own] for usual, own in kind.numbers.items() if own in config}
    numbers = HfNumbers(config, {**row.defaults, **kind.defaults}, model_type)
    found = join_planes(config, by_name(tensors))
    suffix = row.tensors[0].hf
    prefixes = [name.removesuffix(suffix) for name in found if name.endswith(suffix)]
    if len(prefixes) != 1:
        raise ModelFileError(f"tensor {suffix} is {'there twice' if prefixes else 'missing'}")
    first_names = f"{prefixes[0]}embeddings.LayerNorm.gamma" in found  # TensorFlow's, of the first years

    def named(rule: TensorRule) -> str:
        name = rule.hf
        for pattern, own in kind.names:
            name = re.sub(pattern, own, name)
        name = prefixes[0] + name
        return _FIRST_NAMES.sub(lambda m: _GAMMA_BETA[m[1]], name) if first_names else name

    head = kind.head or row.head
    wanted = config.get(kind.head_key) if kind.head_key else None
    if wanted is not None:
        chosen = "tanh" if wanted == "tanh" else _activation(f"config.json: {kind.head_key}", wanted)
        head = tuple(dataclasses.replace(layer, activation=layer.activation and chosen) for layer in head)
    names = _Names(row, named, head, hf=True, prefix=prefixes[0])
    ranks = is_classifier(config)
    if ranks:
        pooling = _rank_pooling(config) if kind.chooses_head else "cls"
    activation = next(
        (
            _activation(f"config.json: {key}", config[key])
            for key in ("hidden_activation", "hidden_act", "activation_function")
            if config.get(key) is not None
        ),
        row.activation,
    )
    embedding = found[prefixes[0] + suffix]
    rope = HfRotary(config, numbers, 2, 1, 1)

    def rotary(head_dim: int, windowed: bool) -> list[tuple[npt.NDArray[np.float64], float]]:
        kinds = ("full_attention", "sliding_attention") if windowed else ("full_attention",)
        return [(inverse_frequencies(rope.theta(kind), head_dim), 1.0) for kind in kinds]

    local: Sequence[bool] = ()
    if row.window_period:
        n_layers = numbers.integer("n_layers")
        period = numbers.integer("window_period", default=row.window_period)
        local = local_layers(config, n_layers) or local_by_period(n_layers, period, full_first=True)
    padding = _padding(config) if kind.padding is None else kind.padding
    ignored, left_out = kind.ignored, frozenset[str]()
    if config.get("position_biased_input") is False:  # some checkpoints have the table all the same
        ignored, left_out = (*ignored, "embeddings.position_embeddings.weight"), frozenset({"positions"})
    spec = _resolve(
        row,
        names,
        numbers,
        found,
        vocab_size=embedding.shape[0] if embedding.shape else 0,
        activation=activation,
        encoder=EncoderConfig(pooling or "mean", task="rank" if ranks else "embed"),
        rotary=rotary,
        ignored=tuple(prefix + pattern for pattern in ignored for prefix in {"", prefixes[0]}),
        skipped_positions=padding + 1 if kind.skips_padding else 0,
        local=local,
        distances=row.distances and row.distances(config, numbers.integer("context_length")),
        left_out=left_out,
    )
    return ModelSpec(spec.config, with_planes(spec.tensors, found))


def _rank_pooling(config: Mapping[str, object]) -> Pooling:
    found = config.get("classifier_pooling", "cls")
    if found not in ("cls", "mean"):
        raise UnsupportedError(f"config.json: classifier_pooling: found {shown(found)}, expected cls or mean")
    return "mean" if found == "mean" else "cls"


def _padding(config: Mapping[str, object]) -> int:
    """The id of the padding token."""
    found = config.get("pad_token_id")
    if found is None:
        return 1  # as in the class
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise ModelFileError(f"config.json: pad_token_id: found {shown(found)}, expected a token id")
    return found


@dataclasses.dataclass(frozen=True)
class _Names:
    """The names of a row's tensors in a file."""

    row: Row
    named: Callable[[TensorRule], str]
    head: tuple[HeadRule, ...]
    hf: bool
    prefix: str

    def head_names(self, tensors: Mapping[str, TensorInfo], name: tuple[str, str]) -> str:
        """A head's name: it lies beside the encoder, or in it."""
        own = name[1] if self.hf else name[0]
        return self.prefix + own if f"{self.prefix}{own}.weight" in tensors else own


def _resolve(
    row: Row,
    names: _Names,
    numbers: Numbers,
    tensors: Mapping[str, TensorInfo],
    *,
    vocab_size: int,
    activation: Activation,
    encoder: EncoderConfig,
    rotary: Callable[[int, bool], Sequence[tuple[npt.NDArray[np.float64], float]]],
    ignored: tuple[str, ...],
    local: Sequence[bool],
    skipped_positions: int = 0,
    distances: Distances | None = None,
    left_out: frozenset[str] = frozenset(),
) -> ModelSpec:
    """Describe what is common to all files.

    `rotary` is called with the head size and whether there are windows, if heads rotate at all. `local` says
    of each layer whether it is windowed, where the architecture has windows. `left_out` are canonical names
    of tensors that the row has, and such a model has not.
    """
    sizes = decoder_sizes(numbers)
    if distances is not None:
        left_out |= distances.left_out

    def in_file(rules: Sequence[TensorRule]) -> tuple[TensorRule, ...]:
        return tuple(
            dataclasses.replace(rule, source=names.named(rule))
            for rule in rules
            if rule.parts[0][0].removesuffix("_bias") not in left_out
        )

    rules = list(in_file(row.tensors))
    symbols = sizes.symbols(vocab_size)
    for rule in rules:  # sizes that no number gives
        name = rule.parts[0][0]
        if name in ("positions", "kinds"):
            symbols[name] = rows_of(tensors[rule.source]) if rule.source in tensors else 0
    of_distances = {"distances": distances.count} if distances is not None else {}
    symbols |= of_distances
    if encoder.task == "rank":
        head_rules, head = _head(names, tensors, sizes.dim, symbols)
        rules += head_rules
        encoder = dataclasses.replace(encoder, head=head)
    kinds = row.kinds_of(sizes.n_layers)
    layers = [
        LayerTensors(in_file(with_fused_qkv(kind.tensors, tensors, n)), sizes.layer_symbols(n) | of_distances)
        for n, kind in enumerate(kinds)
    ]
    refs = map_tensors(rules, tensors, symbols, layers, owner=row.name, ignored=ignored)
    if skipped_positions:
        table = refs["positions"]
        if skipped_positions >= table.n_rows:
            raise ModelFileError(
                f"config.json: pad_token_id: found {skipped_positions - 1}, "
                f"but the table of positions has {table.n_rows} rows"
            )
        refs["positions"] = dataclasses.replace(
            table, first_row=skipped_positions, n_rows=table.n_rows - skipped_positions
        )
    context_length = numbers.integer("context_length") - skipped_positions
    positions = refs["positions"].n_rows if "positions" in refs else 0
    if positions and positions < context_length:
        raise ModelFileError(
            f"{numbers.name('context_length')}: found {context_length}, "
            f"but the table of positions has {positions} rows"
        )
    windows = (0,) * sizes.n_layers
    if row.window_period:
        window = numbers.integer("window")
        windows = tuple(_half(window) if window and flag else 0 for flag in local)
    config = model_config(
        row.name,
        sizes,
        numbers,
        vocab_size=vocab_size,
        rope_style="half",
        rotary=rotary(sizes.head_dim, any(windows)) if row.rope else [],
        activation=activation,
        layer_window=windows,
        attn_scale=(sizes.head_dim * (distances.terms if distances is not None else 1)) ** -0.5,
        kinds=kinds,
        bidirectional=True,
        distances=distances,
    )
    config = dataclasses.replace(
        config,
        context_length=context_length,
        layer_norm=True,
        positions=positions,
        kinds=refs["kinds"].n_rows if "kinds" in refs else 0,
        encoder=encoder,
    )
    return ModelSpec(config, refs)


def _head(
    names: _Names, tensors: Mapping[str, TensorInfo], dim: int, symbols: dict[str, int]
) -> tuple[list[TensorRule], tuple[tuple[int, str], ...]]:
    """The rules of a classification head, and the sizes and activations of its layers."""
    rules: list[TensorRule] = []
    head: list[tuple[int, str]] = []
    cols = "dim"
    for i, layer in enumerate(names.head):
        name = names.head_names(tensors, (layer.source, layer.hf))
        tensor = tensors.get(f"{name}.weight")
        if tensor is None and i + 1 < len(names.head):
            continue  # a head of its last layer alone
        rows = rows_of(tensor) if tensor is not None else dim
        canonical, symbol = f"head.{len(head)}", f"head_{len(head)}"
        symbols[symbol] = rows
        rules.append(TensorRule(f"{name}.weight", "", ((canonical, symbol),), cols))
        rules.append(TensorRule(f"{name}.bias", "", ((f"{canonical}_bias", symbol),), None, optional=True))
        if layer.norm is not None:
            norm = names.head_names(tensors, layer.norm)
            rules.append(TensorRule(f"{norm}.weight", "", ((f"{canonical}_norm", symbol),), None))
            rules.append(
                TensorRule(f"{norm}.bias", "", ((f"{canonical}_norm_bias", symbol),), None, optional=True)
            )
        head.append((rows, layer.activation or ""))
        cols = symbol
    return rules, tuple(head)


def _activation(key: str, value: object) -> Activation:
    found = ACTIVATIONS.get(value) if isinstance(value, str) else None
    if found is None:
        raise UnsupportedError(f"{key}: found {shown(value)}; supported are {', '.join(ACTIVATIONS)}")
    return found
