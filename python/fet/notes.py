"""Messages of running work: warnings become Python warnings, other lines go to the logger `fet`."""

import logging
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

from fet.errors import FetWarning

# Receiver of lines.
Note = Callable[[str], object]

log = logging.getLogger("fet")
_WARNING = "warning: "
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
