"""The sizes of a Whisper model, from a file of whisper.cpp or the `config.json` of a folder, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from akunu.base.errors import ModelFileError, UnsupportedError

__all__ = ["ALIGNMENT_HEADS", "Head", "WhisperConfig"]

Head = tuple[int, int]
"""A layer and a head of the decoder's cross-attention."""


@dataclass(frozen=True)
class WhisperConfig:
    """The description that the tables of a Whisper model are compiled from.

    Attributes
    ----------
    vocab_size : int
        Rows of the embedding.
    mels : int
        Mel filters.
    audio_context : int
        Positions of the encoder; a second has 50.
    width : int
        The width of both stacks.
    audio_heads, audio_layers : int
        The sizes of the encoder.
    text_context : int
        Positions of the decoder.
    text_heads, text_layers : int
        The sizes of the decoder.
    alignment_heads : tuple of (int, int)
        The heads whose attention follows the sound, by which words get their times.
    """

    vocab_size: int
    mels: int
    audio_context: int
    width: int
    audio_heads: int
    audio_layers: int
    text_context: int
    text_heads: int
    text_layers: int
    alignment_heads: tuple[Head, ...] = ()

    def __post_init__(self) -> None:
        for name, (least, most) in _LIMITS.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise ModelFileError(f"{name} is {value}, expected {least} to {most}")
        for name in ("audio_heads", "text_heads"):
            if self.width % getattr(self, name):
                raise ModelFileError(f"width {self.width} is not a multiple of {name} {getattr(self, name)}")
        if not self.alignment_heads:
            object.__setattr__(self, "alignment_heads", self._default_alignment_heads())
        for layer, head in self.alignment_heads:
            if not (0 <= layer < self.text_layers and 0 <= head < self.text_heads):
                raise ModelFileError(
                    f"alignment head ({layer}, {head}) is not one of {self.text_layers} layers of "
                    f"{self.text_heads} heads"
                )

    @classmethod
    def from_sizes(
        cls, sizes: Mapping[str, int], generation: Mapping[str, object] | None = None
    ) -> WhisperConfig:
        """From the header of a file of whisper.cpp (`WhisperFile.sizes`), or an MLX folder's `config.json`.

        `generation` is the content of a `generation_config.json`, where there is one.

        Raises
        ------
        ModelFileError
            A size is missing or out of range.
        UnsupportedError
            The two stacks have different widths.
        """
        missing = [name for name in (*_SIZES, "n_text_state") if name not in sizes]
        if missing:
            raise ModelFileError(f"the sizes of the model lack {missing[0]}")
        values = {field: sizes[name] for name, field in _SIZES.items()}
        return cls._of(values, sizes["n_text_state"], generation)

    @classmethod
    def from_hf(
        cls, config: Mapping[str, object], generation: Mapping[str, object] | None = None
    ) -> WhisperConfig:
        """From the `config.json` of a Hugging Face folder, and its `generation_config.json`.

        Raises
        ------
        ModelFileError
            A size is missing or out of range.
        UnsupportedError
            It is of another kind of model, or has a feature that Whisper does not have.
        """
        if config.get("model_type") != "whisper":
            raise UnsupportedError(f"model_type is {config.get('model_type')!r}, expected 'whisper'")
        for name, expected in _HF_FIXED.items():
            if config.get(name, expected) != expected:
                raise UnsupportedError(f"{name} is {config[name]!r}, expected {expected!r}")
        missing = [name for name in _HF if name not in config]
        if missing:
            raise ModelFileError(f"config.json has no {missing[0]}")
        values = {field: config[name] for name, field in _HF.items()}
        width = config["d_model"]
        for name in ("encoder_ffn_dim", "decoder_ffn_dim"):
            if isinstance(width, int) and config.get(name, 4 * width) != 4 * width:
                raise UnsupportedError(f"{name} is {config[name]!r}, expected 4 d_model = {4 * width}")
        return cls._of(values, width, generation)

    @classmethod
    def _of(
        cls, values: Mapping[str, object], text_width: object, generation: Mapping[str, object] | None
    ) -> WhisperConfig:
        numbers: dict[str, int] = {}
        for field, value in values.items():
            if isinstance(value, bool) or not isinstance(value, int):
                raise ModelFileError(f"{field} is {value!r}, expected a whole number")
            numbers[field] = value
        if text_width != numbers["width"]:
            raise UnsupportedError(f"the encoder is {numbers['width']} wide, the decoder {text_width}")
        heads = (generation or {}).get("alignment_heads")
        return cls(**numbers, alignment_heads=() if heads is None else _heads(heads))

    def _default_alignment_heads(self) -> tuple[Head, ...]:
        key = (self.vocab_size, self.width, self.audio_layers, self.text_layers)
        if key in ALIGNMENT_HEADS:
            return ALIGNMENT_HEADS[key]
        # OpenAI's default: all heads of the later half.
        return tuple(
            (layer, head)
            for layer in range(self.text_layers // 2, self.text_layers)
            for head in range(self.text_heads)
        )


_LIMITS: Final = {
    "vocab_size": (1510, 1 << 20),
    "mels": (1, 512),
    "audio_context": (1, 1500),
    "width": (1, 1 << 14),
    "audio_heads": (1, 1 << 10),
    "audio_layers": (1, 1 << 10),
    "text_context": (8, 1 << 14),
    "text_heads": (1, 1 << 10),
    "text_layers": (1, 1 << 10),
}
_SIZES: Final = {
    "n_vocab": "vocab_size",
    "n_mels": "mels",
    "n_audio_ctx": "audio_context",
    "n_audio_state": "width",
    "n_audio_head": "audio_heads",
    "n_audio_layer": "audio_layers",
    "n_text_ctx": "text_context",
    "n_text_head": "text_heads",
    "n_text_layer": "text_layers",
}
_HF: Final = {
    "vocab_size": "vocab_size",
    "num_mel_bins": "mels",
    "max_source_positions": "audio_context",
    "d_model": "width",
    "encoder_attention_heads": "audio_heads",
    "encoder_layers": "audio_layers",
    "max_target_positions": "text_context",
    "decoder_attention_heads": "text_heads",
    "decoder_layers": "text_layers",
}
_HF_FIXED: Final = {"activation_function": "gelu", "scale_embedding": False, "tie_word_embeddings": True}


def _heads(value: object) -> tuple[Head, ...]:
    pairs = list(value) if isinstance(value, Iterable) else []
    if not pairs or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 and all(type(n) is int for n in pair)
        for pair in pairs
    ):
        raise ModelFileError(f"alignment_heads is {value!r:.60}, expected pairs of a layer and a head")
    return tuple((layer, head) for layer, head in pairs)


def _parse(text: str) -> tuple[Head, ...]:
    return tuple((int(layer), int(head)) for layer, head in (pair.split(".") for pair in text.split()))


# Facts about the published models. Of the two first large models, which have the same sizes, the second.
ALIGNMENT_HEADS: Final = {
    (51864, 384, 4, 4): _parse("1.0 2.0 2.5 3.0 3.1 3.2 3.3 3.4"),
    (51865, 384, 4, 4): _parse("2.2 3.0 3.2 3.3 3.4 3.5"),
    (51864, 512, 6, 6): _parse("3.3 4.7 5.1 5.5 5.7"),
    (51865, 512, 6, 6): _parse("3.1 4.2 4.3 4.7 5.1 5.2 5.4 5.6"),
    (51864, 768, 12, 12): _parse(
        "6.6 7.0 7.3 7.8 8.2 8.5 8.7 9.0 9.4 9.8 9.10 10.0 10.1 10.2 10.3 10.6 10.11 11.2 11.4"
    ),
    (51865, 768, 12, 12): _parse("5.3 5.9 8.0 8.4 8.7 8.8 9.0 9.7 9.9 10.5"),
    (51864, 1024, 24, 24): _parse(
        "11.4 14.1 14.12 14.14 15.4 16.0 16.4 16.9 17.12 17.14 18.7 18.10 18.15 20.0 20.3 20.9 20.14 21.12"
    ),
    (51865, 1024, 24, 24): _parse("13.15 15.4 15.15 16.1 20.0 23.4"),
    (51865, 1280, 32, 32): _parse(
        "10.12 13.17 16.11 16.12 16.13 17.15 17.16 18.4 18.11 18.19 19.11 21.2 21.3 22.3 22.9 22.12 23.5 "
        "23.7 23.13 25.5 26.1 26.12 27.15"
    ),
    (51866, 1280, 32, 32): _parse("7.0 10.17 12.18 13.12 16.1 17.14 19.11 21.4 24.1 25.6"),
    (51866, 1280, 32, 4): _parse("2.4 2.11 3.3 3.6 3.11 3.14"),
}
"""The alignment heads, by vocabulary, width, layers of the encoder and of the decoder."""
