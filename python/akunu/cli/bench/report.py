"""Print results exactly as llama-bench does: md, csv, json, jsonl, sql.

Fields that have no counterpart here hold the constant that states what Akunu does: no CPU mask, no polling
between chains (`poll` 0), one device (`split_mode` none), files memory-mapped, weights repacked at load.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol, TextIO

from akunu.cli.bench.params import DEFAULTS, BenchParams
from akunu.cli.bench.runner import Result
from akunu.cli.console import visible

__all__ = ["FORMATS", "Printer", "build_number", "make_printer"]

_STRING, _INT, _BOOL, _FLOAT = "TEXT", "INTEGER", "BOOL", "REAL"

# fmt: off
FIELDS: Final[Mapping[str, str]] = MappingProxyType({
    "build_commit": _STRING, "build_number": _INT, "cpu_info": _STRING, "gpu_info": _STRING,
    "backends": _STRING, "model_filename": _STRING, "model_type": _STRING, "model_size": _INT,
    "model_n_params": _INT, "n_batch": _INT, "n_ubatch": _INT, "n_threads": _INT, "cpu_mask": _STRING,
    "cpu_strict": _BOOL, "poll": _INT, "type_k": _STRING, "type_v": _STRING, "n_gpu_layers": _INT,
    "n_cpu_moe": _INT, "split_mode": _STRING, "main_gpu": _INT, "no_kv_offload": _BOOL, "flash_attn": _INT,
    "devices": _STRING, "tensor_split": _STRING, "tensor_buft_overrides": _STRING, "load_mode": _STRING,
    "lazy_mode": _STRING, "embeddings": _BOOL, "no_op_offload": _INT, "no_host": _BOOL, "repack": _BOOL,
    "fit_target": _INT, "fit_min_ctx": _INT, "n_prompt": _INT, "n_gen": _INT, "n_depth": _INT,
    "test_time": _STRING, "avg_ns": _INT, "stddev_ns": _INT, "avg_ts": _FLOAT, "stddev_ts": _FLOAT,
})
# fmt: on
"""Columns of csv and sql, keys of json, in order, with their kind."""

CONSTANTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cpu_mask": "0x0",
        "cpu_strict": "0",
        "poll": "0",
        "n_cpu_moe": "0",
        "split_mode": "none",
        "main_gpu": "0",
        "no_kv_offload": "0",
        "tensor_split": "0.00",
        "tensor_buft_overrides": "none",
        "lazy_mode": "off",
        "embeddings": "0",
        "no_op_offload": "0",
        "no_host": "0",
        "repack": "1",
        "fit_target": "0",
        "fit_min_ctx": "0",
    }
)

# Optional columns of the table: field to (heading, width, the parameter that brings it in).
_COLUMNS: Final[Mapping[str, tuple[str, int, str]]] = MappingProxyType(
    {
        "n_gpu_layers": ("ngl", 3, ""),
        "n_threads": ("threads", 7, "n_threads"),
        "n_batch": ("n_batch", 7, "n_batch"),
        "n_ubatch": ("n_ubatch", 8, "n_ubatch"),
        "type_k": ("type_k", 6, "type_k"),
        "type_v": ("type_v", 6, "type_v"),
        "flash_attn": ("fa", 3, "flash_attn"),
        "devices": ("dev", -12, "devices"),
    }
)
_FIXED: Final[Mapping[str, int]] = MappingProxyType(
    {"model": -30, "size": 10, "params": 10, "backend": -10, "test": 15, "t/s": 20}
)
"""Widths; negative is left-aligned."""


class Printer(Protocol):
    """Writes one format: what comes before the results, each result, what comes after."""

    def header(self) -> None: ...
    def test(self, result: Result) -> None: ...
    def footer(self) -> None: ...


def build_number(version: str) -> int:
    """A version as llama-bench's integer: 1.2.3 is 10203."""
    parts = [int(part) for part in re.findall(r"\d+", version)[:3]]
    major, minor, patch = parts + [0] * (3 - len(parts))
    return major * 10000 + minor * 100 + patch


def make_printer(name: str, out: TextIO, params: BenchParams, *, version: str, backend: str) -> Printer:
    """The printer of one of `FORMATS`.

    Parameters
    ----------
    name
        Format.
    out
        Where to print.
    params
        All parameters, as they were given: those that are not at their default become columns.
    version
        Akunu's.
    backend
        Backend of the device, such as "CPU".
    """
    return FORMATS[name](out, params, version, backend)


class _Base:
    def __init__(self, out: TextIO, params: BenchParams, version: str, backend: str) -> None:
        self.out = out
        self.params = params
        self.version = version
        self.backend = backend

    def write(self, text: str) -> None:
        self.out.write(visible(text))  # a model's file says what its type is called
        self.out.flush()

    def values(self, result: Result) -> dict[str, str]:
        """Every field as text, in order."""
        case, model = result.case, result.model
        is_cpu = result.device["id"] == "cpu"
        found = {
            **CONSTANTS,
            "build_commit": f"akunu-{self.version}",
            "build_number": str(build_number(self.version)),
            "cpu_info": result.cpu_name,
            "gpu_info": "" if is_cpu else result.device["name"],
            "backends": result.device["backend"],
            "model_filename": model.filename,
            "model_type": model.type,
            "model_size": str(model.size),
            "model_n_params": str(model.n_params),
            "n_batch": str(case.n_batch),
            "n_ubatch": str(case.n_ubatch),
            "n_threads": str(case.n_threads),
            "type_k": case.type_k,
            "type_v": case.type_v,
            "n_gpu_layers": str(case.n_gpu_layers),
            "flash_attn": str(case.flash_attn),
            "devices": case.device,
            "load_mode": model.load_mode,
            "n_prompt": str(case.n_prompt),
            "n_gen": str(case.n_gen),
            "n_depth": str(case.n_depth),
            "test_time": result.test_time,
            "avg_ns": str(int(_mean(result.samples_ns))),
            "stddev_ns": str(int(_stdev(result.samples_ns))),
            "avg_ts": f"{_mean(result.samples_ts):.6f}",
            "stddev_ts": f"{_stdev(result.samples_ts):.6f}",
        }
        return {field: found[field] for field in FIELDS}

    def header(self) -> None:
        """Print nothing before the results."""

    def footer(self) -> None:
        """Print nothing after the results."""


class _Csv(_Base):
    def header(self) -> None:
        self.write(",".join(FIELDS) + "\n")

    def test(self, result: Result) -> None:
        self.write(
            ",".join('"' + value.replace('"', '""') + '"' for value in self.values(result).values()) + "\n"
        )


class _Json(_Base):
    first = True

    def header(self) -> None:
        self.write("[\n")

    def pairs(self, result: Result) -> list[str]:
        return [f'"{field}": {_json_value(field, value)}' for field, value in self.values(result).items()]

    def test(self, result: Result) -> None:
        lines = [
            *self.pairs(result),
            f'"samples_ns": [ {", ".join(map(str, result.samples_ns))} ]',
            f'"samples_ts": [ {", ".join(f"{value:g}" for value in result.samples_ts)} ]',
        ]
        self.write(
            ("" if self.first else ",\n") + "  {\n" + ",\n".join(f"    {line}" for line in lines) + "\n  }"
        )
        self.first = False

    def footer(self) -> None:
        self.write("\n]\n")


class _Jsonl(_Json):
    def header(self) -> None:
        """One object a line; nothing around them."""

    def test(self, result: Result) -> None:
        pairs = "".join(f"{pair}, " for pair in self.pairs(result))
        samples_ns = ", ".join(map(str, result.samples_ns))
        samples_ts = ", ".join(f"{value:g}" for value in result.samples_ts)
        self.write(f'{{{pairs}"samples_ns": [ {samples_ns} ],"samples_ts": [ {samples_ts} ]}}\n')

    def footer(self) -> None:
        """Print nothing after the results."""


class _Sql(_Base):
    def header(self) -> None:
        kinds = {field: "INTEGER" if kind == _BOOL else kind for field, kind in FIELDS.items()}
        columns = ",\n".join(f"  {field} {kind}" for field, kind in kinds.items())
        self.write(f"CREATE TABLE IF NOT EXISTS llama_bench (\n{columns}\n);\n\n")

    def test(self, result: Result) -> None:
        values = ", ".join("'" + value.replace("'", "''") + "'" for value in self.values(result).values())
        self.write(f"INSERT INTO llama_bench ({', '.join(FIELDS)}) VALUES ({values});\n")


class _Markdown(_Base):
    def __init__(self, out: TextIO, params: BenchParams, version: str, backend: str) -> None:
        super().__init__(out, params, version, backend)
        is_cpu = backend == "CPU"
        shown = {
            field
            for field, (_, _, param) in _COLUMNS.items()
            if (field == "n_gpu_layers" and not is_cpu)
            or (field == "n_threads" and is_cpu)
            or (param and getattr(params, param) != getattr(DEFAULTS, param))
        }
        optional = [field for field in _COLUMNS if field in shown]
        self.widths = {
            **{name: _FIXED[name] for name in ("model", "size", "params", "backend")},
            **{field: _COLUMNS[field][1] for field in optional},
            **{name: _FIXED[name] for name in ("test", "t/s")},
        }

    def header(self) -> None:
        names = {name: _COLUMNS[name][0] if name in _COLUMNS else name for name in self.widths}
        self._row({name: names[name] for name in self.widths})
        rules = [("-" * (abs(width) - 1)) + (":" if width > 0 else "-") for width in self.widths.values()]
        self.write("".join(f"| {rule} " for rule in rules) + "|\n")

    def test(self, result: Result) -> None:
        values = self.values(result)
        values |= {
            "model": result.model.type,
            "size": _bytes_text(result.model.size),
            "params": _params_text(result.model.n_params),
            "backend": result.device["backend"],
            "test": result.case.name,
            "t/s": f"{_mean(result.samples_ts):.2f} ± {_stdev(result.samples_ts):.2f}",
        }
        self._row(values)

    def footer(self) -> None:
        self.write(f"\nbuild: akunu-{self.version} ({build_number(self.version)})\n")

    def _row(self, values: Mapping[str, str]) -> None:
        cells = [
            values[name].ljust(-width) if width < 0 else values[name].rjust(width)
            for name, width in self.widths.items()
        ]
        self.write("".join(f"| {cell} " for cell in cells) + "|\n")


FORMATS: Final[Mapping[str, Callable[[TextIO, BenchParams, str, str], Printer]]] = MappingProxyType(
    {"csv": _Csv, "json": _Json, "jsonl": _Jsonl, "md": _Markdown, "sql": _Sql}
)
"""Printers by the name that -o takes."""


def _json_value(field: str, value: str) -> str:
    kind = FIELDS[field]
    if kind == _STRING:
        return json.dumps(value, ensure_ascii=False)
    if kind == _BOOL:
        return "false" if value == "0" else "true"
    return value


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _stdev(values: Sequence[float]) -> float:
    """Sample standard deviation; 0 for one value."""
    if len(values) < 2:
        return 0.0
    mean = _mean(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _bytes_text(n: int) -> str:
    return f"{n / 2**20:.2f} MiB" if n < 2**30 else f"{n / 2**30:.2f} GiB"


def _params_text(n: int) -> str:
    return f"{n / 1e6:.2f} M" if n < 1e9 else f"{n / 1e9:.2f} B"
