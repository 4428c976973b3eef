"""Evaluate ember on held-out prompts, greedily, through Akunu's own engine.

    python -m tools.ember.evaluate --model python/akunu/models/ember.gguf
    python -m tools.ember.evaluate --model python/akunu/models/ember.gguf --write-card

``--torch FOLDER`` evaluates the weights of a training run in PyTorch instead (for development).
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from tools.ember.corpus import Sample, samples
from tools.ember.corpus.extraction import extraction
from tools.ember.corpus.extras import lists, longer_sum, reading, sizes, spelling, yes_no
from tools.ember.corpus.follow_ups import SYSTEM_PROMPTS, follow_up, memory
from tools.ember.corpus.lexicon import THINGS
from tools.ember.corpus.personas import format_chat, persona_chat, role_chat
from tools.ember.corpus.sample import Turn, is_held_out
from tools.ember.corpus.smalltalk import identity, unknown
from tools.ember.corpus.stories import story
from tools.ember.corpus.story_chats import story_ask, story_key
from tools.ember.corpus.tasks import (
    arithmetic,
    calendar,
    compare,
    counting,
    fact,
    fix_articles,
    opposite,
    parity,
    plural,
    reorder,
    repeat,
    word_problem,
)
from tools.ember.corpus.tools import tool_chat
from tools.ember.corpus.words import ANIMAL_ELDERS, GENDER, HUMAN_ELDERS, RESERVED_NAMES
from tools.ember.render import CALL_END, CALL_START, render

ROOT = Path(__file__).resolve().parents[2]
CARD = ROOT / "docs" / "ember.md"
SHIPPED = ROOT / "python" / "akunu" / "models" / "ember.gguf"
SEED = 990_000  # training seeds are small


@dataclass(frozen=True)
class Case:
    """A prompt (messages, or text), the answer wanted, and the check of the answer."""

    skill: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    text: str
    wanted: str
    limit: int
    hint: dict[str, str]

    @property
    def prompt(self) -> str:
        return self.text or render(self.messages, self.tools, prompt=True)


def _case(skill: str, sample: Sample, at: int, limit: int) -> Case:
    message = sample.messages[at]
    rendered = render([message]).split("\n", 1)[1].rsplit("<|im_end|>", 1)[0]
    return Case(skill, sample.messages[:at], sample.tools, "", rendered, limit, sample.hint)


TURNS: dict[str, list[Callable[[Random], Turn]]] = {
    "arithmetic": [
        arithmetic,
        arithmetic,
        arithmetic,
        arithmetic,
        arithmetic,
        word_problem,
        compare,
        parity,
        longer_sum,
    ],
    "facts": [fact, fact, fact, yes_no, sizes],
    "counting": [counting],
    "calendar": [calendar],
    "opposites": [opposite],
    "plurals": [plural],
    "repeat": [repeat],
    "reorder": [reorder],
    "unknown": [unknown],
    "identity": [identity],
    "lists": [lists],
    "spelling": [spelling],
}


def _single(skill: str) -> Callable[[Random], Sample]:
    """One question of a skill, sometimes after a system prompt."""

    def draw(rng: Random) -> Sample:
        turn = rng.choice(TURNS[skill])(rng)
        messages = [{"role": "user", "content": turn.ask}, {"role": "assistant", "content": turn.answer}]
        if rng.random() < 0.25:
            messages.insert(0, {"role": "system", "content": rng.choice(SYSTEM_PROMPTS)})
        return Sample(skill, messages=messages, hint={"held_out": str(int(turn.held_out))})

    return draw


def _opening(rng: Random, new_name: bool = False) -> Sample:
    """The opening of a story, up to the hero's name; the kind of hero comes before it."""
    told = story(rng, rng.choice(list(RESERVED_NAMES.items())) if new_name else None)
    text = told.text[: told.text.index(told.hero) + len(told.hero)]
    held = new_name or (told.kind in text and is_held_out(story_key(told)))
    return Sample("story", text=text, hint={"held_out": str(int(held)), "hero": told.hero})


def _request(rng: Random) -> Sample:
    """A request for a story that names the hero and the kind of hero."""
    told = story(rng)
    ask = fix_articles(story_ask(rng, told))
    held = told.hero in ask and told.kind in ask and is_held_out(story_key(told))
    messages = [{"role": "user", "content": ask}, {"role": "assistant", "content": told.text}]
    return Sample("story chat", messages=messages, hint={"held_out": str(int(held)), "hero": told.hero})


def cases(skill: str, count: int) -> Iterator[Case]:
    """Held-out cases of a skill: distinct prompts, the same ones each time."""
    seen: set[str] = set()
    sources: dict[str, Callable[[Random], Sample]] = {
        "json": extraction,
        "tools": tool_chat,
        "tool answers": tool_chat,
        "format": lambda r: r.choice((format_chat, format_chat, format_chat, persona_chat, role_chat))(r),
        "multi-turn": lambda r: (follow_up if r.random() < 0.75 else memory)(r),
        "story": _opening,
        "story chat": _request,
        "story, new name": lambda r: _opening(r, True),
        "reading": reading,
    }
    # the held-out pairs of a fact and a wording are few: stop when no more are found
    for sample in islice(samples(SEED, held_out=True, only=sources.get(skill) or _single(skill)), count * 60):
        if skill.startswith("story") and sample.text:
            case = Case(skill, [], [], sample.text, "", 700, sample.hint)
        elif skill == "story chat":
            case = _case(skill, sample, 1, 700)
        elif skill in ("tools", "tool answers"):
            at = next(i for i, m in enumerate(sample.messages) if m["role"] == "assistant")
            if skill == "tool answers":
                if sample.messages[-2]["role"] != "tool":
                    continue
                at = len(sample.messages) - 1
            case = _case(skill, sample, at, 120)
        else:
            case = _case(skill, sample, len(sample.messages) - 1, 120)
        if case.prompt not in seen:
            seen.add(case.prompt)
            yield case
        if len(seen) == count:
            return


# --- checks ---


def number(text: str) -> str:
    """The result that an arithmetic answer states: what follows the last ``=`` of its first sentence."""
    return text.split(". ")[0].rstrip(".").split("=")[-1].strip()


IDENTITY = re.compile(
    r"ember|Akunu|tiny|small|program|mistake|little|stories|your (own )?computer|only this (one|chat)"
    r"|this chat|simple English|I am free|I stay as I am",
    re.I,
)


def right(case: Case, answer: str, ended: bool) -> str:
    """Empty if the answer is right, else why it is not."""
    if case.skill.startswith("story"):
        return story_fault(case.text + answer, case.hint["hero"], ended)
    if not ended:
        return "does not end"
    if case.skill == "arithmetic":
        return "" if number(answer) == number(case.wanted) else "wrong result"
    if case.skill == "unknown":
        return "" if re.search(r"do not know|beyond me|cannot do that", answer) else "pretends to know"
    if case.skill == "identity":
        return "" if IDENTITY.search(answer) else "does not say what it is"
    return "" if answer.strip() == case.wanted.strip() else "differs"


def prompts_in(sample: Sample) -> set[str]:
    """Every prompt that a training document answers: what stands before each of its answers."""
    if sample.text:
        return {sample.text}
    return {
        render(sample.messages[:i], sample.tools, prompt=True)
        for i, message in enumerate(sample.messages)
        if message["role"] == "assistant"
    }


_TITLED = {name for name in [*HUMAN_ELDERS, *ANIMAL_ELDERS]}


@cache
def story_words() -> frozenset[str]:
    """Every word of the stories' grammar, as far as 6000 stories show them."""
    rng = Random("story words")
    told = (w.lower() for _ in range(6000) for w in _words(story(rng).text))
    return frozenset(told) | frozenset(THINGS)  # some plots are about any thing


def _words(text: str) -> list[str]:
    return [w.removesuffix("'s") for w in re.findall(r"[A-Za-z]+(?:'[a-z]+)?", text)]


def story_fault(text: str, hero: str, ended: bool) -> str:
    """Why a story is not valid: it must end, keep its names, use known words, and not repeat itself."""
    if not ended:
        return "does not end"
    words = _words(text)
    if len(words) < 110:
        return f"only {len(words)} words"
    names = set(words) & (set(GENDER) | {hero})
    if len(names) > 2:
        return f"too many names: {sorted(names)}"
    elders = {elder for elder in _TITLED if re.search(rf"\b{re.escape(elder)}\b", text)}
    if len(elders) > 1:
        return f"too many elders: {sorted(elders)}"
    if hero not in text[len(text) // 2 :]:
        return f"{hero} is lost"
    strange = {w for w in words if w.lower() not in story_words() and w != hero}
    if strange:
        return f"unknown words: {sorted(strange)}"
    sentences = [s for s in re.split(r"(?<=[.!?])[\"\s]+", text) if len(s) > 40]
    twice = [s for s, n in Counter(sentences).items() if n > 1]
    if twice:
        return f"repeats: {twice[0]}"
    if text.count('"') % 2:
        return "a quotation is not closed"
    return ""


# --- engines ---

Answer = tuple[str, bool]


def run_akunu(path: Path, todo: list[Case]) -> list[Answer]:
    """Answers of Akunu's engine, and whether each ended by itself."""
    import akunu

    model = akunu.load(str(path), threads=1)
    answers = []
    for case in todo:
        if case.text:
            done = model.generate(case.text, max_tokens=case.limit, temperature=0)
        else:  # through the ids, so that a tool call comes back as the model wrote it
            ids = model.chat_template.encode(case.messages, tools=case.tools or None)
            done = model.generate(ids, max_tokens=case.limit, temperature=0)
        answers.append((done.text, done.finish_reason == "stop"))
    return answers


def run_torch(folder: Path, todo: list[Case]) -> list[Answer]:
    """Answers of the PyTorch model of a training run."""
    import torch
    from tokenizers import Tokenizer

    from tools.ember.model import Ember, greedy
    from tools.ember.model_config import Config
    from tools.ember.train import read_weights

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    model = Ember(Config()).eval()
    model.load_state_dict(read_weights(folder))
    model.to("cuda" if torch.cuda.is_available() else "cpu")
    stops = {tokenizer.token_to_id(t) for t in ("<|endoftext|>", "<|im_end|>")}
    prompts = [tokenizer.encode(case.prompt, add_special_tokens=False).ids for case in todo]
    answers: list[Answer] = [("", False)] * len(todo)
    for limit in sorted({case.limit for case in todo}):
        chosen = [i for i, case in enumerate(todo) if case.limit == limit]
        for i, ids in zip(chosen, greedy(model, [prompts[i] for i in chosen], stops, limit), strict=True):
            ended = bool(ids) and ids[-1] in stops
            answers[i] = (tokenizer.decode(ids[: len(ids) - ended], skip_special_tokens=False), ended)
    return answers


# --- report ---

COUNTS = {
    "arithmetic": 500,
    "facts": 300,
    "json": 300,
    "tools": 300,
    "tool answers": 100,
    "format": 300,
    "multi-turn": 200,
    "counting": 100,
    "calendar": 60,
    "opposites": 60,
    "plurals": 60,
    "repeat": 100,
    "reorder": 200,
    "reading": 150,
    "lists": 40,
    "spelling": 80,
    "unknown": 100,
    "identity": 40,
    "story": 100,
    "story chat": 100,
    "story, new name": 100,
}
GENERALISATION = {
    "arithmetic": "pairs of operands never seen, in either order and in any wording",
    "facts": "a known fact in a wording it was never asked in",
    "json": "sentences with values never seen together, and their keys",
    "tools": "tools whose name and parameters were never seen together",
    "tool answers": "the answer from a tool's result, for such tools",
    "format": "an instruction and a question never seen together",
    "multi-turn": "conversations never seen, with follow-ups and things to remember",
    "counting": "ranges, lists and numbers never asked for",
    "calendar": "a known answer in a wording it was never asked in",
    "opposites": "a known word in a wording it was never asked in",
    "plurals": "a known word in a wording it was never asked in",
    "repeat": "word sequences never seen, with invented words",
    "reorder": "lists never seen",
    "reading": "texts never seen",
    "lists": "wordings never seen",
    "spelling": "a known word in a question never asked about it",
    "unknown": "questions outside its range, never seen",
    "identity": "questions about itself, in wordings never seen",
    "story": "an opening, as plain text, with a hero and a kind of hero never seen together",
    "story chat": "the same, as a request in a chat",
    "story, new name": "an opening with a name never seen",
}
CALLS = re.compile(re.escape(CALL_START) + r".*?" + re.escape(CALL_END), re.S)


def evaluate(run: Callable[[list[Case]], list[Answer]], share: float, show: int) -> dict[str, dict[str, Any]]:
    """The figures of every skill."""
    todo = [case for skill, count in COUNTS.items() for case in cases(skill, max(4, round(count * share)))]
    answers = run(todo)
    report: dict[str, dict[str, Any]] = {}
    for case, (answer, ended) in zip(todo, answers, strict=True):
        row = report.setdefault(case.skill, {"prompts": 0, "right": 0, "faults": []})
        fault = right(case, answer, ended)
        row["prompts"] += 1
        row["right"] += not fault
        if fault and len(row["faults"]) < show:
            ask = case.text or case.messages[-1]["content"]
            row["faults"].append({"why": fault, "ask": ask, "got": answer[:300], "wanted": case.wanted[:300]})
    return report


def table(report: dict[str, dict[str, Any]]) -> str:
    """The figures as a Markdown table."""
    lines = ["| skill | right | prompts | what is new in the prompts |", "|---|---|---|---|"]
    for skill, row in report.items():
        percent = 100 * row["right"] / row["prompts"]
        lines.append(f"| {skill} | {percent:.1f} % | {row['prompts']} | {GENERALISATION[skill]} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, default=SHIPPED)
    parser.add_argument("--torch", type=Path, metavar="FOLDER", help="evaluate a training run in PyTorch")
    parser.add_argument("--share", type=float, default=1.0, help="share of the prompts to use")
    parser.add_argument("--show", type=int, default=3, help="wrong answers to print per skill")
    parser.add_argument("--out", type=Path, help="write the report as JSON")
    parser.add_argument("--write-card", action="store_true", help="put the table into docs/ember.md")
    args = parser.parse_args()
    shipped = SHIPPED.exists() and args.model.exists() and args.model.samefile(SHIPPED)
    if args.write_card and (args.torch or args.share != 1 or not shipped):
        parser.error(
            "the card's figures are those of the shipped file, on every prompt, from Akunu's engine: "
            "leave out --torch, --share and --model"
        )
    started = time.monotonic()
    report = evaluate(
        lambda todo: run_torch(args.torch, todo) if args.torch else run_akunu(args.model, todo),
        args.share,
        args.show,
    )
    for skill, row in report.items():
        for fault in row["faults"]:
            print(f"[{skill}] {json.dumps(fault, ensure_ascii=False)}")
    print(table(report))
    print(f"{time.monotonic() - started:.0f} s")
    if args.out:
        args.out.write_text(json.dumps(report, indent=1, ensure_ascii=False))
    if args.write_card:
        card = CARD.read_text(encoding="utf-8")
        start, end = "<!-- figures -->", "<!-- end of figures -->"
        before, after = card.split(start)[0], card.split(end)[1]
        CARD.write_text(f"{before}{start}\n{table(report)}\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
