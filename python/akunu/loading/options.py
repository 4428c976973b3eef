"""The options of `akunu.load`: their defaults, their limits, and which models have which."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from akunu._core import MAX_PARALLEL, MAX_THREADS
from akunu.base.arguments import Limit, as_model_name, as_path
from akunu.base.errors import InvalidArgumentError, UnsupportedError
from akunu.files.describe.filetypes import FILE_TYPES, kv_dtypes
from akunu.files.overrides import key_overrides, rope_scaling
from akunu.loading.placement import is_spread, present

__all__ = ["OF_SPEECH", "OF_TEXT", "OF_VECTORS", "OWN_HEAD", "SIZE", "THREADS", "LoadOptions"]

SIZE: Final = Limit(int, 1, (1 << 31) - 1)
THREADS: Final = Limit(int, 1, MAX_THREADS)
_BYTES: Final = Limit(int, 1, (1 << 63) - 1)
_SIZES: Final = {
    "context": SIZE,
    "threads": THREADS,
    "parallel": Limit(int, 1, MAX_PARALLEL),
    "kv_memory": _BYTES,
    "memory": _BYTES,
    "cache_size": _BYTES,
}
_OWN: Final = {"context": (0,), "threads": (0, -1)}
"""Numbers that stand for what suits the model and the machine, as other programs have them."""
OWN_HEAD: Final = "mtp"
"""The value of `draft` that stands for a head of the model's own."""
_TASKS: Final = ("embed", "rerank", "transcribe")


class LoadOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of loading a model.

    Attributes
    ----------
    device
        "auto" (a GPU if there is one that has room for the model and kernels for it, else the CPU, with a
        warning that says why), an id of `akunu.devices()`, or several GPUs of one kind that share the model,
        "cuda:0,1": each has its part of the weights and of the KV cache, so that `kv_memory` is of each.
    context
        Most tokens of prompt and generated text together; None or 0: what the model was trained for, but at
        most 4096. The KV cache has room for one such sequence at least.
    threads
        CPU threads; None, 0 or -1: one for each physical core that this process may use.
    kv_dtype
        Type of the KV cache: "f16", "f32", "q8_0" or "q4_0" (8 or 4 bits with a scale for every 32 values).
        Values may have another type than keys: "q8_0,q4_0" names first that of keys. Latent attention keeps
        keys alone.
    parallel
        Sequences that are generated at a time, at most 256; others wait.
    kv_memory
        Bytes of the KV cache; None: `context` tokens for each of `parallel` sequences, but at most half of
        the device's memory. Layers with a window keep what it reaches only; recurrent states are part of it.
        What sequences do not need keeps earlier ones, so that a prompt that begins like one of them runs only
        what is new. Memory is taken as it is used.
    memory
        Bytes that the model may take in all: weights, KV cache, and what is between them. The experts of a
        model that has some stay in their file, on the CPU: those that were used last are kept in what is left
        of this memory, others are read when a step needs them. None: what the device has; a model with
        experts that is larger than that runs so, too.
    quantize
        A file type, such as "q4_k_m" or "q8_0": the weights are quantised as they are loaded, as
        `akunu.convert` would quantise them. What has another quantised type is quantised again.
    draft
        What writes a few tokens ahead, which the model verifies in one step, where that is faster; the text
        does not depend on it. A smaller model with the same vocabulary, or Gemma 4's assistant, named like
        `path`; "mtp", the head of the model's own for it (multi-token prediction), as Qwen 3.5, GLM 4.5 and
        DeepSeek V3 have one; None, that head where the files have it, or what is in a file mtp-NAME.gguf
        beside NAME.gguf or in a folder NAME-assistant beside the folder NAME; or False, neither. Models that
        make vectors have no use for it.
    mmproj
        The file with the tower of a GGUF model that reads images. None: the one beside the model, by its name
        (mmproj-….gguf), if there is one; folders have theirs in them. False: none, so that the model reads
        text only and takes less memory.
    cache_dir
        A folder in which pages of the KV cache are kept when sequences end, so that a prompt that begins like
        a sequence of an earlier process runs only what is new. It is made if need be, and may be that of
        other models and processes. The files hold the tokens, and only their owner may read them. None:
        memory only. Models that make vectors keep nothing.
    cache_size
        Bytes of the files in `cache_dir`, those of other models included; what was used longest ago is
        deleted.
    adapters
        Adapters (LoRA) that generations may name: llama.cpp's GGUF files or PEFT's folders, by name, as of
        `Model.add_adapter`.
    task
        "embed", "rerank", "transcribe": the model has to make vectors, score documents, or be one of speech;
        type checkers then know its class. For "rerank" a chat model such as Qwen3-Reranker's is asked for a
        yes or a no. None: what the files say: text, vectors or speech.
    rope_scaling
        Another rotary scaling than the files', for a longer context, as model cards tell: a mapping as in
        `config.json` (`rope_type` "yarn" or "linear", `factor`, `original_max_position_embeddings`, …), its
        JSON text, or TYPE:FACTOR[:ORIGINAL] such as "yarn:4:32768". The context may then be FACTOR times as
        long as ORIGINAL, by default that of the training.
    override_kv
        Other values for keys of a GGUF file: a mapping, or texts such as
        "tokenizer.ggml.add_bos_token=bool:false" with the types int, float, bool and str.
    """

    device: str = "auto"
    context: int | None = None
    threads: int | None = None
    kv_dtype: str = "f16"
    parallel: int = 8
    kv_memory: int | None = None
    memory: int | None = None
    quantize: str | None = None
    draft: str | os.PathLike[str] | bool | None = None
    mmproj: str | os.PathLike[str] | Literal[False] | None = None
    cache_dir: str | os.PathLike[str] | None = None
    cache_size: int = 16 << 30
    adapters: Mapping[str, str | os.PathLike[str]] | None = None
    task: Literal["embed", "rerank", "transcribe"] | None = None
    rope_scaling: dict[str, Any] | str | None = None
    override_kv: dict[str, Any] | list[str] | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> LoadOptions:
        """Return the options of a call of `load`, checked.

        Raises
        ------
        TypeError
            There is no such option.
        InvalidArgumentError
            As `checked` says.
        """
        unknown = next((name for name in options if name not in cls.__struct_fields__), None)
        if unknown is not None:
            raise TypeError(f"load() got an unexpected keyword argument {unknown!r}")
        return cls(**options).checked()

    def checked(self) -> LoadOptions:
        """Return the options with sizes as integers and folders as paths, as far as goes without a model.

        Raises
        ------
        InvalidArgumentError
            One is out of range, or there is no such device.
        """
        if self.task not in (None, *_TASKS):
            raise InvalidArgumentError(
                f"task: found {self.task!r}, expected 'embed', 'rerank', 'transcribe' or None"
            )
        kv_dtypes(self.kv_dtype)
        found: dict[str, Any] = {
            name: None if _is_left_open(name, value) else limit.check(name, value)
            for name, limit in _SIZES.items()
            for value in [getattr(self, name)]
        }
        if self.cache_dir is not None:
            found["cache_dir"] = as_path("cache_dir", self.cache_dir)
        if self.adapters is not None:
            if not isinstance(self.adapters, Mapping):
                raise InvalidArgumentError(
                    f"adapters: expected a mapping of name to path, got {self.adapters!r}"
                )
            found["adapters"] = {
                name: as_path(f"adapters[{name!r}]", at) for name, at in self.adapters.items()
            }
        if self.draft is not None and self.draft is not False:
            as_model_name("draft", self.draft)
        if self.mmproj is not None and self.mmproj is not False:
            found["mmproj"] = as_path("mmproj", self.mmproj)
        found |= {
            "rope_scaling": rope_scaling(self.rope_scaling),
            "override_kv": key_overrides(self.override_kv),
        }
        present(self.device)
        if is_spread(self.device):
            for name, what in {"cache_dir": "pages in files", "adapters": "adapters"}.items():
                if getattr(self, name) is not None:
                    raise UnsupportedError(
                        f"{name}: a model on several GPUs has no {what}; leave it out, or name one "
                        "GPU, as in device='cuda:0'"
                    )
        if self.quantize is not None and self.quantize not in tuple(FILE_TYPES):
            raise InvalidArgumentError(f"quantize: no {self.quantize!r}; there is {', '.join(FILE_TYPES)}")
        return msgspec.structs.replace(self, **found)

    @property
    def draft_model(self) -> str | os.PathLike[str] | None:
        """The smaller model that is to draft."""
        return None if isinstance(self.draft, bool) or self.draft == OWN_HEAD else self.draft

    def refuse_others(self, kept: tuple[str, ...], what: str) -> None:
        """Refuse options that a model does not have; `what` says which model, and why.

        Raises
        ------
        UnsupportedError
            For the first that is not the default.
        """
        for field in msgspec.structs.fields(self):
            if field.name not in kept and getattr(self, field.name) != field.default:
                raise UnsupportedError(f"{field.name}: {what} no such setting")


_OPTIONAL: Final = tuple(field.name for field in msgspec.structs.fields(LoadOptions) if field.default is None)
"""The options for which None stands for what suits the model."""


def _is_left_open(name: str, value: object) -> bool:
    return name in _OPTIONAL and (value is None or (type(value) is int and value in _OWN.get(name, ())))


OF_TEXT: Final = LoadOptions.__struct_fields__
OF_VECTORS: Final = ("device", "context", "threads", "quantize", "task", "rope_scaling", "override_kv")
OF_SPEECH: Final = ("device", "threads", "parallel", "task")
"""The options that models have which write texts, make vectors, and transcribe speech."""
