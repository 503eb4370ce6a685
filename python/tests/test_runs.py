"""Tests of runs: experiments in files, dictionaries and problems; tables of four libraries; interruption."""

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fet
from conftest import KEYS, interrupt_after

Tables = tuple[pd.DataFrame, pd.DataFrame]


def test_a_file_trains_and_predicts_in_a_temporary_folder(digits: Path) -> None:
    result = fet.run(digits)
    assert result.report["seed"] == 0
    assert len(result.report["epochs"]) == 2
    assert result.predictions.columns[:4] == ["row", "part", "label", "prediction"]
    assert isinstance(result.predictions["label"][0], str)
    assert "<iframe" in result._repr_html_()
    folder = result.folder
    del result
    assert not folder.exists()


def test_settings_in_a_dictionary_give_the_report_of_the_file(digits: Path) -> None:
    settings = {
        "name": "digits",
        "data": {
            "kind": "split",
            "parties": 2,
            "key_noise": 0.05,
            "partition_seed": 0,
            "source": {"kind": "digits"},
        },
        "linker": {"kind": "nearest", "neighbours": 3},
        "method": {"kind": "fet-pool", "hidden": [16]},
        "encoder": {"kind": "mlp"},
        "train": {"epochs": 7},
    }
    assert stable(fet.run(settings, set={"train.epochs": 2})) == stable(fet.run(digits))


def stable(run: fet.Run) -> str:
    """Return a report without times, and without the names and checksums of the data files."""
    report = copy.deepcopy(run.report)
    del report["cost"], report["data"]["files"]
    data = report["experiment"]["data"]
    for table in [data.get("primary", {}), *data.get("secondaries", [])]:
        table.pop("file", None)
    return json.dumps(report)


def test_frames_of_every_library_give_the_report_of_the_csv_file(tables: Tables, tmp_path: Path) -> None:
    primary, stations = (frame.drop(columns="wet", errors="ignore") for frame in tables)
    primary.to_csv(tmp_path / "primary.csv", index=False)
    stations.to_csv(tmp_path / "stations.csv", index=False)
    primary.to_parquet(tmp_path / "primary.parquet")
    base = fet.Problem(
        fet.Table(tmp_path / "primary.csv", KEYS, name="farms"),
        [fet.Table(tmp_path / "stations.csv", KEYS, name="stations")],
        "amount",
    )
    quick = {"train.epochs": 2}
    expected = fet.run(base, set=quick)
    connection = duckdb.connect()
    frames: dict[str, tuple[Any, Any]] = {
        "pandas": (primary, stations),
        "polars": (pl.from_pandas(primary), pl.from_pandas(stations)),
        "pyarrow": (pa.Table.from_pandas(primary), pa.Table.from_pandas(stations)),
        "duckdb": (connection.from_df(primary), connection.from_df(stations)),
        "file": (tmp_path / "primary.parquet", stations),
        "shuffled index": (primary.set_index(pd.Index(range(900, 1300))), stations),
    }
    for name, (one, other) in frames.items():
        problem = fet.Problem(
            fet.Table(one, KEYS, name="farms"), [fet.Table(other, KEYS, name="stations")], "amount"
        )
        found = fet.run(problem, set=quick)
        assert stable(found) == stable(expected), name
        assert found.predictions["prediction"] == expected.predictions["prediction"], name
        new = primary.drop(columns="amount")[:9]
        assert found.predict(new)["prediction"] == expected.predict(new)["prediction"], name


def test_results_become_frames_of_every_library(digits: Path) -> None:
    predictions = fet.run(digits).predictions
    rows = len(predictions)
    assert len(predictions.to_pandas()) == rows
    assert pl.DataFrame(predictions).height == rows
    assert pa.table(predictions).num_rows == rows
    with pytest.raises(KeyError):
        predictions["absent"]


def test_keys_may_have_other_names_in_a_secondary(tables: Tables) -> None:
    primary, stations = tables
    other = stations.rename(columns={"lon": "x", "lat": "y"})
    results = []
    for table in (fet.Table(stations, KEYS), fet.Table(other, ["x", "y"])):
        problem = fet.Problem(fet.Table(primary, KEYS, drop=["wet"]), [table], "amount")
        results.append(stable(fet.run(problem, set={"train.epochs": 1})))
    assert results[0] == results[1]


def test_keys_of_text_and_types_of_polars_link_and_predict() -> None:
    names = [f"{a}{b}{c}" for a in ("an", "be", "co") for b in ("ra", "li", "mu", "to") for c in ("ster", "dale", "ford")]
    people = pl.DataFrame({"name": names * 10, "x": range(360)}).with_columns(
        pl.col("name").cast(pl.Categorical), y=pl.col("x") % 36, born=pl.date(1990, 1, 1) + pl.duration(days="x")
    )
    towns = pl.DataFrame({"name": [name.title() for name in names], "z": range(36)})
    problem = fet.Problem(fet.Table(people, "name"), [fet.Table(towns, "name")], "y", task="regression")
    result = fet.run(problem, set={"train.epochs": 1})
    assert result.report["experiment"]["data"]["key_kind"] == "text"
    assert len(result.predict(people[:3])) == 3


def test_refuses_invalid_input_with_the_text_of_the_command(digits: Path, tmp_path: Path, tables: Tables) -> None:
    with pytest.raises(fet.InputError, match="train.epochs"):
        fet.run(digits, set={"train.epochs": "many"})
    with pytest.raises(fet.InputError, match="absent.toml"):
        fet.run(tmp_path / "absent.toml")
    with pytest.raises(fet.InputError, match="must be a frame of pandas"):
        fet.Table([1, 2], KEYS).file(tmp_path, "x")
    with pytest.raises(fet.InputError, match="as many keys"):
        fet.run(fet.Problem(fet.Table(tables[0], KEYS), [fet.Table(tables[1], ["lon"])], "wet"))
    with pytest.raises(fet.InputError, match="no report.json"):
        fet.Run(tmp_path)
    command = [sys.executable, "-m", "fet", "run", str(digits), "--set", "train.epochs='many'"]
    told = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    with pytest.raises(fet.InputError) as raised:
        fet.run(digits, set={"train.epochs": "many"})
    assert (told.returncode, told.stderr.strip()) == (2, f"fet: {raised.value}")


def test_a_folder_keeps_its_run_and_refuses_other_data(tables: Tables, tmp_path: Path) -> None:
    primary, stations = tables
    folder = tmp_path / "run"

    def problem(frame: pd.DataFrame) -> fet.Problem:
        return fet.Problem(fet.Table(frame, KEYS, drop=["wet"]), [fet.Table(stations, KEYS)], "amount")

    first = fet.run(problem(primary), folder, {"train.epochs": 1})
    assert fet.run(problem(primary), folder, {"train.epochs": 1}).report == first.report
    with pytest.raises(fet.InputError, match="on other data"):
        fet.run(problem(primary[:300]), folder, {"train.epochs": 1})
    assert fet.Run(folder).report == first.report


def test_ctrl_c_stops_after_a_step_and_the_same_call_resumes(digits: Path, tmp_path: Path) -> None:
    settings = {"train.epochs": 30}
    folder = tmp_path / "run"
    waiting = interrupt_after((folder / "checkpoint.safetensors").exists)
    with pytest.raises(KeyboardInterrupt):
        fet.run(digits, folder, settings)
    waiting.join()
    assert not (folder / "report.json").exists()
    resumed = fet.run(digits, folder, settings)
    assert stable(resumed) == stable(fet.run(digits, set=settings))


def test_names_of_classes_stay_texts(tables: Tables) -> None:
    """A set of classes is a text, also if the first rows have one class whose name is a number."""
    farms, stations = tables
    labelled = farms.assign(wet=(farms["amount"] > farms["amount"].median()).astype(int)).drop(columns="amount")
    problem = fet.Problem(fet.Table(labelled, KEYS), [fet.Table(stations, KEYS)], "wet", task="binary")
    run = fet.run(problem, set={"train.epochs": 1})
    path = run.folder / "predictions.csv"
    header, *lines = path.read_text().splitlines()
    place = header.split(",").index("likely")
    cells = [line.split(",") for line in lines]
    for number, row in enumerate(cells):
        row[place] = "0 | 1" if number == 3 else "0"
    path.write_text("\n".join([header, *map(",".join, cells)]) + "\n")
    found = run.predictions
    assert found["likely"][:5] == ["0", "0", "0", "0 | 1", "0"]
    assert set(found["label"]) <= {"0", "1"}


def test_a_setting_may_be_a_table(digits: Path) -> None:
    method = {"kind": "fet-pool", "hidden": [8]}
    assert fet.run(digits, set={"method": method}).report["experiment"]["method"]["hidden"] == [8]
