"""Whether the formulas are true: compared with bounds that are proved, and with simulations."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

from formula import Formula
from program import Program, bounds_question

SIZES = range(2, 65)
PIECES_AND_HOSTS = ((1, 1), (2, 2), (3, 3), (4, 4), (8, 8), (5, 16))
TIMED_SIZES = (2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16)
TIMED_HOSTS = ((4, 2), (6, 2), (6, 3), (8, 2), (8, 4), (10, 2), (12, 4), (16, 4), (16, 8))
TIMED_BYTES = 4 * 720720  # that all numbers of blocks up to 16 divide
SKEW_MAX = 1.6

FREE = ("latency=0", "overhead=0", "host_latency=0", "host_overhead=0", "copy_speed=0")
LIMITS = {"line": "nic_bandwidth", "inside": "host_bandwidth", "reduced": "reduce_speed"}


class Wrong(Exception):
    """What was written is not so."""


class Entry(Protocol):
    row: dict
    words: dict
    formulas: dict[str, Formula]


def name(entry: Entry) -> str:
    return f"{entry.row['operation']} {entry.row['algorithm']}"


def refuse(entry: Entry, key: str, at: tuple[int, int, int], said: object, found: object) -> None:
    n, p, h = at
    raise Wrong(
        f"{key} of {name(entry)} is {float(said):g} by its formula in algorithms.toml, and {float(found):g} by "
        f"the program, with {n} ranks, {p} pieces and {h} ranks a host"
    )


def is_meant(entry: Entry, n: int, h: int) -> bool:
    """Formulas of algorithms that know hosts are for several even ones."""
    return not entry.row["knows_hosts"] or (h > 1 and n > h and n % h == 0)


def check_bounds(program: Program, entry: Entry) -> None:
    attained = set()
    for n in SIZES:
        for p, h in PIECES_AND_HOSTS:
            if not is_meant(entry, n, h):
                continue
            bound = program.bounds(n, p, h)[entry.row["operation"], entry.row["algorithm"]]
            found = {
                "rounds": bound["rounds"],
                "hops": bound["hops"],
                "sent": Fraction(bound["blocks_sent"], bound["blocks"]),
            }
            if "hops" not in entry.words and found["hops"] == found["rounds"]:
                del found["hops"]
            for key, value in found.items():
                said = entry.formulas[key].at(n, p, h)
                is_right = said >= value if key in entry.words.get("at_most", ()) else said == value
                if not is_right:
                    refuse(entry, key, (n, p, h), said, value)
                if said == value:
                    attained.add(key)
    for key in {"rounds", "sent"} - attained:
        raise Wrong(f"{key} of {name(entry)} is never as much as its formula in algorithms.toml says")


def question(operation: str, n: int, h: int, limit: str) -> tuple[str, ...]:
    """A simulation in which only one thing takes time: a byte a second."""
    words = ["sim", operation, "-n", str(n), "--pieces", "1", "--ranks-per-host", str(h)]
    words += ["-b", str(TIMED_BYTES), "-e", str(TIMED_BYTES)]
    speeds = (f"{each}={'1MB' if each == limit else '0'}" for each in LIMITS.values())
    for each in (*FREE, *speeds):
        words += ["--set", each]
    return tuple(words)


def timed_worlds(entry: Entry) -> list[tuple[int, int]]:
    return list(TIMED_HOSTS) if entry.row["knows_hosts"] else [(n, 1) for n in TIMED_SIZES]


def check_times(program: Program, entry: Entry) -> float:
    """How many times as long as the formula says the bytes take at most."""
    skew = 1.0
    for key in LIMITS.keys() & entry.formulas.keys():
        for n, h in timed_worlds(entry):
            sizes = program.ask(*question(entry.row["operation"], n, h, LIMITS[key]))["sizes"]
            row = next(
                each
                for each in sizes[0]["algorithms"]
                if each["algorithm"] == entry.row["algorithm"]
            )
            found = row["seconds"] * 1e6 / TIMED_BYTES
            ratio = found / float(entry.formulas[key].at(n, 1, h))
            is_right = abs(ratio - 1) < 1e-6
            if entry.words.get("skewed"):
                is_right = is_right or 1 < ratio < SKEW_MAX
                skew = max(skew, ratio)
            if key in entry.words.get("at_most", ()):
                is_right = is_right or ratio < 1
            if not is_right:
                refuse(entry, key, (n, 1, h), entry.formulas[key].at(n, 1, h), found)
    return skew


def check(program: Program, entries: list[Entry]) -> dict[str, float]:
    """Fails with Wrong. Gives how far simulations are from the formulas of skewed algorithms."""
    program.ask_all([bounds_question(n, p, h) for n in SIZES for p, h in PIECES_AND_HOSTS])
    known = [entry for entry in entries if entry.formulas]
    moving = [entry for entry in known if entry.row["operation"] != "barrier"]
    program.ask_all(
        sorted(
            {
                question(entry.row["operation"], n, h, LIMITS[key])
                for entry in moving
                for key in LIMITS.keys() & entry.formulas.keys()
                for n, h in timed_worlds(entry)
            }
        )
    )
    for entry in known:
        check_bounds(program, entry)
    return {
        f"{entry.row['operation']}-{entry.row['algorithm']}": check_times(program, entry)
        for entry in moving
    }
