"""The differ names the first command that is wrong, and none where nothing is."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
from click.testing import CliRunner

from akunu import _core
from akunu.base.errors import InvalidArgumentError
from akunu.cli.bench.differ import Steps, command, first_difference
from akunu.files.describe.gguf_config import resolve
from models import tiny

IDS = np.arange(40, dtype=np.uint32) * 7 % 250


def open_engine(path: Path, **options: object) -> _core.Engine:
    file = _core.GgufFile(str(path))
    return _core.Engine(
        file,
        resolve(file, context=64),
        device="cpu",
        context=64,
        parallel=1,
        activations_apart=True,
        **options,
    )


def spoiled(path: Path, tensor: str, to: Path) -> Path:
    """The same model with one element of one tensor changed."""
    data = bytearray(path.read_bytes())
    reader = gguf.GGUFReader(path)
    at = next(t for t in reader.tensors if t.name == tensor).data_offset
    data[at : at + 4] = np.float32(30.0).tobytes()
    to.write_bytes(data)
    return to


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write("llama_256", "F32", tmp_path_factory.mktemp("differ") / "tiny.gguf").path


@pytest.mark.parametrize("rows", [1, 30])
@pytest.mark.parametrize(
    ("tensor", "label"),
    [
        ("blk.1.ffn_down.weight", "layers.1.ffn_down"),
        ("blk.2.attn_q.weight", "layers.2.attn_q"),
        ("blk.0.ffn_norm.weight", "layers.0.ffn_norm"),
        ("output_norm.weight", "output_norm"),
    ],
)
def test_the_command_that_is_wrong_is_named(
    path: Path, tmp_path: Path, rows: int, tensor: str, label: str
) -> None:
    other = open_engine(spoiled(path, tensor, tmp_path / "spoiled.gguf"))
    found = first_difference(open_engine(path), other, IDS, rows=rows, tolerance=1e-9)
    assert found is not None and found.command == label, found
    assert found.since[-1] == label and found.error > 1e-9 and found.found != found.expected


def test_engines_that_agree_differ_nowhere(path: Path) -> None:
    for rows in (1, 7, 40):
        assert (
            first_difference(open_engine(path), open_engine(path, threads=2), IDS, rows=rows, tolerance=0)
            is None
        )


def test_a_prefix_leaves_the_text_as_it_was(path: Path) -> None:
    plain, probed = open_engine(path), open_engine(path)
    steps = Steps(probed, IDS, 1)
    for i in range(len(steps.commands)):
        steps.written(i)
    with pytest.raises(InvalidArgumentError, match=r"a step of 1 rows has \d+ commands, not 1000"):
        probed.run_prefix(0, 1000)
    plain.begin(IDS, slot=plain.open())
    plain.reserve(0, len(IDS))
    assert plain.step([(0, len(IDS), True, 1, [])])[0][0].ids == probed.step([(0, 1, True, 1, [])])[0][0].ids


def test_instruction_sets_agree_but_for_rounding() -> None:
    """Also as a command; with no tolerance, rounding is found."""
    run = CliRunner().invoke
    agree = run(command, ["ember", "--isa", "generic"])
    assert agree.exit_code == 0 and "agree in every command" in agree.output, agree.output
    differ = run(command, ["ember", "--isa", "generic", "--rows", "3", "--tolerance", "0"])
    assert differ.exit_code in (0, 1)
    if differ.exit_code == 1:  # this processor has another set
        assert "is the first to disagree" in differ.output and "commands since both agreed" in differ.output
    assert run(command, ["ember"]).exception is not None
