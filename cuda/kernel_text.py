"""The interpreter's text inside a C++ file, which NVRTC compiles at run time.

python kernel_text.py --output source.cpp --depfile source.d
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "cmake"))

from texts import depfile, flatten, literal  # noqa: E402


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
