"""Read what a folder of Sentence Transformers says besides the model: modules, pooling, prompts."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.base.json_file import read_list, read_object, read_optional
from akunu.files.describe.architectures import ARCHITECTURES
from akunu.files.describe.config_numbers import shown
from akunu.files.describe.tensor_rules import Pooling

__all__ = [
    "DENSE",
    "SETTINGS",
    "STATIC",
    "Dense",
    "Modules",
    "gguf_makes_vectors",
    "is_classifier",
    "is_static",
    "makes_vectors",
    "read_modules",
    "transformer_folder",
]

STATIC: Final = "static_embedding"
"""The `model_type` of a table of vectors (StaticEmbedding), whose files name none."""
SETTINGS: Final = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
"""Names of the file that says how the model reads texts; the first that is there counts."""
DENSE: Final = "dense."
"""The prefix, with a number, of tensors of dense layers, which have files of their own."""

_POOLINGS: Final[Mapping[str, Pooling]] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_lasttoken": "last",
    "cls": "cls",
    "mean": "mean",
    "lasttoken": "last",
}
"""Flags of a pooling module's configuration, and the names that newer files have in their place."""

NO_POOLING: Final = (None, 0, -1, 0xFFFFFFFF)
"""Values of `pooling_type` in GGUF files that do not say how to pool; llama.cpp writes -1 without a sign."""

_LENGTHS_COUNT: Final = ("dot", "euclidean", "manhattan")
"""Similarities of `similarity_fn_name` that depend on the lengths of vectors."""

_ACTIVATIONS: Final = {"Identity": "", "Tanh": "tanh", "GELU": "gelu", "ReLU": "relu"}
_SCORES: Final = {"Sigmoid": "sigmoid", "Identity": "", "Tanh": "tanh"}
"""The functions that a cross-encoder's score goes through, by the names of classes of torch."""

_FOLDER = re.compile(r"[\w-][\w.-]*")


@dataclass(frozen=True)
class Dense:
    """A layer that the vector goes through: a folder, the vector's sizes, and an activation or ""."""

    path: Path
    n_in: int
    n_out: int
    activation: str


@dataclass(frozen=True)
class Modules:
    """The settings in those files; what they leave out is as here.

    Attributes
    ----------
    pooling
        What becomes of a text's rows; None: not said.
    dense
        Layers behind the pooling.
    prompts
        Texts that stand before a text, by name; some may be empty.
    default_prompt
        The name of the one that is used unless another is asked for; of one that is not empty.
    max_tokens
        Most tokens of a text that the model was tuned for.
    tokenizer_tokens
        Those that its tokenizer makes, where nothing else is said.
    cuts_front
        A text that is too long loses its first tokens, not its last ones.
    dimensions
        Elements that are kept of a vector unless others are asked for.
    lowercase
        Texts are written small before they become tokens.
    answers
        Of a decoder that scores texts: the tokens whose logits after it say that it is relevant, and that it
        is not.
    asks
        A reranker's text is what the chat template makes of query and document; False: these two alone.
        None: not said.
    score
        What a reranker's score goes through unless it is asked for as it is: "sigmoid", "tanh" or "".
    normalize
        Vectors have the length 1 unless the caller says otherwise.
    labels
        Names of a classifier's classes, by their numbers.
    multi_label
        Several of these classes may hold at once.
    static
        A vector is the mean of its tokens' rows of a table, and the tokenizer adds none (StaticEmbedding).
    files
        Of modules that have a folder of their own: what is read there.
    """

    pooling: Pooling | None = None
    dense: tuple[Dense, ...] = ()
    prompts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    default_prompt: str | None = None
    max_tokens: int | None = None
    tokenizer_tokens: int | None = None
    cuts_front: bool = False
    dimensions: int | None = None
    lowercase: bool = False
    answers: tuple[int, int] | None = None
    asks: bool | None = None
    score: str = "sigmoid"
    normalize: bool = True
    labels: tuple[str, ...] = ()
    multi_label: bool = False
    static: bool = False
    files: tuple[Path, ...] = ()


def makes_vectors(config: Mapping[str, object], modules: Modules) -> bool:
    """Whether a folder's model makes vectors; its `config.json` says so, or what there is besides."""
    from akunu.files.describe.encoder_rows import HF_ENCODERS

    kind = config.get("model_type")
    encoder = isinstance(kind, str) and kind in HF_ENCODERS
    return encoder or modules.pooling is not None or is_classifier(config)


def is_classifier(config: Mapping[str, object]) -> bool:
    """Whether a folder's model gives scores of a text, by its `config.json`."""
    classes = config.get("architectures")
    return isinstance(classes, list) and any(str(c).endswith("ForSequenceClassification") for c in classes)


def gguf_makes_vectors(metadata: Mapping[str, object]) -> bool:
    """Whether a GGUF file's model makes vectors: an encoder, a decoder whose rows see what comes after them,
    or one that says how to pool.
    """
    from akunu.files.describe.encoder_rows import ENCODERS

    name = metadata.get("general.architecture")
    return isinstance(name, str) and (
        (name in ENCODERS and ENCODERS[name].in_gguf)
        or (name in ARCHITECTURES and ARCHITECTURES[name].bidirectional)
        or metadata.get(f"{name}.pooling_type") not in NO_POOLING
    )


def transformer_folder(folder: Path) -> Path:
    """Return where the model itself lies: the folder, or one that `modules.json` names (`0_Transformer`).

    Raises
    ------
    ModelFileError
        `modules.json` is damaged.
    """
    kind, place = _model_module(folder)
    return _inside(folder, folder / "modules.json", place) if kind else folder


def is_static(folder: Path) -> bool:
    """Whether the folder's model is a table of vectors, by `modules.json`."""
    return _model_module(folder)[0] == "StaticEmbedding"


def _model_module(folder: Path) -> tuple[str, object]:
    """Return the kind and the path of the module that reads tokens; "" where there is none."""
    path = folder / "modules.json"
    for module in read_list(path) if os.path.lexists(path) else ():
        kind = module.get("type") if isinstance(module, dict) else None
        name = kind.rpartition(".")[2] if isinstance(kind, str) else ""
        if name in ("Transformer", "StaticEmbedding"):
            return name, module.get("path")
    return "", None


def read_modules(folder: Path, model: Mapping[str, object]) -> Modules:
    """Read them; a folder need not have any. `model` is the `config.json` of its transformer.

    Raises
    ------
    ModelFileError
        One is damaged.
    UnsupportedError
        A module is of a kind that Akunu does not have.
    """
    pooling: Pooling | None = None
    dense: list[Dense] = []
    settings: dict[str, Any] = {}
    answers: tuple[int, int] | None = None
    files: list[Path] = []
    normalized = static = False
    path = folder / "modules.json"
    has_modules = os.path.lexists(path)
    for module in read_list(path) if has_modules else ():
        if not isinstance(module, dict) or not isinstance(module.get("type"), str):
            raise ModelFileError(f"{path}: found {shown(module)}, expected an object with a type")
        kind = module["type"].rpartition(".")[2]
        where = _inside(folder, path, module.get("path"))
        if kind == "Pooling":
            if pooling is not None or normalized:
                raise UnsupportedError(
                    f"{path}: found a Pooling module behind a {'Normalize' if normalized else 'Pooling'}; "
                    "one pools what the model makes"
                )
            pooling = _pooling(where / "config.json")
            files.append(where / "config.json")
        elif kind == "Dense":
            if pooling is None:
                raise UnsupportedError(
                    f"{path}: found a Dense module before a Pooling; a vector for each token"
                )
            if normalized:
                raise UnsupportedError(
                    f"{path}: found a Dense module behind a Normalize; vectors are normalised last here"
                )
            dense.append(_dense(where))
            files += [where / "config.json", where / "model.safetensors"]
        elif kind == "StaticEmbedding":
            static, pooling = True, "mean"
        elif kind == "Transformer":
            names = (where / name for name in SETTINGS)
            settings = _transformer(next(filter(os.path.lexists, names), where / SETTINGS[0]))
        elif kind == "LogitScore":
            answers = _answers(where / "config.json")
            files.append(where / "config.json")
        elif kind == "Normalize":
            _of_the_vector(where / "config.json", read_optional(where / "config.json"))
            normalized = True
        else:
            raise UnsupportedError(
                f"{path}: found a module of the type {kind}; "
                "supported are Transformer, StaticEmbedding, Pooling, Dense, Normalize, LogitScore"
            )
    common = read_optional(folder / "config_sentence_transformers.json")
    prompts, default = _prompts(folder / "config_sentence_transformers.json", common)
    tokenizer = read_optional(transformer_folder(folder) / "tokenizer_config.json")
    return Modules(
        pooling=pooling,
        dense=tuple(dense),
        prompts=prompts,
        default_prompt=default,
        max_tokens=_length(settings.get("max_seq_length")),
        tokenizer_tokens=_length(tokenizer.get("model_max_length")),
        cuts_front=tokenizer.get("truncation_side") == "left",
        dimensions=_length(common.get("truncate_dim")),
        lowercase=settings.get("do_lower_case") is True,
        answers=answers,
        asks=_asks(settings),
        score=_score(folder, common if has_modules else {}, model),
        normalize=normalized or common.get("similarity_fn_name") not in _LENGTHS_COUNT,
        labels=_labels(model.get("id2label")),
        static=static,
        multi_label=model.get("problem_type") == "multi_label_classification",
        files=tuple(files),
    )


def _labels(found: object) -> tuple[str, ...]:
    """Read the names of classes from `id2label`; () where they are not numbered from 0."""
    if not isinstance(found, dict):
        return ()
    names = [found.get(str(i)) for i in range(len(found))]
    return tuple(str(name) for name in names) if all(isinstance(name, str) for name in names) else ()


def _score(folder: Path, common: Mapping[str, object], model: Mapping[str, object]) -> str:
    """Return what a score goes through, as `CrossEncoder` of Sentence Transformers chooses it."""
    inner, old = model.get("sentence_transformers"), "sbert_ce_default_activation_function"
    if isinstance(inner, dict) and "activation_fn" in inner:
        own = ("config.json: sentence_transformers.activation_fn", inner["activation_fn"])
    else:
        own = (f"config.json: {old}", model.get(old))
    for key, found in (
        ("config_sentence_transformers.json: activation_fn", common.get("activation_fn")),
        own,
    ):
        if found is None:
            continue
        name = found.rpartition(".")[2] if isinstance(found, str) else ""
        if isinstance(found, str) and not found.startswith("torch."):
            warnings.warn(
                f"{folder / key}: {shown(found)} is code of the model's own, which is not run; "
                "scores go through a sigmoid",
                RuntimeWarning,
                stacklevel=5,
            )
        elif name not in _SCORES:
            raise UnsupportedError(
                f"{folder / key}: found {shown(found)}; supported are {', '.join(_SCORES)} of torch.nn"
            )
        else:
            return _SCORES[name]
    return "sigmoid"


def _length(found: object) -> int | None:
    """A count; what is none, or so great that it means nothing, is not said."""
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 < found < 1 << 31 else None


def _transformer(path: Path) -> dict[str, Any]:
    """Return what is said of the model itself, whose rows have to be those of the last layer."""
    found = read_optional(path)
    modality = found.get("modality_config")
    text = modality.get("text") if isinstance(modality, dict) else None
    rows = text.get("method_output_name") if isinstance(text, dict) else None
    if rows not in (None, "last_hidden_state", "logits"):
        raise UnsupportedError(
            f"{path}: method_output_name: found {shown(rows)}; supported are last_hidden_state and logits"
        )
    processing = found.get("processing_kwargs")
    for kind in ("common", "text"):
        options = processing.get(kind) if isinstance(processing, dict) else None
        # There is no padding here, and what is too long is an error or cut.
        changed = options.keys() - {"padding", "truncation"} if isinstance(options, dict) else ()
        if changed:
            raise UnsupportedError(
                f"{path}: processing_kwargs.{kind}: found {', '.join(sorted(changed))}; "
                "supported are padding and truncation"
            )
    return found


def _asks(settings: Mapping[str, object]) -> bool | None:
    modality = settings.get("modality_config")
    return "message" in modality if isinstance(modality, dict) else None


def _answers(path: Path) -> tuple[int, int]:
    config = read_object(path)
    yes, no = (config.get(f"{name}_token_id") for name in ("true", "false"))
    if not all(isinstance(token, int) and not isinstance(token, bool) for token in (yes, no)):
        raise UnsupportedError(
            f"{path}: true_token_id, false_token_id: found {shown(yes)}, {shown(no)}, expected two token ids"
        )
    return int(yes), int(no)  # type: ignore[arg-type]


def _inside(folder: Path, path: Path, name: object) -> Path:
    """A module's folder, which lies in the model's own."""
    if name in (None, "", "."):
        return folder
    if not isinstance(name, str) or not _FOLDER.fullmatch(name):
        raise ModelFileError(f"{path}: path: found {shown(name)}, expected the name of a folder in {folder}")
    return folder / name


def _pooling(path: Path) -> Pooling:
    config = read_object(path)
    mode = config.get("pooling_mode")
    wanted = {key for key, value in config.items() if key.startswith("pooling_mode_") and value is True}
    if mode is None and not wanted:
        wanted = {"mean"}  # as Sentence Transformers has it where nothing is said
    if isinstance(mode, str | list):
        wanted = {mode} if isinstance(mode, str) else {str(name) for name in mode}
    if len(wanted) != 1 or not wanted <= _POOLINGS.keys():
        raise UnsupportedError(
            f"{path}: pooling by {', '.join(sorted(wanted)) or 'nothing'}; "
            "supported is one of mean, CLS, last token"
        )
    if config.get("include_prompt") is False:
        raise UnsupportedError(f"{path}: include_prompt: found False; only True is supported")
    return _POOLINGS[wanted.pop()]


def _of_the_vector(path: Path, config: Mapping[str, object]) -> None:
    """Refuse a module that reads or makes something else, such as a vector for each token."""
    for key in ("module_input_name", "module_output_name"):
        if config.get(key) not in (None, "sentence_embedding"):
            raise UnsupportedError(
                f"{path}: {key}: found {shown(config[key])}; only 'sentence_embedding' is supported"
            )


def _dense(folder: Path) -> Dense:
    path = folder / "config.json"
    config = read_object(path)
    _of_the_vector(path, config)
    if config.get("use_residual", False) is not False:
        raise UnsupportedError(
            f"{path}: use_residual: found {shown(config['use_residual'])}; only False is supported"
        )
    n_in, n_out = config.get("in_features"), config.get("out_features")
    if not all(isinstance(n, int) and 0 < n < 1 << 20 for n in (n_in, n_out)):
        raise ModelFileError(
            f"{path}: expected in_features and out_features, found {shown(n_in)}, {shown(n_out)}"
        )
    function = config.get("activation_function", "torch.nn.Tanh")
    name = function.rpartition(".")[2] if isinstance(function, str) and function.startswith("torch.") else ""
    if name not in _ACTIVATIONS:
        raise UnsupportedError(
            f"{path}: activation_function: found {shown(function)}; "
            f"supported are {', '.join(_ACTIVATIONS)} of torch.nn"
        )
    return Dense(folder, int(n_in), int(n_out), _ACTIVATIONS[name])  # type: ignore[arg-type]


def _prompts(path: Path, config: Mapping[str, object]) -> tuple[Mapping[str, str], str | None]:
    prompts = config.get("prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(text, str) for text in prompts.values()):
        raise ModelFileError(f"{path}: prompts: found {shown(prompts)}, expected an object of texts")
    default = config.get("default_prompt_name")
    return MappingProxyType(prompts), default if isinstance(default, str) and prompts.get(default) else None
