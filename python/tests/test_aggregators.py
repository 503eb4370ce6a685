"""Tests of aggregators in Python."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import aggregators
import fet
from fet.settings import sets
from test_plugins import figures, within_a_minute


def trained(digits: Path, aggregator: Any, epochs: int = 2, **changes: Any) -> fet.Run:
    settings = {"train.epochs": epochs, "data.parties": 4, "aggregator": aggregator, **changes}
    run: fet.Run = within_a_minute(lambda: fet.run(digits, set=settings))
    return run


def losses(run: fet.Run) -> list[float]:
    return [epoch["train_loss"] for epoch in run.report["epochs"]]


def test_a_mean_gives_exactly_the_figures_of_average(digits: Path) -> None:
    settings = fet.aggregator_settings(aggregators.Mean)
    found = trained(digits, settings, 4)
    assert losses(found)[-1] < losses(found)[0]
    assert figures(found) == figures(trained(digits, {"kind": "average"}, 4))
    assert found.report["experiment"]["aggregator"] == settings
    identity = f"`aggregators:Mean`, from a file with the SHA-256 `{settings['source']}`"
    for name in ("model-card.md", "report.html"):
        assert identity in (found.folder / name).read_text(), name


def test_a_finished_run_with_a_mean_predicts_as_average(tables: Any) -> None:
    farms, stations = tables
    keys = ["lon", "lat"]
    others = [fet.Table(stations[half::2], keys, name=f"half {half}") for half in (0, 1)]
    problem = fet.Problem(fet.Table(farms, keys, drop=["wet"]), others, "amount")
    new = farms.drop(columns=["amount", "wet"])[:9]
    results = []
    for aggregator in (fet.aggregator_settings(aggregators.Mean), {"kind": "average"}):
        run = fet.run(problem, set={"train.epochs": 1, "aggregator": aggregator})
        results.append(run.predict(new)["prediction"])
    assert results[0] == results[1]


def test_a_sum_gives_exactly_the_figures_of_secure_average(digits: Path) -> None:
    settings = fet.aggregator_settings(aggregators.SecureMean, secure={"bits": 30, "degree": 2})
    found = trained(digits, settings)
    expected = trained(digits, {"kind": "secure-average", "bits": 30, "degree": 2})
    assert figures(found) == figures(expected)
    recorded = found.report["experiment"]["aggregator"]
    assert recorded["secure"] == {"bits": 30, "range": 64.0, "degree": 2}


def test_a_sum_has_the_privacy_account_of_secure_average(digits: Path) -> None:
    privacy = {"kind": "discrete-gaussian", "target_epsilon": 8, "learning": "frozen"}
    summed = fet.aggregator_settings(aggregators.SecureMean)
    open_parts = fet.aggregator_settings(aggregators.Mean)
    accounts = {}
    for name, aggregator in [
        ("python", summed),
        ("rust", {"kind": "secure-average"}),
        ("python parts", open_parts),
        ("rust parts", {"kind": "average"}),
    ]:
        run = trained(digits, aggregator, 1, privacy=privacy, **{"data.bounds": [0.0, 16.0]})
        accounts[name] = run.report["privacy"]
    assert accounts["python"] == accounts["rust"]
    assert accounts["python parts"] == accounts["rust parts"]
    assert accounts["python"] != accounts["python parts"]


def test_refuses_similarities_with_a_privacy_mechanism(digits: Path) -> None:
    near = fet.aggregator_settings(aggregators.Near)
    method = {"kind": "fet", "hidden": 16, "heads": 2, "positional_encoding": False}
    with pytest.raises(fet.InputError, match="reveal similarities without noise"):
        trained(digits, near, privacy={"kind": "gaussian"}, method=method)


def test_similarities_give_the_figures_of_similarity_weighted(digits: Path) -> None:
    method = {"kind": "fet", "hidden": 16, "heads": 2, "positional_encoding": False}
    found = trained(digits, fet.aggregator_settings(aggregators.Near), method=method)
    expected = trained(digits, {"kind": "similarity-weighted"}, method=method)
    assert losses(found) == pytest.approx(losses(expected), rel=1e-6)


def test_a_wide_memory_trains(digits: Path) -> None:
    method = {"kind": "fet", "hidden": 16, "heads": 2, "positional_encoding": False}
    found = trained(digits, fet.aggregator_settings(aggregators.Wide), 4, method=method)
    assert losses(found)[-1] < losses(found)[0]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("median", "is not linear in the representations"),
        ("gradient", "has a `backward` that is not the gradient of `forward`"),
        ("rows", "mixes rows"),
        ("random", "gives another memory for the same representations"),
        ("count", "returned 2 gradients for 3 representations"),
        ("shape", r"returned a memory of the shape \(3, 4, 4\); it must be \(3, 4, 5\)"),
        ("width", "has the width 0; it must be an integer above 0"),
        ("sees", "must have `sees` as one of parts, sum"),
        ("method", "must have a method `forward`"),
    ],
)
def test_refuses_aggregators_with_faults(digits: Path, fault: str, message: str) -> None:
    with pytest.raises(fet.InputError, match=message) as raised:
        trained(digits, fet.aggregator_settings(aggregators.Faulty, fault=fault))
    assert "aggregators:Faulty" in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


def test_refuses_a_gradient_that_is_wrong_if_a_party_is_missing(digits: Path) -> None:
    with pytest.raises(fet.InputError, match="is not the gradient of `forward`"):
        trained(digits, fet.aggregator_settings(aggregators.Few))


def test_a_wrong_gradient_of_large_batches_ends_the_run(digits: Path) -> None:
    with pytest.raises(fet.FetError, match="is not the gradient of `forward` for the records of this run"):
        trained(digits, fet.aggregator_settings(aggregators.Faulty, fault="large"))


def test_a_failure_in_training_shows_its_place(digits: Path) -> None:
    with pytest.raises(fet.FetError, match="no memory today") as raised:
        trained(digits, fet.aggregator_settings(aggregators.Faulty, fault="late"))
    assert "aggregators.py" in str(raised.value)


def test_refuses_settings_of_other_code_or_another_role(digits: Path) -> None:
    parts, summed = fet.aggregator_settings(aggregators.Mean), fet.aggregator_settings(aggregators.SecureMean)
    without = {name: value for name, value in summed.items() if name != "secure"}
    for settings, message in [
        ({**parts, "source": "0" * 64}, "`aggregator.source` must be the SHA-256 of the file of aggregators:Mean"),
        ({**parts, "plugin": "Mean"}, "package.module:Class"),
        ({**parts, "plugin": "aggregators:Absent"}, "has no such class Absent"),
        ({**parts, "options": {"root": 3}}, "unexpected keyword argument|takes no arguments"),
        ({**parts, "secure": {}}, "`aggregator.secure` must be missing: aggregators:Mean sees each representation"),
        (without, "`aggregator.secure` must be a table, .* aggregators:SecureMean sees only the sum"),
        ({**summed, "secure": {"bits": 40}}, "`aggregator.secure.bits` .*32"),
        (fet.aggregator_settings(aggregators.RevealingSum), "similarities are not summed"),
    ]:
        with pytest.raises(fet.InputError, match=message) as raised:
            trained(digits, settings)
        assert len(str(raised.value).splitlines()) == 1
    with pytest.raises(fet.InputError, match="put `@fet.aggregator` above"):
        fet.aggregator_settings(Path)


def test_refuses_an_aggregator_for_methods_that_need_separate_parts(digits: Path) -> None:
    with pytest.raises(fet.InputError, match="aggregator"):
        trained(digits, fet.aggregator_settings(aggregators.Mean), method={"kind": "fedsim"})


def test_a_party_refuses_an_aggregator_outside_its_policy(digits: Path) -> None:
    with pytest.raises(fet.FetError, match=re.escape("policy.aggregators")):
        trained(digits, fet.aggregator_settings(aggregators.Mean), policy={"aggregators": ["secure-average"]})


def test_the_contract_accepts_sound_aggregators() -> None:
    for one in (aggregators.Mean, aggregators.Near, aggregators.Wide, aggregators.SecureMean):
        fet.testing.check_aggregator(one)


@pytest.mark.parametrize(
    ("aggregator", "law"), [(aggregators.Ordered, "order of parties"), (aggregators.Bent, "not linear")]
)
def test_the_contract_names_a_broken_law(aggregator: type, law: str) -> None:
    with pytest.raises(AssertionError, match=law):
        fet.testing.check_aggregator(aggregator)


def test_refuses_a_memory_that_differs_from_call_to_call() -> None:
    with pytest.raises(fet.InputError, match="another memory for the same representations"):
        fet.testing.check_aggregator(aggregators.Drifting)


def test_a_module_of_pytorch_is_an_aggregator(digits: Path) -> None:
    pytest.importorskip("torch")
    for one in (aggregators.RootSum, aggregators.TorchNear):
        fet.testing.check_aggregator(one)
    mean = trained(digits, fet.aggregator_settings(aggregators.RootSum, power=1.0))
    assert figures(mean) == figures(trained(digits, {"kind": "average"}))
    with pytest.raises(fet.InputError, match="must have no parameters"):
        trained(digits, fet.aggregator_settings(aggregators.Trained))


def test_a_slow_aggregator_in_several_runs_does_not_wait_forever(digits: Path) -> None:
    settings = fet.aggregator_settings(aggregators.Slow)
    found = trained(digits, settings, 1, encoder={"kind": "mlp"})
    assert found.report["epochs"]


def test_a_study_compares_aggregators(digits: Path) -> None:
    change = json.dumps(sets({"aggregator": fet.aggregator_settings(aggregators.Mean)})[0])
    study = '\n[ablation]\nseeds = [0]\n[[ablation.variants]]\nname = "average"\n'
    study += f'[[ablation.variants]]\nname = "mean in Python"\nset = [{change}]\n'
    digits.write_text(digits.read_text() + study)
    assert "mean in Python" in str(fet.study(digits, set={"train.epochs": 1}).data)


def test_refuses_a_model_of_a_changed_file(tmp_path: Path, digits: Path) -> None:
    module = tmp_path / "changing.py"
    module.write_text("import fet, aggregators\n@fet.aggregator\nclass Own(aggregators.Mean): pass\n")
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, fet\nif sys.argv[1] == 'run':\n import changing\n"
        f" fet.run({str(digits)!r}, 'run', {{'train.epochs': 1, 'aggregator': fet.aggregator_settings(changing.Own)}})\n"
        "else:\n import json\n settings = json.load(open('run/report.json'))['experiment']['aggregator']\n"
        f" fet.run({str(digits)!r}, 'again', {{'train.epochs': 1, 'aggregator': settings}})\n"
    )

    def run(step: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(program), step]
        environment = fet.plugins.environment()
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)

    assert run("run").returncode == 0
    assert run("again").returncode == 0
    module.write_text(module.read_text() + "print('changed')\n")
    told = run("again")
    assert told.returncode == 1 and "`aggregator.source` must be the SHA-256" in told.stderr
    assert "changed\n" not in told.stdout
