"""Write what Transformers computes of tiny models that see: `python -m tools.make_tower_golden [NAME...]`.

Run with tests/ on the path, where torch and Transformers are installed, for the rows of
`tests/vision/seeing.py` that you change, and commit what it writes to tests/data/vision.
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

from vision import seeing


def model_of(row: seeing.Seeing, folder: Path) -> Any:
    """The model in float32; names, shapes and settings that Transformers saves go to the data first."""
    config = getattr(transformers, f"{row.hf}Config")(
        text_config={"pad_token_id": 0, **row.text},
        vision_config=dict(row.vision),
        tie_word_embeddings=False,
        image_token_id=row.image_token,
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


def make(row: seeing.Seeing) -> None:
    """Write the data of one model."""
    rng = np.random.default_rng(row.seed)
    with tempfile.TemporaryDirectory() as folder:
        model = model_of(row, Path(folder))
    vision = row.vision
    patch, merge = vision["patch_size"], vision["spatial_merge_size"]
    frames = vision["temporal_patch_size"]
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    shown, ids, kinds = [], [11, 12], [0, 0]
    for i, (height, width) in enumerate(row.grids):
        pixels = rng.standard_normal((height * width, 3, 1, patch * patch)).astype(np.float16)
        arrays[f"pixels{i}"] = pixels.reshape(height * width, -1)
        film = np.broadcast_to(pixels, (height * width, 3, frames, patch * patch)).astype(np.float32)
        shown.append(torch.tensor(film.reshape(height * width, -1)))
        n = height * width // merge**2
        words = rng.integers(5, 200, 7 + i).tolist()
        ids += [row.image_token] * n + words
        kinds += [1] * n + [0] * len(words)
    grids = torch.tensor([(1, *grid) for grid in row.grids])
    with torch.no_grad():
        seen = model.model.visual(torch.cat(shown), grid_thw=grids)
        parts = [seen.pooler_output, *getattr(seen, "deepstack_features", [])]
        rows = torch.cat(parts, dim=-1)
        counts = [h * w // merge**2 for h, w in row.grids]
        for i, part in enumerate(torch.split(rows, counts)):
            arrays[f"rows{i}"] = part.numpy()
        logits = model(
            input_ids=torch.tensor([ids]),
            pixel_values=torch.cat(shown),
            image_grid_thw=grids,
            mm_token_type_ids=torch.tensor([kinds]),
        ).logits
    arrays["ids"] = np.array(ids, np.uint32)
    arrays["logits"] = logits[0].numpy()
    np.savez_compressed(seeing.DATA / f"{row.name}.npz", **arrays)
    print(row.name, {name: array.shape for name, array in arrays.items()}, float(logits.std()))


if __name__ == "__main__":
    for name in sys.argv[1:] or seeing.ALL:
        make(seeing.ALL[name])
