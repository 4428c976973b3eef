"""Added tokens: who may write them, how they match, and which ones end a generation."""

from __future__ import annotations

import pytest

from akunu.base.errors import InvalidArgumentError
from akunu.tokenizer import Segment, Tokenizer, TokenType

from .vocabularies import BYTES, CONTROL, NORMAL, SPECIALS, UNKNOWN, USER_DEFINED, byte_level, metadata, real


def texts(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    return [tokenizer.token_text(i) for i in ids]


def test_control_tokens_are_recognised_only_when_asked_for() -> None:
    tokenizer = real("qwen2")
    end = tokenizer.encode("<|im_end|>", parse_special=True)
    assert texts(tokenizer, end) == ["<|im_end|>"]
    assert end[0] not in tokenizer.encode("<|im_end|>")
    assert tokenizer.decode(tokenizer.encode("<|im_end|>")) == "<|im_end|>"


def test_no_text_of_a_user_gives_a_control_token() -> None:
    for name in ("llama-spm", "phi-3", "llama-bpe", "qwen2", "starcoder", "bert-bge"):
        tokenizer = real(name)
        for text in tokenizer.control_texts():
            assert not set(tokenizer.encode(text, add_special=False)) & (tokenizer.control_ids - {100}), text


def test_user_defined_tokens_match_in_any_text_and_show_when_decoded() -> None:
    tokenizer = byte_level([], [("<tool>", USER_DEFINED)])
    ids = tokenizer.encode("a<tool>b")
    assert texts(tokenizer, ids) == ["a", "<tool>", "b"]
    assert tokenizer.decode(ids) == "a<tool>b"


def test_the_longest_of_the_tokens_that_begin_at_a_place_wins() -> None:
    tokenizer = byte_level(
        [], [("\n\n", USER_DEFINED), ("\n\n\n", USER_DEFINED), ("<a>", CONTROL), ("<a>b", CONTROL)]
    )
    assert texts(tokenizer, tokenizer.encode("\n" * 5)) == ["\n\n\n", "\n\n"]
    assert texts(tokenizer, tokenizer.encode("<a>b<a>", parse_special=True)) == ["<a>b", "<a>"]


def test_a_shorter_token_is_found_where_the_longer_one_is_not_allowed() -> None:
    tokenizer = byte_level([], [("<a", USER_DEFINED), ("<a>", CONTROL)])
    assert texts(tokenizer, tokenizer.encode("<a>")) == ["<a", ">"]
    assert texts(tokenizer, tokenizer.encode("<a>", parse_special=True)) == ["<a>"]


def test_a_token_of_one_character_is_found() -> None:
    tokenizer = byte_level([], [("ø", USER_DEFINED), ("øre", USER_DEFINED)])
    assert texts(tokenizer, tokenizer.encode("aøøre")) == ["a", "ø", "øre"]


class TestSegments:
    def test_a_control_token_may_not_cross_a_border(self) -> None:
        tokenizer = real("qwen2")
        segments = [Segment("<|im_", parse_special=True), Segment("end|>", parse_special=True)]
        assert not set(tokenizer.encode_segments(segments)) & tokenizer.control_ids

    def test_each_author_is_heeded(self) -> None:
        tokenizer = real("qwen2")
        ids = tokenizer.encode_segments(
            [Segment("<|im_start|>user\n", True), Segment("<|im_end|>", False), Segment("<|im_end|>", True)]
        )
        assert [i for i in ids if i in tokenizer.control_ids] == [ids[0], ids[-1]]
        assert tokenizer.decode(ids, skip_special=False) == "<|im_start|>user\n<|im_end|><|im_end|>"

    @pytest.mark.parametrize("name", ["qwen2", "llama-spm"])
    def test_a_border_does_not_change_how_ordinary_text_is_encoded(self, name: str) -> None:
        tokenizer = real(name)
        text = "A border in the middle of a word"
        for place in range(len(text)):
            cut = [Segment(text[:place], True), Segment(text[place:], False)]
            assert tokenizer.encode_segments(cut) == tokenizer.encode(text)

    def test_bos_is_not_doubled(self) -> None:
        tokenizer = real("llama-bpe")
        with_bos = tokenizer.encode_segments([Segment("<|begin_of_text|>hi", True)])
        assert with_bos == tokenizer.encode_segments([Segment("hi")])
        assert with_bos.count(tokenizer.bos_id) == 1


def test_phi_3_swallows_white_space_after_its_control_tokens() -> None:
    tokenizer = real("phi-3")
    assert tokenizer.encode("<|user|>\n hi", parse_special=True) == tokenizer.encode(
        "<|user|>hi", parse_special=True
    )
    # … but not after these.
    ids = tokenizer.encode("<|endoftext|>\nhi", parse_special=True)
    assert "<0x0A>" in texts(tokenizer, ids)


def test_jinas_mask_swallows_white_space_before_it() -> None:
    tokenizer = byte_level([], [("<mask>", CONTROL)], pre="jina-v2-es")
    assert texts(tokenizer, tokenizer.encode("a \n<mask> b", parse_special=True)) == ["a", "<mask>", "Ġ", "b"]


class TestEndOfGeneration:
    def test_it_holds_eos_eot_and_eom(self) -> None:
        tokenizer = byte_level(["a b"], [("X", CONTROL)], eos_token_id=1, eot_token_id=2, eom_token_id=257)
        assert tokenizer.end_of_generation_ids == {1, 2, 257}
        assert tokenizer.eos_id == 1

    def test_a_well_known_end_is_control_whatever_the_file_calls_it(self) -> None:
        tokenizer = byte_level([], [("<|im_end|>", NORMAL), ("<|eot_id|>", USER_DEFINED)])
        assert tokenizer.end_of_generation_ids == {256, 257}
        assert tokenizer.token_type(256) == tokenizer.token_type(257) == TokenType.CONTROL
        assert not set(tokenizer.encode("<|im_end|><|eot_id|>")) & {256, 257}

    def test_an_html_tag_of_the_vocabulary_is_not_an_end(self) -> None:
        tokenizer = byte_level([], [("</s>", USER_DEFINED), ("<eos>", CONTROL)])
        assert tokenizer.end_of_generation_ids == {257}
        assert 256 in tokenizer.encode("</s>")

    def test_harmonys_end_of_message_is_not_the_end(self) -> None:
        ends = [("<|end|>", CONTROL), ("<|return|>", CONTROL), ("<|call|>", CONTROL)]
        assert byte_level([], ends).end_of_generation_ids == {257, 258}

    def test_ids_outside_the_vocabulary_are_ignored(self) -> None:
        tokenizer = byte_level([], [], eos_token_id=999999, bos_token_id=0xFFFFFFFF)
        assert tokenizer.eos_id is None and tokenizer.bos_id is None
        assert not tokenizer.end_of_generation_ids


class TestBosAndEos:
    @pytest.mark.parametrize("bos", [True, False, None])
    @pytest.mark.parametrize("eos", [True, False, None])
    def test_the_file_decides_and_its_silence_means_bos_for_sentencepiece(
        self, bos: bool | None, eos: bool | None
    ) -> None:
        keys = {"add_bos_token": bos, "add_eos_token": eos}
        tokens = [*SPECIALS, *BYTES, ("\u2581", NORMAL, 0.0)]
        tokenizer = Tokenizer.from_metadata(
            metadata("llama", tokens, **{key: value for key, value in keys.items() if value is not None})
        )
        ids = tokenizer.encode("")
        assert ids == ([1] if bos in (True, None) else []) + ([2] if eos else [])

    def test_llama_3_begins_with_bos_where_the_file_is_silent_but_gpt_2_does_not(self) -> None:
        assert byte_level([], [], pre="llama-bpe", bos_token_id=5).encode("a")[0] == 5
        assert byte_level([], [], pre="gpt-2", bos_token_id=5).encode("a")[0] != 5

    def test_add_special_off_adds_nothing(self) -> None:
        assert real("llama-spm").encode("", add_special=False) == []


def test_unknown_tokens_may_only_be_written_by_a_template() -> None:
    tokenizer = byte_level([], [("[PAD7]", UNKNOWN)])
    assert 256 not in tokenizer.encode("[PAD7]")
    assert tokenizer.encode("[PAD7]", parse_special=True) == [256]


@pytest.mark.parametrize("bad", [None, 5, b"bytes", ["a"]])
def test_what_is_not_text_is_refused(bad: object) -> None:
    with pytest.raises(InvalidArgumentError, match="expected str"):
        real("gpt-2").encode(bad)  # type: ignore[arg-type]


def test_lone_surrogates_become_replacement_characters_and_pairs_are_joined() -> None:
    tokenizer = real("gpt-2")
    assert tokenizer.decode(tokenizer.encode("a\ud800b")) == "a\ufffdb"
    assert tokenizer.decode(tokenizer.encode("\ud83d\ude00")) == "😀"
