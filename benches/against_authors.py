#!/usr/bin/env python3
"""Training rows per second beside the authors' program, taking turns: A B A B ..., medians, ratio.

    cargo bench -p fet-bench --bench summary --features fet/libtorch --no-run       # prints the path of SUMMARY
    OMP_WAIT_POLICY=passive benches/against_authors.py CHECKOUT SUMMARY [--case hdb] [--device libtorch] [--rounds 5]

CHECKOUT is a copy of https://github.com/Xtra-Computing/FeT (its `src/model/FeT.py` is imported, unchanged; torch,
torch_optimizer, numpy, scikit-learn and matplotlib must be installed). SUMMARY is this project's benchmark. Both train
the same model on tables of the same shapes with the same number of threads. The authors' side is timed from a batch
that already lies in memory, forward, loss, backward and LAMB: their search for neighbours in every epoch and their
data loader are not counted. Ours is the whole step, gathering included. Nothing else should run meanwhile.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

# What `Workload` of fet-bench has: parties' features (the primary's first), key columns, K, H, heads, blocks.
CASES = {
    "hdb": dict(features=[68, 8], keys=2, k=100, width=100, heads=4, local=1, agg=2, dropout=0.3, party=0.0, out=1),
    "house": dict(features=[52, 23], keys=2, k=100, width=100, heads=4, local=3, agg=3, dropout=0.3, party=0.0, out=1),
    "mnist, 10 parties": dict(
        features=[78] * 10, keys=4, k=100, width=200, heads=1, local=1, agg=1, dropout=0.0, party=0.6, out=10
    ),
    "mnist, 50 parties": dict(
        features=[15] * 50, keys=4, k=100, width=200, heads=1, local=1, agg=1, dropout=0.0, party=0.6, out=10
    ),
}
BATCH = 128


def authors(checkout, case, steps):
    """A function that trains so many steps and gives rows per second."""
    sys.path.insert(0, checkout)
    import torch
    import torch_optimizer
    from src.model.FeT import FeT

    shape = CASES[case]
    regression = shape["out"] == 1
    model = FeT(
        key_dims=[shape["keys"]] * len(shape["features"]),
        data_dims=shape["features"],
        out_dim=shape["out"],
        key_embed_dim=shape["width"],
        data_embed_dim=shape["width"],
        num_heads=shape["heads"],
        dropout=shape["dropout"],
        party_dropout=shape["party"],
        n_local_blocks=shape["local"],
        n_agg_blocks=shape["agg"],
        k=shape["k"],
        out_activation=torch.nn.Sigmoid() if regression else None,
    )
    model.train()
    optimizer = torch_optimizer.Lamb(model.parameters(), lr=1e-3, weight_decay=1e-5)
    loss_of = torch.nn.MSELoss() if regression else torch.nn.CrossEntropyLoss()

    def batch():
        lengths = [1] + [shape["k"]] * (len(shape["features"]) - 1)
        parties = zip(lengths, shape["features"])
        inputs = [(torch.randn(BATCH, n, shape["keys"]), torch.randn(BATCH, n, d)) for n, d in parties]
        return inputs, torch.rand(BATCH) if regression else torch.randint(shape["out"], (BATCH,))

    def train():
        seconds = 0.0
        for _ in range(steps):
            inputs, labels = batch()
            start = time.perf_counter()
            optimizer.zero_grad()
            output = model(inputs)
            loss = loss_of(output.flatten() if regression else output, labels)
            loss.item()
            loss.backward()
            optimizer.step()
            seconds += time.perf_counter() - start
        return steps * BATCH / seconds

    return train


def ours(summary, case, device, libtorch):
    """Rows per second and peak memory of one run of the benchmark."""
    environment = dict(os.environ, FET_BENCH_CASE=f"{case} / {device}")
    # An allocator that the other side is given is not ours.
    environment.pop("LD_PRELOAD", None)
    if libtorch:
        environment["LD_LIBRARY_PATH"] = libtorch
    output = subprocess.run([summary], env=environment, check=True, capture_output=True, text=True).stdout
    figures = json.loads(output)
    return statistics.median(figures["rows_per_second"]), figures["peak_memory_bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout")
    parser.add_argument("summary")
    parser.add_argument("--case", choices=CASES, default="hdb")
    parser.add_argument("--device", default="libtorch")
    parser.add_argument("--libtorch", help="the folder lib of LibTorch, where SUMMARY does not find it")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4)
    arguments = parser.parse_args()

    train = authors(arguments.checkout, arguments.case, arguments.steps)
    train()
    theirs, mine, memory = [], [], 0
    for _ in range(arguments.rounds):
        theirs.append(train())
        rate, memory = ours(arguments.summary, arguments.case, arguments.device, arguments.libtorch)
        mine.append(rate)
    a, b = statistics.median(theirs), statistics.median(mine)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"{arguments.case}: authors {a:.0f} rows/s {[round(v) for v in theirs]}, {peak / 1e9:.2f} GB")
    print(f"{arguments.case}: fet on {arguments.device} {b:.0f} rows/s {[round(v) for v in mine]}, {memory / 1e9:.2f} GB")
    print(f"ratio {b / a:.2f}")


if __name__ == "__main__":
    main()
