# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""The one word of an answer that says it all, for those who ask for no more."""

from __future__ import annotations

BRIEFLY = ["Answer with one word.", "One word, please.", "One word only.", "Only the answer.", "Just the answer, please.", "Short answer, please.", "Answer in one word.", "In one word.", "A single word, please.", "Just one word.", "No sentence, just the word.", "Give only the word."]  # fmt: skip
_PLAIN = frozenset(
    "it is was the a an on in at of there to from for and called are were you they he she costs has have had goes comes came got lives need then by likes with saw gave wrote went made bought took found became started lost left did does put works plays eats speaks enjoys wants wanted owns because be being one that this will would can who which".split()
)


def bare_value(text: str, ask: str, answer: str) -> str:
    """The one word of an answer that its question does not have and the text has, or nothing."""
    if answer.startswith(("Yes", "No,", "No.")):
        return ""
    asked = {w.strip(".,?!'\"").lower() for w in ask.split()}
    new = [w.strip('.,?!"') for w in answer.split()]
    new = [w for w in new if w.lower() not in asked and w.lower() not in _PLAIN]
    return new[0] if len(new) == 1 and new[0] in text else ""
