"""Whether phases of a model, as its prompt at once and in single steps, agree."""

from __future__ import annotations

import os

import numpy as np

DEVICE = os.environ.get("AKUNU_TEST_DEVICE", "cpu")
#: GPUs have other kernels for one row, a few and many, which sum in another order: of F32, and of inputs
#: that are F16. A router's near-tie may choose another expert for some rows; so half of them have to be this
#: close.
BOUNDS = {"F32": 1e-10, "F16 inputs": 1e-4}


def agree(found: np.ndarray, whole: np.ndarray, dtype: str = "F32") -> bool:
    """Whether logits [rows, vocabulary] are the same bits, or on a GPU as close as another order allows."""
    if not DEVICE.startswith("cuda"):
        return np.array_equal(found, whole)
    errors = ((found - whole) ** 2).sum(axis=1) / (whole**2).sum(axis=1)
    return bool(np.median(errors) < BOUNDS["F32" if dtype == "F32" else "F16 inputs"])
