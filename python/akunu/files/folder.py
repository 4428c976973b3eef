"""A model as Hugging Face and MLX publish it: a folder of SafeTensors files, `config.json` and a tokenizer.

Nothing in a folder is trusted: shards are files of the folder itself, JSON is read by `akunu.base.json_file`,
and code is never run. docs/formats.md says what is read, and what is refused.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from akunu.base.errors import AkunuError, ModelFileError, UnsupportedError, errors_of
from akunu.base.hub_name import model_name
from akunu.base.json_file import read_object, read_optional, read_text
from akunu.files.describe.config_numbers import shown
from akunu.files.describe.encoder_modules import (
    DENSE,
    SETTINGS,
    STATIC,
    is_static,
    makes_vectors,
    read_modules,
    transformer_folder,
)
from akunu.files.describe.quantized import weights_of
from akunu.files.describe.sampling import SAMPLING
from akunu.files.repacking import repacked

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from akunu._core import TensorEntry, TensorFiles
    from akunu.files.describe.config import ModelSpec
    from akunu.files.describe.quantized import Weight
    from akunu.tokenizer import Tokenizer

__all__ = ["INDEX", "MODEL_FILES", "ModelFolder", "adapter_error", "is_model_folder", "pickle_error"]

INDEX: Final = "model.safetensors.index.json"
_INDEX_LIMIT: Final = 64 << 20
_PICKLES: Final = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
_VOCABULARIES: Final = ("vocabulary.", "shared_vocabulary.", "source_vocabulary.")
"""The beginnings of vocabulary files that lie beside CTranslate2's `model.bin`."""
_OPENAI_WHISPER: Final = re.compile(r"((?:tiny|base|small|medium|large)(?:-v\d(?:-turbo)?)?(?:\.en)?)\.pt")
_SHARD = re.compile(r"[^/\\\x00]+\.safetensors")
_SERIES = re.compile(r"(?P<stem>.+)-(?P<part>\d{2,6})-of-(?P<of>\d{2,6})\.safetensors")

MODEL_FILES: Final = (
    "config.json",
    "generation_config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
    "sentencepiece.bpe.model",
    "spiece.model",
    "spm.model",
    "chat_template.jinja",
    "chat_template.json",
    "modules.json",
    "config_sentence_transformers.json",
    *SETTINGS,
)
"""The files of a folder besides its weights that are read."""


_OTHER_SAMPLING: Final[Mapping[str, object]] = {
    "bad_words_ids": None,
    "begin_suppress_tokens": None,
    "dola_layers": None,
    "encoder_repetition_penalty": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
    "exponential_decay_length_penalty": None,
    "forced_bos_token_id": None,
    "forced_eos_token_id": None,
    "guidance_scale": 1.0,
    "min_length": 0,
    "min_new_tokens": 0,
    "no_repeat_ngram_size": 0,
    "num_beams": 1,
    "penalty_alpha": 0.0,
    "sequence_bias": None,
    "stop_strings": None,
    "suppress_tokens": None,
    "top_h": None,
}
"""Keys of `generation_config.json` for what Akunu does not have, with the values that ask for nothing."""


def is_model_folder(names: Collection[str]) -> bool:
    """Whether a folder with these files holds SafeTensors, or Sentence Transformers' modules."""
    return "modules.json" in names or INDEX in names or any(name.endswith(".safetensors") for name in names)


def pickle_error(where: object, names: Iterable[str], model_type: object = None) -> UnsupportedError | None:
    """Return the error for weights in formats that are not read, if these files are some.

    Parameters
    ----------
    where
        The file, folder or repository, for the message.
    names
        Its files.
    model_type
        The type in its `config.json`, where that is known.
    """
    found = sorted(names)
    pickles = [name for name in found if name.endswith(_PICKLES)]
    if not pickles:
        return None
    if "model.bin" in found and any(name.startswith(_VOCABULARIES) for name in found):
        return UnsupportedError(
            f"{where} is a model in CTranslate2's format (faster-whisper's), which Akunu does not read; take "
            "the model that it was made of, in SafeTensors (such as openai/whisper-small) or as a file of "
            "whisper.cpp (ggml-small.bin)"
        )
    if len(found) == 1 and (size := _OPENAI_WHISPER.fullmatch(pickles[0])):
        return UnsupportedError(
            f"{where} is a Python pickle, as OpenAI's whisper package has them, which can run any code; take "
            f"the same model in SafeTensors (openai/whisper-{size[1]}) or as a file of whisper.cpp "
            f"(ggml-{size[1]}.bin)"
        )
    name = "AutoModelForSpeechSeq2Seq" if model_type == "whisper" else "AutoModelForCausalLM"
    return UnsupportedError(
        f"{where} has its weights in Python pickles ({pickles[0]}), which can run any code; "
        "take a SafeTensors version, or make one in a place that you do not mind: "
        f"{name}.from_pretrained(IN).save_pretrained(OUT)"
    )


def adapter_error(where: object, names: Collection[str]) -> UnsupportedError | None:
    """Return the error for what was trained beside a model, if these files are that."""
    if "adapter_config.json" not in names:
        return None
    return UnsupportedError(
        f"{where} is an adapter (LoRA), not a model; load the model that it was trained on, and the adapter "
        "beside it: adapters={NAME: PATH}, or --adapter PATH"
    )


class ModelFolder:
    """An opened folder.

    Parameters
    ----------
    path
        The folder. In one of Sentence Transformers the model may lie in a folder of its own, such as
        `0_Transformer` (`modules.json`).

    Attributes
    ----------
    format : str
        "SafeTensors".
    files : TensorFiles
        Its weights. Those that GPTQ, AWQ and others have in layouts of their own are as MLX has them.
    config : dict
        `config.json`, which says so.
    modules : Modules
        What the files of an embedding model say besides.
    metadata : dict
        What a GGUF file would say of the model's name, chat template and sampling, under GGUF's keys.

    Raises
    ------
    ModelFileError
        A file is missing or damaged.
    UnsupportedError
        The weights are pickles, or of a type that Akunu does not have.
    """

    format: Final = "SafeTensors"

    def __init__(self, path: Path) -> None:
        from akunu import _core

        self.path = path
        self.inside = transformer_folder(path)
        shards = _shards(self.inside)
        static = is_static(path)
        if not os.path.lexists(self.inside / "config.json") and not static:
            raise adapter_error(path, [file.name for file in path.iterdir()]) or ModelFileError(
                f"{self.inside} has no config.json, without which its weights mean nothing; "
                "fetch the whole repository"
            )
        self.config: dict[str, Any] = (
            {"model_type": STATIC} if static else read_object(self.inside / "config.json")
        )
        self._generation = read_optional(self.inside / "generation_config.json")
        self.modules = read_modules(path, self.config)
        dense = [_dense_weights(layer.path) for layer in self.modules.dense]
        files = _core.SafetensorsFiles(
            [str(file) for file in [*(self.inside / name for name in shards), *dense]],
            [""] * len(shards) + [f"{DENSE}{i}." for i in range(len(dense))],
        )
        self.files: TensorFiles
        with errors_of(path):
            self.files, self.config = repacked(files, self.config)
        self.metadata: dict[str, object] = {
            "general.architecture": self.config.get("model_type"),
            "general.name": model_name(path),
            **_templates(self.inside),
            # What a speech model's file says of decoding is read with its tokenizer.
            **({} if self.config.get("model_type") == "whisper" else self._sampling()),
        }

    def spec(
        self, context: int | None = None, *, sees: bool = False, drafts: bool | None = False
    ) -> ModelSpec:
        """The model's numbers and the place of its tensors, as `resolve_hf` finds them."""
        from akunu.files.describe.hf_config import resolve_hf

        with errors_of(self.path):
            if makes_vectors(self.config, self.modules):
                from akunu.files.describe.encoder_config import resolve_hf_vectors

                return resolve_hf_vectors(self.config, self.files.tensors, self.modules, context=context)
            spec = resolve_hf(self.config, self.files.tensors, context=context, sees=sees, drafts=drafts)
        _check_tied(self.path, self.files, spec)
        return spec

    @property
    def weights(self) -> Sequence[TensorEntry | Weight]:
        """The folder's tensors, those of a quantized matrix as one, or as they are if they do not fit."""
        try:
            return weights_of(self.config, self.files.tensors)
        except AkunuError:
            return self.files.tensors

    def override(self, keys: Mapping[str, object], scaling: Mapping[str, Any]) -> None:
        """Take another rotary scaling than `config.json` has.

        Raises
        ------
        UnsupportedError
            There are keys of a GGUF file.
        """
        if keys:
            raise UnsupportedError(
                f"override_kv: {self.path} is a folder, which has no keys of GGUF; change its config.json"
            )
        if scaling:
            from akunu.files.overrides import hf_scaling

            self.config = hf_scaling(self.config, scaling)

    def tokenizer(self, n_tokens: int) -> Tokenizer | None:
        """The tokenizer, for a model whose embedding has `n_tokens` rows; None when the folder has none."""
        from akunu.tokenizer.hf import tokenizer_from_folder

        return tokenizer_from_folder(self.inside, n_tokens, self._end_ids())

    def _end_ids(self) -> list[int]:
        """The ids that end a generation: those of `generation_config.json`, else of `config.json`."""
        said: list[tuple[str, Mapping[str, Any]]] = [
            ("generation_config.json", self._generation),
            ("config.json", self.config),
        ]
        if isinstance(text := self.config.get("text_config"), Mapping):
            said.append(("config.json: text_config", text))
        for name, values in said:
            found = values.get("eos_token_id")
            if found is None:
                continue
            ids = found if isinstance(found, list) else [found]
            if not all(isinstance(i, int) and not isinstance(i, bool) for i in ids):
                raise ModelFileError(
                    f"{self.inside / name}: eos_token_id: found {found!r}, expected one token id or a list"
                )
            return ids
        return []

    def _sampling(self) -> dict[str, object]:
        """The defaults of sampling."""
        found = {
            f"general.sampling.{SAMPLING[key]}": value
            for key, value in self._generation.items()
            if key in SAMPLING and value is not None
        }
        if "general.sampling.penalty_repeat" in found:
            found["general.sampling.penalty_last_n"] = -1  # all of the text
        samples = self._generation.get("do_sample")
        if samples is not None and not isinstance(samples, bool):
            raise ModelFileError(
                f"{self.inside / 'generation_config.json'}: do_sample: found {shown(samples)}, "
                "expected true or false"
            )
        if samples is False:
            found["general.sampling.temp"] = 0.0
        for key, neutral in _OTHER_SAMPLING.items():
            value = self._generation.get(key)
            if value is not None and value != neutral:
                warnings.warn(
                    f"{self.inside / 'generation_config.json'} recommends {key} = {shown(value)}, "
                    "which Akunu does not have",
                    RuntimeWarning,
                    stacklevel=4,
                )
        return found


def _shards(folder: Path) -> list[str]:
    """Return the names of the files with the weights.

    The index says which files belong together, and only that: uploads of quantized models often keep the
    index of the model that they were made of, so a tensor is where the files' own headers say.
    """
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError as error:
        raise ModelFileError(f"{folder}: cannot be read: {error.strerror or error}") from error
    if "model.safetensors" in names:
        return ["model.safetensors"]
    found = [name for name in names if name.endswith(".safetensors")]
    listed = sorted(set(_weight_map(folder).values())) if INDEX in names else []
    if present := [name for name in listed if name in names]:
        _refuse_missing(folder, [name for name in listed if name not in present], f"that {INDEX} names")
        return present
    series = [match for name in found if (match := _SERIES.fullmatch(name))]
    if series and len(series) == len(found):
        first, count = series[0], int(series[0]["of"])
        digits = len(first["part"])
        whole = [f"{first['stem']}-{i + 1:0{digits}}-of-{first['of']}.safetensors" for i in range(count)]
        if count == len(found) or set(found) < set(whole):
            _refuse_missing(folder, [name for name in whole if name not in names], "of its name")
            return found
    if len(found) == 1:
        return found
    if listed:
        _refuse_missing(folder, listed, f"that {INDEX} names")
    if found:
        raise ModelFileError(
            f"{folder} has {len(found)} SafeTensors files ({found[0]}, …), but neither model.safetensors "
            f"nor {INDEX}, which says how they belong together"
        )
    model_type = read_optional(folder / "config.json").get("model_type")
    raise pickle_error(folder, names, model_type) or ModelFileError(f"{folder} holds no SafeTensors files")


def _refuse_missing(folder: Path, missing: Sequence[str], which: str) -> None:
    """Raise ModelFileError if there are missing shards."""
    if missing:
        more = f" and {len(missing) - 1} more are" if len(missing) > 1 else " is"
        raise ModelFileError(f"{folder}: of the shards {which}, {missing[0]}{more} missing; fetch it again")


def _dense_weights(folder: Path) -> Path:
    """The file with the weights of a dense layer."""
    path = folder / "model.safetensors"
    if not os.path.lexists(path):
        raise ModelFileError(
            f"{path} is missing; fetch the whole repository. Older ones have a Python pickle there, which "
            "can run any code; make another form in a place that you do not mind: "
            "SentenceTransformer(IN).save_pretrained(OUT)"
        )
    return path


def _weight_map(folder: Path) -> Mapping[str, str]:
    """The shard of every tensor."""
    path = folder / INDEX
    found = read_object(path, limit=_INDEX_LIMIT).get("weight_map")
    if not isinstance(found, dict) or not found:
        raise ModelFileError(f"{path}: weight_map: expected an object of tensor to file")
    for shard in set(map(str, found.values())):
        if not _SHARD.fullmatch(shard):
            raise ModelFileError(
                f"{path}: weight_map: found the file {shard!r}, "
                "expected a .safetensors file of the same folder"
            )
    return found


def _check_tied(folder: Path, files: TensorFiles, spec: ModelSpec) -> None:
    """Raise where the head is the embedding by the configuration, and the files have another one."""
    if "output" in spec.tensors:
        return
    names = {tensor.name for tensor in files.tensors}
    embedding = spec.tensors["token_embedding"].source.removesuffix("weight")
    for name in sorted(names):
        head, part = name.rpartition(".")[::2]
        if head.rpartition(".")[2] != "lm_head":
            continue
        twin = embedding + part
        if twin not in names or not _same_bytes(files.tensor_bytes(name), files.tensor_bytes(twin)):
            raise ModelFileError(
                f"{folder}: by config.json's tie_word_embeddings the output head is the embedding, but the "
                f"tensor {name} is not {twin}; set tie_word_embeddings to false if the model was "
                "trained with a head of its own, else remove the tensor"
            )


def _same_bytes(one: npt.NDArray[np.uint8], other: npt.NDArray[np.uint8]) -> bool:
    step = 1 << 20  # as it comes from the file, without a copy of it all
    return len(one) == len(other) and all(
        one[i : i + step].tobytes() == other[i : i + step].tobytes() for i in range(0, len(one), step)
    )


def _templates(folder: Path) -> dict[str, object]:
    """The chat templates, under the keys that GGUF has for them."""
    key = "tokenizer.chat_template"
    found: dict[str, object] = {}
    config = read_optional(folder / "tokenizer_config.json").get("chat_template")
    if config is None:
        config = read_optional(folder / "chat_template.json").get("chat_template")
    if isinstance(config, str):
        found[key] = config
    elif isinstance(config, list):
        for entry in config:
            if isinstance(entry, dict) and isinstance(entry.get("name"), str):
                found[key if entry["name"] == "default" else f"{key}.{entry['name']}"] = entry.get("template")
    # A file of its own, as Transformers writes them now, counts before those.
    if os.path.lexists(folder / "chat_template.jinja"):
        found[key] = read_text(folder / "chat_template.jinja")
    more = folder / "additional_chat_templates"
    if more.is_dir():
        for path in sorted(more.glob("*.jinja")):
            found[f"{key}.{path.stem}"] = read_text(path)
    return found
