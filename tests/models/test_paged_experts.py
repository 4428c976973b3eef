"""Experts that stay in their file: the same bits as of the whole model, within a limit of memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import akunu
from akunu import _core
from akunu.base.errors import DeviceError, UnsupportedError
from akunu.cli.console import stats_text
from akunu.files.describe.gguf_config import resolve

from . import families, folders, tiny
from .test_engine import greedy
from .test_experts import stacked, written

Open = Callable[..., _core.Engine]
IDS = tiny.golden("qwen3moe_256").prompt


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("paged")


def opened(path: Path, **options: object) -> _core.Engine:
    file = _core.GgufFile(str(path))
    settings = {"context": tiny.CONTEXT, "threads": 2, "parallel": 1, "kv_dtype": "f32", **options}
    return _core.Engine(file, resolve(file, context=tiny.CONTEXT), **settings)


def taken(engine: _core.Engine) -> int:
    return sum(engine.memory[purpose] for purpose in ("weights", "kv_cache", "scratch"))


def limits(path: Path) -> tuple[int, int]:
    """What the model takes without experts, and bytes of these."""
    engine = opened(path, memory=1 << 40)
    experts = engine.paged_experts
    return taken(engine) - experts["held_bytes"], experts["bytes"]


@pytest.mark.table
@pytest.mark.parametrize("share", [0.0, 0.4, 0.8, 1.0])
@pytest.mark.parametrize("dtype", ["F32", "Q8_0", "Q4_K", "IQ4_NL", "MXFP4", "Q1_0", "IQ2_S"])
def test_bits_are_those_of_the_whole_model(dtype: str, share: float, folder: Path) -> None:
    path = written(folder, "qwen3moe_256", dtype)
    rest, experts = limits(path)
    whole, paged = opened(path), opened(path, memory=int(rest + share * experts) + 4096)
    assert taken(paged) <= int(rest + share * experts) + 4096
    assert np.array_equal(paged.logits(IDS), whole.logits(IDS))
    ids = greedy(whole, IDS, 40)
    assert greedy(paged, IDS, 40) == ids
    use = paged.paged_experts
    assert use["bytes"] == experts
    assert use["held_bytes"] == int(share * 6 + 1e-9) * experts // 6
    assert use["misses"] > 0
    assert use["seconds"] > 0
    assert (use["hits"] > 0) is (share > 0)
    if share == 1:  # each was read once
        assert use["misses"] <= 2 * 6


@pytest.mark.parametrize("name", ["gpt_oss", "mixtral", "qwen2moe"])
def test_chunks_and_threads_change_no_bit(name: str, folder: Path) -> None:
    path, ids = written(folder, name), tiny.golden(name).prompt
    rest, experts = limits(path)
    whole = opened(path).logits(ids)
    for options in ({"chunk": 1}, {"chunk": 7}, {"threads": 1}, {"threads": 3}):
        paged = opened(path, memory=rest + experts // 3, **options)
        assert 0 < paged.paged_experts["held_bytes"] < experts
        assert np.array_equal(paged.logits(ids), whole), options


def test_those_used_last_are_held(folder: Path) -> None:
    """A token that is run again finds its experts, though there is no room for those of all."""
    path = written(folder, "qwen3moe_256", "Q8_0")
    rest, experts = limits(path)
    paged = opened(path, memory=rest + experts // 2 + 4096)
    for _ in range(2):
        before = paged.paged_experts
        paged.logits([7])
        after = paged.paged_experts
    assert after["hits"] - before["hits"] == 2 * 2  # layers, and experts of a row
    assert after["misses"] == before["misses"]


def test_a_limit_that_the_rest_exceeds_is_an_error(folder: Path) -> None:
    path = written(folder, "qwen3moe_256", "Q8_0")
    rest, _ = limits(path)
    with pytest.raises(DeviceError, match=r"without its experts, and the limit is .* MB: give more memory"):
        opened(path, memory=rest // 3)
    dense = tiny.write("llama_256", "Q8_0", folder / "dense.gguf").path
    with pytest.raises(DeviceError, match=r"the model takes .* MB of memory, and the limit is"):
        opened(dense, memory=1 << 20)


def test_experts_of_folders_stay_where_they_lie_in_one_tensor(tmp_path: Path) -> None:
    from .test_folder import logits as folder_logits

    name, ids = "mixtral", tiny.golden("mixtral").prompt
    apart = folders.write(name, tmp_path / "apart")
    joined = folders.write(name, tmp_path / "joined", arrays=lambda weights: stacked(weights, "mlx"))
    expected = folder_logits(apart, name)

    def load(path: Path, memory: int) -> _core.Engine:
        from akunu.files.folder import ModelFolder

        model = ModelFolder(path)
        return _core.Engine(
            model.files, model.spec(tiny.CONTEXT), context=tiny.CONTEXT, kv_dtype="f32", memory=memory
        )

    engine = load(joined, 1 << 30)
    assert engine.paged_experts["bytes"] > 0
    assert np.array_equal(engine.logits(ids), expected)
    engine = load(apart, 1 << 30)  # where they fit, it does not matter
    assert engine.paged_experts["bytes"] == 0
    assert np.array_equal(engine.logits(ids), expected)
    with pytest.raises(UnsupportedError, match="each expert by itself; akunu convert makes a GGUF file"):
        load(apart, 3 << 20)


def test_a_model_says_what_it_waited_for(tmp_path: Path) -> None:
    path = families.write_gguf(families.ALL["qwen35moe"], tmp_path / "x.gguf", "F32")
    with akunu.load(path, device="cpu", parallel=1, context=128, progress=False) as model:
        plain = model.generate([5, 6, 7], max_tokens=20, seed=1)
        whole = model.memory
    assert plain.stats.expert_misses == 0
    limit = whole.weights + whole.kv_cache + whole.scratch
    with akunu.load(path, device="cpu", parallel=1, context=128, memory=limit, progress=False) as model:
        paged = model.generate([5, 6, 7], max_tokens=20, seed=1)
    assert paged.ids == plain.ids
    stats = paged.stats
    assert stats.expert_hits > 0
    assert stats.expert_misses > 0
    assert stats.expert_bytes > 0
    assert f"experts {100 * stats.expert_hits / (stats.expert_hits + stats.expert_misses):.0f} % in" in (
        stats_text(stats)
    )
    assert "experts" not in stats_text(plain.stats)
