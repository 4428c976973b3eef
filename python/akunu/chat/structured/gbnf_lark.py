"""GBNF in the Lark form that llguidance reads, so that both have the same texts.

In GBNF there are only characters. llguidance has a lexer, which takes each terminal as far as it goes, and is
fast only with terminals of more than a character. So whatever does not recur becomes a terminal: a rule, and
in the other rules each run of neighbours. So does what recurs at its end only, or at its beginning, such as
``list ::= item ("," list)?``, which says no more than a repetition.

Where a terminal could go on with a character that may also follow it, the longest would win, and texts of the
grammar could not be written. Such a terminal is taken apart, down to single characters if need be.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from akunu.chat.structured.gbnf_node import Node, Ranges
from akunu.chat.structured.lexemes import Lexemes
from akunu.chat.structured.rule_graph import groups

__all__ = ["lark_of_rules", "lark_string"]

_MAX_TERMS: Final = 200
"""Parts of the equations of rules that recur at their ends; with more they stay rules."""
_MAX_WORK: Final = 500_000
"""States of terminals that are gone through to find where they end: a second or two at most."""


def lark_string(text: str) -> str:
    """A text as a string of Lark: one of JSON, but for a control character that JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


_NOTHING: Final = Node("sequence")


def lark_of_rules(rules: Mapping[str, Node]) -> str:
    """The grammar of these rules, of which `root` is a text."""
    return _Grammar(dict(rules)).text()


class _Grammar:
    def __init__(self, rules: dict[str, Node]) -> None:
        self._rules = rules
        self._regular: set[str] = set()
        self._is: dict[Node, bool] = {}
        self._split: set[Node] = set()
        self._runs: dict[tuple[Node, ...], Node] = {}
        self._order: list[str] = []
        for group in groups({name: list(node.names()) for name, node in rules.items()}):
            self._classify(group)
            self._order += group
        self._separate()

    # -- what does not recur ---------------------------------------------------------------------------------

    def _classify(self, group: list[str]) -> None:
        inside = set(group)
        named = {name for each in group for name in self._rules[each].names()}
        if not named - inside <= self._regular:
            return
        if named & inside and not (self._solve(group, last=True) or self._solve(group, last=False)):
            return
        self._regular |= inside

    def _solve(self, group: list[str], *, last: bool) -> bool:
        """Write rules that name each other at their ends (or beginnings) without that, by Arden's rule."""
        equations: dict[str, list[tuple[Node, str | None]]] = {}
        for name in group:
            found = self._ends(self._rules[name], set(group), last)
            if found is None:
                return False
            equations[name] = found
        solved: dict[str, Node] = {}
        for i, name in enumerate(group):
            terms = equations[name]
            again = [part for part, other in terms if other == name and part is not _NOTHING]
            rest = [(part, other) for part, other in terms if other != name]
            if not rest or sum(map(len, equations.values())) > _MAX_TERMS:
                return False
            loop = self._helper(Node("repeat", "*", (_choice(again),))) if again else _NOTHING
            rest = [(_joined(loop, part, last), other) for part, other in rest]
            for later in group[i + 1 :]:
                equations[later] = [
                    (_joined(part, more, last), target)
                    for part, other in equations[later]
                    for more, target in (rest if other == name else [(_NOTHING, other)])
                ]
            solved[name] = _choice(
                [_joined(part, Node("name", other), last) if other else part for part, other in rest]
            )
        self._rules.update(solved)
        self._is.clear()
        return True

    def _helper(self, node: Node) -> Node:
        name = f" {len(self._rules)}"
        self._rules[name] = node
        self._regular.add(name)
        self._order.append(name)
        return Node("name", name)

    def _ends(self, node: Node, group: set[str], last: bool) -> list[tuple[Node, str | None]] | None:
        """Return what may come before a rule of the group (or after), and which; None: there is more."""
        if group.isdisjoint(node.names()):
            return [(node, None)]
        if node.kind == "name":
            return [(_NOTHING, node.text)]
        if node.kind == "choice":
            parts = [self._ends(part, group, last) for part in node.parts]
            return None if None in parts else [term for part in parts for term in part or ()]
        if node.kind == "sequence":
            *others, end = node.parts if last else reversed(node.parts)
            if not all(group.isdisjoint(part.names()) for part in others):
                return None
            ends = self._ends(end, group, last)
            if ends is None:
                return None
            before = tuple(others if last else reversed(others))
            prefix = before[0] if len(before) == 1 else Node("sequence", parts=before)
            if len(ends) > 1 and before:
                prefix = self._helper(prefix)
            return [(_joined(prefix, part, last), name) for part, name in ends]
        if node.text == "?":
            ends = self._ends(node.parts[0], group, last)
            return None if ends is None else [*ends, (_NOTHING, None)]
        return None

    # -- terminals -------------------------------------------------------------------------------------------

    def _is_regular(self, node: Node) -> bool:
        if node not in self._is:
            self._is[node] = self._regular.issuperset(node.names())
        return self._is[node]

    def _separate(self) -> None:
        """Take terminals apart until each ends where the next begins."""
        if "root" in self._regular:
            return
        work = _MAX_WORK
        while True:
            lexemes = Lexemes(self._trees(), self._rules, self._order, work)
            conflicts = lexemes.conflicts()
            if not conflicts:
                return
            work = lexemes.work
            self._split |= conflicts

    def _trees(self) -> dict[str, Node]:
        """The rules that are not terminals, of terminals (kind "unit", of the only part) and each other."""
        trees: dict[str, Node] = {}
        stack = ["root"]
        while stack:
            name = stack.pop()
            if name not in trees:
                trees[name] = self._tree(self._rules[name])
                stack += trees[name].names()
        return trees

    def _tree(self, node: Node) -> Node:
        if self._is_regular(node):
            if node not in self._split or node.kind == "set":
                return Node("unit", parts=(node,))
        elif node.kind == "sequence":
            return self._sequence(node)
        if node.kind == "name":
            return node
        return Node(node.kind, node.text, tuple(map(self._tree, node.parts)))

    def _sequence(self, node: Node) -> Node:
        """Neighbours that do not recur are one terminal."""
        words: list[Node] = []
        run: list[Node] = []
        for part in (*node.parts, None):
            if part is not None and self._is_regular(part):
                run.append(part)
                continue
            if run:
                words.append(self._tree(self._run(tuple(run))))
                run = []
            if part is not None:
                words.append(self._tree(part))
        return words[0] if len(words) == 1 else Node("sequence", parts=tuple(words))

    def _run(self, parts: tuple[Node, ...]) -> Node:
        return self._runs.setdefault(parts, parts[0] if len(parts) == 1 else Node("sequence", parts=parts))

    # -- Lark ------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """The grammar. Names in capitals are terminals."""
        names = {name: f"{i}" for i, name in enumerate(self._rules)}
        lines: dict[str, str] = {}
        written: dict[str, str] = {}
        stack: list[str] = []

        def write(node: Node, kind: str) -> str:
            if node.kind == "name":
                stack.append(kind + node.text)
                return kind + names[node.text]
            if node.kind == "unit":
                body = write(node.parts[0], "T")
                if node.parts[0].kind in ("set", "name"):
                    return body
                return written.setdefault(body, f"X{len(written)}")
            if node.kind == "set":
                return _set(node.ranges)
            parts = [write(part, kind) for part in node.parts]
            if node.kind == "repeat":
                return f"({parts[0]}){node.text}"
            if node.kind == "choice":
                return f"({' | '.join(parts)})"
            return _texts(node) or " ".join(parts) or '""'

        if "root" in self._regular:
            trees, stack = {}, ["Troot"]
            lines["start"] = f"T{names['root']}"
        else:
            trees, stack = self._trees(), ["rroot"]
            lines["start"] = f"r{names['root']}"
        while stack:
            kind, name = (key := stack.pop())[0], key[1:]
            rule = kind + names[name]
            if rule not in lines:
                lines[rule] = ""
                lines[rule] = write(trees[name] if kind == "r" else self._rules[name], kind)
        lines |= {name: body for body, name in written.items()}
        return "\n".join(f"{name}: {body}" for name, body in lines.items())


def _set(ranges: Ranges) -> str:
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return lark_string(chr(ranges[0][0]))
    if not ranges:
        return r"/[^\x{0}-\x{10FFFF}]/"
    spans = ["-".join(f"\\u{{{end:x}}}" for end in dict.fromkeys(ends)) for ends in ranges]
    return f"/[{''.join(spans)}]/"


def _texts(node: Node) -> str:
    """A sequence of single characters as a string, in place of one for each."""
    ends = [part.ranges[0] for part in node.parts if part.kind == "set" and len(part.ranges) == 1]
    if not ends or len(ends) != len(node.parts) or any(low != high for low, high in ends):
        return ""
    return lark_string("".join(chr(low) for low, _ in ends))


def _choice(parts: list[Node]) -> Node:
    return parts[0] if len(parts) == 1 else Node("choice", parts=tuple(parts))


def _joined(first: Node, second: Node, forward: bool) -> Node:
    """One after the other, or the other way round; nothing is left out."""
    if first is _NOTHING:
        return second
    if second is _NOTHING:
        return first
    return Node("sequence", parts=(first, second) if forward else (second, first))
