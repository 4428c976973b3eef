"""Records what other programs say with the models of tools/real_models.py: the data of tests/real.

    python tools/record_real.py llama MODELS OUT TEXT     # ids and perplexity
    python tools/record_real.py whisper MODELS OUT AUDIO  # transcripts
    python tools/record_real.py minilm MODELS OUT         # vectors

Each runs in an environment of its own, without Akunu: the first with llama-cpp-py-sync, the second with
faster-whisper, soundfile and the program espeak-ng, the third with transformers and torch. TEXT is
tinyshakespeare.txt, AUDIO jfk.flac.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

CHATML = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
PROMPTS = {
    "smollm2-135m": [
        CHATML.format("What is the capital of France?"),
        CHATML.format("Write two sentences about the sea."),
    ],
    "qwen2.5-coder-0.5b": [
        CHATML.format("Write a Python function that reverses a string."),
        "def fibonacci(n):\n    ",
    ],
    "qwen2.5-coder-1.5b": [
        CHATML.format("Write a Python function that adds two numbers. Only code."),
        CHATML.format("Wie heißt die Hauptstadt von Österreich? 用一个词回答。"),
    ],
    "gemma3-270m": ["The capital of France is", "Der Mond ist"],
}
"""Prompts as texts with the marks of their templates, which are tokens."""
TOKENS = 48
WINDOW = 512
WINDOWS = {"smollm2-135m": 4, "qwen2.5-coder-0.5b": 3, "qwen2.5-coder-1.5b": 2, "gemma3-270m": 3}

SPOKEN = {
    "de": "Guten Morgen. Heute scheint die Sonne, und wir gehen zusammen in den Garten.",
    "es": "Buenos días. Hoy hace sol y vamos juntos al jardín de la casa.",
}
SENTENCES = [
    "A cat sits on the mat.",
    "Ein Hund rennt durch den Park.",
    "The stock market fell sharply today.",
    "A kitten is resting on a rug.",
]


class LlamaCpp:
    """A model in llama.cpp's own library."""

    def __init__(self, path: Path) -> None:
        from llama_cpp_py_sync import Llama

        self._model = Llama(str(path), n_ctx=1024, n_batch=1024, n_threads=1)
        self._lib, self._ffi = self._model._lib, self._model._ffi
        self._vocab = self._model._vocab
        self.bos = int(self._lib.llama_vocab_bos(self._vocab))
        self.adds_bos = bool(self._lib.llama_vocab_get_add_bos(self._vocab))

    def ids(self, text: str, *, parse_special: bool) -> list[int]:
        """Token ids, with what the model has around a text."""
        data = text.encode()
        out = self._ffi.new("llama_token[]", len(data) + 8)
        n = self._lib.llama_tokenize(self._vocab, data, len(data), out, len(data) + 8, True, parse_special)
        return [int(out[i]) for i in range(n)]

    def logits(self, ids: list[int], start: int, every: bool) -> np.ndarray:
        """Logits after `ids` at position `start`: [n, vocab] of all, or of the last one alone."""
        n = len(ids)
        batch = self._lib.llama_batch_init(n, 0, 1)
        batch.n_tokens = n
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i], batch.n_seq_id[i] = token, start + i, 1
            batch.seq_id[i][0] = 0
            batch.logits[i] = int(every or i == n - 1)
        if start == 0:
            self._lib.llama_memory_clear(self._lib.llama_get_memory(self._model._ctx), True)
        assert self._lib.llama_decode(self._model._ctx, batch) == 0
        rows, width = (n if every else 1), self._model.n_vocab
        first = self._lib.llama_get_logits_ith(self._model._ctx, 0 if every else n - 1)
        data = self._ffi.buffer(first, rows * width * 4)
        found = np.frombuffer(data, np.float32).reshape(rows, width).copy()
        self._lib.llama_batch_free(batch)
        return found

    def greedy(self, ids: list[int], n: int) -> tuple[list[int], list[float]]:
        """The best next tokens, and how far each is before the second best."""
        found: list[int] = []
        margins: list[float] = []
        given, start = list(ids), 0
        for _ in range(n):
            row = self.logits(given, start, every=False)[0]
            start += len(given)
            second, first = np.partition(row, -2)[-2:]
            given = [int(row.argmax())]
            found += given
            margins.append(round(float(first - second), 4))
            if self._lib.llama_vocab_is_eog(self._vocab, given[0]):
                break
        return found, margins

    def perplexity(self, ids: list[int], windows: int) -> float:
        """As llama-perplexity: of the second half of each window."""
        total, count, half = 0.0, 0, WINDOW // 2
        for start in range(0, windows * WINDOW, WINDOW):
            window = ids[start : start + WINDOW]
            given = [self.bos, *window[1:]] if self.adds_bos else window
            logits = self.logits(given, 0, every=True)[half:-1].astype(np.float64)
            logits -= logits.max(-1, keepdims=True)
            chosen = np.take_along_axis(logits, np.array(window[half + 1 :])[:, None], -1)[:, 0]
            total += float((np.log(np.exp(logits).sum(-1)) - chosen).sum())
            count += len(chosen)
        return math.exp(total / count)


def llama(models: Path, text: str) -> Iterator[tuple[str, Any]]:
    """What llama.cpp says with each language model."""
    import llama_cpp_py_sync

    for name, prompts in PROMPTS.items():
        model = LlamaCpp(models / f"{name}.gguf")
        ids = model.ids(text[:50_000], parse_special=False)
        greedy = []
        for prompt in prompts:
            given = model.ids(prompt, parse_special=True)
            found, margins = model.greedy(given, TOKENS)
            greedy.append({"prompt": prompt, "prompt_ids": given, "ids": found, "margins": margins})
        figure = model.perplexity(ids, WINDOWS[name])
        yield (
            name,
            {
                "made_with": f"llama.cpp {llama_cpp_py_sync.__llama_cpp_tag__} on a CPU, flash attention off",
                "greedy": greedy,
                "perplexity": {"windows": WINDOWS[name], "window": WINDOW, "value": round(figure, 4)},
            },
        )


def whisper(models: Path, audio: Path) -> Iterator[tuple[str, Any]]:
    """What faster-whisper writes: MODELS has its folders as `ct2-NAME`."""
    import faster_whisper
    import soundfile

    sound, rate = soundfile.read(audio, dtype="float32")
    with tempfile.TemporaryDirectory() as folder:
        files = {"jfk": audio, "jfk-88s": Path(folder) / "long.wav"}
        soundfile.write(files["jfk-88s"], np.concatenate([sound] * 8), rate)
        for language, text in SPOKEN.items():
            files[language] = Path(folder) / f"{language}.wav"
            subprocess.run(["espeak-ng", "-v", language, "-w", files[language], text], check=True)
        for name, sounds in {"whisper-tiny.en": ["jfk", "jfk-88s"], "whisper-base": list(files)}.items():
            model = faster_whisper.WhisperModel(
                str(models / f"ct2-{name}"), device="cpu", compute_type="float32", cpu_threads=1
            )
            found: dict[str, Any] = {"made_with": f"faster-whisper {faster_whisper.__version__}, float32"}
            for key in sounds:
                segments, info = model.transcribe(str(files[key]), word_timestamps=key == "jfk")
                said = list(segments)
                found[key] = {"language": info.language, "text": "".join(s.text for s in said).strip()}
                if key == "jfk":
                    found[key]["words"] = [
                        [word.word, round(float(word.start), 2), round(float(word.end), 2)]
                        for segment in said
                        for word in segment.words or ()
                    ]
            yield name, found


def minilm(models: Path) -> Iterator[tuple[str, Any]]:
    """What Transformers makes of sentences: means over tokens, of length 1."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(models / "minilm")
    model = transformers.AutoModel.from_pretrained(models / "minilm").eval()
    vectors = []
    for text in SENTENCES:
        with torch.no_grad():
            given = tokenizer(text, return_tensors="pt", padding=False)
            rows = model(**given).last_hidden_state[0]
        vector = rows.mean(0)
        vectors.append([round(float(value), 6) for value in vector / vector.norm()])
    yield (
        "minilm",
        {"made_with": f"Transformers {transformers.__version__}", "texts": SENTENCES, "vectors": vectors},
    )


def main() -> None:
    """Write OUT/NAME.json of each model."""
    if len(sys.argv) < 4:
        raise SystemExit(__doc__)
    what, models, out, *rest = sys.argv[1:]
    found = {
        "llama": lambda: llama(Path(models), Path(rest[0]).read_text(encoding="utf-8")),
        "whisper": lambda: whisper(Path(models), Path(rest[0])),
        "minilm": lambda: minilm(Path(models)),
    }[what]()
    for name, data in found:
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        (Path(out) / f"{name}.json").write_text(text.replace('],"', '],\n"').replace('},"', '},\n"') + "\n")
        print(name, flush=True)


if __name__ == "__main__":
    main()
