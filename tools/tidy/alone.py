#!/usr/bin/env python3
"""Compiles each of our sources and headers alone, without precompiled headers, for its syntax only.

What a file uses it must include, itself or by what it includes: precompiled headers hide where one
forgot. A header is compiled with the flags of a source that includes it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tree import HEADERS, among, arguments
from units import parse, reached, read_units

# Highway includes these several times, once for each instruction set, from the sources they belong to.
PARTS_OF_SOURCES = "*-inl.hpp"

SHOWN_LINES = 8  # of what the compiler says of a file


def commands(build: Path, root: Path, cxx: list[str], cc: list[str]) -> Iterator[tuple[str, list[str], str]]:
    """(name, command, folder to run it in) of each source, and of each header that one includes."""
    seen: set[Path] = set()
    units = read_units(build, root)
    for unit in units:
        compiler = cc if unit.file.suffix == ".c" else cxx
        yield unit.name, [*compiler, *unit.flags, "-fsyntax-only", str(unit.file)], unit.directory
    for unit in units:
        if unit.file.suffix == ".c":
            continue
        headers = reached(unit.file, unit.folders, (root,)) - seen
        seen |= headers
        for header in sorted(headers):
            name = header.relative_to(root).as_posix()
            if name.endswith(HEADERS) and not among(name, PARTS_OF_SOURCES):
                command = [*cxx, *unit.flags, "-fsyntax-only", "-include", str(header), "-x", "c++", os.devnull]
                yield name, command, unit.directory


def compile_alone(each: tuple[str, list[str], str]) -> str:
    """What the compiler said when it failed, below the name of the file; else nothing."""
    name, command, folder = each
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ran.returncode == 0:
        return ""
    lines = ran.stderr.splitlines()[:SHOWN_LINES]
    return "\n    ".join([f"{name}:1: alone: it does not compile without precompiled headers", *lines])


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--cxx", default="g++", help="the C++ compiler, as words (%(default)s)")
    parser.add_argument("--cc", default="gcc", help="the C compiler, as words (%(default)s)")
    options, root, build = parse(parser)
    files = list(commands(build, root, options.cxx.split(), options.cc.split()))
    with ThreadPoolExecutor(options.jobs) as pool:
        found = [said for said in pool.map(compile_alone, files) if said]
    print(*sorted(found), sep="\n")
    print(f"alone: {len(found)} to fix" if found else f"alone: {len(files)} files compile alone")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
