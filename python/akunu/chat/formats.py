"""Common chat formats as Jinja templates, for models whose file has none.

Each is written from the format's published description. A content is a text, or none beside tool calls.
"""

from __future__ import annotations

__all__ = ["FORMATS"]

# The system message goes before the first user message, for formats that have no turn for it.
_SYSTEM_FIRST = """\
{%- set ns = namespace(system='') -%}
{%- if messages[0].role == 'system' -%}
{%- set ns.system = messages[0].content or '' -%}
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
{{- '<|im_start|>' ~ message.role ~ '\\n' ~ (message.content or '') ~ '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
"""

_LLAMA3 = """\
{{- bos_token -}}
{%- for message in messages -%}
{{- '<|start_header_id|>' ~ message.role ~ '<|end_header_id|>\\n\\n' -}}
{{- (message.content or '') | trim ~ '<|eot_id|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}{%- endif -%}
"""

_LLAMA2 = """\
{%- for message in messages -%}
{%- set content = (message.content or '') | trim -%}
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
{%- set content = (message.content or '') | trim -%}
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
{%- set content = (message.content or '') | trim -%}
{%- if loop.first and ns.system -%}{%- set content = ns.system ~ '\\n\\n' ~ content -%}{%- endif -%}
{{- '<start_of_turn>' ~ ('model' if message.role == 'assistant' else 'user') ~ '\\n' -}}
{{- content ~ '<end_of_turn>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<start_of_turn>model\\n' -}}{%- endif -%}
"""

_PHI3 = """\
{%- for message in messages -%}
{{- '<|' ~ message.role ~ '|>\\n' ~ (message.content or '') ~ '<|end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>\\n' -}}{%- endif -%}
"""

_ZEPHYR = """\
{%- for message in messages -%}
{{- '<|' ~ message.role ~ '|>\\n' ~ (message.content or '') ~ eos_token ~ '\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>\\n' -}}{%- endif -%}
"""

FORMATS: dict[str, str] = {
    "chatml": _CHATML,
    "llama2": _SYSTEM_FIRST + _LLAMA2,
    "llama3": _LLAMA3,
    "mistral": _SYSTEM_FIRST + _MISTRAL,
    "gemma": _SYSTEM_FIRST + _GEMMA,
    "phi3": _PHI3,
    "zephyr": _ZEPHYR,
}
"""Templates by name."""
