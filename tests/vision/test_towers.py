"""Towers, and the rows that they make in a text, against Transformers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from akunu import _core
from akunu.base.errors import InvalidArgumentError, ModelFileError, UnsupportedError
from akunu.files.model_files import open_model
from akunu.vision.inputs import Encoded, Inputs, Placed, place
from akunu.vision.tower import Tower
from akunu.vision.towers import TowerFiles, find_tower, with_images

from . import seeing

DEVICE = os.environ.get("AKUNU_TEST_DEVICE", "cpu")


@dataclass(frozen=True)
class Patches:
    """What `Tower.encode` needs of an image."""

    pixels: npt.NDArray[np.float32]
    grid: tuple[int, int, int]
    key: bytes


@dataclass(frozen=True, eq=False)
class Case:
    model: seeing.Seeing
    golden: seeing.Golden
    files: TowerFiles
    tower: Tower
    folder: Path

    @property
    def patches(self) -> list[Patches]:
        return [
            Patches(pixels, (1, *grid), bytes([i]) * 16)
            for i, (pixels, grid) in enumerate(zip(self.golden.pixels, self.model.grids, strict=True))
        ]

    def inputs(self, images: Sequence[Encoded] | None = None) -> Inputs:
        """Of the golden prompt, whose images these are."""
        images = images or [self.tower.encode(patches) for patches in self.patches]
        starts = np.flatnonzero(np.diff(self.golden.ids == self.model.image_token, prepend=False))[::2]
        parts = [
            Placed(int(start), image, 0, len(image.rows)) for start, image in zip(starts, images, strict=True)
        ]
        return place(len(self.golden.ids), parts, self.files.spec)

    def engine(self, **options: object) -> _core.Engine:
        opened = open_model(self.folder)
        spec = with_images(opened.spec(sees=True), self.files.spec)
        return _core.Engine(opened.files, spec, device=DEVICE, context=128, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module", params=list(seeing.ALL))
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    model = seeing.ALL[request.param]
    folder = seeing.write_folder(model, tmp_path_factory.mktemp("folder") / model.name)
    files = find_tower(open_model(folder), folder)
    assert files is not None
    tower = Tower(files, device=DEVICE)
    yield Case(model, seeing.golden(model), files, tower, folder)
    tower.close()


def cut(inputs: Inputs, n: int) -> Inputs:
    """Those of the first n tokens."""
    rows = [
        Placed(part.start, part.image, part.first, min(part.count, n - part.start))
        for part in inputs.rows
        if part.start < n
    ]
    positions = None if inputs.positions is None else inputs.positions[:n]
    return Inputs(inputs.contents[:n], tuple(rows), positions)


def begin(
    engine: _core.Engine, ids: npt.NDArray[np.uint32], inputs: Inputs, slot: int, *, reuse: bool = False
) -> int:
    """What the cache holds of the prompt."""
    return engine.begin(
        ids, slot=slot, reuse=reuse, logprobs=20, contents=inputs.contents, **inputs.arguments
    )


def after(engine: _core.Engine, slot: int, n: int, at_once: int = 64) -> list[tuple[int, float]]:
    """The most likely tokens after the n tokens of a prompt, run so many at once, and their log p."""
    while True:
        # A step may run fewer, where it comes to a checkpoint of the model's state.
        left = n - engine.length(slot)
        rows = min(at_once, left)
        assert engine.reserve(slot, rows)
        (chunk,), _ = engine.step([(slot, rows, rows == left, 1, [])])
        if chunk.ids:
            return chunk.top_logprobs[0]


def expected(case: Case, n: int, top: Sequence[tuple[int, float]]) -> npt.NDArray[np.float32]:
    """What Transformers gives these tokens after the first n."""
    row = case.golden.logits[n - 1].astype(np.float64)
    log_p = row - row.max() - np.log(np.exp(row - row.max()).sum())
    assert int(row.argmax()) == top[0][0]
    return log_p[[token for token, _ in top]]


def test_rows_are_those_of_transformers(case: Case) -> None:
    for patches, rows in zip(case.patches, case.golden.rows, strict=True):
        found = case.tower.encode(patches).rows.numpy()
        assert found.shape == rows.shape
        assert np.abs(found - rows).max() < 2e-3 * rows.std()


@pytest.mark.parametrize("at_once", [64, 5])
def test_logits_are_those_of_transformers(case: Case, at_once: int) -> None:
    engine, inputs = case.engine(kv_dtype="f32"), case.inputs()
    for n in (4, 9, 20, len(case.golden.ids)):
        slot = engine.open()
        assert slot is not None
        begin(engine, case.golden.ids[:n], cut(inputs, n), slot)
        top = after(engine, slot, n, at_once)
        assert np.abs(expected(case, n, top) - [p for _, p in top]).max() < 0.02
        engine.close_slot(slot)
    engine.close()


def opened(engine: _core.Engine) -> int:
    slot = engine.open()
    assert slot is not None
    return slot


def test_texts_with_equal_tokens_and_other_images_share_no_page(case: Case) -> None:
    engine, ids, n = case.engine(), case.golden.ids, len(case.golden.ids)
    images = [case.tower.encode(patches) for patches in case.patches]
    others = [
        case.tower.encode(Patches(-patches.pixels, patches.grid, patches.key + b"-"))
        for patches in case.patches
    ]
    slot = opened(engine)
    assert begin(engine, ids, case.inputs(images), slot, reuse=True) == 0
    top = after(engine, slot, n)
    first_image = int(np.flatnonzero(ids == case.model.image_token)[0])
    assert begin(engine, ids, case.inputs(others), slot, reuse=True) <= first_image
    assert after(engine, slot, n) != top
    # The first image alone is equal.
    assert begin(engine, ids, case.inputs([images[0], others[1]]), slot, reuse=True) <= 15
    assert begin(engine, ids, case.inputs(images), slot, reuse=True) == n - 1
    assert after(engine, slot, n) == top
    engine.close()


def test_a_chain_is_the_prompt_of_its_tokens(case: Case) -> None:
    """Behind an image the positions by which tokens turn are not their indices."""
    engine, inputs, n = case.engine(), case.inputs(), len(case.golden.ids)
    slot = opened(engine)
    begin(engine, case.golden.ids, inputs, slot)
    top = after(engine, slot, n)
    ids = [*case.golden.ids.tolist(), top[0][0]]
    while len(ids) < n + 7:
        steps = n + 7 - len(ids)
        assert engine.reserve(slot, 1, steps)
        (chunk,), _ = engine.step([(slot, 1, True, steps, [])], steps)
        ids += chunk.ids
        top = chunk.top_logprobs[-1]
    whole = np.array(ids[:-1], np.uint32)
    begin(engine, whole, inputs, slot)
    assert after(engine, slot, len(whole), at_once=7) == top
    engine.close()


def test_texts_side_by_side_are_as_each_alone(case: Case) -> None:
    engine, n = case.engine(), len(case.golden.ids)
    first, second = (case.tower.encode(patches) for patches in case.patches)
    spec = case.files.spec
    texts = [
        (case.golden.ids, case.inputs([first, second])),
        (case.golden.ids[10:], place(n - 10, [Placed(5, second, 0, len(second.rows))], spec)),
        (np.arange(20, 40, dtype=np.uint32), place(20, [], spec)),
    ]
    slots, alone = [opened(engine) for _ in texts], []
    for slot, (ids, inputs) in zip(slots, texts, strict=True):
        begin(engine, ids, inputs, slot)
        alone.append(after(engine, slot, len(ids)))
    for slot, (ids, inputs) in zip(slots, texts, strict=True):
        begin(engine, ids, inputs, slot)
    found: dict[int, list[tuple[int, float]]] = {}
    while len(found) < len(texts):
        parts = []
        for slot, (ids, _) in zip(slots, texts, strict=True):
            left = len(ids) - engine.length(slot)
            if slot not in found:
                assert engine.reserve(slot, min(6, left))
                parts.append((slot, min(6, left), left <= 6, 1, []))
        chunks, _ = engine.step(parts)
        found |= {part[0]: c.top_logprobs[0] for part, c in zip(parts, chunks, strict=True) if c.ids}
    assert [found[slot] for slot in slots] == alone
    engine.close()


def test_a_beginning_that_ends_within_an_image_is_used_again(case: Case) -> None:
    engine, inputs, n = case.engine(), case.inputs(), len(case.golden.ids)
    slot, at = opened(engine), 20  # of the second image's rows, 15 to 24
    begin(engine, case.golden.ids, inputs, slot)
    top = after(engine, slot, n)
    engine.close_slot(slot)
    engine.forget()
    slot = opened(engine)
    begin(engine, case.golden.ids[:at], cut(inputs, at), slot)
    after(engine, slot, at)
    assert begin(engine, case.golden.ids, inputs, slot, reuse=True) == at
    assert after(engine, slot, n) == top
    engine.close()


def test_rows_are_refused_that_do_not_fit(case: Case) -> None:
    engine, inputs, ids = case.engine(), case.inputs(), case.golden.ids
    slot = opened(engine)
    with pytest.raises(InvalidArgumentError, match="no hash"):
        engine.begin(ids, slot=slot, **inputs.arguments)
    rows = _core.EncodedRows(np.zeros((2, 5), np.float32))
    hashes = np.ones(len(ids), np.uint64)
    with pytest.raises(InvalidArgumentError, match="have 5 values each, expected"):
        engine.begin(ids, slot=slot, contents=hashes, inputs=[(3, rows, 0, 2)])
    whole = case.tower.encode(case.patches[0]).rows
    for place_of in ([(3, whole, 4, 3)], [(3, whole, 0, 0)], [(30, whole, 0, 6)], [(3, whole, 0, 6)] * 2):
        with pytest.raises(InvalidArgumentError, match="the encoded rows at"):
            engine.begin(ids, slot=slot, contents=hashes, inputs=place_of)
    # What is no token has rows.
    engine.begin(ids, slot=slot, contents=hashes, inputs=[(3, whole, 0, 6)])
    assert engine.reserve(slot, 9)
    with pytest.raises(InvalidArgumentError, match="is no token"):
        engine.step([(slot, 9, False, 1, [])])
    engine.close()
    text = open_model(case.folder)
    plain = _core.Engine(text.files, text.spec(sees=True), device=DEVICE, context=128)
    with pytest.raises(UnsupportedError, match="takes tokens alone"):
        plain.begin(ids, contents=hashes, inputs=[(3, whole, 0, 6)])
    plain.close()


def test_images_are_encoded_once_and_forgotten_by_age(case: Case) -> None:
    patches = case.patches
    all_bytes = sum(rows.nbytes for rows in case.golden.rows)
    tower = Tower(case.files, device=DEVICE, kept_bytes=int(all_bytes - 4))
    first = tower.encode(patches[0])
    assert tower.encode(Patches(patches[0].pixels.copy(), patches[0].grid, patches[0].key)) is first
    tower.encode(patches[1])
    assert tower.kept == case.golden.rows[1].nbytes
    again = tower.encode(patches[0])
    assert again is not first
    assert again.key == first.key
    assert np.array_equal(again.rows.numpy(), first.rows.numpy())
    tower.close()


def test_another_tower_knows_the_same_image_by_another_key(case: Case, tmp_path: Path) -> None:
    def change(arrays: dict[str, seeing.Array]) -> dict[str, seeing.Array]:
        return arrays | {name: a * 2 for name, a in arrays.items() if name.endswith("merger.norm.bias")}

    folder = seeing.write_folder(case.model, tmp_path / "other", change)
    files = find_tower(open_model(folder), folder)
    assert files is not None
    tower = Tower(files, device=DEVICE)
    assert tower.encode(case.patches[0]).key != case.tower.encode(case.patches[0]).key
    tower.close()


class Text:
    """The opened file of a model of text, as far as it matters."""

    def __init__(self, model: seeing.Seeing, **other: object) -> None:
        self.metadata = seeing.text_metadata(model) | other


def test_an_mmproj_file_beside_a_model_is_its_tower(case: Case, tmp_path: Path) -> None:
    model = tmp_path / "model-Q4_0.gguf"
    assert find_tower(Text(case.model), model) is None
    path = seeing.write_mmproj(case.model, tmp_path / "mmproj-model-f32.gguf")
    files = find_tower(Text(case.model), model)
    assert files is not None
    assert files.name == path.name
    assert files.spec.turning == case.files.spec.turning
    assert files.spec.processor == {"image_mean": [0.5] * 3, "image_std": [0.25, 0.5, 0.5]}
    assert files.spec.sizes == case.files.spec.sizes
    tower = Tower(files, device=DEVICE)
    for patches, rows in zip(case.patches, case.golden.rows, strict=True):
        assert np.abs(tower.encode(patches).rows.numpy() - rows).max() < 2e-3 * rows.std()
    tower.close()
    # F16 before others; not that of a model of another size, or of another architecture.
    seeing.write_mmproj(case.model, tmp_path / "mmproj-model-f16.gguf")
    best = find_tower(Text(case.model), model)
    assert best is not None
    assert best.name == "mmproj-model-f16.gguf"
    with pytest.raises(ModelFileError, match="have 64: it is another model's"):
        find_tower(Text(case.model, **{f"{case.model.arch}.embedding_length": 64}), model)
    assert find_tower(Text(case.model, **{"general.architecture": "llama"}), model) is None
    with pytest.raises(UnsupportedError, match="expected that of a tower for models of the arch"):
        find_tower(Text(case.model, **{"general.architecture": "llama"}), model, path)


def test_a_model_and_a_tower_of_other_sizes_do_not_belong_together(case: Case) -> None:
    spec = open_model(case.folder).spec(sees=True)
    tower = case.files.spec
    with pytest.raises(ModelFileError, match="makes rows of 64 elements, the model has 96"):
        with_images(spec, replace(tower, sizes=replace(tower.sizes, out=64)))
    assert tower.turning is not None
    turning = replace(tower.turning, sections=(9, 9, 9))
    with pytest.raises(ModelFileError, match="mrope_section: found"):
        with_images(spec, replace(tower, turning=turning))
