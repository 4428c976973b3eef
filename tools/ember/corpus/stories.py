"""Stories: a cast and a setting are drawn first, so that every sentence agrees on who and where."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from . import lexicon, plots_away, plots_home, plots_more, plots_things
from .grammar import Writer, write
from .story_rules import RULES
from .words import (
    ANIMAL_ELDERS,
    ANIMALS,
    BOYS,
    GENDER,
    GIRLS,
    HUMAN_ELDERS,
    HUMAN_HOMES,
    PRONOUNS,
    SLOTS,
    TALE_FOLK,
    invented_word,
)

PLOTS = {
    name: (cast, about, text)
    for name, cast, about, text in plots_home.PLOTS + plots_away.PLOTS + plots_more.PLOTS + plots_things.PLOTS
}
FRUIT_TREES = ["apple", "plum", "cherry", "pear"]


@dataclass(frozen=True)
class Story:
    """A story and what it is about: the hero's name and kind, the friend's name, the theme and a thing."""

    text: str
    hero: str
    kind: str
    trait: str
    theme: str
    plot: str
    friend: str
    friend_kind: str
    thing: str


def _pronouns(prefix: str, subject: str) -> dict[str, str]:
    return {prefix + key: value for key, value in PRONOUNS[subject].items()}


def _cast(rng: Random, cast: str) -> dict[str, str]:
    """Hero, friend and elder, with pronouns, kinds and a home."""
    human = cast == "child" or (cast == "any" and rng.random() < 0.5)
    if rng.random() < 0.82:
        hero, friend = rng.sample(GIRLS + BOYS, 2)
        he, fhe = GENDER[hero], GENDER[friend]
    else:
        hero, friend = invented_word(rng).capitalize(), rng.choice(GIRLS + BOYS)
        he, fhe = rng.choice(("he", "she")), GENDER[friend]
    if cast in ("dragon", "robot"):
        kind, home = cast, "a cave high in the mountains" if cast == "dragon" else "a workshop full of wires"
        friend_desc = "a child" if cast == "dragon" else "a small robot"
    elif human and cast == "any" and rng.random() < 0.35:
        kind = rng.choice([k for k, (subject, _) in TALE_FOLK.items() if subject == he])
        home = TALE_FOLK[kind][1]
        friend_desc = rng.choice(
            [
                "a dragon",
                "a talking cat",
                "a small dragon",
                "a clever crow",
                "a boy" if fhe == "he" else "a girl",
            ]
        )
    elif human:
        kind, home = {"he": "boy", "she": "girl"}[he], rng.choice(HUMAN_HOMES)
        friend_desc = rng.choice(
            ["a girl", "a cheerful girl"] if fhe == "she" else ["a boy", "a cheerful boy"]
        )
    else:
        kind = rng.choice(list(ANIMALS))
        home = ANIMALS[kind]
        friend_kind = rng.choice([k for k in ANIMALS if k != kind])
        friend_desc = rng.choice(
            [
                f"{'an' if friend_kind[0] in 'aeiou' else 'a'} {friend_kind}",
                f"a small {friend_kind}",
                f"a funny {friend_kind}",
            ]
        )
    elders = HUMAN_ELDERS if human or cast in ("dragon", "robot") else ANIMAL_ELDERS
    elder = rng.choice(list(elders))
    env = {"H": hero, "F": friend, "E": elder, "kind": kind, "home": home, "Fdesc": friend_desc}
    return env | _pronouns("", he) | _pronouns("f", fhe) | _pronouns("e", elders[elder])


def story(rng: Random, hero: tuple[str, str] | None = None) -> Story:
    """One story. ``hero`` (name, subject pronoun) fixes the hero's name."""
    # those about any thing are few
    plot = rng.choices(list(PLOTS), [2.5 if name.startswith("any_") else 1.0 for name in PLOTS])[0]
    cast, about, text = PLOTS[plot]
    env = _cast(rng, cast)
    if hero is not None:
        name, he = hero
        env |= _pronouns("", he) | {"H": name}
        if env["kind"] in ("boy", "girl") or env["kind"] in TALE_FOLK:
            env["kind"] = {"he": "boy", "she": "girl"}[he]
        if env["F"] == name:
            env["F"] = next(n for n in GIRLS + BOYS if n != name and GENDER[n] == env["fhe"])
    env |= {slot: rng.choice(values) for slot, values in SLOTS.items()} | {
        "fruit_tree": rng.choice(FRUIT_TREES)
    }
    env["thing"] = rng.choice(lexicon.THINGS)
    for slot in ("outside", "town", "color"):  # two different ones of a sort
        env[slot], env[slot + "2"] = rng.sample(SLOTS[slot], 2)
    writer = Writer(rng, RULES)
    paragraphs = []
    for paragraph in text.strip().split("\n\n"):
        lines = [line for line in paragraph.split("\n") if not line.startswith("?") or rng.random() < 0.5]
        written = [writer.write(line.removeprefix("?"), env) for line in lines]
        paragraphs.append(" ".join(part for part in written if part))
    theme = write(rng, rng.choice(about), env)
    return Story(
        "\n\n".join(paragraphs),
        env["H"],
        env["kind"],
        env["trait"],
        theme,
        plot,
        env["F"],
        env["Fdesc"],
        env["thing"],
    )
