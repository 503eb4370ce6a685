"""The command `fet`."""

import os
import sys
import sysconfig
from pathlib import Path

from fet import _fet
from fet.plugins import environment


def main() -> int:
    """Run the command line and return its exit code."""
    if not os.environ.get("FET_BIN"):
        # Studies start the command again for each run.
        name = "fet.exe" if os.name == "nt" else "fet"
        script = Path(sysconfig.get_path("scripts")) / name
        if script.is_file():
            os.environ["FET_BIN"] = str(script)
            os.environ.update(environment())
    return _fet.main(["fet", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
