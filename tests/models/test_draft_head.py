"""A model's own head that drafts: what it computes, whatever the file, and that no output depends on it.

The reference is Qwen 3.5's multi-token prediction in NumPy's float64, on the model's own states.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import akunu
from akunu import _core
from akunu.api.scheduling.head_proposer import HeadProposer
from akunu.files.describe.config import ModelSpec
from akunu.files.describe.gguf_config import resolve
from akunu.files.describe.hf_config import resolve_hf
from akunu.files.model_files import GgufModel
from api.fakes import decide_drafts
from api.test_drafts import everything

from . import families, qwen35, tiny
from .test_hybrid import decode, read
from .test_same_output import MODEL_DRAFTED, Mixes

DEVICE = os.environ.get("AKUNU_TEST_DEVICE", "cpu")  # tests/metal sets another
CONTEXT = 512
ROW = qwen35.ALL["qwen35"]
SETTINGS = {"device": DEVICE, "context": CONTEXT, "kv_dtype": "f32", "threads": 2}

Array = npt.NDArray[np.float64]
Open = Callable[..., _core.Engine]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("head")


def open_gguf(path: Path, **options: Any) -> _core.Engine:
    file = _core.GgufFile(str(path))
    settings = SETTINGS | options
    return _core.Engine(file, resolve(file, context=settings["context"], drafts=True), **settings)


@pytest.fixture(scope="module")
def opened(folder: Path) -> Open:
    """Opens engines of `ROW`'s GGUF file with its head."""
    path = qwen35.write_gguf(ROW, folder / "opened.gguf", drafts="in")
    return lambda **options: open_gguf(path, **options)


def prompt_of(n: int, seed: int = 1) -> list[int]:
    return np.random.default_rng(seed).integers(3, ROW.vocab_size, n).tolist()


# -- the reference -------------------------------------------------------------------------------------------


class Head:
    """The head of `ROW`, row after row of one sequence."""

    def __init__(self, *, normed_state: bool = True) -> None:
        self._normed_state = normed_state
        both = qwen35.weights(ROW) | qwen35.head(ROW)
        self._w = {name: np.asarray(array, np.float64) for name, array in both.items()}
        self._keys: list[Array] = []
        self._values: list[Array] = []

    def states(self, logits: npt.NDArray[np.float32]) -> Array:
        """What the output matrix made these logits of: there are more of them than elements of a state."""
        return np.linalg.lstsq(self._w["lm_head.weight"], np.asarray(logits, np.float64).T, rcond=None)[0].T

    def _norm(self, name: str, x: Array) -> Array:
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * (1 + self._w[name])

    def _rotated(self, x: Array, position: int) -> Array:
        half = ROW.head_dim // 8
        angles = position * 1e4 ** (-np.arange(half) / half)
        a, b = x[:, :half].copy(), x[:, half : 2 * half].copy()
        x = x.copy()
        x[:, :half] = a * np.cos(angles) - b * np.sin(angles)
        x[:, half : 2 * half] = a * np.sin(angles) + b * np.cos(angles)
        return x

    def row(self, state: Array, token: int) -> tuple[Array, Array]:
        """The next row, of a state and the token that follows it: the next state, and logits."""
        w, layer, position = self._w, "mtp.layers.0.", len(self._keys)
        embedding = self._norm("mtp.pre_fc_norm_embedding.weight", w["model.embed_tokens.weight"][token])
        x = w["mtp.fc.weight"] @ np.concatenate(
            [embedding, self._norm("mtp.pre_fc_norm_hidden.weight", state)]
        )
        h = self._norm(f"{layer}input_layernorm.weight", x)
        heads, dim = ROW.num_attention_heads, ROW.head_dim
        both = (w[f"{layer}self_attn.q_proj.weight"] @ h).reshape(heads, 2, dim)
        q = self._rotated(self._norm(f"{layer}self_attn.q_norm.weight", both[:, 0]), position)
        k = (w[f"{layer}self_attn.k_proj.weight"] @ h).reshape(-1, dim)
        self._keys.append(self._rotated(self._norm(f"{layer}self_attn.k_norm.weight", k), position))
        self._values.append((w[f"{layer}self_attn.v_proj.weight"] @ h).reshape(-1, dim))
        keys, values = (
            np.repeat(np.array(part), heads // k.shape[0], axis=1) for part in (self._keys, self._values)
        )
        scores = np.einsum("hd,phd->hp", q, keys) * dim**-0.5
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        attended = np.einsum("hp,phd->hd", scores / scores.sum(-1, keepdims=True), values)
        attended /= 1 + np.exp(-both[:, 1])
        x = x + w[f"{layer}self_attn.o_proj.weight"] @ attended.reshape(-1)
        h = self._norm(f"{layer}post_attention_layernorm.weight", x)
        gate, up = (w[f"{layer}mlp.{part}_proj.weight"] @ h for part in ("gate", "up"))
        x = x + w[f"{layer}mlp.down_proj.weight"] @ (gate / (1 + np.exp(-gate)) * up)
        normed = self._norm("mtp.norm.weight", x)
        return normed if self._normed_state else x, w["lm_head.weight"] @ normed

    def forget(self, rows: int) -> None:
        """Go back by so many rows."""
        del self._keys[len(self._keys) - rows :], self._values[len(self._values) - rows :]


def expected_drafts(
    engine: _core.Engine, head: Head, ids: list[int], first: int, n: int
) -> dict[int, list[int]]:
    """What the head drafts where the sequence has so many tokens, from `first` on."""
    found = dict[int, list[int]]()
    states = head.states(engine.logits(ids))
    for end in range(1, len(ids)):
        state, logits = head.row(states[end - 1], ids[end])
        if end + 1 < first:
            continue
        drafts = found[end + 1] = [int(logits.argmax())]
        while len(drafts) < n:
            state, logits = head.row(state, drafts[-1])
            drafts.append(int(logits.argmax()))
        head.forget(n - 1)
    return found


def step(engine: _core.Engine, slot: int, drafts: list[int], room: int) -> list[int]:
    assert engine.reserve(slot, 1, 1, max(room, len(drafts)))
    (chunk,), _ = engine.step([(slot, 1, True, 0, drafts)])
    return list(chunk.ids)


# -- what it computes ----------------------------------------------------------------------------------------


def check(engine: _core.Engine, alone: _core.Engine, **options: bool) -> None:
    """It drafts what the equations say, behind a prompt and behind each token, however many were drafts."""
    slot, ids = engine.open(), prompt_of(45)
    read(engine, slot, ids, 20)
    sequence, found, rng = list(ids), dict[int, list[int]](), np.random.default_rng(5)
    sequence += step(engine, slot, [], 0)
    while len(sequence) < 110:
        assert engine.reserve(slot, 1, 1, 4)
        (drafts,), _ = engine.draft([(slot, 4)])
        found[len(sequence)] = drafts
        sequence += step(engine, slot, drafts[: rng.integers(0, 5)], 0)
    expected = expected_drafts(alone, Head(**options), sequence, 46, 4)
    assert len(found) > 20
    assert found == {n: expected[n] for n in found}


def test_a_head_in_the_file_drafts_what_the_equations_say(opened: Open) -> None:
    check(opened(), opened())


@pytest.mark.parametrize("style", ["text", "whole"])
def test_a_head_in_a_folder_drafts_what_the_equations_say(style: str, folder: Path) -> None:
    path = qwen35.write_folder(ROW, folder / style, style=style, drafts=True)
    files = _core.SafetensorsFiles([str(path / "model.safetensors")])
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        spec = resolve_hf(qwen35.config_of(path), files.tensors, context=CONTEXT, drafts=True)
    left_out = "tensors of this qwen3_5 model are left out: 1 for images"
    assert [str(w.message) for w in warned] == ([left_out] if style == "whole" else [])
    check(*(_core.Engine(files, spec, **SETTINGS) for _ in range(2)))


def test_a_head_that_goes_on_from_its_own_stream_does(folder: Path) -> None:
    """GLM's and DeepSeek's heads do."""
    file = _core.GgufFile(str(qwen35.write_gguf(ROW, folder / "stream.gguf", drafts="in")))
    spec = resolve(file, context=CONTEXT, drafts=True)
    assert spec.config.drafter is not None
    drafter = dataclasses.replace(spec.config.drafter, normed_state=False)
    spec = dataclasses.replace(spec, config=dataclasses.replace(spec.config, drafter=drafter))
    check(*(_core.Engine(file, spec, **SETTINGS) for _ in range(2)), normed_state=False)


# -- other families ------------------------------------------------------------------------------------------


def with_head(family: families.Family, arrays: families.Arrays, places: dict[str, str]) -> families.Arrays:
    """The model with a head that is its last layer once more, and that reads embeddings alone, as they are.

    `places`: what names in that layer, and those of the head's own tensors, begin with.
    """
    dim, embedding = family.settings["hidden_size"], places["embedding"]
    out = dict(arrays)
    rows = np.asarray(out[embedding], np.float64)
    out[embedding] = (rows / np.sqrt((rows**2).mean(-1, keepdims=True))).astype(np.float32)
    for name, array in arrays.items():
        if name.startswith(places["last"]):
            out[name.replace(places["last"], places["layer"], 1)] = array
    unit = np.full(dim, places["unit"], np.float32)
    joined = np.concatenate([np.eye(dim), np.zeros((dim, dim))], axis=1).astype(np.float32)
    norm = np.random.RandomState(1).uniform(0.5, 1.5, dim).astype(np.float32)
    return out | {
        places["joined"]: joined,
        places["enorm"]: unit,
        places["hnorm"]: unit,
        places["norm"]: norm,
    }


def in_gguf(family: families.Family, path: Path) -> tuple[Any, ModelSpec]:
    n = family.settings["num_hidden_layers"]
    own = f"blk.{n}.nextn."
    places = {
        "embedding": "token_embd.weight", "last": f"blk.{n - 1}.", "layer": f"blk.{n}.", "unit": 1.0,
        "joined": f"{own}eh_proj.weight", "enorm": f"{own}enorm.weight", "hnorm": f"{own}hnorm.weight",
        "norm": f"{own}shared_head_norm.weight",
    }  # fmt: skip
    twins = {
        f"{own}embed_tokens.weight": np.ones((4, 4), np.float32)
    }  # of the embedding, as GLM's files have
    change = lambda arrays: with_head(family, arrays, places) | twins  # noqa: E731
    keys = {"block_count": n + 1, "nextn_predict_layers": 1}
    file = _core.GgufFile(str(families.write_gguf(family, path / "model.gguf", change=change, **keys)))
    return file, resolve(file, context=CONTEXT, drafts=True)


def in_folder(family: families.Family, path: Path) -> tuple[Any, ModelSpec]:
    n, glm = family.settings["num_hidden_layers"], not family.name.startswith("qwen")
    layer = f"model.layers.{n}."
    own = (
        {"layer": layer, "joined": f"{layer}eh_proj.weight", "enorm": f"{layer}enorm.weight",
         "hnorm": f"{layer}hnorm.weight", "norm": f"{layer}shared_head.norm.weight", "unit": 1.0}
        if glm else
        {"layer": "mtp.layers.0.", "joined": "mtp.fc.weight", "enorm": "mtp.pre_fc_norm_embedding.weight",
         "hnorm": "mtp.pre_fc_norm_hidden.weight", "norm": "mtp.norm.weight", "unit": 0.0}
    )  # fmt: skip
    names = list(families.weights(family))
    prefix = next(name for name in names if name.endswith("embed_tokens.weight")).removesuffix(
        "embed_tokens.weight"
    )
    places = own | {"embedding": f"{prefix}embed_tokens.weight", "last": f"{prefix}layers.{n - 1}."}
    twins = {f"{layer}embed_tokens.weight": np.ones((4, 4), np.float32)} if glm else {}
    change = lambda arrays: with_head(family, arrays, places) | twins  # noqa: E731
    families.write_folder(family, path, change, **({"num_nextn_predict_layers": 1} if glm else {}))
    files = _core.SafetensorsFiles([str(path / "model.safetensors")])
    config = json.loads((path / "config.json").read_text())
    return files, resolve_hf(config, files.tensors, context=CONTEXT, drafts=True)


@pytest.mark.parametrize("made", [in_gguf, in_folder])
@pytest.mark.parametrize(
    "name", ["qwen35moe", "qwen3next", "glm4moe", "deepseek_v3", "deepseek_v2_groups", "glm4_moe_lite"]
)
def test_heads_of_other_families_are_layers_of_their_kind(name: str, made: Any, tmp_path: Path) -> None:
    """A head that reads embeddings alone is a model of one layer, of the sequence without its first token."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        files, spec = made(families.ALL[name], tmp_path)
    drafter = spec.config.drafter
    assert drafter is not None
    settings = SETTINGS | {"context": min(CONTEXT, spec.config.context_length)}
    engine = _core.Engine(files, spec, **settings)
    config = dataclasses.replace(spec.config, blocks=drafter.blocks, drafter=None)
    tensors = {**spec.tensors, "output_norm": spec.tensors[f"{drafter.prefix}output_norm"]}
    alone = _core.Engine(files, ModelSpec(config, tensors), **settings)
    slot, sequence = engine.open(), np.random.default_rng(3).integers(3, config.vocab_size, 37).tolist()
    read(engine, slot, sequence)
    for _ in range(10):
        sequence += step(engine, slot, [], 3)
        assert engine.reserve(slot, 1, 1, 3)
        (drafts,), _ = engine.draft([(slot, 3)])
        assert drafts == alone.logits([*sequence[1:], *drafts[:-1]]).argmax(1)[-3:].tolist()


@pytest.mark.parametrize("device", ["plan:M4 Max", "plan:H100"])
@pytest.mark.parametrize("normed_state", [True, False])
def test_gpus_have_kernels_for_all_that_drafts(device: str, normed_state: bool, folder: Path) -> None:
    file = _core.GgufFile(str(qwen35.write_gguf(ROW, folder / "planned.gguf", drafts="in")))
    spec = resolve(file, context=CONTEXT, drafts=True)
    assert spec.config.drafter is not None
    drafter = dataclasses.replace(spec.config.drafter, normed_state=normed_state)
    spec = dataclasses.replace(spec, config=dataclasses.replace(spec.config, drafter=drafter))
    engine = _core.Engine(file, spec, device=device, context=CONTEXT)
    assert "draft_state" in [command["label"] for command in engine.plan("decode", 1, 5)]


def test_without_being_asked_for_the_head_is_left_out(folder: Path) -> None:
    file = _core.GgufFile(str(qwen35.write_gguf(ROW, folder / "left.gguf", drafts="in")))
    with pytest.warns(RuntimeWarning, match="15 for multi-token prediction"):
        resolve(file, context=CONTEXT, drafts=None)
    spec = resolve(file, context=CONTEXT)
    assert spec.config.drafter is None
    engine = _core.Engine(file, spec, **SETTINGS)
    with pytest.raises(ValueError, match="this model has no head that drafts"):
        engine.draft([])


# -- no output depends on it ---------------------------------------------------------------------------------


def test_what_a_model_says_is_the_same_with_its_head(opened: Open, folder: Path) -> None:
    engine, golden = opened(), tiny.golden(ROW.name)
    plain = open_gguf(qwen35.write_gguf(ROW, folder / "plain.gguf"))
    assert np.array_equal(engine.logits(golden.prompt), plain.logits(golden.prompt))
    slot, other = engine.open(), plain.open()
    ids = prompt_of(40)
    read(engine, slot, ids)
    read(plain, other, ids)
    assert decode(engine, slot, 50) == decode(plain, other, 50)


def check_drafts_of_many(opened: Callable[..., _core.Engine], sequences: list[list[int]]) -> None:
    """Drafts of sequences that are in one step are those of each alone."""
    wanted = (2, 5, 1, 4)

    def run(engine: _core.Engine, which: list[int]) -> dict[int, list[list[int]]]:
        slots = {i: engine.open() for i in which}
        for i in which:
            read(engine, slots[i], sequences[i])
        found: dict[int, list[list[int]]] = {i: [] for i in which}
        drafts: dict[int, list[int]] = {i: [] for i in which}
        for _ in range(12):
            for i in which:
                assert engine.reserve(slots[i], 1, 1, wanted[i])
            engine.step([(slots[i], 1, True, 0, drafts[i]) for i in which])
            for i in which:
                assert engine.reserve(slots[i], 1, 1, wanted[i])
            made, _ = engine.draft([(slots[i], wanted[i]) for i in which])
            for i, ids in zip(which, made, strict=True):
                drafts[i] = ids
                found[i].append(ids)
        return found

    together = run(opened(parallel=4), [0, 1, 2, 3])
    assert all(len(drafts) == wanted[i] for i, each in together.items() for drafts in each)
    for i in range(4):
        assert run(opened(), [i]) == {i: together[i]}


def test_drafts_of_many_sequences_are_those_of_each_alone(opened: Open) -> None:
    check_drafts_of_many(opened, [prompt_of(n, seed) for seed, n in enumerate((33, 64, 20, 90))])


class HeadMixes(Mixes):
    """Mixes whose drafts are those of the model's own head, besides those by lookup."""

    def proposer(self, engine: _core.Engine) -> HeadProposer:
        return HeadProposer(engine, self._resolve(self._file, context=CONTEXT).config)


def test_a_sequence_is_what_it_is_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = qwen35.write_gguf(ROW, folder / "mixes.gguf", drafts="in")
    mixes = HeadMixes(path, folder / "pages", functools.partial(resolve, drafts=True))
    mixes.run_until(MODEL_DRAFTED, range(40), monkeypatch, least=6)


@pytest.mark.parametrize("settings", [{}, {"temperature": 1.0, "top_k": 40, "repeat_penalty": 1.2}])
def test_drafts_of_common_tokens_are_those_of_all_where_these_are_common(
    settings: dict[str, Any], folder: Path
) -> None:
    row = dataclasses.replace(ROW, vocab_size=1 << 16, num_hidden_layers=4)
    path = folder / "large.gguf"
    engine = open_gguf(path if path.exists() else qwen35.write_gguf(row, path, drafts="in"))
    common = engine.common_tokens
    assert common == 1 << 15
    slot, ids = engine.open(), np.random.default_rng(1).integers(3, row.vocab_size, 40).astype(np.uint32)
    bias = [(row.vocab_size - 1, 1.0), (5, 0.5)]
    at = engine.begin(ids, slot=slot, seed=3, logit_bias=bias if settings else None, **settings)
    while at < 39:
        assert engine.reserve(slot, 39 - at)
        (chunk,), _ = engine.step([(slot, 39 - at, False, 0, [])])
        at = chunk.length
    both = []
    for _ in range(30):
        step(engine, slot, [], 2)
        assert engine.reserve(slot, 1, 1, 2)
        ((one, *_),), _ = engine.draft([(slot, 2)])
        ((other, *_),), _ = engine.draft([(slot, 2)], common=True)
        both.append((one, other))
    assert all(other < common for _, other in both)
    assert 3 < sum(one < common for one, _ in both) < 27
    assert settings or all(one == other for one, other in both if one < common)


def test_a_head_drafts_of_common_tokens_where_a_sequence_has_few_others() -> None:
    config: Any = SimpleNamespace(dim=64, vocab_size=1 << 17, n_layers=8, drafter=None)
    head = HeadProposer(SimpleNamespace(common_tokens=1 << 15), config)  # type: ignore[arg-type]

    def seconds(*tokens: int) -> float:
        head.choose([SimpleNamespace(tokens=list(tokens))], 1.0)  # type: ignore[list-item]
        return head.seconds(1, 1.0)

    assert seconds() == seconds(5, 7, 9, 1000) < seconds(1 << 16, 1 << 15) / 2


def test_there_are_no_drafts_where_the_state_is_gone(opened: Open) -> None:
    engine = opened()
    slot, ids = engine.open(), prompt_of(40)
    read(engine, slot, ids)
    assert engine.draft([(slot, 3)]) == ([[]], None)  # no token was sampled
    step(engine, slot, [], 3)
    assert engine.reserve(slot, 1, 1, 3)
    assert len(engine.draft([(slot, 3)])[0][0]) == 3
    engine.logits(prompt_of(5))
    assert engine.draft([(slot, 3)]) == ([[]], None)  # another sequence ran
    step(engine, slot, [], 3)
    engine.extend(slot, [5])
    assert engine.draft([(slot, 3)]) == ([[]], None)  # more than one token is to be run


def test_drafts_end_where_the_room_does(opened: Open) -> None:
    engine = opened(context=64)
    slot = engine.open()
    read(engine, slot, prompt_of(60))
    step(engine, slot, [], 3)
    assert len(engine.draft([(slot, 8)])[0][0]) == 3


# -- as users load it ----------------------------------------------------------------------------------------


OPTIONS: dict[str, Any] = {"max_tokens": 40, "temperature": 0.8, "top_k": 30, "seed": 5}


def ids_of(model: akunu.Model, **options: Any) -> list[list[int]]:
    prompts = [prompt_of(n, seed) for seed, n in enumerate((20, 33, 9))]
    return [completion.ids for completion in model.generate_batch(prompts, **OPTIONS | options)]


def load(path: Path, **options: Any) -> akunu.Model:
    return akunu.load(path, context=256, kv_dtype="f32", threads=2, progress=False, **options)


@pytest.fixture(scope="module")
def plain(folder: Path) -> Path:
    return qwen35.write_gguf(ROW, folder / "plain.gguf")


@pytest.mark.parametrize("draft", [None, "mtp"])
def test_a_model_drafts_by_its_head(
    draft: str | None, plain: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with load(plain) as model:
        expected = ids_of(model)
    decide_drafts(monkeypatch, everything)
    with load(qwen35.write_gguf(ROW, folder / "loaded.gguf", drafts="in"), draft=draft) as model:
        assert ids_of(model) == expected
        assert model.stats.model_drafted_tokens > 20
        assert ids_of(model, speculative=False) == expected


def test_a_head_of_a_file_of_its_own_drafts(
    plain: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with load(plain) as model:
        expected = ids_of(model)
    decide_drafts(monkeypatch, everything)
    head = qwen35.write_gguf(ROW, folder / "mtp-alone.gguf", drafts="alone")
    with load(plain, draft=head) as model:
        assert ids_of(model) == expected
        assert model.stats.model_drafted_tokens > 20
    beside = folder / "beside" / plain.name
    beside.parent.mkdir()
    os.link(plain, beside)
    os.link(head, beside.with_name(f"mtp-{plain.name}"))
    for draft, drafts in ((None, True), ("mtp", True), (False, False)):
        with load(beside, draft=draft) as model:
            assert ids_of(model) == expected
            assert (model.stats.model_drafted_tokens > 20) == drafts
    joined, other = GgufModel(plain), GgufModel(head)
    assert joined.join_head(other) and not other.join_head(joined)
    check(*(_core.Engine(joined.files, joined.spec(CONTEXT, drafts=True), **SETTINGS) for _ in range(2)))


def test_a_head_is_not_loaded_where_it_is_not_wanted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decide_drafts(monkeypatch, everything)
    path = qwen35.write_gguf(ROW, folder / "unwanted.gguf", drafts="in")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = load(path, draft=False)
    with model:
        ids_of(model)
        assert model.stats.model_drafted_tokens == 0


def test_a_head_that_is_not_there_is_named(plain: Path) -> None:
    with pytest.raises(akunu.InvalidArgumentError, match=r"^draft: plain.gguf has no head that drafts"):
        load(plain, draft="mtp")
