"""The grid of a busy machine: what it runs, and how its cells become a table."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from akunu.errors import AkunuError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import busy

IDLE = busy.Condition("idle")


def test_the_grid_has_each_condition_once() -> None:
    names = [row.name for row in busy.conditions([0, 1, 4], 1.5)]
    assert names == ["idle", "1 busy", "4 busy", "two models", "two processes", "1.5 CPUs"]


def test_the_default_is_compared_with_each_count_by_rounds() -> None:
    rates = {
        busy.Cell("akunu", "m.gguf", IDLE, 0): [80.0, 40.0, 120.0],
        busy.Cell("akunu", "m.gguf", IDLE, 1): [50.0, 25.0, 50.0],
        busy.Cell("akunu", "m.gguf", IDLE, 2): [100.0, 50.0, 125.0],
    }
    headers, (line,) = busy.table(rates, [0, 1, 2])
    found = dict(zip(headers, line, strict=True))
    assert (found["default"], found["1 threads"], found["2 threads"]) == ("80.0", "50.0", "100.0")
    assert found["default/1"] == "1.60 (1.60-2.00)"
    assert found["default/2"] == found["default/best"] == "0.80 (0.80-0.88)"


def test_the_best_count_is_chosen_by_the_other_rounds() -> None:
    lucky_once = [10.0, 10.0, 10.0, 90.0]
    assert busy.against_best([20.0] * 4, [[20.0] * 4, lucky_once]) == [1.0] * 4
    assert busy.against_best([20.0], [[20.0], [40.0]]) == [0.5]


def test_burners_end_with_their_block() -> None:
    with pytest.raises(RuntimeError), busy.burners(2):
        raise RuntimeError


@pytest.mark.parametrize("more", [{"models": 2}, {"processes": 2}])
def test_two_models_beside_a_busy_process_take_turns(more: dict[str, int]) -> None:
    condition = busy.Condition("both", busy=1, **more)
    cells = [busy.Cell("akunu", "stories15m:q8_0", condition, threads) for threads in (0, 1)]
    rates = busy.measure(cells, {}, rounds=2, seconds=0.01, tokens=8, order=random.Random(0))
    assert {cell: len(found) for cell, found in rates.items()} == dict.fromkeys(cells, 2)
    assert min(map(min, rates.values())) > 0


def test_a_process_that_ends_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    cell = busy.Cell("akunu", "nowhere.gguf", IDLE, 1)
    with pytest.raises(AkunuError, match="ended"), busy.workers(cell, [], 0.01):
        pass
    assert "nowhere.gguf" in capfd.readouterr().err


def test_a_peer_s_program_gets_its_own_arguments_and_the_default_threads_are_its_own() -> None:
    program = ["/opt/llama-bench", "-rtr", "1"]
    threads = [busy.peer_command(program, busy.Cell("theirs", "m.gguf", IDLE, n), 8) for n in (0, 2)]
    assert threads[0][:5] == ["/opt/llama-bench", "-rtr", "1", "-m", "m.gguf"]
    assert "-t" not in threads[0]
    assert threads[1][-2:] == ["-t", "2"]


def test_two_processes_of_a_peer_add_up() -> None:
    prints = [sys.executable, "-c", "print('[{\"samples_ts\": [1.0, 3.0, 2.0]}]')"]
    assert busy.peer_turn(prints, [], processes=2) == 4.0


def test_large_models_generate_fewer_tokens(tmp_path: Path) -> None:
    sizes = {"small": 10_000_000, "middle": 400_000_000, "large": 8_000_000_000}
    for name, size in sizes.items():
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
    assert [busy.tokens_for(str(tmp_path / name), 512) for name in sizes] == [512, 40, 32]
