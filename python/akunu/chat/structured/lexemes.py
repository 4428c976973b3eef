"""Find places where a lexer that takes the longest match reads a grammar otherwise than by characters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from akunu.chat.structured.gbnf_node import Node

__all__ = ["Lexemes"]

_MAX_STATES: Final = 20_000
"""States of the terminals' automaton; of a grammar with more, nothing is found."""
_MANY: Final = 3
"""Repetitions that are counted; more are as good as any number, which finds no less."""


class Lexemes:
    """The terminals of a grammar, and what may follow each.

    Characters are bits of a number: one for each set of characters that the grammar does not tell apart.

    Parameters
    ----------
    trees
        The rules that are not terminals. A node of kind "unit" is a terminal, its only part.
    rules
        Those that terminals name, too.
    order
        All of them; most come after those that they name.
    work
        How many states may be gone through, as often as they are; with more, nothing is found.

    Attributes
    ----------
    work : int
        What is left of it.
    """

    def __init__(
        self, trees: Mapping[str, Node], rules: Mapping[str, Node], order: Sequence[str], work: int
    ) -> None:
        self._trees = {name: trees[name] for name in order if name in trees}
        self._rules = rules
        self._units: list[Node] = []
        self._unit_of: dict[Node, int] = {}
        self._edges: list[list[tuple[int, int]]] = []  # of each state: characters, and where they lead
        self._empty: list[list[int]] = []  # where it leads without one
        self._owner: list[int] = []
        self._too_large = False
        self.work = work
        for tree in self._trees.values():
            self._collect(tree)
        self._classes = self._partition()
        self._starts: list[int] = []
        self._ends: list[int] = []
        for i, unit in enumerate(self._units):
            start = self._state(i)
            self._starts.append(start)
            try:
                self._ends.append(self._build(unit, start, i))
            except RecursionError:  # rules that name one another in a long chain
                self._too_large = True
                self._ends.append(start)

    def conflicts(self) -> set[Node]:
        """Terminals that would swallow what follows another, or themselves."""
        follow = self._follow()
        if self._too_large:
            return set()
        ends: dict[int, list[int]] = defaultdict(list)
        for unit, state in enumerate(self._ends):
            ends[state].append(unit)
        found: set[int] = set()
        first = self._closure(self._starts)
        seen = {first}
        stack = [first]
        while stack:
            states = stack.pop()
            after = 0  # what may follow the terminals that may end here
            if states is not first:
                for state in states:
                    for unit in ends.get(state, ()):
                        after |= follow[unit]
            targets: dict[int, set[int]] = defaultdict(set)
            self.work -= len(states)
            if self.work < 0:
                return set()
            for state in states:
                for characters, target in self._edges[state]:
                    if characters & after:
                        found.add(self._owner[state])
                    while characters:
                        bit = characters & -characters
                        targets[bit].add(target)
                        characters ^= bit
            for reached in {frozenset(each) for each in targets.values()}:
                closed = self._closure(reached)
                if closed not in seen:
                    seen.add(closed)
                    stack.append(closed)
        return {self._units[unit] for unit in found}

    # -- terminals -------------------------------------------------------------------------------------------

    def _collect(self, node: Node) -> None:
        if node.kind == "unit":
            if node.parts[0] not in self._unit_of:
                self._unit_of[node.parts[0]] = len(self._units)
                self._units.append(node.parts[0])
            return
        for part in node.parts:
            self._collect(part)

    def _partition(self) -> dict[tuple[tuple[int, int], ...], int]:
        """The bits of each set of characters."""
        sets: set[tuple[tuple[int, int], ...]] = set()
        seen: set[str] = set()
        stack = list(self._units)
        while stack:
            node = stack.pop()
            if node.kind == "set":
                sets.add(node.ranges)
            elif node.kind == "name" and node.text not in seen:
                seen.add(node.text)
                stack.append(self._rules[node.text])
            stack += node.parts
        edges = sorted({edge for ranges in sets for low, high in ranges for edge in (low, high + 1)})
        place = {edge: i for i, edge in enumerate(edges)}
        return {
            ranges: sum((1 << place[high + 1]) - (1 << place[low]) for low, high in ranges) for ranges in sets
        }

    def _state(self, owner: int) -> int:
        self._edges.append([])
        self._empty.append([])
        self._owner.append(owner)
        return len(self._edges) - 1

    def _build(self, node: Node, start: int, owner: int) -> int:
        """Add the states of an expression after `start`; the last of them."""
        if len(self._edges) > _MAX_STATES:
            self._too_large = True
            return start
        if node.kind == "set":
            end = self._state(owner)
            self._edges[start].append((self._classes[node.ranges], end))
            return end
        if node.kind == "name":
            return self._build(self._rules[node.text], start, owner)
        if node.kind == "sequence":
            for part in node.parts:
                start = self._build(part, start, owner)
            return start
        end = self._state(owner)
        if node.kind == "choice":
            for part in node.parts:
                begin = self._state(owner)
                self._empty[start].append(begin)
                self._empty[self._build(part, begin, owner)].append(end)
            return end
        least, most = _times(node.text)
        for _ in range(min(least, _MANY)):
            start = self._build(node.parts[0], start, owner)
        for _ in range(0 if most is None else min(most, _MANY) - least):
            self._empty[start].append(end)
            start = self._build(node.parts[0], start, owner)
        if most is None or most > _MANY:
            begin = self._state(owner)
            self._empty[start].append(begin)
            self._empty[self._build(node.parts[0], begin, owner)].append(begin)
            start = begin
        self._empty[start].append(end)
        return end

    def _closure(self, states: Sequence[int] | frozenset[int]) -> frozenset[int]:
        found = set(states)
        stack = list(states)
        while stack:
            for other in self._empty[stack.pop()]:
                if other not in found:
                    found.add(other)
                    stack.append(other)
        return frozenset(found)

    # -- what follows ----------------------------------------------------------------------------------------

    def _follow(self) -> list[int]:
        """Return the characters that may come next, for each terminal."""
        firsts = [self._first_of_unit(i) for i in range(len(self._units))]
        first: dict[str, tuple[int, bool]] = dict.fromkeys(self._trees, (0, False))

        def begin(node: Node) -> tuple[int, bool]:
            """The characters that an expression may begin with, and whether it may be empty."""
            if node.kind == "unit":
                return firsts[self._unit_of[node.parts[0]]]
            if node.kind == "name":
                return first[node.text]
            found, empty = 0, node.kind != "choice"
            for part in node.parts:
                characters, nothing = begin(part)
                if node.kind == "choice":
                    found, empty = found | characters, empty or nothing
                elif empty:
                    found, empty = found | characters, nothing
            if node.kind == "repeat" and _times(node.text)[0] == 0:
                empty = True
            return found, empty

        users: dict[str, list[str]] = defaultdict(list)
        for name, tree in self._trees.items():
            for other in set(tree.names()):
                users[other].append(name)
        waiting = dict.fromkeys(reversed(self._trees))
        while waiting:
            name = waiting.popitem()[0]
            if (now := begin(self._trees[name])) != first[name]:
                first[name] = now
                waiting.update(dict.fromkeys(users[name]))

        follow = [0] * len(self._units)
        after: dict[str, int] = dict.fromkeys(self._trees, 0)

        def walk(node: Node, characters: int) -> None:
            if node.kind == "unit":
                follow[self._unit_of[node.parts[0]]] |= characters
            elif node.kind == "name":
                if characters | after[node.text] != after[node.text]:
                    after[node.text] |= characters
                    waiting[node.text] = None
            elif node.kind == "choice":
                for part in node.parts:
                    walk(part, characters)
            elif node.kind == "repeat":
                most = _times(node.text)[1]
                again = begin(node.parts[0])[0] if most is None or most > 1 else 0
                walk(node.parts[0], characters | again)
            else:
                for part in reversed(node.parts):
                    walk(part, characters)
                    found, empty = begin(part)
                    characters = found | characters if empty else found

        waiting.update(dict.fromkeys(self._trees))
        while waiting:
            name = waiting.popitem()[0]
            walk(self._trees[name], after[name])
        return follow

    def _first_of_unit(self, unit: int) -> tuple[int, bool]:
        found = 0
        states = self._closure([self._starts[unit]])
        for state in states:
            for characters, _ in self._edges[state]:
                found |= characters
        return found, self._ends[unit] in states


def _times(text: str) -> tuple[int, int | None]:
    """The least and the most repetitions that an operator stands for."""
    if text in "*+?":
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[text]
    least, comma, most = text.strip("{}").partition(",")
    return int(least), (int(most) if most else None) if comma else int(least)
