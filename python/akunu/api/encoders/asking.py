"""Ask a decoder whether a document is relevant, in the words of Qwen3-Reranker's card."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from akunu.base.errors import TemplateError, UnsupportedError
from akunu.chat.limits import RenderLimits
from akunu.tokenizer import Segment

__all__ = ["ENDING", "check_template", "question"]

_INSTRUCTION: Final = "Given a web search query, retrieve relevant passages that answer the query"
_BEGINNING: Final = Segment(
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the "
    'Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n',
    True,
)
ENDING: Final = Segment("<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n", True)
"""The text between the document and the answer."""


def question(query: str, document: str, instruction: str | None = None) -> list[Segment]:
    """The question, up to where "yes" or "no" would follow."""
    asked = f"<Instruct>: {instruction or _INSTRUCTION}\n<Query>: {query}\n<Document>: {document}"
    return [_BEGINNING, Segment(asked), ENDING]


def check_template(source: object, tokens: Mapping[str, str]) -> None:
    """Raise UnsupportedError where a chat template asks in other words.

    Sentence Transformers gives it two messages, of the roles "query" and "document". A template that leaves
    them out is for chats only.
    """
    if not isinstance(source, str):
        return
    from akunu.chat.sandbox import compile_template, render

    query, document = "what do cats eat", "Cats eat mice."
    expected = "".join(segment.text for segment in question(query, document))
    limits, found = RenderLimits(), []
    for listed in (False, True):
        messages = [
            {"role": role, "content": [{"type": "text", "text": text}] if listed else text}
            for role, text in (("query", query), ("document", document))
        ]
        variables = {**tokens, "messages": messages, "add_generation_prompt": True}
        try:
            found.append(render(compile_template(source, limits), variables, limits, datetime.now()))
        except TemplateError:
            continue
    texts = [text for text in found if query in text and document in text and "{'type'" not in text]
    if texts and expected not in texts:
        raise UnsupportedError(
            f"the chat template asks a reranker {texts[0]!r}; supported are the words of Qwen3-Reranker, "
            f"{expected!r}"
        )
