"""Models of speech on the emulated GPU: the CPU's tests, and its transcripts."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from akunu.speech.config import WhisperConfig
from akunu.speech.engine import synthetic_engine

Run = Callable[..., subprocess.CompletedProcess[str]]
Passes = Callable[..., None]

ENGINE = "speech/test_engine.py"


def test_encoder_and_decoder_are_those_of_the_model(passes: Passes) -> None:
    passes(
        ENGINE,
        "encoder_states_are_those_of_the_model[odd]",
        "logits_and_attention_are_those_of_the_model[odd]",
    )


def test_tables_of_a_published_size_pass_the_check_of_an_h100() -> None:
    """Which has more multiprocessors than the emulated GPU."""
    tiny = WhisperConfig(51865, 80, 1500, 384, 6, 4, 448, 6, 4)
    for dtype in ("f32", "f16", "q5_0"):
        assert synthetic_engine(tiny, dtype, device="plan:H100").isa == "sm_90"


@pytest.mark.long
@pytest.mark.in_turn
def test_the_rules_are_those_of_the_host(passes: Passes) -> None:
    passes(
        ENGINE,
        "sampled_sequences_are_those_of_single_steps",
        "the_best_tokens_are_those_of_the_rules",
        "what_was_said_before_counts",
    )


@pytest.mark.long
@pytest.mark.in_turn
def test_sequences_of_several_windows(passes: Passes) -> None:
    passes(ENGINE, "sequences_of_several_windows_in_one_step_are_those_of_each_alone[odd]")


TRANSCRIPTS = """
import tempfile, warnings
from pathlib import Path
from speech.on_device import check_transcripts
warnings.simplefilter("error")
print(check_transcripts("auto", Path(tempfile.mkdtemp()), {options}))
"""


@pytest.mark.long
@pytest.mark.in_turn
@pytest.mark.parametrize("options", ["{'beam_size': 1}", "{'beam_size': 3, 'word_timestamps': True}"])
def test_transcripts_are_those_of_the_cpu(options: str, run: Run, tmp_path: Path) -> None:
    """On the device that `auto` is, whose kernels are compiled once."""
    done = run(TRANSCRIPTS.replace("{options}", options))
    assert done.stdout == "Emulated GPU\n", done.stderr
    assert len([*(tmp_path / "cache" / "cuda").iterdir()]) == 1


@pytest.mark.long
@pytest.mark.in_turn
def test_types_of_the_built_in_model(passes: Passes) -> None:
    passes(
        ENGINE,
        "files_of_whisper_cpp_of_every_type[q8_0]",
        "files_of_whisper_cpp_of_every_type[q5_0]",
    )
