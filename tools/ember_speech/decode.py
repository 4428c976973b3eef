"""Transcripts of many windows at once in PyTorch, greedily, by OpenAI's timestamp rules; and word times."""

from __future__ import annotations

import torch
from torch import Tensor

from tools.ember_speech.model import Whisper
from tools.ember_speech.tokens import Vocabulary
from tools.ember_speech.windows import CONTEXT, POSITIONS


def _allowed(ids: Tensor, logits: Tensor, v: Vocabulary) -> Tensor:
    """The logits [windows, vocab] of what may follow ids [windows, rows], the first of which is the start."""
    logits = logits.clone()
    logits[:, v.end + 1 : v.zero] = -torch.inf
    stamp = ids[:, 1:] >= v.zero
    if not stamp.shape[1]:
        logits[:, : v.zero] = -torch.inf
        logits[:, v.zero + 51 :] = -torch.inf  # within a second
        return logits
    last = stamp[:, -1]
    before = stamp[:, -2] if stamp.shape[1] > 1 else torch.ones_like(last)
    logits[:, v.zero :].masked_fill_((last & before)[:, None], -torch.inf)
    logits[:, : v.end].masked_fill_((last & ~before)[:, None], -torch.inf)
    least = ids.clamp(min=v.zero).amax(1) + (~(last & ~before)).long()
    tokens = torch.arange(logits.shape[1], device=ids.device)
    logits[(tokens >= v.zero) & (tokens < least[:, None])] = -torch.inf
    log = logits.log_softmax(-1)
    stamped = log[:, v.zero :].logsumexp(-1) > log[:, : v.zero].amax(-1)
    return logits.masked_fill(stamped[:, None] & (tokens < v.zero), -torch.inf)


@torch.no_grad()
def transcripts(model: Whisper, mel: Tensor, v: Vocabulary) -> list[list[int]]:
    """Tokens of each window with timestamps, without the end."""
    states = model.encoder(mel)
    ids = torch.full((len(mel), 1), v.start, device=mel.device)
    ended = torch.zeros(len(mel), dtype=torch.bool, device=mel.device)
    while ids.shape[1] <= CONTEXT // 2 and not ended.all():
        logits = model.decoder(ids, states)[0][:, -1].float()
        following = _allowed(ids, logits, v).argmax(-1).where(~ended, v.end)
        ended |= following == v.end
        ids = torch.cat([ids, following[:, None]], 1)
    return [row[1 : (*row, v.end).index(v.end)] for row in ids.tolist()]


@torch.no_grad()
def attention(
    model: Whisper, mel: Tensor, text: list[int], v: Vocabulary, heads: tuple[tuple[int, int], ...]
) -> Tensor:
    """How `heads` attend, [heads, rows, POSITIONS], to a text that no timestamps are in."""
    ids = torch.tensor([[v.start, v.no_timestamps, *text, v.end]], device=mel.device)
    found = model.decoder(ids, model.encoder(mel[None]), heads)[1]
    return torch.cat(found, 1)[0, :, :, :POSITIONS].exp()
