"""Attention by the distance of a key from a query, as an encoder's `config.json` describes it.

A distance has a row of a table: near ones each their own, farther ones share some. Sources: T5 (Raffel
et al., 2019) for MPNet's buckets, DeBERTa (He et al., 2020), and Transformers' classes of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.describe.config_numbers import shown

__all__ = ["Distances", "deberta_distances", "mpnet_distances"]

_MPNET_BUCKETS, _MPNET_FARTHEST = 32, 128


@dataclass(frozen=True)
class Distances:
    """The way in which attention looks at distances: see `akunu.files.describe.blocks.RelativeAttention`.

    Attributes
    ----------
    count
        Rows of the table.
    columns, by_query, by_key
        As in `RelativeAttention`.
    left_out
        Canonical names of the row's tensors that a model of this configuration does not have.
    """

    count: int
    columns: tuple[int, ...]
    by_query: bool = False
    by_key: bool = False
    left_out: frozenset[str] = frozenset()

    @property
    def terms(self) -> int:
        """Products that a score is the sum of; a scale is of all of them."""
        return 1 + self.by_query + self.by_key


def mpnet_distances(config: Mapping[str, object], context: int) -> Distances:
    """Buckets of MPNet, whose class knows no other number of them; up to a distance of `context` - 1."""
    count = _count(config, "relative_attention_num_buckets", _MPNET_BUCKETS)
    if count < _MPNET_BUCKETS:
        raise UnsupportedError(
            f"config.json: relative_attention_num_buckets: found {count}, expected at least {_MPNET_BUCKETS}"
        )
    distance = _distances(context)
    half = _MPNET_BUCKETS // 2
    exact = half // 2
    far = np.maximum(np.abs(distance), 1)
    steps = np.log(far / exact) / np.log(_MPNET_FARTHEST / exact) * (half - exact)
    bucket = np.where(np.abs(distance) < exact, np.abs(distance), exact + steps.astype(np.int64))
    return Distances(count, _columns(np.minimum(bucket, half - 1) + half * (distance > 0)))


def deberta_distances(config: Mapping[str, object], context: int) -> Distances:
    """Distances of DeBERTa 2 and 3, with logarithmic buckets or without, up to one of `context` - 1."""
    left_out = set()
    if config.get("share_att_key") is True:
        left_out |= {"distance_k", "distance_q"}
    norms = config.get("norm_rel_ebd")
    if not isinstance(norms, str) or "layer_norm" not in [part.strip() for part in norms.lower().split("|")]:
        left_out.add("distance_norm")
    terms = _terms(config.get("pos_att_type")) if config.get("relative_attention") is True else frozenset()
    if not terms:
        if config.get("relative_attention") is True or config.get("pos_att_type"):
            found = (shown(config.get(key)) for key in ("pos_att_type", "relative_attention"))
            raise UnsupportedError(
                "config.json: pos_att_type and relative_attention: found {} and {}; supported are c2p, p2c "
                "or both, and true".format(*found)
            )
        return Distances(1, (0,), left_out=frozenset({"distance_embedding", "distance_norm", *_PROJECTIONS}))
    left_out |= {name for name, term in zip(_PROJECTIONS, ("c2p", "p2c"), strict=True) if term not in terms}
    reach = _count(config, "max_relative_positions", -1)
    if reach < 1:
        reach = _count(config, "max_position_embeddings", 512)
    buckets = _count(config, "position_buckets", -1)
    span = buckets if buckets > 0 else reach
    if span > _MOST:
        raise ModelFileError(f"config.json: {span} distances on each side, expected at most {_MOST}")
    behind = -_distances(context)  # of the query, behind the key
    if buckets > 0:
        behind = _logarithmic(behind, buckets, reach)
    columns = np.clip(behind + span, 0, 2 * span - 1)
    return Distances(2 * span, _columns(columns), "c2p" in terms, "p2c" in terms, frozenset(left_out))


_PROJECTIONS = ("distance_k", "distance_q")
_MOST = 1 << 14


def _logarithmic(distance: npt.NDArray[np.int64], buckets: int, farthest: int) -> npt.NDArray[np.int64]:
    """Distances of which those beyond half of the buckets share some, in F32 as torch computes them."""
    half = buckets // 2
    if half < 2 or farthest - 1 <= half:
        raise UnsupportedError(
            f"config.json: position_buckets: found {buckets} for distances up to {farthest}; "
            "expected at least 4, and less than twice the distances"
        )
    far = np.maximum(np.abs(distance), half).astype(np.float32)
    parts = np.log(far / np.float32(half)) / np.log(np.float32((farthest - 1) / half))
    steps = np.ceil(parts * np.float32(half - 1)).astype(np.int64) + half
    return np.where(np.abs(distance) <= half, distance, steps * np.sign(distance))


def _terms(found: object) -> frozenset[str]:
    """The products of `pos_att_type`, which is a list or a text with bars."""
    parts = found.lower().split("|") if isinstance(found, str) else found
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        return frozenset()
    terms = frozenset(part.strip() for part in parts)
    if not terms <= {"c2p", "p2c"}:
        raise UnsupportedError(f"config.json: pos_att_type: found {shown(found)}; supported are c2p and p2c")
    return terms


def _count(config: Mapping[str, object], key: str, default: int) -> int:
    found = config.get(key)
    if found is None:
        return default
    if not isinstance(found, int) or isinstance(found, bool):
        raise ModelFileError(f"config.json: {key}: found {shown(found)}, expected an integer")
    return found


def _distances(context: int) -> npt.NDArray[np.int64]:
    """Return the distances of a key from a query in a text of so many tokens."""
    return np.arange(1 - context, context)


def _columns(columns: npt.NDArray[np.int64]) -> tuple[int, ...]:
    """Return the columns without those at both ends that equal their inner neighbours."""
    found = [int(column) for column in columns]
    first, last = 0, len(found) - 1
    while first < last and found[first] == found[first + 1] and found[last] == found[last - 1]:
        first, last = first + 1, last - 1
    return tuple(found[first : last + 1])
