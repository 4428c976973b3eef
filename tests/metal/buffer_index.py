"""Where a Metal kernel finds its parameters and scratch memory: ``metal/include/buffer_index.h``."""

from __future__ import annotations

import re
from pathlib import Path

_HEADER = Path(__file__).resolve().parents[2] / "metal" / "include" / "buffer_index.h"
_VALUES = dict(re.findall(r"(\w+) = (\d+),", _HEADER.read_text()))

PARAMS, SCRATCH = int(_VALUES["kParamsIndex"]), int(_VALUES["kScratchIndex"])
