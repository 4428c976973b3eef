"""`Model.rerank` and `Model.classify`: what a score is, what it goes through, and what a decoder is asked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import akunu
from akunu.api.encoders.model import EmbeddingModel
from akunu.base.errors import ContextLengthError, InvalidArgumentError, UnsupportedError

from . import tiny, wordpiece
from .test_model import TEXTS, reranker
from .test_reference import nmse, opened

__all__ = ["reranker"]


def test_scores_are_those_of_pairs_with_kinds(reranker: EmbeddingModel) -> None:
    library = wordpiece.library()
    pairs = [library.encode("what do cats eat", text) for text in TEXTS]
    rows = [(np.asarray(p.ids, np.uint32), p.type_ids.index(1)) for p in pairs]
    expected = reranker._encoder.encode(rows)[:, 0]
    found = reranker.rerank("what do cats eat", TEXTS, raw=True)
    assert nmse(np.asarray(found), expected) < 1e-12
    scores = reranker.rerank("what do cats eat", TEXTS)
    np.testing.assert_allclose(scores, 1 / (1 + np.exp(-expected)), rtol=1e-5)
    with pytest.warns(UserWarning, match="1 of 1 texts were cut"):
        reranker.rerank("x", ["a " * 100], truncate=True)
    with pytest.raises(ContextLengthError, match=r"query: has .* leaves no room for a document"):
        reranker.rerank("a " * 90, ["x"], truncate=True)


_OLD = "sbert_ce_default_activation_function"
_BOTH = {"activation_fn": "torch.nn.modules.activation.Tanh"}


@pytest.mark.parametrize(
    ("config", "common", "function"),
    [
        ({"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}, {}, np.array),
        (
            {"sentence_transformers": {"activation_fn": "torch.nn.Tanh"}, _OLD: "torch.nn.Identity"},
            {},
            np.tanh,
        ),
        ({"sentence_transformers": {"activation_fn": None}, _OLD: "torch.nn.Identity"}, {}, None),
        (
            {"sentence_transformers": {"version": "4.1.0"}, _OLD: "torch.nn.modules.linear.Identity"},
            {},
            np.array,
        ),
        ({_OLD: "torch.nn.modules.activation.Sigmoid"}, {}, None),
        ({"sentence_transformers": {"activation_fn": "torch.nn.Identity"}}, _BOTH, np.tanh),
    ],
)
def test_scores_go_through_what_the_files_name(
    reranker: EmbeddingModel,
    config: dict[str, Any],
    common: dict[str, Any],
    function: Callable[[Any], Any] | None,
    tmp_path: Path,
) -> None:
    """As `CrossEncoder.predict` of Sentence Transformers, whose rules these are."""
    folder = wordpiece.with_files("bert_rank", tmp_path, config=config)
    if common:
        transformer = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
        (folder / "modules.json").write_text(json.dumps([transformer]))
        (folder / "config_sentence_transformers.json").write_text(json.dumps(common))
    raw = reranker.rerank("what do cats eat", TEXTS, raw=True)
    expected = reranker.rerank("what do cats eat", TEXTS) if function is None else function(raw)
    with opened(folder) as model:
        assert model.rerank("what do cats eat", TEXTS, raw=True) == raw
        assert model.rerank("what do cats eat", TEXTS) == pytest.approx(expected)


def test_what_a_score_cannot_go_through(tmp_path: Path) -> None:
    def folder(function: object) -> Path:
        return wordpiece.with_files(
            "bert_rank", tmp_path, config={"sentence_transformers": {"activation_fn": function}}
        )

    for function in ("torch.nn.modules.activation.Softmax", 3):
        with pytest.raises(
            UnsupportedError, match=r"activation_fn: found .*; supported are Sigmoid, Identity"
        ):
            opened(folder(function))
    with pytest.warns(RuntimeWarning, match="'mine.Sharp' is code of the model's own, which is not run"):
        model = opened(folder("mine.Sharp"))
    with model:
        assert all(0 < score < 1 for score in model.rerank("what do cats eat", TEXTS))


def test_a_classifier_is_no_reranker(tmp_path: Path) -> None:
    golden = tiny.golden("bert_rank")
    golden.weights.update(
        {name: golden.weights[name].repeat(3, 0) for name in ("classifier.weight", "classifier.bias")}
    )
    folder = tiny.write_folder(golden, tmp_path)
    wordpiece.library().save(str(folder / "tokenizer.json"))
    with pytest.raises(UnsupportedError, match="is a classifier with 3 labels, expected a reranker"):
        opened(folder, task="rerank")
    with opened(folder) as model:
        with pytest.raises(UnsupportedError, match=r"is a classifier with 3 labels: use classify\(pairs\)"):
            model.rerank("x", ["y"])
        with pytest.raises(UnsupportedError, match=r"is a classifier: use classify\(texts\)"):
            model.embed("x")


def test_a_classifier_gives_the_scores_of_all_classes(reranker: EmbeddingModel, tmp_path: Path) -> None:
    golden = tiny.golden("bert_rank")
    weights = golden.weights
    scale = np.array([1.0, -2.0, 0.5], np.float32)
    golden.weights.update(
        {
            "classifier.weight": weights["classifier.weight"] * scale[:, None],
            "classifier.bias": weights["classifier.bias"] * scale,
        }
    )
    folder = tiny.write_folder(golden, tmp_path)
    wordpiece.library().save(str(folder / "tokenizer.json"))
    config = json.loads((folder / "config.json").read_text())
    named = {"id2label": {"0": "no", "1": "yes", "2": "perhaps"}}
    expected = np.asarray(reranker.rerank("what do cats eat", TEXTS, raw=True))[:, None] * scale
    pairs = [("what do cats eat", text) for text in TEXTS]

    def softmax(scores: np.ndarray) -> np.ndarray:
        powers = np.exp(scores)
        return powers / powers.sum(axis=1, keepdims=True)

    for changes, function in (
        (named, softmax),
        (named | {"problem_type": "multi_label_classification"}, lambda scores: 1 / (1 + np.exp(-scores))),
    ):
        (folder / "config.json").write_text(json.dumps(config | changes))
        with opened(folder) as model:
            assert model.labels == ("no", "yes", "perhaps")
            found = model.classify(pairs)
            assert found.shape == (4, 3)
            assert found.dtype == np.float32
            np.testing.assert_allclose(model.classify(pairs, raw=True), expected, rtol=1e-3, atol=1e-4)
            np.testing.assert_allclose(found, function(expected), rtol=1e-3, atol=1e-4)
            alone = model.classify(TEXTS, raw=True)
            ids = [np.asarray(model.tokenize(text), np.uint32) for text in TEXTS]
            np.testing.assert_array_equal(alone, model._encoder.encode([(one, 0) for one in ids]))
            assert model.classify([]).shape == (0, 3)
            with pytest.raises(InvalidArgumentError, match="texts: number 1: expected a text or a pair"):
                model.classify(["x", ("a", "b", "c")])  # type: ignore[list-item]
    with pytest.raises(UnsupportedError, match="is a reranker: use rerank"):
        reranker.classify(TEXTS)


@pytest.mark.parametrize(
    "config",
    [{"tokenizer_class": "TokenizersBackend"}, {"model_input_names": ["input_ids", "attention_mask"]}],
)
def test_a_tokenizer_that_gives_no_kinds_leaves_them_out(config: dict[str, Any], tmp_path: Path) -> None:
    pairs = [wordpiece.library().encode("what do cats eat", text).ids for text in TEXTS]
    with opened(wordpiece.with_files("bert_rank", tmp_path, tokenizer_config=config)) as model:
        expected = model._encoder.encode([(np.asarray(ids, np.uint32), 0) for ids in pairs])[:, 0]
        found = model.rerank("what do cats eat", TEXTS, raw=True)
    assert nmse(np.asarray(found), expected) < 1e-12


def test_a_decoder_is_asked_for_yes_or_no(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the model that writes text would be, whose sums are those of F32."""
    monkeypatch.setenv("AKUNU_CPU_ISA", "generic")
    from tokenizers import Tokenizer, models, pre_tokenizers
    from tokenizers import decoders as parts

    from models import folders

    folders.write("qwen3", tmp_path)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("y", "e"), ("ye", "s"), ("n", "o")]
    texts = ["<|im_start|>", "<|im_end|>", *letters, *("".join(pair) for pair in merges)]
    library = Tokenizer(models.BPE({text: i for i, text in enumerate(texts)}, merges))
    library.add_special_tokens(texts[:2])
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = parts.ByteLevel()
    library.save(str(tmp_path / "tokenizer.json"))
    documents = ["cats eat mice", "rome is a city"]
    with opened(tmp_path, task="rerank", context=512) as model:
        found = model.rerank("what do cats eat", documents, raw=True)
        other = model.rerank("what do cats eat", documents, instruction="Find lies", raw=True)
    assert not np.allclose(found, other)
    with akunu.load(tmp_path, device="cpu", context=512, kv_dtype="f32", progress=False) as plain:
        for document, score in zip(documents, found, strict=True):
            text = (
                "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query "
                'and the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n'
                "<|im_start|>user\n<Instruct>: Given a web search query, retrieve relevant passages that "
                f"answer the query\n<Query>: what do cats eat\n<Document>: {document}<|im_end|>\n"
                "<|im_start|>assistant\n<think>\n\n</think>\n\n"
            )
            logits = plain.logits(plain.tokenize(text, parse_special=True))[-1]
            assert score == pytest.approx(logits[texts.index("yes")] - logits[texts.index("no")], abs=1e-4)
    # Sentence Transformers says by a module that it is a reranker, and which tokens are compared.
    score = {"idx": 1, "name": "1", "path": "1_LogitScore", "type": "sentence_transformers.x.LogitScore"}
    (tmp_path / "modules.json").write_text(json.dumps([score]))
    (tmp_path / "1_LogitScore").mkdir()
    answers = {"true_token_id": texts.index("yes"), "false_token_id": texts.index("no")}
    (tmp_path / "1_LogitScore" / "config.json").write_text(json.dumps(answers))
    with opened(tmp_path, context=512) as model:
        assert model.rerank("what do cats eat", documents, raw=True) == found
    # Its chat template may ask in the same words; others would give other scores.
    texts_of = "{{ messages[0].content[0].text }}\n<Document>: {{ messages[1].content[0].text }}"
    asked = (
        "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the "
        'Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
        "<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n<Query>: "
        f"{texts_of}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n{{{{ '' }}}}"
    )
    template = tmp_path / "chat_template.jinja"
    for text in (asked, "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}"):
        template.write_text(text)
        with opened(tmp_path, context=512) as model:
            assert model.rerank("what do cats eat", documents, raw=True) == found
    template.write_text(asked.replace("web", "net"))
    with pytest.raises(UnsupportedError, match=r"the chat template asks a reranker .* net search"):
        opened(tmp_path, context=512)
    template.unlink()
    (tmp_path / "1_LogitScore" / "config.json").write_text(json.dumps(answers | {"false_token_id": 3}))
    with pytest.raises(UnsupportedError, match="LogitScore compares the tokens"):
        opened(tmp_path, context=512)
    shutil.rmtree(tmp_path / "1_LogitScore")
    (tmp_path / "modules.json").unlink()
    codes = akunu.convert(tmp_path, tmp_path / "codes", "mlx-8bit", progress=False)
    with opened(codes, task="rerank", context=512) as model:
        assert model.rerank("what do cats eat", documents, raw=True) == pytest.approx(found, abs=0.05)


def test_a_decoder_that_cannot_be_asked_is_refused(tmp_path: Path) -> None:
    model = opened(wordpiece.write_model("qwen3_rank", tmp_path))
    with model, pytest.raises(UnsupportedError, match=r'no token "<\|im_start\|>"'):
        model.rerank("what do cats eat", ["mice"])


def test_a_decoder_that_sentence_transformers_asks_otherwise_is_refused(tmp_path: Path) -> None:
    """What the files say of its text: query and document alone, or a chat template."""
    text = {"method": "forward", "method_output_name": "logits"}

    def folder(**more: Any) -> Path:
        settings = {"modality_config": {"text": text, **more}}
        found = wordpiece.with_files("qwen3_rank", tmp_path, sentence_bert_config=settings)
        transformer = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
        (found / "modules.json").write_text(json.dumps([transformer]))
        return found

    with pytest.raises(UnsupportedError, match="query and document stand alone"):
        opened(folder())
    template = "{% for message in messages %}{{ message.content }} {% endfor %}"
    asked = folder(message={**text, "format": "flat"})
    (asked / "chat_template.jinja").write_text(template)
    with pytest.raises(UnsupportedError, match="the chat template asks a reranker 'what do cats eat"):
        opened(asked)
