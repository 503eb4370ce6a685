"""The example that links tables in DuckDB."""

import subprocess
import sys
from pathlib import Path

import numpy
import numpy.typing
import pandas
import pytest

import fet

Numbers = numpy.typing.NDArray[numpy.float64]
SCRIPT = Path(__file__).parents[1] / "examples" / "link_with_duckdb.py"


def tables(folder: Path, rows: int = 300, records: int = 400) -> tuple[Numbers, Numbers]:
    """Writes tables with dense and empty places, equal records, and a row far from all records; returns their keys."""
    draw = numpy.random.default_rng(3)
    primary = numpy.concatenate([draw.normal(0, 0.01, (rows // 2, 2)), draw.random((rows - rows // 2 - 1, 2)), [[50.0, -70.0]]])
    other = numpy.concatenate([draw.normal(0, 0.02, (records // 2, 2)), draw.random((records // 2 - 20, 2)), numpy.full((20, 2), 0.5)])
    value = other[:, 0] + draw.normal(0, 0.1, len(other))
    label = primary.sum(1) + draw.normal(0, 0.1, len(primary))
    own = draw.random(len(primary))
    pandas.DataFrame({"x": primary[:, 0], "y": primary[:, 1], "own": own, "label": label}).to_csv(folder / "primary.csv", index=False)
    pandas.DataFrame({"x": other[:, 0], "y": other[:, 1], "value": value}).to_csv(folder / "other.csv", index=False)
    return primary, other


def link(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), "primary.csv", "other.csv", "--keys", "x,y", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("out", ["linked.csv", "linked.parquet"])
def test_its_records_are_the_nearest_in_the_order_of_the_primary(tmp_path: Path, out: str) -> None:
    primary, other = tables(tmp_path)
    done = link(tmp_path, "--neighbours", "4", "--out", out)
    assert done.returncode == 0, done.stderr
    found = (pandas.read_csv if out.endswith("csv") else pandas.read_parquet)(tmp_path / out)
    assert list(found.columns) == ["x", "y", "value", "distance"]
    expected = numpy.sort(numpy.linalg.norm(primary[:, None] - other[None], axis=2), axis=1)[:, :4]
    assert numpy.allclose(found["distance"].to_numpy().reshape(-1, 4), expected, rtol=0, atol=1e-9)
    apart = numpy.linalg.norm(numpy.repeat(primary, 4, axis=0) - found[["x", "y"]].to_numpy(), axis=1)
    assert numpy.allclose(apart, found["distance"], rtol=0, atol=1e-9)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["primary.csv", "other.csv", out])


def test_a_run_takes_its_table(tmp_path: Path) -> None:
    tables(tmp_path)
    assert link(tmp_path, "--neighbours", "4", "--out", "linked.csv").returncode == 0
    result = fet.run(
        {
            "name": "linked",
            "data": {
                "kind": "linked",
                "task": "regression",
                "label": "label",
                "primary": {"name": "primary", "file": str(tmp_path / "primary.csv"), "keys": ["x", "y"]},
                "secondaries": [{"name": "other", "file": str(tmp_path / "linked.csv"), "keys": ["x", "y"]}],
            },
            "linker": {"kind": "aligned", "neighbours": 4},
            "method": {"kind": "fet-pool"},
            "encoder": {"kind": "mlp"},
            "train": {"epochs": 2},
        }
    )
    assert sum(result.report["rows"].values()) == 300


@pytest.mark.parametrize(
    "keys",
    [
        [[0.0, 1e7], [0.0, 1e7 + 1], [0.0, 1e7 + 2]],
        [[1e12 + step, 5.0] for step in range(10)],
        [[1.0, 1.0]] * 6,
        [[step / 100, step % 7] for step in range(200)] + [[1e6, 1e6]],
    ],
)
def test_unusual_places_have_no_effect_on_its_records(tmp_path: Path, keys: list[list[float]]) -> None:
    table = pandas.DataFrame(keys, columns=["x", "y"])
    table.to_csv(tmp_path / "primary.csv", index=False)
    table.assign(row=range(len(keys))).to_csv(tmp_path / "other.csv", index=False)
    done = link(tmp_path, "--neighbours", "3", "--out", "linked.csv")
    assert done.returncode == 0, done.stderr
    found = pandas.read_csv(tmp_path / "linked.csv")
    places = numpy.array(keys)
    expected = numpy.sort(numpy.linalg.norm(places[:, None] - places[None], axis=2), axis=1)[:, :3]
    assert numpy.allclose(found["distance"].to_numpy().reshape(-1, 3), expected, rtol=0, atol=1e-9)
    assert all(len(set(rows)) == 3 for rows in found["row"].to_numpy().reshape(-1, 3))


@pytest.mark.parametrize(
    ("primary", "other", "message"),
    [
        ("x,y\n1,2\n", "x,y\n1,2\n", "other.csv has 1 records; 5 are needed"),
        ("x,y\n1,\n1,2\n", "x,y\n1,2\n", "primary.csv: 1 of 2 rows lack a key"),
        ("x,y\nnan,1\n1,2\n", "x,y\n1,2\n", "primary.csv: 1 of 2 rows lack a key"),
        ("x,z\n1,2\n", "x,y\n1,2\n", '"y"'),
        ("x,y\n1,2\n", "x,y,Distance\n" + 6 * "1,2,3\n", "other.csv has a column `distance`"),
        ("x,y\n1e200,2\n", "x,y\n" + 6 * "1,2\n", "too large for squares"),
    ],
)
def test_it_refuses_unsound_tables(tmp_path: Path, primary: str, other: str, message: str) -> None:
    (tmp_path / "primary.csv").write_text(primary)
    (tmp_path / "other.csv").write_text(other)
    done = link(tmp_path, "--out", "linked.csv")
    assert done.returncode == 1 and message in done.stderr and "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.csv", "primary.csv"]
