"""Training of an experiment, and its result."""

import csv
import html
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fet import _fet
from fet.errors import InputError
from fet.figures import Figure, figures
from fet.notes import Note, note, receiver
from fet.settings import Settings, sets, toml
from fet.tables import Problem, Table, write_table

# Start of the name of a column with the probability of a class.
PROBABILITY = "probability of "

Experiment = str | os.PathLike[str] | Mapping[str, Any] | Problem


def page(path: Path) -> str:
    """Return a page of the program as HTML for a notebook."""
    if not path.is_file():
        return ""
    text = html.escape(path.read_text(encoding="utf-8"), quote=True)
    return f'<iframe srcdoc="{text}" style="width: 100%; height: 40em; border: 0"></iframe>'


class Workplace:
    """Folder of a run: the user's, or a temporary one that lives as long as this object."""

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        """Create the folder."""
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="fet-")
            folder = self._temporary.name
        self.path = Path(folder).resolve()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot be the folder of a run ({error})") from None

    @property
    def is_temporary(self) -> bool:
        """True if the folder goes with this object."""
        return self._temporary is not None


def warn_of_release(report: Mapping[str, Any], workplace: Workplace) -> None:
    """Warn of a release whose secrets go with a temporary folder."""
    if workplace.is_temporary and (report.get("release") or {}).get("randomness") == "own":
        note(
            "warning: this run made a release in a temporary folder. Each further run makes another release, whose ε adds to "
            "that of this one; `folder` keeps the release for later runs"
        )


class Run:
    """A finished run in its folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Open the run in a folder."""
        self.folder = Path(folder)
        self._workplace: Workplace | None = None
        report = self.folder / "report.json"
        if not report.is_file():
            raise InputError(f"{folder}: has no report.json; name the folder of a finished run")
        self.report: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))

    def __repr__(self) -> str:
        """Name the experiment and its score."""
        best = self.report["best"]
        name = self.report["experiment"]["name"]
        return f"<fet.Run {name}: test {self.report['metric']} {best['test']}, epoch {best['epoch']}>"

    def _repr_html_(self) -> str:
        """Show the page of the run in a notebook."""
        return page(self.folder / "report.html")

    @property
    def predictions(self) -> _fet.Frame:
        """Predictions for the validation and test rows."""
        path = self.folder / "predictions.csv"
        with path.open(encoding="utf-8", newline="") as file:
            columns = next(csv.reader(file), [])
        # Names of classes stay texts, also if they are numbers.
        is_class = any(name.startswith(PROBABILITY) for name in columns)
        texts = [name for name in ("label", "prediction", "likely") if is_class and name in columns]
        return _fet.read_frame(path, texts)

    def figures(self) -> dict[str, Figure]:
        """Pictures of the run by their names: those of `fet plot`, and `explanation` after `fet.explain`."""
        found = figures(self.folder)
        path = self.folder / "explanation.svg"
        return {**found, "explanation": Figure(path.read_text(encoding="utf-8"))} if path.is_file() else found

    def figure(self, name: str = "curves") -> Figure:
        """Return one picture of the run."""
        found = self.figures()
        if name not in found:
            raise InputError(f"{name}: is no picture of this run; its pictures are {', '.join(found)}")
        return found[name]

    def predict(self, rows: object) -> _fet.Frame:
        """Predict new rows of the primary: a frame, or the path of a table."""
        return predict(self.folder, rows, note)


def open_run(source: Any) -> Run:
    """Return the run of a `Run`, of a fitted estimator or of a folder."""
    if isinstance(source, Run):
        return source
    folder = getattr(source, "folder_", source)
    if not isinstance(folder, (str, os.PathLike)):
        raise InputError(f"must be a run, a fitted estimator or the folder of a run; not a {type(source).__name__}")
    return Run(folder)


def predict(folder: Path, rows: object, notes: Note) -> _fet.Frame:
    """Predict new rows with the run in a folder."""
    with tempfile.TemporaryDirectory(prefix="fet-") as scratch:
        place = Path(scratch)
        table = rows if isinstance(rows, Table) else Table(rows)
        path = table.file(place, "rows") if table.is_file else write_table(table.frame, place, "rows")
        data = folder if (folder / "tables").is_dir() else None
        return _fet.predict(folder, path, place / "predictions.arrow", data, notes)


def run(
    experiment: Experiment,
    folder: str | os.PathLike[str] | None = None,
    set: Mapping[str, Any] | None = None,
    *,
    verbose: bool = False,
    progress: bool = False,
) -> Run:
    """Train an experiment, as `fet run` does: the path of its file, its settings, or a problem.

    Without `folder` the run is in a temporary folder, which lives as long as the result. With it, the same call
    resumes an interrupted run. `set` changes settings by their path, as `{"train.epochs": 5}`. Paths in a dictionary
    of settings start in the working folder. `progress` shows a bar of the package tqdm.
    """
    workplace = Workplace(folder)
    data: Path | None = None
    if isinstance(experiment, (str, os.PathLike)):
        file = Path(experiment)
    else:
        if isinstance(experiment, Problem):
            settings, data = experiment.settings(workplace.path), workplace.path
        else:
            settings, data = dict(experiment), Path.cwd()
        file = write_experiment(settings, workplace.path)
    place = (data, workplace.is_temporary)
    with receiver(verbose, progress) as notes:
        _fet.run(file, workplace.path, sets(set), place, notes)
    finished = Run(workplace.path)
    finished._workplace = workplace
    warn_of_release(finished.report, workplace)
    return finished


def write_experiment(settings: Settings, folder: Path) -> Path:
    """Write the settings of an experiment into a folder."""
    file = folder / "experiment.toml"
    file.write_text(toml(settings), encoding="utf-8")
    return file
