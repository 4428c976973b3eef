"""The suite's own rules: what a test leaves behind is its failure, and the order is drawn from a seed."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from children import ROOT, environment
from order import drawn, has_its_turn

LEAVES = {
    "sys.path": "sys.path.insert(0, '/somewhere')",
    "os.environ['LEFT']": "os.environ['LEFT'] = '1'",
    "os.environ['GIVEN']": "del os.environ['GIVEN']",
    "the current folder": "os.chdir('/')",
    "the handler of SIGUSR1": "signal.signal(signal.SIGUSR1, lambda *_: None)",
    "warnings.filters": "warnings.simplefilter('error', BytesWarning)",
    "thread left": "threading.Thread(target=END.wait, name='left').start()",
    "thread daemon (daemon)": "threading.Thread(target=END.wait, name='daemon', daemon=True).start()",
    "descriptor": "KEPT.append(open(__file__))",
    "descriptor ": "KEPT.append(socket.socket())",
}
HEAD = """
import os, signal, socket, sys, threading, warnings
import pytest

END, KEPT = threading.Event(), []

@pytest.fixture(scope="module")
def of_the_module():
    yield []

def test_the_last_thing(request):
    request.session.config.add_cleanup(END.set)
"""


def run(folder: Path, *args: str, **settings: str) -> str:
    """What pytest says of the files in a folder, which has the rules of this suite."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text("import left_behind\nleft_behind.PATIENCE = 0.5\n")
    options = [
        "-q",
        "--import-mode=importlib",
        "-p",
        "left_behind",
        "-p",
        "order",
        "-p",
        "no:cacheprovider",
        *(["-p", "xdist"] if "-n" in args else []),
    ]
    # No other plugin: their imports take longer than such a run.
    own = environment(GIVEN="1", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", **settings)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *args], cwd=folder, capture_output=True, text=True,
        timeout=120, env=own,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def outcomes(out: str) -> dict[str, str]:
    lines = [line.split() for line in out.splitlines() if line.startswith(("FAILED ", "ERROR ", "PASSED "))]
    return {name.rsplit("::", 1)[-1]: what for what, name, *_ in lines}


def test_what_a_test_leaves_behind_is_its_own_failure(tmp_path: Path) -> None:
    tests = [f"def test_{i}():\n    {code}\n" for i, code in enumerate(LEAVES.values())]
    after = "def test_after():\n    assert '/somewhere' not in sys.path and os.environ['GIVEN']\n"
    (tmp_path / "test_made.py").write_text("\n".join([HEAD, *tests, after]))
    out = run(tmp_path, "-rA", "--seed", "1")
    assert {name for name, what in outcomes(out).items() if what == "ERROR"} == {
        f"test_{i}" for i in range(len(LEAVES))
    }
    assert "test_after" in out and " failed" not in out
    assert "AKUNU_TEST_SEED=1 gives this order again" in out
    for what in LEAVES:
        assert f"\n  {what}" in out, out


def test_what_a_test_may_do(tmp_path: Path) -> None:
    """It puts things back, its failures fail once, and what fixtures of the module hold is theirs."""
    (tmp_path / "test_made.py").write_text(
        HEAD
        + """
def test_puts_back(monkeypatch, tmp_path):
    monkeypatch.setenv("LEFT", "1")
    monkeypatch.syspath_prepend("/somewhere")
    monkeypatch.chdir(tmp_path)
    with open(__file__), warnings.catch_warnings():
        warnings.simplefilter("error")
    thread = threading.Thread(target=lambda: END.wait(0.2))
    thread.start()

def test_cycle():
    cycle = [open(os.devnull)]
    cycle.append(cycle)

def test_connection(of_the_module):
    of_the_module.append(socket.socket())

def test_fails():
    file = open(__file__)
    assert not file
"""
    )
    out = run(tmp_path, "-rA", "-W", "ignore")
    assert set(outcomes(out).values()) == {"PASSED", "FAILED"} and "1 failed, 4 passed" in out, out


def test_filters_of_a_mark_are_no_fixture_s(tmp_path: Path) -> None:
    """Whether the test that has them is the first of its file, or the last."""
    marked = "import pytest\n@pytest.mark.filterwarnings('ignore:nothing')\ndef test_marked(): pass\n"
    (tmp_path / "test_made.py").write_text(marked + "def test_other(): pass\n")
    for seed in range(4):
        assert "2 passed" in (out := run(tmp_path, "--seed", str(seed))) and "error" not in out, out


def test_an_import_and_a_module_s_fixture_leave_nothing_either(tmp_path: Path) -> None:
    (tmp_path / "test_imported.py").write_text("import sys\nsys.path.insert(0, '/there')\ndef test(): pass\n")
    (tmp_path / "test_fixture.py").write_text(
        """
import os
import pytest

KEPT = []

@pytest.fixture(scope="module", autouse=True)
def setting():
    os.environ["OF_A_FIXTURE"] = "1"
    KEPT.append(open(__file__))

def test():
    pass
"""
    )
    out = run(tmp_path, "--continue-on-collection-errors")
    assert "test_imported.py leaves behind:\n  sys.path: added ['/there']" in out
    assert (
        "a fixture of this file leaves behind:\n  os.environ['OF_A_FIXTURE']: was None, is '1'\n  descriptor"
        in out
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tests that say when they run; a fixture with parameters and one of the module, which are made once."""
    folder = tmp_path_factory.mktemp("order")
    for file in "abcd":
        (folder / f"test_{file}.py").write_text(
            f"""
import pytest

@pytest.fixture(scope="module", params=[1, 2])
def costly(request):
    print("\\nMADE {file}", request.param)

@pytest.mark.parametrize("n", range(6))
def test_{file}(n, costly):
    pass
"""
        )
    return folder


def order(files: Path, *args: str, **settings: str) -> list[str]:
    out = run(files, "--collect-only", *args, **settings)
    return [line for line in out.splitlines() if "::" in line]


def test_a_seed_gives_an_order_and_files_stay_together(files: Path) -> None:
    orders = [order(files, "--seed", str(seed)) for seed in (1, 2)]
    assert order(files, AKUNU_TEST_SEED="2") == orders[1] != orders[0]
    assert sorted(orders[0]) == sorted(orders[1]) and len(orders[0]) == 48
    for tests in orders:
        names = [test.split("::")[0] for test in tests]
        assert sum(a != b for a, b in pairwise(names)) == 3
        assert [int(test[-2]) for test in tests[:6]] != sorted(int(test[-2]) for test in tests[:6])
    assert run(files, "-s", "--seed", "3").count("MADE") == 8


def test_the_seed_is_printed_and_processes_share_it(files: Path) -> None:
    out = run(files, "-n", "2", "-v")
    assert "order of the tests: seed " in out and "48 passed" in out
    seed = int(out.split("order of the tests: seed ")[1].split()[0])
    assert f"AKUNU_TEST_SEED={seed} gives it again" in out


def test_a_process_of_xdist_tells_of_set_ups_and_ends_that_fail(tmp_path: Path) -> None:
    """It leaves out those that pass."""
    (tmp_path / "test_made.py").write_text(
        HEAD
        + """
@pytest.fixture
def bad_set_up():
    print("told in the set-up")
    raise ValueError("no set-up")

@pytest.fixture
def said():
    print("said before")

@pytest.fixture
def bad_end():
    yield
    raise ValueError("no end")

def test_set_up(bad_set_up): pass
def test_end(bad_end): pass
def test_call(said): assert not END
def test_skipped(): pytest.skip("for a reason")
def test_passes(): pass
"""
    )
    out = run(tmp_path, "-n", "1", "-rA")
    assert "1 failed, 3 passed, 1 skipped, 2 errors" in out, out
    for text in ("no set-up", "told in the set-up", "no end", "said before", "for a reason"):
        assert text in out, out


def test_of_two_processes_one_collects_from_the_end(tmp_path: Path) -> None:
    """And both run one order."""
    for folder, file in (("a", "one"), ("a", "two"), ("b", "three")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / f"test_{file}.py").write_text(
            "import os\n"
            "with open(os.environ['READ'] + os.environ['PYTEST_XDIST_WORKER'], 'a') as told:\n"
            f"    told.write('{file} ')\n\n\n"
            "def test():\n    pass\n"
        )
    read = tmp_path / "read-"
    assert "3 passed" in run(tmp_path, "-n", "2", READ=str(read))
    assert Path(f"{read}gw0").read_text() == "one two three "
    assert Path(f"{read}gw1").read_text() == "three two one "


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads, as Linux tells of them")
def test_products_of_numpy_have_one_thread() -> None:
    code = "import os, numpy; x = numpy.ones((500, 500)); x @ x; print(len(os.listdir('/proc/self/task')))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "1\n"


def test_no_test_and_no_tool_changes_where_modules_are_found() -> None:
    """pyproject.toml says it for tests (`pythonpath`), `children.environment` for their processes."""
    changed = ("sys.path" + "[", "sys.path" + ".", "sys.path" + " =", "sys.path" + " +=")
    sources = [
        path
        for name in ("bench", "cmake", "cuda", "metal", "tests", "tools")
        for path in (ROOT / name).rglob("*.py")
    ]
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sources
        if path not in (Path(__file__), ROOT / "tests" / "left_behind.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if any(text in line for text in changed)
    ]
    assert found == []


def test_any_seeds_in_a_row_run_every_part_once() -> None:
    places = range(60)
    for first in (0, 20786):
        turns = [[has_its_turn(place, first + day, 3) for place in places] for day in range(3)]
        assert all(sum(days) == 1 for days in zip(*turns, strict=True))
        assert all(10 < sum(day) < 30 for day in turns)
    assert all(has_its_turn(place, 5, 1) for place in places)


def test_cases_in_turn_run_with_one_seed_of_as_many_as_there_are_parts(tmp_path: Path) -> None:
    (tmp_path / "test_made.py").write_text(
        "import pytest\n\n\n"
        "@pytest.mark.in_turn\n@pytest.mark.parametrize('n', range(20))\ndef test_slow(n):\n    pass\n\n\n"
        "@pytest.mark.in_turn('together')\n@pytest.mark.parametrize('n', range(3))\n"
        "def test_build(n):\n    pass\n\n\n"
        "def test_other():\n    pass\n"
    )
    ran = [
        set(outcomes(run(tmp_path, "-rA", "--seed", str(seed), AKUNU_TEST_PART="3"))) for seed in (7, 8, 9)
    ]
    assert set.intersection(*ran) == {"test_other"} and len(set.union(*ran)) == 24
    assert sorted(sum("slow" in name for name in names) for names in ran) == [6, 7, 7]
    assert sorted(sum("build" in name for name in names) for names in ran) == [0, 0, 3]
    everything = outcomes(run(tmp_path, "-rA", "--seed", "7", AKUNU_TEST_PART="1"))
    assert len(everything) == 24


@pytest.mark.parametrize("options", [("-m", "not long"), ()], ids=["test", "test-all"])
def test_one_in_n_cases_of_a_table_runs_and_the_run_says_so(options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "test_made.py").write_text(
        "import pytest\n\n\n"
        "@pytest.mark.table\n@pytest.mark.parametrize('n', range(20))\ndef test_case(n):\n    pass\n\n\n"
        "@pytest.mark.parametrize('n', (1, 2, 7))\n"
        "def test_row(draw, n):\n    print('DREW', n, *draw(range(n)))\n"
    )
    outs = [run(tmp_path, "-rAP", *options, "--seed", str(seed), AKUNU_TEST_PART="3") for seed in (7, 8, 9)]
    ran = [set(outcomes(out)) for out in outs]
    assert len(set.intersection(*ran)) == 3 and len(set.union(*ran)) == 23
    assert sorted(len(names) for names in ran) == [9, 10, 10]
    rows = [set(line.split()[2:]) for out in outs for line in out.splitlines() if line.startswith("DREW 7")]
    assert sorted(map(len, rows)) == [2, 2, 3] and set.union(*rows) == set("0123456")
    assert all("of large tables" in out and " deselected" in out for out in outs)
    # A table runs whole where no part is asked for.
    out = run(tmp_path, "-rAP", "--seed", "7", *options, AKUNU_TEST_PART="1")
    assert len(outcomes(out)) == 23 and "DREW 7 0 1 2 3 4 5 6" in out and "of large tables" not in out


def test_seeds_in_a_row_draw_every_case_of_a_test_and_each_at_least_one() -> None:
    for count in range(12):
        found = [drawn(range(count), seed, 3) for seed in (41, 42, 43)]
        assert set().union(*found) == set(range(count))
        assert all(found) or not count


def test_clocks_and_sleeps_are_replaced_for_one_module() -> None:
    """Not for the threads of servers and schedulers that other tests left running: see `own_view`."""
    everyones = re.compile(r"setattr\(\s*(?:(?:time|asyncio)\s*,|\"(?:[\w.]+\.)?(?:time|asyncio)\.\w+\")")
    assert everyones.search('setattr(time, "sleep"') and everyones.search('setattr("akunu.x.asyncio.sleep"')
    found = [
        str(path.relative_to(ROOT))
        for path in ROOT.glob("tests/**/*.py")
        if everyones.search(path.read_text())
    ]
    assert found == ["tests/test_suite.py"]
