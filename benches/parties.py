#!/usr/bin/env python3
"""Time, memory and traffic of a run with secure sums as the number of parties grows, in one process or as one process for each party.

    parties.py FET [--parties 10,100,1000] [--rows 2000] [--threads 2] [--folder DIR] [--out parties.svg]
    parties.py FET --processes --server NATS-SERVER [--parties 10,50,200]

FET is the program, NATS-SERVER the program of the message server. Each run is one epoch of FeT-Pool with K = 5, batches of 128 rows and
`secure-average`; every secondary has one number and two coordinates for each row of the primary. Traffic is the size of all messages
between the primary and one secondary: of the epoch, and of everything else (joining, agreeing on keys, linking, saving the model, tests).
With `--processes` memory is that of the largest secondary, and `openssl` makes the certificate of the server. Standard library, and with
--out matplotlib.
"""

import argparse
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

SETTINGS = """name = "parties"
linker = { kind = "nearest", neighbours = 5 }
method = { kind = "fet-pool" }
encoder = { kind = "mlp" }
aggregator = { kind = "secure-average" }
split = { kind = "random", validation = 0.1, test = 0.1 }
train = { batch_size = 128, epochs = 1 }

[data]
kind = "linked"
task = "regression"
label = "label"
key_kind = "numbers"
primary = { name = "primary", file = "primary.csv", keys = ["x", "y"] }
secondaries = [
"""


def write(path, header, rows):
    path.write_text("\n".join([header, *(",".join(format(value, ".5g") for value in row) for row in rows)]) + "\n")


def tables(secondaries, rows, folder):
    """Writes tables whose records are shifted by a fifth of the usual distance of neighbours; the label is a sum over all secondaries."""
    draw = random.Random(7)
    keys = [(1000 * draw.random(), 1000 * draw.random()) for _ in range(rows)]
    label, shift = [0.0] * rows, 200 / rows**0.5
    for party in range(secondaries):
        own = []
        for row, (x, y) in enumerate(keys):
            value = draw.random()
            label[row] += value / (secondaries + 1) ** 0.5
            own.append((draw.gauss(x, shift), draw.gauss(y, shift), value))
        draw.shuffle(own)
        write(folder / f"s{party}.csv", "x,y,value", own)
    write(folder / "primary.csv", "x,y,a,label", [(*key, draw.random(), value) for key, value in zip(keys, label)])


def experiment(secondaries, path, files):
    def line(party):
        file = f'file = "s{party}.csv", ' if files else ""
        return f'    {{ name = "s{party}", {file}keys = ["x", "y"] }},\n'

    path.write_text(SETTINGS + "".join(map(line, range(secondaries))) + "]\n")


def run(command, folder, threads):
    """Runs a command; returns its largest memory in MB."""
    environment = {**os.environ, "RAYON_NUM_THREADS": str(threads)}
    with open(folder / "run.log", "w") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stderr=log, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"{' '.join(map(str, command))}: {(folder / 'run.log').read_text()[-2000:]}")
    return usage.ru_maxrss / 1e3


def simulated(fet, secondaries, folder, threads):
    experiment(secondaries, folder / "parties.toml", True)
    return run([fet, "run", "parties.toml", "--out", "result"], folder, threads), None


def separate(fet, server, secondaries, folder, threads):
    """Runs one process for each party; returns the memory of the primary and of the largest secondary."""
    experiment(secondaries, folder / "parties.toml", False)
    names = ["primary", *(f"s{party}" for party in range(secondaries))]
    for name in names:
        subprocess.run([fet, "keys", "new", f"{name}.key"], cwd=folder, check=True, capture_output=True)
    openssl = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    openssl += " -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE -keyout server.key -out server.pem"
    subprocess.run(openssl.split(), cwd=folder, check=True, capture_output=True)
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        port = any_port.getsockname()[1]
    roster = f'run = "parties"\nserver = "tls://localhost:{port}"\nca = "server.pem"\nwait = 1800\n'
    for name in names:
        keys = subprocess.run([fet, "keys", "show", f"{name}.key"], cwd=folder, check=True, capture_output=True, text=True).stdout
        if name == "primary":
            keys = next(line for line in keys.splitlines() if "identity" in line)
        roster += f'\n[{"primary" if name == "primary" else "[parties]"}]\nname = "{name}"\n{keys}\n'
    roster += f'\n[hub]\nhost = "127.0.0.1"\nport = {port}\ncertificate = "server.pem"\nkey = "server.key"\n'
    (folder / "roster.toml").write_text(roster)
    subprocess.run([fet, "hub", "config", "roster.toml", "--out", "nats.conf"], cwd=folder, check=True, capture_output=True)
    started = [subprocess.Popen([server, "-c", "nats.conf", "-l", "nats.log"], cwd=folder)]
    try:
        for name in names[1:]:
            (folder / f"{name}.toml").write_text(
                f'party = "{name}"\nroster = "roster.toml"\nexperiment = "parties.toml"\nkey = "{name}.key"\nstate = "state-{name}"\n'
                f'[data]\nfile = "{name}.csv"\nkeys = ["x", "y"]\n'
            )
            with open(folder / f"{name}.log", "w") as log:
                environment = {**os.environ, "RAYON_NUM_THREADS": str(threads)}
                command = [fet, "party", f"{name}.toml"]
                started.append(subprocess.Popen(command, cwd=folder, stderr=log, stdout=log, env=environment))
        command = [fet, "run", "parties.toml", "--parties", "roster.toml", "--key", "primary.key", "--out", "result"]
        memory = run(command, folder, threads)
        for name, process in zip(names[1:], started[1:]):
            if process.poll() is not None:
                sys.exit(f"{name} has ended: {(folder / f'{name}.log').read_text()[-2000:]}")
        largest = max(peak(process.pid) for process in started[1:])
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait()
    return memory, largest


def peak(process):
    """Returns the largest resident set of a running process in MB."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1e3
    return 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fet", type=Path)
    parser.add_argument("--parties", help="numbers of secondaries")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--threads", type=int, help="threads of each process: 2, or with --processes 1")
    parser.add_argument("--processes", action="store_true", help="one process for each party")
    parser.add_argument("--server", type=Path, help="program of the NATS server")
    parser.add_argument("--folder", type=Path, help="make the temporary tables and runs here")
    parser.add_argument("--out", type=Path, help="picture of the growth")
    given = parser.parse_args()
    if given.processes and given.server is None:
        parser.error("--processes needs --server")
    if given.out:
        import matplotlib  # noqa: F401  A missing package must not be found after an hour.
    fet, found = given.fet.resolve(), []
    threads = given.threads or (1 if given.processes else 2)
    print("| secondaries | before the epoch, s | epoch, s | memory, MB | traffic of a secondary in the epoch, kB | all its other traffic, kB |")
    print("|---|---|---|---|---|---|")
    for secondaries in map(int, (given.parties or ("10,50,200" if given.processes else "10,100,1000")).split(",")):
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            folder = Path(folder)
            tables(secondaries, given.rows, folder)
            if given.processes:
                memory, largest = separate(fet, given.server.resolve(), secondaries, folder, threads)
            else:
                memory, largest = simulated(fet, secondaries, folder, threads)
            report = json.loads((folder / "result" / "report.json").read_text())
        setup = report["cost"]["setup_seconds"]
        epoch = report["cost"]["seconds"] - setup
        traffic = sum(report["epochs"][0]["traffic"].values()) / secondaries / 1e3
        other = sum(report["traffic"].values()) / secondaries / 1e3 - traffic
        shown = f"{memory:,.0f}" if largest is None else f"{memory:,.0f}; {largest:,.0f}"
        found.append((secondaries, setup, epoch, memory, traffic, other))
        print(f"| {secondaries:,} | {setup:.1f} | {epoch:.1f} | {shown} | {traffic:,.0f} | {other:,.0f} |", flush=True)
    if given.out:
        picture(found, given)


def picture(found, given):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot

    figure, charts = pyplot.subplots(1, 3, figsize=(13, 4))
    parties = [row[0] for row in found]
    for axes, title, unit, lines in (
        (charts[0], "Time", "seconds", ((1, "joining, agreeing on keys, linking"), (2, "epoch"))),
        (charts[1], "Memory", "MB", ((3, "primary" if given.processes else "all parties"),)),
        (charts[2], "Traffic of one secondary", "kB", ((4, "epoch"), (5, "all other"))),
    ):
        for at, name in lines:
            axes.loglog(parties, [row[at] for row in found], "o-", label=name)
        axes.set(title=title, xlabel="secondaries", ylabel=unit)
        axes.legend(frameon=False)
        axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(given.out)


if __name__ == "__main__":
    main()
