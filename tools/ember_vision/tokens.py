"""The vocabulary and the form of a conversation: bytes, and Mistral's control tokens.

A text is spelt byte by byte: what is read from a picture may be any string.
"""

from __future__ import annotations

BEGIN, END, ASK, ANSWER, IMAGE, ROW_END, IMAGE_END = range(256, 263)
CONTROL = ("<s>", "</s>", "[INST]", "[/INST]", "[IMG]", "[IMG_BREAK]", "[IMG_END]")
SIZE = 264
"""With two bytes 0 as one, which no text has: a vocabulary of this kind needs something to merge."""

CHAT_TEMPLATE = """\
{{- bos_token }}
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {{- message.content + eos_token }}
    {%- else %}
        {{- '[INST]' }}
        {%- if message.content is string %}
            {{- message.content }}
        {%- else %}
            {%- for part in message.content %}
                {{- '[IMG]' if part.type == 'image' else part.text }}
            {%- endfor %}
        {%- endif %}
        {{- '[/INST]' }}
    {%- endif %}
{%- endfor %}
"""


def spelt(text: str) -> list[int]:
    """Tokens of a text."""
    return list(text.encode())


def text_of(ids: list[int]) -> str:
    """The text of tokens, without the control tokens."""
    return bytes(i for i in ids if i < BEGIN).decode("utf-8", "replace")


def picture(rows: int, columns: int) -> list[int]:
    """What stands for a picture of so many cells."""
    line = [IMAGE] * columns
    return [i for row in range(rows) for i in (*line, ROW_END if row + 1 < rows else IMAGE_END)]


def gguf_tokens() -> list[str]:
    """The tokens as GPT-2's vocabularies spell them: bytes that are no letters have other characters."""
    shown = {*range(33, 127), *range(161, 173), *range(174, 256)}
    hidden = [byte for byte in range(256) if byte not in shown]
    letters = [chr(byte) if byte in shown else chr(256 + hidden.index(byte)) for byte in range(256)]
    return [*letters, *CONTROL, 2 * letters[0]]
