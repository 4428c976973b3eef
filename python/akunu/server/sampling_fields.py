"""Fields of requests in OpenAI's format that say how an output is sampled."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from akunu.api.options import MAX_PRIORITY
from akunu.server.errors import ApiError
from akunu.server.foreign_fields import ForeignFields

__all__ = ["SamplingFields", "stop_texts"]


class SamplingFields(ForeignFields, kw_only=True):
    """Arguments of a generation by the names of `GenerationOptions`, OpenAI's where that has them."""

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repeat_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    penalty_window: int | None = None
    top_n_sigma: float | None = None
    xtc_probability: float | None = None
    xtc_threshold: float | None = None
    min_keep: int | None = None
    dry_multiplier: float | None = None
    dry_base: float | None = None
    dry_allowed_length: int | None = None
    dry_penalty_last_n: int | None = None
    dry_sequence_breakers: list[str] | str | None = None
    logit_bias: dict[int, float] | list[tuple[int, float]] | None = None
    """A mapping, or pairs, as llama.cpp's server takes them."""
    seed: int | None = None
    stop_token_ids: list[int] | None = None
    adapter: str | None = None
    adapter_scale: float | None = None
    priority: Annotated[int, Meta(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] | None = None

    def sampling(self) -> dict[str, Any]:
        """Return the fields that were given, as arguments of a generation."""
        names = SamplingFields.__annotations__
        found = {name: value for name in names if (value := getattr(self, name)) is not None}
        breakers = found.get("dry_sequence_breakers")
        if isinstance(breakers, str):  # clients of other programs send the list as JSON, or its inside
            try:
                text = breakers.strip()
                found["dry_sequence_breakers"] = msgspec.json.decode(
                    text if text.startswith("[") else f"[{text}]", type=list[str]
                )
            except msgspec.MsgspecError:
                raise ApiError(
                    400, f"dry_sequence_breakers: found {breakers!r}, expected a list of texts",
                    param="dry_sequence_breakers", code="invalid_value",
                ) from None  # fmt: skip
        if isinstance(bias := found.get("logit_bias"), list):
            found["logit_bias"] = dict(bias)
        if found.get("seed") == -1:  # a seed of its own, as without one
            del found["seed"]
        return found


def stop_texts(given: str | list[str] | None) -> str | list[str] | None:
    """The strings that end an output; programs with a field for them send it empty."""
    return [text for text in given if text] or None if isinstance(given, list) else given or None
