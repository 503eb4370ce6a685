"""Tests of the commands as functions, and of the command on the path."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pandas as pd
import pytest

import fet
from conftest import KEYS, interrupt_after, places

Tables = tuple[pd.DataFrame, pd.DataFrame]


def test_the_command_is_on_the_path() -> None:
    script = shutil.which("fet", path=sysconfig.get_path("scripts"))
    assert script is not None
    for command in ([script], [sys.executable, "-m", "fet"]):
        shown = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        assert shown.stdout.startswith(f"fet {fet.__version__}")
        assert subprocess.run([*command, "absent"], capture_output=True).returncode == 2


def test_link_returns_pairs_of_rows(tables: Tables) -> None:
    farms, stations = tables
    other = stations.rename(columns={"lon": "x", "lat": "y"})
    pairs = fet.link(fet.Table(farms, KEYS), fet.Table(other, ["x", "y"]), set={"neighbours": 1})
    assert len(pairs) == len(farms)
    with pytest.raises(fet.InputError, match="absent"):
        fet.link(fet.Table(farms, KEYS), fet.Table(stations, KEYS), "absent")


def test_account_computes_a_loss_and_a_noise() -> None:
    loss = fet.account(noise=4.0, delta=1e-5, steps=10)
    assert 3 < loss["epsilon"]["exact"] < 5
    assert fet.account(epsilon=1.0, delta=1e-5)["noise"] > 1
    with pytest.raises(fet.InputError):
        fet.account(delta=1e-5)
    with pytest.raises(fet.InputError):
        fet.account(noise=-1.0, delta=1e-5)


def test_schema_has_the_settings() -> None:
    assert "train" in fet.schema()["properties"]


def test_a_study_runs_its_cells(digits: Path) -> None:
    study = '\n[ablation]\nseeds = [0]\n[[ablation.variants]]\nname = "pool"\n'
    study += '[[ablation.variants]]\nname = "alone"\nset = ["method.others=false"]\n'
    digits.write_text(digits.read_text() + study)
    answer = fet.study(digits, set={"train.epochs": 1})
    assert "pool" in str(answer.data)
    assert "<iframe" in answer._repr_html_()


def test_a_study_of_a_problem_has_the_variants_of_init() -> None:
    answer = fet.study(problem_of_places(), set={"train.epochs": 1}, seeds=[0], only=["linear, alone", "FeT-Pool"])
    assert "linear, alone" in str(answer.data)


def problem_of_places() -> fet.Problem:
    """Return a small problem on frames."""
    farms, stations = places(60, 2)
    return fet.Problem(fet.Table(farms.drop(columns="wet"), KEYS), [fet.Table(stations, KEYS)], "amount")


@pytest.mark.slow
def test_worth_answers_for_frames() -> None:
    answer = fet.worth(problem_of_places(), quick=True)
    assert answer["answer"]
    assert "<iframe" in answer._repr_html_()


def test_ctrl_c_stops_a_command(tmp_path: Path) -> None:
    waiting = interrupt_after(lambda: any(tmp_path.rglob("cells/*")))
    with pytest.raises(KeyboardInterrupt):
        fet.worth(problem_of_places(), tmp_path, quick=True)
    waiting.join()
    assert not list(tmp_path.rglob("worth.json"))
