"""The interpreter's text inside a C++ file, which NVRTC compiles at run time.

python -m tools.kernel_text --output source.cpp --depfile source.d
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tools.texts import depfile, flatten, literal

ROOT = Path(__file__).resolve().parents[1]


def source(seen: set[Path]) -> str:
    """The interpreter and all that it includes."""
    return flatten(ROOT / "cuda/kernels/interpreter.cu", [ROOT / "cpp", ROOT], seen) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", required=True, type=Path)
    parser.add_argument("--depfile", type=Path)
    a = parser.parse_args()
    seen: set[Path] = set()
    text = source(seen)
    a.output.write_text(
        '#include "cuda/host/compiler.h"\n\n'
        f"namespace akunu::cuda {{\nstd::string_view kernel_source() {{\n    return {literal(text)};\n}}\n"
        "}  // namespace akunu::cuda\n"
    )
    if a.depfile:
        a.depfile.write_text(depfile(a.output, seen))


if __name__ == "__main__":
    main()
