"""Tests of the notebooks: each runs, and ends with a cell of checks."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1]
NOTEBOOKS = sorted((PACKAGE / "notebooks").glob("*.ipynb"))

# Runs the code cells of a notebook as Jupyter does: `%%writefile` writes a file, and the last expression of a cell is shown.
RUN = """
import ast, json, pathlib, sys
variables = {"__name__": "__main__"}
for cell in json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))["cells"]:
    source = "".join(cell["source"])
    first, _, rest = source.partition("\\n")
    if cell["cell_type"] != "code":
        continue
    if first.startswith("%%writefile "):
        pathlib.Path(first.split()[1]).write_text(rest, encoding="utf-8")
        continue
    lines = ast.parse(source).body
    last = lines.pop() if isinstance(lines[-1], ast.Expr) else None
    exec(compile(ast.Module(lines, []), cell["id"], "exec"), variables)
    if last is not None:
        shown = eval(compile(ast.Expression(last.value), cell["id"], "eval"), variables)
        repr(shown), getattr(shown, "_repr_html_", str)()
"""


def run(notebook: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a notebook in its folder, with the environment of this process."""
    command = [sys.executable, "-c", RUN, notebook]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)


def test_finds_the_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["encoder", "linker", "own-data", "privacy-and-worth"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_runs_and_its_checks_hold(path: Path, tmp_path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert all(not cell.get("outputs") and not cell.get("execution_count") for cell in cells)
    assert cells[-2]["source"][-1] == "## Check" and sum("assert " in line for line in cells[-1]["source"]) >= 2
    if path.stem == "encoder":
        pytest.importorskip("torch")
    for folder in ("notebooks", "examples"):
        shutil.copytree(PACKAGE / folder, tmp_path / folder)
    ended = run(path.name, tmp_path / "notebooks")
    assert ended.returncode == 0, ended.stderr


def test_a_false_check_fails(tmp_path: Path) -> None:
    source = {"cell_type": "code", "id": "checks", "source": ["assert 1 + 1 == 3"]}
    (tmp_path / "wrong.ipynb").write_text(json.dumps({"cells": [source]}))
    ended = run("wrong.ipynb", tmp_path)
    assert ended.returncode == 1 and "AssertionError" in ended.stderr
