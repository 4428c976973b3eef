# ruff: noqa: E501 - lines of text read better whole
"""Haiku: three lines of five, seven and five syllables."""

from __future__ import annotations

import re
from random import Random

from . import lexicon
from .grammar import write
from .sample import Turn
from .typed import typed
from .words import NOUNS

_TOPICS = "rain snow wind moon sun sea sky night spring frost mist stars autumn winter summer river mountain forest ocean morning evening garden flower shadow silence water butterfly waterfall thunder lightning cherry blossoms dragonfly sunset sunrise rainbow lake tree bird cat dog fox frog home coffee tea music dream love friendship time train city street window book fire cloud leaves ice".split()  # noqa: SIM905

# first lines for a topic of one to four syllables, which need not be one thing
_FIRST = {
    1: ["The quiet, soft $t", "The $t in the night", "Look, the $t is here", "Early morning $t", "I dream of the $t", "Only the $t knows", "$^t at break of day", "$^t, and nothing else"],
    2: ["Look at the $t", "Nothing but $t", "The $t at dawn", "$^t in the night", "I think of $t", "$^t, far away", "The world of $t", "Silent, old $t"],
    3: ["$^t at dawn", "Only $t", "The $t, here", "I see $t", "$^t, at last", "My $t, still"],
    4: ["The $t", "$^t now", "My $t", "$^t, here"],
}  # fmt: skip
_MIDDLE = [
    "the wind is soft on the hill", "a small bird sings in the tree", "slowly the light leaves the sky", "the whole world is still and white", "leaves are falling on the path", "water runs over the stones", "nobody hears it but me", "one star looks down from the sky", "I stop and listen a while", "the old pond is quiet now",
    "the sea sings an old, slow song", "clouds move over the green hills", "a door opens, a light shines", "the old clock counts the minutes", "footsteps fade along the road", "the grass is wet with cold dew", "a leaf turns in the slow stream", "the last boat is coming home", "I count the stars, one by one", "the garden sleeps in the sun",
]  # fmt: skip
_LAST = [
    "then it is silent", "and the day is done", "spring will come again", "I walk home alone", "the night is so long", "how quiet it is", "morning comes so soon", "all the world is still", "a warm wind comes home", "and I think of you", "nothing more to say", "the moon looks at me", "I close my eyes now", "it is time to rest", "and then it is gone",
]  # fmt: skip


def syllables(text: str) -> int:
    """Syllables of an English text, roughly: groups of vowels, without a final e that is silent."""
    count = 0
    for word in re.findall(r"[a-z]+", text.lower()):
        groups = len(re.findall(r"[aeiouy]+", word))
        silent = len(word) > 2 and re.search(
            r"[^aeiouyl]e$|[^aeiouy]les?$|[^aeiouytd]ed$|[^aeiouyscxzhg]es$", word
        )
        groups -= bool(silent) and not re.search(r"[^aeiouy]les?$", word)
        count += max(1, groups)
    return count


def haiku(rng: Random) -> Turn:
    topic = (
        rng.choice(_TOPICS)
        if rng.random() < 0.6
        else rng.choice([rng.choice(NOUNS), rng.choice(lexicon.NOUN_LIKE)])
    )
    if syllables(topic) not in _FIRST:
        topic = "rain"
    named = rng.random() < 0.85
    what = write(rng, "{about|on|about|about} {$t|the $t|a $t|$t|$t}", {"t": topic}) if named else ""
    ask = write(
        rng,
        "{Write|Write me|Compose|Make|Give me|Tell me|Create|Can you write|Please write|Could you write|I want|I would like} {a|a short|a little|a nice|one} haiku $w{.|, please.|}",
        {"w": what},
    )
    if rng.random() < 0.12:
        ask = write(rng, "{Haiku|A haiku|haiku|A haiku, please,} $w", {"w": what})
    ask = re.sub(r" ([.,])", r"\1", ask)
    first = write(rng, rng.choice(_FIRST[syllables(topic)]), {"t": topic})
    text = f"{first},\n{rng.choice(_MIDDLE)},\n{rng.choice(_LAST)}."
    return Turn("poem", typed(rng, ask), text, f"haiku {ask.lower()}")
