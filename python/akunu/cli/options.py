"""Options that several commands share, and the loading of the model they name."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from akunu.base.errors import InvalidArgumentError
from akunu.cli.app import typed_name
from akunu.cli.values import DEFAULT_MODEL, FULL, MODEL, Integer, Number, PathName, as_integer, as_number
from akunu.files.describe.filetypes import kv_dtypes

if TYPE_CHECKING:
    pass

__all__ = [
    "GENERATION_OPTIONS",
    "MODEL_HELP",
    "adapter_option",
    "device_options",
    "encoder_options",
    "generation_arguments",
    "generation_options",
    "given",
    "load_model",
    "loading_options",
    "model_options",
    "only_adapter",
    "refuse_others",
    "refuse_unused",
    "threads_option",
    "writing_arguments",
    "writing_options",
]


_ANY_VOCABULARY = 1 << 31  # which ids there are is known when the model is loaded

F = TypeVar("F", bound=Callable[..., Any])

MODEL_HELP = (
    "A short name such as qwen3:4b, a GGUF file, a folder with SafeTensors, USER/REPO[@REVISION][:FILE] on "
    "the Hugging Face Hub, or a built-in model. FILE may be a file or a quantization such as Q4_K_M."
)


def model_options(function: F) -> F:
    """Add the options that say which language model to load, and how."""
    model = click.option(
        "-m",
        "--model",
        type=MODEL,
        default=DEFAULT_MODEL,
        show_default=True,
        metavar="MODEL",
        help=MODEL_HELP,
    )
    return model(loading_options(writing_options(function)))


adapter_option = click.option(
    "--adapter",
    type=FULL,
    multiple=True,
    metavar="[NAME=]PATH",
    help="An adapter (LoRA) beside the model: a GGUF file, or a folder of PEFT. NAME is what requests call "
    "it. [default: that of the file]",
)


def _adapters(given_ones: Sequence[str]) -> dict[str, str]:
    """Return the paths of `--adapter` by name."""
    found = dict[str, str]()
    for text in given_ones:
        name, equals, path = text.partition("=")
        if not equals:
            path, name = text, Path(text).stem
        if not name or not path or name in found:
            raise click.BadParameter(
                f"found {text!r}, expected a PATH, or NAME=PATH with a name of its own",
                param_hint="--adapter",
            )
        found[name] = path
    return found


def only_adapter(values: dict[str, Any]) -> str | None:
    """Return the name of the one adapter that a command's values have, if any."""
    adapters = _adapters(values.get("adapter", ()))
    if len(adapters) > 1:
        raise click.BadParameter("an output has one adapter at most", param_hint="--adapter")
    return next(iter(adapters), None)


def writing_options(function: F) -> F:
    """Add the loading options that only language models have."""
    return _apply(
        function,
        click.option(
            "--draft",
            type=MODEL,
            metavar="MODEL",
            help="Draft model for speculative decoding: a smaller model with the same vocabulary, or "
            "Gemma 4's assistant; or mtp, the model's own head for it, or none. It changes the speed, not "
            "the output. [default: that head, if the model has one]",
        ),
        click.option(
            "--mmproj",
            type=FULL,
            metavar="FILE",
            help='The tower of a GGUF model that reads images, or "none". [default: the mmproj file beside '
            "the model]",
        ),
        click.option(
            "--cache-dir",
            type=PathName(file_okay=False),
            metavar="FOLDER",
            help="Keep the KV cache in this folder too, so that later runs reuse the prefixes that their "
            "prompts share. [default: in memory only]",
        ),
        click.option(
            "--cache-size",
            type=Number(0, 1 << 32, min_open=True),
            default=16.0,
            show_default=True,
            metavar="GIB",
            help="How many GiB the files in --cache-dir may take.",
        ),
        click.option(
            "--memory",
            type=Number(0, 1 << 32, min_open=True),
            metavar="GIB",
            help="How many GiB the model may take in all. On the CPU, experts without room stay in the "
            "file. [default: what the device has]",
        ),
    )


def writing_arguments(values: dict[str, Any]) -> dict[str, Any]:
    """Take the options of `writing_options` out of a command's values: arguments of `akunu.load`."""
    folder, size = values.pop("cache_dir", None), values.pop("cache_size", None)
    draft = values.pop("draft", None)
    found = {} if draft is None else {"draft": False if draft == "none" else draft}
    mmproj = values.pop("mmproj", None)
    if mmproj is not None:
        found["mmproj"] = False if mmproj == "none" else mmproj
    if adapters := _adapters(values.pop("adapter", ())):
        found["adapters"] = adapters
    if (memory := values.pop("memory", None)) is not None:
        found["memory"] = math.ceil(memory * (1 << 30))
    if folder is None:
        refuse_unused(["cache_size"], "--cache-dir")
        return found
    return {**found, "cache_dir": folder, "cache_size": math.ceil(size * (1 << 30))}


def _own_context(_context: click.Context, _option: click.Parameter, value: int | None) -> int | None:
    """The model's own context is what 0 stands for."""
    return value or None


threads_option = click.option(
    "-t",
    "--threads",
    type=Integer(min=-1),
    callback=lambda _context, _option, value: None if value in (0, -1) else value,
    metavar="N",
    help="CPU threads; 0 or -1: one for each physical core this process may use. [default: -1]",
)


_DEVICE = click.option(
    "--device",
    default="auto",
    show_default=True,
    metavar="ID",
    help='Where to run: "auto", an id that "akunu devices" lists, or several GPUs that share the model: '
    '"cuda:0,1".',
)


class _Context(Integer):
    """The length of a context; who takes `-c` for `--continue`, as other programs have it, is told."""

    def fail(
        self, message: str, param: click.Parameter | None = None, ctx: click.Context | None = None
    ) -> NoReturn:
        continues = ctx is not None and any("--continue" in each.opts for each in ctx.command.params)
        hint = "; --continue goes on with the last conversation" if continues else ""
        super().fail(message + hint, param, ctx)


def encoder_options(function: F) -> F:
    """Add the options that say how to load an embedding model."""
    return _apply(
        function,
        _DEVICE,
        click.option(
            "-c",
            "--context",
            type=Integer(min=0),
            callback=_own_context,
            metavar="TOKENS",
            help="Maximum tokens of an input. [default: 0, what the model was tuned for, at most 4096]",
        ),
        threads_option,
    )


def device_options(function: F) -> F:
    """Add the options that say where a speech model runs."""
    return _apply(function, _DEVICE, threads_option)


def loading_options(function: F) -> F:
    """Add the options that say how to load a model."""
    return _apply(
        function,
        _DEVICE,
        click.option(
            "-c",
            "--context",
            type=_Context(min=0),
            callback=_own_context,
            metavar="TOKENS",
            help="Maximum tokens of prompt and answer together. [default: 0, the model's own context, at "
            "most 4096; of serve: at most 32768, as far as memory goes]",
        ),
        threads_option,
        click.option(
            "--rope-scaling",
            metavar="TYPE:FACTOR",
            type=FULL,
            help="Rotary scaling for a context longer than the model was trained with: yarn:4, or "
            "yarn:4:32768 with the training context, or JSON as in config.json.",
        ),
        click.option(
            "--override-kv",
            metavar="KEY=TYPE:VALUE",
            type=FULL,
            multiple=True,
            help="Override a metadata key of the GGUF file; TYPE is int, float, bool or str. Repeatable.",
        ),
        click.option(
            "--kv-dtype",
            callback=_kv_dtype,
            default="f16",
            show_default=True,
            metavar="TYPE",
            help="Type of the KV cache: f16, f32, q8_0 (half the memory) or q4_0 (a quarter); "
            "q8_0,q4_0: of keys, of values.",
        ),
    )


def _kv_dtype(_context: click.Context, _option: click.Parameter, names: str) -> str:
    try:
        kv_dtypes(names)
    except InvalidArgumentError as error:
        raise click.BadParameter(str(error).removeprefix("kv_dtype: ")) from error
    return names


def _number(
    flag: str, kind: type[Integer] | type[Number], metavar: str, text: str, *others: str
) -> Callable[[F], F]:
    name = flag.removeprefix("--").replace("-", "_")  # its limits are those of the API
    return click.option(name, *others, flag, type=kind(), default=None, metavar=metavar, help=text)


GENERATION_OPTIONS: list[Callable[[Any], Any]] = [
    click.option(
        "-n",
        "--max-tokens",
        type=Integer(min=-1),
        metavar="N",
        help="Generate at most N tokens; -1: until the model ends or the context is full. [default: -1]",
    ),
    _number(
        "--temperature",
        Number,
        "T",
        "Randomness: 0 always takes the most likely token; 0.7 is lively; above 1 is wild.",
        "--temp",
    ),
    _number("--top-k", Integer, "K", "Sample from the K most likely tokens; 0: off."),
    _number(
        "--top-p", Number, "P", "Sample from the most likely tokens whose probabilities add up to P; 1: off."
    ),
    _number("--min-p", Number, "P", "Drop tokens less likely than P times the most likely one; 0: off."),
    _number("--typical-p", Number, "P", "Locally typical sampling with mass P; 1: off."),
    _number("--repeat-penalty", Number, "X", "Divide the logits of recent tokens by X; 1: off."),
    _number("--presence-penalty", Number, "X", "Subtract X from the logit of every recent token; 0: off."),
    _number("--frequency-penalty", Number, "X", "Subtract X for each recent occurrence of a token; 0: off."),
    _number("--penalty-window", Integer, "N", "How many of the latest tokens count as recent; -1: all."),
    _number(
        "--top-n-sigma",
        Number,
        "N",
        "Drop tokens N standard deviations of the logits below the best; 0: off.",
    ),
    _number(
        "--xtc-probability", Number, "P", "Drop the likely tokens but the last, with probability P; 0: off."
    ),
    _number(
        "--xtc-threshold", Number, "P", "A token is likely for XTC from probability P on; above 0.5: off."
    ),
    _number("--min-keep", Integer, "N", "Leave at least N tokens to sample from."),
    _number(
        "--dry-multiplier", Number, "X", "Penalise what goes on with a repeat of the text's end by X; 0: off."
    ),
    _number("--dry-base", Number, "X", "DRY's penalty grows by this factor with each token of the repeat."),
    _number("--dry-allowed-length", Integer, "N", "DRY penalises repeats from N tokens on."),
    _number("--dry-penalty-last-n", Integer, "N", "DRY looks at the latest N tokens; -1: all."),
    click.option(
        "--dry-sequence-breaker",
        "dry_sequence_breakers",
        multiple=True,
        metavar="TEXT",
        help=r"DRY: a repeat does not go beyond this text (\n, \t as elsewhere); none: no text. Repeatable.",
    ),
    click.option(
        "--logit-bias",
        multiple=True,
        metavar="ID=X",
        help="Add X to the logit of token ID; -inf forbids it. Repeatable.",
    ),
    _number(
        "--seed", Integer, "N", "The same seed gives the same output; -1: a new seed each time. [default: -1]"
    ),
    click.option(
        "--stop",
        multiple=True,
        metavar="TEXT",
        help=r"Stop before this string; \n and \t are understood. Repeatable.",
    ),
    click.option(
        "--stop-token-id",
        "stop_token_ids",
        multiple=True,
        metavar="ID",
        type=Integer(0, 2**32 - 1),
        help="Stop before this token. Repeatable.",
    ),
]
"""The options of a generation.

One that is not given has the value that the model file recommends, else Akunu's default.
"""


def generation_options(function: F) -> F:
    """Add the options of a generation; `generation_arguments` collects them."""
    return _apply(function, *GENERATION_OPTIONS)


def generation_arguments(values: dict[str, Any]) -> dict[str, Any]:
    """Take the options of `generation_options` out of a command's values: arguments of `Model.generate`.

    Raises
    ------
    InvalidArgumentError
        One is out of range: better known before a model is fetched and loaded.
    """
    from akunu.api.options import resolve
    from akunu.files.describe.sampling import Sampling

    names = (
        "max_tokens",
        "temperature",
        "top_k",
        "top_p",
        "min_p",
        "typical_p",
        "repeat_penalty",
        "presence_penalty",
        "frequency_penalty",
        "penalty_window",
        "top_n_sigma",
        "xtc_probability",
        "xtc_threshold",
        "min_keep",
        "dry_multiplier",
        "dry_base",
        "dry_allowed_length",
        "dry_penalty_last_n",
        "seed",
    )
    found = {name: values.pop(name) for name in names}
    for name in ("max_tokens", "seed"):  # -1: the default, as in other programs
        found[name] = None if found[name] == -1 else found[name]
    found["stop_token_ids"] = list(values.pop("stop_token_ids")) or None
    found["logit_bias"] = dict(map(_bias, values.pop("logit_bias"))) or None
    found["stop"] = [_unescaped(text) for text in values.pop("stop")] or None
    breakers = [_unescaped(text) for text in values.pop("dry_sequence_breakers")]
    found["dry_sequence_breakers"] = ([] if breakers == ["none"] else breakers) if breakers else None
    found["adapter"] = only_adapter(values)
    found = {name: value for name, value in found.items() if value is not None}
    resolve(found, Sampling(), _ANY_VOCABULARY)
    return found


def _unescaped(text: str) -> str:
    return text.replace("\\n", "\n").replace("\\t", "\t")


def _bias(text: str) -> tuple[int, float]:
    left, _, right = text.partition("=")
    token, bias = as_integer(left), -math.inf if right.strip() == "-inf" else as_number(right)
    if token is None or bias is None:
        raise click.BadParameter(
            f"found {text!r}, expected ID=X such as 2=-inf or 17=1.5", param_hint="--logit-bias"
        )
    return token, bias


def given(names: Sequence[str]) -> list[str]:
    """Return the names among `names` whose options are on the command line."""
    source = click.get_current_context().get_parameter_source
    return [name for name in names if source(name) == click.core.ParameterSource.COMMANDLINE]


def refuse_unused(names: Sequence[str], needed: str) -> None:
    """Raise a usage error when an option was given that has no effect without the option `needed`."""
    context = click.get_current_context()
    for name in given(names):
        option = next(option for option in context.command.params if option.name == name)
        raise click.UsageError(f"{typed_name(context, option)} has no effect without {needed}")


def refuse_others(kept: Sequence[str], reason: str) -> None:
    """Raise a usage error when an option was given that is not one of `kept`; `reason` says why."""
    context = click.get_current_context()
    for option in context.command.params:
        if option.name not in kept and given([option.name or ""]):
            raise click.UsageError(f"{typed_name(context, option)} has no effect: {reason}")


def load_model(values: dict[str, Any]) -> Any:
    """Load the model that a command's values name; takes the loading options out of them."""
    import akunu
    from akunu.loading.options import LoadOptions

    arguments = writing_arguments(values)
    arguments |= {name: values.pop(name) for name in LoadOptions.__struct_fields__ if name in values}
    return akunu.load(values.pop("model"), **arguments)


def _apply(function: F, *decorators: Callable[[F], F]) -> F:
    for decorator in reversed(decorators):
        function = decorator(function)
    return function
