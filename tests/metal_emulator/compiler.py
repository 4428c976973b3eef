"""Compile .metal sources to shared libraries for the CPU executor, cached by content.

Used by ``harness.py`` and, as a program, by the fake Metal device (``newLibraryWithSource:``):

    python compiler.py library SOURCE --runtime-dir DIR [--sanitizer tsan] [--fast-math] [-D A=1]

prints the path of the shared library.  Needs only the standard library.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

if __package__:
    from . import mslpp
else:
    import mslpp  # a program finds what lies beside it

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".cache" / "metal-kernels"
SHIM = HERE / "shim"
RUNTIME = HERE / "runtime"
MINIMUM_CLANG = 16

WARNINGS = [
    "-Wall",
    "-Wno-unknown-attributes",
    "-Wno-unknown-pragmas",
    "-Wno-unused-function",
    "-Wno-unused-const-variable",
    "-Wno-pass-failed",
]
# A half or bfloat operation rounds each time, as on the GPU; locals start as a pattern that reads
# as NaN or garbage, since the GPU promises nothing; vectors convert only where MSL does.
LANGUAGE = [
    "-std=c++17",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-lax-vector-conversions",
    "-Xclang",
    "-ffloat16-excess-precision=none",
    "-Xclang",
    "-fbfloat16-excess-precision=none",
]
CODE = ["-O2", "-fPIC", "-fvisibility=hidden", "-march=x86-64-v3", "-ftrivial-auto-var-init=pattern"]
# What Apple's compiler may assume with math mode "fast", its default.
FAST_MATH = [
    "-DMSL_FAST_MATH",
    "-ffp-contract=fast",
    "-fassociative-math",
    "-freciprocal-math",
    "-ffinite-math-only",
    "-fno-signed-zeros",
    "-fno-trapping-math",
    "-Wno-nan-infinity-disabled",
]
SANITIZERS: dict[str, list[str]] = {
    "": [],
    "asan": [
        "-fsanitize=address,alignment,bounds,shift,integer-divide-by-zero,float-cast-overflow,bool",
        "-fno-sanitize-recover=all",
        "-shared-libsan",
        "-fno-omit-frame-pointer",
        "-g1",
    ],
    "tsan": ["-fsanitize=thread", "-shared-libsan", "-g1"],
}


class CompileError(RuntimeError):
    """The compiler's (or the preprocessor's) diagnostics."""


def _clangs() -> list[str]:
    names = [os.environ["AKUNU_CLANG"]] if "AKUNU_CLANG" in os.environ else []
    names += [f"clang++-{v}" for v in range(23, MINIMUM_CLANG - 1, -1)] + ["clang++"]
    return [path for name in names if (path := shutil.which(name))]


@cache
def clang() -> str:
    """Path of a clang++ of at least version 16.

    ``AKUNU_CLANG`` overrides the search.

    Raises
    ------
    FileNotFoundError
        There is none.
    """
    for path in _clangs():
        out = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        m = re.search(r"clang version (\d+)", out)
        if m and int(m[1]) >= MINIMUM_CLANG:
            return path
    raise FileNotFoundError(
        f"no clang++ >= {MINIMUM_CLANG} found: install clang-19 and libclang-rt-19-dev (Debian),"
        " or set AKUNU_CLANG"
    )


def _run(command: list[str], what: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise CompileError(f"{what}:\n{done.stderr or done.stdout}")
    return done.stdout


def preprocess(
    source: Path, *, defines: tuple[str, ...] = (), include: tuple[Path, ...] = (), metal_version: int = 310
) -> str:
    """Expand a .metal file's own macros and includes, as Apple's preprocessor would."""
    command = [
        clang(),
        "-x",
        "c++",
        "-std=c++17",
        "-E",
        "-undef",
        "-nostdinc",
        "-Wno-pragma-once-outside-header",
    ]
    command += [
        "-D__METAL__=1",
        "-D__METAL_MACOS__=1",
        f"-D__METAL_VERSION__={metal_version}",
        "-D__cplusplus=201703L",
    ]
    command += ["-D__HAVE_BFLOAT__=1", "-isystem", str(SHIM / "preprocess")]
    for d in defines:
        command += ["-D", d]
    for i in include:
        command += ["-I", str(i)]
    return _run([*command, str(source)], f"preprocessing {source.name}")


def _headers() -> bytes:
    """Those that stand for Metal's."""
    files = [p for p in sorted(SHIM.rglob("*")) if p.is_file()] + [RUNTIME / "msl_abi.h"]
    return b"".join(p.read_bytes() for p in files)


@cache
def _surroundings() -> bytes:
    """What a library depends on besides its text: the compiler, and the headers that stand for Metal's."""
    return _run([clang(), "--version"], clang()).encode() + _headers()


def _name(text: bytes, flags: list[str], *options: object) -> str:
    """Of a text as it came, for those who ask for it again: no compiler is started to find its library."""
    programs = [(path, os.stat(path).st_mtime_ns) for path in _clangs()]
    scripts = Path(__file__).read_bytes() + Path(mslpp.__file__).read_bytes()
    parts = (text, repr((flags, options, programs)).encode(), scripts, _headers())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:24]


def _key(cpp: str, flags: list[str], runtime_dir: Path) -> str:
    """Of the code alone: the same kernel may come from its file, or flattened, as a device is given it."""
    code = re.sub(r'^(# \d+ ".*|[ \t]*)\n', "", cpp, flags=re.M)
    parts = (code.encode(), repr(flags).encode(), _surroundings(), str(runtime_dir).encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:24]


def _translate(source: Path, defines: tuple[str, ...], include: tuple[Path, ...], metal_version: int) -> str:
    text = preprocess(source, defines=defines, include=include, metal_version=metal_version)
    try:
        return mslpp.translate(text)
    except mslpp.TranslationError as e:
        raise CompileError(str(e)) from None


def _compile(cpp: str, flags: list[str], stem: Path, runtime_dir: Path, sanitizer: str, name: str) -> None:
    """Compiles to ``stem``.so; the C++ stays beside it, for the sanitizers' reports."""
    cpp_file, temporary = stem.with_suffix(".cpp"), stem.with_suffix(".new")
    cpp_file.write_text(cpp)
    suffix = f"_{sanitizer}" if sanitizer else ""
    command = [clang(), *flags, "-shared", "-I", str(SHIM), "-I", str(RUNTIME), str(cpp_file)]
    command += [
        "-o",
        str(temporary),
        f"-L{runtime_dir}",
        f"-lmsl_runtime{suffix}",
        f"-Wl,-rpath,{runtime_dir}",
    ]
    try:
        _run(command, f"compiling {name}")
        os.replace(temporary, stem.with_suffix(".so"))
    finally:
        temporary.unlink(missing_ok=True)


def compile_library(
    source: Path,
    *,
    runtime_dir: Path,
    sanitizer: str = "",
    fast_math: bool = False,
    defines: tuple[str, ...] = (),
    include: tuple[Path, ...] = (),
    metal_version: int = 310,
    cache_dir: Path | None = None,
) -> Path:
    """Shared library of one .metal file.

    Parameters
    ----------
    source
        The .metal file.
    runtime_dir
        Where ``libmsl_runtime[_asan|_tsan].so`` lie.
    sanitizer
        ``""``, ``"asan"`` (with UBSan's alignment, bounds, shift, division checks) or ``"tsan"``.
    fast_math
        Math mode "fast": relaxed accuracy and no NaN or infinity promised.

    Raises
    ------
    CompileError
        With the diagnostics, which name the .metal file's lines.
    """
    flags = [*LANGUAGE, *CODE, *WARNINGS, *(FAST_MATH if fast_math else []), *SANITIZERS[sanitizer]]
    directory = cache_dir or CACHE
    directory.mkdir(parents=True, exist_ok=True)
    text = source.read_bytes()
    options = flags, directory, runtime_dir, sanitizer, defines, include, metal_version
    if b'#include "' in text:  # other files may change
        return _library(source, *options)
    known = directory / f"{_name(text, flags, str(runtime_dir), defines, metal_version)}.known"
    if known.exists() and (library := directory / known.read_text()).is_file():
        return library
    library = _library(source, *options)
    known.write_text(library.name)
    return library


def _library(
    source: Path,
    flags: list[str],
    directory: Path,
    runtime_dir: Path,
    sanitizer: str,
    defines: tuple[str, ...],
    include: tuple[Path, ...],
    metal_version: int,
) -> Path:
    """The library in the cache, compiled if it is not there."""
    cpp = _translate(source, defines, include, metal_version)
    stem = directory / _key(cpp, flags, runtime_dir)
    library = stem.with_suffix(".so")
    if library.exists():
        return library
    with stem.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be compiling the same
        if not library.exists():
            _compile(cpp, flags, stem, runtime_dir, sanitizer, source.name)
    return library


def ir(
    source: Path, *, defines: tuple[str, ...] = (), include: tuple[Path, ...] = (), metal_version: int = 310
) -> str:
    """LLVM IR of one .metal file, optimised as its library with math mode "fast": constants are unknown.

    Everything is inlined into its kernel, as GPUs have it.
    """
    cpp = _translate(source, defines, include, metal_version)
    command = [clang(), *LANGUAGE, *CODE, *WARNINGS, *FAST_MATH, "-mllvm", "-inline-threshold=1000000"]
    command += ["-S", "-emit-llvm", "-x", "c++", "-I", str(SHIM), "-I", str(RUNTIME), "-o", "-", "-"]
    done = subprocess.run(command, input=cpp, capture_output=True, text=True)
    if done.returncode:
        raise CompileError(f"compiling {source.name}:\n{done.stderr}")
    return done.stdout


def lint(
    source: Path,
    *,
    defines: tuple[str, ...] = (),
    include: tuple[Path, ...] = (),
    metal_version: int = 310,
    address_spaces: bool = True,
) -> str:
    """Diagnostics of a .metal file, empty when clean: warnings and, by default, address spaces.

    With address spaces every pointer's ``device``, ``constant``, ``threadgroup`` is a type: a wrong
    or missing one is an error.  One false positive is known: copying a whole *struct* from or to
    such memory, since C++'s implicit assignment has no address space.
    """
    try:
        cpp = _translate(source, defines, include, metal_version)
    except CompileError as e:
        return str(e)
    if address_spaces:  # the tables call the kernels with plain pointers
        cpp = cpp[: cpp.index('# 1 "<kernel tables>"')]
    command = [
        clang(),
        "-x",
        "c++",
        *LANGUAGE,
        *WARNINGS,
        "-Wextra",
        "-Wconditional-uninitialized",
        "-Wshadow",
    ]
    command += [
        "-Wno-unused-parameter",
        "-Wno-unused-template",
        "-Wno-undefined-internal",
        "-march=x86-64-v3",
        "-fsyntax-only",
    ]
    command += ["-Wpre-c++17-compat"] if metal_version < 400 else []
    if address_spaces:
        command += ["-DMSL_LINT", "-Wno-unused-variable"]
    command += ["-I", str(SHIM), "-I", str(RUNTIME), "-"]
    done = subprocess.run(command, input=cpp, capture_output=True, text=True)
    return done.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["library", "lint", "clang"])
    parser.add_argument("source", type=Path, nargs="?")
    parser.add_argument("--runtime-dir", type=Path)
    parser.add_argument("--cache-dir", type=Path)
    parser.add_argument("--sanitizer", default="", choices=sorted(SANITIZERS))
    parser.add_argument("--fast-math", action="store_true")
    parser.add_argument("--metal-version", type=int, default=310)
    parser.add_argument("-D", dest="defines", action="append", default=[])
    parser.add_argument("-I", dest="include", action="append", default=[], type=Path)
    a = parser.parse_args()
    try:
        if a.action == "clang":
            print(clang())
            return 0
        if a.source is None:
            parser.error(f"{a.action} needs a source")
        if a.action == "lint":
            found = lint(
                a.source, defines=tuple(a.defines), include=tuple(a.include), metal_version=a.metal_version
            )
            sys.stderr.write(found)
            return 1 if found else 0
        path = compile_library(
            a.source,
            runtime_dir=a.runtime_dir,
            sanitizer=a.sanitizer,
            fast_math=a.fast_math,
            defines=tuple(a.defines),
            include=tuple(a.include),
            metal_version=a.metal_version,
            cache_dir=a.cache_dir,
        )
    except (CompileError, FileNotFoundError) as e:
        sys.stderr.write(f"{e}\n")
        return 1
    print(path, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
