"""Many texts on one engine: what a text is, and who gets rows in the next step."""

from akunu.scheduling.counts import ModelStats
from akunu.scheduling.scheduler import Scheduler
from akunu.scheduling.sequence import Sequence, Written

__all__ = ["ModelStats", "Scheduler", "Sequence", "Written"]
