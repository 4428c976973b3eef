"""The application on Ray Serve: replicas over the nodes of a cluster, and a front for all of them.

Needs Ray (`pip install 'akunu[ray]'`). To deploy again replaces the replicas one after another.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any

from ray import serve
from ray.exceptions import RayActorError
from ray.serve.config import AutoscalingConfig, HTTPOptions, RequestRouterConfig
from ray.serve.exceptions import BackPressureError, ReplicaUnavailableError
from ray.serve.request_router import PendingRequest, RequestRouter, RunningReplica
from starlette.types import Message

from akunu.server.catalog import ModelSpec
from akunu.server.cluster.affinity import Affinity, beginnings, stored_at
from akunu.server.cluster.front import Front, Lost
from akunu.server.cluster.replica import Call, Replica
from akunu.server.errors import ApiError
from akunu.server.settings import Settings

__all__ = ["NAME", "Scale", "deploy"]

NAME = "akunu"
"""Name of the application in Ray Serve."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The number of replicas.

    Attributes
    ----------
    least, most : int
        Replicas; in between, as many as there are requests for.
    requests : int
        Requests for each replica, those that wait included, above which there is to be another one.
    processors : float
        The processors of a replica.
    """

    least: int = 1
    most: int = 1
    requests: int = 8
    processors: float = 1


class PrefixRouter(RequestRouter):  # type: ignore[misc]  # Ray's classes are not typed
    """Gives a request to the replica that knows how it begins, unless others have much less to do."""

    def initialize_state(self, **_: Any) -> None:
        self._affinity = Affinity()

    async def choose_replicas(
        self, candidate_replicas: list[RunningReplica], pending_request: PendingRequest | None = None
    ) -> list[list[RunningReplica]]:
        """The candidates, one after another in the order of `Affinity`."""
        replicas = {each.replica_id.unique_id: each for each in candidate_replicas}
        cache = self.replica_queue_len_cache
        waiting = {name: cache.get(each.replica_id) or 0 for name, each in replicas.items()}
        keys, stored = _keys(pending_request)
        order = sorted(self._affinity.order(keys, waiting), key=lambda name: name != stored)
        return [[replicas[name]] for name in order]

    def on_request_routed(self, pending_request: PendingRequest, replica_id: Any, result: Any) -> None:
        """A replica has it, and will know its beginnings."""
        self._affinity.learn(_keys(pending_request)[0], replica_id.unique_id)


def _keys(request: PendingRequest | None) -> tuple[list[int], str | None]:
    if request is None:
        return [], None
    if "keys" not in request.kwargs:
        return [], None
    return request.kwargs["keys"], request.kwargs["stored"]


class Served:
    """A replica, as Ray Serve makes it."""

    async def __init__(self, specs: Sequence[ModelSpec], settings: Settings) -> None:  # type: ignore[misc]
        name = serve.get_replica_context().replica_id.unique_id
        self._replica = Replica(specs, settings, name)
        await self._replica.start()

    async def answer(
        self, call: Call, keys: Sequence[int] = (), stored: str | None = None
    ) -> AsyncGenerator[Message, None]:
        """The messages of a response; the other arguments are the router's."""
        async for message in self._replica.answer(call):
            yield message

    async def check_health(self) -> None:
        """Ray replaces a replica whose engine makes no progress."""
        async for message in self._replica.answer(
            Call("GET", "/health", b"", [(b"host", b"localhost")], None, b"")
        ):
            if message["type"] == "http.response.start" and message["status"] != 200:
                raise RuntimeError("an engine makes no progress")

    async def __del__(self) -> None:
        await self._replica.stop()


def _front(max_body: int, max_seconds: float) -> Front:
    """Made where a front runs."""
    handle = serve.get_deployment_handle("replica", app_name=NAME).options(stream=True)

    async def ask(call: Call) -> AsyncGenerator[Message, None]:
        answer = handle.answer.remote(
            call, keys=beginnings(call.body), stored=stored_at(call.path, call.body)
        )
        try:
            async for message in answer:
                yield message
        except BackPressureError as error:
            raise ApiError(503, "the queue is full", code="queue_full", retry_after=2) from error
        except (RayActorError, ReplicaUnavailableError) as error:
            raise Lost(str(error).partition("\n")[0]) from error
        except (asyncio.CancelledError, GeneratorExit):
            answer.cancel()
            raise

    return Front(ask, max_body, max_seconds)


def deploy(
    specs: Sequence[ModelSpec], settings: Settings, scale: Scale, *, host: str = "127.0.0.1", port: int = 8080
) -> None:
    """Serve models on the Ray cluster that this process is connected to.

    Called again, it changes what is served: new replicas begin, and old ones end when their requests have.

    Parameters
    ----------
    specs, settings
        As of `akunu.server.create_app`. Paths have to be there on every node.
    scale
        How many replicas.
    host, port
        Where each node listens.
    """
    room = max((spec.parallel for spec in specs), default=1) + settings.max_queue
    replica = serve.deployment(
        Served,
        name="replica",
        max_ongoing_requests=room,
        max_queued_requests=max(1, settings.max_queue),  # while no replica has room
        autoscaling_config=AutoscalingConfig(
            min_replicas=scale.least, max_replicas=scale.most, target_ongoing_requests=scale.requests
        ),
        ray_actor_options={"num_cpus": scale.processors},
        graceful_shutdown_timeout_s=settings.drain_seconds,
        request_router_config=RequestRouterConfig(request_router_class=PrefixRouter),
    )
    front = serve.deployment(
        serve.ingress(lambda: _front(settings.max_body, settings.max_seconds))(_Front),
        name="front",
        max_ongoing_requests=1000,
        num_replicas=1,
        graceful_shutdown_timeout_s=settings.max_seconds,  # an old front lets all of its requests end
        ray_actor_options={"num_cpus": 0},
    )
    serve.start(proxy_location="EveryNode", http_options=HTTPOptions(host=host, port=port))
    serve.run(front.bind(replica.bind(tuple(specs), settings)), name=NAME, route_prefix="/")


class _Front:
    """The class that Ray wraps the front in; it keeps nothing."""

    def __init__(self, replica: Any) -> None:
        pass
