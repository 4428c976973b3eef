"""Make tests/data/adapters: adapters as PEFT writes them, and what it computes with them.

Usage: PYTHONPATH=tests python -m tools.make_adapter_golden

Needs torch, Transformers and PEFT. The files are committed. The values are random, in 16 bits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import peft
import torch

from models import hf, tiny

ROOT = Path(__file__).resolve().parents[1]
CASES: dict[str, dict[str, Any]] = {
    "patterns": {
        "r": 4,
        "lora_alpha": 8,
        "target_modules": "all-linear",
        "rank_pattern": {"q_proj": 2, "model.layers.1.mlp.down_proj": 6},
        "alpha_pattern": {"k_proj": 3, "model.layers.2.self_attn.v_proj": 5},
    },
    "rslora": {"r": 3, "lora_alpha": 6, "use_rslora": True, "target_modules": ["q_proj", "v_proj"]},
}


def main() -> None:
    """Write each case: PEFT's folder, a prompt, and the logits behind each of its tokens."""
    for name, settings in CASES.items():
        torch.manual_seed(7)
        config = peft.LoraConfig(init_lora_weights=False, task_type="CAUSAL_LM", **settings)
        model = peft.get_peft_model(hf.model(tiny.EVERY["llama"]), config)
        with torch.no_grad():
            for parameter_name, parameter in model.named_parameters():
                if "lora_" in parameter_name:
                    parameter.copy_(parameter.half().float())
        prompt = np.random.default_rng(1).integers(3, 263, 12).astype(np.int32)
        with torch.no_grad():
            logits = model(torch.tensor(prompt[None].astype(np.int64))).logits[0].float().numpy()
        folder = ROOT / "tests/data/adapters" / name
        model.half().save_pretrained(folder)
        (folder / "README.md").unlink(missing_ok=True)
        np.savez_compressed(folder / "golden.npz", prompt=prompt, logits=logits[-1])


if __name__ == "__main__":
    main()
