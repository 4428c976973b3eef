"""Draw which parts of the package import which, from the code.

    python -m tools.import_graph             counts, and each floor with those that it imports
    python -m tools.import_graph --mermaid   the picture, for a page that GitHub shows
    python -m tools.import_graph --arrows    every import that points up, with its file and line

A floor is a folder or a module of `python/akunu`; their order is that of the contract in `pyproject.toml`.
Imports for type checkers and those in functions count, and so does a name of `akunu` that is imported lazily.
"""

from __future__ import annotations

import argparse
import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "akunu"


@dataclass(frozen=True)
class Import:
    """One module imports another; `row` is the line in `path`."""

    source: str
    target: str
    path: Path
    row: int


def modules(folder: Path) -> dict[str, Path]:
    """The modules of a package by name; a package has its own name."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = [PACKAGE, *path.relative_to(folder).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def lazy_homes(path: Path) -> dict[str, str]:
    """The module of each name that a package imports on first use: its table `_HOME`."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "_HOME" and node.value:
            return dict(ast.literal_eval(node.value))
    return {}


def imports(known: Mapping[str, Path]) -> Iterator[Import]:
    """Every import of one module of the package by another."""
    homes = lazy_homes(known[PACKAGE])
    for source, path in known.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                names = [f"{PACKAGE}.{node.attr}"] if node.value.id == PACKAGE and node.attr in homes else []
            for name in names:
                target = _module_of(name, known, homes)
                if target and PACKAGE not in (source, target) and source != target:
                    yield Import(source, target, path, getattr(node, "lineno", 0))


def _module_of(name: str, known: Mapping[str, Path], homes: Mapping[str, str]) -> str:
    """The module that an imported name is, or is in; "" for none of the package's."""
    package, _, attribute = name.rpartition(".")
    if package == PACKAGE and attribute in homes:
        name = homes[attribute]
    while name and name not in known:
        name = name.rpartition(".")[0]
    return name


def floor(module: str) -> str:
    """The part of the package that a module belongs to."""
    return module.split(".")[1]


def order() -> list[set[str]]:
    """The floors from the top, as the contract has them; those in one set stand side by side."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [{name.strip() for name in layer.split("|")} for layer in layers]


def upward(found: Sequence[Import], floors: Sequence[set[str]]) -> list[Import]:
    """Imports of a floor above, or of one beside."""
    height = {name: -i for i, layer in enumerate(floors) for name in layer}
    return [
        each
        for each in found
        if floor(each.source) != floor(each.target)
        and height.get(floor(each.target), 0) >= height.get(floor(each.source), 1)
    ]


def circles(arrows: Mapping[str, set[str]]) -> list[list[str]]:
    """Parts that import each other, directly or by way of others (Tarjan's strongly connected components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    result: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(arrows.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            circle = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(circle) > 1:
                result.append(sorted(circle))

    for node in sorted(arrows):
        if node not in index:
            visit(node)
    return result


def arrows_between(found: Sequence[Import]) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Which modules import which, and which floors."""
    by_module: dict[str, set[str]] = defaultdict(set)
    by_floor: dict[str, set[str]] = defaultdict(set)
    for each in found:
        by_module[each.source].add(each.target)
        if floor(each.source) != floor(each.target):
            by_floor[floor(each.source)].add(floor(each.target))
    return by_module, by_floor


def direct(arrows: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Without the arrows that others imply: a picture with all of them shows nothing."""

    def reached(node: str, seen: set[str]) -> set[str]:
        for other in arrows.get(node, set()) - seen:
            seen.add(other)
            reached(other, seen)
        return seen

    return {
        node: {other for other in others if not any(other in reached(via, set()) for via in others - {other})}
        for node, others in arrows.items()
    }


def mermaid(by_floor: Mapping[str, set[str]]) -> str:
    """Return the picture of the floors as Mermaid's text."""
    lines, shown = ["graph TD"], direct(by_floor)
    for layer in order():
        for name in sorted(layer):
            lines += [f"    {name} --> {other}" for other in sorted(shown.get(name, ()))]
    return "\n".join(lines)


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--package", type=Path, default=ROOT / "python" / PACKAGE, help="the package's folder"
    )
    parser.add_argument("--mermaid", action="store_true", help="the picture, as Mermaid's text")
    parser.add_argument("--arrows", action="store_true", help="every import that points up")
    args = parser.parse_args()
    known = modules(args.package)
    found = list(imports(known))
    by_module, by_floor = arrows_between(found)
    up = upward(found, order())
    if args.mermaid:
        print(mermaid(by_floor))
        return
    if args.arrows:
        for each in up:
            print(f"{each.path}:{each.row}: {each.source} imports {each.target}")
        return
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in known.values())
    parts = {floor(name) for name in known if name != PACKAGE}
    print(f"modules {len(known)}, lines {lines}, parts at the top {len(parts)}")
    print(f"imports between modules {len({(i.source, i.target) for i in found})}, of them up {len(up)}")
    print(f"circles of modules {circles(by_module)}")
    print(f"circles of parts {circles(by_floor)}")
    for layer in order():
        for name in sorted(layer & parts):
            print(f"{name:>12}  {' '.join(sorted(by_floor.get(name, ())))}")


if __name__ == "__main__":
    main()
