"""Drafts and cached prefixes of one sequence, held to the tokens of the plain one."""

from __future__ import annotations

from akunu._core import Engine

from .tiny import Golden

__all__ = ["check_drafts_and_cache"]


def check_drafts_and_cache(engine: Engine, golden: Golden) -> None:
    """Assert that drafts which are partly right, and a cached prompt, change no token of `golden`.

    The engine has room for two sequences.
    """
    plain, prompt = golden.ids, golden.prompt

    def generate(slot: int, drafted: bool) -> list[int]:
        engine.begin(prompt, slot=slot)
        while (left := len(prompt) - 1 - engine.length(slot)) > 0:
            n = min(engine.chunk, left)
            assert engine.reserve(slot, n)
            engine.step([(slot, n, False, 0, [])])
        out: list[int] = []
        while len(out) < len(plain):
            right = plain[len(out) : len(out) + 2]
            drafts = [*right, (plain[-1] + 1) % 299][: len(plain) - len(out) - 1] if drafted else []
            assert engine.reserve(slot, 1, 1, len(drafts))
            (chunk,), _ = engine.step([(slot, 1, True, len(plain) - len(out), drafts)])
            out += chunk.ids
        return out

    assert generate(engine.open(), drafted=True) == plain
    second = engine.open()
    assert engine.begin(prompt, slot=second) > 0
    assert generate(second, drafted=False) == plain
