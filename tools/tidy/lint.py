#!/usr/bin/env python3
"""Runs clang-tidy over our own translation units, as a build folder compiles them.

What passed is remembered in BUILD_DIR/tidy-cache: an empty file per translation unit, named by a
hash of all that decides the outcome (the program, .clang-tidy, the command, the file, and every
header of ours that it reaches), so that only what changed is checked again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from pathlib import Path

from tree import arguments, includes

OURS = ("lib", "transports", "bench", "tools", "tests", "examples")

# What g++ knows and clang does not. Unknown warnings are dealt with by a flag of clang's own.
GCC_ONLY = re.compile(
    r"-f(analyzer|concepts.*|coroutines|no-gnu-unique|gnu-unique|implicit-constexpr|ipa-.*|no-ipa-.*"
    r"|(no-)?var-tracking.*|(no-)?fat-lto-objects|use-linker-plugin|path-.*|diagnostics-path.*"
    r"|condition-coverage|module.*|lto=.*|profile-.*)|-m(no-)?(abm|prefer-avx\d+)|-static-lib\w+"
)
CLANG_FLAGS = ["-Wno-unknown-warning-option", "-Wno-ignored-optimization-argument"]
DIAGNOSTIC = re.compile(r"^(?P<place>/.*?:\d+):\d+: (?P<kind>error|warning): (?P<text>.*)$")


class Unit:
    """One translation unit and the command that compiles it, in words that clang knows."""

    def __init__(self, entry: dict[str, str], root: Path) -> None:
        self.directory = entry["directory"]
        self.file = Path(os.path.normpath(Path(self.directory, entry["file"])))
        self.name = self.file.relative_to(root).as_posix() if self.file.is_relative_to(root) else ""
        command = entry.get("arguments") or shlex.split(entry["command"])
        self.command = [flag for flag in command if not GCC_ONLY.fullmatch(flag)] + CLANG_FLAGS
        folders = [flag[2:] for flag in command if flag.startswith("-I") and len(flag) > 2]
        self.folders = tuple(os.path.normpath(Path(self.directory, folder)) for folder in folders)

    def key(self, root: Path, common: bytes) -> str:
        digest = hashlib.sha256(common + "\0".join(self.command).encode())
        for path in sorted(reached(self.file, self.folders, root)):
            digest.update(f"{path}\0{content(path)[0]}\0".encode())
        return digest.hexdigest()


@cache
def content(path: Path) -> tuple[str, tuple[str, ...]]:
    """A file's hash, and what it includes."""
    data = path.read_bytes()
    spelled = tuple(name for _, name in includes(data.decode("utf-8", errors="replace")))
    return hashlib.sha256(data).hexdigest(), spelled


@cache
def resolve(spelled: str, beside: Path, folders: tuple[str, ...]) -> Path | None:
    for folder in (beside, *folders):
        if (path := Path(os.path.normpath(Path(folder, spelled)))).is_file():
            return path
    return None


def reached(file: Path, folders: tuple[str, ...], root: Path) -> set[Path]:
    """The file and every header below the root that it includes, itself or through others."""
    seen, waiting = {file}, [file]
    while waiting:
        path = waiting.pop()
        for spelled in content(path)[1]:
            header = resolve(spelled, path.parent, folders)
            if header and header not in seen and header.is_relative_to(root):
                seen.add(header)
                waiting.append(header)
    return seen


def units(build: Path, root: Path) -> list[Unit]:
    """Each of our sources once, though several targets may compile it."""
    entries = json.loads((build / "compile_commands.json").read_text())
    found = {unit.name: unit for unit in (Unit(entry, root) for entry in entries)}
    return [unit for name, unit in sorted(found.items()) if name.startswith(tuple(f"{o}/" for o in OURS))]


def lint(program: str, unit: Unit, folder: Path) -> list[str]:
    """The lines of what clang-tidy found; none if all is well."""
    command = [program, "--quiet", "-p", str(folder), str(unit.file)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode == 0:
        return []
    return ran.stdout.splitlines() or [f"{unit.file}:1:1: error: {program}: {ran.stderr.strip()}"]


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--clang-tidy", default="clang-tidy", help="the program (%(default)s)")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count(), help="(%(default)s)")
    parser.add_argument("build", metavar="BUILD_DIR", type=Path)
    options = parser.parse_args()
    ...
