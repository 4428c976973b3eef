"""Converting GGUF files: types, mixes, what is kept, what is refused, and stops at any moment."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

import akunu
from akunu import _core
from akunu.base.errors import AkunuError, InvalidArgumentError, ModelFileError, UnsupportedError
from akunu.files.describe.filetypes import FILE_TYPES
from children import environment
from models import folders, tiny
from models.test_engine import nmse, open_engine

# Normalised squared errors of the logits that are accepted, a quarter above what is measured. Random weights
# are as hard to quantise as any, and every layer adds its errors.
ERRORS = {
    "q2_k_s": 1.3, "q2_k": 1.2, "q3_k_s": 0.75, "q3_k_m": 0.62, "q3_k_l": 0.61, "iq4_xs": 0.25,
    "iq4_nl": 0.24, "q4_0": 0.29, "q4_1": 0.21, "q4_k_s": 0.2, "q4_k_m": 0.2, "mxfp4": 0.37, "q5_0": 0.075,
    "q5_1": 0.06, "q5_k_s": 0.066, "q5_k_m": 0.066, "q6_k": 0.016, "q8_0": 2.5e-3, "bf16": 1e-3, "f16": 1e-5,
    "f32": 1e-10, "tq1_0": 9.0, "tq2_0": 9.0, "q1_0": 9.0, "q2_0": 9.0,
}  # fmt: skip


@pytest.mark.parametrize("file_type", FILE_TYPES)
def test_every_file_type_runs(file_type: str, tmp_path: Path) -> None:
    source = tiny.write("llama_256", "F32", tmp_path / "source.gguf").path
    path = akunu.convert(source, tmp_path / "out.gguf", file_type, progress=False)
    prompt = tiny.golden("llama_256").prompt
    assert nmse(open_engine(path).logits(prompt), tiny.golden("llama_256").logits) < ERRORS[file_type]
    metadata = _core.GgufFile(str(path)).metadata
    assert metadata["general.file_type"] == FILE_TYPES[file_type].id
    assert ("general.quantization_version" in metadata) == (file_type not in ("f32", "f16", "bf16"))


def test_rows_that_are_no_whole_blocks_get_the_next_type(tmp_path: Path) -> None:
    """Of 256 columns: as asked; of 96 and 160: blocks of 32; of 100 and 172: F16."""
    for name, expected in (("llama", {"Q4_K", "Q5_0", "Q8_0"}), ("llama_odd", {"F16"})):
        source = tiny.write(name, "F32", tmp_path / "source.gguf").path
        path = akunu.convert(source, tmp_path / f"{name}.gguf", "q4_k_m", progress=False)
        tensors = gguf.GGUFReader(path).tensors
        assert {t.tensor_type.name for t in tensors if len(t.shape) == 2} == expected
        assert {t.tensor_type.name for t in tensors if len(t.shape) == 1} == {"F32"}
        assert nmse(open_engine(path).logits([1, 2, 3]), open_engine(source).logits([1, 2, 3])) < 0.2


def test_keys_and_strange_tensors_stay_as_they_are(tmp_path: Path) -> None:
    source = tiny.write("phi3_short", "MIXED", tmp_path / "source.gguf").path
    path = akunu.convert(source, tmp_path / "out.gguf", "q8_0", progress=False)
    old, new = _core.GgufFile(str(source)), _core.GgufFile(str(path))
    changed = {"general.file_type", "general.quantization_version"}
    kept = {key: value for key, value in new.metadata.items() if key not in changed}
    assert kept == {key: value for key, value in old.metadata.items() if key not in changed}
    types = {key: field.types for key, field in gguf.GGUFReader(source).fields.items()}
    for key, field in gguf.GGUFReader(path).fields.items():
        if not key.startswith("GGUF.") and key not in changed:
            assert field.types == types[key], key
    for name in ("rope_factors_long.weight", "output_norm.weight"):
        np.testing.assert_array_equal(new.tensor_bytes(name), old.tensor_bytes(name))


def test_a_type_that_a_tensor_has_already_is_copied(tmp_path: Path) -> None:
    first = akunu.convert("ember", tmp_path / "1.gguf", "q8_0", progress=False)
    second = akunu.convert(first, tmp_path / "2.gguf", "q8_0", progress=False)
    assert first.read_bytes() == second.read_bytes()


def resident(path: Path) -> int:
    """Bytes of a mapped file that this process has in memory."""
    inside, total = False, 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first = line.split()[0]
        if not first.endswith(":"):
            inside = line.endswith(str(path))
        elif inside and first == "Rss:":
            total += int(line.split()[1]) * 1024
    return total


RESIDENT = """
import sys
from pathlib import Path

import akunu
from loading.conversion.test_convert import resident

source, out, seen = Path(sys.argv[1]), sys.argv[2], []
akunu.convert(source, out, "q4_0", progress=lambda *_: seen.append(resident(source)))
print(max(seen))
"""


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="what is resident, as Linux tells it")
def test_no_more_of_the_source_is_in_memory_than_its_largest_tensor(tmp_path: Path) -> None:
    """In a process of its own: one that has run many tests has so many maps that it takes seconds."""
    source = akunu.convert("ember", tmp_path / "source.gguf", "f32", progress=False)
    largest = max(tensor.nbytes for tensor in _core.GgufFile(str(source)).tensors)
    command = [sys.executable, "-c", RESIDENT, str(source), str(tmp_path / "out.gguf")]
    told = subprocess.run(command, env=environment(), check=True, capture_output=True, text=True).stdout
    # The system maps pages around those that are read.
    assert largest / 2 < int(told) < 1.5 * largest < 0.3 * source.stat().st_size


def test_progress_ends_at_the_size_of_the_file(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    path = akunu.convert("ember", tmp_path / "e.gguf", "q4_0", progress=lambda *args: seen.append(args))
    assert all(0 < done <= total == path.stat().st_size for done, total in seen)
    assert seen == sorted(seen)
    assert path.stat().st_size - seen[-1][0] < 32


def test_no_number_is_refused_with_its_place_and_nothing_is_left(tmp_path: Path) -> None:
    def spoiled(weights: tiny.Weights) -> tiny.Weights:
        bad = weights["model.layers.1.mlp.up_proj.weight"].copy()
        bad[3, 5] = np.nan
        return weights | {"model.layers.1.mlp.up_proj.weight": bad}

    folder = folders.write("llama", tmp_path / "folder", arrays=spoiled)
    message = r"tensor 'model\.layers\.1\.mlp\.up_proj\.weight', row 3, column 5: found NaN"
    with pytest.raises(ModelFileError, match=message):
        akunu.convert(folder, tmp_path / "out.gguf", "q4_0", progress=False)
    assert not (tmp_path / "out.gguf").exists()


@pytest.mark.parametrize(
    ("out", "file_type", "message"),
    [
        ("x.gguf", "q4_2", "type: no 'q4_2'; there is f32, f16"),
        ("x.bin", "q4_0", r"out: found .*x\.bin', expected a name that ends in \.gguf"),
        ("no/x.gguf", "q4_0", "out: the folder .*no does not exist"),
        ("there.gguf", "q4_0", r"out: .*there\.gguf exists; overwrite=True"),
    ],
)
def test_wrong_arguments_are_refused(out: str, file_type: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "there.gguf").write_bytes(b"mine")
    with pytest.raises(InvalidArgumentError, match=message):
        akunu.convert("ember", tmp_path / out, file_type, progress=False)
    assert (tmp_path / "there.gguf").read_bytes() == b"mine"


def test_a_model_is_not_converted_onto_itself(tmp_path: Path) -> None:
    source = tiny.write("llama", "F32", tmp_path / "a.gguf").path
    before = source.read_bytes()
    with pytest.raises(InvalidArgumentError, match="is the model that is to be converted"):
        akunu.convert(source, source, "q4_0", overwrite=True, progress=False)
    assert source.read_bytes() == before


def test_an_existing_file_is_replaced_when_asked(tmp_path: Path) -> None:
    out = tmp_path / "x.gguf"
    out.write_bytes(b"old")
    akunu.convert("ember", out, "q4_0", overwrite=True, progress=False)
    assert out.read_bytes().startswith(b"GGUF")
    assert os.listdir(tmp_path) == ["x.gguf"]


class Stop(Exception):
    pass


def stopped(out: Path, file_type: str, share: float) -> None:
    def progress(done: int, total: int) -> None:
        if done >= share * total:
            raise Stop

    with pytest.raises(Stop):
        akunu.convert("ember", out, file_type, progress=progress)


def test_a_stopped_conversion_goes_on(tmp_path: Path) -> None:
    whole = akunu.convert("ember", tmp_path / "whole.gguf", "q4_k_m", progress=False).read_bytes()
    out = tmp_path / "out.gguf"
    for share in (0.3, 0.6):
        stopped(out, "q4_k_m", share)
        assert not out.exists()
    seen: list[int] = []
    akunu.convert("ember", out, "q4_k_m", progress=lambda done, _: seen.append(done))
    assert seen[0] > 0.55 * len(whole)
    assert out.read_bytes() == whole
    assert sorted(os.listdir(tmp_path)) == ["out.gguf", "whole.gguf"]


def test_another_conversion_of_that_name_begins_anew(tmp_path: Path) -> None:
    out = tmp_path / "out.gguf"
    stopped(out, "q4_k_m", 0.5)
    akunu.convert("ember", out, "q4_0", progress=False)
    assert os.listdir(tmp_path) == ["out.gguf"]
    assert _core.GgufFile(str(out)).metadata["general.file_type"] == FILE_TYPES["q4_0"].id


def test_that_holds_for_a_name_with_the_signs_of_a_pattern(tmp_path: Path) -> None:
    stopped(tmp_path / "mine.gguf", "q4_k_m", 0.5)
    stopped(tmp_path / "[m]?*.gguf", "q4_k_m", 0.5)
    left = set(os.listdir(tmp_path))
    akunu.convert("ember", tmp_path / "[m]?*.gguf", "q4_0", progress=False)
    assert left - set(os.listdir(tmp_path)) == {name for name in left if name.startswith(".[m]")}
    akunu.convert("ember", tmp_path / "*.gguf", "q4_0", progress=False)
    assert {name for name in left if name.startswith(".mine")} <= set(os.listdir(tmp_path))


def test_two_processes_do_not_write_one_file(tmp_path: Path) -> None:
    out = tmp_path / "out.gguf"

    def second(done: int, total: int) -> None:
        with pytest.raises(AkunuError, match="another process is writing it"):
            akunu.convert("ember", out, "q8_0", progress=False)
        raise Stop

    with pytest.raises(Stop):
        akunu.convert("ember", out, "q8_0", progress=second)


CONVERT = """
import sys, time, akunu
akunu.convert("ember", sys.argv[1], "q4_k_m", progress=lambda done, total: time.sleep(0.01))
"""


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_kill_at_any_moment_leaves_no_broken_file(seed: int, tmp_path: Path) -> None:
    whole = akunu.convert("ember", tmp_path / "whole.gguf", "q4_k_m", progress=False).read_bytes()
    out = tmp_path / "out.gguf"
    rng = random.Random(seed)
    kills = 0
    while not out.exists():
        process = subprocess.Popen([sys.executable, "-c", CONVERT, str(out)], stderr=subprocess.DEVNULL)
        try:
            process.wait(rng.uniform(0.2, 0.9) if kills < 8 else 120)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT if rng.random() < 0.3 else signal.SIGKILL)
            process.wait()
            kills += 1
    assert kills > 0
    assert out.read_bytes() == whole
    assert sorted(os.listdir(tmp_path)) == ["out.gguf", "whole.gguf"]


@pytest.mark.parametrize("out", ["", 3, b"x.gguf", None])
def test_what_is_written_has_a_name(out: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"^out: expected a path, got .*\({type(out).__name__}\)"):
        akunu.convert("ember", out, "q8_0", progress=False)


@pytest.mark.parametrize(("name", "kind"), [("out.gguf", "q4_0"), ("out", "mlx-4bit")])
def test_a_full_disk_is_said_before_anything_is_written(
    name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(AkunuError, match=r"needs \d+ bytes more, but .* has 1000 free"):
        akunu.convert("ember", tmp_path / name, kind, progress=False)
    assert sorted(tmp_path.iterdir()) == before


def test_the_same_command_makes_the_same_file(tmp_path: Path) -> None:
    first = akunu.convert("ember", tmp_path / "a.gguf", "q4_0", progress=False)
    second = akunu.convert("ember", tmp_path / "b.gguf", "q4_0", threads=1, progress=False)
    assert first.read_bytes() == second.read_bytes()


def test_what_is_no_decoder_is_refused(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(str(tmp_path / "x.gguf"), "whisper")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(UnsupportedError, match=r"general\.architecture: found 'whisper'"):
        akunu.convert(tmp_path / "x.gguf", tmp_path / "y.gguf", "q4_0", progress=False)
