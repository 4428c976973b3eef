"""Make tests/data/golden, what Transformers computes with the tiny models, and tests/data/hf, their folders.

Usage: PYTHONPATH=tests python -m tools.make_golden [NAME...]

Needs torch and Transformers. Run it after a change in tests/models/tiny.py; the files are committed. The
prompt is random, and drawn again until no step of the greedy continuation is a near tie.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parents[1]
from models import assistants, families, folders, hf, qwen35, rows, tiny  # noqa: E402

PROMPT_TOKENS = 48
NEW_TOKENS = 32
MIN_GAP = 0.05
MIN_DISTINCT = 10
END_ID = 2


def make(row: tiny.Tiny | qwen35.Qwen35 | families.Family | rows.Row) -> None:
    """Write the golden file of one model."""
    if isinstance(row, families.Family):
        with tempfile.TemporaryDirectory() as folder:
            model = hf.family_model(row, Path(folder))
        weights = families.weights(row)
    elif isinstance(row, rows.Row):
        (folders.HF_DIR / row.name).mkdir(parents=True, exist_ok=True)
        shapes = json.dumps(hf.row_shapes(row), indent=0)
        (folders.HF_DIR / row.name / "shapes.json").write_text(shapes + "\n")
        model, weights = hf.row_model(row), rows.weights(row)
    elif isinstance(row, qwen35.Qwen35):
        model, weights = hf.qwen35_model(row), qwen35.weights(row)
    else:
        model, weights = hf.model(row), tiny.weights(row)
    for attempt in range(200):
        rng = np.random.RandomState(1000 * row.seed + attempt)
        prompt = rng.randint(3, row.vocab_size, PROMPT_TOKENS).tolist()
        ids, gaps = hf.greedy(model, prompt, NEW_TOKENS, MIN_GAP)
        if gaps.min() >= MIN_GAP and len(set(ids)) >= MIN_DISTINCT and END_ID not in ids:
            break
    else:
        raise SystemExit(f"{row.name}: no prompt without a near tie; change the seed")
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(row, families.Family):
            write(row.name, model, prompt, ids, gaps, weights, attempt)
            return
        model.save_pretrained(folder)
        for name in ("config.json", "generation_config.json"):
            shutil.copy(Path(folder) / name, folders.HF_DIR / row.name)
    write(row.name, model, prompt, ids, gaps, weights, attempt)


def write(
    name: str,
    model: Any,
    prompt: list[int],
    ids: list[int],
    gaps: npt.NDArray[np.float32],
    weights: tiny.Weights,
    attempt: int,
) -> None:
    """Write what the model computes."""
    logits = hf.logits(model, prompt)
    np.savez_compressed(
        tiny.GOLDEN_DIR / f"{name}.npz",
        prompt=np.asarray(prompt, np.int32),
        logits=logits.astype(np.float32),
        ids=np.asarray(ids, np.int32),
        gaps=gaps,
        fingerprint=np.asarray(tiny.fingerprint(weights)),
    )
    print(
        f"{name:14} attempt {attempt:3}  min gap {gaps.min():.3f}  "
        f"distinct ids {len(set(ids))}/{NEW_TOKENS}  logit spread {logits.std():.2f}"
    )


def make_assistant(row: assistants.Assistant) -> None:
    """Write what an assistant drafts behind each token of the golden text of its model."""
    with tempfile.TemporaryDirectory() as folder:
        drafts, gaps = assistants.drafted(row, Path(folder))
    np.savez_compressed(assistants.GOLDEN / f"{row.name}.npz", drafts=drafts, gaps=gaps)
    print(f"{row.name:14} median gap {np.median(gaps):.3f}")


def main(names: list[str]) -> None:
    """Make the named models, or all."""
    tiny.GOLDEN_DIR.mkdir(parents=True, exist_ok=True)
    every: dict[str, tiny.Tiny | qwen35.Qwen35 | families.Family | rows.Row] = {
        **tiny.EVERY, **qwen35.ALL, **families.ALL, **families.IN_FOLDERS,
        **rows.ALL,
    }  # fmt: skip
    for name in names or [*every, *assistants.ALL]:
        if name in assistants.ALL:
            make_assistant(assistants.ALL[name])
        else:
            make(every[name])


if __name__ == "__main__":
    main(sys.argv[1:])
