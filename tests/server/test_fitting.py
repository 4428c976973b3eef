"""Settings for all models of a server: each takes what fits it, and what fits none is refused."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sys
from pathlib import Path

import msgspec
import pytest

from akunu import AkunuError, InvalidArgumentError, _core
from akunu.files.describe.blocks import Attention, Block
from akunu.files.describe.config import ModelConfig
from akunu.loading import finding
from akunu.loading.finding import FoundModel
from akunu.server.catalog import from_name, from_place
from akunu.server.fitting import default_context, fitted
from akunu.server.models import Registry

from .conftest import EMBER, serving


def preload(workers, *specs):
    async def run() -> None:
        registry = Registry(specs, 4, None, workers)
        try:
            await registry.preload()
        finally:
            await registry.close()

    asyncio.run(run())


def test_a_context_is_for_the_models_that_have_one(caplog):
    caplog.set_level(logging.INFO, "akunu.server")
    specs = [from_name(name, context=512, parallel=2) for name in ("ember", "ember-speech")]
    with serving(*specs) as served:
        models = {entry.spec.name: entry for entry in served.server.models.entries()}
        assert models["ember"].model.context == 512 and not models["ember"].unfit
        assert [*models["ember-speech"].unfit] == ["context"]
    assert "ember-speech takes what fits it" in caplog.text
    assert ": weights " in caplog.text and ", KV cache " in caplog.text
    assert "context: a speech model has no such setting" in caplog.text


def test_a_context_is_at_most_what_a_model_was_trained_for(encoders):
    arguments, unfit = fitted(from_name("ember", context=100_000), FoundModel("ember"))
    trained = arguments["context"]
    assert trained < 100_000 and str(trained) in unfit["context"]
    vectors = from_name(encoders[0].path, context=100_000, kv_dtype="q8_0", threads=1)
    arguments, unfit = fitted(vectors, FoundModel(vectors.path))
    assert {*unfit} == {"context", "kv_dtype"} and "kv_dtype" not in arguments


def config(layers: int, trained: int) -> ModelConfig:
    attention = Attention(n_heads=8, n_kv_heads=8, head_dim=128, scale=1.0)
    blocks = tuple(Block(f"layers.{i}.", i, attention) for i in range(layers))
    sizes = dict(n_layers=layers, dim=64, vocab_size=9, norm_eps=1e-5, final_softcap=0, embedding_scale=1)
    return ModelConfig("llama", context_length=trained, rope_sets=(), blocks=blocks, **sizes)


GIB = 1 << 30


@pytest.mark.parametrize(
    ("layers", "trained", "memory", "arguments", "chosen"),
    [
        (4, 2048, 8, {}, 2048),  # the model's own
        (4, 131072, 8, {}, 32768),
        (64, 131072, 8, {}, 8192),  # 256 KiB a token, in a quarter of the memory
        (64, 131072, 1, {}, 4096),  # at least as before
        (64, 131072, 8, {"kv_dtype": "q8_0"}, 14336),
        (64, 131072, 8, {"kv_dtype": "q8_0,q4_0"}, 18432),
        (64, 131072, 8, {"kv_memory": 4 * GIB}, 16384),
    ],
)
def test_a_context_that_nobody_asked_for_is_the_models_own_as_far_as_memory_goes(
    monkeypatch, layers, trained, memory, arguments, chosen
):
    cpu = {"id": "cpu", "memory": memory * GIB}
    monkeypatch.setattr(_core, "devices", lambda: [cpu])
    assert default_context(config(layers, trained), arguments) == {"context": chosen}
    gpu = {"id": "gpu0", "memory": memory * GIB}
    monkeypatch.setattr(_core, "devices", lambda: [gpu, cpu])
    found = default_context(config(layers, trained), {**arguments, "parallel": 2})
    assert found["context"] == chosen
    if "kv_memory" not in arguments:  # a GPU's is taken at once: no more than one text, or what it was before
        both = {"q8_0": 2.25, "q8_0,q4_0": 1.6875}.get(arguments.get("kv_dtype"), 4)
        a_token = layers * 8 * 128 * both
        assert found["kv_memory"] == max(chosen, 2 * min(chosen, 4096)) * a_token


def test_a_context_is_chosen_for_texts_only(encoders):
    assert fitted(from_name("ember"), FoundModel("ember"))[0]["context"] == 2048
    vectors = from_name(encoders[0].path)
    assert fitted(vectors, FoundModel(vectors.path))[0]["context"] is None
    scaled = from_name("ember", rope_scaling="yarn:4")
    assert fitted(scaled, FoundModel("ember"))[0]["context"] is None


@pytest.mark.parametrize(
    ("names", "settings", "named"),
    [
        (["ember-speech"], {"context": 512}, "context"),
        (["ember"], {"context": 100_000}, "context"),
        (["ember-speech", "again=ember-speech"], {"kv_dtype": "q8_0", "threads": 1}, "kv_dtype"),
    ],
)
def test_what_fits_no_model_is_refused(names, settings, named, workers):
    with pytest.raises(InvalidArgumentError, match=f"^{named}: it fits no model here: {names[0]}: "):
        preload(workers, *(from_name(name, **settings) for name in names))


def test_what_a_file_says_of_a_model_is_its_own(tmp_path, workers):
    file = tmp_path / "models.toml"
    file.write_text(
        '[[model]]\nname = "a"\npath = "ember-speech"\ncontext = 64\n[[model]]\nname = "b"\npath = "ember"\n'
    )
    own, other = from_place(file, context=128, threads=1)
    assert (own.context, own.shared) == (64, {"threads"})
    assert (other.context, other.shared) == (128, {"context", "threads"})
    with pytest.raises(AkunuError, match="context"):  # refused, as `akunu.load` does
        preload(workers, msgspec.structs.replace(own, preload=True))
    file.write_text('[[model]]\nname = "a"\npath = "ember"\nshared = []\n')
    with pytest.raises(InvalidArgumentError, match="shared"):
        from_place(file)


def test_a_model_without_shared_settings_is_loaded_as_it_says():
    assert fitted(EMBER, FoundModel("ember")) == ({**EMBER.load_arguments(), "context": 2048}, {})


def test_folders_and_drafts_in_a_file_are_beside_it(tmp_path):
    (tmp_path / "small.gguf").touch()
    file = tmp_path / "models.toml"
    text = 'path = "ember"\ncache_dir = "{}"\ncache_size = 5\ndraft = "{}"\n'
    tables = [text.format("pages", "small.gguf"), text.format("/var/pages", "ember")]
    file.write_text("".join(f'[[model]]\nname = "{n}"\n{table}' for n, table in enumerate(tables)))
    workers, elsewhere = from_place(file)
    assert (workers.cache_dir, workers.draft) == (tmp_path / "pages", str(tmp_path / "small.gguf"))
    assert (elsewhere.cache_dir, elsewhere.draft) == (Path("/var/pages"), "ember")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("context = -1", "context: found -1, expected an integer in [1, 2147483647]"),
        ("parallel = 0", "parallel: found 0, expected an integer in [1, 256]"),
        ("threads = 99999999999", "threads: found 99999999999, expected"),
        ("cache_size = 0", "cache_size: found 0, expected"),
        ('kv_dtype = "q2"', "kv_dtype: no 'q2'; there is"),
        ('device = "gpu9"', "device: no 'gpu9' here; there is"),
        ('draft = ""', "draft: expected the name of a model"),
    ],
)
def test_what_no_model_can_have_is_refused_before_one_is_asked_for(setting, message, tmp_path):
    file = tmp_path / "models.toml"
    file.write_text(f'[[model]]\nname = "a"\npath = "ember"\n{setting}\n')
    with pytest.raises(InvalidArgumentError, match=re.escape(f"{file}: model a: {message}")):
        from_place(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[[model]]\nname = "a"\npath = "ember"\ncontxt = 5',
            "model[0].contxt: no such field is known here; there is name",
        ),
        ('[[model]]\nname = "a"\npath = 5', "model[0].path: expected str, got int"),
        ('[[model]]\nname = "a"', "model[0].path: it is missing; each model is a table [[model]] with"),
        ("", "model: it is missing; each model is a table [[model]] with a name and a path"),
        ('[[models]]\nname = "a"', "each model is a table [[model]] with a name and a path"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_by_its_place(text, message, tmp_path):
    file = tmp_path / "models.toml"
    file.write_text(text)
    with pytest.raises(InvalidArgumentError, match=re.escape(message)) as caught:
        from_place(file)
    assert str(caught.value).startswith(f"{file}: model")


def test_a_model_is_found_and_its_file_read_once(monkeypatch, workers):
    found, read = [], []
    find = finding.find_model

    class CountedFile(_core.GgufFile):
        def __init__(self, path):
            read.append(path)
            super().__init__(path)

    monkeypatch.setattr(
        finding, "find_model", lambda *args, **options: found.append(args) or find(*args, **options)
    )
    monkeypatch.setattr(_core, "GgufFile", CountedFile)
    preload(workers, from_name("ember", context=512, threads=1))
    assert len(found) == 1
    assert [Path(path).name for path in read] == ["ember.gguf", "mtp-ember.gguf"]


def test_what_cannot_be_read_does_not_keep_a_folder_from_being_offered(tmp_path, caplog, monkeypatch):
    (tmp_path / "fine.gguf").touch()
    (tmp_path / "nothing.gguf").symlink_to(tmp_path / "gone.gguf")
    os.mkfifo(tmp_path / "pipe.gguf")  # of which a read would wait for a writer
    (tmp_path / "lost+found").mkdir()
    listed = Path.iterdir

    def iterdir(folder):
        if folder.name == "lost+found":  # whoever runs the tests may be allowed to
            raise PermissionError(13, "Permission denied", str(folder))
        return listed(folder)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    assert [spec.name for spec in from_place(tmp_path)] == ["fine"]
    assert "lost+found is left out: Permission denied" in caplog.text


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no such names")
def test_a_file_whose_name_is_no_text_does_not_keep_a_folder_from_being_offered(tmp_path, caplog):
    for name in (b"b\xff.gguf", b"fine.gguf"):
        with open(os.path.join(os.fsencode(tmp_path), name), "wb"):
            pass
    assert [spec.name for spec in from_place(tmp_path)] == ["fine"]
    assert "'b\\udcff.gguf' is left out" in caplog.text
