"""What is measured on a lab, and what the simulator says of it."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import statistics
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

OPERATION = "all_reduce"
# As in `hocket-bench tune` (bench/race.cpp), but for TIMES.
LARGE = 1 << 20  # larger sizes have a run of their own
TINY, TIMES = 16 << 10, 15  # up to there one run differs most from the next: so many times the rounds
LONG_CALL, VERY_LONG_CALL = 0.1, 0.5  # seconds: then there are few calls, and one round
TUNE_ROUNDS = 2  # more would take longest, and what was found is measured again
WITHOUT, WITH = "without a tuning file", "with a tuning file"  # what is chosen
BEST, SECOND = "fastest", "second"  # fixed algorithms


@dataclass(frozen=True)
class Lab:
    hosts: tuple[str, ...]
    rsh: str
    build: Path

    def launch(self, ranks: int) -> list[str]:
        return [str(self.build / "tools" / "hocket"), "run", "--hosts", ",".join(self.hosts[:ranks]),
                "-n", "1", "--rsh", self.rsh, "--no-tag-output", "-x", "HOCKET_ALGORITHM",
                "-x", "HOCKET_TUNING_FILE", "--"]

    @property
    def bench(self) -> str:
        return str(self.build / "bench" / "hocket-bench")


@dataclass
class Candidate:
    """An algorithm at a size, as `hocket plan explain` tells of it."""
    algorithm: str
    pieces: int
    measured: float
    simulated: float

    @property
    def name(self) -> str:
        """As rules have it."""
        return f"{self.algorithm}/{self.pieces}"

    @property
    def ratio(self) -> float:
        return self.simulated / self.measured


@dataclass
class Cell:
    ranks: int
    size: int
    chosen: str = ""  # with a tuning file
    candidates: list[Candidate] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=dict)  # in each round, by who it was

    def algorithm(self, who: str) -> str:
        """As rules have it; not known of what is chosen without a tuning file."""
        fixed = [each.name for each in self.candidates[:2]]
        return dict(zip((BEST, SECOND, WITH), [*fixed, self.chosen])).get(who, who)

    def time(self, who: str) -> float:
        """Of the algorithm, whoever had it: an algorithm has no regret for itself."""
        its = self.algorithm(who)
        return statistics.median(second for each, seconds in self.seconds.items()
                                 for second in seconds if self.algorithm(each) == its)

    @property
    def fastest(self) -> tuple[str, float]:
        """Of the fixed ones, when they took turns: which may be the one that was second before."""
        seconds, name = min((self.time(who), self.algorithm(who)) for who in (BEST, SECOND))
        return name, seconds

    @property
    def foretold(self) -> float:
        """By the simulator for the fastest, through what it took in turns."""
        name, seconds = self.fastest
        return next(each.simulated for each in self.candidates if each.name == name) / seconds

    def regret(self, who: str) -> float:
        return self.time(who) / self.fastest[1] - 1


def run(words: list[str], **variables: str) -> str:
    inherited = {name: text for name, text in os.environ.items() if "HOCKET" not in name}
    return subprocess.run(words, check=True, capture_output=True, text=True,
                          env={**inherited, **variables}).stdout


def tune(lab: Lab, ranks: int, sizes: tuple[int, ...], file: Path) -> None:
    launch = " ".join(lab.launch(ranks))
    run([lab.bench, "tune", "--launch", launch, "--operations", OPERATION, "--sizes",
         ",".join(map(str, sizes)), "--rounds", str(TUNE_ROUNDS), "--out", str(file)])


def explained(lab: Lab, ranks: int, size: int, file: Path) -> Cell:
    """What is chosen, and what was measured, the fastest first."""
    document = json.loads(run([str(lab.build / "tools" / "hocket"), "plan", "explain", OPERATION,
                               "-b", str(size), "-n", str(ranks), "--hosts", str(ranks),
                               "--tuning-file", str(file), "--json"]))
    found = [Candidate(each["algorithm"], each["pieces"], each["measured_seconds"] or 0,
                       each["simulated_seconds"] or 0) for each in document["candidates"]]
    chosen = next(each.name for each, candidate in zip(found, document["candidates"], strict=True)
                  if candidate["chosen"])
    told = [each for each in found if each.measured and each.simulated]
    return Cell(ranks, size, chosen, sorted(told, key=lambda each: each.measured))


def rules(cells: list[Cell], place: int) -> str:
    """HOCKET_ALGORITHM for the fastest at each size, or the next fastest."""
    return ",".join(f"{OPERATION}:{cell.size}-{cell.size}={cell.candidates[place].name}"
                    for cell in cells)


def chosen_rules(cells: list[Cell]) -> list[str]:
    """By which the same is chosen, without the file, for so many hosts: from halfway between two
    sizes to halfway to the next, in proportion."""
    borders = [math.isqrt(one.size * other.size) for one, other in itertools.pairwise(cells)]
    begins = ["0", *(str(border + 1) for border in borders)]
    ends = [*map(str, borders), ""]
    return [f"{OPERATION}:{begin}-{end}@{cell.ranks} = {cell.chosen}"
            for cell, begin, end in zip(cells, begins, ends, strict=True)]


def play(lab: Lab, cells: list[Cell], rounds: int, file: Path) -> None:
    """These sizes, in turns."""
    ranks = cells[0].ranks
    expected = cells[-1].candidates[0].measured
    words = [OPERATION, "--json", "--sizes", ",".join(str(cell.size) for cell in cells)]
    if expected > LONG_CALL:
        words += ["--check", "0", "--warmup", "1", "--iters", "1" if expected > VERY_LONG_CALL else "2"]
    sides = {WITHOUT: {}, WITH: {"HOCKET_TUNING_FILE": str(file)},
             BEST: {"HOCKET_ALGORITHM": rules(cells, 0)},
             SECOND: {"HOCKET_ALGORITHM": rules(cells, 1)}}
    for _ in range(1 if expected > VERY_LONG_CALL else rounds):
        for who, variables in sides.items():
            document = json.loads(run([*lab.launch(ranks), lab.bench, *words], **variables))
            for cell, row in zip(cells, document["rows"], strict=True):
                cell.seconds.setdefault(who, []).append(row["p50_s"])


def note(cell: Cell, file: Path) -> None:
    """In the file, what its two fastest took when they took turns."""
    text = file.read_text("ascii")
    for who, its in zip((BEST, SECOND), cell.candidates):
        pieces = f"(?:/{its.pieces}){'?' if its.pieces == 1 else ''}"
        line = rf"(?m)^(measured {OPERATION}:{cell.size}@{cell.ranks} {re.escape(its.algorithm)}{pieces} = ).*$"
        text, count = re.subn(line, rf"\g<1>{1e6 * cell.time(who):.2f}us", text)
        assert count == 1, its.name
    file.write_text(text, encoding="ascii")


def foretell(lab: Lab, cells: list[Cell], file: Path) -> None:
    """By numbers that are fitted to what tune measured, and to what was measured in turns. Another
    file than the one that was played; candidates stay in their order."""
    ranks = cells[0].ranks
    fitted = file.with_stem(f"{file.stem}-fitted")
    fitted.write_bytes(file.read_bytes())
    for cell in cells:
        note(cell, fitted)
    run([lab.bench, "tune", "--launch", " ".join(lab.launch(ranks)), "--operations", OPERATION,
         "--again", str(fitted), "--out", str(fitted)])
    for cell in cells:
        told = {each.name: each for each in explained(lab, ranks, cell.size, fitted).candidates}
        for each in cell.candidates:
            each.measured, each.simulated = told[each.name].measured, told[each.name].simulated


def measure(lab: Lab, ranks: int, sizes: tuple[int, ...], rounds: int, file: Path) -> list[Cell]:
    tune(lab, ranks, sizes, file)
    cells = [explained(lab, ranks, size, file) for size in sizes]
    tiny = [cell for cell in cells if cell.size <= TINY]
    small = [cell for cell in cells if TINY < cell.size <= LARGE]
    for together in [tiny, small, *([cell] for cell in cells if cell.size > LARGE)]:
        if together:
            play(lab, together, TIMES * rounds if together is tiny else rounds, file)
    foretell(lab, cells, file)
    return cells
