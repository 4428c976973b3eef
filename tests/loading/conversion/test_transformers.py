"""Transformers itself on folders that were made of GGUF files, where it is installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import akunu
from akunu import _core
from akunu.loading.conversion.folder_tokenizer import folder_tokenizer
from akunu.tokenizer import Tokenizer
from models import tiny
from models.test_engine import nmse
from tokenizer.vocabularies import data_file, inputs_and_ids


@pytest.mark.parametrize("name", tiny.ALL)
def test_transformers_runs_a_converted_file(name: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    source = tiny.write(name, "F32", tmp_path / "x.gguf").path
    path = akunu.convert(source, tmp_path / "out", "mlx-f32", progress=False)
    model = transformers.AutoModelForCausalLM.from_pretrained(path, attn_implementation="eager").eval()
    golden = tiny.golden(name)
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([golden.prompt]), use_cache=False).logits[0].float().numpy()
    assert nmse(logits, golden.logits) < 1e-9


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "model_type"),
    [("llama-bpe", "llama"), ("llama-spm", "llama"), ("phi-3", "phi3"), ("qwen2", "qwen2")],
)
def test_transformers_makes_the_published_ids(name: str, model_type: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    keys = _core.GgufFile(str(data_file(f"vocab/ggml-vocab-{name}.gguf"))).metadata
    for file, content in folder_tokenizer(keys, Tokenizer.from_metadata(keys), 2048).items():
        (tmp_path / file).write_text(content, encoding="utf-8")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text, ids in inputs_and_ids(name):
        assert tokenizer(text, add_special_tokens=False)["input_ids"] == ids, text


def test_transformers_reads_the_tokenizer_and_the_template_of_ember(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    path = akunu.convert("ember", tmp_path / "out", "mlx-bf16", progress=False)
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    messages = [{"role": "user", "content": "Hello, World! 123"}]
    with akunu.load("ember", device="cpu", progress=False) as ours:
        ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        assert ids == ours.chat_template.encode(messages)
