"""Tests of the loggers with stubs of the trackers' packages."""

import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import fet


@pytest.fixture
def finished(digits: Path) -> fet.Run:
    """Return a run of two epochs."""
    return fet.run(digits)


class Recorder(ModuleType):
    """Module whose functions record their calls."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.calls: list[tuple[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def record(*given: Any, **named: Any) -> Any:
            self.calls.append((name, (given, named)))
            return nullcontext()

        return record

    def named(self, name: str) -> list[Any]:
        return [call for found, call in self.calls if found == name]


def test_mlflow_receives_settings_metrics_and_the_report(finished: fet.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = Recorder("mlflow")
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    fet.loggers.MLflow("digits", "file:tracking").log(finished)
    assert mlflow.named("set_experiment") == [(("digits",), {})]
    assert mlflow.named("start_run") == [((), {"run_name": "digits"})]
    given = mlflow.named("log_params")[0][0][0]
    assert (given["train.epochs"], given["method.kind"], given["seed"]) == (2, "fet-pool", 0)
    epochs = mlflow.named("log_metrics")
    assert [named.get("step") for _, named in epochs] == [1, 2, None]
    assert epochs[0][0][0]["train_loss"] == finished.report["epochs"][0]["train_loss"]
    assert list(epochs[2][0][0]) == ["best_validation_accuracy", "best_test_accuracy"]
    assert [Path(call[0][0]).name for call in mlflow.named("log_artifact")] == ["report.json", "report.html"]


def test_wandb_receives_settings_and_metrics(finished: fet.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[tuple[int, float]] = []
    ended: list[bool] = []
    summary: dict[str, float] = {}
    tracked = SimpleNamespace(
        log=lambda values, step: steps.append((step, values["train_loss"])), summary=summary, finish=lambda: ended.append(True)
    )
    given: dict[str, Any] = {}

    def init(**named: Any) -> Any:
        given.update(named)
        return tracked

    wandb = ModuleType("wandb")
    wandb.init = init  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    fet.loggers.WandB("fet", mode="offline").log(finished.folder)
    assert (given["project"], given["name"], given["mode"]) == ("fet", "digits", "offline")
    assert given["config"]["train.epochs"] == 2
    assert steps == [(epoch["epoch"], epoch["train_loss"]) for epoch in finished.report["epochs"]]
    assert (len(steps), ended) == (2, [True])
    assert summary["best_test_accuracy"] == finished.report["best"]["test"]


@pytest.mark.parametrize("package", ["torch.utils.tensorboard", "tensorboardX"])
def test_tensorboard_receives_scalars(
    finished: fet.Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, package: str
) -> None:
    for name in ("torch", "torch.utils", "torch.utils.tensorboard", "tensorboardX"):
        monkeypatch.setitem(sys.modules, name, None if package == "tensorboardX" else Recorder(name))
    writers = Recorder(package)
    scalars: list[tuple[str, float, int]] = []
    folders: list[str] = []
    closed: list[bool] = []
    compared: list[dict[str, float]] = []

    class SummaryWriter:
        def __init__(self, folder: str) -> None:
            folders.append(folder)

        def add_scalar(self, *given: Any) -> None:
            scalars.append(given)

        def add_hparams(self, given: dict[str, Any], found: dict[str, float]) -> None:
            compared.append(found)
            assert all(isinstance(value, (bool, int, float, str)) for value in given.values())

        def close(self) -> None:
            closed.append(True)

    writers.SummaryWriter = SummaryWriter
    monkeypatch.setitem(sys.modules, package, writers)
    fet.loggers.TensorBoard(tmp_path).log(finished)
    assert folders == [str(tmp_path / "digits-s0")]
    assert [step for name, _, step in scalars if name == "train_loss"] == [1, 2]
    assert [list(found) for found in compared] == [["best_validation_accuracy", "best_test_accuracy"]]
    assert closed == [True]


def test_a_logger_without_its_package_names_it(finished: fet.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ImportError, match="mlflow"):
        fet.loggers.MLflow().log(finished)
