"""Templates from strangers: nothing to reach, and no way to run or grow without end."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import pytest

from akunu.chat import ChatTemplate
from akunu.errors import TemplateError
from akunu.template_limits import Limits

from .models import text, tokenizer

SMALL = Limits(source_chars=10_000, chars=100_000, steps=20_000, seconds=5)


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
    "powers": "{{ 10 ** 10 ** 10 }}",
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


def test_memory_stays_small_under_the_real_limits() -> None:
    """Every bomb in one process, which may use 600 MB of address space more than it begins with."""
    code = (
        "import resource, tests.chat.test_sandbox as t\n"
        "from akunu.chat import ChatTemplate\n"
        "from akunu.errors import TemplateError\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 600 * 2**20,) * 2)\n"
        "for name, source in t.BOMBS.items():\n"
        "    if len(source) > 10000: continue\n"
        "    try: ChatTemplate(source, t.tokenizer()).render([{'role': 'user', 'content': 'x'}])\n"
        "    except TemplateError as error: assert 'MemoryError' not in str(error), (name, error)\n"
    )
    if not sys.platform.startswith("linux"):
        pytest.skip("measures by /proc")
    root = __file__.rsplit("/tests/", 1)[0]
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env={"PYTHONPATH": f"{root}:{root}/python"},
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
        "{{ '{0.__class__}'.format(messages) }}",
        "{{ '{x.__class__}'.format_map({'x': 1}) }}",
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
