"""Adapters on the emulated GPU: the CPU's tests, steps of a few rows, and texts of ember."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest

from akunu import _core
from akunu.loading.finding import FoundModel
from order import Draw

Passes = Callable[..., None]
Run = Callable[..., subprocess.CompletedProcess[str]]
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


STEP = """
import numpy as np
from sampling import engines

def found(device, dim, head_dim, group, weights, ranks, rows):
    # Sequence i has the adapter rows[i].
    engines.DEVICE = device
    engine = engines.synthetic(
        64, dim, layers=2, head_dim=head_dim, group=group, weights=weights, kv_dtype="f16", parallel=len(rows)
    ).engine
    numbers = []
    for i, rank in enumerate(ranks):
        rng, tensors = np.random.default_rng(i), {}
        for j, (name, (n, k)) in enumerate(engine.linears.items()):
            # All but the first of several leave some layers as they are.
            if name.startswith("layers.") and ((i == 0 and len(ranks) > 1) or j % 3 != i % 3):
                a, b = rng.normal(size=(rank, k)) / k**0.5, rng.normal(size=(n, rank)) / (4 * rank) ** 0.5
                tensors[name] = (np.float32(a), np.float32(b), 1.5)
        numbers.append(engine.add_adapter(tensors))
    own = [
        {} if row is None else {"adapter": numbers[row], "adapter_scale": 1 - i / 32}
        for i, row in enumerate(rows)
    ]
    return engines.best(engine, own)

for case, near in {cases}:
    wanted, got = found("cpu", **case), found("cuda", **case)
    plain = found("cpu", **case | {"rows": [None] * len(case["rows"])})
    assert engines.farthest(wanted, got) < near, (case, engines.farthest(wanted, got))
    assert engines.farthest(wanted, plain) > 0.3, (case, "the adapters change what is found")
print("near")
"""

#: Widths of models in tiles, whose steps do not come out even; heads, and query heads of a KV head.
SHAPES = {
    "f16": (128, 32, 2), "bf16": (256, 64, 2), "q8_0": (160, 32, 1), "q4_0": (288, 32, 3),
    "q5_1": (288, 32, 3), "q4_k": (256, 64, 2), "q5_k": (256, 64, 2), "q6_k": (256, 64, 4),
    "iq4_xs": (256, 64, 2),
}  # fmt: skip
#: Ranks of adapters, and each row's adapter.
CASES: list[tuple[list[int], list[int | None]]] = [
    ([16], [0]), ([5, 16], [0]), ([1, 64, 8], [1]), ([64, 3], [0, None]), ([9], [0, None, 0]),
    ([16, 16, 3, 40], [0, 1, 2, 3, None]), ([1, 64, 8], [2, None, 0, 1] * 4),
    ([16, 5], [0, 0, 1, 1, None, 1, 1] * 3),
]  # fmt: skip


@pytest.mark.in_turn
@pytest.mark.parametrize("weights", SHAPES)
@pytest.mark.parametrize("blocks", [1, 7])
def test_a_step_adds_what_the_cpu_adds(run: Run, draw: Draw, weights: str, blocks: int) -> None:
    """One row, and up to 21, of different ranks and of none; a block has all of A's rows, or few or none."""
    dim, head_dim, group = SHAPES[weights]
    near = 0.01 if weights.endswith("f16") else 0.5  # the CPU rounds inputs of codes
    shape = {"dim": dim, "head_dim": head_dim, "group": group, "weights": weights}
    cases = [(shape | {"ranks": ranks, "rows": rows}, near) for ranks, rows in CASES]
    done = run(STEP.replace("{cases}", repr(draw(cases))), EMULATOR_BLOCKS=str(blocks))
    assert done.stdout == "near\n", done.stderr or done.stdout


def write_adapter(path: Path, rank: int, seed: int) -> None:
    """Write an adapter of all of ember's matrices."""
    rng = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_string("general.type", "adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(rank))
    for tensor in _core.GgufFile(str(FoundModel("ember").path)).tensors:
        if tensor.name.startswith("blk.") and len(tensor.shape) == 2:
            rows, cols = tensor.shape
            writer.add_tensor(f"{tensor.name}.lora_a", np.float32(rng.normal(size=(rank, cols)) / cols**0.5))
            writer.add_tensor(f"{tensor.name}.lora_b", np.float32(rng.normal(size=(rows, rank)) * 0.4))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


EMBER = """
import akunu

texts = {}
for device in ("cuda", "cpu"):
    with akunu.load("ember", device=device, progress=False, adapters={adapters}) as model:
        alone = [
            model.generate("Once upon a time", max_tokens=6, temperature=0, adapter=name).ids
            for name in (None, "16", "5")
        ]
        streams = [
            model.stream("Once upon a time", max_tokens=4, temperature=0, adapter=name)
            for name in (None, "16", "5", "16")
        ]
        while any([next(stream, None) is not None for stream in streams]):
            pass
        texts[device] = alone, [stream.completion.ids for stream in streams]
assert texts["cpu"][0][0] != texts["cpu"][0][1] != texts["cpu"][0][2]
print(texts["cuda"] == texts["cpu"] or texts)
"""


@pytest.mark.table
def test_the_embedded_model_with_adapters_writes_what_it_writes_on_the_cpu(run: Run, tmp_path: Path) -> None:
    """One after the other, and side by side."""
    adapters = {str(rank): str(tmp_path / f"{rank}.gguf") for rank in (16, 5)}
    for rank, path in adapters.items():
        write_adapter(Path(path), int(rank), seed=int(rank))
    done = run(EMBER.replace("{adapters}", repr(adapters)))
    assert done.stdout == "True\n", done.stderr or done.stdout
