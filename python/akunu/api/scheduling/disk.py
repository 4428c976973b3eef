"""The cache's second tier: pages that sequences leave behind, in files.

When a sequence ends or is set aside, a thread of its own writes its pages, one at a time, and not faster than
others notice: it copies a page between two steps, and rests beside sequences that run. The thread lives as
long as there is something to write. A page that gave its memory to others before it was written is not kept.

A prompt goes on where memory ends: its pages are read between steps, a few milliseconds' worth at a time
beside sequences that run. Of layers with a window, and of states, files have what memory had when the
sequence ended: what goes on behind its prompt, or behind all of it. A prompt goes on as far as files have all
that it needs.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from akunu._core import PAGE
from akunu.api.scheduling.page_files import DamagedPageError
from akunu.api.scheduling.page_parts import PageParts
from akunu.api.scheduling.prefix import Prefix

if TYPE_CHECKING:
    import numpy.typing as npt

    from akunu._core import Engine
    from akunu.api.scheduling.page_files import PageFiles
    from akunu.api.scheduling.sequence import Sequence

__all__ = ["DiskTier", "PageData"]

ASIDE_SECONDS: Final = 0.040
BESIDE_SECONDS: Final = 0.005
"""Seconds that reading may take between two steps: while no sequence runs, and while some do."""
REST: Final = 9.0
"""While sequences run, the writer rests so many times as long as it worked."""
PENDING: Final = 1024
"""Sequences that wait to be written, the latest."""

PageData = list["npt.NDArray[np.uint8] | None"]
"""The parts of a page."""
ReadPage = Callable[[Prefix, list[int]], PageData | None]


class DiskTier:
    """Writes the pages of sequences that end, and reads those of sequences that begin.

    Parameters
    ----------
    files
        Where they are.
    parts
        The parts of pages.
    read_page
        `Engine.read_page` of some parts, between two steps; called from the tier's thread.
    busy
        Whether sequences run.
    """

    def __init__(
        self, files: PageFiles, parts: PageParts, read_page: ReadPage, busy: Callable[[], bool]
    ) -> None:
        self._files = files
        self._parts = parts
        self._read_page = read_page
        self._busy = busy
        self._changed = threading.Condition()
        self._pending: deque[tuple[Prefix, int]] = deque(maxlen=PENDING)
        self._kept = 0  # sequences, from the first on
        self._thread: threading.Thread | None = None
        self._writing = False
        self._flushing = 0
        self._hurry = threading.Event()
        # All are there from the beginning: they are read while the thread counts.
        self.counts = Counter(dict.fromkeys(("tokens", "written", "unwritten", "damaged", "vanished"), 0))

    # -- from memory -----------------------------------------------------------------------------------------

    def keep(self, prefix: Prefix, prompt: int) -> None:
        """Write the whole pages of a sequence, whose first `prompt` tokens others may begin with, soon."""
        if len(prefix.ids) < PAGE:
            return
        with self._changed:
            self._pending.append((prefix, prompt))
            self._kept += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._write_all, name="akunu-pages", daemon=True)
                self._thread.start()

    def flush(self) -> None:
        """Wait until all that was to be kept before this call is written."""
        with self._changed:
            thread, last = self._thread, self._kept
            if thread is None:
                return
            self._flushing += 1
            self._hurry.set()
            try:
                self._changed.wait_for(
                    lambda: self._thread is not thread or self._kept - self._left() >= last
                )
            finally:
                self._flushing -= 1
                if not self._flushing:
                    self._hurry.clear()
            ending = self._thread is not thread
        if ending:
            thread.join()

    def _left(self) -> int:
        """Sequences that are not written, with the one that is being written."""
        return len(self._pending) + self._writing

    def _write_all(self) -> None:
        while True:
            with self._changed:
                self._changed.notify_all()
                self._writing = bool(self._pending)
                if not self._writing:
                    self._thread = None
                    return
                prefix, prompt = self._pending.popleft()
            try:
                self._write(prefix, prompt)
            except Exception as error:  # of the device too: the thread goes on, for later sequences
                with self._changed:
                    self._pending.clear()
                self.counts["unwritten"] += 1
                warnings.warn(f"cache_dir: a page cannot be kept: {error}", RuntimeWarning, stacklevel=1)

    def _write(self, prefix: Prefix, prompt: int) -> None:
        keys = self._files.keys(prefix)
        ends = {len(keys), min((prompt - 1) // PAGE, len(keys))}  # the last token of a prompt always runs
        for i, key in enumerate(keys, 1):
            useful = self._parts.useful(i - 1, ends) | {0}
            lacking = sorted(part for part in useful if not self._files.holds(key, part))
            if not lacking:
                continue
            began = time.perf_counter()
            page = self._read_page(prefix.first(i * PAGE), lacking)
            if page is None:  # nor are those that follow it there
                break
            for part in lacking:
                if (data := page[part]) is not None:
                    self._files.write(key, prefix.ids[: i * PAGE], data, part)
            self.counts["written"] += 0 in lacking
            if self._busy():
                self._hurry.wait(REST * (time.perf_counter() - began))
        now = time.time_ns()
        for i, key in enumerate(keys):
            self._files.touch(key, now - i)

    # -- to memory -------------------------------------------------------------------------------------------

    def seek(self, sequence: Sequence, until: float) -> bool:
        """Look for pages that follow what the cache holds of a sequence until `time.perf_counter()` is
        `until`.

        One page at least is looked for; the last token runs. Returns whether all were.
        """
        assert sequence.sought is not None
        if sequence.sought == 0:
            sequence.seek_names = self._files.keys(sequence.prefix(sequence.known - 1))
            sequence.seek_time = time.time_ns()
        first = sequence.length // PAGE
        for i in range(sequence.sought, len(names := sequence.seek_names)):
            if i > sequence.sought and time.perf_counter() >= until:
                sequence.sought = i
                return False
            if i >= first:
                if not self._files.holds(names[i]):
                    break
                self._files.announce(names[i])
                sequence.kept.append(names[i])
            self._files.touch(names[i], sequence.seek_time - i)
        reach = self._parts.reach(
            first, first + len(sequence.kept), lambda page, part: self._files.holds(names[page], part)
        )
        while len(sequence.kept) > reach - first:
            sequence.kept.pop()
        sequence.sought, sequence.seek_names = None, []
        return True

    def restore(self, engine: Engine, sequence: Sequence, until: float) -> None:
        """Read pages of a sequence until `time.perf_counter()` is `until`, one at least."""
        if not sequence.kept:
            return
        assert sequence.slot is not None
        ids = sequence.ids()
        while sequence.kept:
            index, pages = sequence.length // PAGE, sequence.length // PAGE + len(sequence.kept)
            end, needed = (index + 1) * PAGE, self._parts.needed(index, pages)
            try:
                taken = engine.restore_page(
                    sequence.slot,
                    [
                        self._files.read(sequence.kept[0], ids[:end], part) if part in needed else None
                        for part in range(len(self._parts.sizes))
                    ],
                )
            except (OSError, DamagedPageError) as error:
                self.counts["damaged" if isinstance(error, DamagedPageError) else "vanished"] += 1
                taken = False
            if not taken:  # the rest is run
                sequence.kept.clear()
                break
            sequence.kept.popleft()
            sequence.restored(end)
            self.counts["tokens"] += PAGE
            if sequence.cancelled:
                sequence.kept.clear()
            if time.perf_counter() >= until:
                break
        if not sequence.kept:
            length = engine.finish_restoring(sequence.slot)
            self.counts["tokens"] -= sequence.length - length
            sequence.restored(length)
