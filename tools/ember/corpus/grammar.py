"""A small template language: the only way text is made here.

    {a|b|c}   one of the alternatives (they nest; an empty one makes a part optional)
    $name     a variable of the environment
    $^name    the same, first letter upper case
    <rule>    one of the templates of a named rule; one text does not use the same template twice
"a" becomes "an" before a vowel, and a sentence begins with a capital letter, whatever was drawn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from random import Random

Rules = Mapping[str, Sequence[str]]
Node = tuple[str, object]

_SPECIAL = re.compile(r"[{}|]|\$\^?[A-Za-z]\w*|<[a-z_]+>")
_ARTICLE = re.compile(r"\b([Aa]) (?=[aeiouAEIOU])(?!one\b|uni|us[ei]|eu)")
_START = re.compile(r"(?:^|[.!] )[a-z]")


def _parse(text: str, at: int, depth: int) -> tuple[list[list[Node]], int]:
    """The alternatives from ``at`` to the closing brace (or to the end at depth 0), and where they stop."""
    alternatives: list[list[Node]] = [[]]
    while True:
        match = _SPECIAL.search(text, at)
        if match is None:
            if depth:
                raise ValueError(f"template: a '{{' is not closed in {text!r}")
            alternatives[-1].append(("text", text[at:]))
            return alternatives, len(text)
        if match.start() > at:
            alternatives[-1].append(("text", text[at : match.start()]))
        token, at = match.group(), match.end()
        if token == "{":
            inner, at = _parse(text, at, depth + 1)
            alternatives[-1].append(("choice", inner))
        elif token == "}":
            if not depth:
                raise ValueError(f"template: a '}}' closes nothing in {text!r}")
            return alternatives, at
        elif token == "|":
            if depth:
                alternatives.append([])
            else:
                alternatives[-1].append(("text", "|"))
        elif token[0] == "$":
            kind = "capital" if token[1] == "^" else "variable"
            alternatives[-1].append((kind, token.lstrip("$^")))
        else:
            alternatives[-1].append(("rule", token[1:-1]))


@lru_cache(30_000)  # many templates are put together anew and come once
def _compiled(text: str) -> list[Node]:
    return _parse(text, 0, 0)[0][0]


class Writer:
    """Expands templates with one random stream; remembers which rule templates a text has used."""

    def __init__(self, rng: Random, rules: Rules | None = None, sentences: bool = True) -> None:
        self.rng = rng
        self.sentences = sentences
        self.rules = rules or {}
        self._used: dict[str, set[int]] = {}

    def write(self, template: str, env: Mapping[str, str] | None = None) -> str:
        """The template's text, with articles and spaces put right."""
        out: list[str] = []
        self._expand(_compiled(template), {} if env is None else env, out)
        text = _ARTICLE.sub(r"\1n ", re.sub(r" {2,}", " ", "".join(out)).strip())
        return _START.sub(lambda m: m[0].upper(), text) if self.sentences else text

    def _expand(self, nodes: list[Node], env: Mapping[str, str], out: list[str]) -> None:
        for kind, value in nodes:
            if kind == "text":
                out.append(value)  # type: ignore[arg-type]
            elif kind == "choice":
                self._expand(self.rng.choice(value), env, out)  # type: ignore[arg-type]
            elif kind == "rule":
                self._expand(_compiled(self._pick(str(value))), env, out)
            else:
                word = env[str(value)]
                out.append(word[:1].upper() + word[1:] if kind == "capital" else word)

    def _pick(self, rule: str) -> str:
        templates = self.rules[rule]
        used = self._used.setdefault(rule, set())
        if len(used) == len(templates):
            used.clear()
        index = self.rng.choice([i for i in range(len(templates)) if i not in used])
        used.add(index)
        return templates[index]


def write(rng: Random, template: str, env: Mapping[str, str] | None = None) -> str:
    """Expand one template that uses no rules, and leave its case alone."""
    return Writer(rng, sentences=False).write(template, env)
