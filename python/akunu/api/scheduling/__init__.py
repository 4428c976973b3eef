"""Many sequences on one engine: what a sequence is, and who gets rows in the next step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from akunu.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from akunu.api.scheduling.counts import ModelStats
    from akunu.api.scheduling.scheduler import Scheduler
    from akunu.api.scheduling.sequence import ConstrainedChunk, Sequence

__all__ = ["ConstrainedChunk", "ModelStats", "Scheduler", "Sequence"]

_HOME: Final = {
    "ModelStats": "akunu.api.scheduling.counts",
    "Scheduler": "akunu.api.scheduling.scheduler",
    "Sequence": "akunu.api.scheduling.sequence",
    "ConstrainedChunk": "akunu.api.scheduling.sequence",
}

__getattr__ = lazy_names(__name__, _HOME, globals())
