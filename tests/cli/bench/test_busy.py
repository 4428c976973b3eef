"""The grid of a busy machine: what it runs, and how its cells become a table."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from akunu.base.errors import AkunuError
from bench import busy

IDLE = busy.Condition("idle")


def test_the_grid_has_each_condition_once() -> None:
    names = [row.name for row in busy.conditions([0, 1, 4], pairs=True, cpus=1.5)]
    assert names == ["idle", "1 busy", "4 busy", "two models", "two processes", "1.5 CPUs"]
    assert [row.name for row in busy.conditions([2], pairs=False, cpus=0.0)] == ["2 busy"]


def test_the_default_is_compared_with_each_count_by_rounds() -> None:
    rates = {
        busy.Cell("akunu", "m.gguf", IDLE, 0): [80.0, 40.0, 120.0],
        busy.Cell("akunu", "m.gguf", IDLE, 1): [50.0, 25.0, 50.0],
        busy.Cell("akunu", "m.gguf", IDLE, 2): [100.0, 50.0, 125.0],
    }
    headers, (line,) = busy.table(rates)
    found = dict(zip(headers, line, strict=True))
    assert (found["default"], found["1 threads"], found["2 threads"]) == ("80.0", "50.0", "100.0")
    assert found["default/1"] == "1.60 (1.60-2.00)"
    assert found["default/2"] == found["default/best"] == "0.80 (0.80-0.88)"


def test_the_default_is_compared_with_a_peer_s_default_and_its_one_thread_by_rounds() -> None:
    rates = {
        busy.Cell("akunu", "m.gguf", IDLE, 0): [80.0, 40.0, 120.0],
        busy.Cell("akunu", "m.gguf", IDLE, 1): [50.0, 25.0, 50.0],
        busy.Cell("theirs", "m.gguf", IDLE, 0): [40.0, 40.0, 40.0],
        busy.Cell("theirs", "m.gguf", IDLE, 1): [20.0, 10.0, 30.0],
        busy.Cell("akunu", "m.gguf", busy.Condition("two models", models=2), 0): [90.0],
        busy.Cell("akunu", "m.gguf", busy.Condition("two models", models=2), 1): [90.0],
    }
    headers, lines = busy.table(rates)
    mine, theirs, alone = (dict(zip(headers, line, strict=True)) for line in lines)
    assert (mine["/theirs"], mine["/theirs 1"]) == ("2.00 (1.50-2.50)", "4.00 (4.00-4.00)")
    assert (theirs["default"], theirs["/theirs"], theirs["/theirs 1"]) == ("40.0", "-", "-")
    assert (alone["program"], alone["/theirs"], alone["/theirs 1"]) == ("akunu", "-", "-")


def test_the_best_count_is_chosen_by_the_other_rounds() -> None:
    lucky_once = [10.0, 10.0, 10.0, 90.0]
    assert busy.against_best([20.0] * 4, [[20.0] * 4, lucky_once]) == [1.0] * 4
    assert busy.against_best([20.0], [[20.0], [40.0]]) == [0.5]


def test_burners_end_with_their_block() -> None:
    with pytest.raises(RuntimeError), busy.burners(2):
        raise RuntimeError


@pytest.mark.table
@pytest.mark.parametrize("more", [{"models": 2}, {"processes": 2}])
def test_two_models_beside_a_busy_process_take_turns(more: dict[str, int]) -> None:
    condition = busy.Condition("both", busy=1, **more)
    cells = [busy.Cell("akunu", "stories15m:q8_0", condition, threads) for threads in (0, 1)]
    rates = busy.measure(cells, {}, rounds=2, seconds=0.01, order=random.Random(0))
    assert {cell: len(found) for cell, found in rates.items()} == dict.fromkeys(cells, 2)
    assert min(map(min, rates.values())) > 0


def test_a_process_that_ends_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    cell = busy.Cell("akunu", "nowhere.gguf", IDLE, 1)
    with pytest.raises(AkunuError, match="ended"), busy.workers(cell, [], 0.01):
        pass
    assert "nowhere.gguf" in capfd.readouterr().err


PEER = """
import sys, time
print("loading", file=sys.stderr, flush=True)
at = 0
while True:
    at += 1
    print("generation run", at, file=sys.stderr, flush=True)
    time.sleep(0.02)
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "m.gguf"
    with path.open("wb") as file:
        file.truncate(60_000_000)
    return str(path)


def test_a_peer_s_program_gets_its_own_arguments_and_the_default_threads_are_its_own(model: str) -> None:
    program = ["/opt/llama-bench", "-rtr", "1"]
    threads = [busy.peer_command(program, busy.Cell("theirs", model, IDLE, n)) for n in (0, 2)]
    assert threads[0][:5] == ["/opt/llama-bench", "-rtr", "1", "-m", model]
    assert threads[0][threads[0].index("-n") + 1] == "4"
    assert "-t" not in threads[0]
    assert threads[1][-2:] == ["-t", "2"]


def test_a_peer_runs_during_its_turns_alone() -> None:
    with busy.Peer([sys.executable, "-c", PEER], tokens=4) as peer:
        state = Path(f"/proc/{peer.process.pid}/stat")

        def check_that_it_is_stopped() -> None:
            if state.exists():
                assert state.read_text().split()[2] == "T"

        check_that_it_is_stopped()
        for _ in range(2):
            assert peer.rate(0.2) > 0
            check_that_it_is_stopped()


def test_two_processes_of_a_peer_add_up(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(busy.Peer, "rate", lambda peer, seconds: seconds * peer.tokens)
    cell = busy.Cell("theirs", model, busy.Condition("two processes", processes=2), 0)
    with busy.peer_workers(cell, [sys.executable, "-c", PEER], [], 0.5) as turn:
        assert turn() == 4.0


def test_a_peer_that_ends_is_an_error() -> None:
    with pytest.raises(AkunuError, match="ended before its turn"), busy.Peer(["true"], 1):
        pass


def test_a_repetition_of_a_large_model_is_one_token(tmp_path: Path, model: str) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(400_000_000)
    assert [busy.tokens_for(path) for path in (model, str(large))] == [4, 1]
