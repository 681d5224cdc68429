"""Which algorithm is the fastest where, as the simulator has it."""

from __future__ import annotations

from dataclasses import dataclass, field

from program import Program

SIZES = {"256": 256, "4 K": 4096, "64 K": 65536, "1 M": 1 << 20, "16 M": 1 << 24}
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
        (16, 48, 128),
        ("--ranks-per-host", "8"),
        has_hosts=True,
    ),
    Network("shared-memory", "all ranks on one host", (4, 8, 24, 64)),
)


@dataclass
class Tables:
    """Of one operation."""

    lines: list[str] = field(default_factory=list)
    won: dict[str, dict[str, dict[int, list[str]]]] = field(default_factory=dict)
    """By algorithm, network and ranks: the sizes."""


def question(operation: str, network: Network, ranks: int | str) -> tuple[str, ...]:
    where = ("--network", network.name, *network.words)
    return ("sim", operation, "-n", str(ranks), *where, *SIZE_WORDS)


def label(run: dict) -> str:
    return f"{run['algorithm']} / {run['pieces']}" if run["pieces"] > 1 else run["algorithm"]


def times(factor: float) -> str:
    return f"{factor:.2f} ×" if factor < 2 else f"{factor:.1f} ×" if factor < 10 else f"{factor:.0f} ×"


def ranked(runs: list[dict]) -> tuple[list[dict], str]:
    """The fastest, and how far behind the next one is."""
    runs = sorted(runs, key=lambda run: run["seconds"])
    limit = TIE * runs[0]["seconds"]
    fastest = [run for run in runs if run["seconds"] <= limit]
    others = runs[len(fastest) :]
    return fastest, times(others[0]["seconds"] / runs[0]["seconds"]) if others else ""


def table(program: Program, operation: str, network: Network, candidates: set[str], into: Tables) -> None:
    answers = {ranks: program.ask(*question(operation, network, ranks)) for ranks in network.ranks}
    lines = [
        f"| {network.name} | " + " | ".join(f"{ranks} ranks" for ranks in network.ranks) + " |",
        "|---|" + "---|" * len(network.ranks),
    ]
    for i, size in enumerate(SIZES):
        cells = []
        for ranks, answer in answers.items():
            runs = [run for run in answer["sizes"][i]["algorithms"] if run["algorithm"] in candidates]
            assert all(run["simulated"] for run in runs), "too large to be simulated"
            fastest, margin = ranked(runs)
            for run in fastest:
                on = into.won.setdefault(run["algorithm"], {}).setdefault(network.name, {})
                on.setdefault(ranks, []).append(size)
            cells.append(f"**{', '.join(sorted(label(run) for run in fastest))}** {margin}".strip())
        lines.append(f"| {size}B | " + " | ".join(cells) + " |")
    command = " ".join(("hocket", *question(operation, network, "$n")))
    loop = f"for n in {' '.join(str(ranks) for ranks in network.ranks)}; do {command}; done"
    into.lines += [*lines, "", "```", loop, "```", ""]


def tables(program: Program, operation: str, rows: list[dict]) -> Tables:
    """Algorithms that know hosts do not compete where there is nothing to know."""
    found = Tables()
    if len(rows) < 2 or operation == "barrier":
        return found
    program.ask_all([question(operation, each, ranks) for each in NETWORKS for ranks in each.ranks])
    found.lines += [f"### {operation}: where each wins", ""]
    for network in NETWORKS:
        names = {row["algorithm"] for row in rows if network.has_hosts or not row["knows_hosts"]}
        table(program, operation, network, names, found)
    return found


def span(sizes: list[str]) -> str:
    """Sizes in words: from the first to the last of those in a row."""
    order = list(SIZES)
    runs: list[list[str]] = []
    for size in sizes:
        if runs and order.index(size) == order.index(runs[-1][-1]) + 1:
            runs[-1].append(size)
        else:
            runs.append([size])
    return ", ".join(f"{run[0]}B" if len(run) == 1 else f"{run[0]}B to {run[-1]}B" for run in runs)


def where(found: Tables, algorithm: str) -> list[str]:
    """Where it is the fastest, or within 1 % of it: a text for each network."""
    texts = []
    for network, by_ranks in found.won.get(algorithm, {}).items():
        same: dict[str, list[str]] = {}
        for ranks, sizes in by_ranks.items():
            same.setdefault(span(sizes), []).append(str(ranks))
        parts = (f"{sizes} with {', '.join(ranks)} ranks" for sizes, ranks in same.items())
        texts.append(f"on {network} " + " and ".join(parts))
    return texts
