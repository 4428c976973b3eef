"""Adapters: the CPU's tests on the emulated GPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Passes = Callable[..., None]
ADAPTERS = "models/test_adapters.py"


@pytest.mark.table
@pytest.mark.parametrize(
    "test",
    ["sequences_with_four_adapters_and_none_run_together", "an_adapter_beside_halves_and_codes"],
)
def test_several_run_together(test: str, passes: Passes) -> None:
    """The ops themselves are asked in test_kernels.py each time."""
    passes(ADAPTERS, test)


@pytest.mark.long
def test_an_adapter_is_the_merged_model(passes: Passes) -> None:
    passes(
        ADAPTERS,
        "an_adapter_is_the_merged_model[16-llama]",
        "an_adapter_is_the_merged_model[5-phi3_short]",
        "a_sequence_without_an_adapter_has_the_bits_of_a_model_without",
        "pages_are_not_shared_between_adapters_or_scales",
        "an_adapter_in_use_stays",
    )
