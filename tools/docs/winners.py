"""Which algorithm is the fastest where, as the simulator has it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from program import Program

SIZES = ("256 B", "4 KiB", "64 KiB", "1 MiB", "16 MiB")
SIZE_WORDS = ("-b", "256", "-e", "16M", "-f", "16")
TIE = 1.01  # times the fastest


@dataclass(frozen=True)
class Network:
    name: str
    summary: str
    ranks: tuple[int, ...]
    words: tuple[str, ...] = ()
    has_hosts: bool = False  # several of them, with several ranks each


NETWORKS = (
    Network("ethernet-10g", "TCP over 10 Gbit/s, a host for each rank", (4, 12, 32, 100)),
    Network(
        "infiniband-hdr",
        "RDMA over 200 Gbit/s, with 8 ranks a host, which share an adapter",
        (16, 48, 96),
        ("--ranks-per-host", "8"),
        has_hosts=True,
    ),
    Network("shared-memory", "all ranks on one host", (4, 8, 24, 64)),
)


@dataclass
class Tables:
    """Of one operation."""

    lines: list[str] = field(default_factory=list)
    # By algorithm, network and ranks: the sizes.
    won: dict[str, dict[str, dict[int, list[str]]]] = field(default_factory=dict)


def question(operation: str, network: Network, ranks: int | str) -> tuple[str, ...]:
    where = ("--network", network.name, *network.words)
    return ("sim", operation, "-n", str(ranks), *where, *SIZE_WORDS)


def label(run: dict[str, Any]) -> str:
    name = str(run["algorithm"])
    return f"{name} / {run['pieces']}" if run["pieces"] > 1 else name


def times(factor: float) -> str:
    digits = 2 if factor < 2 else 1 if factor < 10 else 0
    return f"{factor:.{digits}f} ×"


def ranked(runs: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], str]:
    """The fastest, and how far behind the next one is."""
    runs = sorted(runs, key=lambda run: run["seconds"])
    limit = TIE * runs[0]["seconds"]
    fastest = [run for run in runs if run["seconds"] <= limit]
    others = runs[len(fastest) :]
    return fastest, times(others[0]["seconds"] / runs[0]["seconds"]) if others else ""


def add_table(
    program: Program, operation: str, network: Network, candidates: set[str], into: Tables
) -> None:
    answers = {ranks: program.ask(*question(operation, network, ranks)) for ranks in network.ranks}
    lines = [
        f"| {network.name} | " + " | ".join(f"{ranks} ranks" for ranks in network.ranks) + " |",
        "|---|" + "---|" * len(network.ranks),
    ]
    for i, size in enumerate(SIZES):
        cells = []
        for ranks, answer in answers.items():
            runs = answer["sizes"][i]["algorithms"]
            assert all(run["simulated"] for run in runs), "too large to be simulated"
            runs = [run for run in runs if run["algorithm"] in candidates]
            fastest, margin = ranked(runs)
            for run in fastest:
                on = into.won.setdefault(run["algorithm"], {}).setdefault(network.name, {})
                on.setdefault(ranks, []).append(size)
            cells.append(f"**{', '.join(sorted(label(run) for run in fastest))}** {margin}".strip())
        lines.append(f"| {size} | " + " | ".join(cells) + " |")
    command = " ".join(("hocket", *question(operation, network, "$n")))
    loop = f"for n in {' '.join(str(ranks) for ranks in network.ranks)}; do {command}; done"
    into.lines += [*lines, "", "```", loop, "```", ""]


def tables(program: Program, operation: str, rows: list[dict[str, Any]]) -> Tables:
    """Algorithms that know hosts do not compete where there is nothing to know."""
    found = Tables()
    if len(rows) < 2 or operation == "barrier":
        return found
    program.ask_all([question(operation, each, ranks) for each in NETWORKS for ranks in each.ranks])
    found.lines += [f"### {operation}: where each wins", ""]
    for network in NETWORKS:
        names = {row["algorithm"] for row in rows if network.has_hosts or not row["knows_hosts"]}
        add_table(program, operation, network, names, found)
    return found


def span(sizes: list[str]) -> str:
    """Sizes in words: from the first to the last of those in a row."""
    runs: list[list[str]] = []
    for size in sizes:
        if runs and SIZES.index(size) == SIZES.index(runs[-1][-1]) + 1:
            runs[-1].append(size)
        else:
            runs.append([size])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)


def where(found: Tables, algorithm: str) -> str:
    """Where it is the fastest, or within 1 % of it; nothing, if nowhere."""
    texts = []
    for network, by_ranks in found.won.get(algorithm, {}).items():
        same: dict[str, list[str]] = {}
        for ranks, sizes in by_ranks.items():
            same.setdefault(span(sizes), []).append(str(ranks))
        parts = (f"{sizes} ({', '.join(ranks)} ranks)" for sizes, ranks in same.items())
        texts.append(f"*{network}* " + "; ".join(parts))
    return " · ".join(texts)
