"""Published chat templates: what they write of a conversation with calls, and that its calls are read back.

The templates are those that llama.cpp keeps (`models/templates` there); `tools/real_models.py` fetches them.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest

from akunu.chat import ChatTemplate
from akunu.chat.deltas import message_of
from chat.models import text, tokenizer
from chat.parsers import parser_of
from chat.shapes import ASK, CALLING, RESULT, SYSTEM, WEATHER

from .models import real_model

FAMILY = {
    "ByteDance-Seed-OSS": "seed oss",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "command r",
    "GLM-4.6": "glm",
    "GLM-4.7-Flash": "glm",
    "HuggingFaceTB-SmolLM3-3B": "plain",
    "Kimi-K3": "kimi 3",
    "LFM2.5-8B-A1B": "lfm 2",
    "LFM2.5-Instruct": "plain",
    "MiniMax-M2": "minimax",
    "MiniMax-M3": "minimax 3",
    "Mistral-Small-3.2-24B-Instruct-2506": "mistral",
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "qwen coder",
    "NVIDIA-Nemotron-Nano-v2": "nemotron nano 2",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": "hermes",
    "Qwen-QwQ-32B": "hermes",
    "Qwen-Qwen2.5-7B-Instruct": "hermes",
    "Qwen-Qwen3-0.6B": "hermes",
    "Qwen3-Coder": "qwen coder",
    "Qwen3.5-4B": "qwen coder",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "deepseek",
    "deepseek-ai-DeepSeek-V3.1": "deepseek",
    "deepseek-ai-DeepSeek-V3.2": "deepseek 3.2",
    "deepseek-ai-DeepSeek-V4": "deepseek 4",
    "deepseek-ai-DeepSeek-V4-Flash-0731": "deepseek 4",
    "google-gemma-2-2b-it": "plain",
    "google-gemma-4-31B-it": "gemma 4",
    "google-gemma-4-31B-it-interleaved": "gemma 4",
    "ibm-granite-granite-3.3-2B-Instruct": "granite",
    "ibm-granite-granite-4.0": "hermes",
    "ibm-granite-granite-4.1": "hermes",
    "meta-llama-Llama-3.1-8B-Instruct": "llama 3",
    "meta-llama-Llama-3.3-70B-Instruct": "llama 3",
    "microsoft-Phi-3.5-mini-instruct": "plain",
    "mistralai-Ministral-3-14B-Reasoning-2512": "mistral",
    "mistralai-Mistral-Nemo-Instruct-2407": "mistral with lists",
    "moonshotai-Kimi-K2": "kimi",
    "muse-glimmer": "muse",
    "openai-gpt-oss-120b": "harmony",
    "tencent-Hy3": "hunyuan 3",
}


def published(name: str) -> ChatTemplate:
    path = real_model("templates") / f"{name}.jinja"
    return ChatTemplate(path.read_text(encoding="utf-8"), tokenizer())


def rendered(template: ChatTemplate, messages: list[dict[str, Any]]) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of templates that leave something out
        return text(template.render(messages, tools=[WEATHER]))


@pytest.mark.parametrize("name", FAMILY)
def test_a_conversation_with_a_call_is_written_and_the_call_read_back(name: str) -> None:
    template = published(name)
    assert template.family.name == FAMILY[name]
    calling = {**CALLING, "reasoning_content": "Look."}
    prompt = rendered(template, [SYSTEM, ASK])
    whole = rendered(template, [SYSTEM, ASK, calling, RESULT])
    assert (
        "Be kind." in prompt
        and WEATHER["function"]["parameters"]["properties"]["city"]["description"] in prompt
    )
    family = template.family_for([WEATHER])
    same = next(n for n, (one, other) in enumerate(zip(prompt + "\0", whole, strict=False)) if one != other)
    at = min([same, *(whole.rindex(mark) for mark in family.call_format.marks if mark in whole)])
    answer, _, _ = whole[at:].partition("clear")
    assert answer != whole[at:], "the result of the call is lost"
    for pieces in ([answer], answer):
        parser = parser_of(family, [WEATHER], family.opens_reasoning(whole[:at]), whole=True)
        message = message_of([delta for piece in pieces for delta in parser.feed(piece)] + parser.end())
        (call,) = message["tool_calls"]
        assert call["function"]["name"] == "weather"
        assert json.loads(call["function"]["arguments"]) == {"city": "Paris", "days": 2}
        assert message.get("reasoning_content", "Look.") == "Look."
