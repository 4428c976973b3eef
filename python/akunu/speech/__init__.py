"""Whisper's policy: what is asked of a model, and what is made of its answers. Nothing here computes a model.

``config`` and ``tokenizer`` know a model's sizes and tokens; ``options`` what a caller may choose; ``rules``
which token may come next; ``decoding`` runs a window (greedily, by sampling, by beams, with fallbacks);
``transcription`` moves the window over a recording; ``alignment`` gives words their times; ``writers`` write
files.
"""

from __future__ import annotations
