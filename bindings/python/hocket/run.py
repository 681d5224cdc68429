"""`python -m hocket.run` is `hocket run`."""

import os
import shutil
import sys
import sysconfig


def main() -> None:
    schemes = (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))
    installed = (os.path.join(sysconfig.get_path("scripts", each), "hocket") for each in schemes)
    program = next((each for each in installed if os.access(each, os.X_OK)), None) or shutil.which("hocket")
    if program is None:
        sys.exit("hocket.run: the program `hocket` is not where this Python installs programs, and not in PATH")
    os.execv(program, [program, "run", *sys.argv[1:]])


if __name__ == "__main__":
    main()
