"""The row of `akunu.files.describe.hf_models`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from akunu.files.describe.tensor_rules import RopeStyle, Router

__all__ = ["HfModel", "Windowed", "defaults_of", "layers_of"]

Windowed = Literal["none", "every", "all", "layers", "later", "period"]
"""The layers that `sliding_window` applies to: none, every one, or by `layer_types` and where there are none
all ("all" where Transformers' class itself does not read them), those from `max_window_layers` on where
`use_sliding_window` is set, or all but each n-th."""


@dataclass(frozen=True)
class HfModel:
    """A row: one value of `model_type`.

    Attributes
    ----------
    arch
        The row of `akunu.files.describe.architectures.ARCHITECTURES`.
    windowed
        See the type.
    defaults
        By field of `CONFIG_KEYS`. A field of `HF_SPECIAL` is here where the class has it.
    tied
        Whether the output head is the embedding where `tie_word_embeddings` is absent.
    norm_add
        What is added to the weights of every norm.
    period
        For `windowed="period"`: every n-th layer is a full one.
    activations
        Names that mean the architecture's activation here, besides those of `ACTIVATIONS`.
    ignored
        Name patterns (`fnmatch`) of tensors that a checkpoint may have and that change nothing.
    model_class
        Transformers' class, of the model types that folders are written with.
    biases
        Which projections of attention have a bias: none, those of Q, K and V, or all where `attention_bias`
        is set.
    ffn_biases
        Those of the feed-forward, and of the expert that all rows share, have one where `mlp_bias` is set.
    bias_keys
        Other keys that say which projections have a bias, by the canonical name of a bias or its first part:
        the key, and what it says where it is absent.
    features
        Keys of `HF_NEUTRAL` that the class has.
    rope_style
        Which elements of a head rotate together in a checkpoint.
    rope
        The rotary parameters where the configuration has none.
    left_out
        As in `akunu.files.describe.tensor_rules.Architecture`.
    plain_norms
        Ends of the canonical names of norms to whose weights nothing is added.
    renormalise
        Whether the weights of the chosen experts are divided by their sum where `norm_topk_prob` is absent;
        None: as the architecture says, whatever that key is.
    router
        That of its class, where it is another than the architecture's.
    topk_method
        What `topk_method` is where it is absent; "greedy": experts are chosen of all groups.
    spelled
        What the class makes of a configuration where it says less, or in a way of its own; called with it and
        `defaults`.
    said
        The inverse: what a configuration says of windows, rotation, heads and feed-forwards of a `ModelSpec`.
    turned_experts
        Where the experts of a layer are one tensor, it may be [experts, columns, rows].
    dense_too
        Models without experts are of the class, too.
    prefix
        What stands before the decoder's names in a folder of this class.
    keys
        Names of fields in its configuration, where that is not the first one of `CONFIG_KEYS`; the class
        reads no other.
    whole
        The model type of a configuration that has this one as its `text_config`; folders are written so.
    in_one
        Its rotary parameters are in one object, `rope_parameters`, as Transformers 5 has them.
    """

    arch: str
    windowed: Windowed = "none"
    defaults: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    tied: bool = False
    norm_add: float = 0.0
    period: int = 0
    activations: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ("*.rotary_emb.inv_freq",)
    model_class: str = ""
    biases: Literal["none", "qkv", "flag"] = "none"
    ffn_biases: bool = False
    bias_keys: Mapping[str, tuple[str, bool]] = field(default_factory=lambda: MappingProxyType({}))
    features: tuple[str, ...] = ()
    rope_style: RopeStyle = "half"
    rope: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    left_out: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    plain_norms: tuple[str, ...] = ()
    renormalise: bool | None = None
    turned_experts: bool = False
    dense_too: bool = False
    prefix: str = "model."
    router: Router | None = None
    topk_method: str = ""
    spelled: Callable[[Mapping[str, object], Mapping[str, float]], Mapping[str, object]] | None = None
    said: Callable[[Any], Mapping[str, object]] | None = None
    keys: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    whole: str = ""
    in_one: bool = False

    def bias_key(self, name: str) -> tuple[str, bool]:
        """The key that says whether there is the bias of this canonical name, and its default; or ""."""
        part = name.partition("_")[0]
        flags = {
            "attn": "attention_bias" if self.biases == "flag" else "",
            "ffn": "mlp_bias" if self.ffn_biases else "",
            "shared": "mlp_bias" if self.ffn_biases else "",
        }
        return self.bias_keys.get(name) or self.bias_keys.get(part) or (flags.get(part, ""), False)


def layers_of(config: Mapping[str, object], defaults: Mapping[str, float]) -> int | None:
    """Return the number of layers in a configuration; None for what is refused where it is read."""
    n_layers = config.get("num_hidden_layers", int(defaults["n_layers"]))
    return n_layers if isinstance(n_layers, int) and 1 <= n_layers <= 4096 else None


def defaults_of(**values: float) -> Mapping[str, float]:
    """Defaults by field, with the epsilon that most classes have."""
    return MappingProxyType({"norm_eps": 1e-6} | values)
