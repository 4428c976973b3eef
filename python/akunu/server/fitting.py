"""Settings that were given for all models of a server: each model takes those that fit it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from akunu.base.errors import InvalidArgumentError
from akunu.loading.finding import FoundModel
from akunu.server.catalog import ModelSpec
from akunu.server.kinds import EMBEDDING, RERANKER, SPEECH, TEXT, Kind
from akunu.speech.recognition import is_speech

__all__ = ["check_shared", "fitted"]


def fitted(spec: ModelSpec, found: FoundModel) -> tuple[dict[str, Any], dict[str, str]]:
    """Arguments of `akunu.load`, and the shared settings that are not as they were given, with the reasons.

    A context is at most what the model was trained for. What the model has no use for is left out.
    """
    arguments = spec.load_arguments()
    if not spec.shared:
        return arguments, {}
    kind, trained = _known(spec, found)
    unfit = {name: f"{kind.name} has no such setting" for name in sorted(spec.shared - {*kind.settings})}
    arguments = {name: value for name, value in arguments.items() if name not in unfit}
    wanted = arguments.get("context")
    if "context" in spec.shared and wanted is not None and wanted > trained:
        unfit["context"] = f"{wanted} is more than the {trained} tokens that it was trained for"
        arguments["context"] = trained
    return arguments, unfit


def _known(spec: ModelSpec, found: FoundModel) -> tuple[Kind, int]:
    """The kind of a model that is not loaded yet, and the tokens that it was trained for."""
    if is_speech(found.path):
        return SPEECH, 0
    config = found.files.spec().config
    if spec.task == "rerank" or (config.encoder is not None and config.encoder.task == "rank"):
        return RERANKER, config.context_length
    return TEXT if config.encoder is None else EMBEDDING, config.context_length


def check_shared(unfit: Mapping[ModelSpec, Mapping[str, str]]) -> None:
    """Refuse a setting that was given for all models and fits none of them.

    Raises
    ------
    InvalidArgumentError
        It names the setting, and says of each model why.
    """
    for name in sorted(frozenset[str]().union(*(spec.shared for spec in unfit))):
        asked = {spec: reasons for spec, reasons in unfit.items() if name in spec.shared}
        if all(name in reasons for reasons in asked.values()):
            told = "; ".join(f"{spec.name}: {reasons[name]}" for spec, reasons in asked.items())
            raise InvalidArgumentError(f"{name}: it fits no model here: {told}")
