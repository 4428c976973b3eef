"""Short names of well-known models: `qwen3:4b` for a repository and a file on the Hugging Face Hub.

Sizes are those of the files, rounded. The bytes that a token takes in the KV cache follow from the published
configurations: keys and values of all layers in F16.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

__all__ = ["SHORT_NAMES", "ShortName", "close_names", "meaning"]

Kind = Literal["chat", "coder", "embedding", "reranking", "speech"]

_MB: Final = 10**6
_GB: Final = 10**9
_BASE: Final = 300 * _MB
"""Bytes that a process takes besides: activations, the tokenizer, Python."""


_WINDOW_ROWS: Final = 1024
"""Tokens that the cache of layers with a window has room for besides the window."""


class Cache(NamedTuple):
    """The memory of a model's KV cache."""

    token_bytes: int
    """Bytes of a token, in layers that see the whole sequence."""
    windowed_bytes: int = 0
    window: int = 0
    """Bytes of a token, in layers that see the last `window` tokens."""

    def bytes(self, tokens: int) -> int:
        """Return the bytes for a sequence of so many tokens."""
        return self.token_bytes * tokens + self.windowed_bytes * min(tokens, self.window + _WINDOW_ROWS)


@dataclass(frozen=True)
class ShortName:
    """A model by its short name.

    Attributes
    ----------
    name
        `FAMILY:SIZE`.
    kind
        What the model is for.
    repo, file
        The repository, and the file or quantization in it; "": a folder of SafeTensors.
    bytes
        Size on disk.
    cache
        What its KV cache takes.
    context
        Tokens that the model was trained for.
    licence
        Name of the licence, as the repository gives it.
    """

    name: str
    kind: Kind
    repo: str
    file: str
    bytes: int
    cache: Cache
    context: int
    licence: str

    @property
    def target(self) -> str:
        """The name on the Hub."""
        return f"{self.repo}:{self.file}" if self.file else self.repo

    def memory(self, tokens: int) -> int:
        """Estimate the bytes of memory that the model needs with a context of `tokens`."""
        return self.bytes + self.cache.bytes(min(tokens, self.context)) + _BASE

    def facts(self, memory: int) -> dict[str, str | int | bool]:
        """Describe the model for a machine with so many bytes of memory, as JSON has it."""
        return {
            "name": self.name,
            "kind": self.kind,
            "model": self.target,
            "bytes": self.bytes,
            "memory_4k": self.memory(4096),
            "memory_32k": self.memory(32768),
            "context": self.context,
            "licence": self.licence,
            "fits": self.memory(4096) <= memory,
        }


def _rows(kind: Kind, *rows: tuple[str, str, str, float, Cache, int, str]) -> list[ShortName]:
    return [ShortName(row[0], kind, row[1], row[2], int(row[3] * _MB), *row[4:]) for row in rows]


def _kv(layers: int, heads: int, head_dim: int, windowed: int = 0, window: int = 0) -> Cache:
    """`windowed` of the layers see the last `window` tokens."""
    layer = 2 * heads * head_dim * 2
    return Cache((layers - windowed) * layer, windowed * layer, window)


_NONE: Final = Cache(0)


_APACHE, _LLAMA, _GEMMA, _MIT = "apache-2.0", "llama", "gemma", "mit"
_Q4: Final = "Q4_K_M"
_ALL: Final = (
    *_rows(
        "chat",
        ("qwen3:0.6b", "Qwen/Qwen3-0.6B-GGUF", "Q8_0", 639, _kv(28, 8, 128), 40960, _APACHE),
        ("qwen3:1.7b", "Qwen/Qwen3-1.7B-GGUF", "Q8_0", 1830, _kv(28, 8, 128), 40960, _APACHE),
        ("qwen3:4b", "Qwen/Qwen3-4B-GGUF", _Q4, 2500, _kv(36, 8, 128), 40960, _APACHE),
        ("qwen3:8b", "Qwen/Qwen3-8B-GGUF", _Q4, 5030, _kv(36, 8, 128), 40960, _APACHE),
        ("qwen3:14b", "Qwen/Qwen3-14B-GGUF", _Q4, 9000, _kv(40, 8, 128), 40960, _APACHE),
        ("qwen3:32b", "Qwen/Qwen3-32B-GGUF", _Q4, 19800, _kv(64, 8, 128), 40960, _APACHE),
        ("qwen3:30b-a3b", "Qwen/Qwen3-30B-A3B-GGUF", _Q4, 18600, _kv(48, 4, 128), 40960, _APACHE),
        ("gpt-oss:20b", "ggml-org/gpt-oss-20b-GGUF", "", 12110, _kv(24, 8, 64, 12, 128), 131072, _APACHE),
        ("gemma3:270m", "ggml-org/gemma-3-270m-it-GGUF", "", 292, _kv(18, 1, 256, 15, 512), 32768, _GEMMA),
        ("gemma3:1b", "ggml-org/gemma-3-1b-it-GGUF", _Q4, 806, _kv(26, 1, 256, 22, 512), 32768, _GEMMA),
        ("gemma3:4b", "ggml-org/gemma-3-4b-it-GGUF", _Q4, 2490, _kv(34, 4, 256, 29, 1024), 131072, _GEMMA),
        ("gemma3:12b", "ggml-org/gemma-3-12b-it-GGUF", _Q4, 7300, _kv(48, 8, 256, 40, 1024), 131072, _GEMMA),
        (
            "gemma3:27b",
            "ggml-org/gemma-3-27b-it-GGUF",
            _Q4,
            16500,
            _kv(62, 16, 128, 52, 1024),
            131072,
            _GEMMA,
        ),
        ("llama3.2:1b", "bartowski/Llama-3.2-1B-Instruct-GGUF", _Q4, 808, _kv(16, 8, 64), 131072, _LLAMA),
        ("llama3.2:3b", "bartowski/Llama-3.2-3B-Instruct-GGUF", _Q4, 2020, _kv(28, 8, 128), 131072, _LLAMA),
        (
            "llama3.1:8b",
            "bartowski/Meta-Llama-3.1-8B-Instruct-GGUF",
            _Q4,
            4920,
            _kv(32, 8, 128),
            131072,
            _LLAMA,
        ),
        ("mistral:7b", "bartowski/Mistral-7B-Instruct-v0.3-GGUF", _Q4, 4370, _kv(32, 8, 128), 32768, _APACHE),
        (
            "phi4-mini:3.8b",
            "bartowski/microsoft_Phi-4-mini-instruct-GGUF",
            _Q4,
            2490,
            _kv(32, 8, 128),
            131072,
            _MIT,
        ),
        ("phi4:14b", "bartowski/phi-4-GGUF", _Q4, 9050, _kv(40, 10, 128), 16384, _MIT),
        ("smollm2:135m", "bartowski/SmolLM2-135M-Instruct-GGUF", _Q4, 105, _kv(30, 3, 64), 8192, _APACHE),
        ("smollm2:360m", "bartowski/SmolLM2-360M-Instruct-GGUF", _Q4, 271, _kv(32, 5, 64), 8192, _APACHE),
        ("smollm2:1.7b", "bartowski/SmolLM2-1.7B-Instruct-GGUF", _Q4, 1060, _kv(24, 32, 64), 8192, _APACHE),
        ("qwen2.5:0.5b", "Qwen/Qwen2.5-0.5B-Instruct-GGUF", _Q4, 491, _kv(24, 2, 64), 32768, _APACHE),
        ("qwen2.5:1.5b", "Qwen/Qwen2.5-1.5B-Instruct-GGUF", _Q4, 1120, _kv(28, 2, 128), 32768, _APACHE),
        ("qwen2.5:7b", "Qwen/Qwen2.5-7B-Instruct-GGUF", _Q4, 4680, _kv(28, 4, 128), 32768, _APACHE),
    ),
    *_rows(
        "coder",
        (
            "qwen2.5-coder:0.5b",
            "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
            _Q4,
            491,
            _kv(24, 2, 64),
            32768,
            _APACHE,
        ),
        (
            "qwen2.5-coder:1.5b",
            "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
            _Q4,
            1120,
            _kv(28, 2, 128),
            32768,
            _APACHE,
        ),
        (
            "qwen2.5-coder:7b",
            "Qwen/Qwen2.5-Coder-7B-Instruct-GGUF",
            _Q4,
            4680,
            _kv(28, 4, 128),
            32768,
            _APACHE,
        ),
        (
            "qwen2.5-coder:14b",
            "Qwen/Qwen2.5-Coder-14B-Instruct-GGUF",
            _Q4,
            8990,
            _kv(48, 8, 128),
            32768,
            _APACHE,
        ),
        (
            "qwen2.5-coder:32b",
            "Qwen/Qwen2.5-Coder-32B-Instruct-GGUF",
            _Q4,
            19850,
            _kv(64, 8, 128),
            32768,
            _APACHE,
        ),
    ),
    *_rows(
        "embedding",
        ("minilm:l6", "sentence-transformers/all-MiniLM-L6-v2", "", 91, _NONE, 256, _APACHE),
        ("bge:small-en", "BAAI/bge-small-en-v1.5", "", 133, _NONE, 512, _MIT),
        ("multilingual-e5:small", "intfloat/multilingual-e5-small", "", 471, _NONE, 512, _MIT),
        ("nomic-embed-text:v1.5", "nomic-ai/nomic-embed-text-v1.5", "", 547, _NONE, 8192, _APACHE),
        ("qwen3-embedding:0.6b", "Qwen/Qwen3-Embedding-0.6B-GGUF", "Q8_0", 639, _NONE, 32768, _APACHE),
        ("embeddinggemma:300m", "ggml-org/embeddinggemma-300M-GGUF", "Q8_0", 334, _NONE, 2048, _GEMMA),
    ),
    *_rows(
        "reranking",
        ("ms-marco:minilm", "cross-encoder/ms-marco-MiniLM-L6-v2", "", 91, _NONE, 512, _APACHE),
        ("bge-reranker:v2-m3", "BAAI/bge-reranker-v2-m3", "", 2270, _NONE, 8192, _APACHE),
    ),
    *_rows(
        "speech",
        ("whisper:tiny", "openai/whisper-tiny", "", 151, _NONE, 448, _APACHE),
        ("whisper:tiny.en", "openai/whisper-tiny.en", "", 151, _NONE, 448, _APACHE),
        ("whisper:base", "openai/whisper-base", "", 290, _NONE, 448, _APACHE),
        ("whisper:base.en", "openai/whisper-base.en", "", 290, _NONE, 448, _APACHE),
        ("whisper:small", "openai/whisper-small", "", 967, _NONE, 448, _APACHE),
        ("whisper:small.en", "openai/whisper-small.en", "", 967, _NONE, 448, _APACHE),
        ("whisper:medium", "openai/whisper-medium", "", 3060, _NONE, 448, _APACHE),
        ("whisper:medium.en", "openai/whisper-medium.en", "", 3060, _NONE, 448, _APACHE),
        ("whisper:large-v3", "openai/whisper-large-v3", "", 3090, _NONE, 448, _APACHE),
        ("whisper:large-v3-turbo", "openai/whisper-large-v3-turbo", "", 1620, _NONE, 448, _MIT),
        ("whisper:distil-large-v3", "distil-whisper/distil-large-v3", "", 1510, _NONE, 448, _MIT),
    ),
)

SHORT_NAMES: Final = {row.name: row for row in _ALL}
"""The rows, by name."""

_USUAL: Final = {
    "qwen3": "qwen3:8b", "gpt-oss": "gpt-oss:20b", "gemma3": "gemma3:4b", "llama3.2": "llama3.2:3b",
    "llama3.1": "llama3.1:8b", "mistral": "mistral:7b", "phi4": "phi4:14b", "phi4-mini": "phi4-mini:3.8b",
    "smollm2": "smollm2:1.7b", "qwen2.5": "qwen2.5:7b", "qwen2.5-coder": "qwen2.5-coder:7b",
    "minilm": "minilm:l6", "all-minilm": "minilm:l6", "bge": "bge:small-en",
    "multilingual-e5": "multilingual-e5:small", "nomic-embed-text": "nomic-embed-text:v1.5",
    "qwen3-embedding": "qwen3-embedding:0.6b", "embeddinggemma": "embeddinggemma:300m",
    "bge-reranker": "bge-reranker:v2-m3", "ms-marco": "ms-marco:minilm", "whisper": "whisper:small",
    "whisper:large": "whisper:large-v3", "whisper:turbo": "whisper:large-v3-turbo",
}  # fmt: skip
"""The model of a family without a size, and other names; a smaller one where memory is short."""

_QUANTIZED: Final = re.compile(r"-(q\d\w*|iq\d\w*|f16|bf16|f32|mxfp4)$", re.IGNORECASE)


def meaning(name: str, *, speech: bool = False, memory: int | None = None) -> ShortName | None:
    """Return the model that a short name means; None where it means none.

    Parameters
    ----------
    name
        `FAMILY:SIZE`, `FAMILY` or `FAMILY:latest`, or `FAMILY:SIZE-QUANTIZATION` where the files are GGUF.
    speech
        A speech model is wanted: sizes alone are Whisper's (`small`, `large-v3-turbo`), as for
        faster-whisper.
    memory
        Bytes of this machine's memory. A family without a size is the largest one, up to the usual one, that
        fits.
    """
    wanted = name.lower().removesuffix(":latest")
    if speech and ":" not in wanted:
        wanted = f"whisper:{wanted.removeprefix('whisper-')}" if wanted != "whisper" else wanted
    if (row := SHORT_NAMES.get(wanted)) is not None:
        return row
    if (usual := _USUAL.get(wanted)) is not None:
        return _fitting(SHORT_NAMES[usual], memory)
    plain, n = _QUANTIZED.subn("", wanted)
    row = SHORT_NAMES.get(plain) if n else None
    if row is None or not row.repo.lower().endswith("-gguf"):
        return None
    kind = wanted[len(plain) + 1 :].upper()
    return ShortName(wanted, row.kind, row.repo, kind, row.bytes, row.cache, row.context, row.licence)


def _fitting(usual: ShortName, memory: int | None) -> ShortName:
    family = usual.name.partition(":")[0] + ":"
    smaller = [row for row in _ALL if row.name.startswith(family) and row.bytes <= usual.bytes]
    by_size = sorted(smaller, key=lambda row: -row.bytes)
    if memory is None or usual.kind == "speech":
        return usual
    return next((row for row in by_size if row.memory(4096) <= memory), by_size[-1])


def close_names(name: str) -> list[str]:
    """List short names that resemble a name, the nearest first."""
    return difflib.get_close_matches(name.lower(), [*SHORT_NAMES, *_USUAL], n=3, cutoff=0.7)
