"""Tests of the typed classes of settings."""

import copy
import importlib.util
import inspect
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fet
from fet import options
from test_plugins import figures

CLASSES = [one for one in vars(options).values() if inspect.isclass(one) and issubclass(one, options.Options)]


def test_the_file_belongs_to_the_schema() -> None:
    path = Path(__file__).parents[1] / "tools" / "write_options.py"
    spec = importlib.util.spec_from_file_location("write_options", path)
    assert spec is not None and spec.loader is not None
    tool: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    message = "run `python tools/write_options.py` in the folder `python`"
    assert Path(options.__file__).read_text(encoding="utf-8") == tool.text(), message


def test_every_kind_of_a_slot_has_a_class() -> None:
    schema = fet.schema()["properties"]
    made = {(one().get("kind"), one.__name__.lower()) for one in CLASSES if one is not options.Options}
    for slot in ("linker", "method", "encoder", "aggregator", "privacy", "release", "labels", "attack"):
        for kind in set(schema[slot]["properties"]["kind"]["enum"]) - {"python"}:
            assert (kind, kind.replace("-", "") + slot) in made


def test_classes_give_the_run_of_dictionaries(digits: Path) -> None:
    typed = {
        "train": options.Train(epochs=2, batch_size=32),
        "method": options.FetPoolMethod(hidden=[16], width=8, optimizer=options.Optimizer(learning_rate=0.01)),
        "linker": options.PosteriorLinker(noise=0.1, inner=options.NearestLinker(neighbours=4)),
    }
    plain = {
        "train": {"epochs": 2, "batch_size": 32},
        "method": {"kind": "fet-pool", "hidden": [16], "width": 8, "optimizer": {"learning_rate": 0.01}},
        "linker": {"kind": "posterior", "noise": 0.1, "inner": {"kind": "nearest", "neighbours": 4}},
    }
    assert typed == plain
    assert figures(fet.run(digits, set=typed)) == figures(fet.run(digits, set=plain))
    for one in typed.values():
        assert copy.deepcopy(one) == one == pickle.loads(pickle.dumps(one))


def test_false_and_0_are_settings() -> None:
    assert options.FetPoolMethod(others=False, dropout=0) == {"kind": "fet-pool", "others": False, "dropout": 0}


def test_unknown_settings_and_wrong_values_are_refused(digits: Path) -> None:
    make: Any = options.FetPoolMethod
    with pytest.raises(TypeError, match="widht"):
        make(widht=8)
    with pytest.raises(fet.InputError, match="`method.width` must be at least 1"):
        fet.run(digits, set={"method": options.FetPoolMethod(width=0)})


def test_the_type_checker_finds_a_wrong_type(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text("from fet.options import Train\n\nTrain(epochs=2)\nTrain(epochs='two')\nTrain(decay='step')\n")
    check = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", str(program)]
    told = subprocess.run(check, cwd=tmp_path, env=fet.plugins.environment(), capture_output=True, text=True).stdout
    assert [line.split(":")[1] for line in told.splitlines() if ": error:" in line] == ["4", "5"], told
