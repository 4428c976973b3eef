"""Fields of vLLM, llama.cpp's server and Transformers that OpenAI's API has not: translated, or refused.

Each has a meaning here, or only the value that asks for nothing is accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from akunu.server.errors import ApiError
from akunu.server.fields import Fields

__all__ = ["IGNORE_EOS", "LORA", "PROGRESS", "AdapterScale", "ForeignFields"]

IGNORE_EOS: Final = "ignore_eos"
"""Name of the option that keeps an output from ending by itself; `generations` makes a bias of it."""
LORA: Final = "lora"
"""Name of the option with pairs of an adapter's number and its scale; `generations` finds the adapter."""
PROGRESS: Final = "return_progress"
"""Name of the option by which a stream tells how far its prompt is read; `generations` sees to it."""

_OFF: Final[Mapping[str, Mapping[str, float]]] = {
    "penalties": {"repeat_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0},
    "dry": {"dry_multiplier": 0.0},
    "top_n_sigma": {"top_n_sigma": -1.0},
    "top_k": {"top_k": 0},
    "typ_p": {"typical_p": 1.0},
    "top_p": {"top_p": 1.0},
    "min_p": {"min_p": 0.0},
    "xtc": {"xtc_probability": 0.0},
    "temperature": {"temperature": 1.0},
    "infill": {},
}
"""Names of samplers, and what switches each off."""
_ALIASES: Final = {"typical_p": "typ_p", "temp": "temperature"}


class StructuredOutputs(Fields):
    """The constraint of an output, as vLLM has it."""

    json: dict[str, Any] | str | None = None
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None
    json_object: bool | None = None


class AdapterScale(Fields):
    """The scale of an adapter, as llama-server has it."""

    id: int
    scale: float = 1.0


class ForeignFields(Fields, kw_only=True):
    """Other names, and settings with their values that change nothing."""

    accepted: ClassVar[Mapping[str, tuple[Any, ...] | None]] = {
        "min_tokens": (0,),
        "skip_special_tokens": (True,),
        "spaces_between_special_tokens": (True, False),
        "include_stop_str_in_output": (False,),
        "use_beam_search": (False,),
        "length_penalty": (1, 1.0),
        "early_stopping": (False,),
        "num_beams": (1,),
        "return_full_text": (False,),
        "guided_decoding_backend": ("auto", "guidance"),
        "prompt_logprobs": (0,),
        "return_token_ids": (False,),
        "id_slot": (-1,),
        "n_keep": (0, -1),
        "n_probs": (0,),
        "mirostat": (0,),
        "dynatemp_range": (0, 0.0),
        "tfs_z": (1, 1.0),
        "return_tokens": (False,),
        "post_sampling_probs": (False,),
        "cache_prompt": (True, False),  # what is cached changes no output
        "top_a": (0, 0.0),
        "tfs": (1, 1.0),
        "smoothing_factor": (0, 0.0),
        "n_discard": (0,),
        "t_max_predict_ms": (0, -1),
        "image_data": ([],),
        "bad_words": ([],),
        "detokenize": (True,),
        "best_of": (1,),
        "return_tokens_as_token_ids": (False,),
        "safe_prompt": (False,),
        "reasoning_format": ("auto", "deepseek"),
        "adaptive_target": (-1, -1.0),
        "parse_tool_calls": (True,),
        "verbose": (False,),
    }

    # Translated.
    repetition_penalty: float | None = None
    max_new_tokens: int | None = None
    n_predict: int | None = None
    repeat_last_n: int | None = None
    ignore_eos: bool | None = None
    lora: list[AdapterScale] | None = None
    do_sample: bool | None = None
    structured_outputs: StructuredOutputs | None = None
    guided_json: dict[str, Any] | str | None = None
    guided_regex: str | None = None
    guided_choice: list[str] | None = None
    guided_grammar: str | None = None
    json_schema: dict[str, Any] | None = None
    random_seed: int | None = None
    cache_salt: str | None = None
    return_progress: bool | None = None
    timings_per_token: bool | None = None
    typ_p: float | None = None
    samplers: list[str] | None = None
    """Names of the samplers that may work; their order is Akunu's."""
    request_id: str | None = None  # a label
    # Of how an output is computed and sent, not of what it is.
    backend_sampling: bool | None = None
    n_cache_reuse: int | None = None
    reasoning_control: bool | None = None
    sse_ping_interval: float | None = None
    # These belong to settings that are off, as another field says.
    dynatemp_exponent: Any = None
    mirostat_tau: Any = None
    mirostat_eta: Any = None
    smoothing_curve: Any = None
    adaptive_decay: Any = None
    # Known, and refused but for what changes nothing.
    top_a: Any = None
    tfs: Any = None
    smoothing_factor: Any = None
    n_discard: Any = None
    t_max_predict_ms: Any = None
    image_data: Any = None
    bad_words: Any = None
    detokenize: Any = None
    best_of: Any = None
    return_tokens_as_token_ids: Any = None
    safe_prompt: Any = None
    min_tokens: Any = None
    skip_special_tokens: Any = None
    spaces_between_special_tokens: Any = None
    include_stop_str_in_output: Any = None
    use_beam_search: Any = None
    length_penalty: Any = None
    early_stopping: Any = None
    num_beams: Any = None
    return_full_text: Any = None
    guided_decoding_backend: Any = None
    prompt_logprobs: Any = None
    return_token_ids: Any = None
    id_slot: Any = None
    n_keep: Any = None
    n_probs: Any = None
    mirostat: Any = None
    dynatemp_range: Any = None
    tfs_z: Any = None
    return_tokens: Any = None
    post_sampling_probs: Any = None
    cache_prompt: Any = None
    reasoning_format: Any = None
    adaptive_target: Any = None
    parse_tool_calls: Any = None
    verbose: Any = None

    def foreign(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields as arguments of a generation, beside those that were given by our names.

        Raises
        ------
        ApiError
            400: something is said twice.
        """
        found: dict[str, Any] = {}
        wanted = self.structured_outputs or StructuredOutputs()
        for name, meant, value in (
            ("max_new_tokens", "max_tokens", self.max_new_tokens),
            ("n_predict", "max_tokens", None if self.n_predict is None else max(self.n_predict, -1)),
            ("random_seed", "seed", self.random_seed),
            ("repetition_penalty", "repeat_penalty", self.repetition_penalty),
            ("repeat_last_n", "penalty_window", self.repeat_last_n),
            ("typ_p", "typical_p", self.typ_p),
            ("do_sample", "temperature", 0.0 if self.do_sample is False else None),
            ("ignore_eos", IGNORE_EOS, self.ignore_eos or None),
            ("lora", LORA, self.lora or None),
            ("return_progress", PROGRESS, self.return_progress or None),
            ("structured_outputs.json", "schema", wanted.json),
            ("structured_outputs.regex", "regex", wanted.regex),
            ("structured_outputs.choice", "choice", wanted.choice),
            ("structured_outputs.grammar", "grammar", wanted.grammar),
            ("structured_outputs.json_object", "json", wanted.json_object or None),
            ("guided_json", "schema", self.guided_json),
            ("guided_regex", "regex", self.guided_regex),
            ("guided_choice", "choice", self.guided_choice),
            ("guided_grammar", "grammar", self.guided_grammar),
            ("json_schema", "schema", self.json_schema or None),
        ):
            if value is None:
                continue
            if meant in found or (own.get(meant) is not None and name != "do_sample"):
                raise ApiError(
                    400, f"{name}: is another name of {meant}, which is given too; give one of them",
                    param=name, code="invalid_value",
                )  # fmt: skip
            found[meant] = value
        if self.repetition_penalty is not None and "penalty_window" not in {**own, **found}:
            found["penalty_window"] = -1  # it counts the whole sequence where it comes from
        return found | self._switched_off()

    def _switched_off(self) -> dict[str, float]:
        if self.samplers is None:
            return {}
        named = {_ALIASES.get(name, name) for name in self.samplers}
        if unknown := sorted(named - _OFF.keys()):
            raise ApiError(
                400, f"samplers: found {unknown[0]!r}, expected some of {', '.join(_OFF)}",
                param="samplers", code="invalid_value",
            )  # fmt: skip
        return {name: value for key in _OFF.keys() - named for name, value in _OFF[key].items()}
