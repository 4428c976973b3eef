"""Models none of whose layers attend become other files and stay the same model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import akunu
from models import families, tiny
from models.test_engine import nmse
from models.test_families import open_folder, open_gguf

KINDS = {
    "lfm2": "layer_types",
    "granitehybrid": "layer_types",
    "granitehybrid_moe": "layer_types",
    "nemotron_h": "layers_block_type",
    "nemotron_h_moe": "layers_block_type",
    "qwen3next": "layer_types",
}
"""The key that says of each layer what it is."""


def written(name: str, folder: Path) -> Path:
    """The family's folder without the layers that attend."""
    family, key = families.ALL[name], KINDS[name]
    config = families.saved(family)[0]
    kinds = config[key]
    kept = [n for n, kind in enumerate(kinds) if kind not in ("attention", "full_attention")]
    assert 0 < len(kept) < len(kinds)

    def change(arrays: families.Arrays) -> families.Arrays:
        out: families.Arrays = {}
        for tensor, array in arrays.items():
            before, found, rest = tensor.partition(".layers.")
            layer, _, part = rest.partition(".")
            if not found:
                out[tensor] = array
            elif int(layer) in kept:
                out[f"{before}.layers.{kept.index(int(layer))}.{part}"] = array
        return out

    layers = {key: [kinds[n] for n in kept], "num_hidden_layers": len(kept)}
    return families.write_folder(family, folder, change, **layers)


@pytest.mark.parametrize("name", KINDS)
def test_a_model_without_attention_is_converted_both_ways(name: str, tmp_path: Path) -> None:
    source = written(name, tmp_path / "source")
    ids = tiny.golden(name).prompt
    expected = open_folder(source).logits(ids)
    assert np.isfinite(expected).all()
    file = akunu.convert(source, tmp_path / "x.gguf", "f32", progress=False)
    assert nmse(open_gguf(file).logits(ids), expected) < 1e-9
    back = akunu.convert(file, tmp_path / "back", "mlx-f32", progress=False)
    assert nmse(open_folder(back).logits(ids), expected) < 1e-9
