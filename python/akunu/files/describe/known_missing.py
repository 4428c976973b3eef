"""Architectures and model types that Akunu knows by name but does not run, and what each of them needs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["ASSISTANTS", "why_missing"]

_NEEDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "norms behind its convolutions, and gates on heads": "lfm3",
        "Mamba layers of its kind": (
            "mamba mamba2 falcon-h1 falcon_h1 falcon_mamba jamba plamo2 zamba2 bamba"
        ),
        "latent attention of its kind": "minicpm3 plm deepseek2-ocr deepseek_v32 glm-dsa glm_moe_dsa",
        "linear attention (RWKV)": "rwkv6 rwkv7 arwkv7 rwkv6qwen2",
        "linear attention (KDA)": "kimi-linear kimi_linear bailing_hybrid",
        "chunked attention": "llama4 llama4_text",
        "layers that attend to images": "mllama mllama_text_model",
        "a router with groups, a choice bias or leading dense layers": ("bailingmoe2 deepseek dots1"),
        "experts of its kind": ("cohere2moe cohere2_moe dbrx grok olmoe phimoe"),
        "an encoder for the decoder to attend to": "t5 t5encoder",
        "learned positions that begin behind others": "opt",
        "ALiBi": "bloom mpt baichuan",
        "two norms ahead of parallel blocks": "gptneox gpt_neox",
        "biases of parallel blocks and of the output": "phi phi2 gptj",
    }
)

_MISSING: Final[Mapping[str, str]] = MappingProxyType(
    {name: what for what, names in _NEEDS.items() for name in names.split()}
)
ASSISTANTS: Final = ("gemma4-assistant", "gemma4_assistant", "gemma4_unified_assistant")
"""Models that draft for Gemma 4: the architecture of GGUF files, and the model types of folders."""


def why_missing(name: object) -> str:
    """Return what is missing for an architecture or model type, as the middle of a message; or ""."""
    if name in ASSISTANTS:
        return ", which drafts for Gemma 4: load the model that it belongs to, with draft= this one"
    what = _MISSING.get(name) if isinstance(name, str) else None
    return f", which is known but not run yet: it needs {what}" if what else ""
