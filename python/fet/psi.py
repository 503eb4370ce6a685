"""Private set intersection: the keys that two parties' tables share, as `fet psi` finds them.

The querier calls `ask` and `open`; the data holder calls `answer` in its own place. The program sends nothing: the
parties exchange the files `request` and `answer` themselves.
"""

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from fet import _fet
from fet.commands import command
from fet.errors import FetError, InputError
from fet.tables import Table

Result = Literal["cardinality", "links", "payload"]
_Path = str | os.PathLike[str]


def ask(
    table: Table,
    request: _Path,
    secret: _Path,
    *,
    want: Result = "links",
    compare: Literal["verbatim", "normal"] | None = None,
) -> None:
    """Write the request for the data holder, and the secret that the querier keeps."""
    with tempfile.TemporaryDirectory(prefix="fet-") as scratch:
        arguments = [str(table.file(Path(scratch), "querier", complete=False)), "--keys", ",".join(table.keys), "--want", want]
        arguments += ["--compare", compare] if compare else []
        command(["psi", "ask", *arguments, "--out", str(request), "--secret", str(secret)])


def answer(
    request: _Path,
    table: Table,
    out: _Path,
    *,
    give: Result,
    payload: Sequence[str] = (),
    at_least: int | None = None,
    at_most: int | None = None,
    compare: Literal["verbatim", "normal"] | None = None,
) -> None:
    """Write the answer of the data holder to a request. `give` must be the result that the request wants."""
    with tempfile.TemporaryDirectory(prefix="fet-") as scratch:
        arguments = [str(request), str(table.file(Path(scratch), "holder", complete=False)), "--keys", ",".join(table.keys)]
        arguments += ["--give", give]
        arguments += ["--payload", ",".join(payload)] if payload else []
        arguments += ["--at-least", str(at_least)] if at_least is not None else []
        arguments += ["--at-most", str(at_most)] if at_most is not None else []
        arguments += ["--compare", compare] if compare else []
        command(["psi", "answer", *arguments, "--out", str(out)])


def open(answer: _Path, secret: _Path) -> int | _fet.Frame:
    """Open an answer and erase its secret: the number of common keys, or a frame with the pairs of rows."""
    arguments = ["psi", "open", str(answer), "--secret", str(secret)]
    with tempfile.TemporaryDirectory(prefix="fet-") as scratch:
        out = Path(scratch) / "links.csv"
        try:
            command([*arguments, "--out", str(out)])
            return _fet.read_frame(out, [])
        except InputError as error:
            # The command refuses `--out` for a number before it uses the secret.
            if "cardinality" not in str(error):
                raise
    text = command(arguments)
    numbers = re.findall(r"\d+", text)
    if not numbers:
        raise FetError(f"{answer}: contains no number of common keys")
    return int(numbers[0])
