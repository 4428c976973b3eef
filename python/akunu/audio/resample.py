"""Any sampling rate to 16 kHz, piece by piece."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from akunu.audio.pcm import SAMPLE_RATE, Samples

__all__ = ["resampled"]


def resampled(blocks: Iterable[Samples], rate: int) -> Iterator[Samples]:
    """The blocks, sampled `rate` times a second, at 16 kHz; the pieces have other lengths than the blocks."""
    if rate == SAMPLE_RATE:
        yield from blocks
        return
    import soxr

    stream = soxr.ResampleStream(rate, SAMPLE_RATE, 1, dtype="float32", quality="HQ")
    for block in blocks:
        yield stream.resample_chunk(block)
    yield stream.resample_chunk(np.zeros(0, np.float32), last=True)
