#!/usr/bin/env python3
"""Checks that clang-format would change nothing in our C and C++ files (or changes it: --fix)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tree import CPP, Finding, arguments, files, report

BATCH = 20  # files for one run of clang-format
PLACE = re.compile(r"^(.+?):(\d+):\d+: error: .*\[-Wclang-format-violations\]$", re.MULTILINE)


def run(program: str, root: Path, flags: list[str], paths: list[str]) -> list[Finding]:
    """A finding for each file that clang-format would change."""
    command = [program, "--style=file", *flags, *paths]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    places: dict[str, list[int]] = {}
    for path, line in PLACE.findall(ran.stderr):
        places.setdefault(path, []).append(int(line))
    if ran.returncode != 0 and not places:
        sys.exit(f"format: {program} failed: {ran.stderr.strip()}")
    text, fix = "{} places differ from .clang-format", "tools/tidy/format.py --fix"
    return [
        Finding(path, lines[0], "format", text.format(len(lines)), fix)
        for path, lines in places.items()
    ]


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--fix", action="store_true", help="format the files in place")
    parser.add_argument("--clang-format", default="clang-format", help="the program (%(default)s)")
    options = parser.parse_args()
    flags = ["-i"] if options.fix else ["--dry-run", "-Werror", "--ferror-limit=0"]
    paths = files(options.root, CPP)
    batches = [paths[start : start + BATCH] for start in range(0, len(paths), BATCH)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(partial(run, options.clang_format, options.root, flags), batches)
        findings = [finding for each in found for finding in each]
    return report("format", findings, f"{len(paths)} files are as .clang-format says")


if __name__ == "__main__":
    sys.exit(main())
