"""Load the engine of a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from akunu.base.errors import InvalidArgumentError
from akunu.cli.bench.runner import LoadedModel
from akunu.loading.engines import find_device, open_unmanaged

if TYPE_CHECKING:
    from akunu._core import DeviceInfo
    from akunu.cli.bench.params import Case

__all__ = ["check_gpu_layers", "load_case"]


def load_case(case: Case, context: int) -> LoadedModel:
    """Load the engine of a test."""
    device = find_device(case.device)
    opened = open_unmanaged(
        case.model,
        device=case.device,
        context=context,
        threads=case.n_threads,
        kv_dtype=f"{case.type_k},{case.type_v}",
        chunk=min(case.n_batch, case.n_ubatch),
    )
    try:
        check_gpu_layers(case.n_gpu_layers, device, opened.config.n_layers)
    except InvalidArgumentError:
        opened.engine.close()
        raise
    return LoadedModel(
        opened.engine, opened.facts, opened.config.vocab_size, device, find_device("cpu")["name"]
    )


def check_gpu_layers(n_gpu_layers: int, device: DeviceInfo, n_layers: int = 1) -> None:
    """Refuse a value of -ngl that does not say what happens: a model runs on one device, whole.

    Raises
    ------
    InvalidArgumentError
        Layers on a GPU were asked for and the device is the CPU, or the reverse, or a split.
    """
    on_cpu = device["id"] == "cpu"
    allowed = n_gpu_layers == 0 if on_cpu else n_gpu_layers >= n_layers
    if n_gpu_layers != -1 and not allowed:
        where = "0 on the CPU" if on_cpu else f"the model's number of layers on {device['id']}"
        raise InvalidArgumentError(
            f"-ngl: found {n_gpu_layers}, expected -1 or {where}; "
            "a model runs whole on one device, chosen with -dev"
        )
