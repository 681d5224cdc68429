#!/usr/bin/env python3
"""Checks that clang-format would change nothing in our C and C++ files (or changes it: --fix).

Its output is compared with the file: --dry-run also complains, in clang-format 14, of every
`namespace hocket::inline v1` that is as it wants it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from difflib import unified_diff
from functools import partial
from pathlib import Path

from tree import CPP, Finding, arguments, files, report


def check(program: str, root: Path, fix: bool, path: str) -> list[Finding]:
    """What clang-format would change in a file: none after a fix."""
    command = [program, "--style=file", path]
    ran = subprocess.run(command, cwd=root, capture_output=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"format: {program} failed on {path}: {ran.stderr.decode().strip()}")
    before = (root / path).read_bytes()
    if ran.stdout == before:
        return []
    if fix:
        (root / path).write_bytes(ran.stdout)
        return []
    old, new = (text.decode(errors="replace").splitlines() for text in (before, ran.stdout))
    changes = [line.split()[1] for line in unified_diff(old, new, n=0) if line.startswith("@@")]
    line = int(changes[0].split(",")[0][1:]) if changes else 0
    text = f"{len(changes)} places differ from .clang-format"
    return [Finding(path, line, "format", text, "tools/tidy/format.py --fix")]


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--fix", action="store_true", help="format the files in place")
    parser.add_argument("--clang-format", default="clang-format", help="the program (%(default)s)")
    options = parser.parse_args()
    paths = files(options.root, CPP)
    job = partial(check, options.clang_format, options.root, options.fix)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        findings = [finding for found in pool.map(job, paths) for finding in found]
    return report("format", findings, f"{len(paths)} files are as .clang-format says")


if __name__ == "__main__":
    sys.exit(main())
