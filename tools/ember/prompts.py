"""Ask a model the prompts of ``prompts.txt``, which were written by hand, and check its greedy answers.

python -m tools.ember.prompts                                       # the shipped model, a line per skill
python -m tools.ember.prompts --model build/ember.gguf --show        # and every wrong answer
python -m tools.ember.prompts --write-card                           # the table of docs/ember.md
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROMPTS = Path(__file__).parent / "prompts.txt"
SHIPPED = ROOT / "python" / "akunu" / "models" / "ember.gguf"
EARLIER = PROMPTS.with_name("prompts-earlier.json")  # what the versions before made of each file
VERSION = "version 7"
CARD = ROOT / "docs" / "ember.md"
ROLES = {"S": "system", "U": "user", "A": "assistant", "R": "tool"}
LIMIT = 96
STORY_LIMIT = 700
CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.S)
_TOOL = re.compile(r"tool (\w+)\((.*)\): (.*)")


@dataclass
class Prompt:
    """A conversation (or a plain text) and the checks that the answer must pass."""

    skill: str
    messages: list[dict[str, Any]] = field(default_factory=list)
    tools: list[dict[str, Any]] = field(default_factory=list)
    text: str = ""
    checks: list[tuple[str, str]] = field(default_factory=list)

    @property
    def limit(self) -> int:
        return STORY_LIMIT if ("~", "story") in self.checks else LIMIT

    @property
    def last(self) -> str:
        """What the user typed last."""
        return self.text or next(m["content"] for m in reversed(self.messages) if m["role"] == "user")


def _tool(line: str) -> dict[str, Any]:
    match = _TOOL.fullmatch(line)
    if match is None:
        raise ValueError(f"prompts.txt: {line!r} is not 'tool NAME(PARAMETERS): DESCRIPTION'")
    properties: dict[str, Any] = {}
    required = []
    for part in match[2].split(", "):
        name, kind = part.split(": ")
        if not name.endswith("?"):
            required.append(name)
        properties[name.rstrip("?")] = (
            {"type": "string", "enum": kind.split("|")} if "|" in kind else {"type": kind}
        )
    parameters = {"type": "object", "properties": properties, "required": required}
    return {
        "type": "function",
        "function": {"name": match[1], "description": match[3], "parameters": parameters},
    }


def read(path: Path = PROMPTS) -> list[Prompt]:
    """The prompts of a file."""
    tools: dict[str, dict[str, Any]] = {}
    prompts: list[Prompt] = []
    skill = ""
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        prompt = Prompt("")
        for line in filter(None, block.split("\n")):
            mark, _, rest = line.partition(" ")
            if mark == "##":
                skill = rest
            elif mark == "tool":
                tools[line.split("(")[0].removeprefix("tool ")] = _tool(line)
            elif mark == "T":
                prompt.tools = [tools[name] for name in rest.split()]
            elif mark == "P":
                prompt.text = rest.replace("\\n", "\n")
            elif mark in ROLES:
                prompt.messages.append({"role": ROLES[mark], "content": rest.replace("\\n", "\n")})
            elif mark == "C":
                name, _, arguments = rest.partition(" ")
                call = {"type": "function", "function": {"name": name, "arguments": json.loads(arguments)}}
                prompt.messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
            elif mark in ("=", "+", "-", "~", "json", "call"):
                prompt.checks.append((mark, rest))
            elif mark != "#":
                raise ValueError(f"prompts.txt: a line begins with {mark!r}: {line!r}")
        if prompt.text or prompt.messages:
            prompt.skill = skill
            prompts.append(prompt)
    return prompts


# --- checks ---


def _plain(text: str) -> str:
    return text.strip().rstrip(".!").casefold()


def _has(answer: str, choices: str) -> bool:
    words = filter(None, map(str.strip, choices.split("|")))
    return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", answer, re.I) for word in words)


def _lines(text: str) -> list[str]:
    return [line for line in text.strip().split("\n") if line.strip()]


def _sentences(text: str) -> int:
    return len(re.findall(r"[.!?](?:\s|$)", text.strip()))


def _haiku(text: str) -> bool:
    """Three lines of five, seven and five syllables, as far as they can be counted."""
    from tools.ember.corpus.haiku import syllables

    counts = [syllables(line) for line in _lines(text)]
    return len(counts) == 3 and all(abs(n - m) <= 1 for n, m in zip(counts, (5, 7, 5), strict=True))


def _english(text: str) -> bool:
    """Whether it reads as sentences: some words, few of which repeat, and an end."""
    words = re.findall(r"[A-Za-z']+", text)
    return bool(words) and len(set(map(str.lower, words))) * 3 >= len(words)


def _story(text: str) -> bool:
    words = re.findall(r"[A-Za-z']+", text)
    sentences = [s for s in re.split(r"(?<=[.!?])\s+", text) if len(s) > 40]
    return len(words) >= 90 and len(sentences) == len(set(sentences))


FORMS: dict[str, Callable[[str, int], bool]] = {
    "upper": lambda a, _: a == a.upper() and a != a.lower(),
    "lower": lambda a, _: a == a.lower() and a != a.upper(),
    "sentence": lambda a, _: _sentences(a) == 1 and len(a.split()) >= 3 and a.strip()[-1:] in ".!",
    "words": lambda a, n: 0 < len(a.split()) <= n,
    "short": lambda a, n: 0 < len(a) <= n,
    "bullets": lambda a, n: len(_lines(a)) == n and all(re.match(r"\s*[-*•] \S", s) for s in _lines(a)),
    "numbered": lambda a, n: (
        len(_lines(a)) == n and all(re.match(rf"\s*{i}[.)] \S", s) for i, s in enumerate(_lines(a), 1))
    ),
    "lines": lambda a, n: len(_lines(a)) >= n,
    "ends": lambda a, _: bool(a.strip()),
    "english": lambda a, _: _english(a),
    "haiku": lambda a, _: _haiku(a),
    "story": lambda a, _: _story(a),
    "nocall": lambda a, _: "<tool_call>" not in a,
}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def fault(prompt: Prompt, answer: str, ended: bool) -> str:
    """Empty if the answer passes every check of the prompt, else the check that it fails."""
    if not ended and not prompt.text:
        return "does not end"
    whole = prompt.text + answer if ("~", "story") in prompt.checks else answer
    for mark, wanted in prompt.checks:
        name, _, number = wanted.partition(" ")
        passed = {
            "=": lambda w=wanted: _plain(answer) in [_plain(choice) for choice in w.split(" | ")],
            "+": lambda w=wanted: _has(answer, w),
            "-": lambda w=wanted: not _has(answer, w),
            "~": lambda n=name, k=number: FORMS[n](whole.strip(), int(k or 0)),
            "json": lambda w=wanted: _json(answer) == json.loads(w),
            "call": lambda w=wanted: [_json(c) for c in CALL.findall(answer)] == _calls(w),
        }[mark]()
        if not passed:
            return f"{mark} {wanted}"
    return ""


def _calls(wanted: str) -> list[dict[str, Any]]:
    name, _, arguments = wanted.partition(" ")
    return [{"name": name, "arguments": json.loads(arguments)}]


# --- the model ---

Answer = tuple[str, bool]
Scores = dict[str, tuple[int, int]]


def answers(path: Path, prompts: Iterable[Prompt]) -> list[Answer]:
    """Greedy answers of a model file through Akunu, and whether each ended by itself."""
    import akunu

    out = []
    with akunu.load(str(path), device="cpu", threads=1, progress=False) as model:
        for prompt in prompts:
            ids = (
                model.tokenize(prompt.text)
                if prompt.text
                else model.chat_template.encode(prompt.messages, tools=prompt.tools or None)
            )
            done = model.generate(ids, max_tokens=prompt.limit, temperature=0)
            out.append((done.text, done.finish_reason == "stop"))
    return out


def table(earlier: dict[str, Scores], now: Scores) -> str:
    """Right answers per skill as a Markdown table; ``earlier`` holds those of the models before."""
    head = ["skill", "prompts", *earlier, VERSION]
    rows = [head, ["---"] * len(head)]
    for skill in [*now, "all"]:
        cells = [
            column.get(skill) or (sum(r for r, _ in column.values()), sum(n for _, n in column.values()))
            for column in [*earlier.values(), now]
        ]
        rows.append([skill, str(cells[-1][1]), *(f"{100 * r / n:.0f} %" for r, n in cells)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def score(prompts: list[Prompt], answered: list[Answer]) -> Scores:
    """(right, asked) per skill."""
    scores: Scores = {}
    for prompt, answer in zip(prompts, answered, strict=True):
        right, asked = scores.get(prompt.skill, (0, 0))
        scores[prompt.skill] = (right + (not fault(prompt, *answer)), asked + 1)
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, default=SHIPPED)
    parser.add_argument("--prompts", type=Path, default=PROMPTS, help="another file of prompts")
    parser.add_argument("--show", action="store_true", help="print the wrong answers")
    parser.add_argument(
        "--open-half", action="store_true", help="with --show: only the first, third, … prompt of a skill"
    )
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--write-card", action="store_true", help="put the table into docs/ember.md")
    args = parser.parse_args()
    if args.write_card and args.model != SHIPPED:
        parser.error("the card's figures are those of the shipped file: leave out --model")
    prompts = read(args.prompts)
    answered = answers(args.model, prompts)
    scores = score(prompts, answered)
    if args.show:
        seen: dict[str, int] = {}
        for prompt, answer in zip(prompts, answered, strict=True):
            seen[prompt.skill] = seen.get(prompt.skill, 0) + 1
            wrong = fault(prompt, *answer)
            if wrong and (not args.open_half or seen[prompt.skill] % 2):
                print(f"[{prompt.skill}] {prompt.last!r}\n    got    {answer[0][:200]!r}\n    wanted {wrong}")
    earlier: dict[str, Scores] = json.loads(EARLIER.read_text()).get(args.prompts.stem, {})
    print(table(earlier, scores))
    for half, name in ((0, "open"), (1, "closed")):
        chosen = [i for s in scores for i in [j for j, p in enumerate(prompts) if p.skill == s][half::2]]
        part = score([prompts[i] for i in chosen], [answered[i] for i in chosen])
        right, asked = (sum(v[k] for v in part.values()) for k in (0, 1))
        print(f"{name} half: {right} of {asked}, {100 * right / asked:.1f} %")
    if args.out:
        args.out.write_text(json.dumps(scores, indent=1) + "\n")
    if args.write_card:
        start, end = f"<!-- {args.prompts.stem} -->", f"<!-- end of {args.prompts.stem} -->"
        text = CARD.read_text(encoding="utf-8")
        written = f"{start}\n{table(earlier, scores)}\n{end}"
        CARD.write_text(text.split(start)[0] + written + text.split(end)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
