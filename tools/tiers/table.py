"""The tables of tests/tiers.md: which tests run in which tier, and what a change adds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

TIERS = ("check", "ci", "nightly")  # each one runs all that the one before it runs
VARIANTS = ("gcc", "clang", "address", "thread")  # how a build folder is compiled
NEVER = "–"


class TableError(Exception):
    """A table that can't be read; says where and what is wrong."""


@dataclass(frozen=True)
class Test:
    """A test as Meson names it; its suite is the first one that Meson lists."""

    suite: str
    name: str


@dataclass(frozen=True)
class Place:
    """The first tier in which tests run, and the seconds that they may take together."""

    tier: str
    seconds: float


@dataclass(frozen=True)
class Row:
    suite: str
    patterns: tuple[str, ...]
    places: dict[str, Place]  # by variant; a variant that is not here never runs these tests

    def fits(self, test: Test) -> bool:
        return test.suite == self.suite and fits(test.name, self.patterns)


@dataclass(frozen=True)
class Rule:
    """When one of these files has changed, CI also runs these: pairs of a variant and a name, which is
    that of a suite or of a test."""

    patterns: tuple[str, ...]
    adds: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Table:
    limits: dict[str, float]  # minutes of each tier
    rows: tuple[Row, ...]
    rules: tuple[Rule, ...]

    def row(self, test: Test) -> Row | None:
        """The first row that fits; None for a test of a suite that the table does not know."""
        return next((row for row in self.rows if row.fits(test)), None)

    def place_of(self, suite: str) -> int:
        """The number of the suite's first row; suites without one come last."""
        return next((i for i, row in enumerate(self.rows) if row.suite == suite), len(self.rows))

    def runs(self, tier: str, variant: str, test: Test) -> bool:
        """Whether the tier runs the test in this variant, whatever has changed.

        A test without a row runs wherever it is built; `tiers_test.py` demands the row.
        """
        row = self.row(test)
        if row is None:
            return True
        place = row.places.get(variant)
        return place is not None and TIERS.index(place.tier) <= TIERS.index(tier)

    def wall_seconds(self, variant: str, tests: Iterable[Test]) -> float:
        """How long they may take: a third of what their rows allow, as three run at a time."""
        rows = [row for row in self.rows if any(self.row(test) is row for test in tests)]
        return sum(row.places[variant].seconds for row in rows) / 3

    def added(self, changed: Iterable[str] | None) -> tuple[tuple[str, str], ...]:
        """What these files add to CI, in the order of the page; None stands for all files there are."""
        files = None if changed is None else list(changed)
        return tuple(dict.fromkeys(
            added
            for rule in self.rules
            if files is None or any(fits(file, rule.patterns) for file in files)
            for added in rule.adds
        ))


def fits(name: str, patterns: Iterable[str]) -> bool:
    """Whether one of the shell patterns fits; a `*` also matches slashes."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def read_table(path: Path) -> Table:
    """Reads the three tables of a Markdown page, each known by the first word of its header."""
    limits: dict[str, float] = {}
    rows: list[Row] = []
    rules: list[Rule] = []
    for number, header, cells in _table_lines(path.read_text("utf-8")):
        where = f"{path.name}:{number}"
        if header[0] == "tier":
            limits[_one_of(cells[0], TIERS, where)] = _number(cells[1], where)
        elif header[0] == "suite":
            rows.append(_row(header, cells, where))
        elif header[0] == "changed files":
            rules.append(Rule(_words(cells[0]), _adds(cells[1], where)))
    if not (limits and rows and rules):
        raise TableError(f"{path}: it needs three tables: tiers, suites and changed files")
    return Table(limits, tuple(rows), tuple(rules))


def _table_lines(text: str) -> Iterator[tuple[int, list[str], list[str]]]:
    """(line number, header, cells) of each row of each table."""
    header: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            header = []
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not header:
            header = cells
        elif not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            if len(cells) != len(header):
                raise TableError(f"tiers.md:{number}: {len(cells)} cells under {len(header)} headers")
            yield number, header, cells


def _words(cell: str) -> tuple[str, ...]:
    """A list separated by commas, each word of it perhaps in backquotes."""
    return tuple(word for part in cell.split(",") if (word := part.strip().strip("`")))


def _row(header: list[str], cells: list[str], where: str) -> Row:
    places = {}
    for variant, cell in list(zip(header, cells))[2:]:
        if cell in ("", NEVER):
            continue
        tier, _, seconds = cell.partition(" ")
        places[_one_of(variant, VARIANTS, where)] = Place(
            _one_of(tier, TIERS, where), _number(seconds, where)
        )
    return Row(cells[0].strip("`"), _words(cells[1]), places)


def _adds(cell: str, where: str) -> tuple[tuple[str, str], ...]:
    """`address: fuzz, unit; gcc: docs` as pairs of a variant and a name."""
    pairs = []
    for part in () if cell == NEVER else cell.split(";"):
        variant, colon, names = part.partition(":")
        if not colon or not _words(names):
            raise TableError(f"{where}: '{part.strip()}' is not of the form `variant: suite, suite`")
        variant = _one_of(variant.strip(), VARIANTS, where)
        pairs += [(variant, name) for name in _words(names)]
    return tuple(pairs)


def _one_of(word: str, known: tuple[str, ...], where: str) -> str:
    if word not in known:
        raise TableError(f"{where}: '{word}' is none of {', '.join(known)}")
    return word


def _number(word: str, where: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise TableError(f"{where}: '{word}' is not a number") from None
