"""Translate preprocessed MSL to C++ for the CPU executor.

The kernel text is kept; only what C++ cannot express is rewritten: kernel signatures' attributes,
threadgroup variables, function constants, and explicit instantiations.  A table of kernels with
their bindings is appended; parameter *types* are left to C++ (``mslrt::describe``), so this file
never parses types.

The input is the output of ``clang -E`` with the headers of ``shim/preprocess``: user macros are
expanded, comments are gone, ``# line`` markers keep diagnostics on the source file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

BUILTINS = {
    "thread_position_in_grid": "kThreadPositionInGrid",
    "thread_position_in_threadgroup": "kThreadPositionInThreadgroup",
    "threadgroup_position_in_grid": "kThreadgroupPositionInGrid",
    "thread_index_in_threadgroup": "kThreadIndexInThreadgroup",
    "thread_index_in_simdgroup": "kThreadIndexInSimdgroup",
    "simdgroup_index_in_threadgroup": "kSimdgroupIndexInThreadgroup",
    "simdgroups_per_threadgroup": "kSimdgroupsPerThreadgroup",
    "threads_per_threadgroup": "kThreadsPerThreadgroup",
    "threadgroups_per_grid": "kThreadgroupsPerGrid",
    "threads_per_grid": "kThreadsPerGrid",
    "threads_per_simdgroup": "kThreadsPerSimdgroup",
    "dispatch_threads_per_threadgroup": "kDispatchThreadsPerThreadgroup",
    "thread_index_in_quadgroup": "kThreadIndexInQuadgroup",
    "quadgroup_index_in_threadgroup": "kQuadgroupIndexInThreadgroup",
}
IDENT = r"[A-Za-z_]\w*"
WORD = rf"\b{IDENT}"  # not the suffix of a number
VECTOR = r"(?:b?float|half|u?int|u?short|u?char|u?long|bool)[234]"
CONSTANT_SPEC = r"\b(?:static\s+)?constant\s+(?:(?:static|const|constexpr)\s+)*"


class TranslationError(SyntaxError):
    """MSL that the emulator refuses; the message starts with ``file:line``."""


@dataclass
class Kernel:
    """One entry of the library: a kernel function or an instantiation of a kernel template."""

    name: str
    expression: str
    base: str


@dataclass
class Signature:
    """What the text of a kernel's definition tells."""

    bindings: list[tuple[str, int, str, str | None, bool]]  # kind, index, name, switch, constant space
    max_threads: int


def _close(s: str, i: int, opening: str, closing: str) -> int:
    """Index just behind the bracket that closes ``s[i]``."""
    depth = 0
    while i < len(s):
        depth += (s[i] == opening) - (s[i] == closing)
        i += 1
        if depth == 0:
            return i
    raise TranslationError(f"unbalanced {opening}")


def _split(s: str) -> list[str]:
    """Split at the commas outside of brackets."""
    out, depth, current = [], 0, ""
    for ch in s:
        depth += ch in "(<[{"
        depth -= ch in ")>]}"
        if ch == "," and depth == 0:
            out.append(current)
            current = ""
        else:
            current += ch
    return out + ([current] if current.strip() else [])


def _keep_lines(text: str) -> str:
    return "\n" * text.count("\n")


class Translator:
    """Translates one library."""

    def __init__(self, text: str) -> None:
        self.s = re.sub(r"^[ \t]*#pragma msl_include (\w+)", r"#include <\1>", text, flags=re.M)
        self.original = self.s
        self.edits: list[tuple[int, int, str]] = []
        self.kernels: list[Kernel] = []
        self.signatures: dict[str, Signature] = {}
        self.constants: list[tuple[str, str, str]] = []  # name, index expression, type
        self.derived: list[tuple[str, str]] = []  # name, expression
        self.bodies: dict[str, set[str]] = {}  # identifiers by function

    # ---- positions ---------------------------------------------------------------------------

    def where(self, pos: int) -> str:
        """``file:line`` of a position, from the line markers."""
        line, file, number = 0, "?", 0
        for text in self.s[: pos + 1].split("\n"):
            line += 1
            if m := re.match(r'# (\d+) "([^"]*)"', text):
                file, number, line = m[2], int(m[1]), 0
        return f"{file}:{number + max(line, 1) - 1}"

    def fail(self, pos: int, message: str) -> TranslationError:
        return TranslationError(f"{self.where(pos)}: error: {message}")

    def inside(self, pos: int, spans: list[tuple[int, int]]) -> bool:
        return any(a <= pos < b for a, b in spans)

    # ---- the passes --------------------------------------------------------------------------

    def run(self) -> str:
        self.reject_traps()
        self.find_functions()
        instantiations = self.find_instantiations()
        heads = self.find_kernels(instantiations)
        self.rewrite_threadgroup_variables(heads)
        self.rewrite_constants()
        self.rewrite_constructors()
        for a, b, replacement in sorted(self.edits, reverse=True):
            self.s = self.s[:a] + replacement + self.s[b:]
        return self.s + "\n" + self.tables()

    def reject_traps(self) -> None:
        """Casts that mean something else to clang: it reinterprets a vector's bits, MSL converts."""
        for m in re.finditer(rf"\(\s*{VECTOR}\s*\)\s*[\w(]", self.s):
            # `sizeof(float4) x` and a parameter list `f(float4) const` are no casts
            before = self.s[: m.start()].rstrip()
            if re.search(r"(sizeof|alignof|decltype)$", before):
                continue
            raise self.fail(m.start(), f"use a functional cast for vectors: '{m[0][:-1].strip()}'")
        for m in re.finditer(rf"\b(?:static_cast|reinterpret_cast)\s*<\s*{VECTOR}\s*>", self.s):
            raise self.fail(m.start(), f"use a functional cast for vectors: '{m[0]}'")

    def find_functions(self) -> None:
        """Identifiers used by each function or struct, to know which constants a kernel needs."""
        for m in re.finditer(rf"\b({IDENT})\s*\(", self.s):
            if m[1] in ("if", "for", "while", "switch", "return"):
                continue
            end = _close(self.s, m.end() - 1, "(", ")")
            body = re.compile(
                r"\s*(?:const|thread|device|constant|threadgroup|\s)*(?:\[\[.*?\]\]\s*)?\{"
            ).match(self.s, end)
            if body:
                stop = _close(self.s, body.end() - 1, "{", "}")
                self.bodies.setdefault(m[1], set()).update(re.findall(WORD, self.s[m.end() : stop]))
        for m in re.finditer(rf"\bstruct\s+({IDENT})[^;{{}}()]*\{{", self.s):
            stop = _close(self.s, m.end() - 1, "{", "}")
            self.bodies.setdefault(m[1], set()).update(re.findall(WORD, self.s[m.end() : stop]))

    def find_instantiations(self) -> list[tuple[int, int]]:
        """``template [[host_name("x")]] kernel void f<...>(...);`` and the ``decltype`` form."""
        spans = []
        for m in re.finditer(r"\btemplate\s*\[\[\s*host_name\s*\(((?:\s*\"\w*\")+)\s*\)\s*\]\]", self.s):
            end = self.s.index(";", m.end())
            hidden = re.sub(
                r"decltype\s*\((?:[^()]|\([^()]*\))*\)", lambda x: " " * len(x[0]), self.s[m.end() : end]
            )
            f = re.search(rf"({IDENT})\s*<", hidden)
            if not f:
                raise self.fail(m.start(), "an instantiation names a template with arguments: f<...>")
            start = m.end() + f.start(1)
            stop = _close(self.s, self.s.index("<", start), "<", ">")
            name = "".join(re.findall(r'"(\w*)"', m[1]))
            self.kernels.append(Kernel(name, " ".join(self.s[start:stop].split()), f[1]))
            self.edits.append((m.start(), end + 1, _keep_lines(self.s[m.start() : end])))
            spans.append((m.start(), end + 1))
        return spans

    def find_kernels(self, skip: list[tuple[int, int]]) -> list[tuple[int, int]]:
        heads = []
        attribute = r"\[\[(?:[^\[\]]|\[[^\[\]]*\])*\]\]"
        pattern = rf"((?:{attribute}\s*)*)(\bkernel\b\s*)?((?:{attribute}\s*)*)\bvoid\s+({IDENT})\s*\("
        for m in re.finditer(pattern, self.s):
            attributes = m[1] + m[3]
            if not m[2] and not re.search(r"\bkernel\b", attributes):
                continue
            if self.inside(m.start(), skip):
                continue
            end = _close(self.s, m.end() - 1, "(", ")")
            if not re.compile(r"\s*\{").match(self.s, end):
                continue  # a declaration
            heads.append((m.start(), end))
            if attributes.strip():
                for a in re.finditer(attribute, self.s[m.start() : m.start(4)]):
                    self.edits.append((m.start() + a.start(), m.start() + a.end(), _keep_lines(a[0])))
            for a in re.finditer(attribute, self.s[m.end() : end]):
                self.edits.append((m.end() + a.start(), m.end() + a.end(), _keep_lines(a[0]) or " "))
            limit = re.search(r"max_total_threads_per_threadgroup\s*\(\s*(\d+)\s*\)", attributes)
            name = m[4]
            self.signatures[name] = Signature(
                self.parse_bindings(_split(self.s[m.end() : end - 1]), m.start()),
                int(limit[1]) if limit else 0,
            )
            is_template = re.search(r"template\s*<[^;{}]*>\s*$", self.s[: m.start()].rstrip())
            if not is_template:
                self.kernels.append(Kernel(name, name, name))
        return heads

    def index_of(self, text: str) -> int | None:
        """Index that an attribute names: a number, or an enumerator whose value is written out."""
        if text.isdigit():
            return int(text)
        value = re.search(rf"\benum\b[^{{}};]*\{{[^{{}}]*\b{text}\s*=\s*(\d+)\s*[,}}]", self.s)
        return int(value[1]) if value else None

    def parse_bindings(self, params: list[str], pos: int) -> list[tuple[str, int, str, str | None, bool]]:
        result = []
        used: dict[str, set[int]] = {"buffer": set(), "threadgroup": set()}
        for p in params:
            for kind, text in re.findall(r"\b(buffer|threadgroup)\s*\(\s*(\w+)\s*\)", p):
                index = self.index_of(text)
                if index is None:
                    continue
                if index in used[kind]:
                    raise self.fail(pos, f"{kind}({index}) is bound twice")
                used[kind].add(index)
        for p in params:
            attrs = " ".join(re.findall(r"\[\[(.*?)\]\]", p, flags=re.S))
            bare = re.sub(r"\[\[.*?\]\]", "", p, flags=re.S).strip()
            name = (re.findall(WORD, bare) or ["?"])[-1]
            switch = re.search(rf"\bfunction_constant\s*\(\s*({IDENT})\s*\)", attrs)
            words = [
                w
                for w in re.findall(WORD, attrs)
                if w != "function_constant" and (not switch or w != switch[1])
            ]
            if words and words[0] in BUILTINS:
                result.append((BUILTINS[words[0]], 0, name, None, False))
                continue
            slot = "threadgroup" if re.match(r"(?:const\s+)?threadgroup\b", bare) else "buffer"
            if words and words[0] != slot:
                raise self.fail(pos, f"unknown attribute [[{attrs.strip()}]] of parameter '{name}'")
            if not re.search(r"[*&]", bare):
                raise self.fail(pos, f"parameter '{name}' needs an attribute")
            if slot == "buffer" and not re.search(r"\b(device|constant)\b", bare):
                raise self.fail(pos, f"parameter '{name}' needs an address space")
            number = re.search(rf"\b{slot}\s*\(\s*(\w+)\s*\)", attrs)
            given = self.index_of(number[1]) if number else None
            if words and given is None:
                raise self.fail(
                    pos,
                    f"parameter '{name}': the index in [[{attrs.strip()}]] must be a number or an enumerator",
                )
            index = given if given is not None else next(i for i in range(64) if i not in used[slot])
            used[slot].add(index)
            if index > 30:
                raise self.fail(pos, f"{slot}({index}): the highest index is 30")
            kind = "kThreadgroup" if slot == "threadgroup" else "kBuffer"
            result.append(
                (kind, index, name, switch[1] if switch else None, bool(re.search(r"\bconstant\b", bare)))
            )
        return result

    def rewrite_threadgroup_variables(self, heads: list[tuple[int, int]]) -> None:
        """``threadgroup T a[N], b;`` becomes references into the threadgroup's arena."""
        kernel_of = []
        for _, e in heads:
            body = self.s.index("{", e)
            kernel_of.append((body, _close(self.s, body, "{", "}"), [0]))
        pattern = (
            rf"\bthreadgroup\s+((?:alignas\s*\([^)]*\)\s*)?[A-Za-z_][\w:]*(?:\s*<[^;{{}}()]*?>)?)\s+"
            rf"({IDENT}\s*(?:\[[^;]*?\]\s*)*(?:,[^;()=]*)?);"
        )
        for m in re.finditer(pattern, self.s):
            if self.inside(m.start(), heads):
                continue
            owner = next((k for k in kernel_of if k[0] <= m.start() < k[1]), None)
            if owner is None:
                raise self.fail(m.start(), "threadgroup variables must be declared in a kernel function")
            out = ""
            for d in _split(m[2]):
                name = re.match(rf"\s*({IDENT})", d)
                assert name
                n = owner[2][0]
                owner[2][0] += 1
                t = f"msl_threadgroup_{n}"
                out += (
                    f"typedef threadgroup {m[1]} {t}{d[name.end() :].rstrip()}; "
                    f"{t}& {name[1]} = *({t}*)mslrt::msl_threadgroup_static({n}, sizeof({t})); "
                )
            self.edits.append((m.start(), m.end(), out + _keep_lines(m[0])))
        initialised = re.search(rf"\bthreadgroup\s+[\w:<>, ]+\s+{IDENT}\s*(?:\[[^;\]]*\]\s*)*=[^=]", self.s)
        if initialised and not re.search(r"[*&]", initialised[0]):
            raise self.fail(initialised.start(), "a threadgroup variable cannot have an initializer")

    def rewrite_constants(self) -> None:
        """Function constants become thread-local variables; what is computed from them follows."""
        for m in re.finditer(
            rf"{CONSTANT_SPEC}({IDENT})\s+({IDENT})\s*\[\[\s*function_constant\s*\(([^\]]*)\)\s*\]\]\s*;",
            self.s,
        ):
            self.edits.append(
                (
                    m.start(),
                    m.end(),
                    f"static thread_local {m[1]} {m[2]}; static thread_local bool msl_defined_{m[2]};"
                    + _keep_lines(m[0]),
                )
            )
            self.constants.append((m[2], m[3].strip(), m[1]))
        lazy = {name for name, _, _ in self.constants}
        for m in re.finditer(r"\bis_function_constant_defined\s*\(\s*(\w+)\s*\)", self.s):
            self.edits.append((m.start(), m.end(), "msl_defined_" + m[1]))
        for m in re.finditer(rf"{CONSTANT_SPEC}({IDENT})\s+({IDENT})\s*=\s*([^;]*);", self.s):
            if not lazy & set(re.findall(WORD, m[3])):
                continue
            lazy.add(m[2])
            expression = re.sub(r"\bis_function_constant_defined\s*\(\s*(\w+)\s*\)", r"msl_defined_\1", m[3])
            self.bodies[m[2]] = set(re.findall(WORD, m[3]))
            self.edits = [e for e in self.edits if not m.start() <= e[0] < m.end()]
            self.edits.append((m.start(), m.end(), f"static thread_local {m[1]} {m[2]};" + _keep_lines(m[0])))
            self.derived.append((m[2], f"{m[1]}({expression})"))

    def rewrite_constructors(self) -> None:
        """``vec<T, N>(...)`` and the constructors of its aliases, which clang cannot parse."""
        aliases = set()
        vector = rf"(?:(?:metal::)?{VECTOR}|(?:metal::)?vec\s*<[^;<>]*>)"
        for m in re.finditer(rf"\busing\s+({IDENT})\s*=\s*(?:typename\s+)?{vector}\s*;", self.s):
            aliases.add(m[1])
        for m in re.finditer(rf"\btypedef\s+{vector}\s+({IDENT})\s*;", self.s):
            aliases.add(m[1])
        for m in re.finditer(r"\b(?:metal::)?vec\s*<", self.s):
            stop = _close(self.s, m.end() - 1, "<", ">")
            if re.compile(r"\s*\(").match(self.s, stop):
                self.edits.append((m.start(), m.start(), "metal::detail::make<"))
                self.edits.append((stop, stop, ">"))
        for alias in aliases:
            for m in re.finditer(rf"(?<![\w:.>])(?:typename\s+)?({alias})\s*(?=\()", self.s):
                self.edits.append((m.start(), m.end(), f"metal::detail::make<{alias}>"))

    # ---- what is appended --------------------------------------------------------------------

    def required(self, base: str) -> list[str]:
        """Function constants reachable from a kernel and never guarded by a defined-test."""
        guarded = set(re.findall(r"is_function_constant_defined\s*\(\s*(\w+)\s*\)", self.original))
        seen: set[str] = set()
        todo = [base]
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            todo += [
                u
                for u in self.bodies.get(name, ())
                if u in self.bodies or any(u == c[0] for c in self.constants)
            ]
        return [index for name, index, _ in self.constants if name in seen and name not in guarded]

    def tables(self) -> str:
        out = ['# 1 "<kernel tables>"']
        out += [f"#undef {k}" for k in ("kernel", "device", "constant", "thread", "threadgroup")]
        rows = []
        for i, k in enumerate(self.kernels):
            if k.base not in self.signatures:
                raise TranslationError(f"error: no kernel template '{k.base}' for host_name(\"{k.name}\")")
            sig = self.signatures[k.base]
            switches = {b[3] for b in sig.bindings if b[3]}
            out += [f"static bool msl_switch_{i}_{s}() {{ return {s}; }}" for s in sorted(switches)]
            bindings = ", ".join(
                f'{{mslrt::{kind}, {index}, "{name}", {f"msl_switch_{i}_{switch}" if switch else "nullptr"}}}'
                for kind, index, name, switch, _ in sig.bindings
            )
            spaces = ", ".join("true" if b[4] else "false" for b in sig.bindings)
            out.append(
                f"static constexpr mslrt::Binding msl_bindings_{i}[] = "
                f"{{{bindings or '{mslrt::kBuffer, 0, nullptr, nullptr}'}}};"
            )
            out.append(f"static constexpr bool msl_spaces_{i}[] = {{{spaces or 'false'}}};")
            out.append(
                f"static constexpr auto msl_params_{i} = "
                f"mslrt::describe(&{k.expression}, msl_bindings_{i}, msl_spaces_{i});"
            )
            out.append(f"static void msl_entry_{i}() {{ mslrt::call(&{k.expression}, msl_bindings_{i}); }}")
            needs = " " + "".join(f"{index} " for index in self.required(k.base))
            rows.append(
                f'{{"{k.name}", msl_entry_{i}, msl_params_{i}.p, {len(sig.bindings)}, '
                f'{sig.max_threads}, "{needs}"}}'
            )
        out.append(f"static const mslrt::KernelDesc msl_kernels[] = {{{', '.join([*rows, '{}'])}}};")
        rows = []
        for name, index, type_name in self.constants:
            rows.append(
                f'{{"{name}", "{type_name}", (unsigned)({index}), sizeof({name}), '
                f"[]() -> void* {{ return (void*)&{name}; }}, "
                f"[]() -> bool* {{ return &msl_defined_{name}; }}}}"
            )
        out.append(f"static const mslrt::ConstantDesc msl_constants[] = {{{', '.join([*rows, '{}'])}}};")
        derive = " ".join(f"{name} = {expression};" for name, expression in self.derived)
        out.append(f"MSL_NO_SANITIZE static void msl_derive() {{ {derive} }}")
        out.append(
            'extern "C" __attribute__((visibility("default"))) const mslrt::LibraryDesc msl_library = '
            "{mslrt::kAbi, msl_kernels, msl_constants, msl_derive};"
        )
        return "\n".join(out) + "\n"


def translate(preprocessed: str) -> str:
    """C++ for one preprocessed MSL library.

    Raises
    ------
    TranslationError
        The text uses something the emulator refuses; the message names file and line.
    """
    return Translator(preprocessed).run()
