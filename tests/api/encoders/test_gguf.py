"""What the keys of a GGUF file say of a model that makes vectors, as llama.cpp reads them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import akunu
from akunu._core import GgufFile
from akunu.base.errors import AkunuError, ModelFileError, UnsupportedError
from akunu.files.describe.config import ModelConfig
from akunu.files.describe.rotary import inverse_frequencies, yarn, yarn_scale
from akunu.files.describe.tensor_map import TensorInfo
from akunu.files.model_files import gguf_spec
from models.source import Tensor

from . import gguf_file, tiny


class _Changed:
    """A file whose keys and tensors can be changed."""

    def __init__(self, name: str, folder: Path, **changes: object) -> None:
        self._file = GgufFile(str(gguf_file.write(tiny.golden(name), folder / f"{name}.gguf")))
        self.arch = str(self._file.metadata["general.architecture"])
        self.metadata: Mapping[str, object] = {
            **self._file.metadata,
            **{f"{self.arch}.{key.replace('__', '.')}": value for key, value in changes.items()},
        }
        self.tensors: list[TensorInfo] = list(self._file.tensors)

    def tensor_bytes(self, name: str) -> npt.NDArray[np.uint8]:
        return self._file.tensor_bytes(name)

    @property
    def config(self) -> ModelConfig:
        return gguf_spec(self).config


@pytest.mark.parametrize("name", ["bert", "qwen3", "gemma_plain"])
@pytest.mark.parametrize("value", [[1, 2], ["mean"], "mean", True, 1.0, 7, -2])
def test_a_pooling_type_that_is_none_is_named(name: str, value: object, tmp_path: Path) -> None:
    with pytest.raises(AkunuError, match=r"\.pooling_type: found"):
        _ = _Changed(name, tmp_path, pooling_type=value).config


@pytest.mark.parametrize("value", [None, 0, -1, 0xFFFFFFFF])
def test_a_file_may_say_that_its_pooling_is_not_specified(value: int | None, tmp_path: Path) -> None:
    assert _Changed("qwen3", tmp_path, pooling_type=value).config.encoder is None
    for name in ("bert", "gemma_plain"):  # of which rows see what comes after them: they draw no tokens
        encoder = _Changed(name, tmp_path, pooling_type=value).config.encoder
        assert encoder is not None and encoder.pooling == "mean"


@pytest.mark.parametrize("name", ["bert_rank", "modern_rank"])
def test_a_file_with_a_classifier_ranks_where_it_does_not_say_how_to_pool(name: str, tmp_path: Path) -> None:
    """Converters before llama.cpp's `pooling_type` of 4 left it out."""
    file = _Changed(name, tmp_path)
    said = file.config.encoder
    file.metadata = {key: value for key, value in file.metadata.items() if not key.endswith("pooling_type")}
    encoder = file.config.encoder
    assert said is not None and encoder is not None
    assert encoder.task == said.task == "rank"


def test_a_task_is_honoured_or_refused(tmp_path: Path) -> None:
    vectors = gguf_file.write(tiny.golden("bert"), tmp_path / "vectors.gguf")
    scores = gguf_file.write(tiny.golden("bert_rank"), tmp_path / "scores.gguf")
    with pytest.raises(UnsupportedError, match="has no head that scores documents"):
        akunu.load(vectors, task="rerank", progress=False)
    with pytest.raises(UnsupportedError, match="scores documents and makes no vectors"):
        akunu.load(scores, task="embed", progress=False)
    akunu.load(vectors, task="embed", progress=False).close()
    akunu.load(scores, task="rerank", progress=False).close()


def test_rotary_scaling_is_for_encoders_too(tmp_path: Path) -> None:
    plain = _Changed("nomic", tmp_path).config
    linear = _Changed("nomic", tmp_path, rope__scaling__factor=4.0).config
    np.testing.assert_allclose(linear.rope_sets[0].inv_freq, plain.rope_sets[0].inv_freq / 4, rtol=1e-6)
    scaling = {"rope__scaling__type": "yarn", "rope__scaling__factor": 4.0}
    config = _Changed("modern", tmp_path, **scaling, rope__scaling__original_context_length=16).config
    theta = float(_Changed("modern", tmp_path).metadata["modern-bert.rope.freq_base"])  # type: ignore[arg-type]
    unscaled = inverse_frequencies(theta, config.head_dim)
    expected = yarn(unscaled, theta=theta, factor=4, original=16, beta_fast=32, beta_slow=1)
    np.testing.assert_allclose(config.rope_sets[0].inv_freq, expected, rtol=1e-6)
    assert [rope.scale for rope in config.rope_sets] == [
        yarn_scale(4),
        1,
    ]  # windowed layers have a theta of their own
    assert _Changed("nomic", tmp_path, rope__dimension_count=plain.head_dim // 2).config.rope_dim == (
        plain.head_dim // 2
    )


def test_a_window_of_0_is_none(tmp_path: Path) -> None:
    assert any(_Changed("modern", tmp_path).config.layer_window)
    config = _Changed("modern", tmp_path, attention__sliding_window=0).config
    assert not any(config.layer_window) and len(config.rope_sets) == 1
    assert not any(_Changed("modern", tmp_path, attention__sliding_window=None).config.layer_window)


@pytest.mark.parametrize("value", ["all", -1, 1.5, True, ["a"], [True]])
def test_a_pattern_of_windows_that_is_none_is_named(value: object, tmp_path: Path) -> None:
    n = _Changed("modern", tmp_path).config.n_layers
    pattern = value * n if value == ["a"] else value  # type: ignore[operator]
    with pytest.raises(ModelFileError, match=r"modern-bert\.attention\.sliding_window_pattern: found"):
        _ = _Changed("modern", tmp_path, attention__sliding_window_pattern=pattern).config


def test_a_missing_epsilon_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"bert\.attention\.layer_norm_epsilon is missing"):
        _ = _Changed("bert", tmp_path, attention__layer_norm_epsilon=None).config


def test_a_missing_layer_behind_the_vector_is_named(tmp_path: Path) -> None:
    for there, missing in (("dense_2.weight", "dense_3.weight"), ("dense_3.weight", "dense_2.weight")):
        file = _Changed("gemma_plain", tmp_path)
        dim = file.config.dim
        file.tensors = [t for t in file.tensors if not t.name.startswith("dense_")]
        file.tensors.append(Tensor(there, "f32", (dim, dim), 4 * dim * dim))
        with pytest.raises(ModelFileError, match=f"tensor {missing} is missing"):
            _ = file.config
    with pytest.raises(ModelFileError, match=r"tensor cls\.output\.weight is missing"):
        _ = _Changed("qwen3", tmp_path, pooling_type=4).config
