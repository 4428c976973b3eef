"""Common chat formats as Jinja templates, for models whose file has none.

Each is written from the format's published description. A content may be a string or a list of parts; parts
other than text have no place in these formats and are refused.
"""

from __future__ import annotations

__all__ = ["FORMATS"]

_TEXT = """\
{%- macro text(content) -%}
{%- if content is none or content is not defined -%}
{%- elif content is string -%}
{{- content -}}
{%- else -%}
{%- for part in content -%}
{%- if part.text is not defined -%}{{- raise_exception('this format takes text only') -}}{%- endif -%}
{{- part.text -}}
{%- endfor -%}
{%- endif -%}
{%- endmacro -%}
"""

# The system message goes before the first user message, for formats that have no turn for it.
_SYSTEM_FIRST = """\
{%- set ns = namespace(system='') -%}
{%- if messages[0].role == 'system' -%}
{%- set ns.system = text(messages[0].content) -%}
{%- set messages = messages[1:] -%}
{%- endif -%}
{%- for message in messages -%}
{%- if message.role != ('user' if loop.index0 % 2 == 0 else 'assistant') -%}
{{- raise_exception('messages must alternate between user and assistant, beginning with user') -}}
{%- endif -%}
{%- endfor -%}
"""

_CHATML = """\
{%- for message in messages -%}
{{- '<|im_start|>' ~ message.role ~ '\\n' ~ text(message.content) ~ '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
"""

_LLAMA3 = """\
{{- bos_token -}}
{%- for message in messages -%}
{{- '<|start_header_id|>' ~ message.role ~ '<|end_header_id|>\\n\\n' -}}
{{- text(message.content) | trim ~ '<|eot_id|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}{%- endif -%}
"""

_LLAMA2 = """\
{%- for message in messages -%}
{%- set content = text(message.content) | trim -%}
{%- if message.role == 'user' -%}
{%- if loop.first and ns.system -%}
{%- set content = '<<SYS>>\\n' ~ ns.system ~ '\\n<</SYS>>\\n\\n' ~ content -%}
{%- endif -%}
{{- bos_token ~ '[INST] ' ~ content ~ ' [/INST]' -}}
{%- else -%}
{{- ' ' ~ content ~ ' ' ~ eos_token -}}
{%- endif -%}
{%- endfor -%}
"""

_MISTRAL = """\
{{- bos_token -}}
{%- for message in messages -%}
{%- set content = text(message.content) | trim -%}
{%- if message.role == 'user' -%}
{%- if loop.first and ns.system -%}{%- set content = ns.system ~ '\\n\\n' ~ content -%}{%- endif -%}
{{- '[INST] ' ~ content ~ ' [/INST]' -}}
{%- else -%}
{{- ' ' ~ content ~ eos_token -}}
{%- endif -%}
{%- endfor -%}
"""

_GEMMA = """\
{{- bos_token -}}
{%- for message in messages -%}
{%- set content = text(message.content) | trim -%}
{%- if loop.first and ns.system -%}{%- set content = ns.system ~ '\\n\\n' ~ content -%}{%- endif -%}
{{- '<start_of_turn>' ~ ('model' if message.role == 'assistant' else 'user') ~ '\\n' -}}
{{- content ~ '<end_of_turn>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<start_of_turn>model\\n' -}}{%- endif -%}
"""

_PHI3 = """\
{%- for message in messages -%}
{{- '<|' ~ message.role ~ '|>\\n' ~ text(message.content) ~ '<|end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>\\n' -}}{%- endif -%}
"""

_ZEPHYR = """\
{%- for message in messages -%}
{{- '<|' ~ message.role ~ '|>\\n' ~ text(message.content) ~ eos_token ~ '\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>\\n' -}}{%- endif -%}
"""

FORMATS: dict[str, str] = {
    "chatml": _TEXT + _CHATML,
    "llama2": _TEXT + _SYSTEM_FIRST + _LLAMA2,
    "llama3": _TEXT + _LLAMA3,
    "mistral": _TEXT + _SYSTEM_FIRST + _MISTRAL,
    "gemma": _TEXT + _SYSTEM_FIRST + _GEMMA,
    "phi3": _TEXT + _PHI3,
    "zephyr": _TEXT + _ZEPHYR,
}
"""Templates by name."""
