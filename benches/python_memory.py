#!/usr/bin/env python3
"""Peak memory of writing a frame through the Python package, relative to the size of the frame.

    python_memory.py [--rows 1000000] [--library pyarrow|polars|pandas|numpy]   # needs `fet` and the libraries; Linux

Each library has a process of its own. The frame has 28 columns of float64 and 2 of strings; the array of NumPy has 30 columns of float64.
The script prints the size of the frame, and the growth of the resident memory at its peak, which includes no memory of the frame:
for `Table.file`, and for the path of `fit`, which adds labels of numbers or names of classes.
"""

import argparse
import gc
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COLUMNS = 28


def status(field):
    """Memory of this process in bytes, by the name of its line in Linux's `status`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"/proc/self/status has no {field}")


def measured(work):
    """Run the work, and return the growth of memory at its peak in bytes and its seconds."""
    gc.collect()
    # The kernel counts the peak from here; a thread of Python could not sample while native code holds the lock.
    Path("/proc/self/clear_refs").write_text("5")
    start, begun = status("VmRSS"), time.perf_counter()
    work()
    return max(0, status("VmHWM") - start), time.perf_counter() - begun


def frame_of(library, rows):
    """Make the frame; return it and its size in bytes."""
    import numpy as np
    import pyarrow as pa

    random = np.random.default_rng(0)
    if library == "numpy":
        array = random.normal(size=(rows, COLUMNS + 2))
        return array, array.nbytes
    columns = {f"n{at}": pa.array(random.normal(size=rows)) for at in range(COLUMNS)}
    for at in range(2):
        codes = pa.array(random.integers(0, 4, rows, dtype=np.int8))
        columns[f"s{at}"] = pa.DictionaryArray.from_arrays(codes, ["wheat", "barley", "oats", "rye"]).cast("string")
    table = pa.table(columns)
    if library == "pyarrow":
        return table, table.nbytes
    if library == "pandas":
        frame = table.to_pandas()
        return frame, int(frame.memory_usage(deep=True).sum())
    import polars as pl

    frame = pl.from_arrow(table).rechunk()
    return frame, int(frame.estimated_size())


def one(library, rows):
    """Measure one library."""
    import numpy as np
    import pyarrow as pa

    import fet
    from fet.tables import ArrayFrame, write_table

    given, size = frame_of(library, rows)
    # An array of the estimators becomes a frame.
    made = ArrayFrame if library == "numpy" else lambda frame: frame
    pa.default_memory_pool().release_unused()
    labels = np.zeros(rows)
    mega = 1e6
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for title, work in (
            ("Table.file", lambda: fet.Table(made(given), ["n0"]).file(folder, "one")),
            ("with labels", lambda: write_table(made(given), folder, "two", label=("label", labels))),
            ("with names", lambda: write_table(made(given), folder, "three", label=("label", ["yes"] * rows))),
        ):
            grown, seconds = measured(work)
            print(
                f"{library:8} {title:12} frame {size / mega:6.0f} MB  growth {grown / mega:6.0f} MB  "
                f"ratio {grown / size:5.2f}  {seconds:5.1f} s",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--library", choices=["pyarrow", "polars", "pandas", "numpy"])
    arguments = parser.parse_args()
    if arguments.library:
        one(arguments.library, arguments.rows)
        return
    for library in ("pyarrow", "polars", "pandas", "numpy"):
        subprocess.run([sys.executable, __file__, "--rows", str(arguments.rows), "--library", library], check=True)


if __name__ == "__main__":
    main()
