"""Figures: the SVG pictures of the program, and plots with matplotlib."""

import os
import tempfile
from pathlib import Path
from typing import Any

from fet.errors import InputError


class Figure:
    """An SVG picture. A notebook shows it."""

    def __init__(self, svg: str) -> None:
        """Keep the text of the picture."""
        self.svg = svg

    def _repr_svg_(self) -> str:
        """Show the picture in a notebook."""
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file."""
        Path(path).write_text(self.svg, encoding="utf-8")


def figures(*runs: str | os.PathLike[str]) -> dict[str, Figure]:
    """Return the pictures that `fet plot` draws of the runs in these folders, by their names."""
    from fet.commands import command

    with tempfile.TemporaryDirectory(prefix="fet-") as scratch:
        command(["plot", *(str(run) for run in runs), "--out", scratch])
        pictures = sorted(Path(scratch).glob("*.svg"))
        return {picture.stem: Figure(picture.read_text(encoding="utf-8")) for picture in pictures}


def _axes(axes: Any) -> Any:
    if axes is not None:
        return axes
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(f"plots need matplotlib ({error}); `Run.figure` needs no other package") from error
    return pyplot.subplots()[1]


def plot_curve(run: Any, axes: Any = None) -> Any:
    """Plot the learning curve of a run, or of a fitted estimator, with matplotlib, and return the axes."""
    from fet.runs import open_run

    report = open_run(run).report
    axes = _axes(axes)
    epochs = [epoch["epoch"] for epoch in report["epochs"]]
    for part in ("validation", "test"):
        axes.plot(epochs, [epoch.get(part) for epoch in report["epochs"]], label=part)
    axes.axvline(report["best"]["epoch"], color="gray", linestyle=":", label="best epoch")
    axes.set_xlabel("epoch")
    axes.set_ylabel(report["metric"])
    axes.legend()
    return axes


def plot_reliance(explanation: Any, axes: Any = None) -> Any:
    """Plot the reliance on each party (Shapley value) of an answer of `fet.explain`, and return the axes."""
    parties = explanation.data["parties"]
    if not parties:
        raise InputError("the explanation has no reliance on a party: the method reads no party, or its raw columns")
    axes = _axes(axes)
    axes.barh(parties["names"], parties["shapley"]["values"])
    axes.set_xlabel(f"loss in {explanation.data['metric']} without the party (Shapley value)")
    return axes
