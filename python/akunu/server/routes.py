"""The table of routes: the application's routes and their OpenAPI description come from it."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from akunu.server import llama_completion, llama_server, ollama, ollama_models
from akunu.server.adapters import (
    AdapterName,
    AdapterPath,
    AdaptersQuery,
    adapters,
    load_adapter,
    set_adapters,
    unload_adapter,
)
from akunu.server.admin import ModelName, available, engine, load, models, table, unload
from akunu.server.anthropic_fields import CountRequest, MessagesRequest
from akunu.server.anthropic_messages import count_tokens, messages
from akunu.server.embeddings import EmbeddingRequest, embeddings
from akunu.server.endpoint import Endpoint
from akunu.server.health import health, ready
from akunu.server.llama_completion import InfillRequest, NativeRequest
from akunu.server.llama_server import ModelQuery
from akunu.server.metrics import metrics
from akunu.server.model_list import ModelsQuery, list_models, one_model
from akunu.server.multipart import FORM
from akunu.server.ollama_fields import (
    EmbeddingsRequest,
    EmbedRequest,
    GenerateRequest,
    NameRequest,
    OllamaChatRequest,
    PullRequest,
)
from akunu.server.openai_audio import (
    TranscriptionRequest,
    TranslationRequest,
    transcriptions,
    translations,
)
from akunu.server.openai_chat import ChatRequest, chat_completions
from akunu.server.openai_completions import CompletionRequest, completions
from akunu.server.openai_responses import (
    delete_response,
    get_response,
    input_items,
    input_tokens,
    responses,
)
from akunu.server.openai_responses_fields import InputItemsQuery, ResponseQuery, ResponsesRequest
from akunu.server.openapi import document
from akunu.server.rerank import RerankRequest, rerank
from akunu.server.tokens import (
    DetokenizeRequest,
    TemplateRequest,
    TokenizeRequest,
    apply_template,
    detokenize,
    tokenize,
    tokenizer_info,
)

__all__ = ["ENDPOINTS"]


async def _openapi(request: Request) -> Response:
    return document(ENDPOINTS)


ENDPOINTS: Final = (
    *(
        Endpoint("POST", path, chat_completions, "OpenAI's chat", ChatRequest)
        for path in ("/v1/chat/completions", "/chat/completions")
    ),
    Endpoint("POST", "/v1/completions", completions, "OpenAI's completions", CompletionRequest),
    *(
        Endpoint("POST", path, responses, "OpenAI's responses", ResponsesRequest)
        for path in ("/v1/responses", "/responses")
    ),
    Endpoint(
        "POST", "/v1/responses/input_tokens", input_tokens, "Tokens of a request's prompt", ResponsesRequest
    ),
    Endpoint("GET", "/v1/responses/{id}", get_response, "A stored response", query=ResponseQuery),
    Endpoint(
        "GET",
        "/v1/responses/{id}/input_items",
        input_items,
        "What a stored response answers",
        query=InputItemsQuery,
    ),
    Endpoint("DELETE", "/v1/responses/{id}", delete_response, "Forget a stored response"),
    Endpoint("POST", "/v1/messages", messages, "Anthropic's messages", MessagesRequest),
    Endpoint("POST", "/v1/messages/count_tokens", count_tokens, "Tokens of a request", CountRequest),
    Endpoint("POST", "/v1/embeddings", embeddings, "Vectors of texts", EmbeddingRequest),
    *(
        Endpoint("POST", path, rerank, "Documents by their relevance for a query", RerankRequest)
        for path in ("/v1/rerank", "/v2/rerank", "/rerank")
    ),
    Endpoint(
        "POST",
        "/v1/audio/transcriptions",
        transcriptions,
        "What is said, OpenAI's",
        TranscriptionRequest,
        FORM,
    ),
    Endpoint(
        "POST", "/v1/audio/translations", translations, "What is said, in English", TranslationRequest, FORM
    ),
    Endpoint("GET", "/v1/models", list_models, "The models", query=ModelsQuery),
    Endpoint("GET", "/v1/models/{name:path}", one_model, "One model"),
    Endpoint("GET", "/models", list_models, "The models, as llama-server's router", query=ModelsQuery),
    Endpoint("POST", "/models/load", load, "Load a model, as llama-server's router", ModelName),
    Endpoint("POST", "/models/unload", unload, "Unload a model, as llama-server's router", ModelName),
    *(
        Endpoint("POST", path, llama_completion.completion, "llama-server's completions", NativeRequest)
        for path in ("/completion", "/completions")
    ),
    Endpoint("POST", "/infill", llama_completion.infill, "What stands between two texts", InfillRequest),
    Endpoint("GET", "/props", llama_server.props, "A model, as llama-server describes it", query=ModelQuery),
    Endpoint("GET", "/lora-adapters", adapters, "The adapters of a model", query=AdaptersQuery),
    Endpoint("POST", "/lora-adapters", set_adapters, "The adapter of requests that name none"),
    Endpoint("POST", "/v1/load_lora_adapter", load_adapter, "Load an adapter, as vLLM does", AdapterPath),
    Endpoint(
        "POST", "/v1/unload_lora_adapter", unload_adapter, "Unload an adapter, as vLLM does", AdapterName
    ),
    Endpoint("GET", "/slots", llama_server.slots, "The slots for sequences of a model", query=ModelQuery),
    Endpoint("POST", "/api/chat", ollama.chat, "Ollama's chat", OllamaChatRequest),
    Endpoint("POST", "/api/generate", ollama.generate, "Ollama's completions", GenerateRequest),
    Endpoint("POST", "/api/embed", ollama_models.embed, "Ollama's embeddings", EmbedRequest),
    Endpoint(
        "POST", "/api/embeddings", ollama_models.embeddings, "Ollama's older embeddings", EmbeddingsRequest
    ),
    Endpoint("GET", "/api/tags", ollama_models.tags, "The models, as Ollama lists them"),
    Endpoint("POST", "/api/show", ollama_models.show, "One model, as Ollama describes it", NameRequest),
    Endpoint("GET", "/api/ps", ollama_models.ps, "The loaded models, as Ollama lists them"),
    Endpoint("POST", "/api/pull", ollama_models.pull, "Fetch a model, as Ollama does", PullRequest),
    Endpoint("GET", "/api/version", ollama_models.version, "The version of Ollama's API"),
    Endpoint("POST", "/tokenize", tokenize, "Token ids of a text", TokenizeRequest),
    Endpoint("POST", "/detokenize", detokenize, "The text of token ids", DetokenizeRequest),
    Endpoint("GET", "/tokenizer_info", tokenizer_info, "A tokenizer, as vLLM describes it", query=ModelQuery),
    Endpoint("POST", "/apply-template", apply_template, "The prompt of a chat", TemplateRequest),
    Endpoint("GET", "/health", health, "Whether the engines get on"),
    Endpoint("GET", "/ready", ready, "Whether requests can be served"),
    Endpoint("GET", "/metrics", metrics, "For Prometheus"),
    Endpoint("GET", "/admin/models", models, "The models, and what they use"),
    Endpoint("GET", "/admin/available", available, "Well-known models that can be fetched"),
    Endpoint("POST", "/admin/load", load, "Load a model", ModelName),
    Endpoint("POST", "/admin/unload", unload, "Unload a model", ModelName),
    Endpoint("GET", "/admin/engine", engine, "What the engines do now"),
    Endpoint("POST", "/admin/table", table, "The dispatch table of a token, timed", ModelName),
    Endpoint("GET", "/openapi.json", _openapi, "This description"),
)
