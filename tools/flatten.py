"""Turn .metal files into self-contained texts inside one C++ file.

    python -m tools.flatten --compiler=c++ --output sources.cpp --depfile sources.d -I DIR FILE.metal ...

`newLibraryWithSource:` sees no files, so quoted includes are replaced by their text, once each. The C++ file
also lists the functions of each text, as the preprocessor leaves them: the host then compiles only the texts
that it needs.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

from tools.texts import FlattenError, depfile, flatten, literal

ANGLE = re.compile(r"^\s*#\s*include\s*<.*$", re.MULTILINE)
HOST_NAME = re.compile(r'host_name\s*\(\s*((?:"[^"]*"\s*)+)\)')
KERNEL = re.compile(r"(?:\bkernel|\[\[\s*kernel\b[^\]]*\]\])\s+(?:\[\[[^\]]*\]\]\s*)*void\s+(\w+)\s*\(")


def functions(text: str, name: str, compiler: list[str]) -> list[str]:
    """Names of the kernels in a text, after its macros are expanded."""
    command = [*compiler, "-E", "-P", "-x", "c++", "-D__METAL_VERSION__=310", "-D__METAL__=1", "-"]
    done = subprocess.run(command, input=ANGLE.sub("", text), capture_output=True, text=True)
    if done.returncode:
        raise FlattenError(f"{name}: {done.stderr}")
    names = {"".join(re.findall(r'"([^"]*)"', m)) for m in HOST_NAME.findall(done.stdout)}
    for match in KERNEL.finditer(done.stdout):
        if not done.stdout[: match.start()].rstrip().endswith(">"):  # a template is no function
            names.add(match[1])
    return sorted(names)


def generate(files: list[Path], folders: list[Path], compiler: list[str], seen: set[Path]) -> str:
    """The C++ file; raises FlattenError, also when two files have a function of one name."""
    out = ['#include "metal/host/kernel_sources.h"', "", "namespace akunu::metal {", "namespace {"]
    rows, owner = [], dict[str, str]()
    for i, file in enumerate(files):
        own: set[Path] = set()
        text = flatten(file, folders, own) + "\n"
        seen |= own
        names = functions(text, str(file), compiler)
        for name in names:
            if owner.setdefault(name, file.name) != file.name:
                raise FlattenError(f"function '{name}' is in {owner[name]} and in {file.name}")
        listed = ", ".join(f'"{name}"' for name in names)
        out.append(f"constexpr std::string_view text{i} =\n{literal(text)};")
        out.append(f"constexpr std::array<std::string_view, {len(names)}> functions{i}{{{listed}}};")
        rows.append(f'    {{"{file.stem}", text{i}, functions{i}}},')
    out.append(f"constexpr std::array<KernelSource, {len(rows)}> kSources{{{{")
    out += [*rows, "}};", "}  // namespace"]
    out += [
        "std::span<const KernelSource> kernel_sources() { return kSources; }",
        "}  // namespace akunu::metal",
        "",
    ]
    return "\n".join(out)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("-I", dest="folders", action="append", default=[], type=Path)
    parser.add_argument("--compiler", required=True, nargs="+", help="C++ compiler, for its preprocessor")
    parser.add_argument("--output", required=True, type=Path)
    parser.add_argument("--depfile", type=Path)
    a = parser.parse_args()
    seen: set[Path] = set()
    try:
        text = generate(a.files, a.folders, a.compiler, seen)
    except FlattenError as e:
        print(f"flatten.py: {e}", file=sys.stderr)
        return 1
    a.output.write_text(text)
    if a.depfile:
        a.depfile.write_text(depfile(a.output, seen))
    return 0


if __name__ == "__main__":
    sys.exit(main())
