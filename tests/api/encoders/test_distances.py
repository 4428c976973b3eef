"""Encoders whose attention looks at how far a key is: what is refused, and a folder as published."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from akunu.base.errors import ModelFileError, UnsupportedError

from . import tiny
from .test_reference import opened, same, vectors

REFUSED: dict[str, tuple[str, dict[str, Any], type[Exception], str]] = {
    "convolution": ("deberta", {"conv_kernel_size": 3}, UnsupportedError, "conv_kernel_size: found 3"),
    "another term": ("deberta", {"pos_att_type": "c2p|p2p"}, UnsupportedError, "found 'c2p|p2p'"),
    "no terms": ("deberta", {"pos_att_type": None}, UnsupportedError, "pos_att_type and relative_attention"),
    "absolute": ("deberta", {"relative_attention": False}, UnsupportedError, "and False; supported are"),
    "few buckets": ("deberta", {"position_buckets": 2}, UnsupportedError, "position_buckets: found 2"),
    "a number": ("deberta", {"position_buckets": "8"}, ModelFileError, "position_buckets: found '8'"),
    "another table": ("deberta", {"position_buckets": 10}, ModelFileError, "rel_embeddings.weight: found"),
    "positions": ("deberta", {"position_biased_input": True}, ModelFileError, "position_embeddings.weight"),
    "BERT's positions": ("distil", {"dim": 64}, ModelFileError, "position_embeddings.weight is missing"),
    "projections": ("deberta", {"share_att_key": False}, ModelFileError, "pos_key_proj.weight is missing"),
    "a norm": ("deberta_apart", {"norm_rel_ebd": "layer_norm"}, ModelFileError, "encoder.LayerNorm.weight"),
    "buckets": ("mpnet", {"relative_attention_num_buckets": 16}, UnsupportedError, "at least 32"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_so_is_refused(case: str, tmp_path: Path) -> None:
    name, change, error, message = REFUSED[case]
    golden = tiny.golden(name)
    golden.config.update(change)
    if case == "BERT's positions":
        del golden.weights["embeddings.position_embeddings.weight"]
    with pytest.raises(error, match=re.escape(message)):
        opened(tiny.write_folder(golden, tmp_path))


@pytest.mark.parametrize("name", ["mpnet", "deberta"])
def test_a_table_of_positions_that_nothing_reads_may_be_there(name: str, tmp_path: Path) -> None:
    """Checkpoints of DeBERTa 3 have one; of a model that reads it, it counts."""
    golden = tiny.golden(name)
    golden.weights["embeddings.position_embeddings.weight"] = np.ones((82, 64), np.float32)
    with opened(tiny.write_folder(golden, tmp_path)) as model:
        found = vectors(model, golden.texts, golden.second)
    assert np.allclose(found, golden.vectors, atol=1e-2) == (name == "deberta")


@pytest.mark.parametrize("name", ["mpnet", "deberta", "deberta_apart"])
def test_a_text_has_the_same_bits_whatever_its_neighbours(name: str, tmp_path: Path) -> None:
    golden = tiny.golden(name)
    with opened(tiny.write_folder(golden, tmp_path)) as model:
        together = vectors(model, golden.texts * 20, [0] * (20 * len(golden.texts)))
        alone = np.concatenate([vectors(model, [ids], [0]) for ids in golden.texts])
        assert same(model, together, np.tile(alone, (20, 1)))


def deberta_tokenizer() -> Tokenizer:
    """A tokenizer of the kind that Transformers writes for DeBERTa 2 and 3."""
    special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    pieces = [(text, 0.0) for text in special] + [("▁the", -2.0), ("▁cat", -2.5), ("▁", -4.0)]
    pieces += [(letter, -5.0) for letter in "acehstmT."]
    made = Tokenizer(models.Unigram(pieces, unk_id=3, byte_fallback=False))
    made.add_special_tokens([*special, "[MASK]"])
    made.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(r"\s{2,}|[\n\r\t]"), " "),
            normalizers.NFC(),
            normalizers.Strip(left=False, right=True),
        ]
    )
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")]
    )
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    made.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    return made


def test_a_reranker_as_published(tmp_path: Path) -> None:
    """Like mxbai-rerank: pairs without kinds of rows, one label, a sigmoid."""
    golden = tiny.golden("deberta_rank")
    folder, library = tiny.write_folder(golden, tmp_path), deberta_tokenizer()
    library.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "DebertaV2Tokenizer", "do_lower_case": False, "model_max_length": 60})
    )
    documents = ["cat", "  The   cat.\nThe mat", "a [SEP] cat[MASK]"]
    with opened(folder) as model:
        found = model.rerank("the cat", documents, raw=True)
        ids = [library.encode("the cat", document).ids for document in documents]
        assert found == vectors(model, ids, [0] * 3)[:, 0].tolist()
        assert model.context == 60
