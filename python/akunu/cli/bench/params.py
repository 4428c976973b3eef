"""The parameters of a benchmark, and their cross product in llama-bench's order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from akunu.base.errors import InvalidArgumentError

__all__ = ["DEFAULTS", "BenchParams", "Case", "list_cases", "parse_ints", "parse_pair"]

MAX_VALUES = 4096
"""Most values that one option may expand to, so that a slip such as 1-999999999 is an error, not a hang."""

_RANGE = re.compile(r"(?P<first>-?\d+)(?:-(?P<last>\d+)(?:(?P<op>[+*])(?P<step>\d+))?)?", re.ASCII)


def parse_ints(text: str, *, low: int = 0) -> list[int]:
    """Expand a comma list of `a`, `a-b`, `a-b+step` and `a-b*factor`.

    Parameters
    ----------
    text
        For example "1,4-6,512-4096*2".
    low
        Least value allowed.

    Raises
    ------
    InvalidArgumentError
        The text is not such a list, a range is empty or does not grow, or a value is below `low`.
    """
    values: list[int] = []
    for part in text.removesuffix(",").split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise InvalidArgumentError(
                f"found {part!r}, expected a number or a range: "
                "first-last, first-last+step or first-last*factor"
            )
        first = int(match["first"])
        last = int(match["last"]) if match["last"] else first
        step = int(match["step"] or 1)
        if first < low:
            raise InvalidArgumentError(f"found {first}, expected at least {low}")
        if last < first:
            raise InvalidArgumentError(f"range {part!r} is empty: {last} is less than {first}")
        value = first
        while value <= last:
            values.append(value)
            if len(values) > MAX_VALUES:
                raise InvalidArgumentError(f"{text!r} has more than {MAX_VALUES} values")
            following = value * step if match["op"] == "*" else value + step
            if following <= value:
                raise InvalidArgumentError(f"range {part!r} does not grow at {value}")
            value = following
    return values


def parse_pair(text: str) -> tuple[int, int]:
    """`pp,tg` of option -pg."""
    parts = text.split(",")
    if len(parts) != 2 or not all(part.isascii() and part.strip().isdigit() for part in parts):
        raise InvalidArgumentError(
            f"found {text!r}, expected two numbers: prompt,generated (for example 512,128)"
        )
    return int(parts[0]), int(parts[1])


@dataclass(frozen=True)
class BenchParams:
    """Every value of every option; a test is run for each combination."""

    models: tuple[str, ...] = ("ember",)
    n_prompt: tuple[int, ...] = (512,)
    n_gen: tuple[int, ...] = (128,)
    n_pg: tuple[tuple[int, int], ...] = ()
    n_depth: tuple[int, ...] = (0,)
    n_batch: tuple[int, ...] = (2048,)
    n_ubatch: tuple[int, ...] = (512,)
    """0 stands for what suits the device, and is replaced in the tests once they are listed."""
    type_k: tuple[str, ...] = ("f16",)
    type_v: tuple[str, ...] = ("f16",)
    n_threads: tuple[int, ...] = (0,)
    """0 stands for the device's default and is replaced before the tests are listed."""
    n_gpu_layers: tuple[int, ...] = (-1,)
    devices: tuple[str, ...] = ("auto",)
    flash_attn: tuple[int, ...] = (-1,)
    """1 on, -1 auto; the same thing here, since attention is always fused."""


DEFAULTS = BenchParams()


@dataclass(frozen=True)
class Case:
    """One test: a row of the table. `n_prompt` and `n_gen` may both be positive (-pg)."""

    model: str
    n_prompt: int
    n_gen: int
    n_depth: int
    n_batch: int
    n_ubatch: int
    type_k: str
    type_v: str
    n_threads: int
    n_gpu_layers: int
    device: str
    flash_attn: int

    @property
    def n_context(self) -> int:
        """Tokens that the KV cache must hold; one more than llama-bench's, for the token that starts it."""
        return self.n_depth + self.n_prompt + self.n_gen + 1

    @property
    def engine_key(self) -> tuple[object, ...]:
        """Tests with equal keys can share one loaded engine."""
        chunk = min(self.n_batch, self.n_ubatch)
        return (self.model, self.device, self.n_gpu_layers, self.n_threads, self.type_k, self.type_v, chunk)

    @property
    def name(self) -> str:
        """Name of the test as llama-bench prints it: pp512, tg128, pp512+tg128, perhaps with " @ d4096"."""
        parts = [f"pp{self.n_prompt}"] if self.n_prompt else []
        if self.n_gen:
            parts.append(f"tg{self.n_gen}")
        return "+".join(parts) + (f" @ d{self.n_depth}" if self.n_depth else "")


def list_cases(params: BenchParams) -> list[Case]:
    """The cross product, ordered so that a model is loaded as seldom as possible (llama-bench's order)."""
    return [
        Case(
            model=model,
            n_prompt=n_prompt,
            n_gen=n_gen,
            n_depth=depth,
            n_batch=batch,
            n_ubatch=ubatch,
            type_k=type_k,
            type_v=type_v,
            n_threads=threads,
            n_gpu_layers=gpu_layers,
            device=device,
            flash_attn=flash_attn,
        )
        for model, gpu_layers, device, batch, ubatch, type_k, type_v, flash_attn, threads, depth in product(
            params.models,
            params.n_gpu_layers,
            params.devices,
            params.n_batch,
            params.n_ubatch,
            params.type_k,
            params.type_v,
            params.flash_attn,
            params.n_threads,
            params.n_depth,
        )
        for n_prompt, n_gen in _sizes(params.n_prompt, params.n_gen, params.n_pg)
    ]


def _sizes(
    n_prompt: Sequence[int], n_gen: Sequence[int], n_pg: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """First all prompt tests, then all generation tests, then the pairs; 0 switches a test off."""
    yield from ((n, 0) for n in n_prompt if n)
    yield from ((0, n) for n in n_gen if n)
    yield from (pair for pair in n_pg if any(pair))
