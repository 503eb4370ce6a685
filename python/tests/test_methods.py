"""Tests of methods in Python: models at the primary."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import encoders
import fet
import methods
from conftest import KEYS, interrupt_after
from fet.settings import sets
from test_plugins import figures, within_a_minute

POOL = {"kind": "fet-pool", "width": 8}


def trained(digits: Path, method: Any, epochs: int = 2, **changes: Any) -> fet.Run:
    settings = {"train.epochs": epochs, "method": method, **changes}
    run: fet.Run = within_a_minute(lambda: fet.run(digits, set=settings))
    return run


def losses(run: fet.Run) -> list[float]:
    return [epoch["train_loss"] for epoch in run.report["epochs"]]


def test_a_method_in_numpy_learns_and_repeats(digits: Path) -> None:
    inner = {**POOL, "optimizer": {"kind": "adam", "learning_rate": 0.01}}
    settings = fet.method_settings(methods.Linear, inner, scale=0.5)
    first = trained(digits, settings, 10)
    # Ten classes of nearly equal size: the best constant has an accuracy of about 0.1.
    assert first.report["best"]["test"] > 0.8
    assert losses(first)[-1] < losses(first)[0]
    assert figures(trained(digits, settings, 10)) == figures(first)
    recorded = first.report["experiment"]["method"]
    assert (recorded["options"], recorded["inner"]["width"]) == ({"scale": 0.5}, 8)
    identity = f"`methods:Linear`, from a file with the SHA-256 `{settings['source']}`"
    for name in ("model-card.md", "report.html"):
        assert identity in (first.folder / name).read_text(), name


def test_the_secondaries_learn(digits: Path) -> None:
    """The model reaches a lower loss if the gradient of the memory trains the other parties."""
    inner = {**POOL, "optimizer": {"kind": "adam", "learning_rate": 0.01}}
    learned = trained(digits, fet.method_settings(methods.Linear, inner), 6)
    frozen = trained(digits, fet.method_settings(methods.Faulty, inner, fault="zero"), 6)
    assert losses(learned)[-1] < 0.9 * losses(frozen)[-1]


@pytest.mark.parametrize(
    "inner", [None, {"kind": "top1sim"}, {"kind": "solo"}, {"kind": "fet-alone"}, {"kind": "fet-pool", "others": False}]
)
def test_a_model_works_with_the_secondaries_of_other_methods(digits: Path, inner: Any) -> None:
    found = trained(digits, fet.method_settings(methods.Linear, inner), 2)
    assert losses(found)[1] < losses(found)[0]


def test_a_model_is_averaged_with_trees(digits: Path) -> None:
    inner = fet.method_settings(methods.Linear, POOL)
    trees = {"kind": "with-trees", "inner": inner, "growth": {"trees": 20}}
    found = trained(digits, trees, 2)
    assert found.report["experiment"]["method"]["inner"]["plugin"] == "methods:Linear"


def test_a_model_trains_with_secure_aggregation_and_noise(digits: Path) -> None:
    privacy = {"kind": "discrete-gaussian", "target_epsilon": 8, "learning": "frozen"}
    changes = {"aggregator": {"kind": "secure-average"}, "data.parties": 3, "data.bounds": [0.0, 16.0]}
    accounts = [
        trained(digits, method, 1, privacy=privacy, **changes).report["privacy"]
        for method in (fet.method_settings(methods.Linear, POOL), POOL)
    ]
    assert accounts[0] == accounts[1]


def test_a_finished_run_predicts(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    farms, stations = tables
    problem = fet.Problem(fet.Table(farms, KEYS, drop=["wet"]), [fet.Table(stations, KEYS)], "amount")
    run = fet.run(problem, set={"train.epochs": 2, "method": fet.method_settings(methods.Linear, POOL)})
    tested = run.predictions.to_pandas()
    tested = tested[tested["part"] == "test"][:9]
    rows = farms.drop(columns=["amount", "wet"]).iloc[tested["row"].to_numpy()]
    found = run.predict(rows)["prediction"]
    assert found == pytest.approx(tested["prediction"].tolist(), rel=1e-5)


def test_an_interrupted_run_resumes_with_the_same_results(digits: Path, tmp_path: Path) -> None:
    settings = {"train.epochs": 40, "method": fet.method_settings(methods.Linear, POOL)}
    expected = fet.run(digits, folder=tmp_path / "whole", set=settings)
    folder = tmp_path / "parts"
    pressed = interrupt_after((folder / "checkpoint.safetensors").exists)
    with pytest.raises(KeyboardInterrupt):
        fet.run(digits, folder=folder, set=settings)
    pressed.join()
    assert figures(fet.run(digits, folder=folder, set=settings)) == figures(expected)


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        ({"kind": "gbdt-solo"}, "`method.inner.kind` must be one of .*\"gbdt-solo\""),
        ({"kind": "fedsim"}, "`method.inner.kind` must be one of .*\"fedsim\""),
        ({"kind": "with-trees"}, "`method.inner.kind` must be one of .*\"with-trees\""),
        ({"kind": "fet", "pe_average_every": 1}, "`method.inner.pe_average_every` must be 0"),
        ({"kind": "fet", "hidden": 7}, "`method.inner`: `hidden` must be"),
    ],
)
def test_refuses_other_methods_and_their_settings(digits: Path, inner: Any, message: str) -> None:
    with pytest.raises(fet.InputError, match=message):
        trained(digits, fet.method_settings(methods.Linear, inner))


def test_trains_on_some_neighbours_only_if_the_memory_keeps_its_positions(digits: Path) -> None:
    trained(digits, fet.method_settings(methods.Linear, POOL), 1, **{"train.neighbours_per_step": 2})
    with pytest.raises(fet.InputError, match="neighbours_per_step"):
        trained(digits, fet.method_settings(methods.Linear), 1, **{"train.neighbours_per_step": 2})


def test_refuses_methods_with_faults(digits: Path) -> None:
    def fault(name: str) -> Any:
        return fet.method_settings(methods.Faulty, POOL, fault=name)

    for settings, message in [
        (fault("narrow"), "returned the shape .* it must be"),
        (fault("rows"), "mixes rows"),
        (fault("state"), "gives another output for the same rows"),
        (fault("copies"), "must return its arrays from `parameters\\(\\)`, not copies"),
        (fault("new"), "changes the names or shapes of its parameters"),
        (fault("unseeded"), "has other initial parameters for the same seed; .* `seed`"),
        (fault("missing"), "must return a dictionary with the gradient of each parameter, weights, bias"),
        (fault("alone"), "must return the tuple"),
        (fault("flat"), "gradient of the memory of the shape"),
        (fault("twice"), "is not the gradient of `forward` by its parameters"),
        (fault("memory"), "is not the gradient of `forward` by the memory"),
        (fet.method_settings(methods.Linear, POOL, depth=3), "unexpected keyword argument 'depth'"),
        ({**fet.method_settings(methods.Linear), "source": ""}, "`method.source` must be the SHA-256"),
        ({**fet.method_settings(methods.Linear), "plugin": "methods:Nothing"}, "`method.plugin` must name a class"),
        ({**fet.method_settings(methods.Linear), "plugin": "Linear"}, "`method.plugin` must be the module and"),
    ]:
        with pytest.raises(fet.InputError, match=message):
            trained(digits, settings)
    with pytest.raises(fet.FetError, match="no gradient today"):
        trained(digits, fault("late"))
    with pytest.raises(fet.InputError, match="put `@fet.method` above the class"):
        fet.method_settings(dict)
    function: Any = trained
    with pytest.raises(fet.InputError, match="must be above a class"):
        fet.method(function)


@pytest.mark.parametrize("inner", [None, POOL, {"kind": "solo"}])
def test_the_contract_accepts_a_sound_method(inner: Any) -> None:
    fet.testing.check_method(methods.Linear, inner, scale=0.7)


@pytest.mark.parametrize(
    ("fault", "law"),
    [("twice", "not the gradient of `forward` by its parameters"), ("zero", "memory"), ("rows", "mixes rows")],
)
def test_the_contract_names_a_broken_law(fault: str, law: str) -> None:
    with pytest.raises(AssertionError, match=law):
        fet.testing.check_method(methods.Faulty, POOL, fault=fault)


def test_a_module_of_pytorch_is_a_method(digits: Path) -> None:
    pytest.importorskip("torch")
    for inner in (None, POOL, {"kind": "solo"}):
        fet.testing.check_method(methods.Attention, inner, width=8)
    settings = fet.method_settings(methods.Attention, {"kind": "fet", "hidden": 16})
    first = trained(digits, settings, 6)
    assert losses(first)[-1] < losses(first)[0]
    assert figures(trained(digits, settings, 6)) == figures(first)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("list", "needs a gradient and is no parameter"),
        ("tensor", "needs a gradient and is no parameter"),
        ("created", "needs a gradient and is no parameter|gives another output"),
        ("added", "gives another output|changes the names"),
        ("detached", "returned an output without a gradient"),
        ("tuple", "returned a tuple from `forward`"),
    ],
)
def test_refuses_parameters_that_the_program_does_not_see(digits: Path, fault: str, message: str) -> None:
    pytest.importorskip("torch")
    with pytest.raises(fet.InputError, match=message):
        trained(digits, fet.method_settings(methods.Hidden, POOL, fault=fault))


def test_a_module_of_pytorch_runs_in_a_process_that_has_not_imported_it(tmp_path: Path) -> None:
    """PyTorch keeps the state of the thread that imports it, which must live as long as the process."""
    pytest.importorskip("torch")
    experiment = {
        "name": "digits", "data": {"kind": "split", "parties": 2, "source": {"kind": "digits"}}, "train": {"epochs": 1},
        "linker": {"kind": "nearest", "neighbours": 3}, "method": fet.method_settings(methods.Attention, POOL),
        "encoder": fet.encoder_settings(encoders.Perceptron),
    }
    program = f"import fet; fet.run({experiment!r}); print('ended')"
    environment = fet.plugins.environment()
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert (ended.returncode, ended.stdout.strip()) == (0, "ended"), ended.stderr


def test_a_study_compares_methods(digits: Path) -> None:
    change = json.dumps(sets({"method": fet.method_settings(methods.Linear, POOL)})[0])
    study = '\n[ablation]\nseeds = [0]\n[[ablation.variants]]\nname = "pool"\n'
    study += f'[[ablation.variants]]\nname = "linear in Python"\nset = [{change}]\n'
    digits.write_text(digits.read_text() + study)
    assert "linear in Python" in str(fet.study(digits, set={"train.epochs": 1}).data)
