#!/usr/bin/env python3
"""Checks how big things are: files, functions, rooms, the library, and its tests beside it.

Lines are counted as an editor shows them; code lines are those that hold more than a comment.
Functions need universal-ctags: without it they are not measured, and the exit status is 77.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from posixpath import dirname

from tree import CPP, SCRIPTS, Finding, among, arguments, blank, files, read, report

FILE_LINES = {"median": 150, "p90": 400}  # of the library
FILE_LINES_MAX = 800  # of any source
FUNCTION_LINES = {"p90": 25, "p99": 70}
FUNCTION_LINES_MAX = 80
ROOM_FILES_MAX = 24  # a .cpp and its header count once; more is two rooms
TESTS_PER_LIBRARY_MIN = 0.8
TESTS_MATTER_FROM = 2_000  # code lines of the library

TESTS = "tests/* transports/sim/* transports/*/conformance.cpp"
LIBRARY = "lib/* include/* transports/* devices/*"
BESIDE = "transports/* devices/*"  # counted each for itself
MEASURED_FUNCTIONS = f"{LIBRARY} bench/* tools/*"
ROOMS = "lib/* transports/*/* devices/*"

QUANTILES = {"median": 0.5, "p90": 0.9, "p99": 0.99}
CTAGS = (
    "ctags --options=NONE --output-format=json --fields=+ne --languages=C,C++,CUDA,Python "
    "--kinds-C=f --kinds-C++=f --kinds-CUDA=f --kinds-Python=fm -f - -L -"
).split()

Checked = tuple[list[Finding], str]  # what is too big, and the figure to show


def over(limit: int, rule: str, fix: str, sizes: Iterable[tuple[str, int, int]]) -> list[Finding]:
    """A finding for each (path, line, size) above the limit."""
    return [
        Finding(path, line, rule, f"{size} (limit {limit})", fix)
        for path, line, size in sizes
        if size > limit
    ]


def quantile(values: list[int], name: str) -> int:
    """The smallest value that this share of all values does not exceed; 0 of none."""
    return sorted(values)[math.ceil(QUANTILES[name] * len(values)) - 1] if values else 0


def check_spread(what: str, values: list[int], limits: dict[str, int]) -> Checked:
    findings, shown = [], ""
    for name, limit in limits.items():
        figure = quantile(values, name)
        findings += over(limit, f"{what}-{name}", "split the big ones", [(".", 0, figure)])
        shown += f"{name} {figure} (limit {limit}), "
    return findings, f"{what + 's':<10} {len(values):>6}   {shown}longest {max(values, default=0)}"


def check_files(lines: dict[str, int]) -> Checked:
    sizes = ((path, 0, size) for path, size in lines.items())
    findings = over(FILE_LINES_MAX, "file-size", "split it by its nouns", sizes)
    library = [size for path, size in lines.items() if among(path, LIBRARY)]
    spread, figure = check_spread("file", library, FILE_LINES)
    return findings + spread, figure


def has_ctags() -> bool:
    ctags = shutil.which("ctags")
    return bool(ctags) and b"Universal" in subprocess.check_output([ctags, "--version"])


def functions(root: Path, paths: Iterable[str]) -> list[tuple[str, int, int]]:
    """(path, line, how many lines) of every function, as ctags sees them."""
    names = "\n".join(paths)
    listing = subprocess.run(CTAGS, cwd=root, input=names, capture_output=True, text=True)
    tags = [tag for line in listing.stdout.splitlines() if "end" in (tag := json.loads(line))]
    return [(tag["path"], tag["line"], tag["end"] - tag["line"] + 1) for tag in tags]


def check_functions(root: Path, paths: Iterable[str]) -> Checked:
    sizes = functions(root, (path for path in paths if among(path, MEASURED_FUNCTIONS)))
    findings = over(FUNCTION_LINES_MAX, "function-size", "give its parts names", sizes)
    spread, figure = check_spread("function", [size for *_, size in sizes], FUNCTION_LINES)
    return findings + spread, figure


def check_rooms(paths: Iterable[str]) -> Checked:
    stems = {path.split(".")[0].removesuffix("-inl") for path in paths if among(path, ROOMS)}
    count = Counter(dirname(stem) for stem in stems)
    sizes = ((room, 0, size) for room, size in count.items())
    findings = over(ROOM_FILES_MAX, "room-size", "join files of one noun, or make two rooms", sizes)
    room, most = max(count.items(), key=lambda item: item[1], default=("none", 0))
    shown = f"fullest {room}: {most} files (limit {ROOM_FILES_MAX})"
    return findings, f"{'rooms':<10} {len(count):>6}   {shown}"


def code_lines(path: str, text: str) -> int:
    if path.endswith(CPP):
        return sum(1 for line in blank(text, literals=False).splitlines() if line.strip())
    return sum(1 for line in text.splitlines() if line.strip() and line.lstrip()[0] != "#")


def check_code(texts: dict[str, str]) -> Checked:
    code = {path: code_lines(path, text) for path, text in texts.items()}
    tests = sum(count for path, count in code.items() if among(path, TESTS))
    sources = [
        path for path in code
        if path.endswith(CPP) and among(path, LIBRARY) and not among(path, TESTS)
    ]
    library = sum(code[path] for path in sources if not among(path, BESIDE))
    transports: dict[str, int] = {}
    for path in sources:
        if among(path, "transports/*/* devices/*"):
            name = "/".join(path.split("/")[: 2 if among(path, "transports/*") else 1])
            transports[name] = transports.get(name, 0) + code[path]
    findings: list[Finding] = []
    tested = library + sum(transports.values())
    share = tests / tested if tested else 0.0
    if tested > TESTS_MATTER_FROM and share < TESTS_PER_LIBRARY_MIN:
        text = f"{share:.2f} of the library's code lines (at least {TESTS_PER_LIBRARY_MIN})"
        findings.append(Finding("tests", 0, "too-few-tests", text, "write the missing tests"))
    shown = (
        f"lines of library, largest transport {max(transports.values(), default=0)},"
        f" and {tests} of tests: {share:.2f} of all"
    )
    return findings, f"{'code':<10} {library:>6}   {shown}"


def main() -> int:
    root = arguments(__doc__).parse_args().root
    texts = {path: read(root, path) for path in files(root, (*CPP, *SCRIPTS))}
    checks = [check_files({path: len(text.splitlines()) for path, text in texts.items()})]
    if measured := has_ctags():
        checks.append(check_functions(root, texts))
    checks += [check_rooms(path for path in texts if path.endswith(CPP)), check_code(texts)]
    print(*(figure for _, figure in checks), sep="\n")
    status = report("sizes", [found for each, _ in checks for found in each], "all within limits")
    if not measured:
        print("functions are not measured: universal-ctags is not here")
    return status or (0 if measured else 77)


if __name__ == "__main__":
    sys.exit(main())
