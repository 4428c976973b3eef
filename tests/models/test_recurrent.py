"""Models with short convolutions and Mamba-2: a sequence's state does not depend on how it came about.

Steps, neighbours, drafts that were refused and checkpoints change no bit.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from akunu import _core
from akunu.base.errors import AkunuError, ModelFileError
from akunu.files.describe.blocks import Mamba2, ShortConvolution
from akunu.files.describe.gguf_config import resolve
from akunu.files.describe.hf_config import resolve_hf

from . import families
from .source import Tensor
from .test_families import DEVICE
from .test_qwen35 import (
    prompt_of,
    test_a_sequence_from_a_checkpoint_is_the_one_from_nothing,
    test_drafts_that_are_refused_leave_the_state_as_it_was,
    test_neighbours_change_nothing,
)

__all__ = [
    "test_a_sequence_from_a_checkpoint_is_the_one_from_nothing",
    "test_drafts_that_are_refused_leave_the_state_as_it_was",
    "test_neighbours_change_nothing",
]

NAMES = ["lfm2", "granitehybrid_moe", "nemotron_h_latent"]
CONTEXT = 700

Open = Callable[..., _core.Engine]


@pytest.fixture(scope="module", params=NAMES)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Open:
    """Opens engines of one of the models."""
    family = families.ALL[request.param]
    path = families.write_gguf(
        family, tmp_path_factory.mktemp("recurrent") / "model.gguf", "Q8_0", context_length=2048
    )

    def open_engine(**options: Any) -> _core.Engine:
        file = _core.GgufFile(str(path))
        settings = {"device": DEVICE, "context": CONTEXT, "kv_dtype": "f32", "threads": 2, **options}
        return _core.Engine(file, resolve(file, context=CONTEXT), **settings)

    return open_engine


@pytest.mark.parametrize("rows", [1, 7, 33])
def test_chunks_change_no_bit(rows: int, opened: Open) -> None:
    ids = prompt_of(110)
    assert np.array_equal(opened().logits(ids), opened(chunk=rows).logits(ids))


@pytest.mark.parametrize(
    ("name", "key", "value", "message"),
    [
        ("lfm2", "shortconv.l_cache", 1, "shortconv.l_cache: found 1, expected an integer from 2 to 64"),
        ("granitehybrid", "ssm.inner_size", 191, "found 191, expected a multiple of the 6 heads"),
        ("nemotron_h", "ssm.time_step_rank", 7, "found 7, expected a multiple of the 2 groups"),
        ("nemotron_h", "feed_forward_length", [0, 160, 0, 0], "blk.3.ssm_in.weight is missing"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(
    name: str, key: str, value: object, message: str, tmp_path: Path
) -> None:
    path = families.write_gguf(families.ALL[name], tmp_path / "model.gguf", **{key: value})
    with pytest.raises(ModelFileError, match=message):
        resolve(_core.GgufFile(str(path)))


def test_the_mixers_are_what_the_files_say(tmp_path: Path) -> None:
    def config(name: str) -> Any:
        path = families.write_gguf(families.ALL[name], tmp_path / f"{name}.gguf")
        return resolve(_core.GgufFile(str(path))).config

    assert set(config("lfm2").mixers(ShortConvolution)) == {ShortConvolution(3)}
    assert set(config("granitehybrid_moe").mixers(Mamba2)) == {Mamba2(2, 6, 20, 32, 4)}
    kinds = [block.mixer.kind for block in config("nemotron_h_moe").blocks]
    assert kinds == ["mamba2", "experts", "attention", "experts"]


def test_the_last_norm_of_lfm2_has_two_names(tmp_path: Path) -> None:
    def renamed(arrays: families.Arrays) -> families.Arrays:
        return {name.replace("token_embd_norm", "output_norm"): array for name, array in arrays.items()}

    path = families.write_gguf(families.ALL["lfm2"], tmp_path / "model.gguf", change=renamed)
    assert "output_norm" in resolve(_core.GgufFile(str(path))).tensors


def hf_config(name: str, drop: tuple[str, ...] = (), **settings: object) -> dict[str, object]:
    """What a folder's configuration describes, without some of its keys and with others."""
    config, shapes = families.saved(families.ALL[name])
    tensors = [Tensor(name, "f32", tuple(shape), 0) for name, shape in shapes.items()]
    given = {key: value for key, value in config.items() if key not in drop} | settings
    return resolve_hf(given, tensors).config.numbers()


@pytest.mark.parametrize(
    ("name", "drop", "settings"),
    [
        ("lfm2", ("layer_types", "tie_word_embeddings"), {"full_attn_idxs": [1, 3], "tie_embedding": True}),
        (
            "lfm2",
            ("intermediate_size", "block_auto_adjust_ff_dim"),
            {"block_ff_dim": 225, "block_multiple_of": 32, "block_ffn_dim_multiplier": 1.0},
        ),
        ("lfm2", (), {"rms_norm_eps": 0.05}),  # another class's, beside its own
        ("nemotron_h", (), {"rms_norm_eps": 0.05}),
        ("granitehybrid", ("mamba_d_head",), {"layer_types": ["mamba", "attention", "mamba"]}),
        ("granitehybrid_moe", (), {"mamba_d_head": "auto", "position_embedding_type": "nope"}),
        ("nemotron_h", ("layers_block_type",), {"hybrid_override_pattern": "M-*-"}),
        (
            "nemotron_h_moe",
            ("layers_block_type",),
            {"layers_block_type": ["mamba", "moe", "attention", "moe"]},
        ),
    ],
)
def test_older_configurations_say_the_same(
    name: str, drop: tuple[str, ...], settings: dict[str, object]
) -> None:
    found, expected = hf_config(name, drop, **settings), hf_config(name)
    assert {k: v for k, v in found.items() if "inv_freq" not in k} == {
        k: v for k, v in expected.items() if "inv_freq" not in k
    }


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("lfm2", {"layer_types": ["conv", "window"] * 2}, "layer_types: found .*, expected a list of"),
        ("nemotron_h", {"layers_block_type": None, "hybrid_override_pattern": "MX*-"}, "expected letters of"),
        ("granitehybrid", {"mamba_d_head": "auto", "mamba_n_heads": 7}, "found 7, expected a divisor of 192"),
    ],
)
def test_configurations_that_are_not_understood_are_refused(
    name: str, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(AkunuError, match=message):
        hf_config(name, **settings)
