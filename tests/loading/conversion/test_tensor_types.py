"""Types of single tensors in place of the mix's, as `llama-quantize --tensor-type` has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import pytest

import akunu
from akunu.base.errors import InvalidArgumentError
from models import tiny
from models.test_engine import nmse, open_engine


def converted(tmp_path: Path, name: str = "llama_256", **wishes: Any) -> dict[str, str]:
    source = tiny.write(name, "F32", tmp_path / "source.gguf").path
    path = akunu.convert(source, tmp_path / "out.gguf", "q4_k_m", overwrite=True, progress=False, **wishes)
    assert nmse(open_engine(path).logits([1, 2, 3]), open_engine(source).logits([1, 2, 3])) < 0.3
    return {tensor.name: tensor.tensor_type.name for tensor in gguf.GGUFReader(path).tensors}


def test_a_pattern_gives_matrices_a_type(tmp_path: Path) -> None:
    plain = converted(tmp_path)
    found = converted(tmp_path, tensor_types={"ffn_down": "q8_0", r"blk\.0\.ffn_down": "F16"})
    for name, kind in found.items():
        down = "ffn_down.weight" in name
        assert kind == ("F16" if name.startswith("blk.0.") else "Q8_0") if down else kind == plain[name]
    assert found == converted(tmp_path, tensor_types=["ffn_down=q8_0", r"blk\.0\.ffn_down=f16"])


def test_the_head_and_the_embedding(tmp_path: Path) -> None:
    found = converted(tmp_path, output_tensor_type="q5_1", token_embedding_type="BF16")
    assert (found["output.weight"], found["token_embd.weight"]) == ("Q5_1", "BF16")


def test_vectors_and_exact_matrices_keep_theirs(tmp_path: Path) -> None:
    found = converted(tmp_path, tensor_types={".": "q8_0"})
    assert {kind for name, kind in found.items() if "norm" not in name} == {"Q8_0"}
    assert {kind for name, kind in found.items() if "norm" in name} == {"F32"}


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"tensor_types": {"ffn_up": "q4_2"}}, "tensor_types: no type 'q4_2'; there is f32, f16"),
        ({"tensor_types": {"ffn_up": "q4_k_m"}}, "tensor_types: no type 'q4_k_m'"),
        ({"tensor_types": {"(": "q8_0"}}, r"tensor_types: '\(' is no regular expression"),
        ({"tensor_types": {"experts": "q8_0"}}, "tensor_types: 'experts' fits no matrix; names are such as "),
        ({"tensor_types": ["q8_0"]}, "tensor_types: found 'q8_0', expected PATTERN=TYPE"),
        ({"tensor_types": "a=q8_0"}, "tensor_types: expected a mapping, or a list"),
        ({"output_tensor_type": "q9"}, "output_tensor_type: no type 'q9'"),
    ],
)
def test_a_wrong_wish_is_refused(wishes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^{message}"):
        converted(tmp_path, **wishes)
    assert not (tmp_path / "out.gguf").exists()


def test_a_tied_model_has_no_head(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="output_tensor_type: the model has no such tensor"):
        converted(tmp_path, "gemma", output_tensor_type="q8_0")


def test_rows_that_are_no_whole_blocks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"tensor_types: .* has rows of 96, no multiple of the 256 in"
    ):
        converted(tmp_path, "llama", tensor_types={"attn_q": "q6_k"})


def test_a_folder_takes_none(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidArgumentError, match="output_tensor_type: is for GGUF files, and mlx-4bit makes"
    ):
        akunu.convert("ember", tmp_path / "out", "mlx-4bit", output_tensor_type="q8_0", progress=False)
