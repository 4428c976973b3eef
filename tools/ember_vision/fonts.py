"""The fonts that pictures are drawn with: from Debian's packages into a folder that travels.

    apt-get download PACKAGE...              # those of TRAINED and HELD_BACK
    python -m tools.ember_vision.fonts --packages FOLDER --out FOLDER

The fonts keep the characters of ASCII alone. Families that are held back are only for the evaluation. All
are free to use and change, under the SIL Open Font Licence, the Apache Licence, Bitstream's, LaTeX's, or the
GPL with the exception for fonts. No font is part of Akunu. Needs the package fonttools, and dpkg-deb.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

TRAINED = (
    "adf-accanthis", "adf-baskervald", "adf-gillius", "adf-libris", "adf-romande", "adf-universalis",
    "adf-verana", "anonymous-pro", "averia-sans-gwf", "averia-serif-gwf", "cantarell", "cardo", "comfortaa",
    "croscore", "crosextra-carlito", "dejavu-core", "dejavu-extra", "dosis", "ebgaramond", "firacode",
    "freefont-ttf", "hack", "inconsolata", "jetbrains-mono", "jura", "lato", "league-spartan", "liberation2",
    "linuxlibertine", "monofur", "mononoki", "noto-core", "noto-mono", "ocr-a", "oldstandard", "open-sans",
    "play", "quicksand", "roboto-unhinted", "sil-andika", "sil-gentium", "sora", "texgyre", "tuffy",
    "yanone-kaffeesatz",
)  # fmt: skip
HELD_BACK = (
    "b612", "cabin", "courier-prime", "crosextra-caladea", "karla", "paratype", "roboto-slab", "vollkorn",
)  # fmt: skip
"""Debian's packages, without "fonts-" before the names."""

ASCII = [chr(code) for code in range(32, 127)]
_LEFT_OUT = (
    "Math", "Symbol", "Emoji", "Music", "Dingbat", "chess", "Keyboard", "Initials", "LinBiolinum_K",
    "RomandeADFStyle", "Hairline",
)  # fmt: skip
"""In names of fonts without common letters, with capitals alone, or too thin to be read when small."""


@dataclass(frozen=True)
class Fonts:
    """The font files of a folder, `trained` or `held`."""

    paths: tuple[str, ...]

    @classmethod
    def of(cls, folder: Path, *, held: bool = False) -> Fonts:
        paths = sorted(str(path) for path in (folder / ("held" if held else "trained")).iterdir())
        if not paths:
            raise SystemExit(f"{folder} has no fonts: see tools/ember_vision/fonts.py")
        return cls(tuple(paths))

    def draw(self, rng: Random, size: int) -> Any:
        """Any of the fonts, so many pixels high."""
        return _font(rng.choice(self.paths), size)


@lru_cache(maxsize=4096)
def _font(path: str, size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.BASIC)


def _files(packages: Path, name: str) -> Iterator[tuple[str, bytes]]:
    """The fonts of a package that have all of ASCII, cut to it."""
    from fontTools import subset
    from fontTools.ttLib import TTFont

    found = sorted(packages.glob(f"fonts-{name}_*.deb"))
    if not found:
        raise SystemExit(f"{packages} has no package fonts-{name}")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["dpkg-deb", "-x", str(found[0]), folder], check=True)
        paths = sorted(p for p in Path(folder).rglob("*") if p.suffix.lower() in (".ttf", ".otf"))
        latin = [p for p in paths if name != "noto-core" or p.name.split("-")[0] in _NOTO]
        for path in latin:
            font = TTFont(path)
            if any(word in path.name for word in _LEFT_OUT) or not {*map(ord, ASCII)} <= {
                *font.getBestCmap()
            }:
                continue
            options = subset.Options(layout_features=[], name_IDs=[], notdef_outline=True, hinting=False)
            cutter = subset.Subsetter(options)
            cutter.populate(unicodes=map(ord, ASCII))
            cutter.subset(font)
            made = Path(folder) / "made"
            font.save(made)
            yield f"{name}-{path.stem}{path.suffix.lower()}", made.read_bytes()


_NOTO = ("NotoSans", "NotoSerif", "NotoSansDisplay", "NotoSerifDisplay", "NotoSansMono")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--packages", type=Path, required=True, help="folder of Debian's packages")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    for part, names in (("trained", TRAINED), ("held", HELD_BACK)):
        (args.out / part).mkdir(parents=True, exist_ok=True)
        for name in names:
            for file, data in _files(args.packages, name):
                (args.out / part / file).write_bytes(data)


if __name__ == "__main__":
    main()
