"""Run Metal kernels on NumPy arrays.

    lib = Library.compile("kernels/rmsnorm.metal")
    lib.run("rmsnorm_f16", [x, w, out, params], groups=rows, threads=256, constants={"HAS_WEIGHT": True})

Arrays are copied into memory that ends at an unreadable page, and back after the run.  For
ThreadSanitizer and AddressSanitizer a test calls a function of its own in a child process, see
:func:`in_sanitizer`.
"""

from __future__ import annotations

import ctypes as C
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from children import environment

from . import compiler
from .build import build, sanitizer_library

CompileError = compiler.CompileError

SCHEDULES = {"fifo": 0, "priority": 1, "uniform": 2}
_KINDS = ["buffer", "threadgroup"]  # then the built-in values
_TYPES: dict[str, type] = {
    "bool": np.bool_, "char": np.int8, "uchar": np.uint8, "short": np.int16, "ushort": np.uint16,
    "int": np.int32, "uint": np.uint32, "long": np.int64, "ulong": np.uint64,
    "half": np.float16, "float": np.float32,
    "int8_t": np.int8, "uint8_t": np.uint8, "int16_t": np.int16, "uint16_t": np.uint16,
    "int32_t": np.int32, "uint32_t": np.uint32,
}  # fmt: skip
MAX_BUFFERS = 31


class KernelError(RuntimeError):
    """A kernel failed: out of bounds, diverged, too much threadgroup memory, ..."""


@dataclass(frozen=True)
class Schedule:
    """In what order threads and threadgroups run.

    ``fifo``: in order.  ``priority``: seeded; a SIMD-group runs as far as it can before a lower one
    moves at all, which shows missing barriers best.  ``uniform``: seeded; any lane next.
    """

    kind: str = "fifo"
    seed: int = 0
    workers: int = 0

    def __str__(self) -> str:
        return self.kind if self.kind == "fifo" else f"{self.kind}-{self.seed}"


FIFO = Schedule()
#: What a kernel's test runs by default: in order, and two adversarial orders.
SCHEDULES_DEFAULT = (FIFO, Schedule("priority", 1), Schedule("priority", 2))


class _Binding(C.Structure):
    _fields_ = (("kind", C.c_uint8), ("index", C.c_uint8), ("name", C.c_char_p), ("enabled", C.c_void_p))


class _Param(C.Structure):
    _fields_ = (
        ("binding", _Binding),
        ("writable", C.c_bool),
        ("constant", C.c_bool),
        ("align", C.c_uint32),
        ("size", C.c_uint32),
    )


class _Kernel(C.Structure):
    _fields_ = (
        ("name", C.c_char_p), ("entry", C.c_void_p), ("params", C.POINTER(_Param)), ("n_params", C.c_uint32),
        ("max_threads", C.c_uint32), ("required", C.c_char_p),
    )  # fmt: skip


class _Constant(C.Structure):
    _fields_ = (
        ("name", C.c_char_p), ("type", C.c_char_p), ("index", C.c_uint32), ("size", C.c_uint32),
        ("address", C.c_void_p), ("defined", C.c_void_p),
    )  # fmt: skip


class _Library(C.Structure):
    _fields_ = (
        ("abi", C.c_uint32),
        ("kernels", C.POINTER(_Kernel)),
        ("constants", C.POINTER(_Constant)),
        ("derive", C.c_void_p),
    )


class _Value(C.Structure):
    _fields_ = (("index", C.c_uint32), ("size", C.c_uint32), ("data", C.c_uint8 * 16))


class _Args(C.Structure):
    _fields_ = (
        ("buffer", C.c_void_p * MAX_BUFFERS), ("length", C.c_uint64 * MAX_BUFFERS),
        ("threadgroup_length", C.c_uint32 * MAX_BUFFERS), ("grid", C.c_uint32 * 3), ("group", C.c_uint32 * 3),
    )  # fmt: skip


class _Options(C.Structure):
    _fields_ = (
        ("seed", C.c_uint64), ("schedule", C.c_uint32), ("workers", C.c_uint32),
        ("sync_in", C.c_void_p), ("sync_out", C.c_void_p),
    )  # fmt: skip


_ABI = 3


@dataclass(frozen=True)
class Param:
    """A parameter of a kernel: ``kind`` is "buffer", "threadgroup" or "builtin"."""

    kind: str
    index: int
    name: str
    writable: bool
    optional: bool


@dataclass(frozen=True)
class Kernel:
    """One entry of a library."""

    name: str
    params: tuple[Param, ...]
    max_threads: int
    required: frozenset[int]


def _runtime(sanitizer: str) -> C.CDLL:
    suffix = f"_{sanitizer}" if sanitizer else ""
    rt = C.CDLL(str(build() / f"libmsl_runtime{suffix}.so"), mode=C.RTLD_GLOBAL)
    rt.msl_guarded_alloc.restype = C.c_void_p
    rt.msl_guarded_alloc.argtypes = (C.c_size_t, C.c_int)
    rt.msl_guarded_check.restype = C.c_int64
    rt.msl_guarded_check.argtypes = (C.c_void_p,)
    rt.msl_guarded_free.argtypes = (C.c_void_p,)
    return rt


def _text_file(text: str) -> Path:
    """A file of this text, at a place that depends on nothing else: the cache is keyed by paths too."""
    file = build() / "kernels" / f"text-{hashlib.sha256(text.encode()).hexdigest()[:16]}.metal"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'#line 1 "text.metal"\n{text}')
    return file


def _triple(t: Sequence[int] | int) -> tuple[int, int, int]:
    t = (t,) if isinstance(t, int) else tuple(t)
    return (*t, *(1,) * (3 - len(t)))  # type: ignore[return-value]


class Library:
    """A compiled .metal file."""

    def __init__(self, path: Path, sanitizer: str = "") -> None:
        self.path = path
        self.sanitizer = sanitizer
        self._rt = _runtime(sanitizer)
        self._lib = C.CDLL(str(path))
        self._desc = _Library.in_dll(self._lib, "msl_library")
        if self._desc.abi != _ABI:
            raise RuntimeError(f"{path} was built for ABI {self._desc.abi} of the emulator, this is {_ABI}")
        self._kernels: dict[str, Any] = {}
        self.kernels: dict[str, Kernel] = {}
        i = 0
        while (k := self._desc.kernels[i]).name:
            self._kernels[k.name.decode()] = C.pointer(k)
            params = []
            for j in range(k.n_params):
                p = k.params[j]
                b = p.binding
                kind = _KINDS[b.kind] if b.kind < len(_KINDS) else "builtin"
                params.append(Param(kind, b.index, b.name.decode(), p.writable, bool(b.enabled)))
            required = frozenset(int(x) for x in k.required.split())
            self.kernels[k.name.decode()] = Kernel(k.name.decode(), tuple(params), k.max_threads, required)
            i += 1
        self.constants: dict[str | int, Any] = {}
        i = 0
        while (c := self._desc.constants[i]).name:
            self.constants[c.name.decode()] = c
            self.constants.setdefault(c.index, c)
            i += 1

    @classmethod
    def compile(
        cls,
        source: str | Path,
        *,
        sanitizer: str = "",
        fast_math: bool = False,
        defines: Iterable[str] = (),
        include: Iterable[Path] = (),
        metal_version: int = 310,
    ) -> Library:
        """Compile a .metal file, or MSL text (anything with a newline); cached by content.

        Raises
        ------
        CompileError
            With the compiler's diagnostics.
        """
        options: dict[str, Any] = {
            "runtime_dir": build(), "sanitizer": sanitizer, "fast_math": fast_math, "defines": tuple(defines),
            "include": tuple(include), "metal_version": metal_version,
        }  # fmt: skip
        if isinstance(source, str) and "\n" in source:
            source = _text_file(source)
        return cls(compiler.compile_library(Path(source), **options), sanitizer)

    def _values(self, kernel: Kernel, constants: Mapping[str | int, Any]) -> Any:
        values = (_Value * max(1, len(constants)))()
        given = set()
        for v, (key, value) in zip(values, constants.items(), strict=False):
            if key not in self.constants:
                raise KeyError(f"{self.path.name} has no function constant {key!r}")
            c = self.constants[key]
            raw = np.asarray(value, _TYPES[c.type.decode()]).tobytes()
            v.index, v.size = c.index, len(raw)
            C.memmove(v.data, raw, len(raw))
            given.add(c.index)
        if missing := kernel.required - given:
            raise KeyError(f"{kernel.name} needs the function constants {sorted(missing)}")
        return values

    def run(
        self,
        name: str,
        buffers: Sequence[np.ndarray | bytes | None] | Mapping[int, np.ndarray | bytes],
        *,
        threads: Sequence[int] | int,
        groups: Sequence[int] | int | None = None,
        grid: Sequence[int] | int | None = None,
        threadgroup: Sequence[int] = (),
        constants: Mapping[str | int, Any] | None = None,
        schedule: Schedule = FIFO,
    ) -> None:
        """Run one dispatch; arrays bound to writable parameters are updated in place.

        Parameters
        ----------
        buffers
            By binding index (a sequence: from 0): C-contiguous arrays, or bytes for ``setBytes``. An array
            that is bound twice is one memory.
        threads
            Threads per threadgroup.
        groups, grid
            One of: threadgroups (``dispatchThreadgroups``), or threads (``dispatchThreads``).
        threadgroup
            Bytes of dynamic threadgroup memory by index.
        constants
            Function constants by name or index.

        Raises
        ------
        KernelError
            What the emulator detected, with the threadgroup and, where known, line and buffer.
        """
        kernel = self.kernels[name]
        bound = (
            dict(buffers)
            if isinstance(buffers, Mapping)
            else {i: b for i, b in enumerate(buffers) if b is not None}
        )
        for p in kernel.params:
            if p.kind == "buffer" and p.index not in bound and not p.optional:
                raise KeyError(f"{name}: buffer {p.index} '{p.name}' is not bound")
        args = _Args()
        tpg = _triple(threads)
        if (groups is None) == (grid is None):
            raise TypeError("give groups or grid")
        total = (
            _triple(grid)
            if grid is not None
            else tuple(g * t for g, t in zip(_triple(groups or 1), tpg, strict=True))
        )
        for i in range(3):
            args.group[i], args.grid[i] = tpg[i], total[i]
        for i, n in enumerate(threadgroup):
            args.threadgroup_length[i] = n
        blocks: dict[int, int] = {}
        try:
            for i, b in bound.items():
                data = np.frombuffer(b, np.uint8) if isinstance(b, bytes) else b
                if not data.flags.c_contiguous:
                    raise ValueError(f"buffer {i} is not C-contiguous")
                if (same := next((j for j in blocks if bound[j] is b), None)) is not None:
                    args.buffer[i], args.length[i] = blocks[same], data.nbytes
                    continue
                p = blocks[i] = self._rt.msl_guarded_alloc(data.nbytes, 0)
                C.memmove(p, data.ctypes.data, data.nbytes)
                args.buffer[i], args.length[i] = p, data.nbytes
            constants = constants or {}
            values = self._values(kernel, constants)
            options = _Options(schedule.seed, SCHEDULES[schedule.kind], schedule.workers, None, None)
            error = C.create_string_buffer(2048)
            failed = self._rt.msl_dispatch(
                C.byref(self._desc), self._kernels[name], C.byref(args), values, C.c_uint32(len(constants)),
                C.byref(options), error, C.c_size_t(len(error)),
            )  # fmt: skip
            if failed:
                raise KernelError(error.value.decode())
            for i, p in blocks.items():
                if at := self._rt.msl_guarded_check(p):
                    place = f"{-at} bytes before its start" if at < 0 else f"at byte {at - 1}"
                    raise KernelError(
                        f"{name}: write outside of buffer {i} of {args.length[i]} bytes, {place}"
                    )
            for i, b in bound.items():
                if i in blocks and isinstance(b, np.ndarray) and b.flags.writeable:
                    C.memmove(b.ctypes.data, blocks[i], b.nbytes)
        finally:
            for p in blocks.values():
                self._rt.msl_guarded_free(p)


def lint(source: str | Path, **options: Any) -> list[str]:
    """Diagnostics of a .metal file or of MSL text: warnings, and address spaces as types."""
    if isinstance(source, str) and "\n" in source:
        source = _text_file(source)
    found = compiler.lint(Path(source), **options)
    return re.findall(r"^.*(?:error|warning): .*$", found, flags=re.M)


_CHILD = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("case", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules["case"] = module
spec.loader.exec_module(module)
getattr(module, sys.argv[2])(*json.loads(sys.argv[3]))
"""


TSAN_SUPPRESSIONS = Path(__file__).with_name("tsan_suppressions.txt")


def sanitizer_environment(sanitizer: str) -> dict[str, str]:
    """Environment of a process that loads kernels (or host code) built with a sanitizer."""
    env = environment()
    symbolizer = Path(compiler.clang()).resolve().with_name("llvm-symbolizer")
    common = "abort_on_error=0:symbolize=1" + (
        f":external_symbolizer_path={symbolizer}" if symbolizer.exists() else ""
    )
    env["LD_PRELOAD"] = sanitizer_library(sanitizer)
    env["ASAN_OPTIONS"] = (
        f"{common}:detect_leaks=0:detect_stack_use_after_return=0:handle_segv=1:allocator_may_return_null=1"
    )
    env["UBSAN_OPTIONS"] = f"{common}:print_stacktrace=0"
    env["TSAN_OPTIONS"] = (
        f"{common}:halt_on_error=1:report_signal_unsafe=0:exitcode=66:suppressions={TSAN_SUPPRESSIONS}"
    )
    env["PYTHONMALLOC"] = "malloc"
    env["OMP_NUM_THREADS"] = env["OPENBLAS_NUM_THREADS"] = "1"
    return env


def in_sanitizer(
    sanitizer: str, file: str | Path, function: str, *args: Any, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """Call ``function(*args)`` of a Python file in a child process under "asan" or "tsan".

    The arguments must be JSON.  The child ends with a non-zero status and a report on stderr when
    the sanitizer finds something.
    """
    return _in_child(sanitizer_environment(sanitizer), file, function, args, timeout)


def in_new_process(file: str | Path, function: str, *args: Any, timeout: float = 300) -> None:
    """Call ``function(*args)`` of a Python file where no other test has made objects of the fake device.

    The arguments must be JSON.  What the function raises is an AssertionError here.
    """
    done = _in_child(environment(), file, function, args, timeout)
    assert done.returncode == 0, done.stderr


def _in_child(
    env: dict[str, str], file: str | Path, function: str, args: tuple[Any, ...], timeout: float
) -> subprocess.CompletedProcess[str]:
    build()
    command = [sys.executable, "-c", _CHILD, str(file), function, json.dumps(args)]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout)
