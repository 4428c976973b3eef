"""Adapters (LoRA): the model with one is the model with merged weights, whatever runs beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
import pytest

import akunu
from akunu.api.model import Model
from akunu.base.errors import BusyError, InvalidArgumentError, ModelFileError, UnsupportedError
from formats.safetensors_bytes import write_tensors

from . import convert, folders, tiny

Weights = dict[str, npt.NDArray[np.float32]]
DEVICE = os.environ.get("AKUNU_TEST_DEVICE", "cpu")  # tests/metal and tests/cuda set another
DATA = Path(__file__).parents[1] / "data" / "adapters"
PROMPT = [5, 9, 3, 30, 41, 7, 11, 2, 8, 14, 21, 6]
NAMES = (
    "q_proj",
    "k_proj",
    "v_proj",
    "o_proj",
    "gate_proj",
    "up_proj",
    "down_proj",
    "qkv_proj",
    "gate_up_proj",
)
MODELS = ("llama", "qwen3", "phi3_short", "gemma2")


def linears(weights: Mapping[str, npt.NDArray[Any]]) -> list[str]:
    return sorted(name for name in weights if name.endswith(tuple(f"{n}.weight" for n in NAMES)))


def matrices(weights: Weights, rank: int, seed: int) -> dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    rng = np.random.default_rng(seed)
    found = {}
    for name in linears(weights):
        rows, cols = weights[name].shape
        a, b = rng.normal(size=(rank, cols)) / np.sqrt(cols), rng.normal(size=(rows, rank)) * 0.3
        found[name] = np.float32(np.float16(a)), np.float32(np.float16(b))
    return found


def write_peft(path: Path, pairs: Mapping[str, Any], rank: int, alpha: float = 8.0, **config: object) -> Path:
    path.mkdir(exist_ok=True)
    settings = {"peft_type": "LORA", "r": rank, "lora_alpha": alpha, "bias": "none", **config}
    (path / "adapter_config.json").write_text(json.dumps(settings))
    arrays = {}
    for name, (a, b) in pairs.items():
        module = "base_model.model." + name.removesuffix(".weight")
        arrays[f"{module}.lora_A.weight"] = np.ascontiguousarray(a)
        arrays[f"{module}.lora_B.weight"] = np.ascontiguousarray(b)
    write_tensors(path / "adapter_model.safetensors", arrays, "F32")
    return path


def write_gguf(path: Path, name: str, pairs: Mapping[str, Any], alpha: float = 8.0, **keys: object) -> Path:
    """Write an adapter as llama.cpp's converter does: it reorders the rows of B as those of the weight."""
    own = tiny.EVERY[name]
    writer = gguf.GGUFWriter(str(path), str(keys.get("arch", own.arch)))
    writer.add_string("general.type", "adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", alpha)
    for hf, (first, second) in pairs.items():
        layer, stem = hf.split(".")[2], hf.split(".")[-2]
        target = {
            "q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output",
            "gate_proj": "ffn_gate", "up_proj": "ffn_up", "down_proj": "ffn_down",
        }[stem]  # fmt: skip
        rows = second
        heads = {"q_proj": own.n_heads, "k_proj": own.n_kv_heads}.get(stem)
        if own.arch == "llama" and heads:
            rows = second.reshape(heads, 2, -1, second.shape[1]).swapaxes(1, 2).reshape(second.shape)
        writer.add_tensor(f"blk.{layer}.{target}.weight.lora_a", np.float32(first))
        writer.add_tensor(f"blk.{layer}.{target}.weight.lora_b", np.ascontiguousarray(np.float32(rows)))
    convert.finish(writer)
    return path


def said(
    model: Model, adapter: str | None = None, tokens: int = 10, **more: Any
) -> tuple[list[int], list[float]]:
    done = model.generate(PROMPT, max_tokens=tokens, temperature=0, logprobs=0, adapter=adapter, **more)
    assert done.logprobs is not None
    return done.ids, [token.logprob for token in done.logprobs]


def load(path: Path, **options: Any) -> Model:
    return akunu.load(path, device=DEVICE, threads=1, progress=False, **options)


@pytest.fixture
def llama(tmp_path: Path) -> Iterator[Model]:
    with load(folders.write("llama", tmp_path / "model")) as model:
        yield model


def llama_adapter(tmp_path: Path, seed: int, rank: int = 4) -> Path:
    return write_peft(
        tmp_path / f"adapter{seed}", matrices(tiny.weights(tiny.EVERY["llama"]), rank, seed), rank
    )


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("rank", [1, 5, 16])
def test_an_adapter_is_the_merged_model(name: str, rank: int, tmp_path: Path) -> None:
    pairs = matrices(tiny.weights(tiny.EVERY[name]), rank, seed=rank)

    def merged(weights: Weights) -> Weights:
        return weights | {n: weights[n] + np.float32(8 / rank) * (b @ a) for n, (a, b) in pairs.items()}

    adapter = write_peft(tmp_path / "adapter", pairs, rank)
    with load(folders.write(name, tmp_path / "merged", arrays=merged)) as model:
        wanted = said(model)
    with load(folders.write(name, tmp_path / "model"), adapters={"a": adapter}) as model:
        plain, found = said(model), said(model, "a")
    assert found[0] == wanted[0]
    np.testing.assert_allclose(found[1], wanted[1], atol=3e-3)
    assert plain[1] != found[1]


def test_what_is_measured_with_an_adapter_is_of_the_merged_model(tmp_path: Path) -> None:
    """Logits, perplexity and an importance matrix; the adapter may have another scale than its own."""
    pairs = matrices(tiny.weights(tiny.EVERY["llama"]), 4, seed=4)
    adapter, file = write_peft(tmp_path / "a", pairs, 4), tiny.write("llama", "F32", tmp_path / "m.gguf").path
    merged = akunu.convert(file, tmp_path / "merged.gguf", "f32", merge=adapter, progress=False)
    text = "The quick brown fox jumps over the lazy dog. " * 3
    with load(merged) as model:
        logits, perplexity = model.logits(PROMPT), model.perplexity(text, context=32)
        means = model.importance_matrix(text).means if DEVICE == "cpu" else {}
    with load(file) as model:
        model.add_adapter("a", adapter, scale=0.5)
        own = {"adapter": "a", "adapter_scale": 1.0}
        np.testing.assert_allclose(model.logits(PROMPT, **own), logits, atol=5e-3)
        assert model.perplexity(text, context=32, **own) == pytest.approx(perplexity, rel=1e-3)
        plain = model.perplexity(text, context=32)
        assert plain != pytest.approx(perplexity, rel=1e-2)
        assert model.perplexity(text, context=32, adapter="a") != pytest.approx(perplexity, rel=1e-3)
        assert model.perplexity(text, context=32) == plain
        for name, mean in means.items():
            np.testing.assert_allclose(model.importance_matrix(text, **own).means[name], mean, rtol=2e-2)
        for measure in (model.perplexity, model.importance_matrix):
            with pytest.raises(akunu.InvalidArgumentError, match="adapter: no 'b'; there is 'a'"):
                measure(text, adapter="b")
            with pytest.raises(akunu.InvalidArgumentError, match="adapter_scale: is of an adapter"):
                measure(text, adapter_scale=2.0)


@pytest.mark.parametrize("name", ["llama", "qwen3"])
def test_gguf_and_peft_are_the_same_on_models_of_both_kinds(name: str, tmp_path: Path) -> None:
    pairs = matrices(tiny.weights(tiny.EVERY[name]), 3, seed=1)
    peft = write_peft(tmp_path / "peft", pairs, 3)
    other = write_gguf(tmp_path / "adapter.gguf", name, pairs)
    file = tiny.write(name, "F32", tmp_path / "model.gguf").path
    outputs = []
    for path in (file, folders.write(name, tmp_path / "folder")):
        with load(path, adapters={"peft": peft, "gguf": other}) as model:
            assert model.adapters["peft"].digest == model.adapters["gguf"].digest
            outputs += [said(model, "peft"), said(model, "gguf")]
    assert outputs[0] == outputs[1]
    assert outputs[2] == outputs[3]
    assert outputs[0][0] == outputs[2][0]
    np.testing.assert_allclose(outputs[0][1], outputs[2][1], atol=1e-3)


def test_sequences_with_four_adapters_and_none_run_together(llama: Model, tmp_path: Path) -> None:
    names: list[str | None] = [None]
    for seed in range(4):
        names.append(str(seed))
        llama.add_adapter(str(seed), llama_adapter(tmp_path, seed, rank=2 + 3 * seed))
    few = 5  # of five sequences, which an emulated GPU takes seconds for
    alone = {name: said(llama, name, few) for name in names}
    assert len({tuple(probs) for _, probs in alone.values()}) == 5
    llama.clear_cache()
    streams = {
        name: llama.stream(PROMPT, max_tokens=few, temperature=0, logprobs=0, adapter=name) for name in names
    }
    while any([next(stream, None) is not None for stream in streams.values()]):
        pass
    for name, stream in streams.items():
        done = stream.completion
        ids, logprobs = alone[name]
        assert done.ids == ids
        # A GPU has kernels of their own for several rows.
        tolerance = 0 if DEVICE == "cpu" else 1e-3
        found = [token.logprob for token in done.logprobs or ()]
        np.testing.assert_allclose(found, logprobs, rtol=0, atol=tolerance)


def test_an_adapter_beside_halves_and_codes(tmp_path: Path) -> None:
    """Rows that a GPU multiplies as F16: of prompts, of one sequence, of several with different ranks."""
    name = "llama"
    pairs = {rank: matrices(tiny.weights(tiny.EVERY[name]), rank, seed=rank) for rank in (4, 20)}
    jobs = [(rank, prompt) for rank in pairs for prompt in (PROMPT, (PROMPT * 7)[:70])]
    wanted = []
    for rank, own in pairs.items():

        def merged(weights: Weights, own: Any = own, rank: int = rank) -> Weights:
            return weights | {n: weights[n] + np.float32(8 / rank) * (b @ a) for n, (a, b) in own.items()}

        with load(folders.write(name, tmp_path / f"merged{rank}", arrays=merged)) as model:
            wanted += [
                model.generate(prompt, max_tokens=1, temperature=0, logprobs=0)
                for of, prompt in jobs
                if of == rank
            ]
    for dtype, atol in (("F16", 0.02), ("Q8_0", 0.3)):
        with load(tiny.write(name, dtype, tmp_path / f"{dtype}.gguf").path) as model:
            for rank, own in pairs.items():
                model.add_adapter(str(rank), write_peft(tmp_path / f"{rank}", own, rank))
            streams = [
                model.stream(prompt, max_tokens=3, temperature=0, logprobs=0, adapter=str(rank))
                for rank, prompt in jobs
            ]
            while any([next(stream, None) is not None for stream in streams]):
                pass
            found = [stream.completion for stream in streams]
        for done, expected in zip(found, wanted, strict=True):
            assert done.ids[0] == expected.ids[0]
            pair = [done.logprobs or [], expected.logprobs or []]
            first, second = ([token.logprob for token in tokens[:1]] for tokens in pair)
            np.testing.assert_allclose(first, second, rtol=0, atol=atol)


def test_a_sequence_without_an_adapter_has_the_bits_of_a_model_without(llama: Model, tmp_path: Path) -> None:
    said(llama)  # the prompt is cached from now on
    before = said(llama)
    llama.add_adapter("a", llama_adapter(tmp_path, 1))
    assert said(llama) == before
    assert said(llama, "a", adapter_scale=0.0)[0] == before[0]
    llama.remove_adapter("a")
    assert said(llama) == before


def test_pages_are_not_shared_between_adapters_or_scales(llama: Model, tmp_path: Path) -> None:
    llama.add_adapter("a", llama_adapter(tmp_path, 1))
    llama.add_adapter("b", llama_adapter(tmp_path, 2))
    llama.add_adapter("same", tmp_path / "adapter1")
    long = PROMPT * 6

    def cached(**options: Any) -> int:
        return llama.generate(long, max_tokens=1, temperature=0, **options).stats.cached_tokens

    assert cached() == 0
    assert cached() > 0
    assert cached(adapter="a") == 0
    assert cached(adapter="a") > 0
    assert cached(adapter="a", adapter_scale=0.5) == 0
    assert cached(adapter="b") == 0
    assert cached(adapter="same") > 0
    assert cached(adapter="a", cache_salt="x") == 0


def test_an_adapter_in_use_stays(llama: Model, tmp_path: Path) -> None:
    llama.add_adapter("a", llama_adapter(tmp_path, 1))
    stream = llama.stream(PROMPT, max_tokens=60, temperature=0, adapter="a")
    next(stream)
    with pytest.raises(BusyError, match="1 generations have it"):
        llama.remove_adapter("a")
    late = llama.stream(PROMPT, max_tokens=4, adapter="a")
    stream.close()
    llama.remove_adapter("a")
    with pytest.raises(InvalidArgumentError, match="removed"):
        next(late)
    with pytest.raises(InvalidArgumentError, match="no 'a'"):
        llama.generate(PROMPT, adapter="a")


def test_options_say_what_is_wrong(llama: Model, tmp_path: Path) -> None:
    llama.add_adapter("a", llama_adapter(tmp_path, 1))
    with pytest.raises(InvalidArgumentError, match="there is 'a'"):
        llama.generate(PROMPT, adapter="b")
    with pytest.raises(InvalidArgumentError, match="adapter_scale"):
        llama.generate(PROMPT, adapter_scale=2.0)
    with pytest.raises(InvalidArgumentError, match="there is an adapter 'a'"):
        llama.add_adapter("a", tmp_path / "adapter1")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"use_dora": True}, "use_dora"),
        ({"bias": "all"}, "bias"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"peft_type": "IA3"}, "IA3"),
        ({"init_lora_weights": "pissa_niter_4"}, "pissa"),
        ({"rank_pattern": {"q_proj": 7}}, "found rank 4, expected 7"),
        ({"lora_alpha": "much"}, "lora_alpha"),
    ],
)
def test_what_is_more_than_b_a_is_refused(
    config: dict[str, Any], message: str, llama: Model, tmp_path: Path
) -> None:
    pairs = matrices(tiny.weights(tiny.EVERY["llama"]), 4, 0)
    path = write_peft(tmp_path / "bad", pairs, 4, **config)
    with pytest.raises((UnsupportedError, ModelFileError), match=message):
        llama.add_adapter("bad", path)


def test_rslora_and_patterns_change_the_scale(llama: Model, tmp_path: Path) -> None:
    pairs = matrices(tiny.weights(tiny.EVERY["llama"]), 4, 0)
    llama.add_adapter("one", write_peft(tmp_path / "one", pairs, 4, alpha=4.0, use_rslora=True))
    llama.add_adapter("two", write_peft(tmp_path / "two", pairs, 4, alpha=8.0))
    some = {f"{n}": 8.0 for n in NAMES}
    llama.add_adapter("three", write_peft(tmp_path / "three", pairs, 4, alpha=1.0, alpha_pattern=some))
    digests = {info.digest for info in llama.adapters.values()}
    assert len(digests) == 1


def spoiled(kind: str, pairs: dict[str, Any]) -> dict[str, Any]:
    name = next(iter(pairs))
    a, b = pairs[name]
    match kind:
        case "nan":
            return pairs | {name: (a * np.nan, b)}
        case "width":
            return pairs | {name: (a[:, :-1], b)}
        case "ranks":
            return pairs | {name: (a[:-1], b)}
        case "layer":
            return pairs | {"model.layers.99.self_attn.q_proj.weight": (a, b)}
        case _:
            return pairs | {"model.embed_tokens.weight": (a, b)}


@pytest.mark.parametrize("kind", ["nan", "width", "ranks", "layer", "embedding"])
def test_hostile_adapters_are_refused(kind: str, llama: Model, tmp_path: Path) -> None:
    pairs = spoiled(kind, dict(matrices(tiny.weights(tiny.EVERY["llama"]), 4, 0)))
    with pytest.raises((ModelFileError, UnsupportedError)):
        llama.add_adapter("bad", write_peft(tmp_path / "bad", pairs, 4))
    assert not llama.adapters
    whole = llama_adapter(tmp_path, 1)
    weights = whole / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-64])
    with pytest.raises(ModelFileError):
        llama.add_adapter("cut", whole)


def test_an_adapter_of_another_architecture_is_refused(llama: Model, tmp_path: Path) -> None:
    pairs = matrices(tiny.weights(tiny.EVERY["llama"]), 4, 0)
    with pytest.raises(UnsupportedError, match="'qwen2', and the model's is 'llama'"):
        llama.add_adapter("bad", write_gguf(tmp_path / "bad.gguf", "llama", pairs, arch="qwen2"))


def test_a_prompt_is_pinned_for_sequences_with_an_adapter(llama: Model, tmp_path: Path) -> None:
    llama.add_adapter("a", llama_adapter(tmp_path, 1))
    long = PROMPT * 6
    assert llama.pin(long, adapter="a") == 64
    assert llama.generate(long, max_tokens=1, adapter="a").stats.cached_tokens == 64
    assert llama.generate(long, max_tokens=1).stats.cached_tokens == 0
    llama.unpin(long, adapter="a")
    with pytest.raises(InvalidArgumentError):
        llama.unpin(long)


MERGED = ("llama", "qwen3", "phi3_short")


@pytest.mark.parametrize("name", MERGED)
@pytest.mark.parametrize("kind", ["folder", "gguf"])
def test_merged_weights_are_the_model_with_the_adapter(name: str, kind: str, tmp_path: Path) -> None:
    """Files of the adapter's own kind and of the other are merged into a GGUF file and into a folder."""
    pairs = matrices(tiny.weights(tiny.EVERY[name]), 5, seed=2)
    adapter = write_peft(tmp_path / "adapter", pairs, 5)
    if kind == "folder":
        source = folders.write(name, tmp_path / "model")
    elif name == "phi3_short":
        source = akunu.convert(folders.write(name, tmp_path / "model"), tmp_path / "own.gguf", "f32")
    else:
        source = tiny.write(name, "F32", tmp_path / "model.gguf").path
    with load(source, adapters={"a": adapter}) as model:
        plain, wanted = said(model), said(model, "a")
        half = said(model, "a", adapter_scale=0.5)
    for merge, expected in ((adapter, wanted), ([adapter], wanted), ({adapter: 0.5}, half)):
        out = akunu.convert(source, tmp_path / "out.gguf", "f32", merge=merge, overwrite=True, progress=False)
        with load(out) as model:
            found = said(model)
        assert found[0] == expected[0] and found[1] != plain[1]
        np.testing.assert_allclose(found[1], expected[1], atol=2e-3)
    out = akunu.convert(source, tmp_path / "merged", "mlx-f32", merge=adapter, progress=False)
    with load(out) as model:
        found = said(model)
    assert found[0] == wanted[0]
    np.testing.assert_allclose(found[1], wanted[1], atol=2e-3)


def test_what_is_copied_is_merged_too(tmp_path: Path) -> None:
    """Blocks that a conversion would copy, since the file has their type already."""
    model = tiny.write("llama", "Q8_0", tmp_path / "model.gguf").path
    adapter = llama_adapter(tmp_path, 3)
    a, b = matrices(tiny.weights(tiny.EVERY["llama"]), 4, 3)["model.layers.0.mlp.down_proj.weight"]
    merged = akunu.convert(model, tmp_path / "merged.gguf", "q8_0", merge=adapter, progress=False)

    def weight(path: Path) -> npt.NDArray[np.float32]:
        (tensor,) = [t for t in gguf.GGUFReader(path).tensors if t.name == "blk.0.ffn_down.weight"]
        assert tensor.tensor_type == gguf.GGMLQuantizationType.Q8_0
        return gguf.dequantize(tensor.data, tensor.tensor_type)

    wanted = weight(model) + 2 * (b @ a)
    np.testing.assert_allclose(weight(merged), wanted, atol=np.abs(wanted).max() / 200)


def test_what_cannot_be_merged_is_refused(tmp_path: Path) -> None:
    model = folders.write("llama", tmp_path / "model")
    other = folders.write("gemma2", tmp_path / "other")
    adapter = llama_adapter(tmp_path, 1)
    text = tmp_path / "text.txt"
    text.write_text("Some words to measure.")
    with pytest.raises((ModelFileError, UnsupportedError), match="take the model"):
        akunu.convert(other, tmp_path / "out.gguf", "f32", merge=adapter, progress=False)
    with pytest.raises(ModelFileError, match="does not exist"):
        akunu.convert(model, tmp_path / "out.gguf", "f32", merge=tmp_path / "none", progress=False)
    with pytest.raises(InvalidArgumentError, match="imatrix"):
        akunu.convert(model, tmp_path / "out.gguf", "q8_0", merge=adapter, imatrix=text, progress=False)
    with pytest.raises(InvalidArgumentError, match="merge"):
        akunu.convert(model, tmp_path / "out.gguf", "f32", merge={adapter: float("nan")}, progress=False)
    assert not (tmp_path / "out.gguf").exists()


@pytest.mark.parametrize("name", ["patterns", "rslora"])
@pytest.mark.parametrize("kind", ["folder", "gguf"])
def test_an_adapter_computes_what_peft_does(name: str, kind: str, tmp_path: Path) -> None:
    """Ranks and scales by patterns, all linear layers, scales by the root, as PEFT has them."""
    folder = DATA / name
    golden = np.load(folder / "golden.npz")
    source = (
        folders.write("llama", tmp_path / "model")
        if kind == "folder"
        else tiny.write("llama", "F32", tmp_path / "model.gguf").path
    )
    logits = golden["logits"].astype(np.float64)
    best = int(logits.argmax())
    wanted = logits[best] - logits.max() - np.log(np.exp(logits - logits.max()).sum())
    with load(source, adapters={"a": folder}) as model:
        done = model.generate(
            golden["prompt"].tolist(), max_tokens=1, temperature=0, logprobs=5, adapter="a", stop_token_ids=[]
        )
        plain = model.generate(golden["prompt"].tolist(), max_tokens=1, temperature=0, logprobs=0)
    assert done.ids == [best] and done.logprobs and plain.logprobs
    np.testing.assert_allclose(done.logprobs[0].logprob, wanted, atol=2e-3)
    assert plain.ids != done.ids or abs(plain.logprobs[0].logprob - wanted) > 0.01
