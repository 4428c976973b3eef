"""A Whisper model's files, opened: a file of whisper.cpp, or a folder as Hugging Face or MLX publish it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.base.hub_name import model_name
from akunu.base.json_file import parse_object, read_optional
from akunu.speech.config import WhisperConfig
from akunu.speech.decoding_settings import check_preprocessor
from akunu.speech.tokenizer import WhisperTokenizer

if TYPE_CHECKING:
    from akunu._core import TensorFiles, WhisperFile

__all__ = ["SpeechFiles", "open_speech"]

GENERATION: Final = "generation_config.json"
_FTYPES: Final[Mapping[int, str]] = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    7: "Q8_0",
    8: "Q5_0",
    9: "Q5_1",
    10: "Q2_K",
    11: "Q3_K",
    12: "Q4_K",
    13: "Q5_K",
    14: "Q6_K",
}
"""Types of whisper.cpp's header, which has a version of the quantization in its thousands."""


class SpeechFiles:
    """The opened files of a Whisper model.

    Attributes
    ----------
    path : Path
        The file or folder.
    format : str
        The file format, for people.
    layout : str
        Whose names the tensors have: "ggml" (whisper.cpp), "hf" or "mlx".
    files : TensorFiles
        The tensors.
    config : WhisperConfig
        The sizes.
    metadata : mapping
        What the files say of themselves, for people.
    generation : mapping
        What a file of whisper.cpp says of decoding, as a folder's `generation_config.json` would.
    """

    def __init__(
        self,
        path: Path,
        format: str,
        layout: Literal["ggml", "hf", "mlx"],
        files: TensorFiles,
        config: WhisperConfig,
        metadata: Mapping[str, object],
        generation: Mapping[str, object] | None = None,
    ) -> None:
        self.path = path
        self.format = format
        self.layout = layout
        self.files = files
        self.config = config
        self.metadata = metadata
        self.generation = generation or {}

    @property
    def name(self) -> str:
        """The name of the file or folder, without what all have in common."""
        return model_name(self.path) if self.path.is_dir() else self.path.stem.removeprefix("ggml-")

    def tokenizer(self) -> WhisperTokenizer:
        """The tokenizer.

        Raises
        ------
        TokenizerError
            There is none, or none of Whisper's.
        """
        if self.layout == "ggml":
            file: WhisperFile = self.files  # type: ignore[assignment]
            return WhisperTokenizer.from_file(file, self.generation)
        return WhisperTokenizer.from_folder(self.path, self.config.vocab_size)


def open_speech(path: Path) -> SpeechFiles:
    """Open a file or a folder of which `akunu.speech.recognition.is_speech` holds.

    Raises
    ------
    ModelFileError, UnsupportedError
        It is damaged, or of a kind that Akunu does not read.
    """
    if path.is_dir():
        return _folder(path)
    from akunu import _core

    file = _core.WhisperFile(str(path))
    sizes = file.sizes
    kind = _FTYPES.get(sizes["ftype"] % 1000, str(sizes["ftype"]))
    tokens = [token.decode("utf-8", "replace") for token in file.tokens]
    generation = _generation(file)
    metadata: dict[str, object] = {"tokens": tokens, **sizes, "ftype": kind, **generation}
    config = WhisperConfig.from_sizes(sizes, generation)
    return SpeechFiles(path, "whisper.cpp", "ggml", file, config, metadata, generation)


def _generation(file: WhisperFile) -> dict[str, object]:
    """Return a file's record of decoding: the bytes behind its weights, if it has one."""
    if not any(tensor.name == GENERATION for tensor in file.tensors):
        return {}
    where = f"{file.paths[0]}: {GENERATION}"
    try:
        return parse_object(file.tensor_bytes(GENERATION).tobytes().decode(), where)
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{where}: is not UTF-8 text (at byte {error.start})") from None


def _folder(path: Path) -> SpeechFiles:
    from akunu.files.folder import ModelFolder

    if not any(path.glob("*.safetensors")) and (path / "weights.npz").exists():
        raise UnsupportedError(
            f"{path} has its weights in weights.npz; take a version in SafeTensors, or write one: "
            'mlx.core.save_safetensors("weights.safetensors", mlx.core.load("weights.npz"))'
        )
    folder = ModelFolder(path)
    if "n_mels" in folder.config:
        sizes = {name: value for name, value in folder.config.items() if name.startswith("n_")}
        for name, value in sizes.items():
            if type(value) is not int:
                raise ModelFileError(f"{path / 'config.json'}: {name} is {value!r}, expected a whole number")
        config = WhisperConfig.from_sizes(sizes)
        return SpeechFiles(path, "MLX", "mlx", folder.files, config, folder.config)
    config = WhisperConfig.from_hf(folder.config, read_optional(path / "generation_config.json"))
    check_preprocessor(path, config.mels, config.audio_context)
    return SpeechFiles(path, folder.format, "hf", folder.files, config, folder.config)
