"""Write what Transformers computes of tiny models that see: `python -m tools.make_tower_golden [NAME...]`.

Run with tests/ on the path, where torch and Transformers are installed, for the rows of
`tests/api/vision/seeing.py` that you change, and commit what it writes to tests/data/vision.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors import safe_open

from api.vision import seeing


def model_of(row: seeing.Seeing, folder: Path) -> Any:
    """The model in float32; names, shapes and settings that Transformers saves go to the data first."""
    config = getattr(transformers, f"{row.hf}Config")(
        text_config={"pad_token_id": 0, **row.text},
        vision_config=dict(row.vision),
        **{
            "tie_word_embeddings": False,
            "image_token_index" if row.hf == "Mistral3" else "image_token_id": row.image_token,
            **row.model,
        },
    )
    made = getattr(transformers, f"{row.hf}ForConditionalGeneration")
    made(config).save_pretrained(folder)
    with safe_open(str(folder / "model.safetensors"), "np") as file:
        shapes = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
    seeing.DATA.mkdir(exist_ok=True)
    found = {"config": json.loads((folder / "config.json").read_text()), "shapes": shapes}
    (seeing.DATA / f"{row.name}.json").write_text(json.dumps(found, indent=1) + "\n")
    seeing.write_folder(row, folder)
    return made.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


def in_merge_order(pixels: np.ndarray[Any, Any], grid: tuple[int, int], merge: int) -> np.ndarray[Any, Any]:
    """Patches [rows * columns, ...] in the order in which those of a row stand together."""
    rows, columns = grid
    order = np.arange(rows * columns).reshape(rows // merge, merge, columns // merge, merge)
    return pixels[order.transpose(0, 2, 1, 3).reshape(-1)]


def patch_of(row: seeing.Seeing) -> int:
    """Pixels on the side of what the tower multiplies."""
    side: int = row.vision["patch_size"]
    return side * row.vision["pooling_kernel_size"] if row.hf == "Gemma4Unified" else side


def seen(row: seeing.Seeing, model: Any, images: list[np.ndarray[Any, Any]]) -> tuple[Any, dict[str, Any]]:
    """The rows of all images, one behind the other, and what the model is called with.

    Each image is float32 [patches, 3, 1, patch * patch], row by row.
    """
    patch, grids = patch_of(row), row.grids
    if row.hf.startswith("Gemma4"):
        n = max(map(len, images))
        padded = np.zeros((len(images), n, 3 * patch * patch), np.float32)
        places = np.full((len(images), n, 2), -1)
        for i, (image, (height, width)) in enumerate(zip(images, grids, strict=True)):
            padded[i, : len(image)] = image.transpose(0, 2, 3, 1).reshape(len(image), -1)
            numbers = np.arange(height * width)
            places[i, : len(image)] = np.stack([numbers % width, numbers // width], -1)
        pixels, positions = torch.tensor(padded), torch.tensor(places)
        found = model.model.get_image_features(pixels, image_position_ids=positions)
        return torch.cat(list(found.pooler_output)), {"pixel_values": pixels, "image_position_ids": positions}
    if row.name.startswith("qwen"):
        film = [
            np.repeat(in_merge_order(image, grid, row.merge), row.vision["temporal_patch_size"], axis=2)
            for image, grid in zip(images, grids, strict=True)
        ]
        pixels = torch.tensor(np.concatenate([each.reshape(len(each), -1) for each in film]))
        thw = torch.tensor([(1, *grid) for grid in grids])
        found = model.model.visual(pixels, grid_thw=thw)
        parts = [found.pooler_output, *(getattr(found, "deepstack_features", None) or [])]
        return torch.cat(parts, dim=-1), {"pixel_values": pixels, "image_grid_thw": thw}
    if row.hf == "Lfm2Vl":
        n = max(map(len, images))
        padded = np.zeros((len(images), n, 3 * patch * patch), np.float32)
        mask = np.zeros((len(images), n), np.int64)
        for i, image in enumerate(images):
            padded[i, : len(image)] = image.transpose(0, 2, 3, 1).reshape(len(image), -1)
            mask[i, : len(image)] = 1
        shapes, kept = torch.tensor(grids), torch.tensor(mask)
        pixels = torch.tensor(padded)
        found = model.model.get_image_features(pixels, spatial_shapes=shapes, pixel_attention_mask=kept)
        given = {"pixel_values": pixels, "spatial_shapes": shapes, "pixel_attention_mask": kept}
        return torch.cat(list(found.pooler_output)), given
    pictures = [
        image.reshape(*grid, 3, patch, patch).transpose(2, 0, 3, 1, 4).reshape(3, grid[0] * patch, -1)
        for image, grid in zip(images, grids, strict=True)
    ]
    if row.hf == "Mistral3":
        height, width = (max(grid[i] for grid in grids) * patch for i in (0, 1))
        padded = np.zeros((len(pictures), 3, height, width), np.float32)
        for to, picture in zip(padded, pictures, strict=True):
            to[:, : picture.shape[1], : picture.shape[2]] = picture
        pixels = torch.tensor(padded)
        sizes = torch.tensor([(h * patch, w * patch) for h, w in grids])
        found = model.model.get_image_features(pixels, image_sizes=sizes)
        return torch.cat(list(found.pooler_output)), {"pixel_values": pixels, "image_sizes": sizes}
    pixels = torch.tensor(np.stack(pictures).astype(np.float32))
    if row.name == "idefics3":
        found = model.model.get_image_features(pixels[None])
        return torch.cat(list(found.pooler_output)), {"pixel_values": pixels[None]}
    found = model.model.get_image_features(pixels)
    return found.pooler_output.flatten(0, 1), {"pixel_values": pixels}


def make(row: seeing.Seeing) -> None:
    """Write the data of one model."""
    rng = np.random.default_rng(row.seed)
    with tempfile.TemporaryDirectory() as folder:
        model = model_of(row, Path(folder))
    patch = patch_of(row)
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    images, ids, kinds = [], [11, 12], [0, 0]
    for i, (height, width) in enumerate(row.grids):
        pixels = rng.standard_normal((height * width, 3, 1, patch * patch)).astype(np.float16)
        own = in_merge_order(pixels, (height, width), row.merge)
        arrays[f"pixels{i}"] = own.reshape(height * width, -1)
        images.append(pixels.astype(np.float32))
        n = height * width // row.merge**2
        words = rng.integers(5, 200, 7 + i).tolist()
        ids += [row.image_token] * n + words
        kinds += [1] * n + [0] * len(words)
    with torch.no_grad():
        rows, arguments = seen(row, model, images)
        counts = [h * w // row.merge**2 for h, w in row.grids]
        for i, part in enumerate(torch.split(rows, counts)):
            arrays[f"rows{i}"] = part.numpy()
        if row.hf.startswith(("Qwen", "Gemma4")):
            arguments["mm_token_type_ids"] = torch.tensor([kinds])
        if row.name == "gemma3":
            arguments["token_type_ids"] = torch.tensor([kinds])
        if row.hf == "Gemma4Unified":
            # Its forward alone has layers without a window see whole images, too; where it generates, not.
            module = sys.modules[type(model).__module__]
            blocks = module.get_block_sequence_ids_for_mask(
                arguments["mm_token_type_ids"], device=rows.device
            )
            arguments["attention_mask"] = module.create_masks_for_vision_model(
                config=model.config.get_text_config(),
                inputs_embeds=torch.zeros(1, len(ids), row.text["hidden_size"]),
                attention_mask=None,
                cache=None,
                position_ids=torch.arange(len(ids))[None],
                block_sequence_ids=blocks,
            )
        logits = model(input_ids=torch.tensor([ids]), **arguments).logits
    arrays["ids"] = np.array(ids, np.uint32)
    arrays["logits"] = logits[0].numpy()
    np.savez_compressed(seeing.DATA / f"{row.name}.npz", **arrays)
    print(row.name, {name: array.shape for name, array in arrays.items()}, float(logits.std()))


if __name__ == "__main__":
    rows = {**seeing.ALL, **seeing.ODD}
    for name in sys.argv[1:] or rows:
        make(rows[name])
