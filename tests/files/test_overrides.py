"""What a caller says of a model in place of its files: rotary scaling, and keys of a GGUF file."""

from __future__ import annotations

import numpy as np
import pytest

import akunu
from akunu.base.errors import InvalidArgumentError, UnsupportedError
from akunu.files.describe.rotary import inverse_frequencies, yarn, yarn_scale
from akunu.files.overrides import gguf_scaling, hf_scaling, key_overrides, rope_scaling
from akunu.loading.finding import FoundModel

YARN = {"rope_type": "yarn", "factor": 4.0}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        ("yarn:4", YARN),
        ("yarn:4:32768", YARN | {"original_max_position_embeddings": 32768}),
        ({"type": "yarn", "factor": 4}, YARN),
        ('{"rope_type": "yarn", "factor": 4, "beta_fast": 16}', YARN | {"beta_fast": 16.0}),
        ("linear:2", {"rope_type": "linear", "factor": 2.0}),
    ],
)
def test_a_scaling_may_be_a_mapping_or_a_text(given: object, expected: object) -> None:
    assert rope_scaling(given) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("yarn", "found 'yarn', expected TYPE:FACTOR"),
        ("yarn:x", "found 'yarn:x'"),
        ("yarn:4:1:2", "found 'yarn:4:1:2'"),
        ("{", "the text is not JSON"),
        ("dynamic:2", "rope_type: found 'dynamic', expected linear or yarn"),
        ({"rope_type": "yarn"}, "factor: missing"),
        ({"rope_type": "yarn", "factor": 0.5}, r"factor: found 0\.5, expected"),
        ({**YARN, "zeta": 1}, "zeta: not known"),
        (4, "found 4, expected a mapping"),
    ],
)
def test_what_is_no_scaling_is_named(given: object, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"rope_scaling: {message}"):
        rope_scaling(given)


def test_keys_have_the_types_that_they_say() -> None:
    texts = ["a.b=int:-3", "c=bool:False", "d=str:x=y z", "e=float:1.5"]
    assert key_overrides(texts) == {"a.b": -3, "c": False, "d": "x=y z", "e": 1.5}
    assert key_overrides({"a": 1}) == {"a": 1}
    assert key_overrides(()) is key_overrides(None) is None
    for bad in (["a"], ["a=1"], ["a=int:x"], ["a=bool:1"], ["a=float:nan"], {"a": [1]}, 5):
        with pytest.raises(InvalidArgumentError, match="override_kv: "):
            key_overrides(bad)


def test_files_and_folders_get_the_context_that_the_factor_gives() -> None:
    metadata = {"general.architecture": "qwen3", "qwen3.context_length": 40960}
    given = rope_scaling("yarn:4:32768")
    assert given is not None
    assert gguf_scaling(metadata, given) == {
        "qwen3.rope.scaling.type": "yarn",
        "qwen3.rope.scaling.factor": 4.0,
        "qwen3.rope.scaling.original_context_length": 32768,
        "qwen3.context_length": 131072,
    }
    assert gguf_scaling(metadata, YARN)["qwen3.context_length"] == 4 * 40960
    config = {"max_position_embeddings": 40960, "rope_theta": 1e6}
    scaled = hf_scaling(config, given)
    assert scaled["max_position_embeddings"] == 131072
    assert scaled["rope_scaling"] == given
    new = {"max_position_embeddings": 64, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}
    parameters = hf_scaling({"text_config": new}, YARN)["text_config"]["rope_parameters"]
    assert parameters == {**YARN, "rope_theta": 1e6, "original_max_position_embeddings": 64}


def test_a_model_runs_beyond_the_context_of_its_training() -> None:
    with akunu.load("ember", progress=False) as plain:
        trained, rope = plain.config.context_length, plain.config.rope_sets[0]
    with pytest.raises(InvalidArgumentError, match=f"more than the {trained} tokens"):
        akunu.load("ember", context=2 * trained, progress=False)
    with akunu.load("ember", context=2 * trained, rope_scaling="yarn:2", progress=False) as model:
        assert model.config.context_length == 2 * trained
        scaled = model.config.rope_sets[0]
        theta = float(FoundModel("ember").files.metadata.get("llama.rope.freq_base", 10000.0))  # type: ignore[arg-type]
        expected = yarn(
            inverse_frequencies(theta, 2 * len(rope.inv_freq)),
            theta=theta,
            factor=2.0,
            original=trained,
            beta_fast=32.0,
            beta_slow=1.0,
        )
        np.testing.assert_allclose(scaled.inv_freq, expected, rtol=1e-6)
        assert scaled.scale == pytest.approx(rope.scale * yarn_scale(2.0))
        prompt = np.resize(model.tokenize("Once upon a time there was a cat. "), trained + 50).tolist()
        assert model.generate(prompt, max_tokens=3, temperature=0).stats.prompt_tokens == len(prompt)


def test_keys_of_a_file_are_overridden() -> None:
    with akunu.load("ember", progress=False) as plain:
        assert plain.tokenizer.bos_id not in plain.tokenize("x")
    key = "tokenizer.ggml.add_bos_token"
    for given in ([f"{key}=bool:true"], {key: True}):
        with akunu.load("ember", override_kv=given, progress=False) as model:
            assert model.tokenize("x")[0] == model.tokenizer.bos_id


def test_models_of_speech_have_no_such_options() -> None:
    for option in ({"rope_scaling": "yarn:2"}, {"override_kv": {"a": 1}}):
        with pytest.raises(UnsupportedError, match=f"{next(iter(option))}: "):
            akunu.load("ember-speech", progress=False, **option)
