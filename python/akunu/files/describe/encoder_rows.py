"""The table of encoders; the counterpart of `architectures` and `hf_models`.

A row of `ENCODERS` is an architecture by its name in GGUF files; a row of `HF_ENCODERS` is a `model_type` of
Hugging Face's and says which of them it is. Facts about names: gguf-py's `constants.py`, and Transformers'
model classes, against which tests/encoders checks every row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from akunu.files.describe.distances import Distances, deberta_distances, mpnet_distances
from akunu.files.describe.tensor_rules import Activation, LayerKind, MixerKind, Pooling, TensorRule

__all__ = ["ENCODERS", "HF_ENCODERS", "HeadRule", "HfEncoder", "Row"]


@dataclass(frozen=True)
class HeadRule:
    """A layer of a classification head: names without ".weight" and ".bias", and what follows the product."""

    source: str
    hf: str
    activation: Activation | None = None
    norm: tuple[str, str] | None = None
    """Names of a norm behind it, in GGUF files and in Hugging Face's."""
    inside: bool = False
    """Hugging Face's classes have it in the encoder, not beside it."""


@dataclass(frozen=True)
class Row:
    """An architecture.

    Attributes
    ----------
    tensors, layers
        As in `akunu.files.describe.tensor_rules.Architecture`: what lies outside of layers, and in each.
    first_layer
        The first layer's, where it differs.
    head
        The classification head that a reranker has.
    rope
        Heads rotate, by halves.
    defaults
        By field of `CONFIG_KEYS`, of every file.
    rank_pooling
        The pooling of rerankers whose file does not say.
    window_period
        Every n-th layer, from the first on, sees the whole text; the others a window. 0: all see all.
    distances
        What attention makes of distances, by the object in `config.json` and the most tokens of a text.
    in_gguf
        llama.cpp has it, and its name is that in GGUF files.
    """

    name: str
    summary: str
    activation: Activation
    tensors: tuple[TensorRule, ...]
    layers: LayerKind
    head: tuple[HeadRule, ...]
    first_layer: LayerKind | None = None
    rope: bool = False
    defaults: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    window_period: int = 0
    rank_pooling: Pooling = "cls"
    ignored: tuple[str, ...] = ()
    distances: Callable[[Mapping[str, object], int], Distances] | None = None
    in_gguf: bool = True

    @property
    def rules(self) -> tuple[TensorRule, ...]:
        """The rules of all tensors, each once."""
        first = self.first_layer.tensors if self.first_layer else ()
        return tuple(dict.fromkeys((*self.tensors, *self.layers.tensors, *first)))

    def kinds_of(self, n_layers: int) -> list[LayerKind]:
        """The kind of each layer of a model."""
        return [self.first_layer or self.layers, *[self.layers] * (n_layers - 1)]


_UNUSED: Final = ("*position_ids", "pooler.*", "cls.*", "lm_head.*")


@dataclass(frozen=True)
class HfEncoder:
    """A `model_type`.

    Attributes
    ----------
    arch
        The row of `ENCODERS`.
    defaults
        Besides the row's: those of Transformers' class.
    skips_padding
        Positions begin behind the id of the padding token: no text uses the rows of the table before it.
    padding
        That id, where Transformers' class has its own, whatever `config.json` says.
    head
        In place of the row's.
    ignored
        Patterns of names that change nothing.
    model_class, inner
        How the names of Transformers' classes begin, and what a reranker's class calls its encoder; of the
        model types that folders are written with.
    keys
        Names in `config.json` of the norms' epsilon and of the activation.
    foreign
        Keys of other models, which Transformers' class does not use.
    chooses_head
        Its rerankers say how they pool; others take the first row.
    head_key
        The name in `config.json` of the activation of a reranker's head; "": it is the row's.
    names
        Pairs of a pattern and what stands in its place, applied in turn to the names that the row has.
    numbers
        Its own keys in `config.json`, by the usual ones.
    """

    arch: str
    skips_padding: bool = False
    padding: int | None = None
    head: tuple[HeadRule, ...] | None = None
    defaults: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    ignored: tuple[str, ...] = _UNUSED
    model_class: str = ""
    inner: str = ""
    keys: tuple[str, str] = ("layer_norm_eps", "hidden_act")
    foreign: tuple[str, ...] = ("num_key_value_heads", "head_dim")
    chooses_head: bool = False
    head_key: str = ""
    names: tuple[tuple[str, str], ...] = ()
    numbers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def _weight(source: str, hf: str, name: str, rows: str, cols: str, *, optional: bool = False) -> TensorRule:
    return TensorRule(f"{source}.weight", f"{hf}.weight", ((name, rows),), cols, optional)


def _vector(source: str, hf: str, name: str, n: str, *, optional: bool = False) -> TensorRule:
    return TensorRule(source, hf, ((name, n),), None, optional)


def _linear(source: str, hf: str, name: str, rows: str, cols: str) -> tuple[TensorRule, ...]:
    return (
        _weight(source, hf, name, rows, cols),
        _vector(f"{source}.bias", f"{hf}.bias", f"{name}_bias", rows),
    )


def _norm(source: str, hf: str, name: str, *, bias_optional: bool = False) -> tuple[TensorRule, ...]:
    return (
        _vector(f"{source}.weight", f"{hf}.weight", name, "dim"),
        _vector(f"{source}.bias", f"{hf}.bias", f"{name}_bias", "dim", optional=bias_optional),
    )


def _folder_biases(*weights: tuple[str, str, tuple[tuple[str, str], ...]]) -> Iterator[TensorRule]:
    """Biases beside these weights, which a folder may have and llama.cpp does not know."""
    for source, hf, parts in weights:
        yield TensorRule(
            f"{source}.bias",
            f"{hf}.bias",
            tuple((f"{name}_bias", symbol) for name, symbol in parts),
            optional=True,
            folder_only=True,
        )


_B, _H = "blk.{n}.", "encoder.layer.{n}."
_EMBEDDINGS = (
    _weight("token_embd", "embeddings.word_embeddings", "token_embedding", "vocab_size", "dim"),
    _weight("token_types", "embeddings.token_type_embeddings", "kinds", "kinds", "dim", optional=True),
)
_BERT = (
    *_EMBEDDINGS,
    *_norm("token_embd_norm", "embeddings.LayerNorm", "embedding_norm"),
    _weight("position_embd", "embeddings.position_embeddings", "positions", "positions", "dim"),
)
_BERT_LAYER = (
    *_linear(_B + "attn_q", _H + "attention.self.query", "attn_q", "q_dim", "dim"),
    *_linear(_B + "attn_k", _H + "attention.self.key", "attn_k", "kv_dim", "dim"),
    *_linear(_B + "attn_v", _H + "attention.self.value", "attn_v", "kv_dim", "dim"),
    *_linear(_B + "attn_output", _H + "attention.output.dense", "attn_output", "dim", "q_dim"),
    *_norm(_B + "attn_output_norm", _H + "attention.output.LayerNorm", "attn_output_norm"),
    *_linear(_B + "ffn_up", _H + "intermediate.dense", "ffn_up", "ffn_dim", "dim"),
    *_linear(_B + "ffn_down", _H + "output.dense", "ffn_down", "dim", "ffn_dim"),
    *_norm(_B + "layer_output_norm", _H + "output.LayerNorm", "ffn_output_norm"),
)
_QKV = (("attn_q", "q_dim"), ("attn_k", "kv_dim"), ("attn_v", "kv_dim"))
_GATE_UP = (("ffn_gate", "ffn_dim"), ("ffn_up", "ffn_dim"))
_N = "encoder.layers.{n}."
_NOMIC = (
    *_EMBEDDINGS,
    *_norm("token_embd_norm", "emb_ln", "embedding_norm"),
)
_NOMIC_LAYER = (
    TensorRule(_B + "attn_qkv.weight", _N + "attn.Wqkv.weight", _QKV, "dim"),
    _weight(_B + "attn_output", _N + "attn.out_proj", "attn_output", "dim", "q_dim"),
    *_norm(_B + "attn_output_norm", _N + "norm1", "attn_output_norm"),
    _weight(_B + "ffn_gate", _N + "mlp.fc12", "ffn_gate", "ffn_dim", "dim"),
    _weight(_B + "ffn_up", _N + "mlp.fc11", "ffn_up", "ffn_dim", "dim"),
    _weight(_B + "ffn_down", _N + "mlp.fc2", "ffn_down", "dim", "ffn_dim"),
    *_norm(_B + "layer_output_norm", _N + "norm2", "ffn_output_norm"),
)
_L = "layers.{n}."
_MODERN = (
    _weight("token_embd", "embeddings.tok_embeddings", "token_embedding", "vocab_size", "dim"),
    *_norm("token_embd_norm", "embeddings.norm", "embedding_norm", bias_optional=True),
    *_norm("output_norm", "final_norm", "output_norm", bias_optional=True),
)
# The first layer's input is normalised already.
_MODERN_FIRST = (
    TensorRule(_B + "attn_qkv.weight", _L + "attn.Wqkv.weight", _QKV, "dim"),
    _weight(_B + "attn_output", _L + "attn.Wo", "attn_output", "dim", "q_dim"),
    *_folder_biases(
        (_B + "attn_qkv", _L + "attn.Wqkv", _QKV),
        (_B + "attn_output", _L + "attn.Wo", (("attn_output", "dim"),)),
        (_B + "ffn_up", _L + "mlp.Wi", _GATE_UP),
        (_B + "ffn_down", _L + "mlp.Wo", (("ffn_down", "dim"),)),
    ),
    *_norm(_B + "ffn_norm", _L + "mlp_norm", "ffn_norm", bias_optional=True),
    TensorRule(_B + "ffn_up.weight", _L + "mlp.Wi.weight", _GATE_UP, "dim"),
    _weight(_B + "ffn_down", _L + "mlp.Wo", "ffn_down", "dim", "ffn_dim"),
)
_MODERN_LAYER = (
    _vector(_B + "attn_norm.weight", _L + "attn_norm.weight", "attn_norm", "dim"),
    *_folder_biases((_B + "attn_norm", _L + "attn_norm", (("attn_norm", "dim"),))),
    *_MODERN_FIRST,
)
_RELATIVE: tuple[MixerKind, ...] = ("relative_attention", "feed_forward")
# MPNet's attention has other names, and one table of distances for all layers.
_MPNET = (_BERT[0], *_BERT[2:])
_MPNET_LAYER = (
    *_BERT_LAYER,
    TensorRule(
        "distance_bias",
        "encoder.relative_attention_bias.weight",
        (("distance_bias", "distances"),),
        "n_heads",
    ),
)
_DEBERTA = (
    *_BERT,
    TensorRule("distances", "encoder.rel_embeddings.weight", (("distance_embedding", "distances"),), "dim"),
    *_norm("distance_norm", "encoder.LayerNorm", "distance_norm"),
)
_DEBERTA_LAYER = (
    *_BERT_LAYER,
    *_linear(_B + "distance_k", _H + "attention.self.pos_key_proj", "distance_k", "q_dim", "dim"),
    *_linear(_B + "distance_q", _H + "attention.self.pos_query_proj", "distance_q", "q_dim", "dim"),
)
_CLASSIFIER = (HeadRule("cls", "pooler.dense", "tanh", inside=True), HeadRule("cls.output", "classifier"))
_ROBERTA_HEAD = (HeadRule("cls", "classifier.dense", "tanh"), HeadRule("cls.output", "classifier.out_proj"))

_ROWS = (
    Row(
        name="bert",
        summary="BERT and RoBERTa: MiniLM, BGE, E5, GTE, XLM-R's likes; cross-encoders",
        activation="gelu",
        tensors=_BERT,
        layers=LayerKind(_BERT_LAYER),
        head=_CLASSIFIER,
        ignored=("cls.*", "pooler.*"),
    ),
    Row(
        name="nomic-bert",
        summary="Nomic Embed 1 and 1.5: rotary positions, SwiGLU",
        activation="silu",
        tensors=_NOMIC,
        layers=LayerKind(_NOMIC_LAYER),
        head=_CLASSIFIER,
        rope=True,
    ),
    Row(
        name="modern-bert",
        summary="ModernBERT: rotary positions, GeGLU, two of three layers windowed",
        activation="gelu",
        tensors=_MODERN,
        layers=LayerKind(_MODERN_LAYER),
        first_layer=LayerKind(_MODERN_FIRST),
        head=(
            HeadRule("cls", "head.dense", "gelu", ("cls.norm", "head.norm")),
            HeadRule("cls.output", "classifier"),
        ),
        rope=True,
        defaults=MappingProxyType({"local_rope_theta": 10000.0}),
        window_period=3,
        rank_pooling="mean",  # as llama.cpp takes such a file
        ignored=("cls.*",),
    ),
    Row(
        name="mpnet",
        summary="MPNet: a bias of attention for each distance",
        activation="gelu",
        tensors=_MPNET,
        layers=LayerKind(_MPNET_LAYER, _RELATIVE),
        head=_ROBERTA_HEAD,
        distances=mpnet_distances,
        in_gguf=False,
    ),
    Row(
        name="deberta-v2",
        summary="DeBERTa 2 and 3: keys and queries of distances",
        activation="gelu",
        tensors=_DEBERTA,
        layers=LayerKind(_DEBERTA_LAYER, _RELATIVE),
        head=(HeadRule("cls", "pooler.dense", "gelu"), HeadRule("cls.output", "classifier")),
        distances=deberta_distances,
        in_gguf=False,
    ),
)

ENCODERS: Final[Mapping[str, Row]] = MappingProxyType({row.name: row for row in _ROWS})
"""The rows, by name."""

_ROBERTA = HfEncoder(
    "bert",
    skips_padding=True,
    head=_ROBERTA_HEAD,
    defaults=MappingProxyType({"norm_eps": 1e-5}),
)
HF_ENCODERS: Final[Mapping[str, HfEncoder]] = MappingProxyType(
    {
        "bert": HfEncoder(
            "bert",
            defaults=MappingProxyType({"norm_eps": 1e-12}),
            model_class="Bert",
            inner="bert",
        ),
        "distilbert": HfEncoder(
            "bert",
            defaults=MappingProxyType({"norm_eps": 1e-12}),
            head=(HeadRule("cls", "pre_classifier", "relu"), HeadRule("cls.output", "classifier")),
            ignored=("vocab_*", "qa_outputs.*"),
            names=(
                (r"^encoder\.", "transformer."),
                (r"attention\.self\.(q|k|v)[a-z]+", r"attention.\1_lin"),
                (r"attention\.output\.dense", "attention.out_lin"),
                (r"attention\.output\.LayerNorm", "sa_layer_norm"),
                (r"intermediate\.dense", "ffn.lin1"),
                (r"output\.dense", "ffn.lin2"),
                (r"(?<=\}\.)output\.LayerNorm", "output_layer_norm"),
            ),
            numbers=MappingProxyType(
                {
                    "num_hidden_layers": "n_layers",
                    "hidden_size": "dim",
                    "num_attention_heads": "n_heads",
                    "intermediate_size": "hidden_dim",
                    "hidden_act": "activation",
                }
            ),
        ),
        "roberta": _ROBERTA,
        "xlm-roberta": _ROBERTA,
        "camembert": _ROBERTA,
        "mpnet": HfEncoder(
            "mpnet",
            skips_padding=True,
            padding=1,
            defaults=MappingProxyType({"norm_eps": 1e-12}),
            names=(
                (r"attention\.self\.([qkv])[a-z]+", r"attention.attn.\1"),
                (r"attention\.output\.dense", "attention.attn.o"),
                (r"attention\.output\.LayerNorm", "attention.LayerNorm"),
            ),
        ),
        "deberta-v2": HfEncoder(
            "deberta-v2",
            defaults=MappingProxyType({"norm_eps": 1e-7}),
            ignored=(*_UNUSED, "*_predictions.*"),
            names=((r"(attention\.self\.(?:query|key|value))\b", r"\1_proj"),),
            numbers=MappingProxyType({"head_dim": "attention_head_size"}),
            head_key="pooler_hidden_act",
        ),
        "nomic_bert": HfEncoder(
            "nomic-bert",
            defaults=MappingProxyType({"norm_eps": 1e-12, "rope_theta": 1000.0}),
            model_class="NomicBert",
            inner="nomic_bert",
            foreign=("num_key_value_heads",),
        ),
        "modernbert": HfEncoder(
            "modern-bert",
            defaults=MappingProxyType({"norm_eps": 1e-5, "rope_theta": 160000.0, "window": 128}),
            ignored=("head.*", "decoder.*"),
            model_class="ModernBert",
            inner="model",
            keys=("norm_eps", "hidden_activation"),
            chooses_head=True,
            head_key="classifier_activation",
        ),
    }
)
"""The rows, by `model_type`."""
