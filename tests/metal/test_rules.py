"""The kernels of transcripts' rules, in every schedule; their test sees their bugs."""

from __future__ import annotations

import pytest

from metal.sampling_lab import SamplingLab
from metal_emulator.harness import SCHEDULES_DEFAULT, KernelError, Schedule, in_sanitizer
from speech.test_rules_on_device import LIFTS, OPTIONS, check


@pytest.mark.parametrize("schedule", SCHEDULES_DEFAULT, ids=str)
def test_the_same_tokens_are_left(schedule: Schedule) -> None:
    lab = SamplingLab(schedule)
    for options in OPTIONS.values():
        check(lab, options, LIFTS[1])
        check(lab, options, LIFTS[1], 5408)  # slices of the vocabulary


# (text, replacement, options, lift)
MUTATIONS: dict[str, tuple[str, str, str, float]] = {
    "the first time at most": ("begin + rules.max_initial + 1", "begin + rules.max_initial", "few", 0.0),
    "after a pair": ("if (after && twice)", "if (after && n > 1)", "default", 0.0),
    "the end of a segment": ("f.words = min(rules.end", "f.words = 0 * min(rules.end", "default", -5.5),
    "times go back": ("if (behind > 0)", "if (behind > n)", "default", 0.0),
    "the last time again": ("(after && !twice ? 0 : 1)", "1", "default", 0.0),
    "an earlier time": ("said[i] >= begin) behind = i + 1", "said[i] >= begin) behind = 1", "default", 0.0),
    "a mask": ("has_bit(never, id)", "has_bit(never, id + 1)", "late", -9.0),
    "the mask of the first": ("n == 0 && has_bit", "n == 1 && has_bit", "no times", -9.0),
    "another sequence": (
        "ulong(row.slot) * p.history_stride",
        "ulong(at.y) * p.history_stride",
        "default",
        0.0,
    ),
    "words win always": ("word <= none || time <= none", "word <= most || time <= none", "default", 0.0),
    "one time against the best word": ("precise::log(sum)", "0.0f", "default", 0.0),
    "the maximum of all slices": ("* relative_exp(bits_of_rank(own), top)", "* 1.0f", "default", -3.5),
    "the last word": ("min(times_begin(all", "min(1 + times_begin(all", "default", 0.0),
}


@pytest.mark.mutation
@pytest.mark.long
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_seen(name: str) -> None:
    old, new, options, lift = MUTATIONS[name]
    with pytest.raises((AssertionError, KernelError)):
        lab = SamplingLab(mutation=("rules", old, new))
        for before in (0, 5408):
            check(lab, OPTIONS[options], lift, before)


def run_cases(sanitizer: str) -> None:
    """In this process; the child's exit status tells."""
    lab = SamplingLab(Schedule("priority", 1, workers=2), sanitizer)
    for options in ("default", "no times"):
        check(lab, OPTIONS[options], LIFTS[1])
    print("clean")


@pytest.mark.long
@pytest.mark.parametrize("sanitizer", ["tsan", "asan"])
def test_clean_under_sanitizers(sanitizer: str) -> None:
    done = in_sanitizer(sanitizer, __file__, "run_cases", sanitizer)
    assert done.returncode == 0 and done.stdout == "clean\n", done.stderr[-4000:]
