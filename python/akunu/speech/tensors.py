"""Find a Whisper model's tensors in its files, by the names of whisper.cpp, MLX and Hugging Face, and
the numbers of its two stacks as the engine takes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from akunu.files.describe.blocks import Attention, Block, CrossAttention, FeedForward, Mixer
from akunu.files.describe.quantized import join_planes, with_planes
from akunu.files.describe.tensor_map import LayerTensors, TensorInfo, TensorRef, map_tensors
from akunu.files.describe.tensor_rules import TensorRule
from akunu.speech.config import Head, WhisperConfig

__all__ = ["Layout", "Stack", "aligned_heads", "sound_stack", "synthetic_tensors", "text_stack"]

Layout = Literal["ggml", "mlx", "hf"]

_TAPS: Final = 3


@dataclass(frozen=True)
class Stack:
    """A stack as `akunu._core.Speech` takes it.

    `config` has the names of `akunu.files.describe.config.ModelConfig`, and `audio` where it hears.
    """

    config: Mapping[str, object]
    tensors: Mapping[str, TensorRef]


@dataclass(frozen=True)
class _Flat:
    """A tensor whose last axes are one."""

    name: str
    dtype: str
    shape: tuple[int, ...]


# Name in the engine; in whisper.cpp, MLX and Hugging Face; whether it has a bias.
_ATTENTION: Final = (
    ("q", "query", "q_proj", True),
    ("k", "key", "k_proj", False),
    ("v", "value", "v_proj", True),
)
_OUTPUT: Final = ("output", "out", "out_proj", True)


def _attention_names(name: str, plain: str, hf: str) -> Iterator[tuple[str, str, str, str, str, str, bool]]:
    for part, ggml, proj, bias in (*_ATTENTION, _OUTPUT):
        yield f"{name}_{part}", f"{plain}.{ggml}", f"{plain}.{ggml}", f"{hf}.{proj}", "dim", "dim", bias


# A linear layer: its name in the engine, in whisper.cpp, MLX and Hugging Face; rows, columns, bias.
_LINEAR: Final = (
    *_attention_names("attn", "attn", "self_attn"),
    ("ffn_up", "mlp.0", "mlp1", "fc1", "ffn", "dim", True),
    ("ffn_down", "mlp.2", "mlp2", "fc2", "dim", "ffn", True),
)
_CROSS: Final = tuple(_attention_names("cross", "cross_attn", "encoder_attn"))
_NORMS: Final = (
    ("attn_norm", "attn_ln", "self_attn_layer_norm"),
    ("ffn_norm", "mlp_ln", "final_layer_norm"),
)
_CROSS_NORM: Final = ("cross_norm", "cross_attn_ln", "encoder_attn_layer_norm")


def _rules(layout: Layout, stack: str) -> Iterator[TensorRule]:
    """The tensors of one stack, whose names begin with `stack`."""
    hf, cross = layout == "hf", stack.endswith("decoder")

    def linear(name: str, source: str, rows: str, cols: str, bias: bool) -> Iterator[TensorRule]:
        yield TensorRule(f"{stack}.{source}.weight", "", ((name, rows),), cols)
        if bias:
            yield TensorRule(f"{stack}.{source}.bias", "", ((f"{name}_bias", rows),))

    def norm(name: str, source: str) -> Iterator[TensorRule]:
        yield TensorRule(f"{stack}.{source}.weight", "", ((name, "dim"),))
        yield TensorRule(f"{stack}.{source}.bias", "", ((f"{name}_bias", "dim"),))

    block = "layers.{n}." if hf else "blocks.{n}."
    for name, *sources, rows, cols, bias in (*_LINEAR, *(_CROSS if cross else ())):
        yield from linear(name, block + str(sources[("ggml", "mlx", "hf").index(layout)]), rows, cols, bias)
    for name, plain, in_hf in (*_NORMS, *((_CROSS_NORM,) if cross else ())):
        yield from norm(name, block + (in_hf if hf else plain))
    positions = f"{stack}.embed_positions.weight" if hf else f"{stack}.positional_embedding"
    yield TensorRule(
        positions, "", (("positions", "positions"),), "dim", optional=layout == "mlx" and not cross
    )
    if cross:
        embedding = "embed_tokens" if hf else "token_embedding"
        yield TensorRule(f"{stack}.{embedding}.weight", "", (("token_embedding", "vocab"),), "dim")
        yield from norm("output_norm", "layer_norm" if hf else "ln")
    else:
        yield from linear("conv1", "conv1", "dim", "conv1", True)
        yield from linear("conv2", "conv2", "dim", "conv2", True)
        yield from norm("output_norm", "layer_norm" if hf else "ln_post")


def _config(config: WhisperConfig, context: int, blocks: tuple[Block, ...]) -> dict[str, object]:
    return {
        "dim": config.width,
        "vocab_size": config.vocab_size,
        "context_length": context,
        "positions": context,
        "norm_eps": 1e-5,
        "layer_norm": True,
        "rope_sets": (),
        "blocks": blocks,
    }


def _attention(config: WhisperConfig, heads: int, *, bidirectional: bool = False) -> Attention:
    head_dim = config.width // heads
    return Attention(heads, heads, head_dim, head_dim**-0.5, bidirectional=bidirectional)


def _feed_forward(config: WhisperConfig) -> FeedForward:
    return FeedForward(4 * config.width, "gelu")


def _blocks(layers: Iterable[Sequence[Mixer]]) -> tuple[Block, ...]:
    return tuple(Block(f"layers.{n}.", n, mixer) for n, mixers in enumerate(layers) for mixer in mixers)


def _sizes(config: WhisperConfig, stack: Literal["encoder", "decoder"]) -> dict[str, int]:
    """Return the values of the rules' symbols."""
    return {
        "dim": config.width,
        "ffn": 4 * config.width,
        "vocab": config.vocab_size,
        "positions": config.audio_context if stack == "encoder" else config.text_context,
        "conv1": _TAPS * config.mels,
        "conv2": _TAPS * config.width,
    }


def _tensors(
    config: WhisperConfig,
    layout: Layout,
    found: Mapping[str, TensorInfo],
    settings: Mapping[str, object],
    stack: Literal["encoder", "decoder"],
) -> dict[str, TensorRef]:
    prefix = "model." if layout == "hf" and any(name.startswith("model.") for name in found) else ""
    mine = {name: tensor for name, tensor in found.items() if name.startswith(f"{prefix}{stack}.")}
    joined = join_planes(settings, mine) if layout != "ggml" else mine
    flat = {name: _flattened(tensor) for name, tensor in joined.items()}
    layers = config.audio_layers if stack == "encoder" else config.text_layers
    rules, sizes = tuple(_rules(layout, prefix + stack)), _sizes(config, stack)
    in_layers = LayerTensors(tuple(rule for rule in rules if "{n}" in rule.source), sizes)
    others = [rule for rule in rules if "{n}" not in rule.source]
    refs = map_tensors(others, flat, sizes, [in_layers] * layers, owner="Whisper")
    return with_planes(refs, flat)


def _flattened(tensor: TensorInfo) -> TensorInfo:
    """A convolution as a matrix, and a column of whisper.cpp as the vector that it is."""
    shape = tuple(tensor.shape)
    if len(shape) == 3:
        return _Flat(tensor.name, tensor.dtype, (shape[0], shape[1] * shape[2]))
    if len(shape) == 2 and shape[1] == 1:
        return _Flat(tensor.name, tensor.dtype, shape[:1])
    return tensor


def synthetic_tensors(config: WhisperConfig, dtype: str) -> tuple[dict[str, TensorInfo], dict[str, str]]:
    """A model of random weights: its tensors by Hugging Face's names, and the type of each canonical one.

    Matrices have that type, but for convolutions (F16) and positions (F32).
    """
    tensors: dict[str, TensorInfo] = {}
    types: dict[str, str] = {}
    stacks: tuple[tuple[Literal["encoder", "decoder"], int], ...] = (
        ("encoder", config.audio_layers),
        ("decoder", config.text_layers),
    )
    for stack, layers in stacks:
        sizes = _sizes(config, stack)
        for rule in _rules("hf", stack):
            ((name, rows),) = rule.parts
            own = "f32" if rule.cols is None or name == "positions" else "f16" if "conv" in name else dtype
            shape = (sizes[rows],) if rule.cols is None else (sizes[rows], sizes[rule.cols])
            for n in range(layers) if "{n}" in rule.source else (0,):
                source = rule.source.replace("{n}", str(n))
                tensors[source] = _Flat(source, own, shape)
                types[f"layers.{n}.{name}" if "{n}" in rule.source else name] = own
    return tensors, types


def aligned_heads(config: WhisperConfig) -> list[list[Head]]:
    """The alignment heads of each layer of the decoder, each once."""
    heads = sorted(set(config.alignment_heads))
    return [[head for head in heads if head[0] == layer] for layer in range(config.text_layers)]


def sound_stack(
    config: WhisperConfig, layout: Layout, tensors: Mapping[str, TensorInfo], settings: Mapping[str, object]
) -> Stack:
    """The encoder.

    Parameters
    ----------
    config
        The sizes.
    layout
        Whose names the tensors have.
    tensors
        Those of the files.
    settings
        `config.json` of a folder, which says how weights are quantized.
    """
    attention = _attention(config, config.audio_heads, bidirectional=True)
    blocks = _blocks([(attention, _feed_forward(config))] * config.audio_layers)
    audio = {"mels": config.mels, "taps_last": layout != "mlx"}
    numbers = _config(config, config.audio_context, blocks) | {"audio": audio}
    return Stack(numbers, _tensors(config, layout, tensors, settings, "encoder"))


def text_stack(
    config: WhisperConfig, layout: Layout, tensors: Mapping[str, TensorInfo], settings: Mapping[str, object]
) -> Stack:
    """The decoder; parameters as of `sound_stack`."""
    own = _attention(config, config.text_heads)
    blocks = _blocks(
        (
            own,
            CrossAttention(
                n_heads=own.n_heads,
                n_kv_heads=own.n_kv_heads,
                head_dim=own.head_dim,
                scale=own.scale,
                positions=config.audio_context,
                aligned=tuple(number for _, number in heads),
            ),
            _feed_forward(config),
        )
        for heads in aligned_heads(config)
    )
    numbers = _config(config, config.text_context, blocks)
    return Stack(numbers, _tensors(config, layout, tensors, settings, "decoder"))
