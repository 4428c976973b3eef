"""The tensors of experts and of delta nets, in each way that files store them; which layers have experts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from akunu.files.describe.tensor_rules import LayerNumbers, TensorRule

__all__ = [
    "BIASED_EXPERTS",
    "DELTA_NET",
    "DELTA_NET_BY_KEY_HEAD",
    "GRANITE_EXPERTS",
    "OLLAMA_BIASED_EXPERTS",
    "expert_layers",
    "expert_rules",
    "experts_of_layer",
    "is_expert_name",
    "mlx_rules",
    "shared_biases",
    "shared_rules",
    "stored_rules",
]

_B, _H = "blk.{n}.", "layers.{n}."
_PARTS = (("gate", "expert_dim", "dim"), ("up", "expert_dim", "dim"), ("down", "dim", "expert_dim"))
_GGUF_EXPERTS = _B + "ffn_{part}_exps.weight"


def _apart(
    source: str = "", hf: str = "", parts: Sequence[str] = ("gate", "up", "down")
) -> tuple[TensorRule, ...]:
    """The matrices of the experts; `{part}` in a checkpoint's name stands for one of `parts`."""
    return tuple(
        TensorRule(
            source.replace("{part}", own),
            hf.replace("{part}", part),
            ((f"experts_{own}", rows),),
            cols,
            count="n_experts",
        )
        for part, (own, rows, cols) in zip(parts, _PARTS, strict=True)
    )


def _biases(source: str = "", hf: str = "") -> tuple[TensorRule, ...]:
    """The biases of the experts; `{part}` stands for gate, up and down."""
    return tuple(
        TensorRule(
            source.replace("{part}", part),
            hf.replace("{part}", part),
            ((f"experts_{part}_bias", rows),),
            count="n_experts",
        )
        for part, rows, _ in _PARTS
    )


def _fused(source: tuple[str, str] = ("", ""), hf: tuple[str, str] = ("", "")) -> tuple[TensorRule, ...]:
    """Build the rules of experts whose gate and up are stored as one matrix per expert."""
    return (
        TensorRule(
            source[0],
            hf[0],
            (("experts_gate", "expert_dim"), ("experts_up", "expert_dim")),
            "dim",
            count="n_experts",
        ),
        TensorRule(source[1], hf[1], (("experts_down", "dim"),), "expert_dim", count="n_experts"),
    )


def _ungated(hf: str) -> tuple[TensorRule, ...]:
    """The matrices of experts without a gate, each a tensor for all of them, by a checkpoint's names."""
    return tuple(
        TensorRule(
            "", hf.replace("{part}", part).replace("fc{n}", f"fc{n}"), ((f"experts_{part}", rows),), cols,
            count="n_experts",
        )
        for n, (part, rows, cols) in enumerate(
            (("up", "expert_dim", "expert_width"), ("down", "expert_width", "expert_dim")), 1
        )
    )  # fmt: skip


def _matrix(source: str, hf: str, name: str, rows: str, cols: str, *, optional: bool = False) -> TensorRule:
    return TensorRule(source, hf, ((name, rows),), cols, optional)


_SHARED = (("gate", "shared_dim", "dim"), ("up", "shared_dim", "dim"), ("down", "dim", "shared_dim"))


def expert_rules(
    place: str = "mlp.",
    router: str = "gate",
    parts: Sequence[str] = ("gate_proj", "up_proj", "down_proj"),
    choice_bias: str = "",
) -> tuple[TensorRule, ...]:
    """The router and the experts of a layer.

    Parameters
    ----------
    place, router, parts
        A checkpoint's names: what stands before the others, that of the router, and those of an expert's
        matrices.
    choice_bias
        Its name of the bias that only chooses, where there is one.
    """
    bias = TensorRule(
        _B + "exp_probs_b.bias", _H + place + choice_bias, (("router_choice_bias", "n_experts"),), None, True
    )
    return (
        _matrix(_B + "ffn_gate_inp.weight", f"{_H}{place}{router}.weight", "router", "n_experts", "dim"),
        *((bias,) if choice_bias else ()),
        *_apart(_GGUF_EXPERTS, _H + place + "experts.{e}.{part}.weight", parts),
    )


def shared_rules(place: str = "mlp.shared_experts.", gate: str = "") -> tuple[TensorRule, ...]:
    """The expert that all rows share, by a checkpoint's names of it and of its gate, if it has one."""
    found = tuple(
        _matrix(
            f"{_B}ffn_{part}_shexp.weight", f"{_H}{place}{part}_proj.weight", f"shared_{part}", rows, cols
        )
        for part, rows, cols in _SHARED
    )
    if not gate:
        return found
    return (_matrix(_B + "ffn_gate_inp_shexp.weight", _H + gate, "shared_router", "one", "dim"), *found)


def shared_biases() -> tuple[TensorRule, ...]:
    """The biases of the expert that all rows share, which no GGUF file has."""
    return tuple(
        TensorRule(
            f"{_B}ffn_{part}_shexp.bias",
            f"{_H}mlp.shared_experts.{part}_proj.bias",
            ((f"shared_{part}_bias", rows),),
            optional=True,
            folder_only=True,
        )
        for part, rows, _ in _SHARED
    )


_GRANITE_PLACE = _H + "block_sparse_moe."
GRANITE_EXPERTS: Final = (
    _matrix(_B + "ffn_gate_inp.weight", _GRANITE_PLACE + "router.layer.weight", "router", "n_experts", "dim"),
    *_apart(_GGUF_EXPERTS),
    *_fused(hf=(_GRANITE_PLACE + "input_linear.weight", _GRANITE_PLACE + "output_linear.weight")),
    *(
        _matrix(f"{_B}ffn_{part}_shexp.weight", "", f"shared_{part}", rows, cols)
        for part, rows, cols in _SHARED
    ),
    TensorRule(
        "",
        _H + "shared_mlp.input_linear.weight",
        (("shared_gate", "shared_dim"), ("shared_up", "shared_dim")),
        "dim",
    ),
    _matrix("", _H + "shared_mlp.output_linear.weight", "shared_down", "dim", "shared_dim"),
)
"""Router and experts of Granite, whose gate and up are one tensor in a checkpoint."""


def experts_of_layer(router: str) -> tuple[TensorRule, ...]:
    """Return the rules of experts that a checkpoint has as parts of the layer, gate and up in one tensor."""
    return (
        _matrix(_B + "ffn_gate_inp.weight", f"{_H}{router}.weight", "router", "n_experts", "dim"),
        *_apart(_GGUF_EXPERTS),
        *_fused(hf=(_H + "experts.gate_up_proj", _H + "experts.down_proj")),
    )


# In a GGUF file gate and up are tensors of their own, in a checkpoint their rows alternate.
BIASED_EXPERTS: Final = (
    _matrix(_B + "ffn_gate_inp.weight", _H + "mlp.router.weight", "router", "n_experts", "dim"),
    TensorRule(_B + "ffn_gate_inp.bias", _H + "mlp.router.bias", (("router_bias", "n_experts"),)),
    *_apart(_GGUF_EXPERTS),
    *_biases(source=_B + "ffn_{part}_exps.bias"),
    TensorRule(
        "",
        _H + "mlp.experts.gate_up_proj",
        (("experts_gate", "expert_dim"), ("experts_up", "expert_dim")),
        "dim",
        count="n_experts",
        interleaved=True,
        turned="always",
    ),
    TensorRule(
        "",
        _H + "mlp.experts.gate_up_proj_bias",
        (("experts_gate_bias", "expert_dim"), ("experts_up_bias", "expert_dim")),
        count="n_experts",
        interleaved=True,
    ),
    TensorRule(
        "",
        _H + "mlp.experts.down_proj",
        (("experts_down", "dim"),),
        "expert_dim",
        count="n_experts",
        turned="always",
    ),
    TensorRule("", _H + "mlp.experts.down_proj_bias", (("experts_down_bias", "dim"),), count="n_experts"),
)
"""Router and experts of gpt-oss, all with biases."""


# Ollama keeps the rows of gate and up as the checkpoint has them.
OLLAMA_BIASED_EXPERTS: Final = (
    *BIASED_EXPERTS[:2],
    *(
        TensorRule(
            f"{_B}ffn_gate_up_exps.{kind}",
            "",
            ((f"experts_gate{bias}", "expert_dim"), (f"experts_up{bias}", "expert_dim")),
            cols,
            count="n_experts",
            interleaved=True,
        )
        for kind, bias, cols in (("weight", "", "dim"), ("bias", "_bias", None))
    ),
    *(
        TensorRule(
            f"{_B}ffn_down_exps.{kind}", "", ((f"experts_down{bias}", "dim"),), cols, count="n_experts"
        )
        for kind, bias, cols in (("weight", "", "expert_dim"), ("bias", "_bias", None))
    ),
)


def _delta(name: str, hf: str, part: str, rows: str, cols: str) -> TensorRule:
    return _matrix(f"{_B}{name}.weight", f"{_H}linear_attn.{hf}.weight", part, rows, cols)


_DELTA_PROJECTIONS = (
    _delta("attn_qkv", "in_proj_qkv", "delta_qkv", "delta_channels", "dim"),
    _delta("attn_gate", "in_proj_z", "delta_z", "delta_values", "dim"),
)
_DELTA_GATES = (
    _delta("ssm_beta", "in_proj_b", "delta_b", "delta_value_heads", "dim"),
    _delta("ssm_alpha", "in_proj_a", "delta_a", "delta_value_heads", "dim"),
)
_DELTA_REST = (
    dataclasses.replace(
        _delta("ssm_conv1d", "conv1d", "delta_conv", "delta_channels", "delta_taps"), depthwise=True
    ),
    # A folder has A_log, of which this is -exp: its canonical name is `delta_a_log` then.
    TensorRule(_B + "ssm_a", _H + "linear_attn.A_log", (("delta_decay", "delta_value_heads"),)),
    TensorRule(_B + "ssm_dt.bias", _H + "linear_attn.dt_bias", (("delta_dt_bias", "delta_value_heads"),)),
    TensorRule(_B + "ssm_norm.weight", _H + "linear_attn.norm.weight", (("delta_norm", "delta_value_dim"),)),
    _delta("ssm_out", "out_proj", "delta_output", "dim", "delta_values"),
)
DELTA_NET: Final = (*_DELTA_PROJECTIONS, *_DELTA_GATES, *_DELTA_REST)
"""A gated delta net."""


def _by_key_head(source: str, hf: str, *parts: tuple[str, str]) -> TensorRule:
    """A matrix that has, for each key head, the rows of that head's parts."""
    return TensorRule(source, hf, parts, "dim", count="delta_key_heads", flat=True)


def _qkvz(source: str = "", hf: str = "") -> TensorRule:
    return _by_key_head(
        source,
        hf,
        ("delta_q", "delta_key_dim"),
        ("delta_k", "delta_key_dim"),
        ("delta_v", "delta_group_values"),
        ("delta_z", "delta_group_values"),
    )


def _ba(source: str = "", hf: str = "") -> TensorRule:
    return _by_key_head(source, hf, ("delta_b", "delta_group_heads"), ("delta_a", "delta_group_heads"))


_QKVZ, _BA = _H + "linear_attn.in_proj_qkvz.weight", _H + "linear_attn.in_proj_ba.weight"
DELTA_NET_BY_KEY_HEAD: Final = (
    *(dataclasses.replace(rule, hf="") for rule in _DELTA_PROJECTIONS),
    _qkvz(hf=_QKVZ),
    _ba(_B + "ssm_ba.weight", _BA),
    *_DELTA_REST,
)
"""The delta net of Qwen 3 Next stores its projections by key heads; a GGUF file only those of the gates."""

_Form = tuple[TensorRule, ...]

# Other ways to store the same: gate and up of the experts in one, each expert a tensor of its own in files
# before 2024; Transformers' own since its version 5, MLX. Qwen 3 Next's projections of delta nets. Keys and
# values of latent attention in one.
_GGUF_FORMS: Final[Sequence[_Form]] = (
    _fused(source=(_B + "ffn_gate_up_exps.weight", _B + "ffn_down_exps.weight")),
    _apart(source=_B + "ffn_{part}.{e}.weight"),
    (_matrix(_B + "attn_kv_b.weight", "", "latent_kv_b", "latent_heads", "latent"),),
    (_qkvz(source=_B + "ssm_in.weight"),),
    (_ba(source=_B + "ssm_ba.weight"),),
    _DELTA_GATES,
)
_HF_FORMS: Final[Sequence[_Form]] = (
    _fused(hf=(_H + "mlp.experts.gate_up_proj", _H + "mlp.experts.down_proj")),
    _fused(hf=(_H + "block_sparse_moe.experts.gate_up_proj", _H + "block_sparse_moe.experts.down_proj")),
    _apart(hf=_H + "experts.{e}.{part}_proj.weight"),
    _apart(hf=_H + "mlp.switch_mlp.{part}_proj.weight"),
    _apart(hf=_H + "experts.switch_glu.{part}_proj.weight"),
    _apart(hf=_H + "block_sparse_moe.switch_mlp.{part}_proj.weight"),
    tuple(
        TensorRule("", f"{_H}self_attn.{hf}.weight", ((name, rows),), cols, count="n_heads")
        for hf, name, rows, cols in (
            ("embed_q", "latent_k", "latent", "latent_nope"),
            ("unembed_out", "latent_v", "latent_value", "latent"),
        )
    ),
    _fused(hf=(_H + "feed_forward.experts.gate_up_proj", _H + "feed_forward.experts.down_proj")),
    _apart(hf=_H + "feed_forward.switch_mlp.{part}_proj.weight"),
    _ungated(_H + "mixer.experts.{part}_proj"),
    _ungated(_H + "mixer.switch_mlp.fc{n}.weight"),
    _apart(hf=_H + "mlp.experts.{part}_proj.weight"),  # MLX's of gpt-oss
    _biases(hf=_H + "mlp.experts.{part}_proj.bias"),
    (_qkvz(hf=_QKVZ),),
    (_ba(hf=_BA),),
    _DELTA_PROJECTIONS,
    _DELTA_GATES,
)
_STORED_APART: Final[Sequence[frozenset[str]]] = (
    frozenset({"experts_gate", "experts_up", "experts_down"}),
    frozenset({"experts_gate_bias", "experts_up_bias", "experts_down_bias"}),
    frozenset({"delta_qkv", "delta_z", "delta_q"}),
    frozenset(name for rule in _DELTA_GATES for name, _ in rule.parts),
    frozenset({"latent_k", "latent_v", "latent_kv_b"}),
)
"""The canonical names of the tensors that the forms store in another way."""


_OLLAMA_NAMES: Final = (
    (".attn_output.", ".attn_out."),
    (".attn_sinks.weight", ".attn_sinks"),
    (".ssm_dt.bias", ".ssm_dt"),
    (".exp_probs_b.bias", ".exp_probs_b"),
    (".post_attention_norm.", ".ffn_norm."),  # of gpt-oss
    ("token_embd_norm.", "output_norm."),  # of LFM2
)
"""Parts of llama.cpp's names, and what Ollama's converters and some others have in their places."""


def _as_ollama(rule: TensorRule, has: Callable[[str], bool], layer: int) -> TensorRule:
    """The rule with Ollama's name of its tensor, where the file has that alone."""
    for usual, own in _OLLAMA_NAMES:
        other = rule.source.replace(usual, own)
        if usual == ".post_attention_norm." and rule.parts[0][0] != "ffn_norm":
            continue
        names = [name.replace("{n}", str(layer)) for name in (rule.source, other)]
        if other != rule.source and has(names[1]) and not has(names[0]):
            return dataclasses.replace(rule, source=other)
    return rule


def stored_rules(
    rules: Iterable[TensorRule], has: Callable[[str], bool], layer: int, *, hf: bool = False
) -> tuple[TensorRule, ...]:
    """The rules of a layer, with those of experts and delta nets as the file stores them.

    `has` says whether the file has a tensor of a name; `hf`: names are those of a checkpoint.
    """

    def fits(rule: TensorRule) -> bool:
        """Whether the file has what the rule needs, and lacks what it says."""
        return all(
            names is None or has(names[hf].replace("{n}", str(layer))) is wanted
            for names, wanted in ((rule.needs, True), (rule.lacks, False))
        )

    found = tuple(rule for rule in rules if (rule.hf if hf else rule.source) and fits(rule))
    if not hf:
        found = tuple(_as_ollama(rule, has, layer) for rule in found)

    def present(form: _Form) -> bool:
        name = form[0].hf if hf else form[0].source
        return has(name.replace("{n}", str(layer)).replace("{e}", "0"))

    for names in _STORED_APART:
        own = tuple(rule for rule in found if rule.parts[0][0] in names)
        if not own or present(own):
            continue
        for form in _HF_FORMS if hf else _GGUF_FORMS:
            makes = {name for rule in form for name, _ in rule.parts}
            if makes & names and present(form):
                found = (*(rule for rule in found if rule not in own), *form)
                break
    return found


def is_expert_name(name: str) -> bool:
    """Whether a canonical tensor of a layer is a matrix or bias of experts, not the norm before them."""
    return name.startswith("experts_") and not name.endswith("_norm")


_UNGATED: Final = {"up": "fc1", "down": "fc2"}
"""MLX's names of the matrices of experts without a gate."""


def mlx_rules(rules: Iterable[TensorRule]) -> tuple[TensorRule, ...]:
    """The rules of tensors in folders, with experts as MLX keeps them: each part of a layer's is one."""
    found: list[TensorRule] = []
    rules = tuple(rules)
    gated = any(name == "experts_gate" for rule in rules for name, _ in rule.parts)
    for rule in rules:
        name, place = rule.parts[0][0], rule.hf.partition("experts.")[0]
        if not rule.hf or not is_expert_name(name):
            found.append(rule)
        else:
            module = "switch_mlp"
            if rule.turned == "always" or name.endswith("_bias"):  # gpt-oss
                module = "experts"
            elif rule.hf.startswith(_H + "experts."):  # Gemma 4
                module, place = "switch_glu", _H + "experts."
            elif "{e}" not in rule.hf:  # Granite
                place = rule.hf.removesuffix(".weight").rpartition(".")[0] + "."
            kind = "bias" if name.endswith("_bias") else "weight"
            for part, rows in rule.parts:
                own = part.removeprefix("experts_").removesuffix("_bias")
                layer = f"{own}_proj" if gated else _UNGATED[own]
                hf = f"{place}{module}.{layer}.{kind}"
                alone = dataclasses.replace(rule, hf=hf, parts=((part, rows),), interleaved=False)
                found.append(dataclasses.replace(alone, turned="never"))
    return tuple(found)


def expert_layers(numbers: LayerNumbers, n_layers: int) -> list[bool]:
    """Return which layers have experts: all, but the first ones and between some that the file names."""
    if numbers.integer("n_experts") == 0:
        return [False] * n_layers
    types = numbers.get("mlp_layer_types")
    if isinstance(types, list) and len(types) == n_layers:
        return [kind != "dense" for kind in types]
    dense = numbers.get("mlp_only_layers")
    skipped = dense if isinstance(dense, list) else []
    first, step = numbers.integer("dense_lead"), numbers.integer("expert_step") or 1
    last = numbers.integer("expert_last")
    end = n_layers if last < 0 else last + 1
    return [n not in skipped and first <= n < end and (n + 1) % step == 0 for n in range(n_layers)]
