"""A window's tokens become segments, and say where the next window begins."""

from __future__ import annotations

import pytest

from akunu.speech.segments import cut

from . import tiny
from .scripted import said


@pytest.mark.parametrize(
    ("tokens", "expected", "advance"),
    [
        # A single timestamp at the end: nothing follows in the window.
        (said(0.0, " and so", 2.0), [(10.0, 12.0)], 30.0),
        (said(0.0, " and", 2.0, 2.0, " so", 4.5), [(10.0, 12.0), (12.0, 14.5)], 30.0),
        # Text after the last pair, and a pair at the end: that is heard again.
        (said(0.0, " and", 2.0, 2.5, " so"), [(10.0, 12.0)], 2.0),
        (said(0.4, " and", 2.0, 2.0, " so", 4.0, 4.0), [(10.4, 12.0), (12.0, 14.0)], 4.0),
        # No pair: one segment up to the last timestamp, or the end of the window.
        (said(0.0, " and so"), [(10.0, 40.0)], 30.0),
        (said(" and so"), [(10.0, 40.0)], 30.0),
        ([], [(10.0, 40.0)], 30.0),
    ],
)
def test_segments_and_the_way_on(
    tokens: list[int], expected: list[tuple[float, float]], advance: float
) -> None:
    drafts, forward = cut(tokens, tiny.tokenizer(), 10.0, 30.0)
    assert [(round(draft.start, 6), round(draft.end, 6)) for draft in drafts] == expected
    assert forward == advance
    kept = [token for draft in drafts for token in draft.tokens]
    assert kept == tokens[: len(kept)]
