"""Make tests/data/golden/mlx_quantized.npz: matrices that the PyPI package mlx quantized and dequantized.

Usage: PYTHONPATH=tests python -m tools.make_mlx_golden

Needs mlx, whose CPU build is enough. The scales are float32, so that mlx rounds as often as float32 does.
"""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
from formats.mlx_planes import BITS, GROUPS, MODES  # noqa: E402

ROWS, COLS = 3, 128


def main() -> None:
    mx.set_default_device(mx.cpu)
    arrays: dict[str, np.ndarray] = {}
    for bits in BITS:
        for group in GROUPS:
            rng = np.random.RandomState(10 * group + bits)
            values = rng.standard_normal((ROWS, COLS)).astype(np.float32)
            planes = mx.quantize(mx.array(values), group_size=group, bits=bits)
            name = f"affine_{bits}_{group}"
            for part, plane in zip(("codes", "scales", "biases"), planes, strict=True):
                arrays[f"{name}_{part}"] = np.array(plane)
            arrays[f"{name}_values"] = np.array(mx.dequantize(*planes, group_size=group, bits=bits))
    for mode in MODES:
        rng = np.random.RandomState(len(arrays))
        values = rng.standard_normal((ROWS, COLS)) * 2.0 ** rng.randint(-12, 3, (ROWS, COLS // 16)).repeat(
            16, 1
        )
        planes = mx.quantize(mx.array(values.astype(np.float32)), mode=mode)
        arrays[f"{mode}_codes"], arrays[f"{mode}_scales"] = (np.array(plane) for plane in planes)
        arrays[f"{mode}_values"] = np.array(mx.dequantize(*planes, mode=mode, dtype=mx.float32))
    np.savez_compressed(ROOT / "tests" / "data" / "golden" / "mlx_quantized.npz", **arrays)


if __name__ == "__main__":
    main()
