"""Finding a model by its name, and the checks of `load` before the core is asked."""

from __future__ import annotations

import io
import math
import os
import re
import sys
from types import SimpleNamespace

import gguf
import numpy as np
import pytest

import akunu
from akunu.base import progress
from akunu.base.errors import InvalidArgumentError, ModelFileError, UnsupportedError
from akunu.base.progress import reporter
from akunu.files.hub import download as hub
from akunu.loading import finding
from akunu.loading import load as loading
from akunu.loading.finding import find_model
from akunu.loading.placement import present
from own_view import give_own_view


def touch(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    return path


def test_a_file_is_itself(tmp_path):
    file = touch(tmp_path / "a model.gguf")
    assert find_model(file) == find_model(str(file)) == file
    assert find_model(touch(tmp_path / "no-suffix")).name == "no-suffix"


def test_home_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    file = touch(tmp_path / "m.gguf")
    assert find_model("~/m.gguf") == file


def test_a_missing_file_names_what_is_near(tmp_path):
    touch(tmp_path / "Llama-3-Q4_0.gguf")
    with pytest.raises(ModelFileError, match=r"did you mean .*Llama-3-Q4_0\.gguf\?"):
        find_model(tmp_path / "llama-3-q4-0.gguf")
    with pytest.raises(ModelFileError, match=r"did you mean .*Llama-3-Q4_0\.gguf\?"):
        find_model(tmp_path / "Llama-3-Q4_0")
    with pytest.raises(ModelFileError, match=r"the folder .*nowhere does not exist"):
        find_model(tmp_path / "nowhere" / "m.gguf")
    with pytest.raises(
        ModelFileError, match=r"expected a GGUF file, a folder, user/repo.*or a built-in model"
    ):
        find_model(tmp_path / "zzzzzz.gguf")
    with pytest.raises(ModelFileError, match=r"no model 'embers'; did you mean ember\?"):
        find_model("embers")


def test_the_suffix_that_all_files_share_does_not_make_names_alike(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("trunc.gguf", "empty.gguf", "text.gguf"):
        touch(tmp_path / name)
    with pytest.raises(ModelFileError, match=r"no model 'nosuch\.gguf'; expected a GGUF file"):
        find_model("nosuch.gguf")
    with pytest.raises(ModelFileError, match=r"no model 'emberr'; did you mean ember\?"):
        find_model("emberr")
    with pytest.raises(ModelFileError, match=r"did you mean trunc\.gguf\?"):
        find_model("trunk.gguf")


def test_a_directory_says_what_is_in_it(tmp_path):
    with pytest.raises(ModelFileError, match="without GGUF or SafeTensors files"):
        find_model(tmp_path)
    touch(tmp_path / "pytorch_model.bin")
    with pytest.raises(UnsupportedError, match=r"Python pickles \(pytorch_model\.bin\), .*save_pretrained"):
        find_model(tmp_path)
    touch(tmp_path / "b.gguf")
    with pytest.raises(ModelFileError, match=r"is a directory; name a file in it: b\.gguf"):
        find_model(tmp_path)


def test_a_folder_of_safetensors_is_a_model(tmp_path):
    file = touch(tmp_path / "model.safetensors")
    assert find_model(tmp_path) == tmp_path
    touch(tmp_path / "config.json")
    touch(tmp_path / "b.gguf")
    assert find_model(tmp_path) == tmp_path
    with pytest.raises(ModelFileError, match="holds weights alone; load the folder that it lies in"):
        find_model(file)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "x.pth", "x.ckpt"])
def test_pickles_are_refused_with_the_remedy(name, tmp_path):
    with pytest.raises(UnsupportedError, match=r"Python pickles .* can run any code; take a SafeTensors"):
        find_model(touch(tmp_path / name))


def test_a_later_part_of_a_split_model_names_the_first(tmp_path):
    file = touch(tmp_path / "m-00002-of-00003.gguf")
    with pytest.raises(ModelFileError, match=r"part 2 of 3; load the first one, .*m-00001-of-00003\.gguf"):
        find_model(file)
    assert find_model(touch(tmp_path / "m-00001-of-00003.gguf"))


@pytest.mark.parametrize("name", ["Qwen/Qwen3-0.6B-GGUF", "a/b:Q4_0", "a/b:sub/f.gguf", "a/b:f.gguf"])
def test_a_repository_goes_to_the_hub(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    asked = []
    monkeypatch.setattr(
        hub, "fetch", lambda name, token, progress, tower: asked.append(str(name)) or tmp_path
    )
    assert find_model(name) == tmp_path
    assert asked == [name]


@pytest.mark.parametrize(
    "name", ["models/m.gguf", "a/b/c", "/a/b", "./a", "../a/b", "m.gguf", "-a/b", "a/b:"]
)
def test_what_is_no_repository_does_not(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hub, "fetch", lambda *_, **__: pytest.fail("asked the Hub"))
    with pytest.raises(ModelFileError):
        find_model(name)


def test_an_existing_path_wins_over_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    touch(tmp_path / "user" / "repo")
    assert find_model("user/repo").name == "repo"


def test_a_built_in_name_means_the_same_in_every_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    touch(tmp_path / "ember" / "other.gguf")
    monkeypatch.setattr(finding, "BUILT_IN", {"ember": str(touch(tmp_path / "built-in.gguf"))})
    assert find_model("ember").name == "built-in.gguf"
    with pytest.raises(ModelFileError, match=r"is a directory; name a file in it: other\.gguf"):
        find_model("./ember")


def test_an_empty_name_is_refused():
    with pytest.raises(InvalidArgumentError, match="path"):
        find_model("")


@pytest.mark.parametrize("path", [None, b"ember", 5, ["ember"]])
def test_a_name_that_is_no_text_is_refused(path):
    with pytest.raises(InvalidArgumentError, match=f"path: expected a text or a path.*{type(path).__name__}"):
        find_model(path)
    with pytest.raises(InvalidArgumentError, match="path: expected a path"):
        akunu.Tokenizer.from_gguf(path)


@pytest.mark.parametrize("folder", ["", 3, b"cache", [], math.nan])
def test_a_cache_is_in_a_folder_with_a_name(folder):
    with pytest.raises(
        InvalidArgumentError, match=rf"^cache_dir: expected a path.*\({type(folder).__name__}\)"
    ):
        akunu.load("ember", cache_dir=folder)


def test_an_error_names_the_argument_that_it_is_about():
    with pytest.raises(InvalidArgumentError, match=r"^draft: expected the name of a model"):
        akunu.load("ember", draft="", progress=False)
    with pytest.raises(InvalidArgumentError, match=r"^quantize: no \[\]; there is "):
        akunu.load("ember", quantize=[])


@pytest.mark.parametrize("name", ["a" * 5000, "~nobody-of-that-name/m.gguf"])
def test_a_name_that_the_system_refuses_is_no_model(name):
    with pytest.raises(ModelFileError, match="no model"):
        find_model(name)


@pytest.fixture
def core(monkeypatch):
    """A core with a GPU and a CPU, and no files."""
    devices = [{"id": "metal"}, {"id": "cpu"}]
    core = SimpleNamespace(devices=lambda: devices)
    monkeypatch.setitem(sys.modules, "akunu._core", core)
    monkeypatch.setattr("akunu._core", core, raising=False)
    return core


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"context": -2}, "context: found -2, expected"),
        ({"context": -1}, "context"),
        ({"context": 1.5}, "context: found 1.5, expected an integer"),
        ({"threads": -2}, "threads: found -2, expected"),
        ({"threads": 1025}, "threads: found 1025, expected"),
        ({"threads": True}, "threads: found True, expected an integer"),
        ({"device": "gpu"}, "device: no 'gpu' here; there is metal, cpu"),
        ({"kv_dtype": None}, "kv_dtype: no None; there is f16, f32, q8_0, q4_0"),
        ({"kv_dtype": "q4"}, "kv_dtype: no 'q4'; there is f16, f32, q8_0"),
        ({"progress": 5}, "progress: expected True, False or a function, got 5"),
    ],
)
def test_bad_arguments_are_refused_before_the_file_is_opened(core, arguments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        loading.load("does-not-exist.gguf", **arguments)


def test_auto_takes_a_gpu_when_there_is_one(core):
    assert present("auto")[0] == "metal"
    core.devices = lambda: [{"id": "cpu"}]
    assert present("auto") == ["cpu"]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_no_bar_without_a_terminal(monkeypatch):
    closed = io.StringIO()
    closed.close()
    for stream in (io.StringIO(), closed, None, object()):
        monkeypatch.setattr(sys, "stderr", stream)
        with reporter(True, "Loading") as report:
            assert report is None
    monkeypatch.setattr(sys, "stderr", Terminal())
    with reporter(False, "Loading") as report:
        assert report is None


def test_a_quick_load_shows_no_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with reporter(True, "Loading") as report:
        for done in range(100):
            report(done, 100)
    assert terminal.getvalue() == ""


def test_a_slow_load_shows_a_bar_and_clears_it(monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    now = [0.0]
    give_own_view(monkeypatch, progress, "time", monotonic=lambda: now[0])
    with reporter(True, "Loading") as report:
        report(1, 10**9)
        now[0] = 1.0
        report(5 * 10**8, 10**9)
    assert "Loading" in terminal.getvalue()


def test_a_notebook_shows_a_line_that_is_written_over_and_cleared(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    now = [0.0]
    give_own_view(monkeypatch, progress, "time", monotonic=lambda: now[0])
    for unit, shown in (("bytes", "Loading: 50% of 1.0 GiB"), ("count", "Loading: 536870912 of 1073741824")):
        monkeypatch.setattr(sys, "stderr", cell := io.StringIO())
        with reporter(True, "Loading", unit=unit) as report:
            report(1, 1 << 30)
            assert cell.getvalue() == ""  # so far it may be over at once
            for later in (1.0, 0.1):  # the second change is too soon to be shown
                now[0] += later
                report(1 << 29, 1 << 30)
        assert cell.getvalue() == f"\rLoading …\r{shown}\r{' ' * len(shown)}\r"


def test_a_function_is_called_as_it_is():
    seen = []
    with reporter(lambda *done: seen.append(done), "Loading") as report:
        report(1, 2)
        report(2, 2, "compiling")
    assert seen == [(1, 2), (2, 2)]


def test_a_function_that_needs_three_arguments_is_told_what_is_done():
    seen = []

    def told(done, total, what):
        seen.append((done, total, what))

    def not_told(done, total, what="mine"):
        seen.append((done, total, what))

    for function in (told, not_told):
        with reporter(function, "Loading") as report:
            report(1, 2)
            report(2, 2, "compiling")
    assert seen == [(1, 2, ""), (2, 2, "compiling"), (1, 2, "mine"), (2, 2, "mine")]


def test_progress_is_told_at_the_beginning_and_the_end():
    seen = []
    akunu.load("ember", threads=1, context=256, progress=lambda *done: seen.append(done)).close()
    assert seen == sorted(seen) and 0 < seen[0][0] < seen[-1][0] == seen[-1][1]


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "m.gguf")
    for name in ("m.gguf", "link.gguf"):
        if name == "link.gguf":
            (tmp_path / name).symlink_to("m.gguf")
        with pytest.raises(ModelFileError, match=rf"{name}: is not a regular file"):
            akunu.load(tmp_path / name, progress=False)


@pytest.mark.parametrize(
    ("name", "pieces"),
    [
        *(("big.gguf.part1of2", "big.gguf.part*"), ("big.gguf.part2of2", "big.gguf.part*")),
        *(("big.gguf-split-a", "big.gguf-split-*"), ("big.gguf.part-aa", "big.gguf.part-*")),
        *(("a big.gguf.part1", "'a big.gguf.part'*"), ("big.gguf-part-00001-of-00002", "big.gguf-part-*")),
        *(("big.gguf.001", "big.gguf.???"), ("big.gguf.ab", "big.gguf.??")),
    ],
)
def test_a_piece_says_how_to_join_it(name, pieces, tmp_path):
    whole = "'a big.gguf'" if "'" in pieces else "big.gguf"
    command = re.escape(f"cat {pieces} > {whole}")
    with pytest.raises(ModelFileError, match=f"is a piece of a file that was cut .*{command}"):
        akunu.load(touch(tmp_path / name), progress=False)


def test_a_file_with_a_tower_for_pictures_runs_as_text_and_says_so(tmp_path):
    with akunu.load("ember", progress=False) as ember:
        source, out = gguf.GGUFReader(ember.path), gguf.GGUFWriter(tmp_path / "tower.gguf", "llama")
        expected = ember.generate("Once upon", temperature=0, max_tokens=5).ids
    for field in source.fields.values():
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            kinds = field.types
            out.add_key_value(field.name, field.contents(), kinds[0], kinds[-1] if len(kinds) > 1 else None)
    for tensor in source.tensors:
        out.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    for name in ("v.patch_embedding.weight", "a.blk.0.attn_q.weight", "mm.mm_input_projection.weight"):
        out.add_tensor(name, np.zeros((32, 32), np.float32))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    with pytest.warns(RuntimeWarning, match=r"tower\.gguf has a tower for pictures or sounds") as told:
        model = akunu.load(tmp_path / "tower.gguf", progress=False)
    with model:
        assert model.generate("Once upon", temperature=0, max_tokens=5).ids == expected
    assert len(told) == 1


def test_a_class_that_is_called_with_a_name_loads_a_model_of_its_kind():
    with akunu.WhisperModel("ember-speech", progress=False) as hearing:
        assert type(hearing) is akunu.WhisperModel and hearing.name == "ember-speech"
    with akunu.Model("ember", context=256, progress=False) as model:
        assert model.context == 256
    with pytest.raises(UnsupportedError):
        akunu.WhisperModel("ember", progress=False)
    with pytest.raises(UnsupportedError, match="found a model of the kind WhisperModel, expected Model"):
        akunu.Model("ember-speech", progress=False)
    with pytest.raises(TypeError):
        akunu.EmbeddingModel()
