"""Costs of commands: grouping, floors, and shares of the peak."""

from __future__ import annotations

import pytest

from akunu.base.memory import bytes_text
from akunu.cli.console import bar, count_text, seconds_text
from akunu.cli.costs import costs, mean_peaks

PEAKS = {"read_bytes_per_second": 10.0, "f32_flops": 100.0, "int8_ops": 400.0}


def command(label: str, op: str = "matmul", dtype: str = "q4_0", layer: int = 0, **values: float | bool):
    row = {"bytes": 20.0, "flops": 40.0, "whole": False, "seconds": 4.0, **values}
    return {"label": label, "op": op, "kernel": f"{op}_{dtype}", "dtype": dtype, "layer": layer,
            "shape": "4x8", "barrier": True, **row}  # fmt: skip


COMMANDS = [
    command("token_embedding", op="embed", layer=-1),
    command("layers.0.attn_q"),
    command("layers.0.ffn_up", dtype="q6_k"),
    command("layers.1.attn_q", layer=1),
    command("layers.1.ffn_up", dtype="q4_0", layer=1),
    command("", op="argmax", dtype="f32", layer=-1),
]


@pytest.mark.parametrize(
    ("grouping", "expected"),
    [
        ("tensor", [("token_embedding", 1), ("attn_q", 2), ("ffn_up", 1), ("ffn_up", 1), ("argmax", 1)]),
        ("op", [("embed", 1), ("matmul", 4), ("argmax", 1)]),
        ("kernel", [("embed_q4_0", 1), ("matmul_q4_0", 3), ("matmul_q6_k", 1), ("argmax_f32", 1)]),
        ("layer", [("outside the layers", 2), ("layer 0", 2), ("layer 1", 2)]),
        ("command", [(c["label"] or "argmax", 1) for c in COMMANDS]),
    ],
)
def test_groups(grouping, expected):
    found = costs(COMMANDS, PEAKS, grouping)
    assert [(cost.name, cost.count) for cost in found] == expected
    assert sum(cost.seconds for cost in found) == 24


def test_the_floor_is_the_longer_of_moving_and_computing():
    moving, computing, floating, fp8, integers = costs(
        [
            command("a", bytes=20, flops=40),  # 2 s to move, 0.1 s to compute
            command("b", bytes=20, flops=4000),  # 10 s to compute in int8
            command("c", bytes=20, flops=4000, dtype="f16"),  # 40 s in floating point
            command("d", bytes=20, flops=4000, dtype="f8_e4m3_g128"),  # whose codes are floats
            command("e", bytes=20, flops=4000, dtype="f16", whole=True),  # 20 s in 16-bit integers
        ],
        PEAKS,
        "command",
    )
    assert (moving.floor, computing.floor, floating.floor, fp8.floor) == (2, 10, 40, 40)
    assert integers.floor == 20
    assert moving.share == 0.5
    assert moving.bytes_per_second == 5


def test_different_kernels_in_a_group_are_counted():
    found = costs(COMMANDS, PEAKS, "op")[1]
    assert (found.dtype, found.kernel, found.shape) == ("2 kinds", "2 kinds", "4x8")


def test_a_plan_without_times_has_no_rates():
    found = costs([command("a", seconds=0)], None, "tensor")[0]
    assert (found.floor, found.share, found.bytes_per_second, found.flops_per_second) == (0, 0, 0, 0)


def test_peaks_before_and_after_are_averaged():
    after = {"read_bytes_per_second": 30.0, "f32_flops": 100.0, "int8_ops": 200.0}
    assert mean_peaks(PEAKS, after) == {"read_bytes_per_second": 20.0, "f32_flops": 100.0, "int8_ops": 300.0}


def test_texts():
    assert [bytes_text(n) for n in (0, 1023, 1536, 3 << 20, 5 << 30)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "3.0 MiB",
        "5.0 GiB",
    ]
    assert [count_text(n) for n in (999, 1500, 1.24e9)] == ["999", "1.5 k", "1.2 G"]
    assert [seconds_text(s) for s in (5e-6, 0.0015, 2.5)] == ["5.00 µs", "1.50 ms", "2.50 s"]
    assert all(len(bar(share)) == 20 for share in (0, 0.01, 0.5, 0.99, 1, 7))
    assert bar(0.5).rstrip() in ("█" * 10, "#" * 10)


def test_a_wide_table_of_numbers_is_not_folded_on_a_narrow_terminal(capsys, monkeypatch):
    from akunu.cli import console

    monkeypatch.setattr(console, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    console.print_table(
        ["what", "kernel", "time"], [["token_embedding" * 2, "matmul" * 3, "12.5 ms"]], right="  r"
    )
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert "matmulmatmulmatmul" in lines[1]


def test_a_cell_with_markup_or_controls_is_shown_as_it_is(capsys, monkeypatch):
    from akunu.cli import console

    for terminal in (True, False):
        monkeypatch.setattr(console, "is_terminal", lambda terminal=terminal: terminal)
        console.print_table(["name"], [["[bold]x[/bold]\x1b[2J"]])
        assert "[bold]x[/bold]\u241b[2J" in capsys.readouterr().out
