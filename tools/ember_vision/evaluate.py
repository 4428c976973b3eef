"""Ask ember-vision about pictures that it has not seen, in fonts that its training did not have.

    python -m tools.ember_vision.evaluate --fonts FONTS --write-card

Greedy, through Akunu's own engine. A line of print counts by its characters: one less the edits that make the
answer right, over its length. Another answer counts where it is right to the last character.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from random import Random

import akunu
from tools.ember_vision.drawing import KINDS
from tools.ember_vision.fonts import Fonts
from tools.ember_vision.skills import (
    GRIDS,
    LINES,
    PAGES,
    TRAINED,
    Grids,
    Score,
    edits,
    pictures,
    skill_of,
    table,
)

CARD = Path(__file__).parents[2] / "docs" / "ember-vision.md"


def evaluate(
    model: akunu.Model, fonts: Fonts, count: int, per_picture: int, grids: Grids = GRIDS
) -> dict[str, Score]:
    """Scores by skill, of `count` pictures of each kind and twice as many of lines."""
    scores: defaultdict[str, Score] = defaultdict(Score)
    rng = Random("ember-vision evaluation")
    for kind in KINDS:
        for scene in pictures(rng, fonts, kind, count * (2 if kind == "lines" else 1), grids):
            image = scene.finished()
            asked = dict(scene.asked)
            for question in rng.sample(sorted(asked), min(per_picture, len(asked))):
                content = [{"type": "image", "image": image}, {"type": "text", "text": question}]
                messages = [{"role": "user", "content": content}]
                said = model.chat(messages, temperature=0, max_tokens=200).text
                score = scores[skill_of(kind, question, asked[question])]
                truth = asked[question]
                if skill_of(kind, question, truth) in (LINES, PAGES):
                    wrong = min(edits(said, truth), len(truth))
                    score.right += len(truth) - wrong
                    score.of += len(truth)
                else:
                    score.right += said == truth
                    score.of += 1
                if said != truth:
                    score.wrong.append((question, truth, said))
    return dict(scores)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fonts", type=Path, required=True, help="folder that tools.ember_vision.fonts made")
    parser.add_argument("--model", default="ember-vision")
    parser.add_argument("--pictures", type=int, default=150, help="of each kind; of lines twice as many")
    parser.add_argument("--questions", type=int, default=4, help="about each picture")
    parser.add_argument("--wrong", type=int, default=0, help="wrong answers of each skill to show")
    parser.add_argument("--write-card", action="store_true")
    args = parser.parse_args()
    fonts = Fonts.of(args.fonts, held=True)
    with akunu.load(args.model) as model:
        columns = {
            name: evaluate(model, fonts, args.pictures, args.questions, grids)
            for name, grids in (("other sizes", GRIDS), ("sizes of the training", TRAINED))
        }
    found = table(columns)
    print(found)
    for name, scores in columns.items():
        for skill, score in scores.items():
            for question, truth, said in score.wrong[: args.wrong]:
                print(f"{name}: {skill}: {question} {truth!r}, found {said!r}")
    if args.write_card:
        marks = "<!-- evaluation -->\n", "\n<!-- end of evaluation -->"
        before, rest = CARD.read_text().split(marks[0])
        CARD.write_text(f"{before}{marks[0]}{found}{marks[1]}{rest.split(marks[1])[1]}")


if __name__ == "__main__":
    main()
