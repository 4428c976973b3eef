"""Layer norms, activations, positions, convolutions, pooling, states and routers, in every schedule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels.case import Case, case
from kernels.cases import (
    CHECKS,
    DELTA_CHECKS,
    ENCODER_CHECKS,
    EXPERT_CHECKS,
    LORA_CHECKS,
    MAMBA_CHECKS,
    RECURRENCE_CHECKS,
)
from kernels.problem import pack, struct
from kernels.runner import run
from metal.buffer_index import PARAMS
from metal_emulator.harness import (
    FIFO,
    SCHEDULES_DEFAULT,
    KernelError,
    Library,
    Schedule,
    in_sanitizer,
    lint,
)

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "metal/kernels/elementwise"
INCLUDE = (ROOT / "metal/include", ROOT / "cpp")


class RowsLab:
    """A lab as tests/kernels knows it, with schedules; `mutation`: (file, text, replacement)."""

    isa = "apple9"

    def __init__(
        self, schedule: Schedule = FIFO, sanitizer: str = "", mutation: Sequence[str] = ("", "", "")
    ) -> None:
        self.schedule, self.sanitizer, self.mutation = schedule, sanitizer, mutation
        self.libraries: dict[str, Library] = {}

    def library(self, name: str) -> Library:
        if name not in self.libraries:
            text, (file, old, new) = (KERNELS / f"{name}.metal").read_text(), self.mutation
            if file == name:
                assert old in text, "the text to replace is gone"
                text = text.replace(old, new, 1)
            self.libraries[name] = Library.compile(
                text, include=INCLUDE, fast_math=True, sanitizer=self.sanitizer
            )
        return self.libraries[name]

    def matmul_input(self, dtype: str) -> str:
        return "f16"

    def activation_bytes(self, fmt: str, rows: int, dim: int) -> int:
        return rows * dim * (2 if fmt == "f16" else 4)

    def run(self, op: str, buffers: Sequence[Any], params: bytes, *, kv_dtype: str = "f16") -> None:
        """One command, in the grid of metal/choose/elementwise.cpp."""
        p = np.frombuffer(params, struct(op))[0]
        rows, threads = int(p["rows"]), 128
        groups: int | tuple[int, int] = rows
        constants: dict[str, bool] = {}
        if op == "layer_norm":
            file, threads = "norm", min(512, -(-int(p["dim"]) // 128) * 32)
        elif op == "recur":
            file, threads, groups = "recurrence", 32, -(-int(p["dim"]) // 32)
        elif op == "short_conv":
            file, threads, groups = "delta_net", 32, -(-int(p["channels"]) // 32)
        elif op == "delta_rule":
            file, groups = "delta_net", (int(p["key_heads"]), rows)
        elif op == "ssm_scan":
            file, groups = "mamba", (int(p["blocks"]), rows)
        elif op == "gated_norm":
            file, groups = "mamba", (int(p["groups"]), rows)
        elif op == "route":
            file, threads = "route", 32
        elif op == "cluster_logits":
            file, groups = "route", (-(-int(p["vocab"]) // 4096), rows)
        elif op in ("add_rows", "sparsify"):
            file, threads = "streams", min(512, -(-int(p["dim" if op == "add_rows" else "n"]) // 128) * 32)
        elif op == "lora_a":
            file, groups = "lora", (-(-int(p["max_rank"]) // 16), rows)
            constants = {"ROWS_ARE_VECTORS": p["k"] % 4 == 0}
            op += "_f16" if p["format"] == 4 else "_f32"
        elif op == "lora_b":
            file, threads, groups = "lora", 64, (-(-int(p["n"]) // 256), rows)
            constants = {"ROWS_ARE_VECTORS": p["n"] % 4 == 0}
        elif op == "relative_attention":
            file, threads, groups = "relative_attention", 32, (int(p["n_heads"]), rows)
        else:
            file = {"gate_act": "activations", "mix_streams": "streams", "all_reduce": "streams"}.get(
                op, "rows"
            )
            columns = {
                "embed_position": lambda: p["dim"],
                "insert_rows": lambda: p["dim"],
                "affine": lambda: p["dim"],
                "all_reduce": lambda: p["dim"],
                "mix_streams": lambda: p["dim"],
                "pool": lambda: p["dim"],
                "unfold": lambda: p["taps"] * p["channels"],
                "gate_act": lambda: -(-int(p["n"]) // 4),
            }[op]()
            groups = (-(-int(columns) // 128), rows)
        bound: dict[int, Any] = {
            i: np.zeros(256, np.uint8) if b is None else b for i, b in enumerate(buffers)
        }
        self.library(file).run(
            op,
            bound | {PARAMS: params},
            groups=groups,
            threads=threads,
            constants=constants,
            schedule=self.schedule,
        )


OPS = ("layer_norm", "embed_position", "pool", "gate_act", "relative_attention")
CASES = [*(c for c in ENCODER_CHECKS if c.builder in OPS), *RECURRENCE_CHECKS]
CASES += [c for c in EXPERT_CHECKS if c.builder in ("route", "cluster_logits")]
CASES += [
    c
    for c in CHECKS
    if c.builder in ("insert_rows", "affine", "add_rows", "all_reduce", "mix_streams", "sparsify")
]
CASES += [
    case("unfold", length=n, channels=channels, taps=taps, stride=stride, formats=formats)
    for n, channels, taps, stride in [(1, 1, 3, 1), (75, 33, 3, 2), (12, 80, 5, 3)]
    for formats in [("f32",), ("f16",)]
]
SMALL = [
    case("layer_norm", rows=3, dim=31, formats=("f32",)),
    case("layer_norm", rows=2, dim=388, formats=("f32", "f16"), gather=(4, 1)),
    case("embed_position", rows=5, dim=33, positions=9, kinds=2, step=4),
    case("pool", lengths=(3, 1), dim=33, pooling="mean"),
    case("unfold", length=7, channels=5, taps=3, stride=2, formats=("f16",)),
    case("gate_act", rows=2, n=33, activation="gelu_erf", formats=("f32",), gated=False),
    case("recur", dim=33, spans=((40, 40, 1, 0), (61, 65, 4, 3), (0, 0, 5, 0)), formats=("f32", "f16")),
    case("recur", dim=33, spans=((40, 40, 1, 0), (7, 7, 1, 0)), step=3, stopped=(1,)),
    case(
        "delta_rule",
        heads=(1, 2),
        dims=(20, 36),
        formats=("f32", "f16"),
        steps=(((0, 28, 0), (0, 40, 0)), ((28, 12, 11), (40, 33, 32)), ((38, 1, 0), (50, 15, 0))),
    ),
    case(
        "short_conv",
        channels=33,
        taps=4,
        bias=True,
        steps=(((0, 2, 0), (0, 40, 0)), ((2, 4, 0), (40, 9, 8))),
    ),
    case("route", rows=3, experts=64, chosen=6, groups=(8, 3, 2), biased=True),
    case(
        "ssm_scan",
        heads=(1, 4),
        dims=(20, 36),
        block=2,
        steps=(((0, 28, 0), (0, 40, 0)), ((28, 12, 11), (40, 33, 32)), ((38, 1, 0), (50, 15, 0))),
    ),
    case("gated_norm", rows=3, groups=2, dim=33, formats=("f32", "f16")),
    case("add_rows", rows=3, dim=70, matched=True, accumulate=True, floor=1e-5),
    case("mix_streams", rows=3, dim=33, streams=4, active=1, room=1),
    case("mix_streams", rows=3, dim=33, streams=3, active=2, correct=True, scaled=True),
    case("sparsify", rows=3, n=70, deviations=-0.5, mean=9.0),
    case("lora", ranks=(7, 3), rows=(1, -1, 0), n=33, k=37),
    case("lora", ranks=(18,), rows=(0, 0), n=36, k=40, half=True, stride=37),
    case("all_reduce", rows=3, dim=33, accumulate=True, stride=40),
    case("cluster_logits", rows=3, vocab=4103, clusters=11, chosen=5),
]


@pytest.mark.parametrize("schedule", SCHEDULES_DEFAULT, ids=str)
def test_the_kernel_table(schedule: Schedule) -> None:
    lab = RowsLab(schedule)
    for row in [*CASES, *SMALL]:
        assert not run(row.build(lab), lab), row.id  # type: ignore[arg-type]


def test_the_kernel_table_of_delta_nets_and_adapters() -> None:
    lab = RowsLab()
    for row in [*DELTA_CHECKS, *MAMBA_CHECKS, *LORA_CHECKS]:
        assert not run(row.build(lab), lab), row.id  # type: ignore[arg-type]


def test_gelu_over_its_whole_range() -> None:
    x = np.concatenate([np.linspace(-12, 12, 40001), [-1e30, -65504, 0.0, 65504, 1e30]]).astype(np.float32)
    out, half = np.zeros_like(x), np.zeros(len(x), np.float16)
    RowsLab().run(
        "gate_act",
        [x, None, out, half],
        pack("gate_act", rows=1, n=len(x), activation=2, formats=5, gated=0, up_stride=0),
    )
    erf = np.array([math.erf(v / math.sqrt(2)) for v in x.tolist()])
    expected = 0.5 * x.astype(np.float64) * (1 + erf)
    assert (np.abs(out - expected) <= 3e-7 * (1 + np.abs(expected))).all()
    assert (np.abs(half - expected.clip(-65504, 65504)) <= 3e-7 + 2**-11 * np.abs(expected)).all()


@pytest.mark.parametrize(
    "file",
    [
        "norm",
        "activations",
        "rows",
        "recurrence",
        "delta_net",
        "mamba",
        "route",
        "streams",
        "relative_attention",
        "lora",
    ],
)
def test_free_of_lint(file: str) -> None:
    assert lint(KERNELS / f"{file}.metal", include=INCLUDE) == []


NORMED = case("layer_norm", rows=1, dim=64, formats=("f32",))
FAR = case("layer_norm", rows=1, dim=64, formats=("f32",), mean=9.0)
LAST = case("embed_position", rows=33, dim=4, positions=17, kinds=0)
OFFSET = "    x += ulong(from) * n;\n    float sum"
MUTATIONS = {
    "mean": ("norm", "square_sum(x[i] - mean)", "square_sum(x[i])", FAR),
    "scale": ("norm", "square / float(p.dim) + p.eps", "square / float(p.dim - 1)", NORMED),
    "bias": ("norm", "if (p.has_bias) y", "if (!p.has_bias) y", NORMED),
    "gathered": ("norm", OFFSET, OFFSET.replace("from", "row"), SMALL[1]),
    "position": ("rows", "position + p.step, p.positions", "position, p.positions", SMALL[2]),
    "last position": ("rows", "p.positions - 1", "p.positions - 2", LAST),
    "kind": ("rows", "min(row_kinds[at.y], p.kinds - 1)", "0", SMALL[2]),
    "taps": ("rows", "(p.taps - 1) / 2", "p.taps / 3 - 1", SMALL[4]),
    "end of the sound": ("rows", "from < p.length", "from <= p.length - 2", SMALL[4]),
    "one row too few": ("rows", "r <= last", "r < last", SMALL[3]),
    "another sequence": ("rows", "rows[last].position + 1", "rows[at.y].position + 1", SMALL[3]),
    "the state of nothing": ("recurrence", "i != 0 ? *state : 0.0f", "*state", SMALL[6]),
    "what is stashed": ("recurrence", "i < position; ++i", "i + 1 < position; ++i", SMALL[6]),
    "the state of a sequence": ("recurrence", "if (rows[r].slot != slot) {", "if (r == 0) {", SMALL[6]),
    "rows that may be refused": ("recurrence", "position + 1 == to", "position == to", SMALL[6]),
    "their inputs": ("recurrence", "position >= to", "position > to", SMALL[6]),
    "a sequence that has stopped": ("recurrence", "slots[slot].stopped != 0", "false", SMALL[7]),
    "a later step": ("recurrence", "p.step != 0 ? position : spans[slot].from", "spans[slot].from", SMALL[7]),
    "a state that is kept": (
        "delta_net",
        "(done + 1) * kChunkRows <= to",
        "done * kChunkRows <= to",
        SMALL[8],
    ),
    "a chunk that may be refused": ("delta_net", "pending = done < chunk", "pending = false", SMALL[8]),
    "what a row writes": ("delta_net", "? -(shared.dots", "? (shared.dots", SMALL[8]),
    "inputs before a step": ("delta_net", "back <= position", "back < position", SMALL[9]),
    "the best group": ("route", "n < p.groups_used", "n + 1 < p.groups_used", SMALL[10]),
    "another row's size": ("streams", "wanted / max(found", "found / max(wanted", SMALL[13]),
    "the stream that is active": ("streams", "j == p.active", "j == 0", SMALL[14]),
    "turned weights": ("streams", "(j * n + i) * n", "(i * n + j) * n", SMALL[14]),
    "what was made": ("streams", "h - was[p.active]", "h", SMALL[15]),
    "the mean": ("streams", "x[i] - mean - cut", "x[i] - cut", SMALL[16]),
    "a rank's row": ("lora", "a + rank * p.k", "a + rank * p.n", SMALL[17]),
    "the adapter of a row": ("lora", "choices[slot].number", "choices[0].number", SMALL[17]),
    "a sequence's scale": ("lora", "head->scale * choices[slot].scale", "head->scale", SMALL[17]),
    "a column of B": ("lora", "ulong(i) * p.n", "ulong(i) * p.k", SMALL[18]),
    "a row of y": ("lora", "* p.y_stride + column", "* p.n + column", SMALL[18]),
    "what is added to": ("streams", "p.accumulate ? out + in : in", "in", SMALL[19]),
    "a range's first token": ("route", "token >= first &&", "token > first &&", SMALL[20]),
    "another row's clusters": ("route", "at.y * p.chosen + i / p.n", "i / p.n", SMALL[20]),
    "activation": ("activations", "p.gated ? up[i] : 1.0f", "up[i]", SMALL[5]),
}


@pytest.mark.mutation
@pytest.mark.long
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_seen(name: str) -> None:
    *mutation, row = MUTATIONS[name]
    lab = RowsLab(mutation=mutation)
    with suppress(KernelError):
        assert run(row.build(lab), lab)  # type: ignore[arg-type]


def run_cases(sanitizer: str, *mutation: str) -> None:
    """In this process; the child's exit status tells."""
    for kind in ("fifo", "priority"):
        lab = RowsLab(Schedule(kind, 1, workers=2), sanitizer, mutation or ("", "", ""))
        rows: Sequence[Case] = SMALL[:2] if mutation else SMALL
        for row in rows:
            assert not run(row.build(lab), lab), row.id  # type: ignore[arg-type]
    print("clean")


@pytest.mark.long
@pytest.mark.parametrize("sanitizer", ["tsan", "asan"])
def test_clean_under_sanitizers(sanitizer: str) -> None:
    done = in_sanitizer(sanitizer, __file__, "run_cases", sanitizer)
    assert done.returncode == 0 and done.stdout == "clean\n", done.stderr[-4000:]


@pytest.mark.long
def test_one_array_for_both_sums_is_a_race() -> None:
    """A thread may still read the first sum while another writes the second."""
    mutation = ("norm", "threadgroup_sum(square, squares", "threadgroup_sum(square, sums")
    assert in_sanitizer("tsan", __file__, "run_cases", "tsan", *mutation).returncode != 0
