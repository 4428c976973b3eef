"""What a sequence keeps in memory: published shapes, by the published numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from akunu.cli import main
from akunu.files.describe.gguf_config import resolve
from akunu.files.describe.kept import kept_by, layers_text
from akunu.loading.synthetic import SyntheticModel

from . import families

KIB, MB = 1024, 1e6


@pytest.mark.parametrize(
    ("shape", "token", "windows", "states", "convolutions"),
    [
        ("qwen3-30b-a3b", 96, 0, 0, 0),
        ("qwen3.6-35b-a3b", 20, 0, 62.9, 2.9),
        ("qwen3.5-4b", 32, 0, 50.3, 2.4),
        ("gemma4-e2b", 6, 6.3, 0, 0),
        ("gemma4-e4b", 16, 21, 0, 0),
        ("gemma4-12b", 16, 335.5, 0, 0),
        ("gemma4-26b-a4b", 20, 209.7, 0, 0),
        ("gemma4-31b", 80, 838.9, 0, 0),
        ("deepseek-v2-lite", 27 * 1152 / KIB, 0, 0, 0),
    ],
)
def test_published_shapes(
    shape: str, token: float, windows: float, states: float, convolutions: float
) -> None:
    kept = kept_by(resolve(SyntheticModel(f"{shape}:q4_k_m"), context=4096).config)
    assert kept.token == token * KIB
    found = (kept.windows / MB, kept.states / MB, kept.convolutions / MB)
    assert found == pytest.approx((windows, states, convolutions), abs=0.1)


def test_inspect_says_layers_and_what_a_sequence_keeps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = families.write_gguf(families.ALL["nemotron_h_moe"], tmp_path / "model.gguf")
    layers = "4: 1 mamba2, 2 experts, 1 attention; a token uses 3 of 8 experts"
    assert main(["inspect", str(path)]) == 0
    out = capsys.readouterr().out
    assert f"layers   {layers}\n" in out
    assert "context  256 B a token in F16; states 25.0 KiB; convolutions 3.8 KiB\n" in out
    assert main(["inspect", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["context"] == {
        "layers": layers,
        "token": 256,
        "windows": 0,
        "states": 4 * 10 * 20 * 32,
        "convolutions": 4 * 3 * (200 + 2 * 2 * 32),
    }


def test_layers_are_counted_by_what_they_compute() -> None:
    config = resolve(SyntheticModel("lfm2-350m:q4_0"), context=4096).config
    assert layers_text(config) == "16: 10 short convolution, 16 feed forward, 6 attention"
    assert kept_by(config).convolutions == 10 * 4 * 1024 * 2
