"""The command line of `akunu-bench`: llama-bench's options."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeVar

import click

from akunu.base.errors import InvalidArgumentError
from akunu.cli.app import CONTEXT_SETTINGS, Command, LazyVersion
from akunu.cli.app import run as run_command
from akunu.cli.bench.params import (
    DEFAULTS,
    BenchParams,
    Case,
    list_cases,
    parse_ints,
    parse_pair,
)
from akunu.cli.options import refuse_others, refuse_unused
from akunu.cli.values import MODELS, Integer, Number, PathName
from akunu.files.describe.filetypes import KV_DTYPES, SYNTHETIC_TYPES
from akunu.loading.shapes import SHAPES

if TYPE_CHECKING:
    from akunu.cli.bench.report import Printer

__all__ = ["command", "run"]

PROG = "akunu-bench"
DAY = 86_400

F = TypeVar("F", bound=Callable[..., Any])

_FLASH_ATTENTION: Final[Mapping[str, int]] = MappingProxyType(
    {"on": 1, "enabled": 1, "true": 1, "1": 1, "auto": -1, "-1": -1}
)

# Options of llama-bench for things that do not vary here. The values that describe what Akunu does are
# accepted, so that a command can be pasted; any other is refused.
# fmt: off
_FIXED: Final[tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...]] = (
    (("-C", "--cpu-mask"), ("0x0",), "threads are bound by the system; use taskset"),
    (("--cpu-strict",), ("0",), "threads are bound by the system; use taskset"),
    (("--poll",), ("0",), "workers sleep between chains and spin within one"),
    (("-ncmoe", "--n-cpu-moe"), ("0",), "there are no mixture-of-experts models"),
    (("-sm", "--split-mode"), ("none",), "a model runs on one device"),
    (("-mg", "--main-gpu"), ("0",), "a model runs on one device; choose it with -dev"),
    (("-nkvo", "--no-kv-offload"), ("0",), "the KV cache is where the model is"),
    (("-lm", "--load-mode"), ("mmap",), "files are memory-mapped"),
    (("-lzm", "--lazy-mode"), ("off",), "weights are loaded whole"),
    (("-mmp", "--mmap"), ("1",), "files are memory-mapped"),
    (("-dio", "--direct-io"), ("0",), "files are memory-mapped"),
    (("-embd", "--embeddings"), ("0",), "tests generate; akunu profile times a model that makes vectors"),
    (("-ts", "--tensor-split"), ("0",), "a model runs on one device"),
    (("-ot", "--override-tensor"), (), "a model runs on one device"),
    (("-nopo", "--no-op-offload"), ("0",), "a model runs on one device"),
    (("--no-host",), ("0",), "a model runs on one device"),
    (("--repack",), ("1",), "the device stores weights in the layout that suits it"),
    (("-fitt", "--fit-target"), ("0",), "parameters are used as given"),
    (("-fitc", "--fit-ctx"), ("0",), "parameters are used as given"),
    (("--numa",), (), "memory is spread over nodes without being asked; numactl chooses otherwise"),
    (("--prio",), ("0",), "the priority is the system's; use nice"),
    (("-rpc", "--rpc"), (), "a model runs on one device"),
    (("-hf", "-hfr", "--hf-repo"), (), "name the repository with -m USER/REPO[:FILE]"),
    (("-hff", "--hf-file"), (), "name the file with -m USER/REPO:FILE"),
    (("-hft", "--hf-token"), (), "the Hub's client takes it from the environment: HF_TOKEN"),
)
# fmt: on


def _ints(low: int = 0) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], tuple[int, ...]]:
    def callback(
        _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
    ) -> tuple[int, ...]:
        try:
            return tuple(value for text in texts for value in parse_ints(text, low=low))
        except InvalidArgumentError as error:
            raise click.BadParameter(str(error)) from error

    return callback


def _pairs(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> tuple[tuple[int, int], ...]:
    try:
        return tuple(map(parse_pair, texts))
    except InvalidArgumentError as error:
        raise click.BadParameter(str(error)) from error


def _words(_context: click.Context, _option: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    words = tuple(word.strip() for text in texts for word in text.split(",") if word.strip())
    if texts and not words:
        raise click.BadParameter("it is empty")
    return words


def _devices(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    found: list[str] = []
    for word in _words(context, option, texts):
        if found and word.isdecimal() and found[-1].startswith("cuda:"):
            found[-1] += f",{word}"  # of several GPUs
        else:
            found.append(word)
    return tuple(found)


def _kv_dtypes(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    words = _words(context, option, texts)
    for word in words:
        if word not in KV_DTYPES:
            raise click.BadParameter(f"found {word!r}, expected one of {', '.join(KV_DTYPES)}")
    return words


def _flash(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> tuple[int, ...]:
    words = _words(context, option, texts)
    for word in words:
        if word.lower() not in _FLASH_ATTENTION:
            raise click.BadParameter(f"found {word!r}, expected on or auto: attention is always fused here")
    return tuple(_FLASH_ATTENTION[word.lower()] for word in words)


def _fixed_options(function: F) -> F:
    for flags, accepted, reason in _FIXED:
        function = click.option(
            *flags, multiple=True, hidden=True, expose_value=False, callback=_fixed(accepted, reason)
        )(function)
    return function


def _fixed(
    accepted: tuple[str, ...], reason: str
) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], None]:
    def callback(_context: click.Context, _option: click.Parameter, texts: tuple[str, ...]) -> None:
        for text in texts:
            if text not in accepted:
                only = f"found {text!r}, but only {', '.join(accepted)} is possible"
                raise click.BadParameter(f"{only if accepted else 'it is not supported'}: {reason}")

    return callback


def _list_option(
    *flags: str,
    default: str,
    text: str,
    callback: Callable[..., object],
    metavar: str = "LIST",
    type: click.types.StringParamType = click.STRING,
) -> Callable[[F], F]:
    help_text = f"{text} [default: {default}]"
    return click.option(*flags, multiple=True, callback=callback, metavar=metavar, type=type, help=help_text)


def _hyphens(name: str) -> str:
    """An option's name, never its value: llama-bench takes --n_prompt for --n-prompt."""
    return name.replace("_", "-")


_SETTINGS: Final[dict[str, Any]] = CONTEXT_SETTINGS | {"token_normalize_func": _hyphens}
_FORMATS = click.Choice(["csv", "json", "jsonl", "md", "sql", "none"])


@click.command(PROG, cls=Command, context_settings=_SETTINGS, params=[LazyVersion()])
@_list_option(
    "-m",
    "--model",
    "models",
    default="ember",
    callback=_words,
    metavar="MODEL",
    type=MODELS,
    text="GGUF files, USER/REPO[:FILE] on the Hugging Face Hub, or a built-in model.",
)
@_list_option(
    "--synthetic",
    default="none",
    callback=_words,
    metavar="SHAPE:TYPE",
    text="Random weights of a published shape; nothing is downloaded.",
)
@_list_option(
    "-p", "--n-prompt", default="512", callback=_ints(), text="Prompt lengths (tests ppN); 0: no test."
)
@_list_option(
    "-n", "--n-gen", default="128", callback=_ints(), text="Tokens to generate (tests tgN); 0: no test."
)
@_list_option(
    "-pg",
    "n_pg",
    default="none",
    callback=_pairs,
    metavar="PP,TG",
    text="A prompt and a generation in one test.",
)
@_list_option(
    "-d", "--n-depth", default="0", callback=_ints(), text="Tokens in the KV cache before a test; not timed."
)
@_list_option(
    "-b",
    "--batch-size",
    "n_batch",
    default="2048",
    callback=_ints(1),
    text="Prompt tokens handed over at once; each batch ends with logits.",
)
@_list_option(
    "-ub",
    "--ubatch-size",
    "n_ubatch",
    default="0",
    callback=_ints(),
    text="Rows of one prefill; 0: as many as suit the device, 512 on a CPU.",
)
@_list_option(
    "-ctk", "--cache-type-k", "type_k", default="f16", callback=_kv_dtypes, text="Type of the cached keys."
)
@_list_option(
    "-ctv",
    "--cache-type-v",
    "type_v",
    default="f16",
    callback=_kv_dtypes,
    text="Type of the cached values.",
)
@_list_option(
    "-t",
    "--threads",
    "n_threads",
    default="one for each physical core",
    callback=_ints(1),
    text="CPU threads.",
)
@_list_option(
    "-ngl",
    "--n-gpu-layers",
    "n_gpu_layers",
    default="-1",
    callback=_ints(-1),
    text="Layers on the GPU: -1, or what the device does anyway (CPU: 0; GPU: all).",
)
@_list_option(
    "-fa",
    "--flash-attn",
    "flash_attn",
    default="auto",
    callback=_flash,
    text="Fused attention: on or auto; it is never off.",
)
@_list_option(
    "-dev",
    "--device",
    "devices",
    default="auto",
    callback=_devices,
    text="Devices, as --list-devices names them; cuda:0,1 is two GPUs that share a model.",
)
@click.option(
    "-r",
    "--repetitions",
    type=Integer(min=1),
    default=5,
    show_default=True,
    metavar="N",
    help="Timed runs of each test.",
)
@click.option(
    "-o", "--output", type=_FORMATS, default="md", show_default=True, help="Format on standard output."
)
@click.option(
    "-oe", "--output-err", type=_FORMATS, default="none", show_default=True, help="Format on standard error."
)
@click.option(
    "--delay",
    type=Number(0, DAY),
    default=0.0,
    metavar="SECONDS",
    help="Seconds to rest before each test.",
)
@click.option("--no-warmup", is_flag=True, help="Leave out the untimed run before each test.")
@click.option("--progress", is_flag=True, help="Say on standard error what is running.")
@click.option("--list-devices", is_flag=True, help="List the devices and exit.")
@click.option(
    "--write",
    type=PathName(dir_okay=False),
    metavar="FILE",
    help="Write the one --synthetic model as a GGUF file, for another engine, and exit.",
)
@click.option(
    "--seed",
    type=Integer(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of the weights that --write makes.",
)
@_fixed_options
def command(
    models: tuple[str, ...],
    synthetic: tuple[str, ...],
    repetitions: int,
    output: str,
    output_err: str,
    delay: float,
    no_warmup: bool,
    progress: bool,
    list_devices: bool,
    write: Path | None,
    seed: int,
    **lists: tuple[Any, ...],
) -> None:
    """Measure prompt processing and text generation, with llama-bench's tests, options and output.

    Lists: values are separated by commas, options may be repeated, and numbers may be ranges first-last,
    first-last+step or first-last*factor. Every combination is run.

    A test ppN processes a prompt of N random tokens; tgN generates N tokens one by one, after one that is not
    timed. The table shows the mean and the standard deviation of tokens per second. Of a speech model it
    shows the time of the encoder for a window, and of the decoder for a token.

    \b
    Examples:
      akunu-bench -m model.gguf
      akunu-bench -m a.gguf,b.gguf -p 0 -n 64-256*2 -t 1,2
      akunu-bench --synthetic llama3.2-1b:q4_k_m,qwen3-0.6b:q4_0 -r 3
      akunu-bench -m model.gguf -p 512 -n 128 -d 0,4096 -o json > result.json
      akunu-bench --synthetic qwen3-0.6b:q8_0 --write random.gguf && llama-bench -m random.gguf
      akunu-bench --synthetic whisper-tiny:q8_0,whisper-base:f16 -r 3
    """
    if list_devices:
        refuse_others(("list_devices",), "--list-devices lists the devices and runs nothing")
        _print_devices()
        return
    for name in synthetic:
        if not _is_speech_shape(name):
            _check_synthetic(name)
    if write is not None:
        refuse_others(("write", "synthetic", "seed"), "--write writes one model and runs nothing")
        if len(synthetic) != 1:
            raise click.UsageError("--write writes one model: give one --synthetic")
        _write(synthetic[0], write, seed)
        return
    refuse_unused(("seed",), "--write")
    given = replace(
        DEFAULTS,
        models=(*models, *synthetic) or DEFAULTS.models,
        **({"n_ubatch": (0,)} | {name: values for name, values in lists.items() if values}),
    )
    _check(given)
    if speech := [name for name in given.models if _is_speech(name)]:
        if len(speech) < len(given.models):
            raise click.UsageError("speech models have a table of their own: measure the others apart")
        refuse_others(("models", "synthetic", "n_threads", "repetitions"), "a speech model has no such test")
        _run_speech(speech, lists.get("n_threads") or (0,), repetitions)
        return
    cases = [_with_rows(case) for case in list_cases(_with_threads(given))]
    given = replace(given, n_ubatch=tuple(dict.fromkeys(case.n_ubatch for case in cases)))
    if not cases:
        raise click.UsageError("nothing to run: -p, -n and -pg are all 0")
    _check_sizes(cases)
    outputs = [(output, sys.stdout), (output_err, sys.stderr)]
    _run(given, cases, repetitions, not no_warmup, delay, progress, outputs)


command.epilog = (
    f"Shapes: {', '.join(SHAPES)}; whisper-tiny to -large-v3-turbo as f32, f16, q4_0, q5_0, q8_0."
    f"\n\nTypes: {', '.join(SYNTHETIC_TYPES)}; with _S, _M and q2_k the types of the "
    "tensors are mixed as llama.cpp does."
)


def run(args: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run_command(command, PROG, args)


def _check_synthetic(name: str) -> None:
    from akunu.loading.synthetic import SyntheticModel

    try:
        SyntheticModel(name)
    except InvalidArgumentError as error:
        raise click.UsageError(str(error)) from error


def _check(params: BenchParams) -> None:
    """Refuse combinations, before a model is looked for."""
    from akunu.cli.bench.cases import check_gpu_layers
    from akunu.loading.engines import find_device

    for name in params.devices:
        for n_gpu_layers in params.n_gpu_layers:
            check_gpu_layers(n_gpu_layers, find_device(name))


def _check_sizes(cases: Sequence[Case]) -> None:
    """Refuse numbers that no engine takes, before the first test has run for nothing."""
    from akunu.loading.options import SIZE, THREADS

    for case in cases:
        THREADS.check("-t", case.n_threads)
        SIZE.check("-ub", min(case.n_batch, case.n_ubatch))
        SIZE.check("context", case.n_context)


def _with_threads(params: BenchParams) -> BenchParams:
    """The default number of threads spelt out, since the table shows it."""
    from akunu.loading.engines import find_device

    default = find_device("cpu")["threads"]
    return replace(params, n_threads=tuple(n or default for n in params.n_threads))


def _with_rows(case: Case) -> Case:
    """Fill in the rows of a prefill, which are the device's."""
    from akunu.loading.engines import find_device

    return case if case.n_ubatch else replace(case, n_ubatch=find_device(case.device)["prompt_rows"])


def _run(
    given: BenchParams,
    cases: Sequence[Case],
    repetitions: int,
    warmup: bool,
    delay: float,
    progress: bool,
    outputs: Sequence[tuple[str, TextIO]],
) -> None:
    from akunu.base.version import __version__
    from akunu.cli.bench.cases import load_case
    from akunu.cli.bench.report import make_printer
    from akunu.cli.bench.runner import run_cases
    from akunu.loading.engines import find_device

    backend = find_device(given.devices[0])["backend"]
    printers: list[Printer] = [
        make_printer(name, stream, given, version=__version__, backend=backend)
        for name, stream in outputs
        if name != "none"
    ]

    def log(text: str) -> None:
        if progress:
            click.echo(f"{PROG}: {text}", err=True)

    results = run_cases(cases, load_case, repetitions=repetitions, warmup=warmup, delay=delay, log=log)
    for number, result in enumerate(results):
        for printer in printers:
            if number == 0:  # not before: what cannot be loaded has no table
                printer.header()
            printer.test(result)
    for printer in printers:
        printer.footer()


def _print_devices() -> None:
    from akunu import _core

    click.echo("Available devices:")
    for device in _core.devices():
        click.echo(f"  {device['id']}: {device['name']} ({device['memory'] >> 20} MiB)")


def _is_speech_shape(name: str) -> bool:
    shape, separator, _ = name.partition(":")
    return bool(separator) and "whisper" in shape.lower() and "/" not in shape


def _is_speech(name: str) -> bool:
    """Whether a model is one of speech; one that has no shape is found, before anything is measured."""
    from akunu.loading.engines import is_synthetic
    from akunu.loading.finding import find_model
    from akunu.speech.recognition import is_speech

    return _is_speech_shape(name) or (not is_synthetic(name) and is_speech(find_model(name)))


def _run_speech(names: Sequence[str], threads: Sequence[int], repetitions: int) -> None:
    """A table of milliseconds: of the encoder for a window of 30 s, of the decoder for a token."""
    import tempfile

    from akunu.cli.bench.speech import measure
    from akunu.cli.console import print_table
    from akunu.loading.finding import find_model
    from akunu.loading.synthetic_speech import write_random
    from akunu.speech.engine import load_engine
    from akunu.speech.files import open_speech

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            path = Path(folder) / "random.bin"
            if _is_speech_shape(name) and not Path(name).exists():
                write_random(name, path)
            else:
                path = find_model(name)
            for n_threads in threads:
                engine = load_engine(
                    open_speech(path), device="cpu", threads=n_threads, parallel=8, windows=8
                )
                times = measure(engine, repetitions=repetitions)
                size = engine.memory["weights"] + engine.memory["weights_mapped"]
                cells = (times.encoder, times.greedy, times.beams, times.rows)
                rows.append(
                    [name, f"{size / 2**20:.1f}", str(engine.threads), *(f"{1e3 * t:.2f}" for t in cells)]
                )
                engine.close()
    headers = ["model", "MiB", "threads", "encoder", "token", "5 beams", "8 windows"]
    print_table(
        headers, rows, title="milliseconds of a window, and of a token for each text", right=" rrrrrr"
    )


def _write(name: str, path: Path, seed: int) -> None:
    if _is_speech_shape(name):
        from akunu.loading.synthetic_speech import write_random

        write_random(name, path, seed=seed)
        click.echo(f"{path}: {path.stat().st_size / 2**20:.2f} MiB", err=True)
        return
    from akunu.base.progress import reporter
    from akunu.base.whole_file import whole_path
    from akunu.cli.bench.gguf_file import write_gguf
    from akunu.loading.synthetic import SyntheticModel

    with whole_path(path) as part, reporter(True, f"Writing {path.name}") as report:
        size = write_gguf(SyntheticModel(name), part, seed=seed, progress=report)
    click.echo(f"{path}: {size / 2**20:.2f} MiB", err=True)
