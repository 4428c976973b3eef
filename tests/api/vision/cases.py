"""Images and processors, of which `tools/make_image_golden.py` keeps what Transformers makes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

GOLDEN = Path(__file__).parents[2] / "data" / "golden" / "images.npz"
SAMPLES = 256
"""Values of each image that are kept."""


@dataclass(frozen=True)
class Case:
    """A processor, by its family and settings; the sizes (height, width) of images; most tokens of each."""

    name: str
    family: str
    layout: str
    patch_size: int
    merge_size: int
    temporal_patch_size: int = 1
    image_size: int = 0
    processor: dict[str, Any] = field(default_factory=dict)
    sizes: tuple[tuple[int, int], ...] = ((60, 83), (300, 211), (97, 640), (33, 21))
    tokens: int | None = None


HALF = [0.5, 0.5, 0.5]
QWEN3 = {"size": {"shortest_edge": 65536, "longest_edge": 16777216}, "image_mean": HALF, "image_std": HALF}
SMOLVLM = {
    "size": {"longest_edge": 2048},
    "max_image_size": {"longest_edge": 512},
    "image_mean": HALF,
    "image_std": HALF,
}
LFM2 = {"image_mean": HALF, "image_std": HALF}
QWEN2 = {"min_pixels": 3136, "max_pixels": 12845056}
GEMMA3 = {"resample": 2, "image_mean": HALF, "image_std": HALF}
SCAN = {
    "do_pan_and_scan": True,
    "pan_and_scan_min_crop_size": 256,
    "pan_and_scan_max_num_crops": 4,
    "pan_and_scan_min_ratio_to_activate": 1.2,
}
SMALL = ((60, 83), (300, 211), (97, 640))
WIDE = ((300, 1000), (900, 400), (100, 2000))
TALL = ((60, 83), (300, 511), (10, 1990))
CASES = (
    Case("qwen2-vl", "qwen2_vl", "qwen", 14, 2, 2, processor=QWEN2),
    Case("qwen2-vl-small", "qwen2_vl", "qwen", 14, 2, 2, processor={**QWEN2, "max_pixels": 28 * 28 * 20}),
    Case("qwen3-vl", "qwen3_vl", "qwen", 16, 2, 2, processor=QWEN3, sizes=TALL),
    Case("qwen3-vl-budget", "qwen3_vl", "qwen", 16, 2, 2, processor=QWEN3, sizes=((700, 911),), tokens=100),
    Case("gemma3", "gemma3", "image", 14, 4, image_size=896, processor=GEMMA3),
    Case("gemma3-scan", "gemma3", "image", 14, 4, image_size=896, processor=SCAN, sizes=WIDE),
    Case("gemma4", "gemma4", "rows", 16, 3, sizes=(*SMALL, (5, 3000), (3000, 5))),
    Case("gemma4-1120", "gemma4", "rows", 16, 3, sizes=((600, 411),), tokens=1120),
    Case("gemma4-unified", "gemma4_unified", "rows", 48, 1, tokens=70),
    Case("smolvlm", "idefics3", "image", 16, 4, image_size=512, processor=SMOLVLM, sizes=SMALL),
    Case("idefics3-one", "idefics3", "image", 14, 2, image_size=364, processor={"do_image_splitting": False}),
    Case("idefics3", "idefics3", "image", 14, 2, image_size=364, sizes=((300, 211), (20, 700))),
    Case("lfm2-vl", "lfm2_vl", "rows", 16, 2, processor=LFM2, sizes=(*SMALL[:2], (900, 700), (500, 2400))),
    Case("pixtral", "pixtral", "image", 16, 1, image_size=1024, sizes=(*SMALL[:2], (97, 1640), (6, 3000))),
    Case("mistral3", "pixtral", "image", 14, 2, image_size=1540, sizes=((60, 83), (700, 1900))),
)


def picture(size: tuple[int, int]) -> npt.NDArray[np.uint8]:
    """An image of this size that has slopes, edges and noise, always the same."""
    height, width = size
    y, x = np.mgrid[:height, :width]
    noise = np.random.RandomState(height * 7919 + width).randint(0, 64, (height, width, 3))
    slopes = np.stack([x * 190 // max(width, 1), y * 190 // max(height, 1), (x + y) % 191], -1)
    slopes[(x // 16 + y // 16) % 5 == 0] = 20
    return (slopes + noise).astype(np.uint8)


def samples(values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Some of the values, of all parts of the array."""
    flat = np.asarray(values, np.float32).reshape(-1)
    return flat[np.random.RandomState(flat.size & 0x7FFFFFFF).randint(0, flat.size, SAMPLES)]
