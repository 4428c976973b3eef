"""Gemma 4's assistant: what it drafts, whatever the files, and that no output depends on it.

The reference is Transformers' `Gemma4AssistantForCausalLM`, whose drafts `tests/models/assistants.py` made.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import akunu
from akunu import _core
from akunu.api.scheduling.head_proposer import HeadProposer, share_of_head
from akunu.base.errors import UnsupportedError
from akunu.files.describe.assistant import ASSISTANT_TENSORS, with_gguf_assistant, with_hf_assistant
from akunu.files.describe.config import ModelSpec
from akunu.files.describe.gguf_config import resolve
from akunu.files.describe.hf_config import resolve_hf
from api.fakes import decide_drafts
from api.test_drafts import everything

from . import assistants, families, tiny
from .test_draft_head import check_drafts_of_many, step
from .test_hybrid import read
from .test_same_output import CONTEXT as MIXED_CONTEXT
from .test_same_output import MODEL_DRAFTED, Mixes

DEVICE = os.environ.get("AKUNU_TEST_DEVICE", "cpu")  # tests/metal sets another
CONTEXT = 256
SETTINGS: dict[str, Any] = {"device": DEVICE, "context": CONTEXT, "kv_dtype": "f32", "threads": 2}
TIE = 0.01
"""By how much a draft is likeliest at least, where it is compared."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("assistant")


def gguf_files(row: assistants.Assistant, folder: Path, dtype: str = "F32") -> tuple[Any, ModelSpec]:
    stem = f"{row.name}-{dtype}"
    own, beside = folder / f"{stem}.gguf", folder / f"mtp-{stem}.gguf"
    if not own.exists():
        families.write_gguf(row.family, own, dtype)
        assistants.write_gguf(row, beside, dtype)
    model, small = _core.GgufFile(str(own)), _core.GgufFile(str(beside))
    spec = with_gguf_assistant(resolve(model, context=CONTEXT), small.metadata, small.tensors)
    return _core.JoinedFiles(model, small, added=ASSISTANT_TENSORS), spec


def folder_files(row: assistants.Assistant, folder: Path) -> tuple[Any, ModelSpec]:
    paths = [folder / row.target, folder / row.name]
    families.write_folder(row.family, paths[0])
    assistants.write_folder(row, paths[1])
    configs = [json.loads((path / "config.json").read_text()) for path in paths]
    model, small = (_core.SafetensorsFiles([str(path / "model.safetensors")]) for path in paths)
    spec = resolve_hf(configs[0], model.tensors, context=CONTEXT)
    spec = with_hf_assistant(spec, configs[1], small.tensors)
    return _core.JoinedFiles(model, small, added=ASSISTANT_TENSORS), spec


Made = Callable[[assistants.Assistant, Path], tuple[Any, ModelSpec]]


def opened(row: assistants.Assistant, folder: Path, **options: Any) -> _core.Engine:
    files, spec = gguf_files(row, folder)
    return _core.Engine(files, spec, **SETTINGS | options)


# -- what it computes ----------------------------------------------------------------------------------------


#: A GGUF file has no clusters.
MADE = [
    (name, made)
    for name, row in assistants.ALL.items()
    for made in (gguf_files, folder_files)
    if made is folder_files or not row.clusters[0]
]


@pytest.mark.parametrize(("name", "made"), MADE)
def test_it_drafts_what_transformers_does(name: str, made: Made, folder: Path) -> None:
    """Behind each token of a sequence that is longer than the window, however many of them were drafts."""
    row = assistants.ALL[name]
    golden, expected = tiny.golden(row.target), np.load(assistants.GOLDEN / f"{name}.npz")
    files, spec = made(row, folder)
    engine = _core.Engine(files, spec, **SETTINGS)
    slot, said, compared = engine.open(), list[int](), 0
    read(engine, slot, golden.prompt)
    rng = np.random.default_rng(3)
    while len(said) < len(golden.ids):
        right = golden.ids[len(said) + 1 :][: rng.integers(0, 3)]
        said += step(engine, slot, [golden.ids[len(said)], *right][: len(right)], assistants.DRAFTS)
        assert engine.reserve(slot, 1, 1, assistants.DRAFTS)
        (found,), _ = engine.draft([(slot, assistants.DRAFTS)])
        if len(said) > len(golden.ids):
            break
        drafts, gaps = (expected[key][len(said) - 1] for key in ("drafts", "gaps"))
        clear = int(np.argmin([*(gaps > TIE), False]))
        assert found[:clear] == drafts[:clear].tolist()
        compared += clear
    assert said[: len(golden.ids)] == golden.ids
    assert compared > 50


def test_a_draft_of_clusters_looks_at_their_tokens_alone(folder: Path) -> None:
    """Where all clusters are used, and in a GGUF file, it is what all tokens' logits say."""
    row = assistants.ALL["gemma4_e_ordered"]
    all_used = dataclasses.replace(row, name="gemma4_e_all", clusters=(row.clusters[0], row.clusters[0]))
    ids = tiny.golden(row.target).prompt

    def drafts(files: Any, spec: ModelSpec) -> list[list[int]]:
        engine, found = _core.Engine(files, spec, **SETTINGS), list[list[int]]()
        slot = engine.open()
        read(engine, slot, ids)
        for _ in range(8):
            step(engine, slot, [], 3)
            assert engine.reserve(slot, 1, 1, 3)
            found += engine.draft([(slot, 3)])[0]
        return found

    whole = drafts(*gguf_files(row, folder))
    assert drafts(*folder_files(all_used, folder)) == whole != drafts(*folder_files(row, folder))


def test_drafts_of_clusters_of_many_sequences_are_those_of_each_alone(folder: Path) -> None:
    row = assistants.ALL["gemma4_e_ordered"]
    files, spec = folder_files(row, folder)
    rng = np.random.default_rng(1)
    prompts = [rng.integers(3, row.family.vocab_size, n).tolist() for n in (33, 64, 5, 90)]
    check_drafts_of_many(lambda **options: _core.Engine(files, spec, **SETTINGS | options), prompts)


@pytest.mark.parametrize(
    ("settings", "order", "said"),
    [
        (
            {"num_centroids": 20},
            None,
            "found 20, of which 6 are used, expected a divisor of 299",
        ),
        ({"centroid_intermediate_top_k": 24}, None, "of which 24 are used"),
        ({}, np.zeros(299, np.int64), "token_order' has 0 at 1, expected each number below 299 once"),
        ({}, np.full(299, -1), "expected each number below 299 once"),
        ({}, np.arange(298), "token_ordering: found shape"),
        ({}, np.arange(299, dtype=np.uint8), "token_ordering: found type u8, expected i64 or i32"),
    ],
)
def test_clusters_that_are_none_are_refused(
    settings: dict[str, int], order: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = assistants.ALL["gemma4_e_ordered"]
    path = families.write_folder(row.family, tmp_path / "gemma")
    if order is not None:
        monkeypatch.setattr(assistants, "order", lambda _: order)
    small = assistants.write_folder(row, tmp_path / "small", **settings)
    with pytest.raises(akunu.AkunuError, match=said):
        load(path, draft=small)


def test_of_more_clusters_than_kernels_know_all_tokens_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("akunu.files.describe.assistant._MOST_CLUSTERS", (16, 32))
    with pytest.warns(RuntimeWarning, match="num_centroids: found 23, .* so drafts look at all tokens"):
        _, spec = folder_files(assistants.ALL["gemma4_e_ordered"], tmp_path)
    assert spec.config.drafter is not None
    assert spec.config.drafter.clusters == 0


@pytest.mark.parametrize("made", [gguf_files, folder_files])
@pytest.mark.parametrize("device", ["plan:M4 Max", "plan:H100"])
def test_gpus_have_kernels_for_all_that_drafts(device: str, made: Made, folder: Path) -> None:
    files, spec = made(assistants.ALL["gemma4_e_ordered"], folder)
    engine = _core.Engine(files, spec, device=device, context=CONTEXT)
    labels = [command["label"] for command in engine.plan("decode", 1, 5)]
    assert "draft_state" not in labels  # a step keeps nothing for it


# -- no output depends on it ---------------------------------------------------------------------------------


class AssistantMixes(Mixes):
    """Mixes whose drafts are those of an assistant, besides those by lookup."""

    def __init__(self, files: Any, spec: ModelSpec, folder: Path) -> None:
        self._spec = spec
        self._joined = files
        super().__init__(folder / "gemma4_e_assistant-F32.gguf", folder / "pages")

    def engine(self, **options: Any) -> _core.Engine:
        self.vocab = self._spec.config.vocab_size
        return _core.Engine(self._joined, self._spec, device=DEVICE, context=MIXED_CONTEXT, **options)

    def proposer(self, engine: _core.Engine) -> HeadProposer:
        return HeadProposer(engine, self._spec.config)


def test_a_sequence_is_what_it_is_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, spec = gguf_files(assistants.ALL["gemma4_e_assistant"], folder)
    mixes = AssistantMixes(files, spec, folder)
    mixes.run_until(MODEL_DRAFTED, range(40), monkeypatch, least=4)


def test_drafts_of_many_sequences_are_those_of_each_alone(folder: Path) -> None:
    row = assistants.ALL["gemma4_assistant"]
    rng = np.random.default_rng(1)
    sequences = [rng.integers(3, row.family.vocab_size, n).tolist() for n in (33, 64, 5, 90)]
    check_drafts_of_many(functools.partial(opened, row, folder), sequences)


def test_a_cached_prompt_is_drafted_for(folder: Path) -> None:
    """An assistant keeps nothing of a sequence, so one whose beginning another has read is drafted alike."""
    row = assistants.ALL["gemma4_e_assistant"]
    ids = np.random.default_rng(7).integers(3, row.family.vocab_size, 90).tolist()

    def drafts(engine: _core.Engine) -> tuple[int, list[list[int]]]:
        slot = engine.open()
        cached, found = read(engine, slot, ids), list[list[int]]()
        for _ in range(6):
            step(engine, slot, [], 3)
            assert engine.reserve(slot, 1, 1, 3)
            found += engine.draft([(slot, 3)])[0]
        return cached, found

    engine = opened(row, folder, parallel=2)
    (none, first), (cached, second) = drafts(engine), drafts(engine)
    assert none == 0 and cached > 0
    assert first == second


# -- as users load it ----------------------------------------------------------------------------------------


def ids_of(model: akunu.Model, **options: Any) -> list[list[int]]:
    prompts = [np.random.default_rng(n).integers(3, 290, n).tolist() for n in (20, 33, 9)]
    settings = {"max_tokens": 40, "temperature": 0.8, "top_k": 30, "seed": 5} | options
    return [completion.ids for completion in model.generate_batch(prompts, **settings)]


def load(path: Path, **options: Any) -> akunu.Model:
    return akunu.load(path, context=128, kv_dtype="f32", threads=2, progress=False, **options)


@pytest.mark.parametrize("kind", ["gguf", "folder"])
def test_a_model_drafts_by_its_assistant(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named, or found beside the model."""
    row = assistants.ALL["gemma4_e_assistant"]
    if kind == "gguf":
        path = families.write_gguf(row.family, tmp_path / "gemma.gguf")
        small = assistants.write_gguf(row, tmp_path / "elsewhere.gguf")
        beside = tmp_path / "mtp-gemma.gguf"
    else:
        path = families.write_folder(row.family, tmp_path / "gemma")
        small = assistants.write_folder(row, tmp_path / "elsewhere")
        beside = tmp_path / "gemma-assistant"
    with load(path) as model:
        expected = ids_of(model)
        assert model.stats.model_drafted_tokens == 0
    decide_drafts(monkeypatch, everything)
    with load(path, draft=small) as model:
        assert ids_of(model) == expected
        assert model.stats.model_drafted_tokens > 20
        assert ids_of(model, speculative=False) == expected
    small.rename(beside)
    for draft, drafts in ((None, True), ("mtp", True), (False, False)):
        with load(path, draft=draft) as model:
            assert ids_of(model) == expected
            assert (model.stats.model_drafted_tokens > 20) == drafts


def test_the_assistant_of_another_model_is_refused(tmp_path: Path) -> None:
    path = families.write_gguf(families.ALL["gemma4_e"], tmp_path / "gemma.gguf")
    row = assistants.ALL["gemma4_e_assistant"]
    for key, value, said in (
        ("embedding_length_out", 128, r"embedding_length_out: found 128, but the model .* has 96"),
        ("attention.head_count", None, "attention.head_count"),
    ):
        small = assistants.write_gguf(row, tmp_path / f"{key}.gguf", **{key: value})
        with pytest.raises((UnsupportedError, akunu.ModelFileError), match=said):
            load(path, draft=small)
    plain = families.write_gguf(families.ALL["glm4moe"], tmp_path / "other.gguf")
    with pytest.raises(UnsupportedError, match="window"):
        load(plain, draft=assistants.write_gguf(row, tmp_path / "small.gguf"))


def test_an_assistant_alone_is_no_model(tmp_path: Path) -> None:
    path = assistants.write_gguf(assistants.ALL["gemma4_assistant"], tmp_path / "alone.gguf")
    with pytest.raises(UnsupportedError, match=r"drafts for Gemma 4.*draft="):
        load(path)


def test_it_is_expected_to_cost_what_its_layers_do() -> None:
    def share(draft: object) -> float:
        config: Any = SimpleNamespace(dim=1536, vocab_size=1 << 18, n_layers=35, drafter=draft)
        return share_of_head(config)

    assistant = SimpleNamespace(dim=256, blocks=[None] * 8, clusters=0)
    clusters = SimpleNamespace(dim=256, blocks=[None] * 8, clusters=2048, clusters_used=32)
    assert share(assistant) < share(None) / 4
    assert share(clusters) < share(assistant) / 8
