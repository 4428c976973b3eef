"""Compare the cost model with measurements on this machine's CPU, for docs/performance-notes.md.

    python -m tools.cost_model_on_cpu qwen3-0.6b:q4_0 llama3.2-1b:f16 --threads 2

Peaks are measured right before and after each table, so other load changes both sides; on a busy machine the
figures still mean little.
"""

from __future__ import annotations

import argparse

from akunu import _core
from akunu.cli.cost_model import Machine, predict
from akunu.cli.costs import mean_peaks
from akunu.loading.engines import open_engine

TABLES = (("decode", 1, 100), ("batch", 8, 100), ("prefill", 128, 0))
REPEATS = 5


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--threads", type=int, default=0)
    args = parser.parse_args()
    print("| model | table | measured ms | predicted ms | predicted / measured |\n|---|---|---|---|---|")
    for model in args.models:
        with open_engine(model, device="cpu", context=256, threads=args.threads) as opened:
            engine = opened.engine
            for phase, rows, position in TABLES:
                before = _core.measure_peaks(engine.threads)
                commands = engine.profile(phase, rows, position, REPEATS)
                machine = Machine.of_cpu("cpu", mean_peaks(before, _core.measure_peaks(engine.threads)))
                measured = sum(command["seconds"] for command in commands)
                predicted = predict(commands, rows, machine).seconds
                cells = (f"{measured * 1e3:.2f}", f"{predicted * 1e3:.2f}", f"{predicted / measured:.2f}")
                print(f"| {model} | {phase}, {rows} rows | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
