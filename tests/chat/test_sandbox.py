"""Templates from strangers: nothing to reach, and no way to run or grow without end."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import pytest

from akunu.base.errors import TemplateError
from akunu.chat import ChatTemplate
from akunu.chat.limits import RenderLimits
from children import environment
from order import Draw

from .models import text, tokenizer

SMALL = RenderLimits(source_chars=10_000, chars=100_000, steps=20_000, seconds=5)


def rendered(source: str, content: Any = "x") -> str:
    return text(
        ChatTemplate(source, tokenizer(), limits=SMALL).render([{"role": "user", "content": content}])
    )


BOMBS = {
    "nested loops": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "loops with a condition": (
        "{% for i in range(999) %}{% for j in range(999) if false %}{% endfor %}{% endfor %}"
    ),
    "a loop over a text": "{% for c in 'a' * 90000 %}{% endfor %}",
    "a recursive loop": "{% for i in [1] recursive %}{{ loop([1, 1]) }}{% endfor %}",
    "recursive macros": (
        "{% macro m(n) %}{% if n %}{{ m(n-1) }}{{ m(n-1) }}{% endif %}{% endmacro %}{{ m(60) }}"
    ),
    "endless macros": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "recursive blocks": "{% block a %}{{ self.a() }}{{ self.a() }}{% endblock %}",
    "a long range": "{{ range(10**7) | list }}",
    "repetition": "{{ 'a' * 10**9 }}",
    "repetition of a list": "{{ [1] * 10**9 }}",
    "powers": "{{ 10 ** (10 ** 10) }}",
    "products": "{% set n = namespace(x=3) %}{% for i in range(40) %}{% set n.x = n.x * n.x %}{% endfor %}",
    "doubling by +": (
        "{% set n = namespace(x='a') %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}"
    ),
    "doubling by ~": (
        "{% set n = namespace(x='a') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}"
    ),
    "doubling in blocks": (
        "{% set n = namespace(x='a') %}{% for i in range(60) %}{% set n.x %}{{ n.x }}{{ n.x }}{% endset %}"
        "{% endfor %}"
    ),
    "doubling of lists": (
        "{% set n = namespace(x=['a']) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}"
        "{{ n.x }}"
    ),
    "doubling of arguments": (
        "{% macro m(x, n) %}{% if n %}{{ m([x, x], n - 1) }}{% else %}{{ x }}{% endif %}{% endmacro %}"
        "{{ m('a', 40) }}"
    ),
    "doubling of namespaces": (
        "{% set n = namespace(x=namespace()) %}"
        "{% for i in range(60) %}{% set n.x = namespace(a=n.x, b=n.x) %}"
        "{% endfor %}{{ n.x }}"
    ),
    "doubling by replace": (
        "{% set n = namespace(x='aa') %}{% for i in range(60) %}{% set n.x = n.x.replace('a', 'aa') %}"
        "{% endfor %}"
    ),
    "replace as a filter": "{{ ('a' * 90000) | replace('a', 'b' * 90000) }}",
    "replace nothing": "{{ ('a' * 90000).replace('', 'b' * 90000) }}",
    "join": "{{ ('b' * 90000).join(['a'] * 90000) }}",
    "join as a filter": "{{ (['a'] * 90000) | join('b' * 90000) }}",
    "indentation": "{{ ('a\n' * 40000) | indent(900) }}",
    "written again and again": "{% for i in range(9999) %}{{ 'a' * 90000 }}{% endfor %}",
    "kept again and again": "{% set x %}{% for i in range(9999) %}{{ 'a' * 90000 }}{% endfor %}{% endset %}",
    "its own text": "{% set x %}{% for i in range(99999) %}" + "y" * 9000 + "{% endfor %}{% endset %}",
    "padding": "{{ 'a'.ljust(10**9) }}",
    "centring": "{{ 'a' | center(10**9) }}",
    "tabs": "{{ '\t'.expandtabs(10**9) }}",
    "a wide format": "{{ '%999999999d' % 1 }}",
    "a wide format from outside": "{{ '%*d' % (999999999, 1) }}",
    "a wide format method": "{{ '{:999999999}'.format(1) }}",
    "a wide format map": "{{ '{x:999999999}'.format_map({'x': 1}) }}",
    "a wide format, reached by a filter": "{{ ('{:999999999}' | attr('format'))(1) }}",
    "a wide date": "{{ strftime_now('%999999999d') }}",
    "bytes": "{{ (1).to_bytes(10**9, 'big') }}",
    "a wide nested format": "{{ '{:{}}'.format(1, 999999999) }}",
    "a wide format filter": "{{ '%999999999d' | format(1) }}",
    "many large fields": "{{ ('{0}' * 90000).format('a' * 90000) }}",
    "many large signs": "{{ ('%(x)s' * 9000) % {'x': 'a' * 90000} }}",
    "padding, mapped": "{{ range(99999) | map('center', 90000) | list }}",
    "translation": "{{ ('a' * 90000).translate({97: 'b' * 90000}) }}",
    "wrapping": "{{ ('a ' * 40000) | wordwrap(1, wrapstring='b' * 90000) }}",
    "rounding": "{{ 1.5 | round(10**9, 'ceil') }}",
    "batches": "{{ [1] | batch(10**9, 0) | list }}",
    "slices": "{{ [1] | slice(10**9) | list }}",
    "comments taken out": "{{ ('<!---->' * 10000) | striptags }}",
    "links": "{{ ('a.com ' * 10000) | urlize(target='b' * 90000) }}",
    "slices of a text": (
        "{% set n = namespace(x=[]) %}{% set a = 'a' * 9000 %}"
        "{% for i in range(9999) %}{% set n.x = [n.x, a[1:]] %}{% endfor %}"
    ),
    "arguments of arguments": (
        "{% macro m(n) %}{% if n %}{{ m(n - 1, varargs, varargs) }}{% else %}{{ varargs }}{% endif %}"
        "{% endmacro %}{{ m(40, 'a') }}"
    ),
    "views of mappings": (
        "{% set n = namespace(x={'a': 1}) %}"
        "{% for i in range(40) %}{% set n.x = {'a': n.x.items(), 'b': n.x.items()} %}{% endfor %}{{ n.x }}"
    ),
    "a namespace in an error": (
        "{% set n = namespace(x=1) %}{% for i in range(40) %}{% set n.x = namespace(a=n.x, b=n.x) %}"
        "{% endfor %}{{ raise_exception(n) }}"
    ),
    "lorem ipsum": "{{ lipsum(10**6) }}",
    "wide JSON": "{{ [[1]] | tojson(indent=10**9) }}",
    "parentheses": "{{" + "(" * 4000 + "1" + ")" * 4000 + "}}",
    "a slow sum": "{{ ([[1]] * 50000) | sum(start=[]) }}",
    "a long template": "x" * 10_001,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_template_that_runs_away_is_stopped_soon(name: str) -> None:
    start = time.process_time()
    with pytest.raises(TemplateError):
        rendered(BOMBS[name])
    assert time.process_time() - start < 4


@pytest.mark.parametrize("seconds", [2, pytest.param(10, marks=pytest.mark.long)])
def test_memory_stays_small_under_the_real_limits(seconds: int, draw: Draw) -> None:
    """Bombs in one process, which may use 600 MB of address space more than it begins with.

    On a slow machine recursive macros, alone, take all of the longer time.
    """
    code = (
        "import resource, chat.test_sandbox as t\n"
        "from akunu.chat import ChatTemplate\n"
        "from akunu.chat.limits import RenderLimits\n"
        "from akunu.base.errors import TemplateError\n"
        f"limits = RenderLimits(seconds={seconds})\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 600 * 2**20,) * 2)\n"
        f"for name in {draw([name for name, source in BOMBS.items() if len(source) <= 10000])}:\n"
        "    source = t.BOMBS[name]\n"
        "    try:\n"
        "        template = ChatTemplate(source, t.tokenizer(), limits=limits)\n"
        "        template.render([{'role': 'user', 'content': 'x'}])\n"
        "    except TemplateError as error: assert 'MemoryError' not in str(error), (name, error)\n"
    )
    if not sys.platform.startswith("linux"):
        pytest.skip("measures by /proc")
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-2000:]


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.__init__.__globals__ }}",
        "{{ (messages | attr('__class__')) }}{{ (messages | attr('__class__')).mro() }}",
        "{{ self.__init__ }}{{ self.__init__.__globals__ }}",
        "{{ raise_exception.__globals__ }}{{ raise_exception.__globals__['json'] }}",
        "{{ cycler.__init__.__globals__.os }}",
        "{{ namespace.__init__.__globals__ }}{{ namespace.__init__.__globals__.x }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update({'a': 1}) }}",
        "{{ messages[0].clear() }}",
        "{{ '{0.__class__.__mro__}'.format(messages) }}",
        "{{ '{x.__class__.__mro__}'.format_map({'x': 1}) }}",
        "{% include 'secret' %}",
        "{% import 'secret' as x %}",
        "{% extends 'secret' %}",
    ],
)
def test_a_template_reaches_nothing(source: str) -> None:
    with pytest.raises(TemplateError):
        rendered(source)


def test_the_count_of_steps_cannot_be_replaced() -> None:
    for name in ("tick", "checked", "environment", "joined"):
        with pytest.raises(TemplateError, match="steps"):
            rendered(f"{{% set {name} = 1 %}}{{% for i in range(99999) %}}{{% endfor %}}")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ '%s is %d' | format('x', 5) }}", "x is 5"),
        ("{{ '{} {:>4}'.format('x', 5) }}", "x    5"),
        ("{{ 'x' | center(5) }}|{{ 'x'.center(5) }}", "  x  |  x  "),
        ("{{ 'one two three' | wordwrap(7) }}", "one two\nthree"),
        ("{{ [1, 2, 3] | batch(2, 0) | list }}", "[[1, 2], [3, 0]]"),
        ("{{ [1, 2, 3] | slice(2) | list }}", "[[1, 2], [3]]"),
        ("{{ {'a': [1]} | pprint }}", "{'a': [1]}"),
        ("{{ '7'.zfill(3) }}{{ 'x'.ljust(3) }}|{{ 'x'.rjust(3) }}", "007x  |  x"),
        ("{{ 'a\tb'.expandtabs(4) }}", "a   b"),
        ("{{ 'ab'.translate({97: 'x'}) }}", "xb"),
        ("{{ [[1], [2]] | sum(start=[]) }}", "[1, 2]"),
        ("{{ 'a\nb' | indent('> ', true) }}", "> a\n> b"),
        ("{{ [1.55, 2] | map('round', 1) | list }}", "[1.6, 2]"),
        ("{{ '<b>x</b>' | striptags }}{{ 'x y' | urlencode }}", "xx%20y"),
        ("{{ messages | map(attribute='role') | map('upper') | join(', ') }}", "USER"),
        ("{{ (1234567).bit_length() }} {{ 10 ** 12 }}", "21 1000000000000"),
        ("{{ (messages + messages)[1:] | tojson(indent=2) | length }}", "50"),
    ],
)  # fmt: skip
def test_what_is_valid_in_jinja_works(source: str, expected: str) -> None:
    assert rendered(source) == expected


def test_one_renderings_budget_is_not_anothers() -> None:
    template = ChatTemplate("{% for i in range(15000) %}{% endfor %}x", tokenizer(), limits=SMALL)
    for _ in range(3):
        assert text(template.render([{"role": "user", "content": "x"}])) == "x"


def test_a_long_conversation_is_within_the_limits() -> None:
    messages = [{"role": ("user", "assistant")[n % 2], "content": "word < word " * 50} for n in range(1000)]
    template = ChatTemplate.named("llama3", tokenizer())
    start = time.process_time()
    assert len(text(template.render(messages))) > 500_000
    assert time.process_time() - start < 10
