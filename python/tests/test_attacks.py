"""Tests of attacks in Python."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import attacks
import encoders
import fet
import linkers
from conftest import KEYS
from fet.settings import sets
from test_plugins import within_a_minute


def attacked(experiment: Any, attack: Any, **changes: Any) -> list[dict[str, Any]]:
    settings = {"train.epochs": 2, **changes}
    records: list[dict[str, Any]] = within_a_minute(lambda: fet.attack(experiment, attack, settings))
    return records


@pytest.fixture
def regression(tables: Any) -> fet.Problem:
    """Return a problem with numeric columns alone."""
    farms, stations = tables
    primary = fet.Table(farms, KEYS, drop=["wet", "crop"])
    return fet.Problem(primary, [fet.Table(stations, KEYS, drop=["kind", "opened"])], "amount")


def test_an_attack_finds_what_gradient_norm_finds(digits: Path) -> None:
    settings = fet.attack_settings(attacks.GradientNorm)
    expected, found = attacked(digits, ["gradient-norm", settings])
    assert found["attack"] == "attacks:GradientNorm"
    assert [found[name] for name in ("attacker", "target", "party", "runs")] == ["secondary", "labels", 1, 1]
    assert [expected[name] for name in ("attacker", "target", "party", "runs")] == ["secondary", "labels", 1, 1]
    (one,), (other,) = found["measures"], expected["measures"]
    assert one["name"] == other["name"] and one["perfect"] == other["perfect"]
    assert one["value"] == pytest.approx(other["value"], abs=1e-9)
    assert one["value"] > one["baseline"] + 0.05
    assert attacked(digits, settings) == [found]


def test_a_primary_reconstructs_features_from_what_it_receives(digits: Path) -> None:
    found, built_in = attacked(digits, [fet.attack_settings(attacks.Reconstruction), "reconstruction"])
    measure, other = found["measures"][0], built_in["measures"][0]
    assert (found["attacker"], found["target"]) == (built_in["attacker"], built_in["target"]) == ("primary", "features")
    assert measure["name"] == other["name"]
    # Both decoders find more than the primary's own columns tell.
    for one in (measure, other):
        assert one["value"] < one["baseline"] - 0.05


def test_the_environment_answers_every_question(digits: Path) -> None:
    (record,) = attacked(digits, fet.attack_settings(attacks.Probing))
    found = {measure["name"]: measure["value"] for measure in record["measures"]}
    assert found.pop("rows") == 1797
    assert found.pop("shown") == 3
    assert found.pop("parties") == 2
    assert found.pop("own") == 5
    assert found == {name: 1.0 for name in found}
    assert record["runs"] == 6


def test_a_hook_changes_messages_only_if_it_writes_to_them(digits: Path) -> None:
    settings = [
        fet.attack_settings(attacks.Boost),
        fet.attack_settings(attacks.Boost, boost=30.0),
        fet.attack_settings(attacks.Boost, erase=True),
    ]
    passive, boosted, erased = (record["measures"][0]["value"] for record in attacked(digits, settings))
    run = fet.run(digits)
    assert passive == run.report["best"]["test"]
    assert boosted != passive
    assert erased < passive


def test_all_attacks_leave_out_plugins_without_a_class(regression: fet.Problem) -> None:
    names = [record["attack"] for record in fet.attack(regression, set={"train.epochs": 1})]
    assert "gradient-sign" in names and "python" not in names


def test_a_run_with_an_attack_names_its_code(digits: Path) -> None:
    settings = fet.attack_settings(attacks.GradientNorm)
    found = within_a_minute(lambda: fet.run(digits, set={"attack": settings}))
    assert found.report["experiment"]["attack"] == settings
    assert found.report["attack"]["attack"] == "attacks:GradientNorm"
    identity = f"`attacks:GradientNorm`, from a file with the SHA-256 `{settings['source']}`"
    for name in ("model-card.md", "report.html"):
        assert identity in (found.folder / name).read_text(), name
    without = fet.run(digits)
    assert without.report["epochs"] == found.report["epochs"]


def test_an_attack_on_a_run_with_other_python_code_does_not_wait_forever(digits: Path) -> None:
    changes = {
        "data.parties": 4,
        "linker": fet.linker_settings(linkers.Slow, 3),
        "encoder": fet.encoder_settings(encoders.Affine),
    }
    (record,) = attacked(digits, fet.attack_settings(attacks.GradientNorm, party=2), **changes)
    assert record["party"] == 2
    # In this process, too.
    settings = {"train.epochs": 1, "attack": fet.attack_settings(attacks.Keeping), **changes}
    assert within_a_minute(lambda: fet.run(digits, set=settings)).report["attack"]["runs"] == 1
    with pytest.raises(fet.plugins.Stopped, match="ended"):
        attacks.kept[0].train()
    attacks.kept.clear()


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("none", "returned None; it must be `fet.Measure`"),
        ("empty", r"returned \[\]; it must be `fet.Measure`"),
        ("tuple", "must be `fet.Measure`"),
        ("nan", "they must be finite"),
        ("exception", "the key of a person"),
        ("hook", "the key of a person"),
        ("hook shape", "a hook changed the shape of a representation"),
        ("observer", "the observer"),
        ("party", "party 9 must be 0 to 1"),
        ("shape", "labels of the shape"),
        ("rows", "rows must be integers from 0"),
        ("classes", "they must be 0 to 9"),
        ("no method", "`hook`: must have a method `gradient` or `representation`"),
        ("train in a hook", "must not train or read a run"),
        ("equal", "whose `baseline` is `perfect`"),
        ("same name", "with the same name"),
        ("nested", "a plug-in runs the program"),
    ],
)
def test_shows_the_fault_of_an_attack(digits: Path, fault: str, message: str) -> None:
    with pytest.raises(fet.FetError, match=message) as raised:
        attacked(digits, fet.attack_settings(attacks.Faulty, fault=fault))
    assert "attacks:Faulty" in str(raised.value)


@pytest.mark.parametrize("fault", ["missing", "again"])
def test_a_refusal_of_the_program_ends_the_attack(digits: Path, fault: str) -> None:
    with pytest.raises(fet.InputError, match="`party` must be 1 to 1"):
        attacked(digits, fet.attack_settings(attacks.Faulty, fault=fault))


def test_refuses_settings_of_other_code(digits: Path, regression: fet.Problem) -> None:
    good = fet.attack_settings(attacks.GradientNorm)
    for settings, message in [
        ({**good, "source": "0" * 64}, "`attack.source` must be the SHA-256 of the file of attacks:GradientNorm"),
        ({**good, "plugin": "attacks:Absent"}, "has no such class Absent"),
        ({**good, "plugin": "GradientNorm"}, "package.module:Class"),
        ({**good, "party": 7}, "`attack.party` must be 1 to 1"),
        ({**good, "options": {"root": 3}}, "unexpected keyword argument|takes no arguments"),
        (fet.attack_settings(attacks.Faulty, fault="attacker"), "must have `attacker` as one of primary, secondary"),
    ]:
        with pytest.raises(fet.InputError, match=message) as raised:
            attacked(digits, settings)
        assert len(str(raised.value).splitlines()) == 1
    with pytest.raises(fet.InputError, match="put `@fet.attack` above"):
        fet.attack_settings(Path)
    with pytest.raises(fet.InputError, match="must fit the experiment .this attack needs classes"):
        attacked(regression, good)


def test_refuses_a_changed_file(tmp_path: Path, digits: Path) -> None:
    module = tmp_path / "changing.py"
    module.write_text("import fet, attacks\n@fet.attack\nclass Own(attacks.GradientNorm): pass\n")
    settings = "import changing; print(json.dumps(fet.attack_settings(changing.Own)))"
    environment = {**fet.plugins.environment(), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(code: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "import fet, json\n" + code]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)

    told = json.loads(run(settings).stdout)
    attack = f"fet.attack({str(digits)!r}, {told!r}, {{'train.epochs': 1}})"
    assert run(attack).returncode == 0
    module.write_text(module.read_text() + "print('changed')\n")
    after = run(attack)
    assert after.returncode == 1 and "`attack.source` must be the SHA-256" in after.stderr
    assert "changed\n" not in after.stdout


def test_the_contract_accepts_sound_attacks() -> None:
    fet.testing.check_attack(attacks.GradientNorm)
    fet.testing.check_attack(attacks.Boost, is_passive=False, boost=3.0)


@pytest.mark.parametrize(
    ("attack", "law"),
    [(attacks.Careless, "the attack changes the run"), (attacks.Random, "does not repeat")],
)
def test_the_contract_names_a_broken_law(attack: type, law: str) -> None:
    with pytest.raises(AssertionError, match=law):
        fet.testing.check_attack(attack)


def test_a_study_compares_attacks(digits: Path) -> None:
    study = "\n[ablation]\nseeds = [0]\n"
    for name, attack in [("rust", {"kind": "gradient-norm"}), ("python", fet.attack_settings(attacks.GradientNorm))]:
        study += f'[[ablation.variants]]\nname = "{name}"\nset = [{json.dumps(sets({"attack": attack})[0])}]\n'
    digits.write_text(digits.read_text() + study)
    answer = fet.study(digits, set={"train.epochs": 1})
    reports = [json.loads(file.read_text())["attack"] for file in answer.folder.rglob("report.json")]
    values = {report["attack"]: report["measures"][0]["value"] for report in reports}
    assert values["gradient-norm"] == pytest.approx(values["attacks:GradientNorm"], abs=1e-9)
