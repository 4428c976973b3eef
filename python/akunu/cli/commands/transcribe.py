"""`akunu transcribe`: recordings to text."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from akunu.base.errors import AkunuError
from akunu.cli.app import CONTEXT_SETTINGS, Command, print_error
from akunu.cli.console import is_terminal, note
from akunu.cli.constraints import constraint_arguments, spoken_constraint_options
from akunu.cli.options import device_options, refuse_others, refuse_unused
from akunu.cli.recorder import LiveLine, recorded
from akunu.cli.transcripts import Outputs, audio_files, print_failure, until_interrupted
from akunu.cli.values import DEFAULT_SPEECH_MODEL, FILE, MODEL, Integer, Number, PathName

if TYPE_CHECKING:
    from akunu.speech.subtitles import Layout
    from akunu.speech.transcript import Transcription
    from akunu.speech.whisper_model import TranscriptionProgress, WhisperModel

__all__ = ["command"]

_FORMATS = ("txt", "srt", "vtt", "json", "tsv", "lrc")
_MEANINGLESS_LIVE = (
    "channels",
    "condition_on_previous_text",
    "batch_size",
    "clip_timestamps",
    "word_timestamps",
    "vad_filter",
    "vad",
)
_LIVE = (
    *("files", "model", "live", "rate", "device", "threads", "quiet"),
    *("language", "task", "beam_size", "temperature", "initial_prompt", "hotwords", "max_new_tokens"),
)
"""The options that --live goes with."""


@click.command("transcribe", cls=Command, context_settings=CONTEXT_SETTINGS)
@click.argument("files", type=FILE, nargs=-1, required=True, metavar="FILE...")
@click.option(
    "-m",
    "--model",
    type=MODEL,
    default=DEFAULT_SPEECH_MODEL,
    show_default=True,
    metavar="MODEL",
    help="A Whisper model: a file of whisper.cpp, a folder, or USER/REPO[:FILE] on the Hugging Face Hub.",
)
@click.option(
    "-f",
    "--format",
    "forms",
    multiple=True,
    type=click.Choice(_FORMATS),
    default=("txt",),
    show_default=True,
    help="Text, subtitles, lyrics (lrc), or segments with all that is known of them. Repeatable, with "
    "--output-dir.",
)
@click.option(
    "-o",
    "--output-dir",
    type=PathName(file_okay=False),
    metavar="DIR",
    help="Write DIR/NAME.FORMAT for each file. [default: standard output]",
)
@click.option(
    "-l", "--language", metavar="LANGUAGE", help='A code or a name, as "de". [default: it is detected]'
)
@click.option(
    "--task",
    type=click.Choice(["transcribe", "translate"]),
    default="transcribe",
    show_default=True,
    help='"translate" writes down what is said in English.',
)
@click.option("--word-timestamps", is_flag=True, help="Find when each word is said, and how sure it is.")
@click.option(
    "--max-line-width",
    type=Integer(min=1),
    metavar="N",
    help="How many characters a line of a subtitle (srt, vtt) may have. This and the next two find the times "
    "of words.",
)
@click.option(
    "--max-line-count",
    type=Integer(min=1),
    metavar="N",
    help="How many lines a subtitle may have, with --max-line-width. It may then go on over "
    "several segments.",
)
@click.option(
    "--max-words-per-line",
    type=Integer(min=1),
    metavar="N",
    help="How many words a subtitle may have, without --max-line-width.",
)
@click.option(
    "--channels",
    is_flag=True,
    help="Transcribe each channel by itself, such as a call with a speaker on each; segments name it. "
    "[default: channels are mixed]",
)
@click.option(
    "--beam-size",
    type=Integer(min=1),
    default=5,
    show_default=True,
    metavar="N",
    help="Beams: how many candidate transcripts are followed side by side; 1 is fastest.",
)
@click.option(
    "--batch-size",
    type=Integer(min=1),
    metavar="N",
    help="Cut the recording where nobody speaks, and run N pieces side by side: faster for long recordings. "
    "[default: one after the other, each with the text before it in mind]",
)
@click.option("--vad", "vad_filter", is_flag=True, help="Leave out silence and noise before the model hears.")
@click.option(
    "--vad-model",
    "vad",
    type=PathName(dir_okay=False),
    metavar="FILE",
    help="Do what --vad does with a Silero model in this ONNX file. Needs akunu[vad].",
)
@click.option(
    "temperature",
    "--temp",
    "--temperature",
    type=Number(),
    metavar="T",
    help="Randomness of sampling. [default: 0, and more where the text repeats itself]",
)
@click.option(
    "--prompt", "initial_prompt", metavar="TEXT", help="Text that came before, or an example of how to write."
)
@click.option(
    "--condition-on-previous-text/--no-condition-on-previous-text",
    default=None,
    help="Whether the text of a window of 30 seconds is the prompt of the next one: sentences go on, but so "
    "do mistakes. [default: what the model was trained for]",
)
@click.option("--hotwords", metavar="TEXT", help="Names and unusual words that are said in the recording.")
@click.option(
    "--clip", "clip_timestamps", metavar="S,S,...", help="Only from and to these seconds, as in 60,90,300."
)
@click.option(
    "--max-new-tokens",
    type=Integer(min=1),
    metavar="N",
    help="How many tokens a window of 30 seconds may have.",
)
@spoken_constraint_options
@click.option("--live", is_flag=True, help='FILE is "-": 16-bit PCM that comes as it is recorded.')
@click.option(
    "--rate",
    type=Integer(min=1000),
    default=16000,
    show_default=True,
    metavar="HZ",
    help="Samples a second of what --live reads.",
)
@click.option("-q", "--quiet", is_flag=True, help="Say nothing about progress and speed.")
@device_options
def command(
    files: tuple[str, ...],
    model: str,
    forms: tuple[str, ...],
    output_dir: Path | None,
    live: bool,
    rate: int,
    quiet: bool,
    max_line_width: int | None,
    max_line_count: int | None,
    max_words_per_line: int | None,
    device: str,
    threads: int | None,
    **options: Any,
) -> int:
    """Write down what is said in recordings.

    FILE is a recording (WAV, FLAC, OGG, MP3, AIFF, ...; with akunu[av] or ffmpeg also MP4, M4A, WebM, MKV and
    others), a folder of them, or "-" for one from standard input. Text comes as it is found. On a terminal,
    what the model is not sure of is yellow or red.

    Ctrl-C keeps what was found. A file that cannot be read does not keep the others waiting; the exit status
    tells.

    \b
    Examples:
      akunu transcribe talk.flac
      akunu transcribe talk.mp3 --language de --format srt > talk.srt
      akunu transcribe recordings/ --format vtt --format json --output-dir texts --word-timestamps
      akunu transcribe lecture.wav --batch-size 8 --model openai/whisper-small
      akunu transcribe order.wav --choice "lights on" --choice "lights off"
      akunu transcribe film.mp4 --format srt
      arecord -f S16_LE -r 16000 -t raw | akunu transcribe - --live
    """
    if not live:
        refuse_unused(("rate",), "--live")
    elif files != ("-",):
        raise click.UsageError('--live hears standard input: name the file "-"')
    else:
        refuse_others(_LIVE, "--live writes text as it is said")
    names = audio_files(files, quiet)
    layout = _layout(forms, max_line_width, max_line_count, max_words_per_line)
    outputs = Outputs(output_dir, forms, names, layout)
    if layout.asked:
        options["word_timestamps"] = True
    not_given = _MEANINGLESS_LIVE if live else ()
    options |= constraint_arguments(options)
    options = {n: value for n, value in options.items() if value is not None and n not in not_given}
    _check(options)
    with _load(model, device, threads) as loaded:
        if loaded.notice and not quiet:
            note(loaded.notice)
        if live:
            return _listen(loaded, rate, options)
        failed = 0
        for name in names:
            try:
                _transcribe(loaded, name, outputs, options, quiet)
            except (AkunuError, OSError) as error:
                if len(names) == 1 or isinstance(error, BrokenPipeError):  # nobody reads what the others say
                    raise
                print_failure("akunu", name, error)
                failed += 1
    if failed and not quiet:
        note(f"[{failed} of {len(names)} files failed]")
    return 1 if failed else 0


def _layout(forms: tuple[str, ...], *sizes: int | None) -> Layout:
    from akunu.speech.subtitles import Layout
    from akunu.speech.writers import SUBTITLES

    layout = Layout(*sizes)
    if layout.asked and not {*forms} & {*SUBTITLES}:
        raise click.UsageError(f"lines and words are limited in subtitles: add --format {SUBTITLES[0]}")
    return layout


def _check(options: dict[str, Any]) -> None:
    """Options are refused before a model is loaded."""
    from akunu.speech.languages import language_code
    from akunu.speech.options import transcription_options

    chosen = transcription_options(options)  # type: ignore[arg-type]
    if chosen.language is not None:
        language_code(chosen.language)


def _load(model: str, device: str, threads: int | None) -> WhisperModel:
    import akunu

    return akunu.load(model, device=device, threads=threads, task="transcribe")


def _transcribe(
    model: WhisperModel, name: str, outputs: Outputs, options: dict[str, Any], quiet: bool
) -> None:
    audio = sys.stdin.buffer if name == "-" else name
    began = time.monotonic()
    shown = outputs.on_terminal
    with _progress(name, quiet or shown) as progress:
        stream = model.transcribe_stream(audio, progress=progress, **options)
        with stream:
            segments = until_interrupted(stream)
            outputs.write(name, segments, lambda: stream.language)
        if segments.error:
            raise segments.error
    found = stream.transcription
    if not (found.segments or quiet or segments.interrupted):
        note(f"[{name}: no speech was found]")
    _warn_if_unsure(name, found, model.notice)
    seconds = time.monotonic() - began
    if not quiet and is_terminal(sys.stderr):
        speed = f", {found.duration / seconds:.1f} times as fast as it was said" if seconds > 0 else ""
        sure = "" if found.language_probability == 1 else f" ({found.language_probability:.0%})"
        note(
            f"[{name}: {_clock(found.duration)} in {_clock(seconds)}{speed}, language {found.language}{sure}]"
        )
    if segments.interrupted:
        raise click.Abort


def _warn_if_unsure(name: str, found: Transcription, notice: str | None) -> None:
    """Say on standard error that a text is probably wrong; also with --quiet, as the text looks right."""
    from akunu.speech.transcript import UNSURE

    if found.probability is None or found.probability >= UNSURE:
        return
    advice = notice or "Is the language the right one? A larger model hears more."
    print_error(
        "akunu",
        "warning",
        f"{name}: the text is probably wrong: the mean probability of its tokens is {found.probability:.0%}. "
        f"{advice}",
    )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


@contextmanager
def _progress(name: str, hidden: bool) -> Iterator[TranscriptionProgress | None]:
    """A bar on standard error: how far, how fast against the sound, and how long it will take."""
    if hidden or not is_terminal(sys.stderr):
        yield None
        return
    from rich import progress as columns
    from rich.console import Console

    bar = columns.Progress(
        columns.TextColumn("{task.description}", markup=False),
        columns.BarColumn(),
        columns.TextColumn("{task.fields[done]}, {task.fields[factor]}", markup=False),
        columns.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task(Path(name).name, total=None, done="0:00", factor="-")
        began = time.monotonic()

        def report(done: float, total: float | None) -> None:
            speed = done / max(time.monotonic() - began, 1e-3)
            bar.update(task, completed=done, total=total, done=_clock(done), factor=f"{speed:.1f}x")

        yield report


def _listen(model: WhisperModel, rate: int, options: dict[str, Any]) -> int:
    """Transcribe what standard input records, while it is said."""
    line = LiveLine()
    failed: list[OSError] = []
    sound = _until_failure(recorded(sys.stdin.buffer, rate), failed)
    with model.listen(sound, sampling_rate=rate, **options) as texts:
        for text in texts:
            line.show(text.committed, text.tentative)
    line.end()
    if failed:
        raise failed[0]
    return 0


def _until_failure(pieces: Iterator[bytes], failed: list[OSError]) -> Iterator[bytes]:
    """Yield all that comes, also where the device is gone then."""
    try:
        yield from pieces
    except OSError as error:
        failed.append(error)
