"""Kernels' texts for a C++ file: what compiles them sees no files, so quoted includes become text."""

from __future__ import annotations

import re
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


class FlattenError(Exception):
    """An include that is not there."""


def flatten(file: Path, folders: list[Path], seen: set[Path]) -> str:
    """The text of `file` with its quoted includes replaced, once each; `seen` gathers every file read."""
    seen.add(file.resolve())
    out = [f'#line 1 "{file.name}"']
    for number, line in enumerate(file.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            out.append("" if line.strip() == "#pragma once" else line)
            continue
        found = next((f for d in [file.parent, *folders] if (f := d / match[1]).is_file()), None)
        if found is None:
            raise FlattenError(
                f'{file}:{number}: include "{match[1]}" is in none of {[str(d) for d in folders]}'
            )
        if found.resolve() not in seen:
            out.append(flatten(found, folders, seen))
        out.append(f'#line {number + 1} "{file.name}"')
    return "\n".join(out)


def literal(text: str) -> str:
    """Raw strings, in pieces that every compiler takes."""
    pieces = [text[i : i + 12000] for i in range(0, len(text), 12000)] or [""]
    return "\n".join(f'R"text({piece})text"' for piece in pieces)


def depfile(output: Path, seen: set[Path]) -> str:
    """Make's rule for what was read."""
    return f"{output}: {' '.join(str(p).replace(' ', chr(92) + ' ') for p in sorted(seen))}\n"
