"""Train ember-speech.

    python -m tools.ember_speech.train --out build/ember-speech --workers 14   # one GPU
    python -m tools.ember_speech.train --out build/ember-speech --tiny         # a smoke test

Speech is made while the training runs, and kept on the GPU; windows are drawn from what is there. Besides the
text, the encoder learns the phoneme of every position and some heads of the cross-attention learn when each
token is heard, as espeak-ng tells both. Writes weights-*.npz (F16, OpenAI's names) and
train.json into ``--out``.
"""

from __future__ import annotations

import argparse
import json
import math
import queue
import time
from collections.abc import Callable
from dataclasses import asdict
from multiprocessing import Process, Queue, Value
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from tools.ember_speech.model import Config, Whisper
from tools.ember_speech.sound import LogMel, Worsen, gather
from tools.ember_speech.synthesis import UNKNOWN, Clip, read_clips, shard_path, start_writers
from tools.ember_speech.tokens import Vocabulary
from tools.ember_speech.windows import IGNORED, Batch, Composer, batch

PHONEME_WEIGHT, TIME_WEIGHT, SMOOTHING = 0.3, 0.1, 0.05
EMA_SECONDS = 45  # of the average of the weights, in time of training


def losses(
    model: Whisper, mel: Tensor, inputs: Tensor, targets: Tensor, spans: Tensor, phonemes: Tensor
) -> Tensor:
    """Means of what the text, the phonemes and the times cost: [3]."""
    states = model.encoder(mel)
    logits, attended = model.decoder(inputs, states, model.config.aligned)
    text = F.cross_entropy(
        logits.float().flatten(0, 1), targets.flatten(), ignore_index=IGNORED, label_smoothing=SMOOTHING
    )
    heard = F.cross_entropy(
        model.phonemes(states).float().flatten(0, 1), phonemes.flatten(), ignore_index=UNKNOWN
    )
    # Each token's attention is to be even over the time in which it is heard.
    begin, end = spans.unbind(-1)
    position = torch.arange(states.shape[1], device=states.device)
    inside = (position >= begin[..., None]) & (position < end[..., None])
    length = (end - begin).clamp(min=1)
    known = end > begin
    times = torch.stack([-(logs * inside[:, None]).sum(-1) / length[:, None] for logs in attended], 0)
    timed = (times * known[None, :, None]).sum() / (known.sum() * times.shape[0] * times.shape[2]).clamp(
        min=1
    )
    return torch.stack([text, heard, timed])


def sessions_of(clips: list[Clip], begin: int) -> list[list[Clip]]:
    """The clips of a shard by their session, whose samples begin at `begin` of the pool."""
    by_session: dict[int, list[Clip]] = {}
    for clip in clips:
        moved = Clip(clip.begin + begin, *(getattr(clip, name) for name in list(Clip.__annotations__)[1:]))
        by_session.setdefault(clip.session, []).append(moved)
    return list(by_session.values())


def _compose(folder: Path, ready: Any, out: Any, rows: int, seed: int) -> None:
    """Draw batches for ever from the shards of which `ready` counts those on the GPU."""
    vocabulary, sessions, known, begin = Vocabulary(), [], 0, 0  # type: ignore[var-annotated]
    composer = Composer(vocabulary, sessions, Random(f"windows {seed}"))
    while True:
        while known < ready.value:
            clips = read_clips(shard_path(folder, known))
            sessions += sessions_of(clips, begin)
            begin += clips[-1].begin + clips[-1].count
            known += 1
        if known:
            out.put(batch([composer.window() for _ in range(rows)]))
        else:
            time.sleep(0.05)


class Pool:
    """The samples of all shards so far, on the device; `ready` counts the shards, for other processes too."""

    def __init__(self, folder: Path, capacity: int, device: torch.device, ready: Any) -> None:
        self.samples = torch.empty(capacity, dtype=torch.int16, device=device)
        self.used = 0
        self.ready = ready
        self._folder = folder
        self._full = False

    def take(self, most: int) -> None:
        """Up to `most` shards more that are whole, while there is room; they are removed from the disk."""
        for _ in range(0 if self._full else most):
            path = shard_path(self._folder, self.ready.value).with_suffix(".npy")
            if not path.exists():
                return
            samples = torch.from_numpy(np.load(path))
            if self.used + len(samples) > len(self.samples):
                self._full = True
                return
            self.samples[self.used : self.used + len(samples)] = samples.to(self.samples.device)
            self.used += len(samples)
            with self.ready.get_lock():
                self.ready.value += 1
            path.unlink()


STACKS = ("encoder", "decoder")


def save_weights(state: dict[str, Tensor], folder: Path) -> None:
    """F16, a file for each stack; without what only the training has."""
    for stack in STACKS:
        arrays = {
            name: value.half().cpu().numpy()
            for name, value in state.items()
            if name.startswith(stack) and name != "encoder.positional_embedding"
        }
        part = folder / f"part-{stack}.npz"
        np.savez(part, **arrays)
        part.rename(folder / f"weights-{stack}.npz")


def load_weights(folder: Path, device: torch.device | str = "cpu") -> Whisper:
    """The model that ``save_weights`` wrote into a folder, or that of a file of ember-speech."""
    state: dict[str, Tensor] = {}
    if folder.is_file():
        from tools.ember_speech.export import read

        state = {name: torch.from_numpy(t.copy()) for name, t in read(folder).items()}
        del state["encoder.positional_embedding"]
    for stack in STACKS if not state else ():
        with np.load(folder / f"weights-{stack}.npz") as file:
            state |= {name: torch.from_numpy(file[name].astype(np.float32)) for name in file.files}
    layers = [
        len({name.split(".")[2] for name in state if name.startswith(f"{stack}.blocks.")}) for stack in STACKS
    ]
    vocab, width = state["decoder.token_embedding.weight"].shape
    model = Whisper(Config(vocab, width, *layers))
    missing, unexpected = model.load_state_dict(state, strict=False)
    if unexpected or not {*missing} <= {"phonemes.weight", "phonemes.bias", "encoder.positional_embedding"}:
        raise ValueError(f"{folder}: these weights are of another model: {(unexpected + missing)[0]}")
    return model.to(device).eval()


def optimizers(model: Whisper, rate: float, gpu: bool) -> list[torch.optim.Optimizer]:
    """Muon for the matrices within the stacks, AdamW for the rest."""
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and ".blocks." in n]
    chosen = {id(p) for p in matrices}
    rest = [p for p in model.parameters() if id(p) not in chosen]
    return [
        torch.optim.Muon(matrices, rate, weight_decay=0.05, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(rest, rate, betas=(0.9, 0.98), weight_decay=0.0, fused=gpu),
    ]


def rate_at(step: int, done: float, warmup: int = 300, steady: float = 0.3) -> float:
    """Linear warm-up over steps, then steady, then a cosine to almost zero over the rest of the time."""
    after = max(0.0, (done - steady) / (1 - steady))
    return min(1.0, (step + 1) / warmup) * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, after))))


def to_device(plan: Batch, pool: Tensor, mel: LogMel, worsen: Worsen) -> tuple[Tensor, ...]:
    """What ``losses`` takes of a batch."""
    device = pool.device
    with torch.no_grad():
        sound = worsen(gather(pool, plan), torch.from_numpy(plan.recorded).to(device))
        louder = torch.rand(len(sound), device=device) * 1.5 * (torch.rand(len(sound), device=device) < 0.25)
        spectrum = mel(sound, louder)
    arrays = (plan.inputs, plan.targets, plan.spans, plan.phonemes)
    return (spectrum, *(torch.from_numpy(a).to(device, non_blocking=True).long() for a in arrays))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=18, help="from the first step to the last")
    parser.add_argument(
        "--init", type=Path, help="folder of a training, or file, whose weights to begin with"
    )
    parser.add_argument("--rows", type=int, default=128, help="windows in a step")
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shards", type=int, default=900)
    parser.add_argument("--hours", type=float, default=380, help="of speech that the GPU keeps")
    parser.add_argument("--workers", type=int, default=2, help="processes that make speech")
    parser.add_argument("--composers", type=int, default=1, help="processes that draw windows")
    parser.add_argument("--tiny", action="store_true", help="a small model for two minutes")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.tiny:
        args.rows, args.shards, args.hours, args.minutes = 4, 2, 2, min(args.minutes, 2)

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    gpu = device.type == "cuda"
    folder = args.out / "speech"
    writers = start_writers(folder, args.seed, args.shards, args.workers)
    ready, plans = Value("i", 0), Queue(maxsize=24)  # type: ignore[var-annotated]
    composers = [
        Process(target=_compose, args=(folder, ready, plans, args.rows, f"{args.seed}/{i}"), daemon=True)
        for i in range(args.composers)
    ]
    for process in composers:
        process.start()
    pool = Pool(folder, round(args.hours * 3600 * 16000), device, ready)

    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    vocabulary = Vocabulary()
    config = Config(
        vocabulary.size, **({"width": 128, "audio_layers": 2, "text_layers": 3} if args.tiny else {})
    )
    model = Whisper(config).to(device)
    if args.init:
        state = load_weights(args.init).state_dict()
        model.load_state_dict({n: p for n, p in state.items() if "phonemes" not in n}, strict=False)
    average = {name: p.detach().clone() for name, p in model.state_dict().items()}
    steppers = optimizers(model, args.rate, gpu)
    loss_fn: Callable[..., Tensor] = torch.compile(losses, dynamic=False) if gpu else losses
    mel, worsen = (
        LogMel(device),
        Worsen(device, args.seed, noises=384 if gpu else 16, sounds=1024 if gpu else 16),
    )
    weights = torch.tensor([1.0, PHONEME_WEIGHT, TIME_WEIGHT], device=device)

    history: list[dict[str, Any]] = []
    opened = time.monotonic()
    step, done, began, saved = 0, 0.0, math.inf, 0.0
    while done < 1:
        pool.take(2)
        try:
            plan = plans.get(timeout=0.2 if not pool.ready.value else 60)
        except queue.Empty:
            if any(process.exitcode not in (None, 0) for process in (*writers, *composers)):
                raise SystemExit("a process that makes the speech has failed; its message is above") from None
            continue
        worsen.renew()
        given = to_device(plan, pool.samples, mel, worsen)
        factor = rate_at(step, done)
        for stepper in steppers:
            for group in stepper.param_groups:
                group["lr"] = args.rate * factor
        with torch.autocast(device.type, torch.bfloat16, enabled=gpu):
            parts = loss_fn(model, *given)
        (parts * weights).sum().backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        for stepper in steppers:
            stepper.step()
            stepper.zero_grad(set_to_none=True)
        step += 1
        now = time.monotonic()
        began = now if step == 3 else began
        spent = max(0.0, now - began)
        done = spent / (60 * args.minutes)
        if step % 10 == 0:
            share = min(1.0, 10 * spent / step / EMA_SECONDS) if spent > EMA_SECONDS else 0.5
            torch._foreach_lerp_(list(average.values()), list(model.state_dict().values()), share)
        if step % 100 == 0 or done >= 1 or (not gpu and step % 5 == 0):
            values = [round(value, 4) for value in (*parts.tolist(), norm.item())]
            hours = pool.used / 3600 / 16000
            history.append(
                {"step": step, "losses": values, "seconds": round(now - opened, 1), "hours": round(hours, 1)}
            )
            costs = "text {} phonemes {} times {} norm {}".format(*values)
            waiting = plans.qsize()
            print(
                f"step {step} {costs} {now - opened:.0f} s, {hours:.1f} h of speech, {waiting} waiting",
                flush=True,
            )
        if spent > saved + 90:
            save_weights(average, args.out)
            saved = spent
    save_weights(average, args.out)
    report = {
        "config": asdict(config),
        "steps": step,
        "rows": args.rows,
        "rate": args.rate,
        "seed": args.seed,
        "init": str(args.init) if args.init else None,
        "minutes": args.minutes,
        "hours": round(pool.used / 3600 / 16000, 1),
        "device": torch.cuda.get_device_name() if gpu else "cpu",
        "history": history,
    }
    (args.out / "train.json").write_text(json.dumps(report, indent=1))
    for process in (*writers, *composers):
        process.terminate()


if __name__ == "__main__":
    main()
