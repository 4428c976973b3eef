"""The recordings within a file, where its head does not tell the truth about what follows.

What records into a pipe cannot know a length when it writes the head, what joins files keeps the head of the
first, and sizes of 32 bits wrap. libsndfile believes the head. Here the file itself is looked at, and where
it holds more than its head says, the recordings in it are described anew: each as a head and what follows it.
"""

from __future__ import annotations

from akunu.audio import flac, mpeg, ogg
from akunu.audio.chunks import FORMATS, au_recordings
from akunu.audio.parts import Bytes, FileRecording, after_id3

__all__ = ["recordings"]


def recordings(file: Bytes) -> list[FileRecording]:
    """The recordings of a file; none where libsndfile may read it as it is."""
    begin = 0
    while (tag := file.at(begin, 10))[:3] == b"ID3" and len(tag) == 10:
        begin = after_id3(tag, begin)
    for magic, found in (
        *((form.magic, form.recordings) for form in FORMATS),
        (b".snd", au_recordings),
        (b"fLaC", flac.recordings),
        (b"OggS", ogg.recordings),
    ):
        if file.at(begin, len(magic)) == magic:
            parts = list(found(file, begin))
            changed = len(parts) > 1 or any(part.head or part.announced or part.cut for part in parts)
            return parts if changed else []
    return mpeg.recordings(file, begin)
