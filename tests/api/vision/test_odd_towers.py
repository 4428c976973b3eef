"""Towers with numbers that no published model has, against Transformers; and what is refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from akunu.api.vision.towers import find_tower, with_images
from akunu.base.errors import UnsupportedError
from akunu.chat.pictures.preprocess import Patches as Cut
from akunu.chat.pictures.preprocess import Scale
from akunu.files.model_files import open_model

from . import seeing
from .test_towers import Case, after, begin, expected, opened, opened_case


@pytest.fixture(scope="module", params=list(seeing.ODD))
def odd(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    with opened_case(seeing.ODD[request.param], tmp_path_factory.mktemp("odd")) as case:
        yield case


def test_rows_and_logits_are_those_of_transformers(odd: Case) -> None:
    images = [odd.tower.encode(patches) for patches in odd.patches]
    for image, rows in zip(images, odd.golden.rows, strict=True):
        assert np.abs(image.rows.numpy() - rows).max() < 4e-3 * rows.std()
    engine, inputs, n = odd.engine(kv_dtype="f32"), odd.inputs(images), len(odd.golden.ids)
    slot = opened(engine)
    begin(engine, odd.golden.ids, inputs, slot)
    top = after(engine, slot, inputs, n)
    assert np.abs(expected(odd, n, top) - [p for _, p in top]).max() < 0.02
    engine.close()


def test_a_picture_that_is_not_whole_patches_loses_its_edges() -> None:
    """A convolution does so: SmolVLM's 384 pixels are 27 patches of 14, and 6 pixels more."""
    picture = np.random.RandomState(3).randint(0, 256, (22, 30, 3), np.uint8)
    scale = Scale(1 / 255, (0.5,) * 3, (0.5,) * 3)
    cut, whole = Cut(picture, 5, 2, 1, scale), Cut(picture[:20, :30], 5, 2, 1, scale)
    assert cut.grid == whole.grid == (1, 4, 6)
    assert np.array_equal(cut.pixels, whole.pixels)


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("mistral3", "vision_tower.transformer.layers.1.attention.q_proj.bias"),
        ("gemma3", "multi_modal_projector.mm_input_projection_bias"),
    ],
)
def test_a_tensor_that_is_not_known_is_not_left_out(tmp_path: Path, name: str, tensor: str) -> None:
    model = seeing.ALL[name]
    folder = seeing.write_folder(model, tmp_path, lambda arrays: arrays | {tensor: np.ones(64, np.float32)})
    with pytest.raises(UnsupportedError, match=f"tensor {tensor}: the architecture"):
        find_tower(open_model(folder), folder)


@pytest.mark.parametrize("layer", [[-1, -2], 0, 7, True])
def test_states_of_several_layers_are_refused(tmp_path: Path, layer: object) -> None:
    folder = seeing.write_folder(seeing.ALL["mistral3"], tmp_path)
    opened_files = open_model(folder)
    opened_files.config["vision_feature_layer"] = layer  # type: ignore[attr-defined]
    with pytest.raises(UnsupportedError, match="vision_feature_layer: found"):
        find_tower(opened_files, folder)


def test_more_vectors_than_layers_do_not_belong_together(odd: Case) -> None:
    if odd.files.spec.parts < 2:
        return
    sizes = replace(odd.files.spec.sizes, deep_layers=(0, 1, 2, 3))
    text = open_model(odd.folder).spec(sees=True)
    with pytest.raises(Exception, match="has vectors for 4 layers, the model has 3"):
        with_images(text, replace(odd.files.spec, sizes=sizes))
