"""Messages of running work: warnings become Python warnings, other lines go to the logger `fet`."""

import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from fet.errors import FetWarning

# Receiver of lines.
Note = Callable[[str], object]

log = logging.getLogger("fet")
_WARNING = "warning: "
# Line of an epoch, with the numbers of the epoch and of all epochs, and the metrics.
_EPOCH = re.compile(r"epoch +(\d+)/(\d+)  (loss \S+  validation \S+ \S+)")
_PACKAGE = str(Path(__file__).parent)


def _level() -> int:
    """Return the `stacklevel` of the caller of this package, whose line a warning names."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level


def note(line: str) -> None:
    """Pass a line to the user."""
    if line.startswith(_WARNING):
        warnings.warn(line.removeprefix(_WARNING), FetWarning, stacklevel=_level())
    else:
        log.info("%s", line)


def logged(line: str) -> None:
    """Pass a line to the logger, also if it is a warning."""
    log.info("%s", line)


def shown(line: str) -> None:
    """Pass a line to the user, and print it if it is no warning."""
    note(line)
    if not line.startswith(_WARNING):
        print(line, file=sys.stderr)


@contextmanager
def receiver(verbose: bool, progress: bool) -> Iterator[Note]:
    """Return the receiver of a run's lines: the logger, standard error, or a progress bar of tqdm."""
    receive = shown if verbose else note
    if not progress:
        yield receive
        return
    try:
        bar = import_module("tqdm.auto").tqdm(total=None, unit="epoch")
    except ImportError as error:
        raise ImportError(f"`progress=True` needs the package tqdm ({error})") from error

    def advance(line: str) -> None:
        found = _EPOCH.match(line)
        if found:
            bar.total = int(found[2])
            bar.set_postfix_str(found[3], refresh=False)
            bar.update(int(found[1]) - bar.n)
            # The bar shows the line, so only the logger receives it.
            note(line)
        else:
            receive(line)

    try:
        yield advance
    finally:
        bar.close()
