"""Train ember's head that drafts (multi-token prediction), with the model itself as it is, and export it.

    python -m tools.ember.head train --out build/ember-head --workers 8 --minutes 3      # one GPU
    python -m tools.ember.head train --out build/ember-head --steps 4 --rows 1           # a smoke test
    python -m tools.ember.head export --run build/ember-head --out python/akunu/models/mtp-ember.gguf

The head is a layer like ember's others. It reads the model's state at a token and the embedding of the token
that follows, and predicts what the model will say after that. Applied to its own state it predicts tokens
further ahead, and learns to: the keys and values of its own rows are what it sees of them, as when it drafts.
It learns the model's distribution, not the text.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
import torch.nn.functional as F
from gguf import GGMLQuantizationType as Type
from gguf import quants
from numpy.typing import NDArray
from torch import Tensor, nn

from tools.ember import shards
from tools.ember.export import add_sizes
from tools.ember.model import Block, Ember, Norm, document_mask, rotate, within
from tools.ember.model_config import Config
from tools.ember.quantize import quantize
from tools.ember.train import Muon, batches, read_weights, schedule

MODEL = Path("python/akunu/models/ember.gguf")
WEIGHTS = "weights-head.npz"
DEPTH = 3
"""Tokens ahead that it learns."""
SHARES = (1.0, 0.7, 0.5)
"""How much each of them counts."""
NEXTN = {
    "joined": "nextn.eh_proj",
    "embedding_norm": "nextn.enorm",
    "state_norm": "nextn.hnorm",
    "output_norm": "nextn.shared_head_norm",
}


class Head(nn.Module):
    """A layer like the model's, before which a state and an embedding become one row."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.joined = nn.Linear(2 * c.dim, c.dim, bias=False)
        self.block = Block(c)
        self.embedding_norm, self.state_norm, self.output_norm = (Norm(c.dim, c.norm_eps) for _ in range(3))
        for name, p in self.named_parameters():
            if p.ndim == 2:
                scale = 0.3 if name.endswith(("attn_output.weight", "ffn_down.weight")) else 1.0
                nn.init.normal_(p, std=p.shape[1] ** -0.5 * scale)
        with torch.no_grad():  # what the model says next is a good beginning
            self.joined.weight[:, c.dim :] += torch.eye(c.dim)

    def forward(
        self, states: Tensor, embeddings: list[Tensor], visible: Tensor, cos: Tensor, sin: Tensor
    ) -> list[Tensor]:
        """Normed states [batch, rows, dim] of each token ahead.

        `embeddings` are those of the token that follows each row, and of the ones after it; `visible` says
        which rows each may see.
        """
        block, keys, values, found = self.block, [], [], []
        rows = states.shape[1]
        for ahead, embedding in enumerate(embeddings):
            joined = torch.cat([self.embedding_norm(embedding), self.state_norm(states)], -1)
            x = self.joined(joined)
            h = block.attn_norm(x)
            q, k, v = (
                linear(h).unflatten(-1, (-1, block.head_dim)).transpose(1, 2)
                for linear in (block.attn_q, block.attn_k, block.attn_v)
            )
            turns = cos[ahead : ahead + rows], sin[ahead : ahead + rows]
            groups = q.shape[1] // k.shape[1]
            q, k, v = (
                rotate(q, *turns),
                rotate(k, *turns).repeat_interleave(groups, 1),
                v.repeat_interleave(groups, 1),
            )
            keys.append(k)
            values.append(v)
            # rows of the text, and this row's own drafts
            scores = [(q @ keys[0].mT).float().masked_fill(~visible, -torch.inf)]
            scores += [(q * key).sum(-1, keepdim=True).float() for key in keys[1:]]
            weights = (torch.cat(scores, -1) * block.head_dim**-0.5).softmax(-1).to(v.dtype)
            out = weights[..., :rows] @ values[0]
            for own, value in enumerate(values[1:]):
                out = out + weights[..., rows + own, None] * value
            x = x + block.attn_output(out.transpose(1, 2).flatten(-2))
            h = block.ffn_norm(x)
            x = x + block.ffn_down(F.silu(block.ffn_gate(h)) * block.ffn_up(h))
            states = self.output_norm(x)
            found.append(states)
        return found


def losses(head: Head, model: Ember, hidden: Tensor, ids: Tensor, learned: Tensor, mask: Tensor) -> Tensor:
    """What each token ahead costs, and how often the model's first choice is the head's: [2, DEPTH].

    That counts the rows in which the tokens before were right.
    """
    rows = ids.shape[1] - DEPTH - 1
    embeddings = [model.token_embd(ids[:, 1 + d : 1 + d + rows]) for d in range(DEPTH)]
    found = head(hidden[:, :rows], embeddings, mask[:, :, :rows, :rows], model.cos, model.sin)  # type: ignore[arg-type]
    costs, shares, right = [], [], torch.ones_like(learned[:, :rows], dtype=torch.bool)
    for d, states in enumerate(found):
        with torch.no_grad():
            said = model.logits(hidden[:, 1 + d : 1 + d + rows]).float()
            # of the same document, and of an answer
            same = mask[:, 0].diagonal(-(2 + d), 1, 2)[:, :rows]
            counted = same & (learned[:, 2 + d : 2 + d + rows] > 0)
        logits = model.logits(states).float()
        cost = -(said.softmax(-1) * logits.log_softmax(-1)).sum(-1)
        costs.append((cost * counted).sum() / counted.sum().clamp(min=1))
        tried = counted & right
        right = right & (logits.argmax(-1) == said.argmax(-1))
        shares.append((tried & right).sum() / tried.sum().clamp(min=1))
    return torch.stack([torch.stack(costs), torch.stack(shares)])


def read_head(path: Path) -> dict[str, Tensor]:
    """The state dict of a head's GGUF file, dequantized."""
    names = {known: name for name, known in NEXTN.items()}
    found = {}
    for tensor in gguf.GGUFReader(path).tensors:
        inner = tensor.name.split(".", 2)[2].removesuffix(".weight")
        array = quants.dequantize(tensor.data, tensor.tensor_type).reshape(tensor.shape[::-1])
        name = f"{names.get(inner) or f'block.{inner}'}.weight"
        found[name] = torch.from_numpy(array.astype(np.float32))
    return found


def train(args: argparse.Namespace) -> None:
    """Write WEIGHTS and head.json into ``args.out``."""
    args.out.mkdir(parents=True, exist_ok=True)
    config, started = Config(), time.monotonic()
    held_out = shards.start_held_out(args.out / "held-out.npz", args.tokenizer, config.context)
    writers = shards.start_writers(
        args.out / "corpus", args.tokenizer, args.seed, 960, args.documents, config.context, args.workers
    )
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    gpu = device.type == "cuda"
    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    model, head = Ember(config), Head(config).to(device)
    model.load_state_dict(read_weights(args.model))
    model.to(device).requires_grad_(False)
    head.output_norm.load_state_dict(model.output_norm.state_dict())
    if args.init:
        head.load_state_dict(read_head(args.init))
    matrices = [p for p in head.parameters() if p.ndim == 2]
    muon = Muon(matrices, args.lr)
    adam = torch.optim.AdamW(
        [p for p in head.parameters() if p.ndim != 2], args.adam_lr, betas=(0.9, 0.95), weight_decay=0.0
    )
    compiled: Callable[..., Tensor] = torch.compile(losses, dynamic=False) if gpu else losses
    shares = torch.tensor(SHARES, device=device)

    def costs(ids: NDArray[np.uint16], marks: NDArray[np.uint8], run: Callable[..., Tensor]) -> Tensor:
        tokens, flags = (torch.from_numpy(array).to(device) for array in (ids.astype(np.int32), marks))
        mask = document_mask(flags // 2, sparse=False)
        with torch.autocast(device.type, torch.bfloat16, enabled=gpu):
            with torch.no_grad():
                hidden = model(tokens, within(mask))
            return run(head, model, hidden, tokens, flags & 1, mask)

    stream = batches(args.out / "corpus", 960, args.rows, args.seed, writers)
    step, done, deadline, history = 0, 0.0, started + 60 * args.minutes, []
    began = deadline
    while done < 1:
        ids, marks = next(stream)
        factor = schedule(step, done, 100)
        for optimizer, rate in ((muon, args.lr), (adam, args.adam_lr)):
            for group in optimizer.param_groups:
                group["lr"] = factor * rate
        found = costs(ids, marks, compiled)
        (found[0] * shares).sum().backward()
        for optimizer in (muon, adam):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        step += 1
        now = time.monotonic()
        began = now if step == 3 else began
        spent = (now - began) / (deadline - began) if began < deadline else 0.0
        done = 1.0 if now >= deadline else max(step / args.steps, spent)
        if step % 200 == 0 or done >= 1 or not gpu:
            history.append([step, round(now - started, 1), *(round(x, 4) for x in found.flatten().tolist())])
            print("step {} {} s costs {} {} {} shares {} {} {}".format(*history[-1]), flush=True)
        if step % 1000 == 0 or done >= 1:
            arrays = {name: p.detach().half().cpu().numpy() for name, p in head.state_dict().items()}
            np.savez(args.out / "part.npz", **arrays)
            (args.out / "part.npz").replace(args.out / WEIGHTS)
    for writer in writers:
        writer.terminate()
    held_out.join()
    by_kind = {}
    with torch.no_grad():
        for kind, (ids, marks) in shards.read_held_out(args.out / "held-out.npz").items():
            by_row = [costs(ids[n : n + 1], marks[n : n + 1], losses)[1] for n in range(min(len(ids), 4))]
            by_kind[kind] = [round(share, 3) for share in torch.stack(by_row).mean(0).tolist()]
            print(f"{kind:20}", *by_kind[kind])
    report: dict[str, Any] = {
        "init": str(args.init) if args.init else None,
        "steps": step,
        "rows": args.rows,
        "lr": args.lr,
        "adam_lr": args.adam_lr,
        "seed": args.seed,
        "device": torch.cuda.get_device_name() if gpu else "cpu",
        "seconds": round(time.monotonic() - started, 1),
        "held_out": by_kind,
        "history": history,
    }
    (args.out / "head.json").write_text(json.dumps(report, indent=1))


def export(run: Path, out: Path, kind: str) -> None:
    """Write the head that ``train`` left in a folder as a GGUF file of its own, to go beside the model's."""
    config = Config()
    with np.load(run / WEIGHTS) as file:
        arrays = {name: file[name].astype(np.float32) for name in file.files}
    writer: Any = gguf.GGUFWriter(out, "llama")
    writer.add_name("Ember's head that drafts")
    writer.add_license("Apache-2.0")
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    add_sizes(writer, config, heads=1)
    for name, array in arrays.items():
        stem = name.removesuffix(".weight")
        inner = NEXTN.get(stem) or stem.removeprefix("block.")
        type_ = Type.F32 if array.ndim == 1 else Type[kind] if inner.startswith("ffn") else Type.Q8_0
        name = f"blk.{config.layers}.{inner}.weight"
        writer.add_tensor(name, quantize(array, type_), raw_dtype=type_)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print(f"{out}: {out.stat().st_size / 1e6:.3f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    training = commands.add_parser("train")
    training.add_argument("--out", type=Path, required=True)
    training.add_argument("--init", type=Path, help="a head's file, with whose weights to begin")
    training.add_argument("--model", type=Path, default=MODEL)
    training.add_argument("--tokenizer", type=Path, default=Path(__file__).parent / "tokenizer.json")
    training.add_argument("--minutes", type=float, default=3)
    training.add_argument("--steps", type=int, default=100_000)
    training.add_argument("--rows", type=int, default=16, help="rows of 2048 tokens in a step")
    training.add_argument("--lr", type=float, default=0.02)
    training.add_argument("--adam-lr", type=float, default=3e-3)
    training.add_argument("--seed", type=int, default=11)
    training.add_argument("--documents", type=int, default=10_000, help="documents in a shard")
    training.add_argument("--workers", type=int, default=2)
    exporting = commands.add_parser("export")
    exporting.add_argument("--run", type=Path, required=True, help="the folder of a training")
    exporting.add_argument("--out", type=Path, required=True)
    exporting.add_argument(
        "--type", choices=("Q8_0", "Q5_0", "Q4_0"), default="Q5_0", help="of its feed-forward"
    )
    args = parser.parse_args()
    if args.command == "train":
        train(args)
    else:
        export(args.run, args.out, args.type)


if __name__ == "__main__":
    main()
