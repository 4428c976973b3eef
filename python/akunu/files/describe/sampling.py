"""The sampling settings, their limits, and where a model's files recommend others."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from akunu.base.arguments import FLOAT32_MAX, Limit
from akunu.base.errors import InvalidArgumentError

__all__ = ["SAMPLING", "SAMPLING_LIMITS", "Sampling"]

_MAX_U32: Final = (1 << 32) - 1
_LEAST_MASS: Final = 1e-30
"""A share that any token reaches."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling settings, every one with a value: see `GenerationOptions`. The defaults are llama.cpp's."""

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    typical_p: float = 1.0
    repeat_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    penalty_window: int = 64
    top_n_sigma: float = 0.0
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    min_keep: int = 0
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_penalty_last_n: int = -1
    dry_sequence_breakers: tuple[str, ...] = ("\n", ":", '"', "*")

    def __post_init__(self) -> None:
        if self.top_k == -1:  # Hugging Face and vLLM write -1 for "off"
            object.__setattr__(self, "top_k", 0)
        if self.top_n_sigma < 0:  # llama.cpp writes -1 for "off"
            object.__setattr__(self, "top_n_sigma", 0.0)
        for name in ("top_p", "typical_p"):
            if getattr(self, name) == 0:  # the likeliest (most typical) token alone, as in llama.cpp
                object.__setattr__(self, name, _LEAST_MASS)

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, object], context: int, *, folder: bool = False) -> Sampling:
        """The defaults of one model file.

        Reads the `general.sampling.*` keys of GGUF (gguf-py `constants.py`, llama.cpp pull request 17120). A
        value that is out of range, or that asks for a sampler that Akunu does not have, is warned of and not
        used: a recommendation must not keep a model from loading.

        Parameters
        ----------
        metadata
            The file's metadata.
        context
            The model's context, in tokens: what a `penalty_last_n` of -1 stands for.
        folder
            What stands under these keys is from `generation_config.json`, and warnings call it as that does.
        """
        called: dict[str, str] = {}
        if folder:
            called = {key: f"generation_config.json: {name}" for name, key in SAMPLING.items()}
        values: dict[str, Any] = {}
        for key, name in _FILE_KEYS.items():
            value = metadata.get(_PREFIX + key)
            if value is None:
                continue
            if isinstance(value, int | float) and not isinstance(value, bool):
                if name == "penalty_window" and value == -1:
                    value = context
                elif isinstance(value, float):
                    value = float(f"{value:.7g}")  # 0.95 is stored as the float32 0.949999988
            try:
                values[name] = SAMPLING_LIMITS[name].check(called.get(key, _PREFIX + key), value)
            except InvalidArgumentError as error:
                _warn(f"the model's files recommend a value that is not used: {error}")
        if metadata.get(_PREFIX + "mirostat"):
            _warn(
                f"the model file recommends {_PREFIX}mirostat = {metadata[_PREFIX + 'mirostat']}, "
                "which Akunu does not have"
            )
        sequence = metadata.get(_PREFIX + "sequence")
        if isinstance(sequence, str) and sequence:
            _warn(
                f"the model file recommends the sampler order {sequence!r}; "
                "Akunu's order is fixed (docs/sampling.md)"
            )
        return cls(**values)


_PREFIX: Final = "general.sampling."
_FILE_KEYS: Final[Mapping[str, str]] = {
    "temp": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "typical_p": "typical_p",  # not in GGUF, but in a folder's generation_config.json
    "penalty_repeat": "repeat_penalty",
    "penalty_last_n": "penalty_window",
    "xtc_probability": "xtc_probability",
    "xtc_threshold": "xtc_threshold",
}


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=4)


SAMPLING_LIMITS: Final[Mapping[str, Limit]] = {
    "temperature": Limit(float, 0.0, FLOAT32_MAX),
    "top_k": Limit(int, -1, _MAX_U32),
    "top_p": Limit(float, 0.0, 1.0),
    "min_p": Limit(float, 0.0, 1.0),
    "typical_p": Limit(float, 0.0, 1.0),
    "repeat_penalty": Limit(float, 0.0, FLOAT32_MAX, open_low=True),
    "presence_penalty": Limit(float, -FLOAT32_MAX, FLOAT32_MAX),
    "frequency_penalty": Limit(float, -FLOAT32_MAX, FLOAT32_MAX),
    "penalty_window": Limit(int, -1, _MAX_U32),
    "top_n_sigma": Limit(float, -1.0, FLOAT32_MAX),
    "xtc_probability": Limit(float, 0.0, 1.0),
    "xtc_threshold": Limit(float, 0.0, 1.0),
    "min_keep": Limit(int, 0, _MAX_U32),
    "dry_multiplier": Limit(float, 0.0, FLOAT32_MAX),
    "dry_base": Limit(float, 0.0, FLOAT32_MAX),
    "dry_allowed_length": Limit(int, 0, _MAX_U32),
    "dry_penalty_last_n": Limit(int, -1, _MAX_U32),
}


SAMPLING: Final = {
    "temperature": "temp",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "typical_p": "typical_p",
    "repetition_penalty": "penalty_repeat",
}
"""Keys of `generation_config.json`, and those of GGUF that say the same."""
