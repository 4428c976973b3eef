"""Whisper beside faster-whisper (CTranslate2) and whisper.cpp: encoder, greedy, beams, batches, memory.

    python -m bench.whisper --sizes tiny,base,small
    python -m bench.whisper --sizes tiny --whisper-bench /path/to/whisper-bench --rounds 5
    python -m bench.whisper --sizes small --tests greedy --threads 1 --cpu-time     beside other processes
    python -m bench.whisper --model whisper-base --peer-model whisper-base-ct2       a trained model

Models have random weights, so that nothing has to be downloaded, unless `--model` names a folder (and
`--peer-model` what `ct2-transformers-converter` made of it). A text is as long as is asked for, as no program
may end it. Every figure comes from a process of its own, which also gives the peak of the memory, and the
programs take turns. CTranslate2 and Transformers have to be installed for faster-whisper's part: its decoder
runs under the same rules (timestamps, suppression). Ratios are of medians; above 1 Akunu is faster. "others"
is the share of the processors that other processes had meanwhile.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import click
import numpy as np

from akunu.base.hub_name import model_name
from akunu.cli.app import CONTEXT_SETTINGS
from akunu.cli.app import run as run_command
from akunu.cli.console import note, print_table
from akunu.loading.synthetic_speech import SHAPES, write_random
from bench import measure

WINDOW: Final = 30.0
BATCH: Final = 8
PROMPT: Final = (50258, 50259, 50359)
"""Start, English, transcribe; a model for English alone has its start only, and all ids one lower."""
END: Final = 50257
TIMING: Final = re.compile(r"(\w+) time =\s*[\d.]+ ms /\s*(\d+) runs\s*\(\s*([\d.]+) ms per run")
Times = dict[str, float]


TESTS: Final = ("encoder", "greedy", "beam 5", "batch")


@dataclass(frozen=True)
class Job:
    """What a program is asked to do.

    Attributes
    ----------
    threads
        Of the program.
    tokens
        Of a sequence.
    tests
        Those of `TESTS` that are timed.
    cpu_time
        Whether processor time is measured: for one thread, whatever else the machine does.
    """

    threads: int
    tokens: int
    tests: tuple[str, ...]
    cpu_time: bool

    def times(self, functions: dict[str, Callable[[], Any]]) -> Times:
        """Seconds of each test, of its second call."""
        return {name: self._timed(functions[name]) for name in TESTS if name in self.tests}

    def _timed(self, function: Callable[[], Any]) -> float:
        clock = time.process_time if self.cpu_time else time.perf_counter
        function()
        began = clock()
        function()
        return clock() - began


def akunu_times(path: str, job: Job) -> Times:
    """Seconds of a window and of texts."""
    threads, tokens = job.threads, job.tokens
    import akunu
    from akunu.speech.batching import Batcher, Encode, Work
    from akunu.speech.decoding import decode_window
    from akunu.speech.options import TranscriptionOptions

    with akunu.load(path, task="transcribe", threads=threads, parallel=BATCH, progress=False) as model:
        engine = model._engine
        batcher = Batcher(engine, BATCH)
        mel = np.random.default_rng(0).random((model.config.mels, 3000), np.float32)
        special = model.tokenizer.special
        prompt = PROMPT if model.tokenizer.multilingual else (special.start,)
        endless = (-1, special.end)
        held: list[Any] = []  # the window that texts are of; none while windows alone are timed

        def text(beams: int) -> Work[Any]:
            if not held:
                held.extend(engine.encode(mel[None]))
            options = TranscriptionOptions(
                beam_size=beams, temperature=0, max_new_tokens=tokens, log_prob_threshold=None,
                compression_ratio_threshold=None, suppress_tokens=endless,
            )  # fmt: skip
            return decode_window(engine, held[0], model.tokenizer, prompt, options)

        def whole() -> Work[None]:
            window = yield Encode(mel)
            try:
                options = TranscriptionOptions(
                    beam_size=1, temperature=0, max_new_tokens=tokens, log_prob_threshold=None,
                    compression_ratio_threshold=None, suppress_tokens=endless,
                )  # fmt: skip
                yield from decode_window(engine, window, model.tokenizer, prompt, options)
            finally:
                engine.release(window)

        def batch() -> None:
            while held:  # there is room for no more windows
                engine.release(held.pop())
            tasks = [batcher.start(whole(), 2) for _ in range(BATCH)]
            batcher.wait(lambda: all(task.done for task in tasks))

        def encode() -> None:
            engine.release(engine.encode(mel[None])[0])

        return job.times(
            {
                "encoder": encode,
                "greedy": lambda: batcher.run(text(1), 2),
                "beam 5": lambda: batcher.run(text(5), 6),
                "batch": batch,
            }
        )


def peer_times(path: str, job: Job, compute: str) -> Times:
    """The same by CTranslate2, which faster-whisper runs."""
    import ctranslate2

    threads, tokens = job.threads, job.tokens
    model = ctranslate2.models.Whisper(path, compute_type=compute, inter_threads=1, intra_threads=threads)
    prompt, end = (list(PROMPT), END) if model.is_multilingual else ([END], END - 1)
    one = np.random.default_rng(0).random((1, model.n_mels, 3000), np.float32)
    many = np.repeat(one, BATCH, axis=0)

    def encode(mels: Any) -> Any:
        return model.encode(ctranslate2.StorageView.from_array(mels))

    def text(states: Any, rows: int, beams: int) -> None:
        found = model.generate(  # which takes half of max_length for new tokens
            states, [prompt] * rows, beam_size=beams, max_length=2 * tokens,
            suppress_blank=True, suppress_tokens=[-1, end], sampling_topk=1,
        )  # fmt: skip
        assert {len(each.sequences_ids[0]) for each in found} == {tokens}

    states = encode(one)
    return job.times(
        {
            "encoder": lambda: encode(one),
            "greedy": lambda: text(states, 1, 1),
            "beam 5": lambda: text(states, 1, 5),
            "batch": lambda: text(encode(many), BATCH, 1),
        }
    )


def write_peer(name: str, folder: Path, compute: str) -> None:
    """A model of CTranslate2 with random weights of a shape."""
    import transformers
    from ctranslate2.converters.transformers import WhisperLoader

    config = SHAPES[name]
    model = transformers.WhisperForConditionalGeneration(
        transformers.WhisperConfig(
            vocab_size=config.vocab_size, num_mel_bins=config.mels, d_model=config.width,
            encoder_layers=config.audio_layers, decoder_layers=config.text_layers,
            encoder_attention_heads=config.audio_heads, decoder_attention_heads=config.text_heads,
            encoder_ffn_dim=4 * config.width, decoder_ffn_dim=4 * config.width,
        )
    ).eval()  # fmt: skip
    spec = WhisperLoader().get_model_spec(model)
    spec.config.suppress_ids, spec.config.suppress_ids_begin = [], [220, 50257]
    spec.config.lang_ids = list(range(50259, 50358))
    spec.config.alignment_heads = [[0, 0]]
    names = [f"w{i}" for i in range(config.vocab_size)]
    named = {
        "<|endoftext|>": 50257, "<|startoftranscript|>": 50258, "<|en|>": 50259, "<|translate|>": 50358,
        "<|transcribe|>": 50359, "<|startofprev|>": 50361, "<|nospeech|>": 50362,
        "<|notimestamps|>": 50363, "<|0.00|>": 50364,
    }  # fmt: skip
    for text, i in named.items():
        names[i] = text
    spec.register_vocabulary(names)
    spec.validate()
    spec.optimize(quantization=compute)
    folder.mkdir()
    spec.save(str(folder))


@dataclass(frozen=True)
class Run:
    """One run of a program: its times, the peak of its memory, and others' share of the processors."""

    times: Times
    mib: float
    foreign: float


def whisper_cpp(program: str, path: str, job: Job) -> Run:
    """What `whisper-bench` says, for as many tokens."""
    # It writes its times to standard error.
    shell = ["sh", "-c", 'exec "$@" 2>&1', "sh"]
    used = measure.run([*shell, program, "-m", path, "-t", str(job.threads)])
    found = {name: float(ms) / 1000 for name, _, ms in TIMING.findall(used.output.decode())}
    times = {"encoder": found["encode"], "greedy": found["decode"] * job.tokens}
    return Run(times, used.max_rss / 2**20, used.foreign)


def child(program: str, path: str, job: Job) -> Run:
    """The same of Akunu, or of CTranslate2 with a type of computing."""
    code = [
        sys.executable,
        "-m",
        "bench.whisper",
        "--child",
        program,
        "--path",
        path,
        "--tests",
        ",".join(job.tests),
    ]
    used = measure.run(
        [*code, "--threads", str(job.threads), "--tokens", str(job.tokens), *["--cpu-time"] * job.cpu_time]
    )
    return Run(json.loads(used.output), used.max_rss / 2**20, used.foreign)


Programs = dict[str, tuple[str, str]]
"""By their labels: the program, and the path of its model."""


def random_models(
    size: str, folder: Path, kinds: list[str], whisper_bench: str | None, computes: list[str]
) -> Programs:
    """The programs with random weights of a size, which are written."""
    name = f"whisper-{size}"
    programs: Programs = {}
    for kind in kinds:
        path = folder / f"{kind}.bin"
        write_random(f"{name}:{kind}", path)
        programs[f"Akunu {kind}"] = ("akunu", str(path))
        if whisper_bench:
            programs[f"whisper.cpp {kind}"] = (whisper_bench, str(path))
    if importlib.util.find_spec("ctranslate2") and importlib.util.find_spec("transformers"):
        for compute in computes:
            write_peer(name, folder / compute, compute)
            programs[f"faster-whisper {compute}"] = (compute, str(folder / compute))
    else:
        note("[faster-whisper's engine is not installed: pip install faster-whisper transformers torch]")
    return programs


def trained_models(model: str, peer_model: str | None, computes: list[str]) -> Programs:
    """The programs with a trained model."""
    programs: Programs = {"Akunu": ("akunu", model)}
    if peer_model:
        programs |= {f"faster-whisper {compute}": (compute, peer_model) for compute in computes}
    return programs


def compare(name: str, programs: Programs, job: Job, rounds: int, whisper_bench: str | None) -> None:
    """Measure the programs, which take turns, and print a table."""
    found: dict[str, list[Run]] = {label: [] for label in programs}
    for _ in range(rounds):
        for label, (program, path) in programs.items():
            run = whisper_cpp if program == whisper_bench else child
            found[label].append(run(program, path, job))
    keys = [test for test in TESTS if test in job.tests]
    rows = []
    for label, runs in found.items():
        middle = {key: median([run.times[key] for run in runs]) for key in keys if key in runs[0].times}
        cells = [f"{middle[key]:.3f}" if key in middle else "-" for key in keys]
        speed = f"{WINDOW * BATCH / middle['batch']:.1f}" if "batch" in middle else "-"
        mib, foreign = median([run.mib for run in runs]), median([run.foreign for run in runs])
        rows.append([label, *cells, speed, f"{mib:.0f}", f"{foreign:.0%}"])
    title = f"{name}: seconds of a window, of {job.tokens} tokens, of {BATCH} windows; times real time; MiB"
    print_table(
        ["program", *keys, "real time", "peak", "others"], rows, title=title, right=" rrr" + "r" * len(keys)
    )
    best = {
        key: min(
            median([run.times[key] for run in runs])
            for label, runs in found.items()
            if not label.startswith("Akunu") and key in runs[0].times
        )
        for key in keys
        if any(key in runs[0].times for label, runs in found.items() if not label.startswith("Akunu"))
    }
    for label, runs in found.items():
        if label.startswith("Akunu") and best:
            ratios = (f"{key} {best[key] / median([run.times[key] for run in runs]):.2f}" for key in best)
            click.echo(f"{label}, over the faster of the others: {', '.join(ratios)}")


@click.command(context_settings=CONTEXT_SETTINGS)
@click.option("--sizes", default="tiny,base,small", show_default=True, help="Of Whisper.")
@click.option("--types", default="q8_0,f16", show_default=True, help="Of Akunu's and whisper.cpp's weights.")
@click.option("--compute", default="int8,float32", show_default=True, help="Types of faster-whisper's.")
@click.option("--threads", default=2, show_default=True, help="Of each program.")
@click.option("--tokens", default=64, show_default=True, help="Of a sequence.")
@click.option("--tests", default=",".join(TESTS), show_default=True, help="What is timed.")
@click.option("--cpu-time", is_flag=True, help="Processor time, for one thread beside other processes.")
@click.option("--rounds", default=3, show_default=True, help="Runs of each program.")
@click.option("--whisper-bench", metavar="PATH", help="whisper.cpp's program.")
@click.option("--model", metavar="PATH", help="A trained model for Akunu; no sizes then.")
@click.option("--peer-model", metavar="DIR", help="The same for CTranslate2.")
@click.option("--child", "program", hidden=True)
@click.option("--path", hidden=True)
def command(
    sizes: str,
    types: str,
    compute: str,
    threads: int,
    tokens: int,
    tests: str,
    cpu_time: bool,
    rounds: int,
    whisper_bench: str | None,
    model: str | None,
    peer_model: str | None,
    program: str | None,
    path: str | None,
) -> None:
    """Compare."""
    job = Job(threads, tokens, tuple(tests.split(",")), cpu_time)
    if unknown := set(job.tests) - set(TESTS):
        raise click.UsageError(f"--tests: found {', '.join(sorted(unknown))}, expected {', '.join(TESTS)}")
    if cpu_time and (threads != 1 or whisper_bench):
        raise click.UsageError("--cpu-time: needs --threads 1 (waiting counts too), and not --whisper-bench")
    if program is not None and path is not None:
        times = akunu_times(path, job) if program == "akunu" else peer_times(path, job, program)
        click.echo(json.dumps(times))
        return
    computes = compute.split(",")
    if model is not None:
        programs = trained_models(model, peer_model, computes)
        compare(model_name(Path(model)), programs, job, rounds, None)
        return
    for size in sizes.split(","):
        with tempfile.TemporaryDirectory() as folder:
            programs = random_models(size, Path(folder), types.split(","), whisper_bench, computes)
            compare(f"whisper-{size}", programs, job, rounds, whisper_bench)


if __name__ == "__main__":
    sys.exit(run_command(command, "python -m bench.whisper"))
