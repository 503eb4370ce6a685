"""Commands of the program as functions."""

import copy
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, overload

from fet import _fet
from fet.errors import FetError, InputError
from fet.figures import Figure
from fet.notes import Note, note, shown
from fet.plugins import attack as register_attack
from fet.plugins import environment
from fet.runs import Experiment, Workplace, open_run, page, write_experiment
from fet.settings import Settings, sets
from fet.tables import Problem, Table, table_of

_Class = TypeVar("_Class", bound=type)

_INVALID = 2
# Exit code of an audit whose bound refutes the claim.
_REFUTED = 1
_INTERRUPTED = 130


def command(arguments: Sequence[str], notes: Note = note) -> str:
    """Run a command of the program in its own process, and return its standard output."""
    return _command(arguments, notes)[0]


def _command(arguments: Sequence[str], notes: Note, answers: Sequence[int] = (0,)) -> tuple[str, int]:
    """Run a command, and return its standard output and its exit code, which is one of `answers`.

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
            env=environment(),
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
        if process.stderr:
            process.stderr.close()
        out.seek(0)
        answer = out.read()
    if interrupted or code == _INTERRUPTED:
        raise KeyboardInterrupt
    if code not in answers or (code != 0 and not answer):
        last = [at for at, line in enumerate(lines) if line.startswith(("fet: ", "error: "))]
        text = "\n".join(lines[last[-1] :] if last else lines).removeprefix("fet: ").removeprefix("error: ")
        raise (InputError if code == _INVALID else FetError)(text)
    return answer, code


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

    def __repr__(self) -> str:
        """Name the fields of the answer."""
        return f"<fet.{type(self).__name__}: `data` with {', '.join(self.data)}>"

    def _repr_html_(self) -> str:
        """Show the answer's page in a notebook."""
        return page(self._html)


class StudyAnswer(Answer):
    """Answer of a study: the fields of `results.json`, and a row for each variant."""

    @property
    def results(self) -> _fet.Frame:
        """A row for each variant and seed, as in `results.csv`. A column with an infinite number holds texts."""
        return self._read()[0]

    def to_pandas(self) -> Any:
        """Return the results as a pandas frame; needs pandas and pyarrow."""
        import pandas

        results, infinite = self._read()
        frame = results.to_pandas()
        return frame.assign(**{name: pandas.to_numeric(frame[name]) for name in infinite})

    def _read(self) -> tuple[_fet.Frame, list[str]]:
        """Return the results, and the columns with infinite numbers."""
        path = self.folder / "results.csv"
        with path.open(encoding="utf-8", newline="") as file:
            infinite = {name for row in csv.DictReader(file) for name, cell in row.items() if cell in ("inf", "-inf")}
        return _fet.read_frame(path, sorted(infinite)), sorted(infinite)


class Explanation:
    """Answer of `fet explain`: the fields of `explanation.json`, and its picture."""

    def __init__(self, folder: Path) -> None:
        """Read the explanation in a folder."""
        self.data: dict[str, Any] = json.loads((folder / "explanation.json").read_text(encoding="utf-8"))
        self.figure = Figure((folder / "explanation.svg").read_text(encoding="utf-8"))

    def __getitem__(self, name: str) -> Any:
        """Return a field of the explanation."""
        return self.data[name]

    def __repr__(self) -> str:
        """Name the fields of the explanation."""
        return f"<fet.Explanation: `data` with {', '.join(self.data)}>"

    def _repr_svg_(self) -> str:
        """Show the picture in a notebook."""
        return self.figure.svg


class Audit:
    """Answer of `fet audit`: its fields in `data`, and true if a lower bound refutes the claimed ε."""

    def __init__(self, text: str, refuted: bool) -> None:
        """Keep the answer."""
        self.text = text
        self.refuted = refuted
        self.data: dict[str, Any] = json.loads(text) if text.startswith("{") else {}

    def __getitem__(self, name: str) -> Any:
        """Return a field of the answer."""
        return self.data[name]

    def __repr__(self) -> str:
        """Return the text of the command."""
        return self.text

    @property
    def table(self) -> list[dict[str, str]]:
        """Rows of the table that `fet.audit(table=True)` prints, by the names of its columns."""
        lines = [line.strip().strip("|").split("|") for line in self.text.splitlines() if line.startswith("|")]
        rows = [[cell.strip() for cell in line] for line in lines]
        return [dict(zip(rows[0], row, strict=True)) for row in rows[2:]]


def experiment_file(experiment: Experiment, folder: Path) -> Path:
    """Return the file of an experiment; settings and problems are written into the folder."""
    if isinstance(experiment, (str, os.PathLike)):
        return Path(experiment)
    folder.mkdir(parents=True, exist_ok=True)
    settings = experiment.settings(folder) if isinstance(experiment, Problem) else absolute(experiment, Path.cwd())
    return write_experiment(settings, folder)


def absolute(settings: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """Return the settings of an experiment, with absolute paths of the tables that are in the folder `base`."""
    changed = copy.deepcopy(dict(settings))
    data = changed.get("data", {})
    for table in [data.get("primary", {}), *data.get("secondaries", [])]:
        path = base / str(table.get("file", ""))
        if "file" in table and path.is_file():
            table["file"] = str(path.resolve())
    return changed


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
    arguments = ["worth", str(experiment_file(experiment, workplace.path)), "--out", str(out), "--json"]
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
) -> StudyAnswer:
    """Run a study, as `fet study` does: the variants of its file, or for a problem those of `fet init`.

    `only` names the variants to run. The answer has the fields of `results.json`.
    """
    workplace = Workplace(folder)
    out = workplace.path / "study"
    arguments = ["study", str(experiment_file(experiment, workplace.path)), "--out", str(out)]
    arguments += [argument for change in sets(set) for argument in ("--set", change)]
    arguments += ["--jobs", str(jobs)] if jobs else []
    arguments += ["--profile", profile] if profile else []
    arguments += ["--seeds", ",".join(map(str, seeds))] if seeds else []
    arguments += [argument for name in only for argument in ("--only", name)]
    command(arguments, shown if verbose else note)
    # One folder for each study, named after it; the latest is that of this command.
    results = max(out.glob("*/results.json"), key=lambda path: path.stat().st_mtime)
    data = json.loads(results.read_text(encoding="utf-8"))
    return StudyAnswer(data, results.with_name("report.html"), workplace)


class Study:
    """A study: variants of one experiment, each with every seed.

    `variants` are the changes of each variant by its name, as `{"no dropout": {"method.dropout": 0}}`. The first
    variant, or `base`, is the base of the comparisons. `axes` are values of settings; every variant runs with each.
    """

    def __init__(
        self,
        experiment: Problem | Mapping[str, Any],
        variants: Mapping[str, Mapping[str, Any]],
        seeds: Sequence[int] = (0, 1, 2),
        *,
        folds: int | None = None,
        base: str | None = None,
        axes: Mapping[str, Sequence[Any]] | None = None,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        """Describe a study of a problem, or of the settings of an experiment."""
        if not variants:
            raise InputError("`variants`: must have at least one variant")
        self.experiment = experiment
        self.variants = {name: dict(changes) for name, changes in variants.items()}
        self.seeds = list(seeds)
        self.folds = folds
        self.base = base
        self.axes = dict(axes or {})
        self.answer: StudyAnswer | None = None
        self._workplace = Workplace(folder)

    def run(
        self, set: Mapping[str, Any] | None = None, *, jobs: int | None = None, verbose: bool = False
    ) -> StudyAnswer:
        """Run the study. With a folder, the same call resumes an interrupted study."""
        folder = self._workplace.path
        given = self.experiment
        settings = given.settings(folder) if isinstance(given, Problem) else absolute(given, Path.cwd())
        settings.pop("profile", None)
        settings.setdefault("name", "experiment")
        settings["ablation"] = {
            "seeds": self.seeds,
            "folds": self.folds,
            "base": self.base,
            "axes": self.axes or None,
            "variants": [{"name": name, "set": sets(changes)} for name, changes in self.variants.items()],
        }
        file = write_experiment(settings, folder)
        self.answer = study(file, folder, set, jobs=jobs, verbose=verbose)
        return self.answer

    def to_pandas(self) -> Any:
        """Return the results as a pandas frame; needs pandas and pyarrow."""
        if self.answer is None:
            raise InputError("the study has no results yet; call `run`")
        return self.answer.to_pandas()

    def _repr_html_(self) -> str:
        """Show the page of the finished study in a notebook."""
        return "" if self.answer is None else self.answer._repr_html_()


@overload
def attack(experiment: _Class, /) -> _Class: ...


@overload
def attack(
    experiment: Experiment,
    attack: str | Settings | Sequence[str | Settings] | None = None,
    set: Mapping[str, Any] | None = None,
    *,
    seed: int | None = None,
    verbose: bool = False,
) -> list[dict[str, Any]]: ...


def attack(
    experiment: Any,
    attack: str | Settings | Sequence[str | Settings] | None = None,
    set: Mapping[str, Any] | None = None,
    *,
    seed: int | None = None,
    verbose: bool = False,
) -> Any:
    """Attack an experiment, as `fet attack` does, and return a record for each attack that fits it.

    `attack` is a name, settings as of `fet.attack_settings`, or a list of both.

    Above a class, `@fet.attack` registers the class as an attack. The class has the attributes `attacker` ("primary" or
    "secondary") and `target` ("labels", "features", "membership", "links" or "predictions"). Its method
    `attack(self, environment)` trains runs with `environment.train`, and returns a list of `fet.Measure`. Its optional
    method `check(self, setting)` raises `fet.InputError` for an experiment that does not suit the attack.
    """
    if isinstance(experiment, type):
        return register_attack(experiment)
    attacks = list(attack) if isinstance(attack, (list, tuple)) else [attack]
    records = []
    with tempfile.TemporaryDirectory(prefix="fet-") as scratch:
        file = experiment_file(experiment, Path(scratch))
        for one in attacks:
            arguments = ["attack", str(file), "--json"]
            arguments += ["--attack", one] if isinstance(one, str) else []
            arguments += _changes({**(set or {}), **({"attack": one} if isinstance(one, Mapping) else {})}, seed)
            answer = command(arguments, shown if verbose else note)
            records += [json.loads(line) for line in answer.splitlines() if line.startswith("{")]
    return records


def audit(
    experiment: Experiment,
    set: Mapping[str, Any] | None = None,
    *,
    canaries: int = 40,
    runs: int = 200,
    alpha: float = 0.05,
    table: bool = False,
    seed: int | None = None,
    verbose: bool = False,
) -> Audit:
    """Test the claimed ε of an experiment with canaries, as `fet audit` does."""
    with tempfile.TemporaryDirectory(prefix="fet-") as scratch:
        arguments = ["audit", str(experiment_file(experiment, Path(scratch)))]
        arguments += ["--canaries", str(canaries), "--runs", str(runs), "--alpha", str(alpha)]
        arguments += ["--table"] if table else []
        arguments += _changes(set, seed)
        text, code = _command(arguments, shown if verbose else note, (0, _REFUTED))
    return Audit(text, code == _REFUTED)


def explain(
    run: Any,
    *,
    rows: int = 1000,
    repeats: int = 5,
    control: Any = None,
    verbose: bool = False,
) -> Explanation:
    """Explain the parties and columns of a run, as `fet explain` does.

    `run` and `control` are each a `Run`, a fitted estimator, or a folder. `control` is a run of the primary alone.
    """
    folder = open_run(run).folder
    arguments = ["explain", str(folder), "--rows", str(rows), "--repeats", str(repeats)]
    arguments += ["--control", str(open_run(control).folder)] if control is not None else []
    command(arguments, shown if verbose else note)
    return Explanation(folder)


def _changes(set: Mapping[str, Any] | None, seed: int | None) -> list[str]:
    """Return the arguments that change settings and the seed."""
    arguments = [argument for change in sets(set) for argument in ("--set", change)]
    return arguments + (["--seed", str(seed)] if seed is not None else [])


def link(
    primary: Table,
    secondary: Table,
    linker: str | Mapping[str, Any] | None = None,
    set: Mapping[str, Any] | None = None,
    *,
    threshold: float | str | None = None,
    one_to_one: bool = False,
    seed: int = 0,
) -> _fet.Frame:
    """Link two tables by their keys, as `fet link` does, and return the pairs of rows.

    `linker` is a name, or settings as of `fet.linker_settings`; `set` changes settings of the linker.
    """
    primary, secondary = table_of(primary, "primary"), table_of(secondary, "secondary")
    for name, table in (("primary", primary), ("secondary", secondary)):
        if not table.keys:
            raise InputError(f"`{name}`: must have key columns; write `fet.Table(frame, keys=[...])`")
    if isinstance(linker, Mapping):
        set = {**{name: value for name, value in linker.items() if name != "kind"}, **(set or {})}
        linker = str(linker["kind"])
    elif linker is not None and not isinstance(linker, str):
        raise InputError(f"`linker` must be a name, or a table as `fet.linker_settings` returns; it is {linker!r}")
    with tempfile.TemporaryDirectory(prefix="fet-") as scratch:
        folder = Path(scratch)
        out = folder / "pairs.csv"
        # The linker decides if a key may be missing.
        pair = ((primary, "primary"), (secondary, "secondary"))
        tables = [str(table.file(folder, stem, complete=False)) for table, stem in pair]
        arguments = ["link", *tables, "--out", str(out), "--seed", str(seed), "--keys", ",".join(primary.keys)]
        arguments += ["--secondary-keys", ",".join(secondary.keys)] if secondary.keys != primary.keys else []
        arguments += ["--linker", linker] if linker else []
        arguments += [argument for change in sets(set) for argument in ("--set", change)]
        arguments += ["--threshold", str(threshold)] if threshold is not None else []
        arguments += ["--assign", "one-to-one"] if one_to_one else []
        command(arguments)
        with out.open(encoding="utf-8", newline="") as file:
            rows = csv.reader(file)
            header = next(rows)
            if next(rows, None) is None:
                return _fet.empty_frame(header)
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
