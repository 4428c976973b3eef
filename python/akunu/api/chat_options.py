"""The arguments of a chat: what is asked of the template, and of the generation that follows."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from akunu.api.options import GenerationOptions, own_names
from akunu.api.reading import Reading
from akunu.api.seeing import PlacedRows, Sight
from akunu.base.arguments import Limit, flag
from akunu.base.errors import InvalidArgumentError
from akunu.chat.loose_calls import MOST_LOOSE, late_arguments
from akunu.chat.messages import texts_of
from akunu.chat.structured.structure import ARGUMENTS, structure_of
from akunu.chat.structured.tags import StructuralTag, Tag
from akunu.chat.switches import effort_budget, thinking_variables
from akunu.chat.template import ChatTemplate
from akunu.chat.tools import Tools
from akunu.tokenizer import check_fits

__all__ = ["ChatOptions", "ChatPrompt", "prepare"]


class ChatOptions(GenerationOptions, total=False):
    """Keyword arguments of `Model.chat`, `stream_chat` and their asynchronous twins.

    They are those of `GenerationOptions`, and these; one that is absent or None takes its default.

    Attributes
    ----------
    tools : Sequence[Mapping[str, Any]] | None
        Functions that the model may call, as in OpenAI's API.
    tool_choice : str | None
        "auto": the model decides; "none": as if there were no tools; "required": it calls at least one; a
        function's name: it calls that one, once. What it has to call fits the function's schema.
    parallel_tool_calls : bool | None
        False: at most one call. By default, as many as the model likes.
    lenient_tool_calls : bool | None
        Whether an answer that is nothing but calls of the tools is read as calls when the model has written
        them in another form than its template's (JSON in a fence, in `<tools>`, or bare), and has arguments
        that fit their schemas once it has begun so. True by default; False: the template's form only.
    generic_tools : bool | None
        Whether tools, calls and results that the model's chat template leaves out are written in a generic
        format, with a warning. True by default; False: they are an error.
    thinking : bool | None
        Let a model that can think before it answers do so, or not; None: as its template has it.
    reasoning_effort : str | None
        How much it thinks: "low", "medium" or "high" where the template knows these words, else a
        `thinking_budget` (`akunu.chat.switches.EFFORTS`), or as much as it likes ("high", "xhigh", "max");
        "none" is `thinking=False`.
    thinking_budget : int | None
        Most tokens of reasoning; when they are used up, the reasoning is closed and the answer goes on.
    template_variables : Mapping[str, Any] | None
        More variables for the template.
    continue_final_message : bool | None
        Go on with the last message, which is the assistant's; the answer is what comes after it. None: if it
        is a text of the assistant's; False: that message is closed, and another one begins.
    image_tokens : int | None
        Most tokens that each image of the messages takes, where the model can be shown an image in more or
        fewer of them. None: the model's own number, or else as many as the image is large, but at most 1024.
    chat_template_kwargs : Mapping[str, Any] | None
        vLLM's and llama.cpp's name of `template_variables`.
    """

    tools: Sequence[Mapping[str, Any]] | None
    tool_choice: str | None
    parallel_tool_calls: bool | None
    lenient_tool_calls: bool | None
    generic_tools: bool | None
    thinking: bool | None
    reasoning_effort: str | None
    thinking_budget: int | None
    template_variables: Mapping[str, Any] | None
    continue_final_message: bool | None
    image_tokens: int | None
    chat_template_kwargs: Mapping[str, Any] | None


class ChatPrompt(NamedTuple):
    """The prompt of a chat, the options of its generation and how its answer is read.

    Attributes
    ----------
    ids
        The prompt.
    options
        Arguments of the generation.
    reading
        How the answer is read.
    rows
        The rows of images among the prompt's tokens.
    """

    ids: list[int]
    options: GenerationOptions
    reading: Reading
    rows: PlacedRows


def prepare(
    template: ChatTemplate,
    messages: Sequence[Mapping[str, Any]],
    options: ChatOptions,
    context: int,
    sight: Sight | None = None,
) -> ChatPrompt:
    """Make the prompt and the options of a chat; `sight` shows the model images, if it can read them.

    Raises
    ------
    InvalidArgumentError, TemplateError
        The messages or an argument are wrong, or the template cannot do what is asked.
    ImageError
        An image cannot be opened or shown.
    ContextLengthError
        The messages are so long that no template could make them fit the context; others are found later.
    """
    rest = own_names(options, ChatOptions)
    template.check_fits(messages, context)
    tools = rest.pop("tools", None) or None
    choice = rest.pop("tool_choice", None)
    choice = "auto" if choice is None else choice
    parallel = flag("parallel_tool_calls", rest.pop("parallel_tool_calls", None), default=True)
    lenient = flag("lenient_tool_calls", rest.pop("lenient_tool_calls", None), default=True)
    generic = flag("generic_tools", rest.pop("generic_tools", None), default=True)
    sources, effort = template.sources.values(), rest.pop("reasoning_effort", None)
    variables: Any = thinking_variables(sources, rest.pop("thinking", None), effort, template.reasons)
    tokens = rest.pop("thinking_budget", None)
    if tokens is None:
        tokens = effort_budget(sources, effort)
    elif not template.reasons:
        raise InvalidArgumentError("thinking_budget: models with this chat template do not think first")
    else:
        tokens = Limit(int, 0, math.inf).check("thinking_budget", tokens)
    given = rest.pop("template_variables", None)
    if given is not None:
        variables = {**variables, **given} if isinstance(given, Mapping) else given  # refused by `render`
    if choice == "none":
        tools, choice = None, "auto"
    tokens_of_image = rest.pop("image_tokens", None)
    images = sight.shown(messages, tokens_of_image) if sight is not None else None
    wanted = rest.pop("continue_final_message", None)
    segments = template.render(
        messages,
        images=images,
        tools=tools,
        continue_final_message=wanted,
        generic_tools=generic,
        variables=variables,
    )
    check_fits(template.tokenizer, [segment.text for segment in segments], context)
    if choice != "auto":
        _check_choice(choice, tools)
    # Where the answer has a structure of its own, an object is what was asked for.
    loose = tools and lenient and choice == "auto" and not any(rest.get(name) for name in ARGUMENTS)
    family = template.family_for(tools, generic=generic)
    begun = _begun(messages, wanted)
    thinks = family.opens_reasoning("".join(segment.text for segment in segments), begun)
    within = begun is not None and not thinks and bool(begun or family.opening)
    calls = family.tool_tag(tools, choice, parallel) if tools else None
    if calls is not None and rest.get("structural_tag") is not None:
        raise InvalidArgumentError(
            "structural_tag: what is asked of the calls of tools makes one of its own; give one of them"
        )
    tag = calls or rest.get("structural_tag")
    if choice == "auto" and not within and (thinks or family.opening or tools):
        # The answer's constraint holds where its content begins, or the answer is a call.
        content = _content_tag(rest, family.opening)
        if content is not None:
            called = calls or (family.tool_tag(tools, parallel=False) if tools else None)
            tag = StructuralTag((*(called.tags if called else ()), content), required=True, parallel=False)
    if isinstance(tag, StructuralTag) and thinks and tag.after is None:
        tag = replace(tag, after=family.reasoning[1])
    if tag is not None:
        rest["structural_tag"] = tag
    elif any(rest.get(name) for name in ARGUMENTS):
        thinks = False  # an expression or a grammar holds from the start
        tokens = None
    budget = None if tokens is None else family.thinking_budget(tokens, thinks)
    reading = Reading(family, tools, thinks, template.visible_ids, budget)
    if begun and within and tag is None:
        reading.begun = begun.rpartition(family.reasoning[1])[2].lstrip()
    if loose:
        reading.loose = MOST_LOOSE if parallel else 1
        reading.late = late_arguments(Tools(tools), family.reasoning, thinks)
    generation: GenerationOptions = rest  # type: ignore[assignment]  # `resolve` checks what is left
    ids, rows = template.encode_placed(segments)
    return ChatPrompt(ids, generation, reading, rows)


def _begun(messages: Sequence[Mapping[str, Any]], wanted: bool | None) -> str | None:
    """The text that the answer goes on with, of messages that were rendered; None: it is a new message."""
    last = messages[-1]
    if wanted is False or last["role"] != "assistant" or last.get("tool_calls"):
        return None
    return None if last.get("content") is None else "".join(texts_of([last]))


def _content_tag(options: dict[str, Any], opening: str) -> Tag | None:
    """Take `schema` or `json` out of the options as a tag for the content; None for anything else."""
    structure = structure_of(options)
    if structure is None or structure.kind not in ("schema", "json"):
        return None
    del options[structure.kind]
    schema = {"type": "object"} if structure.kind == "json" else json.loads(structure.text)
    return Tag(opening, schema, "", name=structure.kind)


def _check_choice(choice: object, tools: Sequence[Mapping[str, Any]] | None) -> None:
    known = Tools(tools)
    if not known:
        raise InvalidArgumentError(f"tool_choice: found {choice!r}, but there are no tools to choose from")
    if choice != "required" and not (isinstance(choice, str) and choice in known):
        raise InvalidArgumentError(
            f"tool_choice: found {choice!r}, expected auto, none, required, or one of {', '.join(known)}"
        )
