"""Tests of plug-ins in Python."""

import copy
import importlib
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import fet
import linkers
from conftest import KEYS
from fet.settings import sets

Tables = tuple[pd.DataFrame, pd.DataFrame]


def figures(run: fet.Run) -> str:
    """Return a report without times and without the settings."""
    report = copy.deepcopy(run.report)
    for name in ("cost", "experiment"):
        del report[name]
    return json.dumps(report)


def within_a_minute(work: Any) -> Any:
    """Do work in a thread, and fail if it does not end: a deadlock."""
    results: list[Any] = []

    def collect() -> None:
        try:
            results.append(work())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    thread.join(60)
    assert results, "the work waits forever"
    if isinstance(results[0], Exception):
        raise results[0]
    return results[0]


def test_a_linker_in_pandas_gives_the_figures_of_nearest(digits: Path) -> None:
    expected = fet.run(digits)
    settings = fet.linker_settings(linkers.Nearest, 3)
    found = fet.run(digits, set={"linker": settings})
    assert figures(found) == figures(expected)
    recorded = found.report["experiment"]["linker"]
    assert recorded == settings
    identity = f"`linkers:Nearest`, from a file with the SHA-256 `{settings['source']}`"
    for name in ("model-card.md", "report.html"):
        assert identity in (found.folder / name).read_text(), name
        assert "Python code" not in (expected.folder / name).read_text()


def test_links_and_predictions_are_those_of_nearest(tables: Tables) -> None:
    farms, stations = tables
    one, other = fet.Table(farms, KEYS), fet.Table(stations, KEYS)
    expected = fet.link(one, other, "nearest", {"neighbours": 2})
    found = fet.link(one, other, fet.linker_settings(linkers.Nearest, 2))
    assert expected.to_pandas().equals(found.to_pandas())
    problem = fet.Problem(fet.Table(farms, KEYS, drop=["wet"]), [other], "amount")
    new = farms.drop(columns=["amount", "wet"])[:9]
    results = []
    for linker in (fet.linker_settings(linkers.Nearest, 2), {"kind": "nearest", "neighbours": 2}):
        run = fet.run(problem, set={"train.epochs": 1, "linker": linker})
        results.append(run.predict(new)["prediction"])
    assert results[0] == results[1]


def test_a_linker_works_inside_another(digits: Path) -> None:
    inner = fet.linker_settings(linkers.Nearest, 3)
    found = fet.run(digits, set={"train.epochs": 1, "linker": {"kind": "posterior", "inner": inner}})
    expected = {"kind": "posterior", "inner": {"kind": "nearest", "neighbours": 3}}
    assert figures(found) == figures(fet.run(digits, set={"train.epochs": 1, "linker": expected}))
    assert "linkers:Nearest" in (found.folder / "model-card.md").read_text()


def test_pad_repeats_the_records_of_a_small_party(tables: Tables) -> None:
    farms, stations = tables
    results = []
    for linker in (
        fet.linker_settings(linkers.Nearest, 5, pad=True),
        {"kind": "nearest", "neighbours": 5, "pad": True},
    ):
        problem = fet.Problem(fet.Table(farms, KEYS, drop=["wet"]), [fet.Table(stations[:3], KEYS)], "amount")
        results.append(figures(fet.run(problem, set={"train.epochs": 1, "linker": linker})))
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("one", "returned a ndarray; it must be the tuple"),
        ("none", "returned no similarities"),
        ("shape", "returned indices of the shape"),
        ("columns", "returned similarities of the shape"),
        ("type", "returned indices of the type float64; they must be integers"),
        ("range", "they must be 0 to"),
        ("negative", "they must be 0 to"),
        ("twice", "a record twice for query 0"),
        ("order", "out of order; the highest similarity must be first"),
        ("nan", "not finite"),
    ],
)
def test_refuses_invalid_links(digits: Path, fault: str, message: str) -> None:
    settings = fet.linker_settings(linkers.Faulty, 3, fault=fault)
    with pytest.raises(fet.FetError, match=message) as raised:
        fet.run(digits, set={"linker": settings})
    assert "linkers:Faulty" in str(raised.value)


@pytest.mark.parametrize("fault", ["exception", "input error"])
def test_an_exception_shows_its_place_to_the_operator_only(digits: Path, fault: str) -> None:
    settings = fet.linker_settings(linkers.Faulty, 3, fault=fault)
    with pytest.warns(fet.FetWarning, match="the key of a person"), pytest.raises(fet.FetError) as raised:
        fet.run(digits, set={"linker": settings})
    assert "the code of its plug-in failed" in str(raised.value)
    assert "the key of a person" not in str(raised.value)


def test_refuses_settings_of_other_code(digits: Path) -> None:
    good = fet.linker_settings(linkers.Nearest, 3)
    for change, message in [
        ({"source": "0" * 64}, "`linker.source` must be the SHA-256 of the file of linkers:Nearest"),
        ({"source": ""}, good["source"]),
        ({"plugin": "Nearest"}, "package.module:Class"),
        ({"plugin": "absent.module:Nearest"}, "No module named"),
        ({"plugin": "linkers:Absent"}, "has no such class Absent"),
        ({"neighbours": 0}, "neighbours"),
        ({"options": {"root": 3}}, "unexpected keyword argument 'root'"),
        ({"option": {}}, "options"),
    ]:
        with pytest.raises(fet.InputError, match=message):
            fet.run(digits, set={"linker": {**good, **change}})
    with pytest.raises(fet.InputError, match="put `@fet.linker` above"):
        fet.linker_settings(Path)

    with pytest.raises(fet.InputError, match="outside functions"):

        @fet.linker
        class Inside:
            pass


def test_refuses_a_model_of_a_changed_file(tmp_path: Path, digits: Path) -> None:
    module = tmp_path / "changing.py"
    module.write_text("import fet, linkers\n@fet.linker\nclass Near(linkers.Nearest): pass\n")
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, fet\nif sys.argv[1] == 'run':\n import changing\n"
        f" fet.run({str(digits)!r}, 'run', {{'train.epochs': 1, 'linker': fet.linker_settings(changing.Near, 3)}})\n"
        "else:\n import json\n settings = json.load(open('run/report.json'))['experiment']['linker']\n"
        f" fet.run({str(digits)!r}, 'again', {{'train.epochs': 1, 'linker': settings}})\n"
    )
    environment = fet.plugins.environment()

    def run(step: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(program), step]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)

    assert run("run").returncode == 0
    assert run("again").returncode == 0
    # The changed file is not even executed.
    module.write_text(module.read_text() + "print('changed')\n")
    told = run("again")
    assert told.returncode == 1 and "`linker.source` must be the SHA-256" in told.stderr
    assert "changed\n" not in told.stdout


def test_a_row_with_empty_keys_has_no_link() -> None:
    left = pd.DataFrame({"name": ["anna", "", "bert", None], "town": ["bonn", " ", "", None]})
    right = pd.DataFrame({"name": ["", "bert"], "town": ["", "bonn"]})
    one, other = fet.Table(left, ["name", "town"]), fet.Table(right, ["name", "town"])
    # Each text is as similar to an empty one as to another.
    pairs = fet.link(one, other, fet.linker_settings(linkers.Same, 1), threshold="none").to_pandas()
    assert pairs["primary_row"].tolist() == [0, 2]
    with pytest.raises(fet.InputError, match="must have `floor`"):
        fet.link(one, other, fet.linker_settings(linkers.NoFloor, 1))
    with pytest.raises(fet.InputError, match="as `fet.linker_settings` returns"):
        fet.link(one, other, linkers.Same)  # type: ignore[arg-type]


def test_names_the_reload_after_a_change_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "edited.py"
    module.write_text("import fet, linkers\n@fet.linker\nclass Near(linkers.Nearest): pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    edited = importlib.import_module("edited")
    old = edited.Near
    source = fet.linker_settings(old)["source"]
    module.write_text(module.read_text() + "# changed\n")
    with pytest.raises(fet.InputError, match="importlib.reload"):
        fet.linker_settings(old)
    importlib.reload(edited)
    with pytest.raises(fet.InputError, match="take the class from the module again"):
        fet.linker_settings(old)
    assert fet.linker_settings(edited.Near)["source"] != source
    with pytest.raises(fet.InputError, match="must be a class"):
        fet.linker_settings(edited.Near())


def test_refuses_a_class_of_a_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import fet, linkers\n@fet.linker\nclass Near(linkers.Nearest): pass\nfet.linker_settings(Near)\n")
    told = subprocess.run(
        [sys.executable, str(script)], env=fet.plugins.environment(), capture_output=True, text=True
    )
    assert "from the script or notebook to a module" in told.stderr


def test_a_study_compares_linkers_in_python(digits: Path) -> None:
    (change,) = sets({"linker": fet.linker_settings(linkers.Nearest, 3, power=4)})
    study = "\n[ablation]\nseeds = [0]\n"
    for name, changes in [("nearest", "[]"), ("power of four", json.dumps([change]))]:
        study += f'[[ablation.variants]]\nname = "{name}"\nset = {changes}\n'
    digits.write_text(digits.read_text() + study)
    answer = fet.study(digits, set={"train.epochs": 1})
    assert "power of four" in str(answer.data)
    reports = [json.loads(file.read_text()) for file in answer.folder.rglob("report.json")]
    kinds = [report["experiment"]["linker"]["kind"] for report in reports]
    assert sorted(kinds) == ["nearest", "python"]


def test_runs_with_python_code_and_messages_do_not_wait_forever(digits: Path) -> None:
    settings = {"train.epochs": 1, "linker": fet.linker_settings(linkers.Slow, 3), "data.parties": 4}
    found = within_a_minute(lambda: fet.run(digits, set=settings, verbose=True))
    assert found.report["epochs"]
    # Two runs at once, each with three parties that link.
    second = threading.Thread(target=lambda: fet.run(digits, set=settings), daemon=True)
    second.start()
    within_a_minute(lambda: fet.run(digits, set=settings))
    second.join(60)
    assert not second.is_alive()


def test_a_module_may_run_its_own_linker_while_it_is_imported(tmp_path: Path, digits: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import fet, linkers\n@fet.linker\nclass Near(linkers.Nearest): pass\n"
        f"fet.run({str(digits)!r}, None, {{'train.epochs': 1, 'linker': fet.linker_settings(Near, 3)}})\n"
    )
    command = [sys.executable, "-c", "import own"]
    told = subprocess.run(
        command, cwd=tmp_path, env=fet.plugins.environment(), capture_output=True, text=True, timeout=120
    )
    assert told.returncode == 0, told.stderr


def test_a_plugin_cannot_run_the_program(digits: Path) -> None:
    settings = {"linker": fet.linker_settings(linkers.Nested, 3)}
    with pytest.raises(fet.FetError, match="plug-in"):
        within_a_minute(lambda: fet.run(digits, set=settings))


def test_the_contract_accepts_sound_linkers() -> None:
    for linker in (linkers.Nearest, linkers.Fuzzy, linkers.Place):
        fet.testing.check_linker(linker)
    fet.testing.check_linker(linkers.Nearest, 3, power=4)


@pytest.mark.parametrize(
    ("linker", "law"), [(linkers.Random, "the same links"), (linkers.Together, "claims to be independent")]
)
def test_the_contract_names_a_broken_law(linker: type, law: str) -> None:
    with pytest.raises(AssertionError, match=law):
        fet.testing.check_linker(linker)
    with pytest.raises(AssertionError, match="record twice"):
        fet.testing.check_linker(linkers.Faulty, fault="twice")


@pytest.mark.parametrize(
    ("section", "needs", "check"),
    [
        ("## A linker in Python", "numpy", "check_linker(example.Manhattan, weight=2.0)"),
        ("## An encoder in Python", "torch", "check_encoder(example.Perceptron, width=8)"),
        ("## A method in Python", "torch", "check_method(example.Attention, width=8)"),
        ("## An aggregator in Python", "numpy", "check_aggregator(example.RootSum, power=1.0)"),
        ("## An attack in Python", "numpy", "check_attack(example.GradientLength)"),
    ],
)
def test_the_examples_of_the_guide_obey_the_laws(tmp_path: Path, section: str, needs: str, check: str) -> None:
    pytest.importorskip(needs)
    guide = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
    code = guide.split(section)[1].split("```python\n")[1].split("```")[0]
    assert len(code.splitlines()) <= 20
    (tmp_path / "example.py").write_text(code)
    command = [sys.executable, "-c", f"import fet, example; fet.testing.{check}"]
    environment = fet.plugins.environment()
    told = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
