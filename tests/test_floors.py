"""The package has floors: see docs/architecture.md."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools.import_graph import Import, arrows_between, circles, imports, mermaid, modules, order, upward

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python" / "akunu"


def drawn(*arguments: str) -> str:
    command = [sys.executable, ROOT / "tools" / "import_graph.py", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def found() -> list[Import]:
    """Read the package once: it takes more than a second."""
    return list(imports(modules(PACKAGE)))


def test_an_import_points_down(found: list[Import]) -> None:
    assert len(found) > 100 and upward(found, order()) == []


def test_no_import_goes_in_a_circle(found: list[Import]) -> None:
    assert circles(arrows_between(found)[0]) == []


def test_the_picture_in_the_docs_is_drawn_from_the_code(found: list[Import]) -> None:
    drawn_now = mermaid(arrows_between(found)[1])
    assert drawn_now in (ROOT / "docs/architecture.md").read_text(encoding="utf-8")


def test_an_import_that_points_up_is_found_also_where_akunu_has_the_name(tmp_path: Path) -> None:
    for name, text in {
        "__init__.py": "_HOME: object = {'load': 'akunu.loading'}",
        "base.py": "import akunu\ndef up(): return akunu.load('ember')",
        "loading.py": "from akunu import base",
    }.items():
        (tmp_path / name).write_text(text)
    assert drawn("--package", str(tmp_path), "--arrows").endswith("akunu.base imports akunu.loading\n")
    assert "circles of modules [['akunu.base', 'akunu.loading']]" in drawn("--package", str(tmp_path))


@pytest.mark.parametrize("init", sorted(PACKAGE.rglob("*/__init__.py")), ids=lambda path: path.parent.name)
def test_a_package_imports_none_of_its_modules_at_once(init: Path) -> None:
    """Two threads that import would wait for each other (`akunu.base.lazy_names`)."""
    own = ".".join(["akunu", *init.parent.relative_to(PACKAGE).parts, ""])
    for node in ast.parse(init.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            assert not (node.module or "").startswith(own), ast.unparse(node)


def test_what_the_package_imports_comes_with_it() -> None:
    """A test's environment has more: what only developers install is missed by users alone."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["av"], *extras["ray"], *extras["vad"]]
    declared = {re.split(r"[<>=;\[ ]", each)[0].replace("-", "_") for each in wanted}
    declared |= {"PIL", "h11"}  # of pillow, and of uvicorn
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            for top in {name.partition(".")[0] for name in names} - {"akunu"} - sys.stdlib_module_names:
                assert top in declared, f"{file.relative_to(ROOT)} imports {top}"
