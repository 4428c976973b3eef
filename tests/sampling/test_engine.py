"""The engine draws what the reference draws from the engine's own logits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from akunu import _core
from models import llama2c, tiny
from order import Draw

from .engines import check, open_file, run, synthetic, write_tiny
from .reference import Settings

PROMPT = [1, 17, 42, 42, 200, 7, 17, 99]
GRID = {
    "greedy": Settings(temperature=0),
    "temperature": Settings(),
    "cold": Settings(temperature=0.3),
    "hot": Settings(temperature=5.0),
    "frozen": Settings(temperature=1e-6),
    "smallest temperature": Settings(temperature=1e-45),
    "boiling": Settings(temperature=1e6),
    "largest temperature": Settings(temperature=3.4e38),
    "top_k": Settings(top_k=5),
    "top_k of one": Settings(top_k=1),
    "top_k of all": Settings(top_k=1 << 31),
    "top_p": Settings(top_p=0.8),
    "tiny top_p": Settings(top_p=1e-30),
    "nearly all top_p": Settings(temperature=3.0, top_p=0.9999999),
    "min_p": Settings(min_p=0.1),
    "min_p of one": Settings(min_p=1.0),
    "tiny min_p": Settings(min_p=1e-38),
    "typical_p": Settings(typical_p=0.7),
    "small typical_p": Settings(typical_p=0.05),
    "hot typical_p": Settings(temperature=10.0, typical_p=0.5),
    "top_n_sigma": Settings(top_n_sigma=1.0),
    "top_n_sigma, top_p": Settings(temperature=2.0, top_n_sigma=1.5, top_p=0.8, min_p=0.1),
    "XTC": Settings(xtc_probability=0.5, xtc_threshold=0.01),
    "XTC always": Settings(top_k=30, xtc_probability=1.0, xtc_threshold=1e-3, min_keep=3),
    "min_keep": Settings(top_p=0.01, typical_p=0.02, min_p=0.99, min_keep=6),
    "DRY": Settings(temperature=0.5, dry_multiplier=0.8, dry_allowed_length=1),
    "greedy DRY": Settings(temperature=0, dry_multiplier=2.0, dry_base=1.1),
    "DRY, breakers": Settings(
        temperature=0.3,
        top_k=3,
        dry_multiplier=5.0,
        dry_allowed_length=0,
        dry_penalty_last_n=30,
        dry_breakers={17: [()], 42: [(42, 200), (42,)]},
    ),
    "everything": Settings(temperature=1.5, top_k=40, top_p=0.9, min_p=0.02, typical_p=0.9),
    "repeat": Settings(repeat_penalty=1.5),
    "reward repeats": Settings(repeat_penalty=0.7, presence_penalty=-0.5, frequency_penalty=-0.2),
    "greedy penalties": Settings(
        temperature=0, repeat_penalty=1.2, presence_penalty=0.3, frequency_penalty=0.4
    ),
    "short window": Settings(repeat_penalty=1.9, frequency_penalty=1.0, penalty_window=3),
    "whole context": Settings(presence_penalty=2.0, frequency_penalty=0.5, penalty_window=-1),
    "window beyond the prompt": Settings(presence_penalty=1.0, penalty_window=len(PROMPT) + 3),
    "no window": Settings(repeat_penalty=3.0, penalty_window=0),
    "huge penalties": Settings(repeat_penalty=1e38, presence_penalty=3e38, frequency_penalty=3e38),
    "huge rewards": Settings(repeat_penalty=1e-38, presence_penalty=-3e38, frequency_penalty=-3e38),
    "bias": Settings(logit_bias={5: 6.0, 17: -4.0, 262: 5.5}),
    "greedy bias": Settings(temperature=0, logit_bias={0: 100.0}),
    "huge bias": Settings(logit_bias={9: 3.4e38, 11: -3.4e38}),
    "two huge biases": Settings(temperature=0.01, logit_bias={9: 3.4e38, 12: 3.4e38}),
    "bans": Settings(temperature=2.0, top_p=0.9, logit_bias=dict.fromkeys(range(3, 240), -np.inf)),
    "one left": Settings(typical_p=0.9, logit_bias=dict.fromkeys([*range(50), *range(51, 263)], -np.inf)),
    "nothing left": Settings(top_k=7, top_p=0.5, logit_bias=dict.fromkeys(range(263), -np.inf)),
}
MEANT_TIES = ("huge rewards", "two huge biases")  # all at the largest float32


@pytest.fixture(scope="module")
def tiny_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("sampling") / "llama.gguf")


@pytest.mark.parametrize("name", GRID)
def test_every_setting_at_every_chain_length(tiny_file: Path, name: str, draw: Draw) -> None:
    settings = GRID[name]
    engine, plain = open_file(tiny_file), open_file(tiny_file)
    close = 0
    for seed in draw((0, 1, 0xFFFFFFFF, (1 << 64) - 1)):
        ids = run(engine, PROMPT, 40, settings, seed, chain=1)
        close += check(plain.logits(PROMPT + ids), PROMPT, ids, settings, seed)
        for chain in (3, 64):
            assert run(engine, PROMPT, 40, settings, seed, chain=chain) == ids, f"chain {chain}, seed {seed}"
    # Where the winner hangs on a rounding, the test says little.
    assert close <= 2 or name in MEANT_TIES


@pytest.mark.parametrize(
    "name", ["temperature", "top_k", "top_p", "typical_p", "everything", "whole context", "XTC", "DRY"]
)
def test_a_real_model(tmp_path: Path, name: str) -> None:
    path = llama2c.write("Q8_0", tmp_path / "tinyllama.gguf")
    prompt = llama2c.expected().prompt_ids
    engine, plain = open_file(path, context=256), open_file(path, context=256)
    outputs = set()
    for seed in range(3):
        ids = run(engine, prompt, 120, GRID[name], seed, chain=32)
        assert check(plain.logits(prompt + ids), prompt, ids, GRID[name], seed) <= 1
        outputs.add(tuple(ids))
    assert len(outputs) == 3


# Dimension 33: no two logits are equal; 32: those of tokens 8186 apart are.
LARGE = {
    "temperature": Settings(temperature=0.1),
    "flat": Settings(temperature=1e4),
    "cold": Settings(temperature=0.02),
    "top_k": Settings(temperature=0.1, top_k=40),
    "top_k of thousands": Settings(temperature=0.3, top_k=3000),
    "top_k of most": Settings(temperature=1e3, top_k=140_000),
    "top_p": Settings(temperature=0.1, top_p=0.95),
    "flat top_p": Settings(temperature=1e3, top_p=0.95),
    "flat small top_p": Settings(temperature=1e3, top_p=1e-3),
    "top_p near one": Settings(temperature=0.1, top_p=0.999999),
    "min_p": Settings(temperature=0.1, min_p=0.02),
    "flat min_p": Settings(temperature=2.0, min_p=0.3),
    "typical_p": Settings(temperature=0.1, typical_p=0.9),
    "flat typical_p": Settings(temperature=1e3, typical_p=0.5),
    "typical_p and top_p": Settings(temperature=0.5, typical_p=0.8, top_p=0.5, min_p=0.05),
    "top_n_sigma": Settings(temperature=0.1, top_n_sigma=2.0),
    "flat top_n_sigma": Settings(temperature=1e3, top_n_sigma=0.3, top_p=0.9),
    "XTC": Settings(temperature=0.05, xtc_probability=1.0, xtc_threshold=1e-4),
    "flat XTC": Settings(temperature=1e3, xtc_probability=1.0, xtc_threshold=6.5e-6, min_p=0.9),
    "min_keep of thousands": Settings(temperature=0.1, typical_p=0.1, top_p=0.1, min_p=0.5, min_keep=3000),
    "all, long lists": Settings(temperature=1.0, top_k=100_000, typical_p=0.9, top_p=0.9, min_p=0.1),
    "all, short lists": Settings(temperature=0.2, top_k=200, typical_p=0.9, top_p=0.9, min_p=0.1),
}


@pytest.fixture(scope="module", params=[(32, 1), (33, 0x0123_4567_89AB_CDEF)], ids=["32", "33"])
def large(request: pytest.FixtureRequest) -> tuple[_core.Engine, int]:
    """An engine and a seed."""
    dim, seed = request.param
    return synthetic(151_939, dim), seed  # tokens: not a multiple of any vector's length


@pytest.mark.table
@pytest.mark.parametrize("name", LARGE)
def test_a_large_vocabulary(name: str, large: tuple[_core.Engine, int]) -> None:
    """Other paths than those of a small one: passes over whole vectors, histograms, no lists."""
    prompt, (engine, seed) = [3, 1, 151_938], large
    ids = run(engine, prompt, 4, LARGE[name], seed)
    check(engine.logits(prompt + ids), prompt, ids, LARGE[name], seed)


@pytest.mark.parametrize("vocab", [1, 2, 3, 4, 5, 7, 8, 15, 31, 33, 63, 64, 65, 127, 255, 1025])
def test_a_small_vocabulary(vocab: int, draw: Draw) -> None:
    engine = synthetic(vocab, 33)
    prompt = [0, vocab - 1]
    cases = [
        Settings(temperature=0.4),
        Settings(top_k=2),
        Settings(temperature=0.5, top_k=vocab, top_p=0.7),
        Settings(temperature=0.5, typical_p=0.6, min_p=0.1),
        Settings(temperature=0, presence_penalty=1.0),
    ]
    for settings in cases:
        for seed in draw(range(3)):
            ids = run(engine, prompt, 12, settings, seed)
            assert check(engine.logits(prompt + ids), prompt, ids, settings, seed) <= 1


class TestDamagedModels:
    """Logits that are no numbers do no harm: NaN counts as -inf, +inf as the largest float32."""

    SEEDS = 4
    SETTINGS = (
        Settings(temperature=0),
        Settings(temperature=0, presence_penalty=1.0),
        Settings(),
        Settings(top_k=20),
        Settings(top_p=0.9, typical_p=0.9),
        Settings(min_p=0.01),
    )

    def engine(
        self, folder: Path, rows: dict[int, float], single: dict[int, tuple[int, float]] | None = None
    ):
        """Some rows of the head are all one number; others have a single one, in a column, that is not 0."""
        head = tiny.weights(tiny.ALL["llama"])["lm_head.weight"].copy()
        for row, value in rows.items():
            head[row] = value
        for row, (column, value) in (single or {}).items():
            head[row] = 0
            head[row, column] = value
        file = write_tiny(folder / "damaged.gguf", lm_head__weight=head)
        return open_file(file, check_weights=False)  # what a file cannot bring, overflow still can

    @pytest.mark.parametrize("settings", SETTINGS)
    @pytest.mark.parametrize("tokens", [[5], list(range(100, 263)), [0, 262]], ids=["one", "many", "ends"])
    def test_nan_is_never_drawn(self, tmp_path: Path, tokens: list[int], settings: Settings) -> None:
        engine = self.engine(tmp_path, dict.fromkeys(tokens, np.nan))
        for seed in range(self.SEEDS):
            ids = run(engine, PROMPT, 30, settings, seed, logprobs=20)
            logits = engine.logits(PROMPT + ids)
            assert np.isnan(logits).any()
            check(logits, PROMPT, ids, settings, seed)
            assert not set(ids) & set(tokens)

    @pytest.mark.parametrize("settings", SETTINGS)
    def test_infinity_is_a_large_number(self, tmp_path: Path, settings: Settings) -> None:
        # Sums of one product overflow in whatever order they are added up, and the same on every device. Of
        # 7 and 8 one is +inf at any position, the other -inf; 9 is the sum of both.
        single = {7: (0, np.inf), 8: (0, -np.inf), 11: (1, 3e38), 12: (1, -3e38)}
        engine = self.engine(tmp_path, {9: np.inf, 200: np.nan}, single)
        ids = run(engine, PROMPT, 30, settings, 3, logprobs=20)
        logits = engine.logits(PROMPT + ids)
        assert (np.isposinf(logits).any(axis=1) & np.isneginf(logits).any(axis=1)).all()
        assert np.isnan(logits[:, 9]).all()
        check(logits, PROMPT, ids, settings, 3)

    @pytest.mark.parametrize("settings", SETTINGS)
    def test_nothing_but_nan_gives_token_0(self, tmp_path: Path, settings: Settings) -> None:
        engine = self.engine(tmp_path, dict.fromkeys(range(263), np.nan))
        assert run(engine, PROMPT, 5, settings, 3, logprobs=20) == [0] * 5
