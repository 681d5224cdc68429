"""`python -m hocket.run` is `hocket run`."""

import os
import shutil
import sys
import sysconfig


def main() -> None:
    here = os.path.join(sysconfig.get_path("scripts"), "hocket")
    program = here if os.access(here, os.X_OK) else shutil.which("hocket")
    if program is None:
        sys.exit("hocket.run: the program `hocket` is neither beside this Python nor in PATH")
    os.execv(program, [program, "run", *sys.argv[1:]])


if __name__ == "__main__":
    main()
