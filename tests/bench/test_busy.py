"""The grid of a busy machine: what it runs, and how its cells become a table."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import busy

IDLE = busy.Condition("idle")


def test_the_grid_has_each_condition_once() -> None:
    names = [row.name for row in busy.conditions([0, 1, 4], 1.5)]
    assert names == ["idle", "1 busy", "4 busy", "two models", "two processes", "1.5 CPUs"]


def test_rates_of_several_models_and_of_a_peer_add_up_or_are_its_median() -> None:
    assert busy.rate_of(b"[10.0, 12.5]") == 22.5
    assert busy.rate_of(b'[{"samples_ts": [1.0, 3.0, 2.0]}]') == 2.0


def test_the_default_is_compared_with_the_best_and_with_one_thread() -> None:
    rates = {
        busy.Cell("akunu", "m.gguf", IDLE, 0): [80.0, 90.0, 85.0],
        busy.Cell("akunu", "m.gguf", IDLE, 1): [50.0],
        busy.Cell("akunu", "m.gguf", IDLE, 2): [100.0],
    }
    headers, (line,) = busy.table(rates, [0, 1, 2])
    found = dict(zip(headers, line, strict=True))
    assert (found["default"], found["default/best"], found["default/one"]) == ("85.0", "0.85", "1.70")


def test_burners_end_with_their_block() -> None:
    with pytest.raises(RuntimeError), busy.burners(2):
        raise RuntimeError


def test_two_models_beside_a_busy_process_run(capsys: pytest.CaptureFixture[str]) -> None:
    condition = busy.Condition("both", busy=1, models=2)
    assert busy.measure(busy.Cell("akunu", "stories15m:q8_0", condition, 1), 8, {}) > 0


def test_a_peer_s_program_gets_its_own_arguments_and_the_default_threads_are_its_own() -> None:
    peers = {"theirs": ["/opt/llama-bench", "-rtr", "1"]}
    threads = [busy.command_of(busy.Cell("theirs", "m.gguf", IDLE, count), 8, peers) for count in (0, 2)]
    assert threads[0][:5] == ["/opt/llama-bench", "-rtr", "1", "-m", "m.gguf"]
    assert "-t" not in threads[0]
    assert threads[1][-2:] == ["-t", "2"]


def test_large_models_generate_fewer_tokens(tmp_path: Path) -> None:
    sizes = {"small": 10_000_000, "middle": 400_000_000, "large": 8_000_000_000}
    for name, size in sizes.items():
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
    assert [busy.tokens_for(str(tmp_path / name), 512) for name in sizes] == [512, 40, 32]
