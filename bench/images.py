"""Seconds to encode an image, beside llama.cpp's libmtmd on the same files.

    python -m bench.images gemma3 qwen3.5-4b --folder /tmp/towers --size 512x512
    python -m bench.images --model model.gguf --mmproj mmproj.gguf --peer "python bench/mtmd_peer.py"

A name is a tower of real shapes with random weights, which is written into the folder. The peer is a command
that is given model, tower, image and threads, and encodes the image for each line that it reads, as
`mtmd_peer.py` does in a Python that has llama-cpp-py-sync. Both encode in turn, so that what else the machine
does falls on both; a figure is the median over the rounds, and the ratio the median of the rounds' ratios.
Where the peer says what of the processors it used ("cpu"), that is compared, too: beside other processes it
varies less than time.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from PIL import Image

from akunu.api.vision.tower import Tower
from akunu.api.vision.towers import find_tower
from akunu.chat.pictures.preprocess import Run, processor_of
from akunu.files.model_files import open_model
from bench.tower_file import SHAPES, write_files

Seconds = tuple[float, float]
"""The seconds that an encoding took by the clock, and those that processors computed for it."""


@dataclass
class _Text:
    """What a tower needs of its model of text, whose own architecture may be another."""

    metadata: dict[str, Any]
    files: None = None


def _tower(name: str | None, model: Path, mmproj: Path, device: str, threads: int) -> Tower:
    files: Any = open_model(model)
    if name is not None:  # the text is a stand-in
        from akunu.api.vision.families import FAMILIES

        arch = FAMILIES[SHAPES[name].family].archs[0]
        out = SHAPES[name].out
        files = _Text({"general.architecture": arch, f"{arch}.embedding_length": out})
        files.metadata[f"{arch}.rope.dimension_sections"] = [24, 20, 20, 0]
    found = find_tower(files, model, mmproj)
    if found is None:
        raise SystemExit(f"{model}: it has no tower")
    return Tower(found, device=device, threads=threads, kept_bytes=0)


@contextmanager
def _peer(program: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    command = [*shlex.split(program), *map(str, arguments)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            _answer(process)
            yield process
        finally:
            assert process.stdin is not None
            process.stdin.close()


def _answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the peer's next line of JSON; it may write others."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("{"):
            answer: dict[str, Any] = json.loads(line)
            return answer
    raise SystemExit(f"the peer ended with {process.wait()}; {process.args} says why")


def measure(
    name: str | None, model: Path, mmproj: Path, image: Path, args: argparse.Namespace
) -> tuple[int, list[Seconds], list[Seconds]]:
    """Tokens of the image, and seconds of each round: ours, and the peer's."""
    tower = _tower(name, model, mmproj, args.device, args.threads)
    picture = np.array(Image.open(image).convert("RGB"))
    processor = processor_of(tower.spec)
    ours: list[Seconds] = []
    theirs: list[Seconds] = []
    with ExitStack() as stack:
        stack.callback(tower.close)
        peer = (
            stack.enter_context(_peer(args.peer, model, mmproj, image, args.threads)) if args.peer else None
        )
        for n in range(args.rounds + 1):
            picture[0, 0] = n  # another image each time, as a tower keeps what it has encoded
            parts = processor(picture, args.tokens)
            patches = next(part.patches for part in parts if isinstance(part, Run))
            began = time.perf_counter(), time.process_time()
            tower.encode(patches)
            if n:  # the first is warm-up
                ours.append((time.perf_counter() - began[0], time.process_time() - began[1]))
            if peer is not None:
                assert peer.stdin is not None
                print("go", file=peer.stdin, flush=True)
                answer = _answer(peer)
                if n:
                    theirs.append((answer["seconds"], answer.get("cpu", 0.0)))
    return patches.tokens, ours, theirs


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", choices=[[], *SHAPES], help="towers with random weights")
    parser.add_argument("--folder", type=Path, default=Path("build/towers"), help="for their files")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--mmproj", type=Path)
    parser.add_argument("--size", default="512x512", help="of the image, in pixels")
    parser.add_argument("--tokens", type=int, help="most tokens of the image, where the family can choose")
    parser.add_argument("--device", default="cpu", help="where; the peer's own command says where it runs")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer", help='a command such as "python bench/mtmd_peer.py"')
    args = parser.parse_args()
    width, height = map(int, args.size.split("x"))
    rng = np.random.default_rng(1)
    pixels = np.kron(rng.integers(0, 256, (height // 8, width // 8, 3)), np.ones((8, 8, 1))).astype(np.uint8)
    files: list[tuple[str | None, Path, Path]] = [
        (name, *write_files(name, args.folder)) for name in args.names
    ]
    if args.model:
        files.append((None, args.model, args.mmproj))
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "image.png"
        Image.fromarray(pixels).save(image)
        for name, model, mmproj in files:
            tokens, ours, theirs = measure(name, model, mmproj, image, args)
            shown = f"{name or model.name}: {tokens} tokens"
            for clock, unit in enumerate(("s", "s of processors")):
                shown += f", akunu {median(each[clock] for each in ours):.3g} {unit}"
                if theirs and all(each[clock] for each in theirs):
                    ratio = median(b[clock] / a[clock] for a, b in zip(ours, theirs, strict=True))
                    peers = median(each[clock] for each in theirs)
                    shown += f", llama.cpp {peers:.3g} {unit}, {ratio:.2f} times as fast"
            print(shown, flush=True)


if __name__ == "__main__":
    main()
