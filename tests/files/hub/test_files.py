"""Which files of a repository are meant: a model's, its parts', its tower's."""

from __future__ import annotations

import re

import pytest

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.hub.files import choose
from akunu.files.hub.projectors import projector_of


@pytest.mark.parametrize(
    ("files", "wanted", "expected"),
    [
        (["m-Q3_K_S.gguf", "README.md"], "", ["m-Q3_K_S.gguf"]),
        (["m-F16.gguf", "m-Q4_K_M.gguf", "m-Q8_0.gguf"], "", ["m-Q4_K_M.gguf"]),
        (["m.F16.gguf", "m.Q8_0.gguf"], "", ["m.Q8_0.gguf"]),
        (["m-Q4_K.gguf", "m-Q4_K_M.gguf"], "q4_k", ["m-Q4_K.gguf"]),
        (["m-UD-Q4_K_M.gguf", "m-Q4_K_M.gguf"], "Q4_K_M", ["m-Q4_K_M.gguf"]),
        (["m-UD-Q4_K_M.gguf", "m-Q4_K_M.gguf"], "UD-Q4_K_M", ["m-UD-Q4_K_M.gguf"]),
        (["m-Q8_0.gguf", "mmproj-m-F16.gguf"], "", ["m-Q8_0.gguf"]),
        (["m_Q8_0.gguf", "m_Q4_K_M.gguf", "m_Q4_K_S.gguf"], "", ["m_Q4_K_M.gguf"]),
        (["m_BF16.gguf", "m_F16.gguf"], "f16", ["m_F16.gguf"]),
        (["a.gguf", "b.gguf"], "b.gguf", ["b.gguf"]),
        (
            ["Q8_0/m-Q8_0-00002-of-00002.gguf", "Q8_0/m-Q8_0-00001-of-00002.gguf", "m-Q2_K.gguf"],
            "Q8_0",
            ["Q8_0/m-Q8_0-00001-of-00002.gguf", "Q8_0/m-Q8_0-00002-of-00002.gguf"],
        ),
        (
            ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"],
            "m-00002-of-00002.gguf",
            ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"],
        ),
        (
            ["README.md", "model.safetensors", "consolidated.safetensors", "tokenizer.json", "config.json"],
            "",
            ["config.json", "tokenizer.json", "model.safetensors"],
        ),
        (
            [
                *("model-00002-of-00002.safetensors", "model-00001-of-00002.safetensors", "x/y.safetensors"),
                *("model.safetensors.index.json", "config.json", "additional_chat_templates/rag.jinja"),
            ],
            "",
            [
                *("config.json", "additional_chat_templates/rag.jinja", "model-00001-of-00002.safetensors"),
                *("model-00002-of-00002.safetensors", "model.safetensors.index.json"),
            ],
        ),
    ],
)
def test_the_file_that_is_meant(files, wanted, expected):
    assert choose("me/m", files, wanted) == expected


@pytest.mark.parametrize(
    ("files", "wanted", "error", "message"),
    [
        (["README.md"], "", ModelFileError, "has neither GGUF files nor SafeTensors"),
        (["model.safetensors"], "", UnsupportedError, "has no config.json beside its SafeTensors"),
        (["adapter_model.safetensors", "adapter_config.json"], "", UnsupportedError, "is an adapter"),
        (
            ["model.safetensors", "config.json", "tekken.json"],
            "",
            UnsupportedError,
            "has tekken.json, but no tokenizer.json",
        ),
        (["pytorch_model.bin"], "", UnsupportedError, "Python pickles"),
        (["model.safetensors"], "Q4_0", ModelFileError, "no GGUF file; without 'Q4_0' its SafeTensors"),
        (["a.gguf", "b.gguf"], "", ModelFileError, "several models.*a.gguf, b.gguf"),
        (
            ["a-Q4_0.gguf", "b-Q4_0.gguf", "a-Q8_0.gguf"],
            "",
            ModelFileError,
            "several.*: a-Q4_0.gguf, b-Q4_0.gguf$",
        ),
        (["a.gguf"], "c.gguf", ModelFileError, "no file 'c.gguf'; it has a.gguf"),
        (["m_Q4_K_M.gguf", "m_Q8_0.gguf"], "K_M", ModelFileError, "no file 'K_M'"),
    ],
)
def test_an_unclear_choice_says_what_there_is(files, wanted, error, message):
    with pytest.raises(error, match=message):
        choose("me/m", files, wanted)


REPOSITORIES = {
    "ggml-org/gemma-3-4b-it-GGUF": (
        [
            "gemma-3-4b-it-Q4_K_M.gguf",
            "gemma-3-4b-it-Q8_0.gguf",
            "gemma-3-4b-it-f16.gguf",
            "mmproj-model-f16.gguf",
        ],
        {"": 0, "Q8_0": 1, "f16": 2},
    ),
    "google/gemma-3-4b-it-qat-q4_0-gguf": (["gemma-3-4b-it-q4_0.gguf", "mmproj-model-f16-4B.gguf"], {"": 0}),
    "unsloth/gemma-3-4b-it-GGUF": (
        ["gemma-3-4b-it-BF16.gguf", "gemma-3-4b-it-Q4_K_M.gguf", "mmproj-BF16.gguf", "mmproj-F32.gguf"],
        {"": 1, "BF16": 0},
    ),
    "xtuner/llava-llama-3-8b-v1_1-gguf": (
        [
            "llava-llama-3-8b-v1_1-f16.gguf",
            "llava-llama-3-8b-v1_1-int4.gguf",
            "llava-llama-3-8b-v1_1-mmproj-f16.gguf",
        ],
        {"": 0, "f16": 0, "int4": 1},
    ),
    "vikhyatk/moondream2": (["moondream2-mmproj-f16.gguf", "moondream2-text-model-f16.gguf"], {"": 1}),
    "mradermacher/Thing-4B-GGUF": (
        [
            "Thing-4B.Q4_K_M.gguf",
            "Thing-4B.Q8_0.gguf",
            "Thing-4B.mmproj-Q8_0.gguf",
            "Thing-4B.mmproj-f16.gguf",
        ],
        {"": 0, "Q8_0": 1},
    ),
    "bartowski/Qwen2-VL-7B-Instruct-GGUF": (
        ["Qwen2-VL-7B-Instruct-Q4_K_M.gguf", "mmproj-Qwen2-VL-7B-Instruct-f16.gguf"],
        {"": 0, "Q4_K_M": 0},
    ),
    "someone/qwen2-vl-2b": (["qwen2-vl-2b-q4_0.gguf", "qwen2-vl-2b-vision-encoder.gguf"], {"": 0}),
    "someone/with-a-hyphen": (["m-mm-proj-f16.gguf", "m.Q8_0.gguf"], {"": 1}),
    "someone/with-an-adapter": (["a-lora-f16.gguf", "m-vision-adapter-F16.gguf", "m.Q6_K.gguf"], {"": 2}),
    "someone/Lora-7B": (["lora-7b-Q4_K_M.gguf", "lora-7b-Q8_0.gguf"], {"": 0, "Q8_0": 1}),
    "someone/with-a-matrix": (["m.Q4_K_M.gguf", "m.imatrix.gguf", "imatrix_unsloth.gguf"], {"": 0}),
    "someone/with-clip": (["clip-vit-large-f16.gguf", "ggml-model-q4_k.gguf"], {"": 1}),
    "someone/with-an-ear": (
        ["m-Q5_K_M.gguf", "m-audio-encoder-F16.gguf", "m-vision-projector-F16.gguf"],
        {"": 0},
    ),
    "someone/with-a-draft": (["m-Q8_0.gguf", "m-draft-Q4_0.gguf", "m-eagle3-Q4_0.gguf"], {"": 0, "Q8_0": 0}),
    "someone/in-capitals": (["M-Q4_K_M.GGUF", "mmproj-M-F16.GGUF"], {"": 0}),
}


@pytest.mark.parametrize("repo", REPOSITORIES)
def test_a_projector_is_never_the_model(repo):
    files, meant = REPOSITORIES[repo]
    for wanted, index in meant.items():
        assert choose(repo, [".gitattributes", "README.md", *files], wanted) == [files[index]]


def test_a_repository_of_projectors_alone_says_so():
    with pytest.raises(ModelFileError, match=r"no model, only what goes with one: m-mmproj\.gguf$"):
        choose("user/repo", ["README.md", "m-mmproj.gguf"])


def test_a_quantization_that_only_the_projector_has_is_refused():
    files = ["thing-4b-it-q4_0.gguf", "thing-4b-it-mmproj-f16.gguf"]
    with pytest.raises(ModelFileError, match=r"has no file 'F16'; it has thing-4b-it-q4_0\.gguf$"):
        choose("user/repo", files, "F16")


TOWERS = {
    "ggml-org/gemma-3-4b-it-GGUF": "mmproj-model-f16.gguf",
    "google/gemma-3-4b-it-qat-q4_0-gguf": "mmproj-model-f16-4B.gguf",
    "unsloth/gemma-3-4b-it-GGUF": "mmproj-BF16.gguf",
    "xtuner/llava-llama-3-8b-v1_1-gguf": "llava-llama-3-8b-v1_1-mmproj-f16.gguf",
    "vikhyatk/moondream2": "moondream2-mmproj-f16.gguf",
    "mradermacher/Thing-4B-GGUF": "Thing-4B.mmproj-f16.gguf",
    "bartowski/Qwen2-VL-7B-Instruct-GGUF": "mmproj-Qwen2-VL-7B-Instruct-f16.gguf",
    "someone/qwen2-vl-2b": "qwen2-vl-2b-vision-encoder.gguf",
    "someone/with-a-hyphen": "m-mm-proj-f16.gguf",
    "someone/with-an-adapter": None,
    "someone/Lora-7B": None,
    "someone/with-a-matrix": None,
    "someone/in-capitals": "mmproj-M-F16.GGUF",
}


@pytest.mark.parametrize("repo", TOWERS)
def test_a_model_has_the_tower_of_its_repository(repo):
    files, meant = REPOSITORIES[repo]
    for wanted in meant:
        [model] = choose(repo, files, wanted)
        assert projector_of(["README.md", *files], model) == TOWERS[repo]


@pytest.mark.parametrize(
    ("files", "model", "tower"),
    [
        (["Qwen3VL-4B-Q4_K_M.gguf", "mmproj-Qwen3VL-4B-F16.gguf", "mmproj-Qwen3VL-4B-Q8_0.gguf"], 0, 1),
        (["LFM2-VL-450M-Q4_0.gguf", "mmproj-LFM2-VL-450M-Q8_0.gguf"], 0, 1),
        (["g_gemma-3-4b-IQ4_XS.gguf", "mmproj-g_gemma-3-4b-bf16.gguf", "mmproj-g_gemma-3-4b-f16.gguf"], 0, 2),
        (["Qwen3.6-27B-UD-Q4_K_XL.gguf", "mmproj-F32.gguf", "mmproj-F16.gguf", "mmproj-BF16.gguf"], 0, 2),
        (["BF16/M-BF16-00001-of-00002.gguf", "BF16/M-BF16-00002-of-00002.gguf", "mmproj-F16.gguf"], 0, 2),
        (["a/M-Q4_0.gguf", "b/mmproj-F16.gguf"], 0, None),
        (["M-Q4_0.gguf", "N-Q4_0.gguf", "mmproj-M-f16.gguf"], 0, 2),
        (["M-Q4_0.gguf", "N-Q4_0.gguf", "mmproj-M-f16.gguf"], 1, None),
        (["M-Q4_0.gguf", "N-Q4_0.gguf", "mmproj-model-f16.gguf"], 0, None),
        (["gemma-3-4b-it-Q4_0.gguf", "qwen-Q4_0.gguf", "gemma-3-4b-mmproj-f16.gguf"], 0, 2),
        (["gemma-3-4b-it-Q4_0.gguf", "gemma-3-4b-pt-Q4_0.gguf", "gemma-3-4b-mmproj-f16.gguf"], 0, None),
        (["M-Q4_0.gguf"], 0, None),
        (["M-Q4_0.gguf", "mmproj-M-f16.gguf"], 1, None),
        (["M-Q4_0.gguf", "mmproj.txt"], 0, None),
    ],
)  # fmt: skip
def test_which_tower_is_a_models(files, model, tower):
    assert projector_of(files, files[model]) == (None if tower is None else files[tower])


@pytest.mark.parametrize(
    ("files", "wanted", "command"),
    [
        (["m.gguf.aa", "m.gguf.ab"], "", r"cat m\.gguf\.\?\? > m\.gguf"),
        (["m.Q8_0.gguf.part1of2", "m.Q8_0.gguf.part2of2"], "", r"cat m\.Q8_0\.gguf\.part\* > m\.Q8_0\.gguf"),
        (
            ["m.Q4_K_M.gguf", "m.Q8_0.gguf-split-a", "m.Q8_0.gguf-split-b"],
            "Q8_0",
            r"cat m\.Q8_0\.gguf-split-\* > m\.Q8_0\.gguf",
        ),
    ],
)
def test_pieces_are_to_be_joined(files, wanted, command):
    with pytest.raises(ModelFileError, match=f"in pieces: .*{command}"):
        choose("me/m", files, wanted)


def test_ten_pieces_are_joined_in_the_order_of_their_numbers():
    files = [f"m.gguf.part{n}of11" for n in range(1, 12)]
    with pytest.raises(ModelFileError, match=rf"cat {' '.join(map(re.escape, files))} > m\.gguf"):
        choose("me/m", sorted(files))


@pytest.mark.parametrize("wanted", ["", "m-00001-of-00003.gguf"])
def test_a_part_that_is_missing_is_said_before_the_others_are_fetched(wanted):
    files = ["m-00001-of-00003.gguf", "m-00003-of-00003.gguf"]
    with pytest.raises(ModelFileError, match=r"^me/m has 2 of the 3 parts of m-00001-of-00003\.gguf$"):
        choose("me/m", files, wanted)


def test_parts_of_two_uploads_are_not_joined():
    files = [f"m-0000{n}-of-0000{parts}.gguf" for parts in (2, 3) for n in range(1, parts + 1)]
    assert choose("me/m", files, "m-00001-of-00002.gguf") == files[:2]
    with pytest.raises(
        ModelFileError, match=r"has several models; .* m-00001-of-00002\.gguf, m-00001-of-00003"
    ):
        choose("me/m", files)


def test_a_whole_file_is_taken_before_pieces():
    assert choose("me/m", ["m.Q4_K_M.gguf", "m.Q8_0.gguf-split-a"], "") == ["m.Q4_K_M.gguf"]
