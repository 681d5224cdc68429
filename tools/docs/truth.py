"""Whether the formulas are true: compared with bounds that are proved, and with simulations."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from entry import Entry, Wrong
from program import Program, bounds_question

SIZES = range(2, 65)
PIECES_AND_HOSTS = ((1, 1), (2, 2), (3, 4), (4, 3), (8, 8))
TIMED_SIZES = (2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16)
TIMED_HOSTS = ((4, 2), (6, 2), (6, 3), (8, 2), (8, 4), (10, 2), (12, 4), (16, 4), (16, 8))
TIMED_BYTES = 4 * 720720  # that all numbers of blocks up to 16 divide
SKEW_MAX = 1.6
EXACT = 1e-6

World = tuple[int, int, int]  # ranks, pieces, ranks a host
Skews = dict[tuple[str, str], float]  # by operation and algorithm

FREE = ("latency=0", "overhead=0", "host_latency=0", "host_overhead=0", "copy_speed=0")
LIMITS = {"line": "nic_bandwidth", "inside": "host_bandwidth", "reduced": "reduce_speed"}


def refuse(entry: Entry, key: str, world: World, said: Fraction, found: Fraction | float) -> None:
    n, p, h = world
    raise Wrong(
        f"{key} of {entry.operation} {entry.name} is {float(said):g} by its formula in "
        f"algorithms.toml, and {float(found):g} by the program, with {n} ranks, {p} pieces and "
        f"{h} ranks a host"
    )


def is_meant(entry: Entry, n: int, h: int) -> bool:
    """Formulas of algorithms that know hosts are for several even ones."""
    if n < entry.words.get("from", 2):
        return False
    return not entry.row["knows_hosts"] or (h > 1 and n > h and n % h == 0)


def found_bounds(program: Program, entry: Entry, world: World) -> dict[str, Fraction]:
    bound = program.bounds(*world)[entry.operation, entry.name]
    found = {
        "rounds": Fraction(bound["rounds"]),
        "sent": Fraction(bound["blocks_sent"], bound["blocks"]),
    }
    if "hops" in entry.words or bound["hops"] != bound["rounds"]:
        found["hops"] = Fraction(bound["hops"])
    return found


def check_bounds(program: Program, entry: Entry) -> None:
    reached = set()
    for n, (p, h) in product(SIZES, PIECES_AND_HOSTS):
        if not is_meant(entry, n, h):
            continue
        for key, found in found_bounds(program, entry, (n, p, h)).items():
            said = entry.formulas[key].at(n, p, h)
            if said < found or (said > found and not entry.is_at_most(key)):
                refuse(entry, key, (n, p, h), said, found)
            if said == found:
                reached.add(key)
    for key in ("rounds", "sent"):
        if key not in reached:
            raise Wrong(
                f"{key} of {entry.operation} {entry.name} is never as much as its formula in "
                "algorithms.toml says"
            )


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


def questions(entry: Entry) -> dict[tuple[str, int, int], tuple[str, ...]]:
    """By formula, ranks and ranks a host: what to ask the simulator."""
    if entry.operation == "barrier":
        return {}
    return {
        (key, n, h): question(entry.operation, n, h, LIMITS[key])
        for key in LIMITS.keys() & entry.formulas.keys()
        for n, h in timed_worlds(entry)
    }


def check_times(program: Program, entry: Entry) -> float:
    """How many times as long as the formula says the bytes take at most."""
    skew = 1.0
    for (key, n, h), asked in questions(entry).items():
        runs = program.ask(*asked)["sizes"][0]["algorithms"]
        seconds = next(run["seconds"] for run in runs if run["algorithm"] == entry.name)
        found = seconds * 1e6 / TIMED_BYTES
        said = entry.formulas[key].at(n, 1, h)
        ratio = found / float(said) if said else 1 + found
        least = 0 if entry.is_at_most(key) else 1
        most = SKEW_MAX if entry.words.get("skewed") else 1
        if not least - EXACT < ratio < most + EXACT:
            refuse(entry, key, (n, 1, h), said, found)
        skew = max(skew, ratio)
    return skew


def check(program: Program, entries: list[Entry]) -> Skews:
    """Fails with Wrong. Gives how far simulations are from the formulas of skewed algorithms."""
    known = [entry for entry in entries if entry.formulas]
    worlds = product(SIZES, PIECES_AND_HOSTS)
    asked = {question for entry in known for question in questions(entry).values()}
    program.ask_all([bounds_question(n, p, h) for n, (p, h) in worlds] + sorted(asked))
    for entry in known:
        check_bounds(program, entry)
    return {(entry.operation, entry.name): check_times(program, entry) for entry in known}
