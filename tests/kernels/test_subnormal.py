"""The int8 formats near the end of binary32's range, where 127 / max|x| would overflow."""

from __future__ import annotations

import numpy as np
import pytest

from akunu import _core

from . import reference as ref
from .devices import Target, cpu_targets, lab
from .problem import pack, struct

TINY = float(np.finfo(np.float32).tiny)  # the smallest normal number
TOPS = [127 * TINY, 126.9 * TINY, TINY, TINY / 2, 2.0**-149, 0.0]
DIM = 64


def rows() -> np.ndarray:
    """A row for each maximum; some values are half of it, some are zero."""
    shape = np.tile([1.0, -0.5, 0.0, -1.0], DIM // 4)
    return (np.array(TOPS)[:, None] * shape).astype(np.float32)


@pytest.mark.parametrize("target", cpu_targets(), ids=lambda t: t.id)
def test_blocks_too_small_for_a_scale_are_zeros(target: Target) -> None:
    x, device = rows(), lab(target)
    out = np.full(device.activation_bytes("q8", len(x), DIM), 0xFF, np.uint8)
    device.run("quantize", [x, None, out], pack("quantize", rows=len(x), dim=DIM, formats=2))
    planes = _core.lab_q8_planes(out, len(x), DIM)
    q, d = ref.quantize_q8(x)
    assert (d[0] > 0).all() and (np.abs(q[0]).max() == 127) and not d[1:].any() and not q[1:].any()
    np.testing.assert_array_equal(planes["q"], q)
    np.testing.assert_array_equal(planes["d"], d)
    assert not planes["s"][1:].any() and not planes["s16"][1:].any()


@pytest.mark.parametrize("target", cpu_targets(), ids=lambda t: t.id)
@pytest.mark.parametrize("top", TOPS)
def test_cached_values_too_small_for_a_scale_are_zeros(target: Target, top: float) -> None:
    device, zeros = lab(target), np.zeros(DIM, np.float32)
    v = rows()[TOPS.index(top)]
    cache = np.full(device.kv_page_bytes("q8_0", 1, DIM), 0xFF, np.uint8)
    where, pages = np.zeros(1, struct("Row")), np.zeros(1, np.uint32)
    shape = {"rows": 1, "step": 0, "n_heads": 1, "n_kv_heads": 1, "head_dim": DIM, "max_pages": 1}
    shape["page_words"] = len(cache) // 4
    device.run(
        "prepare_heads",
        [zeros.copy(), v.copy(), v, zeros[:2].copy(), cache, None, where, pages],
        pack("prepare_heads", **shape, rope_dim=2, style=0, qk_norm=0, eps=1e-5),
        kv_dtype="q8_0",
    )
    out = np.full(DIM, np.nan, np.float32)  # of one key: its value
    device.run(
        "attention",
        [np.ones(DIM, np.float32), cache, out, where, pages],
        pack(
            "attention",
            **shape,
            keys=1,
            window=0,
            scale=1.0,
            softcap=0.0,
            formats=1,
            bidirectional=0,
            fixed_keys=0,
            row_ends=0,
            latent=0,
        ),
        kv_dtype="q8_0",
    )
    expected = v if top >= 127 * TINY else zeros
    np.testing.assert_allclose(out, expected, rtol=0, atol=0.51 * top / 127 if expected.any() else 0)
