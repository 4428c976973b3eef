"""What an engine refuses, with messages that quote what was passed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from akunu import _core
from akunu.base.errors import ContextLengthError, InvalidArgumentError, UnsupportedError
from akunu.files.describe.config import ModelSpec
from akunu.files.describe.gguf_config import resolve
from akunu.files.describe.tensor_map import TensorRef
from one_engine import OneEngine

from . import configs, tiny
from .test_engine import open_engine


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny") / "llama.gguf"
    tiny.write("llama", "F32", path)
    return path


@pytest.fixture(scope="module")
def engine(path: Path) -> OneEngine:
    return open_engine(path, context=64, threads=1)


class Index:
    def __index__(self) -> int:
        return 3


@pytest.mark.parametrize(
    "ids",
    [[1, 2], (1, 2), list(np.array([1, 2])), np.array([1, 2], np.int8), [np.uint64(1), Index()], iter([1])],
    ids=["list", "tuple", "scalars", "array", "mixed", "iterator"],
)
def test_any_integers_are_token_ids(engine: OneEngine, ids: Any) -> None:
    assert engine.engine.begin(ids, slot=engine.slot, reuse=False) == 0


CALLS: dict[str, Callable[[OneEngine, Any], object]] = {
    "begin": lambda engine, ids: engine.begin(ids),
    "logits": lambda engine, ids: engine.logits(ids),
    "nll": lambda engine, ids: engine.nll(ids),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, -1], "the token id at index 1 is -1, outside the vocabulary of"),
        ([2**70], f"the token id at index 0 is {2**70}, outside the vocabulary of"),
        ([10**5000], "the token id at index 0 is an object of type int, outside"),
        ([1, 1 << 20], f"the token id at index 1 is {1 << 20}, outside the vocabulary of"),
        (np.array([3, -7]), "the token id at index 1 is -7, outside the vocabulary of"),
        (np.array([2**64 - 1], np.uint64), f"the token id at index 0 is {2**64 - 1}, outside"),
        ([1, 1.5], "the token id at index 1 must be an integer, not 1.5"),
        (["x" * 200], "the token id at index 0 must be an integer, not '" + "x" * 79 + r"\.\.\.$"),
        (np.array([1.0]), "a one-dimensional array of integers"),
        ([], "the prompt is empty"),
    ],
    ids=lambda value: "" if isinstance(value, str) else None,
)
def test_what_is_no_token_id_is_quoted(engine: _core.Engine, call: str, ids: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        CALLS[call](engine, ids)


@pytest.mark.parametrize("call", CALLS)
def test_a_long_prompt_is_refused_before_its_logits_get_memory(engine: _core.Engine, call: str) -> None:
    with pytest.raises(ContextLengthError, match="has 50000000 tokens, the context holds 64"):
        CALLS[call](engine, np.zeros(50_000_000, np.uint8))


def test_a_prompt_that_does_not_fit_says_what_can_be_done(path: Path) -> None:
    trained = resolve(_core.GgufFile(str(path))).config.context_length
    larger, whole = (
        f"; load the model with a larger one, at most {trained}",
        ", all that the model was trained for",
    )
    for context, remedy in ((trained - 1, larger), (trained, whole)):
        engine = open_engine(path, context=context, threads=1)
        with pytest.raises(ContextLengthError, match=f"the context holds {context}{remedy}$"):
            engine.begin([1] * (context + 1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"end_ids": [-1]}, "an id of end_ids is -1, outside the vocabulary"),
        ({"end_ids": ["a"]}, "an id of end_ids must be an integer, not 'a'"),
        ({"end_ids": range(100)}, "more than \\d+ end-of-generation ids"),
        ({"logit_bias": {"a": 1}}, "a token id of logit_bias must be an integer, not 'a'"),
        ({"logit_bias": {-1: 1}}, "a token id of logit_bias is -1, outside the vocabulary"),
        ({"logit_bias": {1 << 20: 1}}, f"a token id of logit_bias is {1 << 20}, outside the vocabulary"),
        ({"logit_bias": {1: "a"}}, "logit_bias of token 1 is 'a', expected a number or -inf"),
        ({"logit_bias": {1: float("inf")}}, "logit_bias of token 1 must be a number or -inf"),
    ],
    ids=lambda value: "" if isinstance(value, str) else str(value)[:30],
)
def test_bad_options_of_a_generation_are_quoted(
    engine: OneEngine, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        engine.begin([1], **options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dim": -1}, "dim is -1, expected an integer of 0..4294967295"),
        ({"dim": 0}, "dim is 0, expected at least 1"),
        ({"vocab_size": 0}, "vocab_size is 0, expected at least 1"),
        ({"norm_eps": "big"}, "norm_eps is 'big', expected a number"),
        ({"layer_norm": "no"}, "layer_norm is 'no', expected true or false"),
    ],
    ids=lambda value: "" if isinstance(value, str) else ",".join(value),
)
def test_an_inconsistent_configuration_says_which_number(
    path: Path, change: dict[str, Any], message: str
) -> None:
    refuse(path, lambda config: config.update(change), message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale": "big"}, "scale is 'big', expected a number"),
        ({"n_kv_heads": 0}, "n_kv_heads is 0, expected at least 1"),
        ({"n_heads": 0}, "n_heads is 0, expected a multiple of n_kv_heads, 2"),
        ({"n_heads": 5, "n_kv_heads": 3}, "n_heads is 5, expected a multiple of n_kv_heads, 3"),
        ({"rope": 9}, "rope is 9, expected less than the number of rope_sets, 1"),
        ({"head_dim": 2}, r"head_dim is 2, expected at least the \d+ elements that rope_sets\[0\] rotates"),
        (
            {"kv_owner": 2},
            "kv_owner is 2, expected an attention block before it with keys and values of its own",
        ),
        (
            {"kv_owner": 1},
            "kv_owner is 1, expected an attention block before it with keys and values of its own",
        ),
        (
            {"kind": "rnn"},
            "kind is 'rnn', expected one of attention, cross_attention, feed_forward, experts",
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else ",".join(value),
)
def test_an_inconsistent_block_says_which_number(path: Path, change: dict[str, Any], message: str) -> None:
    refuse(
        path, lambda config: config["blocks"][2]["mixer"].update(change), rf"blocks\[2\]\.mixer\.{message}"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inv_freq": np.zeros((1, 1), np.float32)}, r"inv_freq is array\(.*, expected a row of numbers"),
        ({"inv_freq": "fast"}, "inv_freq is 'fast', expected a row of numbers"),
        ({"style": "whole"}, "style is 'whole', expected one of interleaved, half"),
    ],
    ids=lambda value: "" if isinstance(value, str) else ",".join(value),
)
def test_an_inconsistent_rope_set_says_which_number(path: Path, change: dict[str, Any], message: str) -> None:
    refuse(path, lambda config: config["rope_sets"][0].update(change), rf"rope_sets\[0\]\.{message}")


def test_an_unknown_activation_is_refused(path: Path) -> None:
    refuse(
        path,
        lambda config: config["blocks"][1]["mixer"].update(activation="elu"),
        r"blocks\[1\]\.mixer\.activation is 'elu', expected one of silu, gelu_tanh, gelu, tanh, relu",
    )


def refuse(path: Path, change: Callable[[dict[str, Any]], object], message: str) -> None:
    """Expect the engine to refuse the configuration that `change` makes of a right one."""
    file = _core.GgufFile(str(path))
    spec = resolve(file, context=64)
    config = dataclasses.asdict(spec.config)
    config["blocks"], config["rope_sets"] = list(config["blocks"]), list(config["rope_sets"])
    change(config)
    with pytest.raises(InvalidArgumentError, match=message):
        _core.Engine(file, {"config": config, "tensors": spec.tensors}, device="cpu")  # type: ignore[arg-type]


def giant(dim: int, head_dim: int) -> _core.Engine:
    """One layer of one head, with random Q8_0 weights."""
    config = configs.plain(
        dim=dim,
        n_layers=1,
        n_heads=1,
        n_kv_heads=1,
        head_dim=head_dim,
        ffn_dim=32,
        vocab_size=32,
        context_length=8,
        inv_freq=np.ones(1, np.float32),
    )
    shapes = {"token_embedding": (32, dim), "output": (32, dim), "output_norm": (dim, 0)}
    shapes |= {f"layers.0.attn_{part}": (head_dim, dim) for part in "qkv"}
    shapes |= {f"layers.0.{part}_norm": (dim, 0) for part in ("attn", "ffn")}
    shapes |= {f"layers.0.ffn_{part}": (32, dim) for part in ("gate", "up")}
    shapes |= {"layers.0.attn_output": (dim, head_dim), "layers.0.ffn_down": (dim, 32)}
    spec = ModelSpec(config, {name: TensorRef(name, 0, *shape) for name, shape in shapes.items()})
    types = {name: "q8_0" if shape[1] else "f32" for name, shape in shapes.items()}
    return _core.Engine(None, spec, synthetic=types, device="cpu", threads=1)


def test_rows_that_do_not_fit_a_workers_scratch_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="embed: dim is 1048608, the CPU takes at most 1048576"):
        giant(dim=(1 << 20) + 32, head_dim=32)
    with pytest.raises(UnsupportedError, match="head_dim is 32800, the CPU takes at most 4096"):
        giant(dim=32, head_dim=(1 << 15) + 32)


@pytest.mark.parametrize(("dim", "head_dim"), [(1 << 20, 32), (32, 1 << 12)])
def test_the_largest_rows_run(dim: int, head_dim: int) -> None:
    assert np.isfinite(giant(dim, head_dim).logits([1, 2, 3])).all()
