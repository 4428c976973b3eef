"""Importance matrices: measured, in both kinds of files, and used."""

from __future__ import annotations

import struct
from collections import defaultdict
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

import akunu
from akunu import ImportanceMatrix, _core
from akunu.base.errors import InvalidArgumentError, ModelFileError
from akunu.files.describe.filetypes import FILE_TYPES, tensor_dtype
from akunu.files.importance import is_importance_file, text_windows
from models import convert, reference, tiny
from models.reference import Reference
from models.test_engine import open_engine

TEXT = "Once upon a time there was a little fox. The fox looked for a friend, and found a hare. " * 30


def columns(n: int = 64, seed: int = 1) -> dict[str, Any]:
    rng = np.random.RandomState(seed)
    return {f"blk.{i}.attn_q.weight": rng.gamma(1, 1, n).astype(np.float32) for i in range(3)}


def matrix(**changes: Any) -> ImportanceMatrix:
    means = columns()
    values: dict[str, Any] = {
        "means": means, "tokens": dict.fromkeys(means, 700), "window": 512, "texts": ("book.txt",),
    }  # fmt: skip
    return ImportanceMatrix(**(values | changes))


@pytest.mark.parametrize(
    ("name", "dtype"), [("llama_256", "F32"), ("phi3_short", "F32"), ("llama_256", "Q8_0")]
)
def test_the_sums_are_those_of_the_inputs_of_every_matmul(
    name: str, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tiny.write(name, dtype, tmp_path / "m.gguf").path
    ids = np.asarray(tiny.golden(name).prompt, np.uint32)
    texts = [ids[:7], ids[7:], ids[3:4]]
    seen: list[int] = []
    found = open_engine(path).input_squares(texts, seen.append)
    assert seen == [1, 2, 3]

    expected: dict[str, Any] = defaultdict(float)
    project = reference.project

    def recorded(layer: Any, name: str, x: Any) -> Any:
        expected[f"{layer._prefix}{name}"] += (x**2).sum(axis=0)
        return project(layer, name, x)

    monkeypatch.setattr(reference, "project", recorded)
    oracle = Reference(path, context=tiny.CONTEXT)
    for text in texts:
        oracle.logits(text.tolist())
    fused = {name.replace("ffn_gate_up", "ffn_gate"): sums for name, (sums, _) in found.items()}
    assert fused.keys() <= expected.keys()
    assert {name.replace("ffn_up", "ffn_gate") for name in expected} == {
        name.replace("ffn_up", "ffn_gate") for name in fused
    }
    for name, sums in fused.items():
        # Weights of eight bits read inputs of eight bits.
        np.testing.assert_allclose(sums, expected[name], rtol=1e-4 if dtype == "F32" else 0.2)


def test_a_model_measures_a_text_in_windows() -> None:
    with akunu.load("ember", device="cpu", progress=False) as model:
        seen: list[tuple[int, int]] = []
        found = model.importance_matrix(TEXT, name="fox.txt", progress=lambda *args: seen.append(args))
        n = len(model.tokenize(TEXT, add_special=False))
    assert seen == [(i + 1, len(seen)) for i in range(len(seen))]
    assert len(seen) == -(-n // 512)
    assert (found.texts, found.window, found.windows) == (("fox.txt",), 512, len(seen))
    matrices = [t for t in _core.GgufFile(str(model.path)).tensors if len(t.shape) == 2 and "blk" in t.name]
    assert {name: len(means) for name, means in found.means.items()} == {t.name: t.shape[1] for t in matrices}
    assert set(found.tokens.values()) == {n}


def test_windows_hold_every_token_once_and_begin_alike() -> None:
    found = text_windows(np.arange(10, 20, dtype=np.uint32), [1], 5)
    assert [window.tolist() for window in found] == [[1, 10, 11, 12, 13], [1, 14, 15, 16, 17], [1, 18, 19]]
    with pytest.raises(InvalidArgumentError, match="context: 1 tokens leave none to measure"):
        text_windows(np.arange(3, dtype=np.uint32), [1], 1)
    with pytest.raises(InvalidArgumentError, match="text: no tokens"):
        text_windows(np.empty(0, np.uint32), [1], 5)


# ---- files ----


@pytest.mark.parametrize("name", ["m.gguf", "m.dat", "m.imatrix"])
def test_what_is_written_is_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    written = matrix()
    written.write(path)
    assert is_importance_file(path)
    assert path.read_bytes().startswith(b"GGUF") == (path.suffix == ".gguf")
    found = ImportanceMatrix.read(path)
    assert found.means.keys() == written.means.keys()
    for tensor, means in written.means.items():
        np.testing.assert_allclose(found.means[tensor], means, rtol=1e-6)
    assert (found.texts, found.window, found.windows) == (("book.txt",), 512, 2)
    # The older format counts windows.
    assert set(found.tokens.values()) == {700 if path.suffix == ".gguf" else 1024}


def test_the_gguf_file_is_the_one_of_llama_cpp(tmp_path: Path) -> None:
    """Keys, names, shapes and types, as its quantiser asks for them."""
    matrix().write(tmp_path / "m.gguf")
    reader = gguf.GGUFReader(tmp_path / "m.gguf")
    values = {key: field.contents() for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    assert values == {
        "general.type": "imatrix",
        "imatrix.datasets": ["book.txt"],
        "imatrix.chunk_count": 2,
        "imatrix.chunk_size": 512,
    }
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    assert len(tensors) == 6
    assert tensors["blk.1.attn_q.weight.in_sum2"].shape.tolist() == [64, 1]
    assert tensors["blk.1.attn_q.weight.counts"].shape.tolist() == [1, 1]
    assert tensors["blk.1.attn_q.weight.counts"].data.tolist() == [[700]]
    np.testing.assert_allclose(
        tensors["blk.1.attn_q.weight.in_sum2"].data[0], 700 * columns()["blk.1.attn_q.weight"], rtol=1e-6
    )


def test_the_older_file_has_its_published_layout(tmp_path: Path) -> None:
    name, text = b"blk.0.ffn_up.weight", b"wiki.txt"
    data = struct.pack("<ii", 1, len(name)) + name + struct.pack("<ii3f", 4, 3, 4.0, 8.0, 0.0)
    path = tmp_path / "imatrix.dat"
    path.write_bytes(data)  # as the first programs left it
    assert ImportanceMatrix.read(path).means["blk.0.ffn_up.weight"].tolist() == [1, 2, 0]
    whole = data + struct.pack("<ii", 4, len(text)) + text
    path.write_bytes(whole)
    found = ImportanceMatrix.read(path)
    assert (found.texts, found.tokens) == (("wiki.txt",), {"blk.0.ffn_up.weight": 2048})
    found.write(tmp_path / "again.dat")
    assert (tmp_path / "again.dat").read_bytes() == whole


@pytest.mark.parametrize(("name", "needed"), [("m.gguf", -32), ("m.dat", -16)])
def test_a_file_that_was_cut_is_refused(name: str, needed: int, tmp_path: Path) -> None:
    """But for what nobody needs at the end: padding, and the name of the text."""
    matrix().write(tmp_path / name)
    data = (tmp_path / name).read_bytes()
    for end in [*range(8, len(data) + needed, 97), len(data) + needed - 1]:
        (tmp_path / name).write_bytes(data[:end])
        with pytest.raises(ModelFileError, match=name):
            ImportanceMatrix.read(tmp_path / name)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a text, and nothing else", "is not an importance matrix: expected GGUF, or the older .dat"),
        (struct.pack("<ii", -1, 4), "the count of entries: found -1"),
        (bytes(100), "has no entries"),
        (struct.pack("<iii", 1, 1 << 30, 0), "the length of the name of entry 0: found 1073741824"),
        (struct.pack("<ii", 1, 1) + b"x" + struct.pack("<ii", 1, 1 << 27), "ends within the values of 'x'"),
        (struct.pack("<ii", 1, 1) + b"x" + struct.pack("<iif", 1, 1, -1), "x has a mean square that is NaN"),
        (struct.pack("<ii", 1, 1) + b"x" + struct.pack("<iif", 1, 1, np.nan), "x has a mean square that"),
    ],
)
def test_what_is_none_is_refused(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(ModelFileError, match=message):
        ImportanceMatrix.read(tmp_path / "x")


def test_a_model_is_no_importance_matrix() -> None:
    path = Path(akunu.__file__).parent / "models" / "ember.gguf"
    with pytest.raises(ModelFileError, match=r"general\.type: found .*, expected 'imatrix'"):
        ImportanceMatrix.read(path)
    with pytest.raises(ModelFileError, match="cannot be read: No such file"):
        ImportanceMatrix.read(path.with_name("none.gguf"))


# ---- use ----


@pytest.fixture(scope="module")
def text_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "fox.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="module")
def measured() -> ImportanceMatrix:
    with akunu.load("ember", device="cpu", parallel=1, progress=False) as model:
        return model.importance_matrix(TEXT, name="fox.txt")


def test_weights_are_quantised_with_it(measured: ImportanceMatrix, text_file: Path, tmp_path: Path) -> None:
    path = akunu.convert("ember", tmp_path / "a.gguf", "q3_k_m", imatrix=measured, progress=False)
    old, new = (
        _core.GgufFile(str(Path(akunu.__file__).parent / "models/ember.gguf")),
        _core.GgufFile(str(path)),
    )
    assert new.metadata["quantize.imatrix.dataset"] == "fox.txt"
    assert new.metadata["quantize.imatrix.entries_count"] == len(measured.means)
    assert new.metadata["quantize.imatrix.chunks_count"] == measured.windows
    for tensor in new.tensors:
        if len(tensor.shape) == 2:
            wanted = _core.quantize(
                tensor.dtype,
                old.tensor_bytes(tensor.name).reshape(tensor.shape[0], -1),
                tensor.shape[1],
                source="q8_0",
                importance=measured.means.get(tensor.name),
            )
            np.testing.assert_array_equal(new.tensor_bytes(tensor.name), wanted.reshape(-1))
    # A text, and a file, are the same.
    measured.write(tmp_path / "m.gguf")
    for other in (text_file, tmp_path / "m.gguf"):
        again = akunu.convert(
            "ember", tmp_path / "b.gguf", "q3_k_m", imatrix=other, overwrite=True, progress=False
        )
        found = _core.GgufFile(str(again))
        same = [np.array_equal(found.tensor_bytes(t.name), new.tensor_bytes(t.name)) for t in new.tensors]
        # The file's sums were rounded.
        assert all(same) if other is text_file else sum(same) > 0.5 * len(same)


@pytest.mark.parametrize(
    ("file_type", "plain", "weighted"),
    [
        ("q4_0", "q4_0", "q4_1"),
        ("q5_0", "q5_0", "q5_1"),
        ("iq4_nl", "q5_k", "iq4_nl"),
        ("iq4_xs", "q5_k", "iq4_xs"),
        ("q4_k_s", "q5_k", "q5_k"),
    ],
)
def test_mixes_with_a_matrix_are_those_of_llama_cpp(file_type: str, plain: str, weighted: str) -> None:
    """Of eight layers, the first one's ffn_down; the others are as they were."""
    for layer, found in ((0, (plain, weighted)), (1, (FILE_TYPES[file_type].dtype,) * 2)):
        place: dict[str, Any] = {"layer": layer, "n_layers": 8, "cols": 256, "gqa": 1, "tied": True}
        assert tensor_dtype(file_type, "ffn_down", **place) == found[0]
        assert tensor_dtype(file_type, "ffn_down", **place, weighted=True) == found[1]


def test_texts_of_the_same_kind_get_closer_logits(measured: ImportanceMatrix, tmp_path: Path) -> None:
    """The mean divergence of what the weights predict from what they predicted before, on another text."""
    text = "The hare had a little friend, a fox. One day the hare looked for the fox in the wood. " * 3

    def predictions(path: str | Path) -> Any:
        with akunu.load(path, device="cpu", parallel=1, progress=False) as model:
            logits = model.logits(model.tokenize(text)).astype(np.float64)
        logits -= logits.max(axis=1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))

    exact = predictions("ember")
    divergence = []
    for imatrix in (None, measured):
        path = akunu.convert(
            "ember", tmp_path / "x.gguf", "q2_k_s", imatrix=imatrix, overwrite=True, progress=False
        )
        divergence.append((np.exp(exact) * (exact - predictions(path))).sum(axis=1).mean())
    assert divergence[1] < 0.95 * divergence[0]


def test_another_matrix_begins_anew(measured: ImportanceMatrix, tmp_path: Path) -> None:
    """What lies there of a conversion without it is not gone on with."""

    class Stop(Exception):
        pass

    def stop(done: int, total: int) -> None:
        if done > 0.7 * total:
            raise Stop

    out = tmp_path / "x.gguf"
    with pytest.raises(Stop):
        akunu.convert("ember", out, "q2_k_s", imatrix=matrix(means=dict(measured.means)), progress=stop)
    seen: list[int] = []
    other = matrix(means={name: means[::-1].copy() for name, means in measured.means.items()})
    akunu.convert("ember", out, "q2_k_s", imatrix=other, progress=lambda done, _: seen.append(done))
    assert seen[0] < 0.3 * out.stat().st_size


@pytest.mark.parametrize(
    ("imatrix", "error", "message"),
    [
        (matrix(), ModelFileError, r"tensor blk\.0\.attn_q\.weight has 64 columns, the model's has 256"),
        (
            matrix(means={"blk.0.ssm.weight": np.ones(3, np.float32)}),
            ModelFileError,
            "none of the model's tensors",
        ),
        ("none.txt", ModelFileError, "none.txt: cannot be read: No such file"),
    ],
)
def test_what_does_not_belong_to_the_model_is_refused(
    imatrix: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    if isinstance(imatrix, ImportanceMatrix):
        imatrix = matrix(means=dict(imatrix.means), tokens=dict.fromkeys(imatrix.means, 700))
    with pytest.raises(error, match=message):
        akunu.convert("ember", tmp_path / "x.gguf", "q4_0", imatrix=imatrix, progress=False)


def test_what_names_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="imatrix: expected a path, got True"):
        akunu.convert("ember", tmp_path / "x.gguf", "q4_0", imatrix=True, progress=False)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="path: expected a path, got 5"):
        ImportanceMatrix.read(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="path: no file can have the name"):
        matrix().write("\ud800")


def test_what_is_no_file_is_not_read() -> None:
    for device in ("/dev/zero", "/dev/urandom"):
        with pytest.raises(ModelFileError, match=f"{device}: is not a regular file"):
            akunu.convert("ember", "x.gguf", "q4_0", imatrix=device, progress=False)


def test_other_bytes_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"caf\xe9 latin")
    with pytest.raises(InvalidArgumentError, match="neither UTF-8 text nor an importance matrix"):
        akunu.convert("ember", tmp_path / "x.gguf", "q4_0", imatrix=tmp_path / "x", progress=False)
    (tmp_path / "empty").touch()
    with pytest.raises(InvalidArgumentError, match=r"imatrix: .*empty is empty"):
        akunu.convert("ember", tmp_path / "x.gguf", "q4_0", imatrix=tmp_path / "empty", progress=False)
    with pytest.raises(
        InvalidArgumentError, match="in a folder no errors are weighed, and mlx-4bit makes one"
    ):
        akunu.convert("ember", tmp_path / "out", "mlx-4bit", imatrix=matrix(), progress=False)


def test_a_file_of_llama_imatrix_has_no_outer_dimension_of_1(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "")
    writer.add_string("general.type", "imatrix")
    writer.add_tensor("blk.0.attn_q.weight.in_sum2", np.float32([8, 16, 24]))
    writer.add_tensor("blk.0.attn_q.weight.counts", np.float32([8]))
    convert.finish(writer)
    matrix = ImportanceMatrix.read(tmp_path / "x.gguf")
    np.testing.assert_array_equal(matrix.means["blk.0.attn_q.weight"], [1, 2, 3])
    assert matrix.tokens == {"blk.0.attn_q.weight": 8}
