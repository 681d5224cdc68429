#!/usr/bin/env python3
"""Runs clang-tidy over our own translation units, as a build folder compiles them.

What passed is remembered in BUILD_DIR/tidy-cache: an empty file per translation unit, named by a
hash of all that decides the outcome (clang-tidy's version, .clang-tidy, the command, the file, and
every header of ours that it reaches), so that only what changed is checked again.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tree import among, arguments
from units import Unit, normal, parse, read_units

# Catch2 makes a maze of each assertion: to check the tests took longer than all the rest, and what
# was found was in the maze. Two compilers and the sanitizers watch them.
NOT_CHECKED = "tests/* transports/*/conformance.cpp"

SHOWN_LINES = 8  # of what clang-tidy says below a finding
# The analyzer follows our calls into the headers of libraries.
IN_LIBRARY = re.compile(r"^\.\./.*: clang-analyzer-")
FOUND = re.compile(r"^(\S.*?):(\d+):\d+: (?:error|warning): (.*?)(?: \[([^\],]+).*\])?$")


def lint(program: str, database: Path, root: Path, unit: Unit) -> dict[str, list[str]]:
    """What clang-tidy finds: first lines as those of our own checks, and what stands below each."""
    command = [program, "--quiet", "-p", str(database), str(unit.file)]
    ran = subprocess.run(command, cwd=unit.directory, capture_output=True, text=True, check=False)
    if ran.returncode == 0:
        unit.passed.touch()
        return {}
    head = f"{unit.name}:1: clang-tidy: exit status {ran.returncode}"
    found: dict[str, list[str]] = {}
    for line in ran.stdout.splitlines() or ran.stderr.splitlines():
        if match := FOUND.match(line):
            path = os.path.relpath(normal(unit.directory, match[1]), root)
            head = f"{path}:{match[2]}: {match[4] or 'clang'}: {match[3]}"
        found.setdefault(head, [])
        if not match:
            found[head].append(line)
    ours = {head: below for head, below in found.items() if not IN_LIBRARY.match(head)}
    if found and not ours:
        unit.passed.touch()
    return ours if found else {head: []}


def show(found: dict[str, list[str]]) -> None:
    for head in sorted(found):
        print(head, *found[head][:SHOWN_LINES], sep="\n    ")


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--clang-tidy", default="clang-tidy", help="the program (%(default)s)")
    options, root, build = parse(parser)

    database = build / "tidy-cache"
    database.mkdir(exist_ok=True)
    here = Path(__file__)
    common = subprocess.check_output([options.clang_tidy, "--version"])
    for file in (root / ".clang-tidy", here, here.with_name("units.py")):
        common += file.read_bytes()
    units = [unit for unit in read_units(build, root) if not among(unit.name, NOT_CHECKED)]
    for unit in units:
        unit.passed = database / unit.key(common, (root, build))
    (database / "compile_commands.json").write_text(json.dumps([unit.command() for unit in units]))

    changed = [unit for unit in units if not unit.passed.exists()]
    found: dict[str, list[str]] = {}
    with ThreadPoolExecutor(options.jobs) as pool:
        for each in pool.map(partial(lint, options.clang_tidy, database, root), changed):
            found |= each
    for stale in {*database.glob("[0-9a-f]" * 64)} - {unit.passed for unit in units}:
        stale.unlink()

    show(found)
    ended = f"{len(found)} to fix" if found else f"clang-tidy is content with {len(units)} units"
    print(f"lint: {ended} ({len(changed)} of them checked anew)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
