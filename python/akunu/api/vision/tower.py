"""A tower that runs: from the patches of an image to rows for a text. What it made lately is kept."""

from __future__ import annotations

import threading
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import numpy.typing as npt

from akunu import _core
from akunu.api.vision.inputs import Encoded
from akunu.api.vision.positions import spread_positions
from akunu.base.errors import InvalidArgumentError, ModelFileError
from akunu.base.kept import Kept

if TYPE_CHECKING:
    from collections.abc import Callable

    from akunu._core import CommandInfo
    from akunu.api.vision.towers import TowerFiles

__all__ = ["KEPT_BYTES", "Tower"]

KEPT_BYTES: Final = 256 << 20
"""Most bytes of encoded images that are kept, unless one alone is larger."""
_SAMPLE: Final = 4096
_KEPT_FLOATS: Final = 8 << 20
"""Most floats of patches whose memory is kept for the next image: new memory costs more than writing."""


class _Patches(Protocol):
    """See `akunu.chat.pictures.preprocess.Patches`."""

    @property
    def grid(self) -> tuple[int, int, int]: ...
    @property
    def key(self) -> bytes: ...
    def write(self, out: npt.NDArray[np.float32]) -> None: ...


class Tower:
    """A model's tower on a device. Calls of `encode` wait for one another.

    Parameters
    ----------
    files
        The files that `akunu.api.vision.towers.find_tower` found.
    device, threads
        As an `Engine` has them.
    kept_bytes
        The bytes of encoded images that are kept.
    progress
        Called with the bytes that are loaded, and all.
    """

    def __init__(
        self,
        files: TowerFiles,
        *,
        device: str = "cpu",
        threads: int = 0,
        kept_bytes: int = KEPT_BYTES,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.spec = files.spec
        self._positions = _floats(files, "positions") if files.spec.sizes.positions else None
        if self._positions is not None and files.spec.sides_paired:
            self._positions = np.concatenate([self._positions[::2], self._positions[1::2]])
        self._spread: tuple[tuple[int, int], npt.NDArray[np.float32]] | None = None
        self._room = np.empty(0, np.float32)
        self._identity = _identity(files)
        self._core = _core.ImageEncoder(
            files.files, files.spec, device=device, threads=threads, progress=progress
        )
        self._kept: Kept[bytes, Encoded] = Kept(kept_bytes, lambda encoded: encoded.rows.nbytes)
        self._lock = threading.Lock()

    @property
    def memory(self) -> _core.Memory:
        """Bytes that it takes, by purpose."""
        return self._core.memory

    @property
    def kept(self) -> int:
        """Bytes of encoded images that are kept."""
        return self._kept.bytes

    def encode(self, patches: _Patches) -> Encoded:
        """The rows of an image: those that are kept of an equal one, or new ones.

        Raises
        ------
        InvalidArgumentError
            The patches are not what this tower takes.
        """
        key = blake2b(patches.key, digest_size=16, key=self._identity).digest()
        with self._lock:
            if (found := self._kept.get(key)) is not None:
                return found
            made = self._encode(patches, key)
            self._kept.keep(key, made)
            return made

    def _encode(self, patches: _Patches, key: bytes) -> Encoded:
        merge = self.spec.merge_size
        frames, height, width = patches.grid
        if frames != 1 or height % merge or width % merge or not height * width:
            raise InvalidArgumentError(
                f"an image of {frames} x {height} x {width} patches, expected one frame, and a multiple of "
                f"{merge} on each side"
            )
        rows, columns = _merge_order(height, width, merge)
        order = np.arange(len(rows))
        windows: tuple[int, ...] = ()
        if window := self.spec.sizes.window:
            order, windows = _in_windows(rows // merge, columns // merge, window)
            rows, columns = rows[order], columns[order]
        added = self._added(height, width, rows * width + columns)
        turns = None
        if self.spec.config["rope_sets"]:
            turns = np.stack([np.zeros_like(rows), rows, columns], axis=-1).astype(np.uint32)
        pixels = self._patches(len(rows))
        patches.write(pixels)
        if self.spec.channels_last:
            by_channel = pixels.reshape(len(pixels), self.spec.sizes.channels, -1)
            pixels = by_channel.transpose(0, 2, 1).reshape(len(pixels), -1)
        if self.spec.centred:
            pixels = pixels * np.float32(2) - np.float32(1)
        # Positions depend on the size alone, so that it is their number.
        made = self._core.encode(
            pixels[order] if windows else pixels, added, turns, windows, height << 32 | width
        )
        if windows:
            found = np.empty((len(made), made.width), np.float32)
            found[order[:: merge**2] // merge**2] = made.numpy()
            made = _core.EncodedRows(found)
        return Encoded(made, (height // merge, width // merge), key)

    def _patches(self, count: int) -> npt.NDArray[np.float32]:
        """Return room for so many patches, that of the image before where it is enough."""
        floats = count * self.spec.sizes.values
        room = self._room if len(self._room) >= floats else np.empty(floats, np.float32)
        if floats <= _KEPT_FLOATS:
            self._room = room
        return room[:floats].reshape(count, -1)

    def _added(self, height: int, width: int, order: npt.NDArray[np.int64]) -> npt.NDArray[np.float32] | None:
        """Return the vectors that are added to an image's patches, and keep them for the next of its size."""
        if self._positions is None:
            return None
        if self._spread is None or self._spread[0] != (height, width):
            assert self.spec.spread is not None
            spread = spread_positions(self._positions, height, width, self.spec.spread)
            self._spread = (height, width), spread[order]
        return self._spread[1]

    def plan(self, patches: int) -> list[CommandInfo]:
        """The dispatch table, with costs for an image of so many patches."""
        return self._core.plan(patches)

    def profile(self, patches: int, repeats: int = 16) -> list[CommandInfo]:
        """Run that table and time every command."""
        return self._core.profile(patches, repeats)

    def cancel(self) -> None:
        """End the call of `encode` that runs; it raises."""
        self._core.cancel()

    def close(self) -> None:
        """Free its memory."""
        with self._lock:
            self._kept.clear()
            self._core.close()


def _merge_order(height: int, width: int, merge: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Row and column of each patch, in the order in which those of a row of the text stand together."""
    numbers = np.arange(height * width).reshape(height // merge, merge, width // merge, merge)
    flat = numbers.transpose(0, 2, 1, 3).reshape(-1)
    return flat // width, flat % width


def _in_windows(
    rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64], side: int
) -> tuple[npt.NDArray[np.int64], tuple[int, ...]]:
    """The order in which patches of a window stand together, and how many each window has.

    Parameters
    ----------
    rows, columns
        The place of the text's row that each patch becomes a part of.
    side
        Such rows on the side of a window.
    """
    window = rows // side * (int(columns.max()) // side + 1) + columns // side
    return np.argsort(window, kind="stable"), tuple(np.unique(window, return_counts=True)[1].tolist())


def _floats(files: TowerFiles, name: str) -> npt.NDArray[np.float32]:
    """A matrix of floats [rows, elements]."""
    ref = files.spec.tensors.get(name)
    if ref is None:
        raise ModelFileError(f"{files.name}: the tower lacks the tensor {name!r}")
    entry = next(tensor for tensor in files.files.tensors if tensor.name == ref.source)
    data = files.files.tensor_bytes(ref.source)
    if ref.scales:

        def plane(name: str) -> npt.NDArray[np.uint8]:
            return np.reshape(files.files.tensor_bytes(name), (ref.n_rows, -1))

        biases = plane(ref.biases) if ref.biases else None
        codes, scales = plane(ref.source), plane(ref.scales)
        made = _core.quantize("f32", codes, ref.n_cols, source=ref.dtype, scales=scales, biases=biases)
        return made.view("<f4")
    values = _core.dequantize(entry.dtype, data, ref.n_rows * ref.n_cols)
    return np.asarray(values, np.float32).reshape(ref.n_rows, ref.n_cols)


def _identity(files: TowerFiles) -> bytes:
    """A hash of the tower, with a sample of each weight: images are known by it in caches that outlive it."""
    numbers = sorted((name, repr(value)) for name, value in files.spec.config.items())
    found = blake2b(repr(numbers).encode(), digest_size=32)
    for name, ref in sorted(files.spec.tensors.items()):
        data = files.files.tensor_bytes(ref.source)
        found.update(repr((name, len(data))).encode())
        for start in (0, max(len(data) - _SAMPLE, 0) // 2, max(len(data) - _SAMPLE, 0)):
            found.update(data[start : start + _SAMPLE].tobytes())
    return found.digest()
