"""Trains the quickstart problem with the program's encoder and with the paper's encoder in PyTorch.

Run it in the folder of this file, in a clone of the repository: `python compare_encoders.py --seeds 5`.
Each seed trains both in turn, so that other work on the machine slows both.
"""

import argparse
import statistics
import warnings
from pathlib import Path
from typing import Any

import torch

import fet
from paper_encoder import PaperEncoder

QUICKSTART = Path(__file__).resolve().parents[2] / "experiments" / "quickstart.toml"
ENCODERS: dict[str, dict[str, Any]] = {
    "`transformer`, in Rust": {"kind": "transformer"},
    "`PaperEncoder`, in PyTorch": fet.encoder_settings(
        PaperEncoder, neighbours=10, heads=4, dropout=0.2, frequency_std=1.0
    ),
}


def spread(values: list[float], digits: int) -> str:
    """Format a mean and a standard deviation."""
    return f"{statistics.mean(values):.{digits}f} ± {statistics.stdev(values):.{digits}f}"


def main() -> None:
    """Train, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=25)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", fet.FetWarning)
    accuracy: dict[str, list[float]] = {name: [] for name in ENCODERS}
    speed: dict[str, list[float]] = {name: [] for name in ENCODERS}
    for seed in range(arguments.seeds):
        for name, encoder in ENCODERS.items():
            settings = {"seed": seed, "train.epochs": arguments.epochs, "encoder": encoder}
            report = fet.run(QUICKSTART, set=settings).report
            accuracy[name].append(100 * report["best"]["test"])
            speed[name].append(report["cost"]["train_rows_per_second"])
            print(f"seed {seed}: {name}: {accuracy[name][-1]:.2f} %, {speed[name][-1]:.0f} rows/s", flush=True)
    print("\n| encoder | test accuracy, % | seeds | rows/s, median (lowest to highest) |\n|---|---|---|---|")
    for name in ENCODERS:
        rates = f"{statistics.median(speed[name]):.0f} ({min(speed[name]):.0f} to {max(speed[name]):.0f})"
        print(f"| {name} | {spread(accuracy[name], 2)} | {arguments.seeds} | {rates} |")
    own, torchs = accuracy.values()
    print(f"\nPyTorch minus Rust, paired over seeds: {spread([b - a for a, b in zip(own, torchs)], 2)} points")
    rust, python = (speed[name] for name in ENCODERS)
    print(f"Rust over PyTorch, rows/s: {statistics.median(a / b for a, b in zip(rust, python)):.1f}")


if __name__ == "__main__":
    main()
