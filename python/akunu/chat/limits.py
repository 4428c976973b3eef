"""Limits of rendering a chat template."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["RenderLimits"]


@dataclass(frozen=True)
class RenderLimits:
    """The limits of rendering one chat; they are far above what real templates need."""

    source_chars: int = 1 << 20
    """Length of a template."""
    input_chars: int = 1 << 23
    """Characters in all messages, tools and variables."""
    chars: int = 1 << 26
    """Characters made along the way, those written included."""
    steps: int = 2_000_000
    """Loop passes, calls and filters."""
    depth: int = 48
    """Nesting of lists and mappings."""
    seconds: float = 10.0
    """Time, for what the other limits let through."""

    def for_a_word(self) -> RenderLimits:
        """Return the limits for a conversation of a few words."""
        return replace(self, chars=self.chars // 64, steps=self.steps // 128, seconds=self.seconds / 16)
