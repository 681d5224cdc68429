"""What the tidy checks share: the files of the tree, their text, and how a finding is printed."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

HEADERS = (".h", ".hpp", ".cuh")
CPP = (*HEADERS, ".c", ".cpp", ".cu")
SCRIPTS = (".py", ".sh")
ROOT = Path(__file__).resolve().parents[2]

SKIPPED_FOLDERS = re.compile(r"build.*|__pycache__|\..*")  # where there is no git to ask

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^<>"\n]+)[>"]', re.MULTILINE)
COMMENT_OR_LITERAL = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    r'|\b(?:u8|[uUL])?R"(?P<end>[^\s()\\]{0,16})\(.*?\)(?P=end)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'",
    re.DOTALL,
)


@dataclass(frozen=True, order=True)
class Finding:
    """One broken rule, and what to do about it. Line 0 means the file as a whole."""

    path: str
    line: int
    rule: str
    text: str
    fix: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line or 1}: {self.rule}: {self.text}\n    fix: {self.fix}"


def arguments(description: str | None) -> argparse.ArgumentParser:
    """A command line with --root; the description is the calling script's docstring."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree to check (%(default)s)")
    return parser


def report(name: str, findings: list[Finding], summary: str) -> int:
    """Prints the findings, or the summary when there are none. Returns the exit status."""
    for finding in sorted(findings):
        print(finding)
    print(f"{name}: {len(findings)} to fix" if findings else f"{name}: {summary}")
    return 1 if findings else 0


def files(root: Path, suffixes: tuple[str, ...] = ()) -> list[str]:
    """Our files, relative to the root and sorted: what git tracks or would track.

    Without git (an unpacked release) every file outside build and hidden folders counts.
    """
    found = [name for name in _from_git(root) or _from_walk(root) if (root / name).is_file()]
    return sorted(
        name
        for name in set(found)
        if name.endswith(suffixes or "")
        and "__pycache__" not in name
        and not re.match(r"subprojects/[^/]+/", name)
    )


def _from_git(root: Path) -> list[str]:
    if not (root / ".git").exists():
        return []
    command = ["git", "-C", str(root), "ls-files", "-coz", "--exclude-standard"]
    listing = subprocess.run(command, capture_output=True, text=True, check=False)
    return [name for name in listing.stdout.split("\0") if name]


def _from_walk(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        folders[:] = [
            name
            for name in folders
            if not SKIPPED_FOLDERS.fullmatch(name) and not (here / name / "meson-private").exists()
        ]
        yield from ((here / name).relative_to(root).as_posix() for name in names)


def read(root: Path, path: str) -> str:
    """The text of a file; empty for one that is not text."""
    data = (root / path).read_bytes()
    if b"\0" in data:
        return ""
    return data.decode("utf-8", errors="replace")


def among(name: str, patterns: str) -> bool:
    """Whether one of the shell patterns fits; a `*` also matches slashes."""
    return any(fnmatchcase(name, pattern) for pattern in patterns.split())


def room(path: str) -> str:
    """lib/plan/ring.cpp is in `plan`, transports/tcp/lane.cpp in `transports/tcp`.

    Elsewhere the first folder is the room, but tools/program, proof and simulator are as rooms of lib/. A
    transport's conformance.cpp is a room of its own.
    """
    first, *rest = path.split("/")
    if first == "lib" and len(rest) > 1:
        return rest[0]
    if first == "transports" and len(rest) > 1:
        return path if rest[1:] == ["conformance.cpp"] else f"transports/{rest[0]}"
    if first == "tools" and rest[0] in ("program", "proof", "simulator"):
        return f"tools/{rest[0]}"
    if first == "include" and len(rest) > 1:
        return f"include/{rest[0]}"
    return first if rest else "."


def includes(text: str) -> Iterator[tuple[int, str]]:
    """(line, spelled path) of each #include; those in comments do not count."""
    line_of = line_finder(text)
    for match in INCLUDE.finditer(blank(text, literals=False)):
        yield line_of(match.start(1)), match[1]


def blank(text: str, literals: bool = True) -> str:
    """C++ text with its comments (and literals) turned into spaces; lines keep their number."""

    def spaces(match: re.Match[str]) -> str:
        found = match[0]
        keep = found[0] != "/" and not literals
        return found if keep else re.sub(r"[^\n]", " ", found)

    return COMMENT_OR_LITERAL.sub(spaces, text)


def line_finder(text: str) -> Callable[[int], int]:
    """A function from an offset in the text to its line number."""
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    return lambda offset: bisect_right(starts, offset)
