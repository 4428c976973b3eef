"""The corpus as packed rows of token ids: shards that many processes write while the training reads.

Shard ``i`` depends on the seed and ``i`` alone. A row is ``context`` tokens; a document is never split.
Beside the ids lies one byte per position: twice the document's number in its row (0 is padding), plus 1 where
it is learned.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from itertools import islice
from multiprocessing import Process
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from tools.ember.corpus import MIXTURE, samples
from tools.ember.corpus.kept_out import is_kept_out
from tools.ember.corpus.sample import Sample
from tools.ember.render import pieces

Row = tuple[NDArray[np.uint16], NDArray[np.uint8]]


Document = tuple[list[int], list[int]]


def encode(tokenizer: Tokenizer, drawn: Iterable[Sample], context: int) -> list[Document]:
    """Documents as (ids, learned flags). The first token is never learned: nothing precedes it."""
    documents: list[Document] = []
    source = iter(drawn)
    while chunk := [pieces(sample) for sample in islice(source, 256)]:
        texts = [text for parts in chunk for text, _ in parts]
        encoded = iter(tokenizer.encode_batch_fast(texts, add_special_tokens=False))
        for parts in chunk:
            ids: list[int] = []
            learned: list[int] = []
            for _, learn in parts:
                piece = next(encoded).ids
                ids += piece
                learned += [int(learn)] * len(piece)
            learned[0] = 0
            if len(ids) <= context:
                documents.append((ids, learned))
    return documents


def pack(documents: list[Document], context: int, ahead: int = 96) -> Row:
    """Rows [n, context]: each takes the longest waiting document that still fits."""
    waiting: list[Document] = []
    source = iter(documents)
    ids_rows, mark_rows = [], []
    while True:
        waiting.extend(islice(source, ahead - len(waiting)))
        if not waiting:
            break
        ids = np.zeros(context, np.uint16)
        marks = np.zeros(context, np.uint8)
        used = number = 0
        while waiting:
            fitting = [i for i, (tokens, _) in enumerate(waiting) if len(tokens) <= context - used]
            if not fitting:
                break
            # the oldest first, so that no document waits for ever; the longest for the last gap
            tight = context - used < 200
            tokens, learned = waiting.pop(
                max(fitting, key=lambda i: len(waiting[i][0])) if tight else fitting[0]
            )
            number += 1
            ids[used : used + len(tokens)] = tokens
            marks[used : used + len(tokens)] = np.array(learned, np.uint8) + 2 * number
            used += len(tokens)
            waiting.extend(islice(source, ahead - len(waiting)))
        if not number:
            raise ValueError(
                f"a document of {len(waiting[0][0])} tokens does not fit in a context of {context}"
            )
        ids_rows.append(ids)
        mark_rows.append(marks)
    return np.stack(ids_rows), np.stack(mark_rows)


def _path(folder: Path, index: int) -> Path:
    return folder / f"shard{index:04d}.npz"


def _write(
    folder: Path, tokenizer_path: Path, seed: int, indices: range, documents: int, context: int
) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    tokenizer = Tokenizer.from_file(str(tokenizer_path))
    for index in indices:
        if _path(folder, index).exists():
            continue
        ids, marks = pack(
            encode(tokenizer, islice(samples(seed * 100_000 + index), documents), context), context
        )
        part = folder / f"part{index:04d}.npz"
        np.savez(part, ids=ids, marks=marks)
        part.rename(_path(folder, index))


def start_writers(
    folder: Path, tokenizer_path: Path, seed: int, count: int, documents: int, context: int, workers: int
) -> list[Process]:
    """Start processes that write shards 0 to ``count`` - 1."""
    folder.mkdir(parents=True, exist_ok=True)
    writers = []
    for worker in range(workers):
        args = (folder, tokenizer_path, seed, range(worker, count, workers), documents, context)
        writers.append(Process(target=_write, args=args, daemon=True))
        writers[-1].start()
    return writers


def read(folder: Path, index: int, writers: list[Process]) -> Row:
    """Shard ``index``, once it is there."""
    while not _path(folder, index).exists():
        if any(w.exitcode not in (None, 0) for w in writers):
            raise RuntimeError("a process that writes the corpus has failed; its message is above")
        time.sleep(0.05)
    with np.load(_path(folder, index)) as shard:
        return shard["ids"], shard["marks"]


HELD_OUT_DRAWS, HELD_OUT_DOCUMENTS = 1500, 40  # of each kind; some kinds have no held-out side


def _write_held_out(path: Path, tokenizer_path: Path, context: int) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    tokenizer = Tokenizer.from_file(str(tokenizer_path))
    rows = {}
    for make in MIXTURE:
        rng = Random(f"held out {make.__name__}")
        drawn = (make(rng) for _ in range(HELD_OUT_DRAWS))
        held = (s for s in drawn if s.hint.get("held_out") == "1" and not is_kept_out(s))
        if documents := encode(tokenizer, islice(held, HELD_OUT_DOCUMENTS), context):
            rows[f"{make.__name__}.ids"], rows[f"{make.__name__}.marks"] = pack(documents, context)
    np.savez(path, **rows)


def start_held_out(path: Path, tokenizer_path: Path, context: int) -> Process:
    """Start a process that writes documents of the held-out side, kind by kind."""
    process = Process(target=_write_held_out, args=(path, tokenizer_path, context), daemon=True)
    process.start()
    return process


def read_held_out(path: Path) -> dict[str, Row]:
    """The rows that ``start_held_out`` had written, by kind."""
    with np.load(path) as rows:
        kinds = [name.removesuffix(".ids") for name in rows.files if name.endswith(".ids")]
        return {kind: (rows[f"{kind}.ids"], rows[f"{kind}.marks"]) for kind in kinds}
