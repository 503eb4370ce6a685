"""Tables of the parties, and the problem that they pose together."""

import filecmp
import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union

from fet import _fet
from fet.errors import InputError
from fet.notes import Note, note
from fet.settings import Settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Task = Literal["regression", "binary", "multiclass"]
# Rows of an array that are converted at once.
_BATCH = 65536
# Labels of a frame's rows: numbers, or names of classes.
Labels = Union["NDArray[np.float64]", "list[str]"]


class Table:
    """A party's table: a frame of pandas, Polars, pyarrow or DuckDB, or the path of a file.

    A frame is any object with the Arrow PyCapsule interface. The index of a pandas frame is no column;
    `reset_index()` makes it one.
    """

    def __init__(
        self,
        frame: object,
        keys: Sequence[str] = (),
        *,
        name: str = "",
        columns: Mapping[str, str] | None = None,
        drop: Sequence[str] = (),
    ) -> None:
        """Describe a table.

        `keys` are the columns that link the records, in the same order for all tables. `columns` gives kinds of
        columns, as `{"built": "date:%d/%m/%Y"}`. `drop` names columns to leave out.
        """
        self.frame = frame
        self.keys = [keys] if isinstance(keys, str) else list(keys)
        for at, key in enumerate(self.keys):
            if not isinstance(key, str):
                raise InputError(f"`keys`: must be names of columns; {key!r} is a {type(key).__name__}")
            if key in self.keys[:at]:
                raise InputError(f"`keys`: name the column `{key}` twice")
        self.name = name
        self.columns = dict(columns or {})
        self.drop = [drop] if isinstance(drop, str) else list(drop)

    def __deepcopy__(self, memo: dict[int, object]) -> "Table":
        """Return the same table: no code changes its frame."""
        return self

    def __repr__(self) -> str:
        """Name the table's source."""
        source = str(self.frame) if self.is_file else type(self.frame).__name__
        return f"Table({source}, keys={self.keys})"

    @property
    def is_file(self) -> bool:
        """True if the table is in a file."""
        return isinstance(self.frame, (str, os.PathLike))

    def file(self, folder: Path, stem: str, keys: Sequence[str] = (), *, complete: bool = True) -> Path:
        """Return a file with the table, in which the key columns have the names `keys`.

        A frame, and a table with other names, is written into the folder. If `complete`, a key column of numbers must have
        a number in every row.
        """
        renamed = list(zip(self.keys, keys or self.keys))
        if self.is_file and all(old == new for old, new in renamed):
            path = Path(str(self.frame)).resolve()
            if not path.is_file():
                raise InputError(f"{self.frame}: is not a file")
            return path
        frame = _fet.read_frame(Path(str(self.frame)), []) if self.is_file else self.frame
        try:
            return write_table(frame, folder, stem, keys=renamed, complete=complete)
        except InputError as error:
            raise InputError(f"{self.name or stem}: {error}") from None


def table_of(given: object, name: str) -> Table:
    """Return a table, and refuse a frame without key columns."""
    if isinstance(given, Table):
        return given
    raise InputError(f"`{name}`: must be a table; write `fet.Table(frame, keys=[...])`, not a {type(given).__name__}")


def tables_of(given: object) -> list[Table]:
    """Return the tables of the other parties."""
    if isinstance(given, (Table, str)) or not isinstance(given, Iterable) or hasattr(given, "__arrow_c_stream__"):
        raise InputError("`secondaries`: must be a list of tables, as `[fet.Table(frame, keys=[...])]`")
    return [table_of(table, "secondaries") for table in given]


def write_table(
    frame: object,
    folder: Path,
    stem: str,
    *,
    keys: Sequence[tuple[str, str]] = (),
    label: tuple[str, Labels] | None = None,
    complete: bool = True,
) -> Path:
    """Write a frame into a folder, and refuse to change the table of a finished run there.

    `keys` are its key columns with their new names, which must have all numbers if `complete`.
    """
    tables = folder / "tables"
    tables.mkdir(parents=True, exist_ok=True)
    path = tables / f"{stem}.arrows"
    # The old table stays whole until the new one is.
    with tempfile.TemporaryDirectory(dir=tables) as scratch:
        new = Path(scratch) / path.name
        _fet.write_table(frame, new, list(keys), label, complete)
        if (folder / "report.json").exists() and not (path.exists() and filecmp.cmp(path, new, shallow=False)):
            raise InputError(f"{folder}: contains the report of a run on other data; name another folder")
        os.replace(new, path)
    return path


class ArrayFrame:
    """Frame of an array: the columns are `x0`, `x1`, ..., as scikit-learn names them."""

    def __init__(self, array: "NDArray[Any]") -> None:
        """Keep the array."""
        self._array = array
        self.columns = [f"x{at}" for at in range(array.shape[1])]

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as an Arrow stream. Batches of rows limit the memory of a numeric array."""
        try:
            import pyarrow
        except ImportError as error:
            raise InputError(f"`X` must be a frame: an array needs the package pyarrow ({error})") from error

        def batch(rows: "NDArray[Any]") -> Any:
            return pyarrow.record_batch([pyarrow.array(column) for column in rows.T], names=self.columns)

        # The type of a column of objects follows from all rows.
        step = max(1, len(self._array)) if self._array.dtype.kind == "O" else _BATCH
        try:
            schema = batch(self._array[:step]).schema
            batches = (batch(self._array[at : at + step]) for at in range(0, len(self._array), step))
            stream: object = pyarrow.RecordBatchReader.from_batches(schema, batches).__arrow_c_stream__()
        except (pyarrow.ArrowException, TypeError) as error:
            raise InputError(f"`X`: each column must have values of one type ({error})") from error
        return stream


class Problem:
    """Tables of all parties, and the column of the primary to predict."""

    def __init__(
        self,
        primary: Table,
        secondaries: Sequence[Table],
        label: str,
        *,
        task: Task | None = None,
    ) -> None:
        """Describe a problem; without `task` the label decides it."""
        self.primary = table_of(primary, "primary")
        self.secondaries = tables_of(secondaries)
        self.label = label
        self.task = task

    def settings(self, folder: str | os.PathLike[str], method: str | None = None) -> Settings:
        """Write the tables into the folder, and return the settings of an experiment on them.

        `fet init` chooses the linker, the metric, the split, the length of the training and the variants of a study.
        `method` replaces its method, and leaves the study out.
        """
        folder = Path(folder)
        return self.settings_of(self.primary.file(folder, "primary"), folder, method)

    def settings_of(
        self, primary: Path, folder: Path, method: str | None = None, notes: Note = note
    ) -> Settings:
        """Return the settings of an experiment, with the primary's table in the file `primary`."""
        keys = self.primary.keys
        if not self.secondaries:
            raise InputError("`secondaries`: must name at least one table of another party")
        for table in self.secondaries:
            if len(table.keys) != len(keys):
                raise InputError(f"{table}: must have as many keys as the primary ({len(keys)})")
        stems = [f"secondary{number}" for number in range(1, len(self.secondaries) + 1)]
        files = [table.file(folder, stem, keys) for table, stem in zip(self.secondaries, stems)]
        try:
            settings: Settings = json.loads(_fet.plan([primary, *files], self.label, keys, notes))
        except InputError as error:
            text = str(error)
            for table, path, stem in zip([self.primary, *self.secondaries], [primary, *files], ["primary", *stems]):
                text = text.replace(str(path), table.name or stem)
            raise InputError(text) from None
        settings["name"] = "experiment"
        data = settings["data"]
        if self.task not in (None, data["task"]):
            # These follow from the task.
            data["task"] = self.task
            settings.pop("scores", None)
            settings["train"].pop("class_weights", None)
        chosen = [data["primary"], *data["secondaries"]]
        tables = zip([self.primary, *self.secondaries], ["primary", *stems], [primary, *files], chosen)
        for table, stem, path, planned in tables:
            planned["name"] = table.name or (planned["name"] if table.is_file else stem)
            inside = path.is_relative_to(folder.resolve()) or path.is_relative_to(folder)
            planned["file"] = f"tables/{path.name}" if inside and path.parent.name == "tables" else str(path)
            renamed = dict(zip(table.keys, keys))
            columns = {renamed.get(name, name): kind for name, kind in table.columns.items()}
            if columns:
                planned["columns"] = {**planned.get("columns", {}), **columns}
            if table.drop:
                planned["drop"] = [*dict.fromkeys([*planned.get("drop", []), *table.drop])]
        if method is not None:
            choose_method(settings, method)
        return settings


def choose_method(settings: Settings, method: str) -> None:
    """Replace the method that `fet init` chose, and keep its choices that fit."""
    settings.pop("ablation", None)
    settings.pop("profile", None)
    planned: dict[str, Any] = settings["method"]
    growth: dict[str, Any] = planned.get("growth", {})
    shape = {"leaves": 31, "column_share": growth["column_share"]} if growth else {}
    choices: dict[str, dict[str, Any]] = {
        "with-trees": planned,
        "fet-pool": planned["inner"],
        "fet": {"dropout": 0.1},
        "fet-alone": {"dropout": 0.1},
        "gbdt-solo": shape,
        "gbdt-top1": shape,
    }
    settings["method"] = {**choices.get(method, {}), "kind": method}
    if method not in ("with-trees", "fet-pool"):
        settings.pop("encoder", None)
