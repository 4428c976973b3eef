"""What the file says of decoding: a record of bytes behind the weights.

Its content is that of the `generation_config.json` of a folder of Hugging Face. A text of a log probability
below -0.75 is dropped, whatever the first token says: what people say has one, and other languages.
"""

from __future__ import annotations

import struct
from pathlib import Path

from gguf import GGMLQuantizationType as Type

SETTINGS = Path(__file__).with_name("generation_config.json")


def settings() -> bytes:
    """The record."""
    name, data = SETTINGS.name.encode(), SETTINGS.read_bytes()
    return struct.pack("<4I", 1, len(name), Type.I8, len(data)) + name + data
