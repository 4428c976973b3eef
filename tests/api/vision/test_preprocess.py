"""What a tower is given, beside what Transformers' image processors make of the same images."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from akunu import _core
from akunu.base.errors import ImageError, InvalidArgumentError, ModelFileError, UnsupportedError
from akunu.chat.pictures.preprocess import ImagePart, Patches, Run, processor_of
from api.vision.cases import CASES, GOLDEN, Case, picture, samples
from order import Draw


@pytest.fixture(scope="module")
def golden() -> dict[str, npt.NDArray[np.generic]]:
    with np.load(GOLDEN) as kept:
        return dict(kept)


def shown(case: Case, size: tuple[int, int]) -> list[ImagePart]:
    return processor_of(case)(picture(size), case.tokens)


def images(parts: list[ImagePart]) -> list[Patches]:
    return list(dict.fromkeys(part.patches for part in parts if isinstance(part, Run)))


def whole(patches: Patches) -> npt.NDArray[np.float32]:
    """The patches put together again, [channel, height, width]."""
    _, rows, columns = patches.grid
    m, p = patches.merge, patches.patch
    first = patches.pixels.reshape(rows // m, columns // m, m, m, 3, patches.frames, p, p)[..., 0, :, :]
    return first.transpose(4, 0, 2, 5, 1, 3, 6).reshape(3, rows * p, columns * p)


def as_transformers_has_it(case: Case, found: list[Patches]) -> npt.NDArray[np.float32]:
    if case.layout == "qwen":
        return np.concatenate([each.pixels for each in found])
    if case.layout == "image":
        return np.stack([whole(each) for each in found])
    p, every = case.patch_size, []
    for each in map(whole, found):
        cut = each.reshape(3, each.shape[1] // p, p, each.shape[2] // p, p).transpose(1, 3, 2, 4, 0)
        every.append(cut.reshape(-1, p * p * 3))
    return np.concatenate(every)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_a_tower_is_given_is_that_of_transformers(
    case: Case, golden: dict[str, npt.NDArray[np.generic]], draw: Draw
) -> None:
    for size in draw(case.sizes):
        name, parts = f"{case.name}/{size[0]}x{size[1]}", shown(case, size)
        pixels_are_those(case, name, images(parts), golden)
        grids_and_texts_are_those(case, name, parts, golden)


def pixels_are_those(
    case: Case, name: str, found: list[Patches], golden: dict[str, npt.NDArray[np.generic]]
) -> None:
    values = as_transformers_has_it(case, found)
    assert values.dtype == np.float32
    assert list(values.shape) == golden[f"{name}/shape"].tolist()
    difference = np.abs(samples(values) - golden[f"{name}/samples"])
    # Two families have no processor by Pillow there; torchvision rounds otherwise, by one of 255 values.
    by_torch = case.family in ("lfm2_vl", "gemma4_unified")
    assert difference.max() <= (2.01 / 255 if by_torch else 1e-6)
    assert difference.mean() <= (0.3 / 255 if by_torch else 1e-7)


def grids_and_texts_are_those(
    case: Case, name: str, parts: list[ImagePart], golden: dict[str, npt.NDArray[np.generic]]
) -> None:
    processor = processor_of(case)
    # Gemma 4's rows have the layers' inputs of a pad, and so its token.
    token = processor.marker if processor.token == "<pad>" else processor.token
    text = "".join(token * part.count if isinstance(part, Run) else part for part in parts)
    assert text == bytes(golden[f"{name}/text"].item()).decode()
    grids = [each.grid for each in images(parts)]
    if f"{name}/grid" in golden:
        assert [list(grid) for grid in grids] == golden[f"{name}/grid"].tolist()
    if f"{name}/shapes" in golden:
        assert [list(grid[1:]) for grid in grids] == golden[f"{name}/shapes"].tolist()
    if f"{name}/positions" in golden:
        assert list(grids[0][:0:-1]) == golden[f"{name}/positions"].tolist()
    for each in images(parts):
        runs = [part for part in parts if isinstance(part, Run) and part.patches is each]
        assert [run.first for run in runs] == np.cumsum([0, *(run.count for run in runs)])[:-1].tolist()
        assert sum(run.count for run in runs) == each.tokens == len(each.pixels) // each.merge**2


def case(name: str) -> Case:
    return next(each for each in CASES if each.name == name)


def test_keys_tell_images_and_settings_apart() -> None:
    one, again = (images(shown(case("qwen3-vl"), (60, 83)))[0].key for _ in range(2))
    other = images(shown(case("qwen3-vl"), (60, 84)))[0].key
    settings = replace(
        case("qwen3-vl"), processor={**case("qwen3-vl").processor, "image_mean": [0.4, 0.5, 0.5]}
    )
    assert one == again
    assert len({one, other, images(shown(settings, (60, 83)))[0].key}) == 3
    tiles = images(shown(case("smolvlm"), (300, 211)))
    assert len({each.key for each in tiles}) == len(tiles)


@pytest.mark.parametrize("tokens", [4, 50, 256, 1000])
def test_a_budget_is_kept_to(tokens: int, draw: Draw) -> None:
    for name in ("qwen2-vl", "qwen3-vl", "mistral3", "pixtral"):
        for size in draw(((40, 40), (900, 1300), (2000, 90), (30, 2900))):
            found = images(processor_of(case(name))(picture(size), tokens))
            assert 0 < sum(each.tokens for each in found) <= tokens, (name, size)
    for size in draw(((900, 1300), (2000, 90))):
        found = images(processor_of(case("lfm2-vl"))(picture(size), max(tokens, 64)))
        assert 0 < sum(each.tokens for each in found) <= max(tokens, 64), size


def test_a_budget_that_a_family_does_not_have_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="70, 140, 280, 560, 1120"):
        processor_of(case("gemma4"))(picture((60, 83)), 100)
    with pytest.raises(InvalidArgumentError, match="image_tokens: this model has a fixed number"):
        processor_of(case("gemma3"))(picture((60, 83)), 100)


def test_an_image_of_another_shape_than_the_model_takes_is_refused() -> None:
    with pytest.raises(ImageError, match=r"10 × 2001 pixels.*at most 200 times"):
        processor_of(case("qwen3-vl"))(picture((2001, 10)))


@pytest.mark.parametrize("name", ["gemma3", "gemma4", "smolvlm", "lfm2-vl", "pixtral", "qwen3-vl"])
def test_one_pixel_is_an_image(name: str) -> None:
    assert images(processor_of(case(name))(picture((1, 1))))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"image_std": [0, 1, 1]}, "image_std"),
        ({"image_mean": "half"}, "image_mean"),
        ({"resample": 77}, "resample"),
        ({"size": {"longest_edge": -5}}, "longest_edge"),
        ({"rescale_factor": float("nan")}, "rescale_factor"),
    ],
)  # fmt: skip
def test_settings_that_mean_nothing_are_refused_by_name(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ModelFileError, match=re.escape(message)):
        processor_of(replace(case("qwen3-vl"), processor=settings))


def test_a_family_without_a_processor_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="'sees_all'"):
        processor_of(replace(case("qwen3-vl"), family="sees_all"))


@pytest.mark.parametrize(
    ("picture", "values", "floats", "message"),
    [
        ((8, 8), (3, 256), 192, r"bytes of \[height, width, 3\]"),
        ((8, 8, 3), (3, 255), 192, r"floats of \[3, 256\]"),
        ((8, 8, 3), (3, 256), 191, "of 191 floats, expected 192"),
    ],
)
def test_what_is_no_picture_is_not_cut(
    picture: tuple[int, ...], values: tuple[int, ...], floats: int, message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        _core.cut_patches(
            np.zeros(picture, np.uint8), np.zeros(values, np.float32), 4, 2, 1, np.empty(floats, np.float32)
        )
