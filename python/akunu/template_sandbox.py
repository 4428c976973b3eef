"""A Jinja environment for templates that come from strangers: no access, no writes, and no runaway work.

Jinja's immutable sandbox keeps a template from reaching into Python. What it lacks is limits: a template of
one line can loop for a day or ask for a gigabyte. Here every loop pass and every call costs a step, every
character written (also inside ``{% set %}`` blocks and macros) is counted, results of operators, calls and
assignments are measured before they can be doubled again, and a clock is read along the way. The loop passes
are counted by a call that is put into each loop's body after parsing; it names an attribute of the
environment, which a template has no way to replace.

Filters and string methods are those that chat templates use, with checks on the ones that can grow their
input.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import nodes
from jinja2.environment import Template
from jinja2.exceptions import TemplateSyntaxError
from jinja2.ext import Extension, LoopControlExtension
from jinja2.filters import FILTERS
from jinja2.parser import Parser
from jinja2.runtime import Context, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace, pass_context
from jinja2.visitor import NodeTransformer

from akunu.errors import TemplateError
from akunu.template_limits import Budget, Limits

__all__ = ["compile_template", "render"]


_budget: ContextVar[Budget] = ContextVar("akunu_template_budget")


@contextmanager
def _limited(limits: Limits, now: datetime) -> Iterator[Budget]:
    budget = Budget(limits, now)
    token = _budget.set(budget)
    try:
        yield budget
    except TemplateError:
        raise
    except TemplateSyntaxError as error:
        raise TemplateError(
            f"the chat template does not compile: line {error.lineno}: {error.message}"
        ) from error
    except Exception as error:  # a template can raise anything: undefined values, wrong types, deep recursion
        raise TemplateError(f"the chat template failed: {type(error).__name__}: {error}") from error
    finally:
        _budget.reset(token)


# -- What templates may use.

_PLAIN_FILTERS = (  # noqa: SIM905  # a list of words reads better as one
    "abs attr capitalize count d default dictsort e escape first float forceescape groupby int items last "
    "length list lower map max min reject rejectattr reverse round safe select selectattr sort striptags "
    "title trim truncate unique upper urlencode wordcount"
).split()
_STRING_METHODS = frozenset(
    (  # noqa: SIM905
        "capitalize casefold count endswith find format index isalnum isalpha isascii isdecimal isdigit "
        "islower isnumeric isspace istitle isupper join lower lstrip partition removeprefix removesuffix "
        "replace rfind rindex rpartition rsplit rstrip split splitlines startswith strip swapcase title upper"
    ).split()
)
_OPAQUE = (int, float, complex, bytes, bytearray)


def _raise_exception(message: object = "") -> NoReturn:
    raise TemplateError(f"the chat template refuses the messages: {str(message)[:1000]}")


def _strftime_now(form: str) -> str:
    # Widths such as %999999999d are a GNU extension that allocates.
    if len(form) > 200 or re.search(r"%[^a-zA-Z%]*\d", form):
        raise TemplateError(f"the chat template asks for the time in the form {form[:200]!r}")
    return _budget.get().now.strftime(form)


def _range(*bounds: int) -> range:
    values = range(*bounds)
    if len(values) > 100_000:
        raise TemplateError(f"the chat template asks for range{bounds}; the limit is 100000 values")
    return values


def _string(value: Any) -> str:
    return str(_budget.get().measured(value))


def _concat(*parts: Any) -> str:
    texts = [_string(part) for part in parts]
    _budget.get().fits(sum(map(len, texts)))
    return "".join(texts)


def _replace(value: Any, old: str, new: str, count: int | None = None) -> str:
    text, old, new = _string(value), str(old), str(new)
    found = text.count(old)
    if count is not None and count >= 0:
        found = min(found, count)
    _budget.get().fits(len(text) + found * (len(new) - len(old)))
    return text.replace(old, new, found)


def _join(value: Any, d: str = "", attribute: str | int | None = None) -> str:
    budget = _budget.get()
    parts = []
    total = 0
    for item in value:
        if attribute is not None:
            item = item[attribute]
        parts.append(_string(item))
        total += len(parts[-1]) + len(d)
        budget.fits(total)
    return str(d).join(parts)


# String methods whose result can be far larger than their arguments. None of them takes keywords.
_BOUNDED_METHODS: dict[str, Callable[..., str]] = {
    "replace": _replace,
    "join": lambda separator, parts: _join(parts, separator),
}


def _indent(value: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    text = _string(value)
    prefix = width if isinstance(width, str) else " " * min(max(int(width), 0), 1000)
    _budget.get().fits(len(text) + (text.count("\n") + 1) * len(prefix))
    lines = text.splitlines() or [""]
    filled = [prefix + line if (line or blank) and (n or first) else line for n, line in enumerate(lines)]
    return "\n".join(filled) + ("\n" if text.endswith("\n") else "")


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """As in Transformers: plain JSON, not escaped for HTML as Jinja's own filter does."""
    budget = _budget.get()
    budget.measured(value)
    if indent is not None and not 0 <= int(indent) <= 16:
        raise TemplateError(f"the chat template asks for JSON indented by {indent}; the limit is 16")
    text = json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
    budget.fits(len(text))
    return text


def _sum(value: Any, attribute: str | None = None, start: float = 0) -> float:
    total = start
    for item in value:
        number = item[attribute] if attribute is not None else item
        if not isinstance(number, int | float):
            raise TemplateError(f"the chat template sums a {type(number).__name__}")
        total += number
    return total


def _tick(static: int) -> bool:
    """One loop pass that writes `static` characters of the template's own text."""
    budget = _budget.get()
    budget.step()
    budget.write(static)
    return True


def _checked(value: Any) -> Any:
    return _budget.get().measured(value)


@pass_context  # keeps Jinja from running it at compile time
def _finalize(context: Context, value: Any) -> Any:
    if isinstance(value, Namespace):
        raise TemplateError("the chat template writes a namespace")
    text = "" if isinstance(value, Undefined) else _string(value)
    _budget.get().write(len(text))
    return value if isinstance(value, Undefined) else text


class _GenerationTag(Extension):
    """``{% generation %}…{% endgeneration %}``: writes its body. Transformers trains on what it marks."""

    tags = {"generation"}  # noqa: RUF012  # Jinja's own interface

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"+", "*", "%", "**"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[LoopControlExtension, _GenerationTag],
            finalize=_finalize,
            optimized=False,
            cache_size=0,
        )
        self.filters = {name: FILTERS[name] for name in _PLAIN_FILTERS}
        self.filters.update(
            string=_string,
            replace=_replace,
            join=_join,
            indent=_indent,
            tojson=_tojson,
            sum=_sum,
            checked=_checked,
        )
        del self.globals["lipsum"]
        self.globals.update(range=_range, raise_exception=_raise_exception, strftime_now=_strftime_now)
        self.tick = _tick
        self.joined = _concat
        self.checked = _checked

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        budget = _budget.get()
        if operator == "+":
            if hasattr(left, "__len__") and hasattr(right, "__len__"):
                budget.fits(len(left) + len(right))
        elif operator == "*":
            for value, factor in ((left, right), (right, left)):
                if hasattr(value, "__len__") and isinstance(factor, int):
                    budget.fits(len(value) * max(factor, 0))
            if (
                isinstance(left, int)
                and isinstance(right, int)
                and left.bit_length() + right.bit_length() > 4096
            ):
                raise TemplateError("the chat template makes a number of more than 4096 bits")
        elif operator == "**":
            if not all(isinstance(value, float | int) and abs(value) <= 1024 for value in (left, right)):
                raise TemplateError(
                    "the chat template raises a number to a power, with an operand above 1024"
                )
        elif isinstance(left, str):
            if left.count("%") > 16 or re.search(r"%[^a-zA-Z%]*[\d*]", left):
                raise TemplateError(f"the chat template formats with {left[:100]!r}")
            budget.measured(right)
        return budget.measured(super().call_binop(context, operator, left, right))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        if __obj is _tick or __obj is _checked or __obj is _concat:
            return __obj(*args)
        budget = _budget.get()
        budget.step()
        for argument in args:
            budget.measured(argument)
        for name, argument in kwargs.items():
            if name not in ("_loop_vars", "_block_vars"):  # Jinja's own, taken off by `Context.call`
                budget.measured(argument)
        owner = getattr(__obj, "__self__", None)
        if isinstance(owner, str) and (bounded := _BOUNDED_METHODS.get(getattr(__obj, "__name__", ""))):
            return bounded(owner, *args)
        return budget.measured(super().call(__context, __obj, *args, **kwargs))

    def wrap_str_format(self, value: Any) -> Any:
        owner = getattr(value, "__self__", None)
        # A width in a format specification allocates, fields look into their arguments, and many of them
        # multiply them. Chat templates need none of that.
        if (
            isinstance(owner, str)
            and getattr(value, "__name__", "") in ("format", "format_map")
            and ("_" in owner or ":" in owner or owner.count("{") > 16)
        ):
            raise TemplateError(f"the chat template formats with {owner[:100]!r}")
        return super().wrap_str_format(value)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, str):
            if attr not in _STRING_METHODS:
                return False
        elif isinstance(obj, _OPAQUE):
            return False
        return super().is_safe_attribute(obj, attr, value)


class _Counting(NodeTransformer):
    """Puts a call of `_tick` into each loop, and one of `_checked` around what can grow from pass to pass."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        written = _static_chars(node.body)
        self.generic_visit(node)
        node.body.insert(
            0, nodes.ExprStmt(_call("tick", [nodes.Const(written)], node.lineno), lineno=node.lineno)
        )
        if node.test is not None:
            node.test = nodes.And(_call("tick", [nodes.Const(0)], node.lineno), node.test, lineno=node.lineno)
        return node

    def visit_Assign(self, node: nodes.Assign) -> nodes.Node:
        self.generic_visit(node)
        assert isinstance(node.node, nodes.Expr)
        node.node = _call("checked", [node.node], node.lineno)
        return node

    def visit_AssignBlock(self, node: nodes.AssignBlock) -> nodes.Node:
        self.generic_visit(node)
        node.filter = nodes.Filter(node.filter, "checked", [], [], None, None, lineno=node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _call("joined", list(node.nodes), node.lineno)

    def _refuse(self, node: nodes.Node) -> NoReturn:
        raise TemplateError(
            f"the chat template includes another file (line {node.lineno}); "
            "a template must be complete in itself"
        )

    visit_Include = visit_Import = visit_FromImport = visit_Extends = _refuse


def _call(name: str, arguments: list[nodes.Expr], line: int) -> nodes.Call:
    return nodes.Call(nodes.EnvironmentAttribute(name), arguments, [], None, None, lineno=line)


def _static_chars(body: Iterable[nodes.Node]) -> int:
    """Characters of template text in a loop's body; loops inside it count their own."""
    total = 0
    for node in body:
        if isinstance(node, nodes.TemplateData):
            total += len(node.data)
        elif not isinstance(node, nodes.For):
            total += _static_chars(node.iter_child_nodes())
    return total


_environment: _Environment | None = None


def compile_template(source: str, limits: Limits) -> Template:
    """Compile a template.

    Raises
    ------
    TemplateError
        It is too long, has a syntax error, or includes another file.
    """
    global _environment
    if len(source) > limits.source_chars:
        raise TemplateError(
            f"the chat template has {len(source)} characters; the limit is {limits.source_chars}"
        )
    if _environment is None:
        _environment = _Environment()
    environment = _environment
    with _limited(limits, datetime.now()):
        tree = _Counting().visit(environment.parse(source))
        tree.set_environment(environment)
        code = environment.compile(tree)
        template: Template = Template.from_code(environment, code, environment.make_globals(None))
        return template


def render(template: Template, variables: Mapping[str, Any], limits: Limits, now: datetime) -> str:
    """The text of a template.

    Raises
    ------
    TemplateError
        It fails, refuses its input, or exceeds `limits`.
    """
    with _limited(limits, now) as budget:
        pieces = []
        total = 0
        for piece in template.generate(variables):
            total += len(piece)
            budget.fits(total)
            pieces.append(piece)
        return "".join(pieces)
