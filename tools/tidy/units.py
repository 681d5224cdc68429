"""Our translation units as a build folder compiles them, and what of ours each of them reads."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from argparse import ArgumentParser, Namespace
from functools import cache
from pathlib import Path

from tree import CPP, among, includes

OURS = "lib/* transports/* bench/* tools/* tests/* examples/*"

# The flags that decide what the code means; the others are g++'s own affair. A header that is included
# from the command line is precompiled, and each source includes what it uses by itself.
KEPT = re.compile(
    r"-([IDUx]|std=|isystem|iquote|pthread|m(arch|cpu|fpu|abi|avx|sse|fma|bmi|f16c)"
    r"|f(no-)?(exceptions|rtti|char8_t|signed-char|unsigned-char|openmp)$).*"
)
TWO_WORDS = re.compile(r"-([IDU]|isystem|iquote|include|x)")
UNITY = re.compile(r"-unity\d+\.c(pp)?$")
FOLDER = re.compile(r"-(?:I|isystem|iquote)(.+)")


class Unit:
    """A translation unit, and the part of its command that clang and g++ understand alike."""

    def __init__(self, entry: dict[str, str], root: Path) -> None:
        self.directory = entry["directory"]
        self.file = normal(self.directory, entry["file"])
        self.name = self.file.relative_to(root).as_posix() if self.file.is_relative_to(root) else ""
        words = iter(shlex.split(entry["command"]))
        flags = [word + next(words) if TWO_WORDS.fullmatch(word) else word for word in words]
        self.flags = [flag for flag in flags if KEPT.fullmatch(flag)]
        folders = (match[1] for flag in self.flags if (match := FOLDER.fullmatch(flag)))
        self.folders = tuple(normal(self.directory, folder) for folder in folders)
        self.passed = Path()  # exists once the unit is known to be well

    def command(self) -> dict[str, object]:
        compiler = "clang" if self.file.suffix == ".c" else "clang++"
        words = [compiler, *self.flags, "-c", str(self.file)]
        return {"directory": self.directory, "file": str(self.file), "arguments": words}

    def key(self, common: bytes, homes: tuple[Path, ...]) -> str:
        digest = hashlib.sha256(common + "\0".join(self.flags).encode())
        for path in sorted(reached(self.file, self.folders, homes)):
            digest.update(f"{path}\0{content(path)[0]}\0".encode())
        return digest.hexdigest()


def normal(*parts: str | Path) -> Path:
    return Path(os.path.normpath(Path(*parts)))


@cache
def content(path: Path) -> tuple[str, tuple[str, ...]]:
    """A file's hash, and what it includes."""
    data = path.read_bytes()
    spelled = tuple(name for _, name in includes(data.decode("utf-8", errors="replace")))
    return hashlib.sha256(data).hexdigest(), spelled


@cache
def resolve(spelled: str, folders: tuple[Path, ...]) -> Path | None:
    paths = (normal(folder, spelled) for folder in folders)
    return next((path for path in paths if path.is_file()), None)


def reached(file: Path, folders: tuple[Path, ...], homes: tuple[Path, ...]) -> set[Path]:
    """The file, and every header below our folders that it includes, itself or through others."""
    seen, waiting = {file}, [file]
    while waiting:
        path = waiting.pop()
        for spelled in content(path)[1]:
            header = resolve(spelled, (path.parent, *folders))
            if header and header not in seen and any(header.is_relative_to(home) for home in homes):
                seen.add(header)
                waiting.append(header)
    return seen


def files_of(entry: dict[str, str]) -> list[dict[str, str]]:
    """The entry for each of the sources that it compiles: they are several where Meson makes one file
    that includes them (-Dunity=on)."""
    if not UNITY.search(entry["file"]):
        return [entry]
    file = normal(entry["directory"], entry["file"])
    return [{**entry, "file": str(file.parent / spelled)} for spelled in content(file)[1]]


def read_units(build: Path, root: Path) -> list[Unit]:
    """Each of our sources once, though several targets may compile it."""
    entries = json.loads((build / "compile_commands.json").read_text())
    found = {unit.name: unit for each in entries for unit in (Unit(entry, root) for entry in files_of(each))}
    return [found[name] for name in sorted(found) if among(name, OURS) and name.endswith(CPP)]


def parse(parser: ArgumentParser) -> tuple[Namespace, Path, Path]:
    """The command line of a check that runs over a build folder: options, root and that folder."""
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count(), help="(%(default)s)")
    parser.add_argument("build", metavar="BUILD_DIR", type=Path)
    options = parser.parse_args()
    root, build = options.root.resolve(), options.build.resolve()
    if not (build / "compile_commands.json").is_file():
        parser.error(f"{build} is no build folder: it has no compile_commands.json")
    return options, root, build
