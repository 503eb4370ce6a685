"""Tests of attacks, audits, explanations, private intersections, studies in code, figures and progress bars."""

import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import fet
from conftest import KEYS, places

QUICK = {"train.epochs": 2, "method.kind": "fet-pool"}


def numbers(rows: int = 120) -> fet.Problem:
    """Return a problem on numbers alone."""
    farms, stations = places(rows, 1)
    primary = fet.Table(farms.drop(columns=["wet", "crop"]), KEYS, name="farms")
    return fet.Problem(primary, [fet.Table(stations, KEYS, name="stations", drop=["kind", "opened"])], "amount")


@pytest.fixture(scope="module")
def finished() -> fet.Run:
    """Return a finished run."""
    return fet.run(numbers(), set=QUICK)


def test_an_attack_returns_a_record_with_its_measures() -> None:
    found = fet.attack(numbers(), "linkage", {"train.epochs": 1})
    assert [record["attack"] for record in found] == ["linkage"]
    assert found[0]["measures"][0]["name"].startswith("AUC")
    with pytest.raises(fet.InputError, match="absent"):
        fet.attack(numbers(), "absent")


def test_an_audit_returns_its_bounds() -> None:
    answer = fet.audit(numbers(60), {"train.epochs": 1}, canaries=4, runs=8)
    assert not answer.refuted
    assert (answer["runs"], answer["canaries"]) == (8, 4)
    with pytest.raises(fet.InputError, match="runs"):
        fet.audit(numbers(60), canaries=4, runs=2)


def test_the_table_of_an_audit_has_its_columns() -> None:
    answer = fet.commands.Audit("title\n| mechanism | ε |\n|---|---|\n| none | 3 |\n", True)
    assert answer.table == [{"mechanism": "none", "ε": "3"}]


def test_an_explanation_has_columns_parties_and_a_picture(finished: fet.Run) -> None:
    answer = fet.explain(finished, repeats=1)
    assert {record["column"] for record in answer["columns"]} == {"own", "rain"}
    assert answer["parties"]["names"] == ["stations"]
    assert answer._repr_svg_().startswith("<svg")
    assert set(finished.figures()) >= {"curves", "explanation"}


def test_figures_are_pictures_of_the_run(finished: fet.Run, tmp_path: Path) -> None:
    picture = finished.figure()
    assert "<svg" in picture._repr_svg_()
    picture.save(tmp_path / "curves.svg")
    assert (tmp_path / "curves.svg").read_text() == picture.svg
    with pytest.raises(fet.InputError, match="curves"):
        finished.figure("absent")


def test_plots_are_axes_of_matplotlib(finished: fet.Run, tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = fet.plot_curve(finished)
    assert axes.get_xlabel() == "epoch"
    axes.figure.savefig(tmp_path / "curve.pdf")
    assert (tmp_path / "curve.pdf").read_bytes().startswith(b"%PDF")
    bars = fet.plot_reliance(fet.explain(finished, repeats=1))
    assert [label.get_text() for label in bars.get_yticklabels()] == ["stations"]


def test_a_private_intersection_needs_three_steps(tmp_path: Path) -> None:
    ours = fet.Table(pd.DataFrame({"name": ["anna", "bert", "cleo"]}), "name")
    theirs = fet.Table(pd.DataFrame({"person": ["cleo", "dora", "anna"], "age": [3, 4, 5]}), "person")
    request, secret, answer = (tmp_path / name for name in ("request.psi", "a.secret", "answer.psi"))
    fet.psi.ask(ours, request, secret)
    fet.psi.answer(request, theirs, answer, give="links")
    pairs = fet.psi.open(answer, secret)
    assert isinstance(pairs, fet.Frame)
    assert sorted(zip(pairs["primary_row"], pairs["secondary_row"], strict=True)) == [(0, 2), (2, 0)]
    with pytest.raises(fet.FetError):
        fet.psi.open(answer, secret)
    other, hidden = tmp_path / "other.psi", tmp_path / "b.secret"
    fet.psi.ask(ours, other, hidden, want="cardinality")
    with pytest.raises(fet.InputError):
        fet.psi.answer(other, theirs, tmp_path / "refused.psi", give="links")
    fet.psi.answer(other, theirs, tmp_path / "count.psi", give="cardinality")
    assert fet.psi.open(tmp_path / "count.psi", hidden) == 2


def test_a_study_in_code_has_its_variants_and_seeds() -> None:
    variants: dict[str, dict[str, Any]] = {"pool": {}, "alone": {"method": {"kind": "solo"}}}
    study = fet.Study(numbers(60), variants, seeds=[0, 1])
    assert study._repr_html_() == ""
    with pytest.raises(fet.InputError, match="run"):
        study.to_pandas()
    answer = study.run(QUICK)
    frame = study.to_pandas()
    assert set(frame["variant"]) == {"pool", "alone"}
    # A network on the primary's own columns has other parameters.
    assert len(set(frame.groupby("variant")["parameters"].first())) == 2
    assert "alone" in str(answer.data)
    assert "<iframe" in study._repr_html_()
    with pytest.raises(fet.InputError, match="at least one variant"):
        fet.Study(numbers(60), {})


def test_settings_in_a_dictionary_start_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    farms, stations = places(60, 1)
    monkeypatch.chdir(tmp_path)
    farms.drop(columns="wet").to_csv("farms.csv", index=False)
    stations.to_csv("stations.csv", index=False)
    data = {
        "kind": "linked",
        "task": "regression",
        "label": "amount",
        "primary": {"name": "farms", "file": "farms.csv", "keys": KEYS},
        "secondaries": [{"name": "stations", "file": "stations.csv", "keys": KEYS}],
    }
    settings = {"data": data, "linker": {"kind": "nearest", "neighbours": 3}, "train": {"epochs": 1}}
    answer = fet.Study(settings, {"pool": {"method.kind": "fet-pool"}}, [0], folder=tmp_path / "out").run()
    assert len(answer.results) > 0


def test_a_bar_shows_the_epochs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    bars = pytest.importorskip("tqdm.auto")
    fet.run(numbers(60), set=QUICK, progress=True)
    shown = capsys.readouterr().err
    assert "2/2" in shown
    assert "loss" in shown
    assert bars is not None
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match="tqdm"):
        fet.run(numbers(60), set=QUICK, progress=True)


def test_a_bar_counts_the_epochs_of_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bar:
        total, n, closed, text = None, 0, False, ""

        def __init__(self, **_: Any) -> None:
            bars.append(self)

        def update(self, steps: int) -> None:
            self.n += steps

        def set_postfix_str(self, text: str, refresh: bool) -> None:
            self.text = text

        def close(self) -> None:
            self.closed = True

    bars: list[Bar] = []
    module = type(sys)("tqdm.auto")
    module.tqdm = Bar  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    model = fet.FeTPoolRegressor(KEYS, numbers().secondaries, epochs=2, progress=True)
    farms = places(120, 1)[0]
    model.fit(farms.drop(columns=["amount", "wet"]), farms["amount"])
    assert [(bar.n, bar.total, bar.closed) for bar in bars] == [(2, 2, True)]
    assert bars[0].text.startswith("loss")
