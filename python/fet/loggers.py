"""Loggers for experiment trackers: each has `log(run)`, which copies a finished run into the tracker.

The package of a tracker is imported at the first use of its logger.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from fet.runs import Run, open_run

_TEXT_LIMIT = 500


def flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Return each setting with its dotted path."""
    for name, value in settings.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from flat(value, f"{path}.")
        elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
            for at, item in enumerate(value):
                yield from flat(item, f"{path}.{at}.") if isinstance(item, Mapping) else [(f"{path}.{at}", item)]
        elif value is not None:
            yield path, value


def parameters(run: Run) -> dict[str, Any]:
    """Return the settings and the seed of a run by their paths; lists are texts of a limited length."""
    given = {"seed": run.report["seed"], **dict(flat(run.report["experiment"]))}
    plain = (bool, int, float, str)
    return {path: value if isinstance(value, plain) else str(value)[:_TEXT_LIMIT] for path, value in given.items()}


def metrics(run: Run) -> Iterator[tuple[int, dict[str, float]]]:
    """Return the metrics of each epoch with its number."""
    metric = run.report["metric"]
    names = {"train_loss": "train_loss", "validation": f"validation_{metric}", "test": f"test_{metric}"}
    for epoch in run.report["epochs"]:
        yield epoch["epoch"], {name: epoch[field] for field, name in names.items() if epoch.get(field) is not None}


def best(run: Run) -> dict[str, float]:
    """Return the metrics of the best epoch."""
    metric, chosen = run.report["metric"], run.report["best"]
    return {f"best_{part}_{metric}": chosen[part] for part in ("validation", "test") if chosen.get(part) is not None}


def _name(run: Run) -> str:
    return str(run.report["experiment"]["name"])


class MLflow:
    """Logger for MLflow: a run with the settings, the metrics of each epoch, and the report as an artifact."""

    def __init__(self, experiment: str | None = None, tracking_uri: str | None = None) -> None:
        """Store the names; without them MLflow uses its own."""
        self.experiment = experiment
        self.tracking_uri = tracking_uri

    def log(self, run: Run | Any) -> None:
        """Copy a run, or the run of a fitted estimator, into MLflow."""
        mlflow = import_module("mlflow")
        run = open_run(run)
        if self.tracking_uri is not None:
            mlflow.set_tracking_uri(self.tracking_uri)
        if self.experiment is not None:
            mlflow.set_experiment(self.experiment)
        with mlflow.start_run(run_name=_name(run)):
            mlflow.log_params(parameters(run))
            for epoch, values in metrics(run):
                mlflow.log_metrics(values, step=epoch)
            mlflow.log_metrics(best(run))
            for file in ("report.json", "report.html"):
                if (run.folder / file).is_file():
                    mlflow.log_artifact(str(run.folder / file))


class WandB:
    """Logger for Weights & Biases: a run with the settings, the metrics of each epoch, and a summary."""

    def __init__(self, project: str | None = None, **options: Any) -> None:
        """Store the project and other arguments of `wandb.init`."""
        self.project = project
        self.options = options

    def log(self, run: Run | Any) -> None:
        """Copy a run, or the run of a fitted estimator, into Weights & Biases."""
        wandb = import_module("wandb")
        run = open_run(run)
        given = {"name": _name(run), **self.options}
        tracked = wandb.init(project=self.project, config=parameters(run), **given)
        try:
            for epoch, values in metrics(run):
                tracked.log(values, step=epoch)
            tracked.summary.update(best(run))
        finally:
            tracked.finish()


class TensorBoard:
    """Logger for TensorBoard, by the writer of PyTorch or of tensorboardX."""

    def __init__(self, folder: str | Path = "runs") -> None:
        """Store the folder of the event files; each run has its own folder inside it."""
        self.folder = Path(folder)

    def log(self, run: Run | Any) -> None:
        """Copy a run, or the run of a fitted estimator, into event files."""
        try:
            writers = import_module("torch.utils.tensorboard")
        except ImportError:
            writers = import_module("tensorboardX")
        run = open_run(run)
        writer = writers.SummaryWriter(str(self.folder / f"{_name(run)}-s{run.report['seed']}"))
        try:
            for epoch, values in metrics(run):
                for name, value in values.items():
                    writer.add_scalar(name, value, epoch)
            given = {path: value for path, value in parameters(run).items() if value is not None}
            writer.add_hparams(given, best(run))
        finally:
            writer.close()
