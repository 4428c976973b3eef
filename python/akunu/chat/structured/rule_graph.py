"""Rules of a grammar that name one another."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from akunu.base.errors import InvalidArgumentError

__all__ = ["MAX_DEPTH", "check_depth", "groups"]

MAX_DEPTH: Final = 1000
"""Rules in a chain, each named by the one before. llguidance (1.9.1) follows them on the stack of the thread,
and a chain of 4,000 ends the process."""

_DEFINITION: Final = re.compile(r"^[ \t]*[?!]?([A-Za-z_]\w*)[^:\n\"\'/|]*:", re.MULTILINE)
_NAME: Final = re.compile(r"[A-Za-z_]\w*")


def check_depth(lark: str) -> None:
    """Refuse a grammar in Lark's form whose rules name one another in too long a chain.

    Raises
    ------
    InvalidArgumentError
        There are more than `MAX_DEPTH` of them.
    """
    starts = list(_DEFINITION.finditer(lark))
    if len(starts) <= MAX_DEPTH:
        return
    ends = [start.start() for start in starts[1:]] + [len(lark)]
    graph: dict[str, list[str]] = {start[1]: [] for start in starts}
    for start, end in zip(starts, ends, strict=True):
        graph[start[1]] += [name for name in _NAME.findall(lark, start.end(), end) if name in graph]
    depth: dict[str, int] = {}
    for group in groups(graph):
        inside = set(group)
        below = max((depth[name] for each in group for name in graph[each] if name not in inside), default=0)
        depth.update(dict.fromkeys(group, below + len(group)))
        if below + len(group) > MAX_DEPTH:
            raise InvalidArgumentError(
                f"grammar: {group[0]}: rules name one another in a chain of more than {MAX_DEPTH}"
            )


def groups(graph: Mapping[str, list[str]]) -> Iterator[list[str]]:
    """Rules that name each other, also through others; those that are named come first (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: dict[str, bool] = defaultdict(bool)
    for root in graph:
        work = [(root, iter(graph[root]))] if root not in index else []
        while work:
            name, rest = work[-1]
            if name not in index:
                index[name] = low[name] = len(index)
                stack.append(name)
                on_stack[name] = True
            for other in rest:
                if other not in index:
                    work.append((other, iter(graph[other])))
                    break
                if on_stack[other]:
                    low[name] = min(low[name], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == index[name]:
                    group = stack[stack.index(name) :] if stack[-1] != name else [name]
                    del stack[-len(group) :]
                    for each in group:
                        on_stack[each] = False
                    yield group
