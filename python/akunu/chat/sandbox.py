"""A Jinja environment for templates that come from strangers: no access, no writes, and no runaway work.

Jinja's immutable sandbox keeps a template from reaching into Python. What it lacks is limits: a template of
one line can loop for a day or ask for a gigabyte. Here every loop pass, call and filter costs a step, what
they make costs its length, and a clock is read along the way. Where one operation can make many times what
it is given, a row of `_OPERATORS`, `_METHODS` or `_FILTERS` says how much, before it is done.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from types import GeneratorType
from typing import Any, Final, NoReturn

from jinja2 import nodes
from jinja2.environment import Template
from jinja2.exceptions import TemplateSyntaxError
from jinja2.ext import Extension, LoopControlExtension
from jinja2.parser import Parser
from jinja2.runtime import Context, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace, pass_context
from jinja2.visitor import NodeTransformer

from akunu.base.errors import TemplateError
from akunu.chat.budget import Budget
from akunu.chat.limits import RenderLimits

__all__ = ["compile_template", "render"]

_budget: ContextVar[Budget] = ContextVar("akunu_template_budget")


@contextmanager
def _limited(limits: RenderLimits, now: datetime) -> Iterator[None]:
    token = _budget.set(Budget(limits, now))
    try:
        yield
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


# -- What an operation may make, in characters, from its operands or arguments.

_MAX_BITS: Final = 4096


def _plus(left: Any, right: Any) -> float:
    return len(left) + len(right) if hasattr(left, "__len__") and hasattr(right, "__len__") else 0


def _times(left: Any, right: Any) -> float:
    if isinstance(left, int) and isinstance(right, int):
        return math.inf if left.bit_length() + right.bit_length() > _MAX_BITS else 0
    return max(
        len(value) * factor if hasattr(value, "__len__") and isinstance(factor, int) else 0
        for value, factor in ((left, right), (right, left))
    )


def _power(left: Any, right: Any) -> float:
    if isinstance(left, int) and isinstance(right, int):
        return math.inf if left.bit_length() * abs(right) > _MAX_BITS else 0
    return 0


def _percent(form: Any, values: Any) -> float:
    if not isinstance(form, str):
        return 0
    widths = sum(map(int, re.findall(r"\d+", form)))
    if "*" in form:
        widths += sum(abs(value) for value in _listed(values) if isinstance(value, int))
    return len(form) + widths + form.count("%") * _budget.get().size(values)


def _format(form: str, *args: Any, **kwargs: Any) -> float:
    values = [*args, *kwargs.values()]
    widths = sum(map(int, re.findall(r"\d+", form)))
    if re.search(r":[^}]*\{", form):  # a width that is an argument
        widths += sum(abs(value) for value in values if isinstance(value, int))
    return len(form) + widths + form.count("{") * _budget.get().size(values)


def _listed(values: Any) -> tuple[Any, ...]:
    if isinstance(values, Mapping):
        return tuple(values.values())
    return values if isinstance(values, tuple) else (values,)


def _replace(text: Any, old: Any, new: Any, count: int | None = None) -> float:
    return len(str(text)) + str(text).count(str(old)) * len(str(new))


def _join(separator: Any, parts: Any) -> float:
    return _budget.get().size(parts) + len(parts) * len(str(separator))


def _width(value: Any, width: int = 0, *_: Any, **__: Any) -> float:
    return abs(width)


_Cost = Callable[..., float]
_OPERATORS: Final[Mapping[str, _Cost]] = {"+": _plus, "*": _times, "**": _power, "%": _percent}
_METHODS: Final[Mapping[str, _Cost]] = {
    "center": _width,
    "expandtabs": lambda text, size=8: len(text) + text.count("\t") * size,
    "format": _format,
    "format_map": lambda form, values: _format(form, **values),
    "join": _join,
    "ljust": _width,
    "replace": _replace,
    "rjust": _width,
    "to_bytes": _width,
    "translate": lambda text, table: len(text) * _budget.get().size(table),
    "zfill": _width,
}
_FILTERS: Final[Mapping[str, _Cost]] = {
    "batch": lambda value, linecount, fill_with=None: 8 * linecount,
    "center": _width,
    "format": lambda form, *args, **kwargs: _percent(str(form), kwargs or args),
    "indent": lambda s, width=4, first=False, blank=False: (
        len(str(s)) + (str(s).count("\n") + 1) * (len(width) if isinstance(width, str) else width)
    ),
    "join": lambda value, d="", attribute=None: _join(d, value),
    "pprint": lambda value: 64 * _budget.get().size(value),
    "replace": _replace,
    "round": lambda value, precision=0, method="common": abs(precision),
    "slice": lambda value, slices, fill_with=None: 8 * slices,
    # It copies the text for every tag, at some 64 characters in the time of one step of ours.
    "striptags": lambda value: len(str(value)) * str(value).count("<") // 64,
    "sum": lambda value, attribute=None, start=0: (
        0 if isinstance(start, int | float) else len(value) * _budget.get().size(value)
    ),
    "tojson": lambda value, *_, indent=None, **__: (
        _budget.get().size(value) * (1 + (len(indent) if isinstance(indent, str) else indent or 0))
    ),
    "urlize": lambda value, *args, **kwargs: (
        len(str(value)) * _budget.get().size([*args, *kwargs.values()]) // 8
    ),
    "wordwrap": lambda s, width=79, break_long_words=True, wrapstring=None, break_on_hyphens=True: (
        len(s) + (s.count("\n") + 2 * len(s) // width + 1) * len(wrapstring or "\n")
    ),
}


def _refuse_namespaces(values: Any) -> None:
    """One that holds others, each twice, would be written out without end."""
    if any(isinstance(value, Namespace) for value in values):
        raise TemplateError("the chat template makes a text of a namespace, or puts it into another value")


def _bounded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that takes a step and pays for what it makes."""
    cost = _FILTERS.get(name)
    passed = 1 if hasattr(function, "jinja_pass_arg") else 0  # the context, which Jinja puts first

    @functools.wraps(function)
    def bounded(*args: Any, **kwargs: Any) -> Any:
        budget = _budget.get()
        budget.step()
        own = [list(arg) if cost and isinstance(arg, GeneratorType) else arg for arg in args[passed:]]
        _refuse_namespaces((*own, *kwargs.values()))
        if cost:
            budget.allow(cost(*own, **kwargs))
        return budget.made(function(*args[:passed], *own, **kwargs))

    return bounded


# -- What templates for chats have besides Jinja's own.


def _raise_exception(message: object = "") -> NoReturn:
    raise TemplateError(f"the chat template refuses the messages: {_text(message)[:1000]}")


def _strftime_now(form: str) -> str:
    # Widths such as %999999999d are a GNU extension that allocates.
    if len(form) > 200 or re.search(r"%[^a-zA-Z%]*\d", form):
        raise TemplateError(f"the chat template asks for the time in the form {form[:200]!r}")
    return _budget.get().now.strftime(form)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Write plain JSON as Transformers does, not escaped for HTML as Jinja's own filter does."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


class _GenerationTag(Extension):
    """``{% generation %}…{% endgeneration %}``: writes its body. Transformers trains on what it marks."""

    tags = {"generation"}  # noqa: RUF012  # Jinja's own interface

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


# -- The environment. Nodes call `tick`, `made` and `joined` as its attributes, which no template can replace.


def _tick() -> bool:
    _budget.get().step()
    return True


def _made(value: Any) -> Any:
    return _budget.get().made(value)


def _joined(*parts: Any) -> str:
    texts = [_text(part) for part in parts]
    _budget.get().allow(sum(map(len, texts)))
    return str(_made("".join(texts)))


def _text(value: Any) -> str:
    _refuse_namespaces((value,))
    return str(value)


@pass_context  # keeps Jinja from running it at compile time
def _finalize(context: Context, value: Any) -> Any:
    return _made(_text(value))


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(_OPERATORS)

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[LoopControlExtension, _GenerationTag],
            finalize=_finalize,
            optimized=False,
            cache_size=0,
        )
        filters = {**self.filters, "tojson": _tojson}
        self.filters = {name: _bounded(name, function) for name, function in filters.items()}
        del self.globals["lipsum"]
        self.globals.update(raise_exception=_raise_exception, strftime_now=_strftime_now)
        self.tick = _tick
        self.made = _made
        self.joined = _joined

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        budget = _budget.get()
        budget.allow(_OPERATORS[operator](left, right))
        return budget.made(super().call_binop(context, operator, left, right))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        if __obj in (_tick, _made, _joined):
            return __obj(*args)
        budget = _budget.get()
        budget.step()
        if isinstance(__obj, Macro):
            if __obj.catch_varargs or __obj.catch_kwargs:
                budget.made(args)
                budget.made(tuple(kwargs.values()))
        else:
            values = [v for k, v in kwargs.items() if k not in ("_loop_vars", "_block_vars")]  # Jinja's own
            _refuse_namespaces((*args, *values))
            function = getattr(__obj, "__wrapped__", __obj)  # the sandbox wraps str.format
            cost = _METHODS.get(getattr(function, "__name__", ""))
            owner = getattr(function, "__self__", None)
            if cost and isinstance(owner, str | int):
                args = tuple(list(arg) if isinstance(arg, GeneratorType) else arg for arg in args)
                budget.allow(cost(owner, *args, **dict(zip(kwargs, values, strict=False))))
        return budget.made(super().call(__context, __obj, *args, **kwargs))


class _Counting(NodeTransformer):
    """Puts a step into each loop, and a count around what is made without a call or an operator."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.body.insert(0, nodes.ExprStmt(_call("tick", [], node.lineno), lineno=node.lineno))
        if node.test is not None:
            node.test = nodes.And(_call("tick", [], node.lineno), node.test, lineno=node.lineno)
        return node

    def visit_TemplateData(self, node: nodes.TemplateData) -> nodes.Node:
        return nodes.Const(node.data, lineno=node.lineno)  # and so it is written, and paid for, as a value

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _call("joined", list(node.nodes), node.lineno)

    def _counted(self, node: nodes.Expr) -> nodes.Node:
        self.generic_visit(node)
        stored = getattr(node, "ctx", "load") != "load"
        return node if stored else _call("made", [node], node.lineno)

    visit_List = visit_Dict = visit_Tuple = _counted

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        if isinstance(node.arg, nodes.Slice):
            return self._counted(node)
        self.generic_visit(node)
        return node


def _call(name: str, arguments: list[nodes.Expr], line: int) -> nodes.Call:
    return nodes.Call(nodes.EnvironmentAttribute(name), arguments, [], None, None, lineno=line)


@functools.cache
def _environment() -> _Environment:
    return _Environment()


def compile_template(source: str, limits: RenderLimits) -> Template:
    """Compile a template.

    Raises
    ------
    TemplateError
        It is too long, or has a syntax error.
    """
    if len(source) > limits.source_chars:
        raise TemplateError(
            f"the chat template has {len(source)} characters; the limit is {limits.source_chars}"
        )
    environment = _environment()
    with _limited(limits, datetime.now()):
        tree = _Counting().visit(environment.parse(source))
        tree.set_environment(environment)
        code = environment.compile(tree)
        template: Template = Template.from_code(environment, code, environment.make_globals(None))
        return template


def render(template: Template, variables: Mapping[str, Any], limits: RenderLimits, now: datetime) -> str:
    """The text of a template.

    Raises
    ------
    TemplateError
        It fails, refuses its input, or exceeds `limits`.
    """
    with _limited(limits, now):
        return "".join(template.generate(variables))
