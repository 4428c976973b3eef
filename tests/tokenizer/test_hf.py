"""Tokenizers of folders: ids and texts as the `tokenizers` library has them, for every published kind."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from akunu.base.errors import ModelFileError, TokenizerError, UnsupportedError
from akunu.tokenizer import Segment, Tokenizer
from akunu.tokenizer.detokenizer import StreamingDetokenizer
from akunu.tokenizer.hf import tokenizer_from_folder
from akunu.tokenizer.pretokenizers import PRE_TOKENIZERS

CORPUS = [
    "The quick brown fox jumps over the lazy dog. It's 1234 o'clock, isn't it?",
    "def main():\n    print('hello', 42)\n\n\treturn None  # done",
    "Zażółć gęślą jaźń — ёлка, 日本語のテキスト, 한국어, 🙂🙃 e\u0301é",
] * 20
TEXTS = [
    *CORPUS[:3],
    "",
    " ",
    "   two  spaces and\ttabs\n\n\nlines \r\n",
    "Hello<s>world</s>",
    "<|user|>Hi there<|end|>\n<|assistant|> Hello",
    "<tool>x</tool> <tool> y",
    "a<|user|> b",
    "\u2581already\u2581marked",
    "unseen: \u0f00\U0001f9ff\x00\x7f",
]
SPECIAL = ["<s>", "</s>", "<|user|>", "<|assistant|>", "<|end|>"]


def trained(kind: str) -> tokenizers.Tokenizer:
    """A small tokenizer of one of the published kinds."""
    if kind.startswith("unigram"):
        library = tokenizers.Tokenizer(models.Unigram())
        library.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
        library.decoder = decoders.Metaspace(prepend_scheme="always")
        trainer = trainers.UnigramTrainer(
            vocab_size=300, special_tokens=["<unk>", *SPECIAL], unk_token="<unk>"
        )
    elif kind.startswith("bytes"):
        library = tokenizers.Tokenizer(models.BPE(ignore_merges=kind == "bytes-llama3"))
        name = {"bytes-gpt2": "gpt-2", "bytes-llama3": "llama3", "bytes-qwen2": "qwen2"}[kind]
        splits = [
            pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated")
            for pattern in PRE_TOKENIZERS[name].patterns
        ]
        library.pre_tokenizer = pre_tokenizers.Sequence(
            [*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
        )
        if kind == "bytes-qwen2":
            library.normalizer = normalizers.NFC()
        library.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=500, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
        )
    else:
        library = tokenizers.Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
        steps = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
        if kind == "llama2":
            library.normalizer = normalizers.Sequence(
                [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
            )
            steps.append(decoders.Strip(" ", 1, 0))
        elif kind == "gemma":
            library.normalizer = normalizers.Replace(" ", "\u2581")
            library.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
        else:
            scheme = kind.removeprefix("metaspace-")
            library.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
            if scheme != "never":
                steps.append(decoders.Strip(" ", 1, 0))
        library.decoder = decoders.Sequence(steps)
        bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
        trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=["<unk>", *SPECIAL, *bytes_])
    library.train_from_iterator(CORPUS, trainer)
    if not kind.startswith(("bytes", "unigram")):
        # The bytes are tokens of the model, not added ones.
        data = json.loads(library.to_str())
        data["added_tokens"] = [t for t in data["added_tokens"] if not t["content"].startswith("<0x")]
        library = tokenizers.Tokenizer.from_str(json.dumps(data))
    library.add_tokens([tokenizers.AddedToken("<tool>", normalized=False, rstrip=True)])
    # Gemma has such tokens; with a prefix space they would be words as well.
    more = ["</tool>", "\u2581\u2581"] if kind == "gemma" else ["</tool>"]
    library.add_tokens([tokenizers.AddedToken(text, normalized=False) for text in more])
    bos = library.token_to_id("<s>")
    library.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", bos)]
    )
    return library


KINDS = (
    "bytes-gpt2", "bytes-llama3", "bytes-qwen2", "llama2", "gemma", "metaspace-always", "metaspace-first",
    "metaspace-never", "unigram",
)  # fmt: skip


def write(folder: Path, library: tokenizers.Tokenizer, **config: Any) -> Path:
    library.save(str(folder / "tokenizer.json"))
    settings = {"bos_token": "<s>", "eos_token": {"content": "</s>"}} | config
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def opened(folder: Path, n_tokens: int = 1000, end_ids: tuple[int, ...] = ()) -> Tokenizer:
    tokenizer = tokenizer_from_folder(folder, n_tokens, end_ids)
    assert tokenizer is not None
    return tokenizer


@pytest.mark.parametrize("kind", KINDS)
def test_ids_equal_the_library(kind: str, tmp_path: Path) -> None:
    library = trained(kind)
    tokenizer = opened(write(tmp_path, library))
    for text in TEXTS:
        assert tokenizer.encode(text, parse_special=True) == library.encode(text).ids, text


def around_texts(name: str) -> processors.PostProcessor:
    """Post-processors as published tokenizers have them."""
    ends = [(text, i) for i, text in enumerate(SPECIAL)]
    template = partial(processors.TemplateProcessing, special_tokens=ends)
    s, e, end, user = "<s>", "</s>", "<|end|>", "<|user|>"
    byte_level = processors.ByteLevel(trim_offsets=False)
    return {
        "whisper": lambda: template(single=f"{s} {user} $A {e}", pair=f"{s} {user} $A:0 $B:1 {e}:1"),
        "command-r": lambda: template(single=f"{s} $A {end} {e}", pair=f"{s} $A {end} {s} $B {end} {e}"),
        "llama-3": lambda: processors.Sequence(
            [byte_level, template(single=f"{s} $A", pair=f"{s}:0 $A:0 {s}:1 $B:1")]
        ),
        "bert": lambda: processors.BertProcessing((e, ends[1][1]), (s, ends[0][1])),
        "roberta": lambda: processors.RobertaProcessing((e, ends[1][1]), (s, ends[0][1])),
        "byte-level": lambda: byte_level,
        "many": lambda: template(
            single=f"{s} {user} {end} $A {user} {end} {e}",
            pair=f"{s} {user} $A {end} {e}:1 {user}:1 $B:1 {e}:1 {e}:1",
        ),
    }[name]()


@pytest.mark.parametrize("name", ["whisper", "command-r", "llama-3", "bert", "roberta", "byte-level", "many"])
def test_tokens_around_texts_equal_the_library(name: str, tmp_path: Path) -> None:
    """One text and a pair, with any number of tokens before, between and after, and the kinds of each."""
    library = trained("bytes-llama3")
    library.post_processor = around_texts(name)
    tokenizer = opened(write(tmp_path, library))
    one, other = "The quick brown fox", "jumps, and naïve café"
    assert tokenizer.encode(one) == library.encode(one).ids
    assert tokenizer.encode(tokenizer.decode(tokenizer.encode(one))) == tokenizer.encode(one)
    first, second = (tokenizer.encode(text, add_special=False) for text in (one, other))
    pair = tokenizer.template.pair
    wanted = library.encode(one, other)
    assert [*pair.before, *first, *pair.between, *second, *pair.after] == wanted.ids
    if pair.first_kind is None:
        assert len(set(wanted.type_ids)) == 1
    else:
        assert wanted.type_ids.index(1) == len(pair.before) + len(first) + pair.first_kind


def test_what_the_text_has_already_is_not_put_there_again(tmp_path: Path) -> None:
    library = trained("bytes-llama3")
    library.post_processor = around_texts("many")
    tokenizer = opened(write(tmp_path, library))
    written = "<s><|user|><|end|>fox<|user|><|end|></s>"
    assert tokenizer.encode(written, parse_special=True) == library.encode("fox").ids
    assert tokenizer.encode_segments([Segment("fox")])[:3] == list(tokenizer.template.before)


def test_the_configuration_overrules_the_post_processor(tmp_path: Path) -> None:
    """Command R's files: a template that ends texts, and `add_eos_token: false`."""
    library = trained("bytes-llama3")
    library.post_processor = around_texts("command-r")
    tokenizer = opened(write(tmp_path, library, add_bos_token=True, add_eos_token=False))
    assert tokenizer.encode("fox") == library.encode("fox").ids[:-2]
    assert tokenizer.bos_id == library.token_to_id("<s>")


@pytest.mark.parametrize("single", ["<s>", "$A <s> $A"])
def test_a_post_processor_that_does_not_keep_a_text_is_refused(single: str, tmp_path: Path) -> None:
    library = trained("bytes-llama3")
    library.post_processor = processors.TemplateProcessing(single=single, special_tokens=[("<s>", 0)])
    write(tmp_path, library)
    with pytest.raises(UnsupportedError, match="does not keep each text once"):
        tokenizer_from_folder(tmp_path, 1000)


ODD: dict[str, dict[str, bool]] = {
    "brown": {"normalized": True},
    "</t>": {"normalized": True},
    "É": {"normalized": True, "rstrip": True},
    "fox": {"single_word": True},
    "[new]": {"lstrip": True, "special": True},
    "  ": {"normalized": False},
    "1234": {"rstrip": True, "special": True},
}


@pytest.mark.parametrize("kind", KINDS)
def test_ids_of_odd_added_tokens_equal_the_library(kind: str, tmp_path: Path) -> None:
    """Those of normalised text are found in it, others in the text as it is."""
    library = trained(kind)
    for text, flags in ODD.items():
        flags = {"normalized": False} | flags
        add = library.add_special_tokens if flags.get("special") else library.add_tokens
        add([tokenizers.AddedToken(text, **flags)])
    tokenizer = opened(write(tmp_path, library))
    texts = [
        *TEXTS,
        "brown x brown xbrown <s>brown",
        "a</t>b </t> c</t></s></t>",
        "E\u0301 caf\u00e9 \u00c9\u00a0\u00a0x",
        "fox foxes _fox fox, 4fox a\u0301fox fox\u0301",
        "a \u00a0[new]  [new]\u2003[new]",
        "1234\u00a0x 1234    y",
    ]
    for text in texts:
        assert tokenizer.encode(text, parse_special=True) == library.encode(text).ids, text


@pytest.mark.parametrize("kind", KINDS)
def test_texts_equal_the_library(kind: str, tmp_path: Path) -> None:
    library = trained(kind)
    tokenizer = opened(write(tmp_path, library))
    texts = [*CORPUS[:3], " leading", "x"]
    if not tokenizer.trims_after_added:  # the library keeps the prefix after an added token
        texts += ["one<|end|> two", "one<tool>two", "a\u2581\u2581b"]
    for text in texts:
        ids = library.encode(text).ids
        assert tokenizer.decode(ids) == library.decode(ids), text


@pytest.mark.parametrize("kind", KINDS)
def test_a_user_cannot_write_a_control_token(kind: str, tmp_path: Path) -> None:
    tokenizer = opened(write(tmp_path, trained(kind)))
    for text in ("</s>", "a <|end|> b", "<|user|>", "<s>"):
        ids = tokenizer.encode(text, add_special=False)
        assert not tokenizer.control_ids.intersection(ids) - {tokenizer.unknown_id}, text


def test_a_prefix_only_at_the_start_is_taken_off_only_there(tmp_path: Path) -> None:
    tokenizer = opened(write(tmp_path, trained("metaspace-first")))
    prompt = tokenizer.encode_segments([Segment("<|user|>Hi<|end|>", True)])
    answer = tokenizer.encode("Hello there", add_special=False)
    stream = StreamingDetokenizer(tokenizer, after=prompt)
    assert stream.push(answer) + stream.flush() == " Hello there"
    assert tokenizer.decode(answer) == "Hello there"


def test_an_added_token_at_the_start_leaves_the_space_behind_it(tmp_path: Path) -> None:
    library = trained("metaspace-first")
    library.add_tokens([tokenizers.AddedToken("[x]", normalized=False)])
    tokenizer = opened(write(tmp_path, library))
    for text in ("[x] Hello", "[x]Hello", "[x][x]  Hello"):
        ids = library.encode(text).ids
        assert tokenizer.encode(text) == ids
        assert tokenizer.decode(ids) == library.decode(ids) == text


def test_rows_beyond_the_tokenizer_are_padding(tmp_path: Path) -> None:
    library = trained("bytes-gpt2")
    tokenizer = opened(write(tmp_path, library), library.get_vocab_size() + 3)
    assert tokenizer.vocab_size == library.get_vocab_size() + 3
    assert tokenizer.token_text(tokenizer.vocab_size - 1).startswith("[PAD")


def test_added_tokens_beyond_the_rows_do_not_exist(tmp_path: Path) -> None:
    library = trained("bytes-gpt2")
    n = library.get_vocab_size()
    library.add_special_tokens(["<image>"])
    tokenizer = opened(write(tmp_path, library), n)
    assert max(tokenizer.encode("a <image>", parse_special=True)) < n


def test_ends_of_generation_are_collected(tmp_path: Path) -> None:
    library = trained("bytes-gpt2")
    tokenizer = opened(write(tmp_path, library), end_ids=(7, 10**6))
    ends = {library.token_to_id("</s>"), library.token_to_id("<|end|>"), 7}
    assert tokenizer.end_of_generation_ids == ends


@pytest.mark.parametrize(("flag", "begins"), [(None, True), (True, True), (False, False)])
def test_the_configuration_overrules_the_template(flag: bool | None, begins: bool, tmp_path: Path) -> None:
    config = {} if flag is None else {"add_bos_token": flag}
    tokenizer = opened(write(tmp_path, trained("llama2"), **config))
    assert (tokenizer.encode("x")[0] == tokenizer.bos_id) == begins


def test_a_folder_without_a_tokenizer_has_none(tmp_path: Path) -> None:
    assert tokenizer_from_folder(tmp_path, 10) is None
    for name in ("tiktoken.model", "tekken.json"):
        (tmp_path / name).touch()
        with pytest.raises(
            UnsupportedError, match=rf"has {name}, but no tokenizer\.json; make it with Transformers"
        ):
            tokenizer_from_folder(tmp_path, 10)
        (tmp_path / name).unlink()


def spoiled(data: dict[str, Any], path: str, value: Any) -> str:
    *steps, last = path.split(".")
    place = data
    for step in steps:
        place = place[step]
    place[last] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("path", "value", "error", "message"),
    [
        ("model", None, TokenizerError, "model: found NoneType, expected an object"),
        (
            "model.type",
            "WordLevel",
            UnsupportedError,
            "model.type: found 'WordLevel'; supported are BPE, Unigram and",
        ),
        ("model.vocab", [], TokenizerError, "model.vocab: expected an object"),
        ("model.vocab", {"a": "1"}, TokenizerError, "an id that is not an integer"),
        ("model.vocab", {"a": 1, "b": 1}, TokenizerError, "'a' and 'b' have the same id, 1"),
        ("model.vocab", {"a": -1}, TokenizerError, "'a' has id -1"),
        (
            "model.vocab",
            {"a": 10**9},
            TokenizerError,
            "has id 1000000000, but the model's embedding has 1000",
        ),
        ("model.merges", ["ab"], TokenizerError, "a list of pairs"),
        ("model.merges", [["no", "where"]], TokenizerError, "the tokenizers library refuses it"),
        ("model.end_of_word_suffix", "</w>", UnsupportedError, "end_of_word_suffix: found '</w>'"),
        ("added_tokens", [{"id": "x"}], TokenizerError, "added_tokens: expected a list"),
        ("added_tokens", [{"id": 300, "content": "new"}], TokenizerError, "have the same id, 300"),
        ("pre_tokenizer", {"type": "Nonsense"}, TokenizerError, "the tokenizers library refuses it"),
        ("decoder", {"type": ["CTC"]}, UnsupportedError, "decoder: found"),
        ("decoder", {"type": "CTC"}, UnsupportedError, "decoder: found"),
        ("post_processor", {"type": "Odd"}, UnsupportedError, 'post_processor: found {"type": "Odd"}'),
        ("post_processor", [], UnsupportedError, r"post_processor: found \[\]"),
        (
            "post_processor",
            {"type": "BertProcessing", "sep": ["a", 1], "cls": ["b", 1000]},
            TokenizerError,
            "puts token 1000 around a text, but the model's embedding has 1000",
        ),
    ],
)
def test_bad_tokenizers_are_refused(
    path: str, value: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    data = json.loads(trained("bytes-gpt2").to_str())
    (tmp_path / "tokenizer.json").write_text(spoiled(data, path, value))
    with pytest.raises(error, match=message) as caught:
        tokenizer_from_folder(tmp_path, 1000)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not valid JSON"),
        ("[]", "found list, expected a JSON object"),
        ('{"a": 1, "a": 2}', "the key 'a' occurs twice"),
        ('{"a": NaN}', "NaN is no number"),
        ("[" * 200_000, "is not valid JSON"),
        ('{"a": %s}' % ("9" * 5000), "is not valid JSON"),
        (b"\xff", "is not UTF-8"),
    ],
)
def test_bad_json_is_refused(text: str | bytes, message: str, tmp_path: Path) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    (tmp_path / "tokenizer.json").write_bytes(data)
    with pytest.raises(ModelFileError, match=message):
        tokenizer_from_folder(tmp_path, 1000)


def test_a_text_that_the_library_cannot_encode_is_an_error(tmp_path: Path) -> None:
    library = tokenizers.Tokenizer(tokenizers.models.Unigram([("a", 0.0)]))
    library.decoder = tokenizers.decoders.Fuse()
    library.save(str(tmp_path / "tokenizer.json"))
    found = tokenizer_from_folder(tmp_path, 10)
    assert found is not None
    with pytest.raises(TokenizerError, match=r"the tokenizers library refuses a text: .*unk_id"):
        found.encode("b")


def byte_level(folder: Path, **files: object) -> Path:
    """A folder whose tokenizer.json has the 256 bytes and `<s>`, and other files."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    library = tokenizers.Tokenizer(models.BPE({letter: i for i, letter in enumerate(letters)}, []))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    library.add_special_tokens(["<s>"])
    library.save(str(folder / "tokenizer.json"))
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


TURN = {"content": "<turn>", "special": True, "lstrip": False, "rstrip": False, "normalized": False}


@pytest.mark.parametrize(
    ("files", "special"),
    [
        ({"tokenizer_config": {"bos_token": "<s>", "added_tokens_decoder": {"257": TURN}}}, True),
        ({"added_tokens": {"<turn>": 257}}, False),
        ({"added_tokens": {"<turn>": 257}, "special_tokens_map": {"eos_token": "<turn>"}}, True),
        ({"tokenizer_config": {"bos_token": "<s>", "eos_token": "<turn>"}}, True),
        ({"special_tokens_map": {"additional_special_tokens": ["<s>", {"content": "<turn>"}]}}, True),
    ],
)
def test_tokens_that_other_files_add_are_tokens(files: dict[str, Any], special: bool, tmp_path: Path) -> None:
    """As Transformers adds them: what no file gives an id gets the next one."""
    tokenizer = tokenizer_from_folder(byte_level(tmp_path, **files), 300)
    assert tokenizer is not None
    a, b = (tokenizer.encode(letter, add_special=False) for letter in "ab")
    assert tokenizer.encode("a<turn>b", add_special=False, parse_special=True) == [*a, 257, *b]
    assert (257 in tokenizer.control_ids) == special
    if "eos_token" in str(files):
        assert 257 in tokenizer.end_of_generation_ids


def test_added_tokens_beyond_the_embedding_are_left_out(tmp_path: Path) -> None:
    files: dict[str, Any] = {"tokenizer_config": {"pad_token": "<pad>", "eos_token": "<s>"}}
    tokenizer = tokenizer_from_folder(byte_level(tmp_path, **files), 257)
    assert tokenizer is not None and len(tokenizer.encode("<pad>", parse_special=True)) == 5


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"tokenizer_config": {"added_tokens_decoder": {"x": TURN}}},
            "added_tokens_decoder: x: expected an id",
        ),
        ({"tokenizer_config": {"added_tokens_decoder": [TURN]}}, "added_tokens_decoder: found list"),
        ({"added_tokens": {"<turn>": "257"}}, "added_tokens.json: '<turn>': found '257'"),
    ],
)
def test_damaged_lists_of_added_tokens_are_named(files: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match=message):
        tokenizer_from_folder(byte_level(tmp_path, **files), 300)
