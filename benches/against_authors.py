#!/usr/bin/env python3
"""Training rows per second beside the authors' program, in turns, each at its best; a table with medians, spread and machine.

    cargo xtask bench --against CHECKOUT                        # makes the environment, builds, runs every case; an idle machine
    cargo xtask bench --against CHECKOUT -- --case hdb --device libtorch --rounds 3

CHECKOUT is a copy of https://github.com/Xtra-Computing/FeT (its `src/model/FeT.py` is imported, unchanged). Both train the same model on
tables of the same shapes with the same number of threads. With --device libtorch-cuda or cuda both compute on the GPU; memory is the host's alone then. The authors' side is timed from a batch that already lies in memory: forward, loss,
backward and LAMB; their search for neighbours in every epoch and their data loader are not counted. Ours is the whole step, gathering
included.

How fast PyTorch is depends on the allocator and on how threads wait. For each case every setting below is tried first, and the one with the
most rows per second is the authors' for all rounds; ours has none of them. Each round is a process of its own on either side. Raw figures go to
benches/runs/DATE-MACHINE/against-authors.json, or the file that --out names.
"""

import argparse
import datetime
import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

# What `Workload` of fet-e2e has: parties' features (the primary's first), key columns, K, H, heads, blocks; steps that are timed.
CASES = {
    "hdb": dict(features=[68, 8], keys=2, k=100, width=100, heads=4, local=1, agg=2, dropout=0.3, party=0.0, out=1, steps=8),
    "house": dict(features=[52, 23], keys=2, k=100, width=100, heads=4, local=3, agg=3, dropout=0.3, party=0.0, out=1, steps=4),
    "mnist, 10 parties": dict(
        features=[78] * 10, keys=4, k=100, width=200, heads=1, local=1, agg=1, dropout=0.0, party=0.6, out=10, steps=2
    ),
    "mnist, 50 parties": dict(
        features=[15] * 50, keys=4, k=100, width=200, heads=1, local=1, agg=1, dropout=0.0, party=0.6, out=10, steps=1
    ),
}
BATCH = 128

# glibc that gives nothing back to the system, as PyTorch's users set it.
KEEPING = {"MALLOC_TRIM_THRESHOLD_": "8589934592", "MALLOC_MMAP_THRESHOLD_": "8589934592", "MALLOC_TOP_PAD_": "268435456"}
# jemalloc that gives nothing back either, where the system has it.
JEMALLOC = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
JEMALLOC_KEEPING = {
    "LD_PRELOAD": JEMALLOC,
    "MALLOC_CONF": "oversize_threshold:0,dirty_decay_ms:-1,muzzy_decay_ms:-1,background_thread:true",
}
SETTINGS = {
    "glibc": {},
    "glibc, keeping": KEEPING,
    "glibc, keeping; threads that spin": KEEPING | {"OMP_WAIT_POLICY": "active"},
    "jemalloc, keeping": JEMALLOC_KEEPING,
    "jemalloc, keeping; threads that spin": JEMALLOC_KEEPING | {"OMP_WAIT_POLICY": "active"},
}


def place_of(device):
    """Where PyTorch computes beside one of our devices."""
    name, _, index = device.partition(":")
    return "cuda" + (f":{index}" if index else "") if name in ("libtorch-cuda", "cuda") else "cpu"


def authors(checkout, case, steps, place):
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
    model.to(place).train()
    optimizer = torch_optimizer.Lamb(model.parameters(), lr=1e-3, weight_decay=1e-5)
    loss_of = torch.nn.MSELoss() if regression else torch.nn.CrossEntropyLoss()

    def batch():
        lengths = [1] + [shape["k"]] * (len(shape["features"]) - 1)
        parties = zip(lengths, shape["features"])
        inputs = [(torch.randn(BATCH, n, shape["keys"]).to(place), torch.randn(BATCH, n, d).to(place)) for n, d in parties]
        labels = torch.rand(BATCH) if regression else torch.randint(shape["out"], (BATCH,))
        return inputs, labels.to(place)

    def settle():
        # A GPU works on after a call has returned.
        if place != "cpu":
            torch.cuda.synchronize(place)

    def train():
        seconds = 0.0
        for _ in range(steps):
            inputs, labels = batch()
            settle()
            start = time.perf_counter()
            optimizer.zero_grad()
            output = model(inputs)
            loss = loss_of(output.flatten() if regression else output, labels)
            loss.item()
            loss.backward()
            optimizer.step()
            settle()
            seconds += time.perf_counter() - start
        return steps * BATCH / seconds

    return train


def one(arguments):
    """The authors' side of one round, in this process: prints rows per second and peak memory."""
    import torch

    torch.set_num_threads(arguments.threads)
    place = place_of(arguments.device)
    steps = CASES[arguments.one]["steps"] * (10 if place != "cpu" else 1)
    authors(arguments.checkout, arguments.one, 1, place)()
    train = authors(arguments.checkout, arguments.one, steps, place)
    train()
    rate = train()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"rows_per_second": rate, "memory": memory}))


def figures_of(command, environment):
    """What a side prints last; ends with what it said where it failed."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        said = done.stderr.strip() or ("no memory was left" if done.returncode == -9 else "nothing")
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}: {said}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def theirs(arguments, case, setting):
    environment = {"OMP_WAIT_POLICY": "passive"} | os.environ | SETTINGS[setting]
    command = [sys.executable, __file__, arguments.checkout, arguments.summary, "--one", case]
    command += ["--threads", str(arguments.threads), "--device", arguments.device]
    return figures_of(command, environment)


def ours(arguments, case):
    environment = os.environ | {"FET_BENCH_CASE": f"{case} / {arguments.device}", "OMP_WAIT_POLICY": "passive"}
    environment["RAYON_NUM_THREADS"] = str(arguments.threads)
    if arguments.libtorch:
        environment["LD_LIBRARY_PATH"] = arguments.libtorch
    figures = figures_of([arguments.summary], environment)
    return {"rows_per_second": statistics.median(figures["rows_per_second"]), "memory": figures["peak_memory_bytes"]}


def machine(device="cpu"):
    if place_of(device) != "cpu":
        import torch

        return f"{torch.cuda.get_device_name(place_of(device))}; {machine()}"
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    found = re.search(r"model name\s*:\s*(.*)", text)
    flags = re.search(r"flags\s*:\s*(.*)", text)
    flags = flags.group(1).split() if flags else []
    vectors = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "SSE2"
    return f"{found.group(1) if found else platform.processor()}, {vectors}, {os.cpu_count()} cores"


def measure(arguments, case):
    tried = {}
    for setting in SETTINGS:
        if "LD_PRELOAD" in SETTINGS[setting] and not Path(JEMALLOC).exists():
            continue
        tried[setting] = theirs(arguments, case, setting)["rows_per_second"]
    best = max(tried, key=tried.get)
    rounds = []
    for _ in range(arguments.rounds):
        rounds.append({"authors": theirs(arguments, case, best), "fet": ours(arguments, case)})
    return {"case": case, "device": arguments.device, "tried": tried, "setting": best, "rounds": rounds}


def row(result):
    def column(side, what):
        return [turn[side][what] for turn in result["rounds"]]

    def rates(side):
        values = column(side, "rows_per_second")
        return f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"

    ratios = [turn["fet"]["rows_per_second"] / turn["authors"]["rows_per_second"] for turn in result["rounds"]]
    memory = [statistics.median(column(side, "memory")) / 1e9 for side in ("authors", "fet")]
    return (
        f"| {result['case']} | {result['device']} | {result['setting']} | {rates('authors')} | {rates('fet')} "
        f"| {statistics.median(ratios):.2f} | {memory[0]:.2f} GB | {memory[1]:.2f} GB | {memory[1] / memory[0]:.2f} |"
    )


def place(device):
    words = re.findall(r"[a-z0-9]+", machine(device).split(",")[0].lower())
    name = f"{datetime.date.today()}-{'-'.join(words)}-{os.cpu_count()}"
    return Path(__file__).parent / "runs" / name / "against-authors.json"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout")
    parser.add_argument("summary", help="this project's benchmark `summary`")
    parser.add_argument("--case", choices=CASES, action="append", help="may be given again; by default all")
    parser.add_argument("--device", default="flex")
    parser.add_argument("--libtorch", help="the folder lib of LibTorch, where SUMMARY does not find it")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, help="where raw figures go")
    parser.add_argument("--one", choices=CASES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        return one(arguments)

    import torch

    print(f"{machine(arguments.device)}; {arguments.threads} threads; PyTorch {torch.__version__}; {arguments.rounds} rounds in turns, medians\n")
    print("| case | device | the authors' best setting | authors, rows/s | fet, rows/s | ratio | authors, memory | fet, memory | share |")
    print("|---|---|---|---|---|---|---|---|---|")
    results = []
    out = arguments.out or place(arguments.device)
    out.parent.mkdir(parents=True, exist_ok=True)
    for case in arguments.case or CASES:
        results.append(measure(arguments, case))
        print(row(results[-1]), flush=True)
        # After each case: the next may take hours, or all memory.
        raw = {"machine": machine(arguments.device), "threads": arguments.threads, "torch": torch.__version__, "results": results}
        out.write_text(json.dumps(raw, indent=2) + "\n")
    print(f"\nraw figures: {out}")


if __name__ == "__main__":
    main()
