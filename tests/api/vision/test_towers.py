"""Towers, and the rows that they make in a text, against Transformers."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from akunu import _core
from akunu.api.scheduling.sequence import Sequence
from akunu.api.vision.inputs import Encoded, Inputs, Placed, place
from akunu.api.vision.tower import Tower
from akunu.api.vision.towers import TowerFiles, find_tower, with_images
from akunu.base.errors import InvalidArgumentError, ModelFileError, UnsupportedError
from akunu.files.model_files import open_model
from formats import mlx_planes

from . import seeing

DEVICE = os.environ.get("AKUNU_TEST_DEVICE", "cpu")


@dataclass(frozen=True)
class Patches:
    """What `Tower.encode` needs of an image."""

    pixels: npt.NDArray[np.float32]
    grid: tuple[int, int, int]
    key: bytes

    def write(self, out: npt.NDArray[np.float32]) -> None:
        out[:] = self.pixels


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

    def inputs(self, images: SequenceOf[Encoded] | None = None) -> Inputs:
        """Return the inputs of the golden prompt, whose images these are."""
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


@contextlib.contextmanager
def opened_case(model: seeing.Seeing, parent: Path) -> Iterator[Case]:
    """Write a model's folder, and open its tower."""
    folder = seeing.write_folder(model, parent / model.name)
    files = find_tower(open_model(folder), folder)
    assert files is not None
    tower = Tower(files, device=DEVICE)
    yield Case(model, seeing.golden(model), files, tower, folder)
    tower.close()


@pytest.fixture(scope="module", params=list(seeing.ALL))
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    with opened_case(seeing.ALL[request.param], tmp_path_factory.mktemp("folder")) as opened:
        yield opened


def cut(inputs: Inputs, n: int) -> Inputs:
    """Return the inputs of the first n tokens."""
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


def rows_of(engine: _core.Engine, inputs: Inputs, slot: int, n: int, at_once: int) -> int:
    """Rows of the next step, as the scheduler has them: it ends within no image that sees all of itself."""
    sequence = Sequence(np.zeros(n, np.uint32), {}, inputs=inputs)
    sequence.length = engine.length(slot)
    rows = min(at_once, n - sequence.length)
    return sequence.whole_images(rows, engine.max_rows) if engine.whole_images else rows


def after(
    engine: _core.Engine, slot: int, inputs: Inputs, n: int, at_once: int = 64
) -> list[tuple[int, float]]:
    """The most likely tokens after the n tokens of a prompt, run so many at once, and their log p."""
    while True:
        # A step may run fewer, where it comes to a checkpoint of the model's state.
        left = n - engine.length(slot)
        rows = rows_of(engine, inputs, slot, n, at_once)
        assert engine.reserve(slot, rows)
        (chunk,), _ = engine.step([(slot, rows, rows == left, 1, [])])
        if chunk.ids:
            return chunk.top_logprobs[0]


def expected(case: Case, n: int, top: SequenceOf[tuple[int, float]]) -> npt.NDArray[np.float32]:
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
    for n in (4, 9, 13, 20, 28, len(case.golden.ids)):
        some = cut(inputs, n)
        if n > len(case.golden.ids) or (
            engine.whole_images and some.rows[-1].count < len(some.rows[-1].image.rows)
        ):
            continue
        slot = opened(engine)
        begin(engine, case.golden.ids[:n], some, slot)
        top = after(engine, slot, some, n, at_once)
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
    inputs, second = case.inputs(images), case.inputs(images).rows[1].start
    slot = opened(engine)
    assert begin(engine, ids, inputs, slot, reuse=True) == 0
    top = after(engine, slot, inputs, n)
    first_image = int(np.flatnonzero(ids == case.model.image_token)[0])
    assert begin(engine, ids, case.inputs(others), slot, reuse=True) <= first_image
    assert after(engine, slot, case.inputs(others), n) != top
    # The first image alone is equal.
    assert begin(engine, ids, case.inputs([images[0], others[1]]), slot, reuse=True) <= second
    after(engine, slot, case.inputs([images[0], others[1]]), n)
    if n > 32:  # of more than a page: of one only the text that was last is found whole
        # Where a model has a state, from the last place that has it.
        assert begin(engine, ids, inputs, slot, reuse=True) in (n - 1, 32)
        assert after(engine, slot, inputs, n) == top
    engine.close()


def test_a_chain_is_the_prompt_of_its_tokens(case: Case) -> None:
    """Behind an image the positions by which tokens turn are not their indices."""
    engine, inputs, n = case.engine(), case.inputs(), len(case.golden.ids)
    slot = opened(engine)
    begin(engine, case.golden.ids, inputs, slot)
    top = after(engine, slot, inputs, n)
    ids = [*case.golden.ids.tolist(), top[0][0]]
    while len(ids) < n + 7:
        steps = n + 7 - len(ids)
        assert engine.reserve(slot, 1, steps)
        (chunk,), _ = engine.step([(slot, 1, True, steps, [])], steps)
        ids += chunk.ids
        top = chunk.top_logprobs[-1]
    whole = np.array(ids[:-1], np.uint32)
    begin(engine, whole, inputs, slot)
    assert after(engine, slot, inputs, len(whole), at_once=7) == top
    engine.close()


def test_texts_side_by_side_are_as_each_alone(case: Case) -> None:
    engine, n = case.engine(), len(case.golden.ids)
    first, second = (case.tower.encode(patches) for patches in case.patches)
    spec = case.files.spec
    prompts = [
        (case.golden.ids, case.inputs([first, second])),
        (case.golden.ids[4:], place(n - 4, [Placed(5, second, 0, len(second.rows))], spec)),
        (np.arange(20, 40, dtype=np.uint32), place(20, [], spec)),
    ]
    slots, alone = [opened(engine) for _ in prompts], []
    for slot, (ids, inputs) in zip(slots, prompts, strict=True):
        begin(engine, ids, inputs, slot)
        alone.append(after(engine, slot, inputs, len(ids)))
    for slot, (ids, inputs) in zip(slots, prompts, strict=True):
        begin(engine, ids, inputs, slot)
    found: dict[int, list[tuple[int, float]]] = {}
    while len(found) < len(prompts):
        parts = []
        for slot, (ids, inputs) in zip(slots, prompts, strict=True):
            left = len(ids) - engine.length(slot)
            if slot not in found:
                rows = rows_of(engine, inputs, slot, len(ids), 6)
                assert engine.reserve(slot, rows)
                parts.append((slot, rows, rows == left, 1, []))
        chunks, _ = engine.step(parts)
        found |= {part[0]: c.top_logprobs[0] for part, c in zip(parts, chunks, strict=True) if c.ids}
    assert [found[slot] for slot in slots] == alone
    engine.close()


def test_a_beginning_that_ends_within_an_image_is_used_again(case: Case) -> None:
    engine, inputs, n = case.engine(), case.inputs(), len(case.golden.ids)
    part = inputs.rows[1]
    at = part.start + part.count - 2
    slot = opened(engine)
    begin(engine, case.golden.ids, inputs, slot)
    top = after(engine, slot, inputs, n)
    if engine.whole_images:  # which are run whole, but a prefix may be gone back to
        engine.truncate(at, slot)
    else:
        engine.close_slot(slot)
        engine.forget()
        slot = opened(engine)
        begin(engine, case.golden.ids[:at], cut(inputs, at), slot)
        after(engine, slot, cut(inputs, at), at)
    assert begin(engine, case.golden.ids, inputs, slot, reuse=True) >= at
    assert after(engine, slot, inputs, n) == top
    engine.close()


def test_no_step_ends_within_an_image_whose_rows_see_all_of_it(case: Case) -> None:
    engine, inputs = case.engine(), case.inputs()
    part = inputs.rows[0]
    slot = opened(engine)
    begin(engine, case.golden.ids, inputs, slot)
    assert engine.whole_images == (case.model.name in ("gemma3", "gemma4_whole", "gemma4_unified"))
    rows = part.start + 2
    assert engine.reserve(slot, rows)
    if engine.whole_images:
        with pytest.raises(
            InvalidArgumentError, match=f"within an image at 2 to {part.start + part.count}, all"
        ):
            engine.step([(slot, rows, False, 1, [])])
    sequence = Sequence(case.golden.ids, {}, inputs=inputs)
    end = part.start + part.count
    assert [sequence.whole_images(n, 99) for n in (1, part.start, rows, end, end + 1)] == [
        1, part.start, part.start, end, end + 1,
    ]  # fmt: skip
    sequence.length = part.start
    assert sequence.whole_images(1, part.count) == part.count
    assert sequence.whole_images(1, part.count - 1) == 0
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
    n = len(whole)
    wrong = [(3, whole, n - 2, 3)], [(3, whole, 0, 0)], [(len(ids) - 1, whole, 0, n)], [(3, whole, 0, n)] * 2
    for place_of in wrong:
        with pytest.raises(InvalidArgumentError, match="the encoded rows at"):
            engine.begin(ids, slot=slot, contents=hashes, inputs=place_of)
    # What is no token has rows.
    engine.begin(ids, slot=slot, contents=hashes, inputs=[(3, whole, 0, n)])
    assert engine.reserve(slot, 3 + n)
    with pytest.raises(InvalidArgumentError, match="is no token"):
        engine.step([(slot, 3 + n, False, 1, [])])
    engine.close()
    text = open_model(case.folder)
    plain = _core.Engine(text.files, text.spec(sees=True), device=DEVICE, context=128)
    with pytest.raises(UnsupportedError, match="takes tokens alone"):
        plain.begin(ids, slot=plain.open(), contents=hashes, inputs=[(3, whole, 0, n)])
    plain.close()


def test_what_an_image_leaves_on_the_device_changes_no_other(case: Case) -> None:
    """Vectors of positions stay for the next image of the same size, and room for patches for any."""
    first, other = case.patches[:2]
    half = Patches(first.pixels / 2, first.grid, b"half")
    tower, fresh = (Tower(case.files, device=DEVICE, kept_bytes=0) for _ in range(2))
    expected = fresh.encode(half).rows.numpy()
    for before in (first, other, first, half):
        tower.encode(before)
        tower.profile(tower.spec.merge_size**2, 1)
        assert np.array_equal(tower.encode(half).rows.numpy(), expected)
    tower.close()
    fresh.close()


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
        last = (
            "merger.linear_fc2.weight", "mm_input_projection_weight", "proj.weight", "linear_2.weight",
            "merger.mlp.2.weight", "embedding_projection.weight",
        )  # fmt: skip
        return arrays | {name: a * 2 for name, a in arrays.items() if name.endswith(last)}

    folder = seeing.write_folder(case.model, tmp_path / "other", change)
    files = find_tower(open_model(folder), folder)
    assert files is not None
    tower = Tower(files, device=DEVICE)
    assert tower.encode(case.patches[0]).key != case.tower.encode(case.patches[0]).key
    tower.close()


def in_planes(arrays: dict[str, seeing.Array], bits: int, exact: bool) -> dict[str, seeing.Array]:
    """Return the matrices of a tower as MLX quantises them, or, where `exact`, what the codes stand for."""
    found: dict[str, seeing.Array] = {}
    for name, array in arrays.items():
        # MLX leaves convolutions and what is no module's weight as they are.
        if (
            array.ndim != 2
            or array.shape[1] % 32
            or not name.endswith(".weight")
            or "language_model" in name
            or "text_model" in name
        ):
            found[name] = array
            continue
        planes = mlx_planes.quantize(array, bits, 32, "F32")
        if exact:
            found[name] = planes.values(bits)
            continue
        module = name.removesuffix("weight")
        found |= {name: planes.codes, f"{module}scales": planes.scales, f"{module}biases": planes.biases}
    return found


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("name", ["qwen3_vl", "qwen2_5_vl", "mistral3"])
def test_a_tower_of_mlx_may_be_quantised(tmp_path: Path, name: str, bits: int) -> None:
    model = seeing.ALL[name]
    rows = []
    for exact in (True, False):
        folder = tmp_path / f"exact-{exact}"
        seeing.write_folder(model, folder, lambda arrays, exact=exact: in_planes(arrays, bits, exact))
        if not exact:
            config = json.loads((folder / "config.json").read_text())
            config["quantization"] = {"group_size": 32, "bits": bits}
            (folder / "config.json").write_text(json.dumps(config))
        files = find_tower(open_model(folder), folder)
        assert files is not None
        assert any(ref.scales for ref in files.spec.tensors.values()) != exact
        tower = Tower(files, device=DEVICE)
        golden = seeing.golden(model)
        for i, (pixels, grid) in enumerate(zip(golden.pixels, model.grids, strict=True)):
            rows.append(tower.encode(Patches(pixels, (1, *grid), bytes([i]) * 16)).rows.numpy())
        tower.close()
    expected, found = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    for one, other in zip(expected, found, strict=True):
        # Activations are rounded where weights are codes.
        assert np.square(one - other).mean() ** 0.5 < 0.05 * one.std()


def test_the_norm_of_merged_patches_has_an_epsilon_of_its_own(tmp_path: Path) -> None:
    model = seeing.ALL["lfm2_vl"]
    folder = seeing.write_folder(model, tmp_path)
    files = find_tower(open_model(folder), folder)
    assert files is not None
    *blocks, last = files.spec.config["blocks"]  # type: ignore[misc]
    assert (last.mixer.norm_eps, files.spec.config["norm_eps"]) == (1e-5, 1e-6)
    rows = []
    for eps in (1e-5, 3.0):
        config = {
            **files.spec.config,
            "blocks": (*blocks, replace(last, mixer=replace(last.mixer, norm_eps=eps))),
        }
        tower = Tower(replace(files, spec=replace(files.spec, config=config)), device=DEVICE)
        pixels = seeing.golden(model).pixels[0]
        rows.append(tower.encode(Patches(pixels, (1, *model.grids[0]), b"")).rows.numpy())
        tower.close()
    assert np.abs(rows[0] - rows[1]).max() > 0.1 * rows[0].std()


class LanguageModel:
    """The opened file of a model of text, as far as it matters."""

    def __init__(self, model: seeing.Seeing, **other: object) -> None:
        self.files: Any = SimpleNamespace(tensors=[])
        self.metadata = seeing.text_metadata(model) | other

    def open(self, path: Path) -> None:
        """Have a file's tensors, and its keys besides."""
        self.files = _core.GgufFile(str(path))
        self.metadata |= self.files.metadata


def test_an_mmproj_file_beside_a_model_is_its_tower(case: Case, tmp_path: Path) -> None:
    model = tmp_path / "model-Q4_0.gguf"
    assert find_tower(LanguageModel(case.model), model) is None
    path = seeing.write_mmproj(case.model, tmp_path / "mmproj-model-f32.gguf")
    files = find_tower(LanguageModel(case.model), model)
    assert files is not None
    assert files.name == path.name
    assert files.spec.turning == case.files.spec.turning
    assert files.spec.processor == {"image_mean": [0.5] * 3, "image_std": [0.25, 0.5, 0.5]}
    own, other = (
        replace(each.spec.sizes, norm_eps=1.0, merge_eps=None, patch_eps=None) for each in (files, case.files)
    )
    assert own == other
    assert files.spec.sizes.norm_eps == pytest.approx(case.files.spec.sizes.norm_eps)
    tower = Tower(files, device=DEVICE)
    for patches, rows in zip(case.patches, case.golden.rows, strict=True):
        assert np.abs(tower.encode(patches).rows.numpy() - rows).max() < 2e-3 * rows.std()
    tower.close()
    # F16 before others; not that of a model of another size, or of another architecture.
    seeing.write_mmproj(case.model, tmp_path / "mmproj-model-f16.gguf")
    best = find_tower(LanguageModel(case.model), model)
    assert best is not None
    assert best.name == "mmproj-model-f16.gguf"
    with pytest.raises(ModelFileError, match="have 64: it is another model's"):
        find_tower(LanguageModel(case.model, **{f"{case.model.arch}.embedding_length": 64}), model)
    assert find_tower(LanguageModel(case.model, **{"general.architecture": "phi3"}), model) is None
    with pytest.raises(UnsupportedError, match="expected that of a tower for models of the arch"):
        find_tower(LanguageModel(case.model, **{"general.architecture": "phi3"}), model, path)


def test_a_model_and_a_tower_of_other_sizes_do_not_belong_together(case: Case) -> None:
    spec = open_model(case.folder).spec(sees=True)
    tower = case.files.spec
    with pytest.raises(ModelFileError, match="makes rows of 64 elements, the model has 96"):
        with_images(spec, replace(tower, sizes=replace(tower.sizes, out=64)))
    if tower.turning is None:
        return
    turning = replace(tower.turning, sections=(9, 9, 9))
    with pytest.raises(ModelFileError, match="mrope_section: found"):
        with_images(spec, replace(tower, turning=turning))


def test_published_names_have_a_module_more(tmp_path: Path) -> None:
    model = seeing.ALL["gemma3"]

    def nested(arrays: dict[str, seeing.Array]) -> dict[str, seeing.Array]:
        return {name.replace("vision_tower.", "vision_tower.vision_model."): a for name, a in arrays.items()}

    folder = seeing.write_folder(model, tmp_path / "folder", nested)
    files = find_tower(open_model(folder), folder)
    assert files is not None
    assert "vision_tower.vision_model" in files.spec.tensors["patches"].source


def test_names_of_older_converters_are_taken_by_their_shapes(tmp_path: Path) -> None:
    """They had the two matrices of a feed-forward the other way round."""
    model, other = seeing.ALL["gemma3"], {"ffn_up": "ffn_down", "ffn_down": "ffn_up"}

    def swapped(name: str) -> str:
        part = next((part for part in other if part in name), None)
        return name.replace(part, other[part]) if part else name

    seeing.write_mmproj(model, tmp_path / "mmproj-model.gguf", swapped)
    files = find_tower(LanguageModel(model), tmp_path / "model.gguf")
    assert files is not None
    tower, golden = Tower(files, device=DEVICE), seeing.golden(model)
    rows = tower.encode(Patches(golden.pixels[0], (1, *model.grids[0]), b"")).rows.numpy()
    assert np.abs(rows - golden.rows[0]).max() < 2e-3 * golden.rows[0].std()
    tower.close()


def test_pixels_go_to_a_convolution_of_mlx_in_its_order(tmp_path: Path) -> None:
    model = seeing.ALL["idefics3"]

    def mlx(arrays: dict[str, seeing.Array]) -> dict[str, seeing.Array]:
        return {name: a.transpose(0, 2, 3, 1) if a.ndim == 4 else a for name, a in arrays.items()}

    folder = seeing.write_folder(model, tmp_path / "folder", mlx)
    files = find_tower(open_model(folder), folder)
    assert files is not None
    tower, golden = Tower(files, device=DEVICE), seeing.golden(model)
    rows = tower.encode(Patches(golden.pixels[0], (1, *model.grids[0]), b"")).rows.numpy()
    assert np.abs(rows - golden.rows[0]).max() < 2e-3 * golden.rows[0].std()
    tower.close()


def test_windows_of_an_image_are_checked(tmp_path: Path) -> None:
    model = seeing.ALL["qwen2_5_vl"]
    folder = seeing.write_folder(model, tmp_path / "folder")
    files = find_tower(open_model(folder), folder)
    assert files is not None
    core = _core.ImageEncoder(files.files, files.spec, device=DEVICE)
    pixels, turns = np.zeros((24, 48), np.float32), np.zeros((24, 3), np.uint32)
    for windows, message in (
        ((), "patches of an image's windows are 0, expected 24"),
        ((16, 4), "patches of an image's windows are 20, expected 24"),
        ((10, 14), "patches of a window are 10, expected a multiple of 4"),
        ((24, 0), "patches of a window are 0, expected a multiple of 4"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            core.encode(pixels, None, turns, windows)
    # Windows as small as rows take more pages than the image would.
    assert len(core.encode(pixels, None, turns, (4,) * 6)) == 6
    core.close()


def test_bounds_that_bound_nothing_are_left_out_and_wrong_ones_refused(tmp_path: Path) -> None:
    model = seeing.ALL["gemma4"]

    def bounded(value: float, of: str) -> Path:
        return seeing.write_folder(
            model,
            tmp_path / f"{of}{value}",
            lambda arrays: {
                n: np.float32(value) * abs(a) if n.endswith(of) else a for n, a in arrays.items()
            },
        )

    free = bounded(np.inf, "_max")
    files = find_tower(open_model(free), free)
    assert files is not None
    assert not [name for name in files.spec.tensors if name.endswith("_max")]
    assert [name for name in files.spec.tensors if name.endswith("_min")]
    wrong = bounded(-9.0, "_max")
    files = find_tower(open_model(wrong), wrong)
    assert files is not None
    with pytest.raises(ModelFileError, match=r"the bounds of 'layers\.0\.attn_q_input' are"):
        Tower(files, device=DEVICE)
