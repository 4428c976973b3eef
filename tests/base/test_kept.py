"""Values that are kept within a number of bytes."""

from __future__ import annotations

from akunu.base.kept import Kept


def test_what_was_not_used_for_longest_gives_way() -> None:
    kept: Kept[str, bytes] = Kept(10, len)
    kept.keep("a", b"1234")
    kept.keep("b", b"1234")
    assert kept.get("a") == b"1234"
    kept.keep("c", b"1234")
    assert (kept.get("a"), kept.get("b"), kept.get("c")) == (b"1234", None, b"1234")
    assert kept.bytes == 8
    kept.keep("a", b"other")  # there is one
    assert (kept.get("a"), kept.bytes) == (b"1234", 8)


def test_the_latest_is_kept_however_large_it_is() -> None:
    kept: Kept[int, bytes] = Kept(10, len)
    kept.keep(1, b"1234")
    kept.keep(2, bytes(100))
    assert kept.get(1) is None
    assert kept.bytes == 100
    kept.keep(3, b"12")
    kept.forget(3)
    kept.forget(4)
    assert (kept.get(3), kept.bytes, len(kept)) == (None, 0, 0)
    kept.keep(2, b"1234")
    kept.clear()
    assert (kept.get(2), kept.bytes) == (None, 0)
