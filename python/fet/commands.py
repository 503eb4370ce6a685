"""Commands of the program as functions."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fet import _fet
from fet.errors import FetError, InputError
from fet.notes import Note, note, shown
from fet.runs import Experiment, Workplace, page, write_experiment
from fet.settings import sets
from fet.tables import Problem, Table

_INVALID = 2
_INTERRUPTED = 130


def command(arguments: Sequence[str], notes: Note = note) -> str:
    """Run a command of the program in its own process, and return its standard output.

    Ctrl-C lets the command finish its steps before it raises `KeyboardInterrupt`.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out:
        # In its own session the process gets one signal from this one, and none from the terminal.
        process = subprocess.Popen(
            [sys.executable, "-m", "fet", *arguments],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        lines: list[str] = []
        interrupted = False
        while True:
            try:
                line = process.stderr.readline() if process.stderr else ""
                if not line:
                    break
                lines.append(line.rstrip("\n"))
                if not line.startswith("fet: "):
                    notes(lines[-1])
            except KeyboardInterrupt:
                if interrupted:
                    process.kill()
                interrupted = True
                process.send_signal(signal.SIGINT)
        code = process.wait()
        out.seek(0)
        answer = out.read()
    if interrupted or code == _INTERRUPTED:
        raise KeyboardInterrupt
    if code != 0:
        last = [at for at, line in enumerate(lines) if line.startswith(("fet: ", "error: "))]
        text = "\n".join(lines[last[-1] :] if last else lines).removeprefix("fet: ").removeprefix("error: ")
        raise (InputError if code == _INVALID else FetError)(text)
    return answer


class Answer:
    """Answer of `fet worth` or `fet study`, in the folder of its files."""

    def __init__(self, data: Any, html: Path, workplace: Workplace) -> None:
        """Keep the answer and the place of its page."""
        self.data = data
        self.folder = html.parent
        self._html = html
        self._workplace = workplace

    def __getitem__(self, name: str) -> Any:
        """Return a field of the answer."""
        return self.data[name]

    def _repr_html_(self) -> str:
        """Show the answer's page in a notebook."""
        return page(self._html)


def _file(experiment: Experiment, folder: Path) -> Path:
    """Return the file of an experiment; settings and problems are written into the folder."""
    if isinstance(experiment, (str, os.PathLike)):
        return Path(experiment)
    folder.mkdir(parents=True, exist_ok=True)
    settings = experiment.settings(folder) if isinstance(experiment, Problem) else dict(experiment)
    return write_experiment(settings, folder)


def worth(
    experiment: Experiment,
    folder: str | os.PathLike[str] | None = None,
    *,
    quick: bool = False,
    jobs: int | None = None,
    epsilon: Sequence[float] = (),
    verbose: bool = False,
) -> Answer:
    """Measure the gain from federating, as `fet worth` does. The answer has the fields of `worth.json`."""
    workplace = Workplace(folder)
    out = workplace.path / "worth"
    arguments = ["worth", str(_file(experiment, workplace.path)), "--out", str(out), "--json"]
    arguments += ["--quick"] if quick else []
    arguments += ["--jobs", str(jobs)] if jobs else []
    arguments += ["--epsilon", ",".join(map(str, epsilon))] if epsilon else []
    answer = command(arguments, shown if verbose else note)
    return Answer(json.loads(answer), out / "worth.html", workplace)


def study(
    experiment: Experiment,
    folder: str | os.PathLike[str] | None = None,
    set: Mapping[str, Any] | None = None,
    *,
    jobs: int | None = None,
    profile: str | None = None,
    seeds: Sequence[int] = (),
    only: Sequence[str] = (),
    verbose: bool = False,
) -> Answer:
    """Run a study, as `fet study` does: the variants of its file, or for a problem those of `fet init`.

    `only` names the variants to run. The answer has the fields of `results.json`.
    """
    workplace = Workplace(folder)
    out = workplace.path / "study"
    arguments = ["study", str(_file(experiment, workplace.path)), "--out", str(out)]
    arguments += [argument for change in sets(set) for argument in ("--set", change)]
    arguments += ["--jobs", str(jobs)] if jobs else []
    arguments += ["--profile", profile] if profile else []
    arguments += ["--seeds", ",".join(map(str, seeds))] if seeds else []
    arguments += [argument for name in only for argument in ("--only", name)]
    command(arguments, shown if verbose else note)
    # One folder for each study, named after it; the latest is that of this command.
    results = max(out.glob("*/results.json"), key=lambda path: path.stat().st_mtime)
    data = json.loads(results.read_text(encoding="utf-8"))
    return Answer(data, results.with_name("report.html"), workplace)


def link(
    primary: Table,
    secondary: Table,
    linker: str | None = None,
    set: Mapping[str, Any] | None = None,
    *,
    threshold: float | str | None = None,
    one_to_one: bool = False,
    seed: int = 0,
) -> _fet.Frame:
    """Link two tables by their keys, as `fet link` does, and return the pairs of rows."""
    with tempfile.TemporaryDirectory(prefix="fet-") as scratch:
        folder = Path(scratch)
        out = folder / "pairs.csv"
        tables = [str(primary.file(folder, "primary")), str(secondary.file(folder, "secondary"))]
        arguments = ["link", *tables, "--out", str(out), "--seed", str(seed), "--keys", ",".join(primary.keys)]
        arguments += ["--secondary-keys", ",".join(secondary.keys)] if secondary.keys != primary.keys else []
        arguments += ["--linker", linker] if linker else []
        arguments += [argument for change in sets(set) for argument in ("--set", change)]
        arguments += ["--threshold", str(threshold)] if threshold is not None else []
        arguments += ["--assign", "one-to-one"] if one_to_one else []
        command(arguments)
        return _fet.read_frame(out, [])


def account(
    *,
    delta: float,
    noise: float | None = None,
    epsilon: float | None = None,
    rate: float = 1.0,
    steps: int = 1,
) -> dict[str, Any]:
    """Compute the privacy loss of noisy releases, or the noise for a loss, as `fet account` does."""
    if (noise is None) == (epsilon is None):
        raise InputError("account: give either `noise` or `epsilon`")
    answer: dict[str, Any] = json.loads(_fet.account(noise, epsilon, rate, steps, delta))
    return answer


def schema() -> dict[str, Any]:
    """Return the JSON schema of experiments: every setting with its help, range and default."""
    answer: dict[str, Any] = json.loads(_fet.schema())
    return answer
