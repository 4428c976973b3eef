"""Embeddings and reranking, as a type checker sees a client's code (`make check` checks it)."""

from __future__ import annotations

from typing import assert_type

import numpy as np
import numpy.typing as npt

import akunu


def search(path: str, documents: list[str]) -> list[int]:
    model = akunu.load(path, task="embed")
    assert_type(model, akunu.EmbeddingModel)
    assert_type(akunu.EmbeddingModel(path), akunu.EmbeddingModel)
    vectors = model.embed(documents, dimensions=64, normalize=True)
    numbers: npt.NDArray[np.generic] = vectors
    scores = akunu.load(path, task="rerank").rerank("a question", documents)
    assert_type(scores, list[float])
    return [len(numbers), scores.index(max(scores))]
