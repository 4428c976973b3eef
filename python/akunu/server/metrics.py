"""Metrics for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from akunu.api.results import Completion, Piece
from akunu.server.models import Registry

__all__ = ["GenerationMeter", "Meters", "metrics"]

_FIRST: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_BETWEEN: Final = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5)
_WHOLE: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


_ENGINE: Final = (
    (GaugeMetricFamily, "waiting", "Sequences that wait for a slot."),
    (GaugeMetricFamily, "running", "Sequences that have a slot."),
    (GaugeMetricFamily, "pages", "Pages of the KV cache."),
    (GaugeMetricFamily, "pages_held", "Pages that running sequences use, or that are pinned."),
    (GaugeMetricFamily, "pages_cached", "Pages kept for prompts that begin like an earlier sequence."),
    (CounterMetricFamily, "steps", "Steps of the engine."),
    (CounterMetricFamily, "hits", "Prompts whose known beginning was in the cache."),
    (CounterMetricFamily, "hits_disk", "Prompts of which pages were found in files."),
    (CounterMetricFamily, "misses_new", "Prompts that began like no earlier sequence."),
    (CounterMetricFamily, "misses_evicted", "Prompts whose known beginning had made room for others."),
    (CounterMetricFamily, "drafted_tokens", "Tokens that were drafted."),
    (CounterMetricFamily, "accepted_tokens", "Draft tokens that were accepted."),
    (CounterMetricFamily, "model_drafted_tokens", "Draft tokens of a draft model or the model's own head."),
    (CounterMetricFamily, "model_accepted_tokens", "Tokens of such drafts that were accepted."),
)
"""Fields of `ModelStats`, read when the metrics are asked for."""


class _Engines(Collector):
    """The counts of the models' engines; those of unloaded models stay."""

    def __init__(self, models: Registry) -> None:
        self._models = models

    def collect(self) -> Iterator[Metric]:
        entries = self._models.entries()
        found = [(e, e.model.stats) for e in entries if e.model is not None]
        totals = [(e, e.totals()) for e in entries if e.model is not None or e.earlier]
        for kind, name, text in _ENGINE:
            family = kind(f"akunu_engine_{name}", text, labels=["model"])
            if kind is CounterMetricFamily:
                for entry, counts in totals:
                    family.add_metric([entry.spec.name], counts[name])
            else:
                for entry, stats in found:
                    family.add_metric([entry.spec.name], getattr(stats, name))
            yield family


class Meters:
    """The metrics of one server; each server has its own."""

    def __init__(self, models: Registry) -> None:
        self._models = models
        self._registry = registry = CollectorRegistry()
        registry.register(_Engines(models))
        by_model = ("model",)
        self.requests = Counter(
            "akunu_requests", "Requests answered.", ("route", "status"), registry=registry
        )
        self.seconds = Histogram(
            "akunu_request_seconds", "Seconds from request to end of answer.", ("route",), buckets=_WHOLE,
            registry=registry,
        )  # fmt: skip
        self.first_token = Histogram(
            "akunu_time_to_first_token_seconds", "Seconds from request to first text, waiting included.",
            by_model, buckets=_FIRST, registry=registry,
        )  # fmt: skip
        self.between_tokens = Histogram(
            "akunu_inter_token_seconds", "Seconds between tokens; those that come together share them.",
            by_model, buckets=_BETWEEN, registry=registry,
        )  # fmt: skip
        self.prompt_tokens = Counter(
            "akunu_prompt_tokens", "Tokens of prompts that were run.", by_model, registry=registry
        )
        self.cached_tokens = Counter(
            "akunu_cached_tokens",
            "Tokens of prompts that were found in the KV cache.",
            by_model,
            registry=registry,
        )
        self.generated_tokens = Counter(
            "akunu_generated_tokens", "Tokens that were generated.", by_model, registry=registry
        )
        self.generations = Counter(
            "akunu_generations",
            "Generations that ended, by the reason.",
            ("model", "reason"),
            registry=registry,
        )
        self.audio_seconds = Counter(
            "akunu_audio_seconds", "Seconds of recordings that were transcribed.", by_model, registry=registry
        )
        self._queued = Gauge(
            "akunu_active_generations", "Generations that run or wait.", by_model, registry=registry
        )
        self._loaded = Gauge(
            "akunu_model_loaded", "1 while the model is in memory.", by_model, registry=registry
        )

    def response(self) -> Response:
        """Return all metrics in Prometheus's text format."""
        for entry in self._models.entries():
            self._queued.labels(entry.spec.name).set(entry.queued)
            self._loaded.labels(entry.spec.name).set(entry.model is not None)
        return Response(generate_latest(self._registry), media_type=CONTENT_TYPE_LATEST)


async def metrics(request: Request) -> Response:
    """All metrics."""
    meters: Meters = request.app.state.server.meters
    return meters.response()


class GenerationMeter:
    """Measures one generation; `requested_at` is when its request came."""

    def __init__(self, meters: Meters, model: str, requested_at: float) -> None:
        self._meters = meters
        self._model = model
        self._between_tokens = meters.between_tokens.labels(model)
        self._last = requested_at
        self._began = False
        self.first_token_seconds: float | None = None

    def piece(self, piece: Piece) -> None:
        """A piece came."""
        now = time.monotonic()
        seconds = now - self._last
        if not self._began:
            self._began = True
            self.first_token_seconds = seconds
            self._meters.first_token.labels(self._model).observe(seconds)
        elif piece.ids:
            for _ in piece.ids:
                self._between_tokens.observe(seconds / len(piece.ids))
        else:
            return  # part of a token's text: the time is that of the whole token
        self._last = now

    def end(self, completion: Completion, reason: str) -> None:
        """The generation is over, in whatever way."""
        stats, model = completion.stats, self._model
        if stats.prefill_seconds > 0:  # else it was refused, or nobody waited until its turn
            self._meters.prompt_tokens.labels(model).inc(stats.prompt_tokens)
            self._meters.cached_tokens.labels(model).inc(stats.cached_tokens)
        self._meters.generated_tokens.labels(model).inc(stats.generated_tokens)
        self._meters.generations.labels(model, reason).inc()
