"""`akunu.load` of a folder: text, chat, its sampling and ends, the command line, the Hub, and bad folders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, processors

import akunu
from akunu.base.errors import AkunuError, ModelFileError, UnsupportedError
from akunu.server.catalog import from_name
from files.hub.test_hub import fetch, fetcher, hub  # noqa: F401 (fixtures)
from models import folders, tiny

SPECIAL = ["<s>", "</s>", "<|user|>", "<|assistant|>", "<|end|>"]
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def write_tokenizer(folder: Path, **config: Any) -> None:
    """Bytes, and five special tokens."""
    alphabet = {char: i for i, char in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    library = tokenizers.Tokenizer(models.BPE(alphabet, []))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    library.add_special_tokens(SPECIAL)
    library.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 256)])
    library.save(str(folder / "tokenizer.json"))
    settings = {"bos_token": "<s>", "eos_token": "</s>", "chat_template": TEMPLATE} | config
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = folders.write("llama", tmp_path / "tiny-llama", shards=2)
    write_tokenizer(path)
    return path


def load(path: Path) -> akunu.Model:
    return akunu.load(path, kv_dtype="f32", threads=1, progress=False)


def test_a_folder_generates_what_transformers_does(folder: Path) -> None:
    golden = tiny.golden("llama")
    with load(folder) as model:
        assert model.name == "tiny-llama"
        assert model.path == folder
        result = model.generate(golden.prompt, max_tokens=len(golden.ids), temperature=0)
        assert list(result.ids) == golden.ids
        assert model.tokenize("hi")[0] == 256
        assert model.detokenize(model.tokenize("héllo")) == "héllo"


def test_a_folder_without_a_tokenizer_takes_ids(tmp_path: Path) -> None:
    golden = tiny.golden("qwen3")
    with load(folders.write("qwen3", tmp_path)) as model:
        assert list(model.generate(golden.prompt, max_tokens=8, temperature=0).ids) == golden.ids[:8]


def test_a_template_has_the_names_of_tokens_that_a_folder_gives_them(folder: Path) -> None:
    source = (
        "{{ eos_token }}{{ pad_token }}{{ unk_token }}"
        "{% if documents is none %}{{ messages[0].content }}{% endif %}"
    )
    write_tokenizer(folder, eos_token="<|end|>", pad_token={"content": "<|user|>"}, chat_template=source)
    with load(folder) as model:
        assert [s.text for s in model.chat_template.render([{"role": "user", "content": "Hi"}])] == [
            "<|end|><|user|>Hi"
        ]


def test_only_the_template_of_a_folder_begins_a_chat(folder: Path) -> None:
    """As in Transformers. A format of ours gets the BOS that the tokenizer puts before texts."""
    messages = [{"role": "user", "content": "Hi"}]
    write_tokenizer(folder, chat_template=TEMPLATE.removeprefix("{{ bos_token }}"))
    with load(folder) as model:
        assert model.tokenize("Hi")[0] == 256
        assert model.chat_template.encode(messages)[0] == 258
        assert akunu.ChatTemplate.named("phi3", model.tokenizer).encode(messages)[0] == 256


def test_the_chat_template_of_a_folder_is_used(folder: Path) -> None:
    messages = [{"role": "user", "content": "Hi <|end|>"}]
    with load(folder) as model:
        ids = model.chat_template.encode(messages)
        assert [i for i in ids if i >= 256] == [256, 258, 260, 259], "a user cannot write <|end|>"
        assert model.chat(messages, max_tokens=3, temperature=0).stats


@pytest.mark.parametrize("form", ["file", "list", "json"])
def test_every_form_of_a_chat_template_is_read(form: str, folder: Path) -> None:
    config = json.loads((folder / "tokenizer_config.json").read_text())
    template = "{{ messages[0].content }}!"
    if form == "file":
        (folder / "chat_template.jinja").write_text(template)
    elif form == "list":
        tool = {"name": "tool_use", "template": "tools {{ messages[0].content }}"}
        config["chat_template"] = [{"name": "default", "template": template}, tool]
    else:
        del config["chat_template"]
        (folder / "chat_template.json").write_text(json.dumps({"chat_template": template}))
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    with load(folder) as model:
        messages = [{"role": "user", "content": "Hi"}]
        assert "".join(s.text for s in model.chat_template.render(messages)) == "Hi!"
        assert set(model.chat_template.sources) == {"default", *(["tool_use"] if form == "list" else [])}


def test_a_folder_has_a_name_wherever_one_is(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in it, and in the Hub's cache, where it is called by the commit."""
    monkeypatch.chdir(folder)
    with akunu.load(".", threads=1, progress=False) as model:
        assert model.name == "tiny-llama"
    assert from_name(".").name == "tiny-llama"
    snapshot = tmp_path / "models--me--Small-1B" / "snapshots" / ("c" * 40)
    snapshot.parent.mkdir(parents=True)
    folder.rename(snapshot)
    with load(snapshot) as model:
        assert model.name == "Small-1B"
    with pytest.raises(UnsupportedError, match=r"^Small-1B writes text"):
        akunu.load(snapshot, task="embed", progress=False)
    akunu.convert(snapshot, tmp_path / "small.gguf", "f16", progress=False)
    with load(tmp_path / "small.gguf") as model:
        assert model.name == "Small-1B"


def test_generation_config_gives_the_defaults(folder: Path) -> None:
    values = {
        "do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.9, "repetition_penalty": 1.1,
        "typical_p": 0.7, "eos_token_id": [257, 77],
    }  # fmt: skip
    (folder / "generation_config.json").write_text(json.dumps(values))
    with load(folder) as model:
        sampling = model.sampling
        assert (sampling.temperature, sampling.top_k, sampling.top_p) == (0.6, 20, 0.9)
        assert (sampling.repeat_penalty, sampling.penalty_window) == (1.1, model.context)
        assert sampling.typical_p == 0.7
        assert model.tokenizer.end_of_generation_ids == {257, 260, 77}


def test_what_ends_a_text_may_be_said_of_the_part_that_writes(tmp_path: Path) -> None:
    """As Transformers 5 writes it for a Gemma 3 that sees pictures."""
    path = folders.write(
        "gemma3", tmp_path, change=lambda c: {"model_type": "gemma3", "text_config": c | {"eos_token_id": 77}}
    )
    (path / "generation_config.json").unlink()
    write_tokenizer(path)
    with load(path) as model:
        assert model.tokenizer.end_of_generation_ids == {257, 260, 77}


def test_a_model_that_is_not_to_be_sampled_is_greedy(folder: Path) -> None:
    (folder / "generation_config.json").write_text('{"do_sample": false}')
    with load(folder) as model:
        assert model.sampling.temperature == 0


def test_what_generation_config_asks_for_in_vain_is_warned_of(folder: Path) -> None:
    values = {"num_beams": 4, "no_repeat_ngram_size": 0, "max_length": 20, "suppress_tokens": None}
    (folder / "generation_config.json").write_text(json.dumps(values))
    with pytest.warns(RuntimeWarning, match="recommends num_beams = 4, which Akunu does not have") as found:
        load(folder).close()
    assert len(found) == 1


def test_a_recommended_value_that_cannot_be_is_called_as_the_file_calls_it(folder: Path) -> None:
    (folder / "generation_config.json").write_text('{"repetition_penalty": -1, "top_p": 0.5}')
    said = r"value that is not used: generation_config\.json: repetition_penalty: found -1, expected"
    with pytest.warns(RuntimeWarning, match=said), load(folder) as model:
        assert (model.sampling.repeat_penalty, model.sampling.top_p) == (1.0, 0.5)


def test_the_command_line_takes_a_folder(folder: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "akunu",
        "complete",
        "-m",
        str(folder),
        "-n",
        "3",
        "--seed",
        "1",
        "Hello",
    ]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["inspect"], "SafeTensors"),
        (["inspect", "--plan"], "dispatch table: decode"),
        (["bench", "-p", "4", "-n", "2", "-r", "1"], "llama 0.411M F32"),
    ],
)
def test_other_commands_take_a_folder(command: list[str], expected: str, folder: Path) -> None:
    bench = command[0] == "bench"
    module = ["akunu.cli.bench", "-m", str(folder)] if bench else ["akunu", command[0], str(folder)]
    result = subprocess.run(
        [sys.executable, "-m", *module, *command[1:]],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert expected in result.stdout


def test_a_repository_of_safetensors_is_fetched_as_a_folder(
    fetch,  # noqa: F811
    hub,  # noqa: F811
    folder: Path,
    tmp_path: Path,
) -> None:
    hub.files = {path.name: path.read_bytes() for path in folder.iterdir()} | {"README.md": b"x"}
    found = fetch("me/tiny", tmp_path / "cache", hub.url)
    path = Path(found["path"])
    assert {file.name for file in path.iterdir()} == {file.name for file in folder.iterdir()}
    golden = tiny.golden("llama")
    with load(path) as model:
        assert list(model.generate(golden.prompt, max_tokens=4, temperature=0).ids) == golden.ids[:4]
    hub.status_of_list = 503
    again = fetch("me/tiny", tmp_path / "cache", hub.url)
    assert again["path"] == str(path)
    assert "from the cache" in again["warned"][0]


def replace(name: str, text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(text)  # type: ignore[return-value]


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def loop(name: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).symlink_to(name)

    return make


def pipe(name: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return make


def cut(folder: Path) -> None:
    os.truncate(folder / SHARD, 5000)


def lie(folder: Path) -> None:
    with (folder / SHARD).open("r+b") as file:
        file.write((10**10).to_bytes(8, "little"))


def weight_map(**changes: Any) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        index = json.loads((folder / INDEX).read_text())
        index["weight_map"] |= {name.replace("__", "."): shard for name, shard in changes.items()}
        (folder / INDEX).write_text(json.dumps(index))

    return make


def configured(**changes: Any) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | changes))

    return make


INDEX, SHARD = "model.safetensors.index.json", "model-00002-of-00002.safetensors"
BAD: dict[str, tuple[Callable[[Path], None], type[AkunuError], str]] = {
    "no config": (remove("config.json"), ModelFileError, "has no config.json"),
    "an adapter": (
        lambda folder: (folder / "config.json").rename(folder / "adapter_config.json"),  # type: ignore[dict-item, return-value]
        UnsupportedError,
        r"is an adapter \(LoRA\), not a model; load the model that it was trained on",
    ),
    "config of a web page": (
        replace("config.json", "<html>"),
        ModelFileError,
        "config.json: is not valid JSON",
    ),
    "config in a loop": (loop("config.json"), ModelFileError, "config.json: cannot be read: Too many levels"),
    "config in a pipe": (pipe("config.json"), ModelFileError, "config.json: is not a regular file"),
    "a huge config": (
        replace("config.json", " " * (17 << 20)),
        ModelFileError,
        "at most 16777216 are accepted",
    ),
    "a missing shard": (remove(SHARD), ModelFileError, f"of the shards that .*, {SHARD} is missing"),
    "a cut shard": (cut, ModelFileError, f"{SHARD}: .* incomplete"),
    "a shard in a loop": (loop(SHARD), ModelFileError, f"{SHARD}: cannot be opened"),
    "a 10 GB header": (lie, ModelFileError, f"{SHARD}: announces a header of 10000000000 bytes"),
    "no map": (replace(INDEX, "{}"), ModelFileError, "weight_map: expected an object"),
    "a map to numbers": (weight_map(a=5), ModelFileError, "weight_map: found the file '5'"),
    "a map upwards": (
        weight_map(a="../secret.safetensors"),
        ModelFileError,
        "expected a .safetensors file of the same folder",
    ),
    "an absolute map": (
        weight_map(a="/etc/x.safetensors"),
        ModelFileError,
        "found the file '/etc/x.safetens",
    ),
    "bad ends": (
        replace("generation_config.json", '{"eos_token_id": "x"}'),
        ModelFileError,
        "eos_token_id: found 'x'",
    ),
    "bad sampling": (
        replace("generation_config.json", '{"do_sample": "yes"}'),
        ModelFileError,
        "do_sample: found 'yes', expected true or false",
    ),
    "bad tokenizer": (replace("tokenizer.json", "{}"), AkunuError, "tokenizer.json: model: found NoneType"),
    "an unknown quantization": (
        configured(quantization_config={"quant_method": "hqq", "bits": 4}),
        UnsupportedError,
        "quantized by 'hqq', which is not supported",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_folder_is_a_clear_error(case: str, folder: Path) -> None:
    spoil, error, message = BAD[case]
    spoil(folder)
    with pytest.raises(error, match=message):
        load(folder)


def without_up(weights: tiny.Weights) -> dict[str, Any]:
    return {name: array for name, array in weights.items() if not name.endswith("1.mlp.up_proj.weight")}


ABOUT: dict[str, tuple[dict[str, Any], str]] = {
    "a number": ({"change": lambda config: config | {"head_dim": -4}}, "config.json: head_dim: found -4"),
    "a missing tensor": ({"arrays": without_up}, "tensor model.layers.1.mlp.up_proj.weight is missing"),
}


@pytest.mark.parametrize("case", ABOUT)
def test_an_error_begins_with_the_path_of_what_it_is_about(case: str, tmp_path: Path) -> None:
    options, message = ABOUT[case]
    path = folders.write("llama", tmp_path / "one of several", **options)
    with pytest.raises(AkunuError, match=f"^{path}.*: {message}"):
        load(path)


def test_an_error_about_a_key_of_gguf_begins_with_the_path_of_the_file(tmp_path: Path) -> None:
    path = tiny.write("llama", "F32", tmp_path / "model.gguf").path
    path.write_bytes(path.read_bytes().replace(b"llama.block_count", b"llama.block_pound"))
    with pytest.raises(ModelFileError, match=f"^{path}: llama.block_count is missing"):
        load(path)


@pytest.mark.parametrize("name", ["config.json", "generation_config.json", "tokenizer.json"])
def test_a_file_that_is_a_link_to_nowhere_is_an_error(name: str, folder: Path) -> None:
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to("gone.json")
    with pytest.raises(ModelFileError, match=f"{name}: cannot be read: No such file"):
        load(folder)


def test_files_that_do_not_belong_together_are_refused(folder: Path) -> None:
    (folder / INDEX).unlink()
    (folder / SHARD).rename(folder / "other.safetensors")
    with pytest.raises(
        ModelFileError, match=r"has 2 SafeTensors files .* nor model\.safetensors\.index\.json"
    ):
        load(folder)


def no_index(folder: Path) -> None:
    (folder / INDEX).unlink()


def of_other_files(folder: Path) -> None:
    names = json.loads((folder / INDEX).read_text())["weight_map"]
    shards = {name: f"model-{i % 7 + 1:05}-of-00007.safetensors" for i, name in enumerate(names)}
    (folder / INDEX).write_text(json.dumps({"weight_map": shards}))


STALE: dict[str, Callable[[Path], None]] = {
    "no index": no_index,
    "an index of other files": of_other_files,
    "a tensor that is nowhere": weight_map(a__b=SHARD),
    "tensors of the other shard": weight_map(model__norm__weight=SHARD, lm_head__weight=SHARD),
}


@pytest.mark.parametrize("case", STALE)
def test_an_index_of_other_files_changes_nothing(case: str, folder: Path) -> None:
    """A tensor is where the headers of the files say, whatever index lies beside them."""
    with load(folder) as model:
        expected = model.logits([1, 2, 3])
    STALE[case](folder)
    with load(folder) as model:
        np.testing.assert_array_equal(model.logits([1, 2, 3]), expected)


def test_a_series_without_index_has_to_be_complete(folder: Path) -> None:
    (folder / INDEX).unlink()
    (folder / SHARD).unlink()
    with pytest.raises(
        ModelFileError, match=f"of the shards of its name, {SHARD} is missing; fetch it again"
    ):
        load(folder)


def test_a_tensor_that_two_shards_have_is_refused(folder: Path) -> None:
    (folder / SHARD).write_bytes((folder / "model-00001-of-00002.safetensors").read_bytes())
    with pytest.raises(ModelFileError, match="twice"):
        load(folder)


def test_a_nan_is_found_before_the_first_token(tmp_path: Path) -> None:
    def spoil(weights: tiny.Weights) -> tiny.Weights:
        return weights | {"model.norm.weight": np.full(96, np.nan, np.float32)}

    with pytest.raises(ModelFileError, match=r"'model\.norm\.weight' holds NaN or an infinity"):
        load(folders.write("llama", tmp_path, arrays=spoil))
