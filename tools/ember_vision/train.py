"""Train ember-vision.

    python -m tools.ember_vision.train --fonts FONTS --out build/ember-vision --workers 15   # one GPU
    python -m tools.ember_vision.train --fonts FONTS --out build/ember-vision --workers 15 \\
        --init python/akunu/models/ember-vision.gguf                                         # goes on
    python -m tools.ember_vision.train --fonts FONTS --out build/ember-vision --tiny         # a smoke test

Pictures are drawn while the training runs; a step that finds no new batch takes one that the GPU keeps.
Besides the answers, the tower learns which characters and shapes are in each cell. At the end, answers to
questions about pictures in fonts and of sizes that the training did not have are counted by skill. Writes
weights-text.npz and weights-tower.npz (F16, GGUF's names), train.json and skills.md into ``--out``.
"""

from __future__ import annotations

import argparse
import json
import math
import queue
import threading
import time
from collections import defaultdict
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from tools.ember_vision import tokens
from tools.ember_vision.batches import (
    BUCKETS,
    IGNORED,
    Batch,
    Bucket,
    Conversation,
    Drawn,
    conversation,
    held_back,
)
from tools.ember_vision.config import Config
from tools.ember_vision.drawing import KINDS
from tools.ember_vision.fonts import Fonts
from tools.ember_vision.model import Vision, cells_loss, gguf_names, masked, places_of
from tools.ember_vision.scene import Asked, Scene
from tools.ember_vision.skills import GRIDS, LINES, PAGES, Grids, Score, pictures, skill_of, table

CELLS_WEIGHT = 0.25
EMA_SECONDS = 30  # of the average of the weights, in time of training
Given = tuple[Tensor, ...]


def to_device(batch: Batch, device: torch.device) -> Given:
    """A batch as tensors: ids, targets, their weights, patches, cells, grids, parts, places."""
    arrays = (
        batch.ids, batch.targets, batch.weights, batch.patches, batch.cells, batch.grids, batch.parts,
        batch.places,
    )  # fmt: skip
    # A copy, as the memory is used again.
    return tuple(
        torch.from_numpy(array.copy() if device.type == "cpu" else array).to(device) for array in arrays
    )


def worsened(patches: Tensor) -> Tensor:
    """Pictures with noise, and brighter or darker, at times."""
    n, device = len(patches), patches.device

    def some(share: float) -> Tensor:
        return (torch.rand(n, 1, 1, device=device) < share).half()

    def drawn() -> Tensor:
        return torch.rand(n, 1, 1, device=device, dtype=torch.half)

    gain = 1 + some(0.3) * (drawn() - 0.5) * 0.3
    shift = some(0.3) * (drawn() - 0.5) * 30
    noise = torch.randn(patches.shape, device=device, dtype=torch.half) * (some(0.25) * drawn() * 12)
    return ((patches.half() - 128) * gain + 128 + shift + noise).clamp(0, 255)


def losses(model: Vision, given: Given, patches: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What the answers cost, what the cells cost, and the logits."""
    ids, targets, weights, _, cells, grids, parts, at = given
    places = places_of(grids[:, 0].long(), grids[:, 1].long(), cells.shape[1])
    logits, said = model(ids.long(), patches, places, parts, at.long())
    wanted = targets.long().flatten()
    cost = F.cross_entropy(logits.float().flatten(0, 1), wanted, ignore_index=IGNORED, reduction="none")
    counts = weights.flatten().float()
    answers = (cost * counts).sum() / counts.sum()
    return answers, cells_loss(said, cells), logits


def read_files(path: Path) -> dict[str, Tensor]:
    """The state dict of ember-vision's GGUF file and the tower's, dequantized, without the heads."""
    from gguf import GGUFReader, quants

    stored = {
        tensor.name: quants.dequantize(tensor.data, tensor.tensor_type).reshape(tensor.shape[::-1])
        for file in (path, path.with_name(f"mmproj-{path.name}"))
        for tensor in GGUFReader(file).tensors
    }
    model = Vision(Config())
    shapes = {name: p.shape for name, p in model.state_dict().items()}
    names = {known: name for part in gguf_names({n: n for n in shapes}) for known, name in part.items()}
    return {
        name: torch.from_numpy(stored[known].astype(np.float32)).reshape(shapes[name])
        for known, name in names.items()
    }


@torch.inference_mode()
def hits(model: Vision, given: Given) -> Tensor:
    """Which targets are the model's first choice."""
    with torch.autocast(given[0].device.type, torch.bfloat16, enabled=given[0].is_cuda):
        logits = losses(model, given, given[3])[2]
    return logits.argmax(-1) == given[1].long()


def right(model: Vision, batches: list[Given]) -> list[float]:
    """Shares of the answers that are right to the last character, and of right characters."""
    answers = wholly = letters = found = 0
    for given in batches:
        hit, known = hits(model, given), given[1].long() != IGNORED
        letters += int(known.sum())
        found += int((hit & known).sum())
        # Answers are runs of targets.
        begins = known & ~F.pad(known, (1, 0))[:, :-1]
        number = begins.long().cumsum(1)
        wrong = torch.zeros(len(known), int(number.max()) + 1, device=known.device)
        wrong.scatter_add_(1, number * known, (known & ~hit).float())
        count = number.amax(1)
        there = torch.arange(wrong.shape[1], device=known.device)[None] <= count[:, None]
        there[:, 0] = False
        answers += int(there.sum())
        wholly += int((there & (wrong == 0)).sum())
    return [wholly / answers, found / letters]


def by_skill(model: Vision, fonts: Fonts, count: int, device: torch.device, grids: Grids) -> dict[str, Score]:
    """Scores of `count` pictures of each kind and twice as many of lines, all questions about each apart.

    An answer that is the first choice at each of its characters, given those before, is what greedy decoding
    says. A line of print is scored by such characters.
    """
    scores: defaultdict[str, Score] = defaultdict(Score)
    rng = Random("ember-vision evaluation")
    for kind in KINDS:
        sizes: defaultdict[tuple[int, ...], list[Scene]] = defaultdict(list)
        for scene in pictures(rng, fonts, kind, count * (2 if kind == "lines" else 1), grids):
            sizes[scene.cells.shape[:2]].append(scene)
        for (rows, columns), scenes in sizes.items():
            cells = rows * columns
            asked = [list(dict(scene.asked).items()) for scene in scenes]
            said = [
                conversation(rng, some, (rows, columns), 2000, chained=0, plain=True)
                for scene, some in zip(scenes, asked, strict=True)
            ]
            length = -(-max(len(made.ids) for made in said) // 8) * 8
            bucket = Bucket(cells, ((rows, columns),), len(said), length, 0, 0)
            batch = Batch.over(bytearray(Batch.bytes(bucket)), bucket, len(said))
            for n, (scene, made) in enumerate(zip(scenes, said, strict=True)):
                batch.put(n, scene, (rows, columns), made)
            given = to_device(batch, device)
            hit = hits(model, given).cpu().numpy()
            for n, made in enumerate(said):
                _score(scores, kind, asked[n], made, hit[n])
    return dict(scores)


def _score(
    scores: defaultdict[str, Score], kind: str, asked: list[Asked], made: Conversation, hit: NDArray[np.bool_]
) -> None:
    truths: dict[str, str] = {}
    parts, ids = np.array(made.parts), np.array(made.ids)
    for part in range(1, max(made.parts) + 1):
        mine = np.flatnonzero(parts == part)
        begin = mine[0] + list(ids[mine]).index(tokens.ANSWER)
        end = mine[-1]
        question = tokens.text_of(ids[mine[0] : begin].tolist())
        answer = tokens.text_of(ids[begin + 1 : end].tolist())
        truths[question] = answer
        skill = skill_of(kind, question, answer)
        score = scores[skill]
        known = hit[begin:end]
        if skill in (LINES, PAGES):
            score.right += int(known.sum())
            score.of += len(known)
        else:
            score.right += bool(known.all())
            score.of += 1


def save_weights(state: dict[str, Tensor], folder: Path) -> None:
    """F16, a file for the text and one for the tower; without what only the training has."""
    for name, tensors in zip(("text", "tower"), gguf_names(state), strict=True):
        part = folder / f"part-{name}.npz"
        np.savez(part, **{key: value.half().cpu().numpy() for key, value in tensors.items()})
        part.rename(folder / f"weights-{name}.npz")


def optimizers(model: Vision, rate: float, gpu: bool) -> list[torch.optim.Optimizer]:
    """Muon for the matrices within the stacks, AdamW for the rest."""
    inner = ("blocks.", "patch_merger", "first", "last")
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and any(part in n for part in inner)]
    chosen = {id(p) for p in matrices}
    rest = [p for p in model.parameters() if id(p) not in chosen]
    return [
        torch.optim.Muon(matrices, rate, weight_decay=0.05, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(rest, rate, betas=(0.9, 0.98), weight_decay=0.0, fused=gpu),
    ]


def rate_at(step: int, done: float, warmup: int = 200, steady: float = 0.35) -> float:
    """Linear warm-up over steps, then steady, then a cosine to almost zero over the rest of the time."""
    after = max(0.0, (done - steady) / (1 - steady))
    return min(1.0, (step + 1) / warmup) * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, after))))


class Pool:
    """Batches on the device, new ones and those that are used again when there is no new one."""

    def __init__(self, drawn: Drawn, keep: int, device: torch.device) -> None:
        self._drawn, self._keep, self._device = drawn, keep, device
        self._kept: list[Given] = []
        self._waiting: queue.Queue[Given] = queue.Queue(3)
        self._rng = Random(1)
        self.new = 0
        self.pictures = 0
        threading.Thread(target=self._copy, daemon=True).start()

    def _copy(self) -> None:
        """Copy batches for ever, while the device computes."""
        stream = torch.cuda.Stream() if self._device.type == "cuda" else None
        while True:
            try:
                slot, batch = self._drawn.take(1)
            except queue.Empty:
                continue
            with torch.cuda.stream(stream) if stream else nullcontext():
                given = to_device(batch, self._device)
                if stream:
                    stream.synchronize()
            self._drawn.done(slot)
            self._waiting.put(given)

    def next(self) -> Given:
        try:
            given = self._waiting.get(timeout=60) if len(self._kept) <= 12 else self._waiting.get_nowait()
        except queue.Empty:
            if self._drawn.failed or not self._kept:
                raise SystemExit("nothing was drawn; what a process said is above") from None
            return self._rng.choice(self._kept)
        for tensor in given if given[0].is_cuda else ():
            tensor.record_stream(torch.cuda.current_stream())
        self.new += 1
        self.pictures += len(given[0])
        if len(self._kept) < self._keep:
            self._kept.append(given)
        else:
            self._kept[self._rng.randrange(self._keep)] = given
        return given


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fonts", type=Path, required=True, help="folder that tools.ember_vision.fonts made")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--init", type=Path, help="an ember-vision file, with whose weights to begin")
    parser.add_argument("--seconds", type=float, default=490, help="from the start to the last step")
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2, help="processes that draw")
    parser.add_argument("--slots", type=int, default=64, help="batches that may wait")
    parser.add_argument("--keep", type=int, default=800, help="batches that the GPU keeps")
    parser.add_argument("--small", type=int, default=0, help="pictures of a batch; 0: what suits a large GPU")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--tiny", action="store_true", help="a small model, a minute")
    args = parser.parse_args()
    opened = time.monotonic()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.tiny:
        args.seconds, args.small, args.slots, args.keep = min(args.seconds, 60), args.small or 8, 8, 20
    drawn = Drawn(args.fonts, args.workers, args.slots, args.seed, args.small, new=not args.init)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    gpu = device.type == "cuda"
    pool = Pool(drawn, args.keep, device)
    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    model = Vision(Config.tiny() if args.tiny else Config()).to(device)
    if args.init:
        model.load_state_dict(read_files(args.init), strict=False)
        for (
            p
        ) in model.heads.parameters():  # which the files do not have, and which shall not disturb the tower
            torch.nn.init.zeros_(p)
    if gpu and not args.no_compile:
        torch._dynamo.config.recompile_limit = 64
        torch._dynamo.config.suppress_errors = True
        for block in model.tower.blocks:
            block.compile(dynamic=False)
        model.step = torch.compile(masked, dynamic=False)
    average = {name: p.detach().clone() for name, p in model.state_dict().items()}
    steppers = optimizers(model, args.rate, gpu)
    held = [to_device(batch, device) for _, batch, _ in held_back(args.fonts, 2 if args.tiny else 48)]
    history: list[dict[str, Any]] = []

    def report(last: bool) -> None:
        judge = Vision(model.config).to(device)
        judge.load_state_dict(average)
        shares = [round(share, 4) for share in right(judge, held)]
        save_weights(average, args.out)
        history.append({"step": step, "seconds": round(time.monotonic() - opened, 1), "held back": shares})
        print(f"step {step}: held back, answers right {shares[0]}, characters {shares[1]}", flush=True)
        found = {
            "config": asdict(model.config), "buckets": [asdict(b) for b in BUCKETS], "steps": step,
            "init": str(args.init) if args.init else None, "rate": args.rate, "seed": args.seed,
            "seconds": args.seconds, "pictures": pool.pictures,
            "new batches": pool.new, "device": torch.cuda.get_device_name() if gpu else "cpu",
            "complete": last, "history": history,
        }  # fmt: skip
        (args.out / "train.json").write_text(json.dumps(found, indent=1))

    step, done, began, saved = 0, 0.0, math.inf, 0.0
    warm = 0 if args.tiny else 12  # steps that compile, before the share of the time counts
    while done < 1:
        given = pool.next()
        patches = worsened(given[3])
        factor = rate_at(step, done)
        for stepper in steppers:
            for group in stepper.param_groups:
                group["lr"] = args.rate * factor
        with torch.autocast(device.type, torch.bfloat16, enabled=gpu):
            answers, cells, _ = losses(model, given, patches)
        (answers + CELLS_WEIGHT * cells).backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        for stepper in steppers:
            stepper.step()
            stepper.zero_grad(set_to_none=True)
        step += 1
        if gpu and step % 4 == 0:
            torch.cuda.synchronize()
        now = time.monotonic()
        began = now if step == warm + 1 else began
        spent = max(0.0, now - began)
        left = args.seconds - (now - opened)
        done = 1.0 if left <= 0 else spent / (spent + left)
        if step % 10 == 0:
            share = min(1.0, 10 * spent / step / EMA_SECONDS) if spent > EMA_SECONDS else 0.5
            torch._foreach_lerp_(list(average.values()), list(model.state_dict().values()), share)
        if step % 50 == 0 or step < 15 or (not gpu and step % 10 == 0):
            values = [round(value, 4) for value in (answers.item(), cells.item(), norm.item())]
            history.append(
                {"step": step, "seconds": round(now - opened, 1), "losses": values, "pictures": pool.pictures}
            )
            costs = "answers {} cells {} norm {}".format(*values)
            drawn_so_far = f"{pool.pictures} pictures, {pool.new} new batches"
            print(f"step {step} {costs} {now - opened:.0f} s, {drawn_so_far}", flush=True)
        if spent > saved + 75:
            saved = spent
            report(False)
    drawn.close()
    report(True)
    judge = Vision(model.config).to(device)
    judge.load_state_dict(average)
    fonts = Fonts.of(args.fonts, held=True)
    scores = by_skill(judge, fonts, 2 if args.tiny else 150, device, GRIDS)
    (args.out / "skills.md").write_text(table({"other sizes": scores}) + "\n")
    print(table({"other sizes": scores}), flush=True)


if __name__ == "__main__":
    main()
