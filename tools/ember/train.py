"""Train ember.

    python -m tools.ember.train --out build/ember-1 --minutes 8.1          # one GPU
    python -m tools.ember.train --out build/ember --init build/ember-1 --minutes 5 --seed 2 \\
        --lr 0.01 --adam-lr 1.5e-3
    python -m tools.ember.train --out build/ember --init python/akunu/models/ember.gguf --minutes 5
    python -m tools.ember.train --out build/ember --steps 20 --rows 2      # a smoke test, also on a CPU

Writes tokenizer.json, weights-*.npz (F16, GGUF tensor names) and train.json into ``--out``; a run that is
killed leaves the weights of every 500th step.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import asdict
from multiprocessing import Process
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from tools.ember import shards
from tools.ember.model import Ember, document_mask, gguf_tensors, within
from tools.ember.model_config import Config


class Muon(torch.optim.Optimizer):
    """Momentum orthogonalised by Newton-Schulz iteration (Jordan et al. 2024), for the blocks' matrices.

    Matrices of one shape are stepped as one batch.
    """

    def __init__(
        self, params: list[torch.nn.Parameter], lr: float, momentum: float = 0.95, decay: float = 0.01
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[torch.nn.Parameter]] = {}
            for p in group["params"]:
                by_shape.setdefault(p.shape, []).append(p)
            for shape, params in by_shape.items():
                grads = torch.stack([p.grad for p in params if p.grad is not None])
                state = self.state[params[0]]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(grads)
                state["momentum"].lerp_(grads, 1 - group["momentum"])
                update = _orthogonal(grads.lerp(state["momentum"], group["momentum"]))
                scale = group["lr"] * max(1.0, shape[0] / shape[1]) ** 0.5
                torch._foreach_mul_(params, 1 - group["lr"] * group["decay"])
                torch._foreach_add_(params, list(update.to(params[0].dtype).unbind()), alpha=-scale)


def _orthogonal(g: Tensor, steps: int = 5) -> Tensor:
    """The nearest (semi-)orthogonal matrices of a batch [n, rows, columns], roughly, in BF16."""
    x = g.bfloat16()
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    for _ in range(steps):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.mT if tall else x


def schedule(step: int, done: float, warmup: int) -> float:
    """Linear warm-up over steps, and a cosine to zero over the share of the run that is done."""
    return min(1.0, (step + 1) / warmup) * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


def loss_of(model: Ember, ids: Tensor, learned: Tensor, mask: Any) -> Tensor:
    """Mean cross-entropy of the learned tokens. ids and learned [rows, context]."""
    hidden = model(ids, within(mask))[:, :-1]
    logits = model.logits(hidden).float().flatten(0, 1)
    losses = F.cross_entropy(logits, ids[:, 1:].flatten().long(), reduction="none")
    weights = learned[:, 1:].flatten().float()
    return (losses * weights).sum() / weights.sum().clamp(min=1)


AGAIN = 24  # shards later, a shard is read once more: the writers need to be half as fast as the training


def batches(folder: Path, count: int, rows: int, seed: int, writers: list[Process]) -> Iterator[shards.Row]:
    """Batches of ids and marks [rows, context]: shard after shard, each one twice, rows shuffled in each."""
    rng = np.random.default_rng(seed)
    while True:
        for index in (i for n in range(count + AGAIN) for i in (n, n - AGAIN) if 0 <= i < count):
            ids, marks = shards.read(folder, index, writers)
            order = rng.permutation(len(ids))
            for start in range(0, len(order) - rows + 1, rows):
                chosen = order[start : start + rows]
                yield ids[chosen], marks[chosen]


def save_weights(model: Ember, out: Path, parts: int = 2) -> None:
    """F16 weights, in files of less than 16 MB; those that are there are replaced once all are written."""
    tensors = {k: v.detach().half().cpu().numpy() for k, v in gguf_tensors(model.state_dict()).items()}
    names = sorted(tensors)
    for part in range(parts):
        np.savez(out / f"part-{part}.npz", **{name: tensors[name] for name in names[part::parts]})
    for part in range(parts):
        (out / f"part-{part}.npz").replace(out / f"weights-{part}.npz")


def read_weights(path: Path) -> dict[str, Tensor]:
    """The state dict that ``save_weights`` wrote into a folder, or that of an ember GGUF file."""
    tensors: dict[str, NDArray[np.float32]] = {}
    if path.is_file():
        from tools.ember.export import read_gguf

        tensors = read_gguf(path)
    for part in sorted(path.glob("weights-*.npz")):
        with np.load(part) as arrays:
            tensors |= {name: arrays[name].astype(np.float32) for name in arrays.files}
    return {name.replace("blk.", "blocks."): torch.from_numpy(t) for name, t in tensors.items()}


@torch.no_grad()
def losses(model: Ember, kinds: dict[str, shards.Row], device: torch.device) -> dict[str, float]:
    """The mean loss of each kind of document; ``kinds`` are packed rows."""
    found = {}
    for kind, (ids, marks) in kinds.items():
        total = count = 0.0
        for row in range(len(ids)):
            row_ids, row_marks = (torch.from_numpy(a[row : row + 1]).to(device) for a in (ids, marks))
            learned = float((row_marks & 1).sum())
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                mask = document_mask(row_marks // 2, sparse=False)
                total += float(loss_of(model, row_ids.int(), row_marks & 1, mask)) * learned
            count += learned
        found[kind] = round(total / count, 4)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--data", type=Path, help="folder of the packed corpus, kept for the next run (default: OUT/corpus)"
    )
    parser.add_argument("--steps", type=int, default=9000)
    parser.add_argument(
        "--minutes",
        type=float,
        default=math.inf,
        help="end so long after the start, if the steps are not done by then",
    )
    parser.add_argument(
        "--init", type=Path, help="folder of a run, or ember GGUF file, whose weights to begin with"
    )
    parser.add_argument("--rows", type=int, default=64, help="rows of 2048 tokens in a step")
    parser.add_argument("--lr", type=float, default=0.02, help="of the matrices (Muon)")
    parser.add_argument("--adam-lr", type=float, default=3e-3, help="of the embedding and the norms (AdamW)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shards", type=int, default=960)
    parser.add_argument("--documents", type=int, default=10_000, help="documents in a shard")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tokenizer", type=Path, default=Path(__file__).parent / "tokenizer.json")
    parser.add_argument(
        "--attention", choices=("flex", "dense"), default="flex" if torch.cuda.is_available() else "dense"
    )
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    data = args.data or args.out / "corpus"
    tokenizer_path = args.out / "tokenizer.json"
    tokenizer_path.write_bytes(args.tokenizer.read_bytes())

    started = time.monotonic()
    config = Config()
    held_out = shards.start_held_out(args.out / "held-out.npz", tokenizer_path, config.context)
    writers = shards.start_writers(
        data, tokenizer_path, args.seed, args.shards, args.documents, config.context, args.workers
    )
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    gpu = device.type == "cuda"
    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    model = Ember(config)
    if args.init:
        model.load_state_dict(read_weights(args.init))
    model.to(device)
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embd" not in n]
    others = [p for n, p in model.named_parameters() if p.ndim != 2 or "embd" in n]
    muon = Muon(matrices, args.lr)
    adam = torch.optim.AdamW(others, args.adam_lr, betas=(0.9, 0.95), weight_decay=0.0, fused=gpu)
    optimizers: list[torch.optim.Optimizer] = [muon, adam]
    loss_fn = torch.compile(loss_of, dynamic=False) if gpu else loss_of
    history: list[dict[str, float]] = []
    stream = batches(data, args.shards, args.rows, args.seed, writers)
    step, done = 0, 0.0
    deadline = started + 60 * args.minutes
    began = deadline  # the schedule starts after the first steps, which compile
    while done < 1:
        ids, marks = (
            torch.from_numpy(a).pin_memory().to(device, non_blocking=True) if gpu else torch.from_numpy(a)
            for a in next(stream)
        )
        factor = schedule(step, done, 100)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = factor * (args.lr if optimizer is muon else args.adam_lr)
        mask = document_mask(marks // 2, args.attention == "flex")
        with torch.autocast(device.type, torch.bfloat16, enabled=gpu):
            loss = loss_fn(model, ids.int(), marks & 1, mask)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        step += 1
        now = time.monotonic()
        began = now if step == 3 else began
        spent = (now - began) / (deadline - began) if began < deadline < math.inf else 0.0
        done = 1.0 if now >= deadline else max(step / args.steps, spent)
        if step % 200 == 0 or done >= 1 or not gpu:
            seconds = now - started
            history.append({"step": step, "loss": round(loss.item(), 4), "seconds": round(seconds, 1)})
            print(f"step {step} loss {loss.item():.4f} {seconds:.0f} s", flush=True)
        if step % 500 == 0:
            save_weights(model, args.out)
    save_weights(model, args.out)
    for writer in writers:
        writer.terminate()
    seconds = time.monotonic() - started
    held_out.join()
    kinds = shards.read_held_out(args.out / "held-out.npz")
    by_kind = {"now": losses(model, kinds, device)}
    if args.init:
        model.load_state_dict(read_weights(args.init))
        by_kind["before"] = losses(model, kinds, device)
    print("held-out loss" + (", before the run" if args.init else ""))
    for kind, loss_now in by_kind["now"].items():
        print(f"{kind:20}{loss_now:8.4f}" + (f"{by_kind['before'][kind]:8.4f}" if args.init else ""))
    report = {
        "config": asdict(config),
        "steps": step,
        "init": str(args.init) if args.init else None,
        "rows": args.rows,
        "lr": args.lr,
        "adam_lr": args.adam_lr,
        "seed": args.seed,
        "documents": args.shards * args.documents,
        "device": torch.cuda.get_device_name() if gpu else "cpu",
        "tokens": step * args.rows * config.context,
        "seconds": round(seconds, 1),
        "held_out": by_kind,
        "history": history,
    }
    (args.out / "train.json").write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
