"""Medians over rounds, and ratios of what was measured in the same round."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

from peers import LIMITS, Hocket
from rounds import Match

OURS = Hocket.name
# What goes one way only lets a sender run ahead: then most calls find their bytes there already, and
# the few that wait for several at once take the time. Of these the mean says more.
ONE_WAY = ("broadcast",)


def measure_of(match: Match) -> str:
    return "time_s" if match.operation in ONE_WAY else "p50_s"


def measure_in_words(match: Match) -> str:
    if match.operation == "start":
        return "From the command to its end, with a small all_reduce"
    return ("mean" if match.operation in ONE_WAY else "p50") + " of the slowest rank"


@dataclass(frozen=True)
class Cell:
    """Of one size: seconds by name, and Hocket's time to theirs."""

    size: int
    time: dict[str, float]  # measure_of(match)
    p99: dict[str, float]
    bandwidth: dict[str, float]  # of streams, bytes a second
    peak: dict[str, float]  # of the largest process, bytes; of start only
    cpu: dict[str, float]  # of the rank that needs most, seconds a call
    wire: dict[str, float]  # of the host that sends most, bytes a call
    ratios: dict[str, float]  # of the time, the median over rounds
    p99_ratios: dict[str, float]
    bandwidth_ratios: dict[str, float]

    @property
    def best_peer(self) -> str | None:
        """The fastest but us, and but for the limit."""
        others = {name: time for name, time in self.time.items()
                  if name != OURS and name not in LIMITS}
        return min(others, key=lambda name: others[name]) if others else None

    @property
    def ratio(self) -> float | None:
        return self.ratios.get(self.best_peer) if self.best_peer else None


def medians(match: Match, size: int, key: str) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for each in match.valid:
        for name, rows in each.rows.items():
            if size in rows and key in rows[size]:
                values.setdefault(name, []).append(rows[size][key])
    return {name: median(found) for name, found in values.items()}


def ratios(match: Match, size: int, key: str) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for each in match.valid:
        ours = each.rows.get(OURS, {}).get(size, {}).get(key)
        for name, rows in each.rows.items():
            theirs = rows.get(size, {}).get(key)
            if name != OURS and ours and theirs:
                found.setdefault(name, []).append(ours / theirs)
    return {name: median(values) for name, values in found.items()}


def cells(match: Match) -> list[Cell]:
    sizes = {size for each in match.valid for rows in each.rows.values() for size in rows}
    return [
        Cell(
            size=size,
            time=medians(match, size, measure_of(match)),
            p99=medians(match, size, "p99_s"),
            bandwidth=medians(match, size, "bandwidth_gb_s"),
            peak=medians(match, size, "peak_bytes"),
            cpu=medians(match, size, "cpu_s"),
            wire=medians(match, size, "wire_bytes"),
            ratios=ratios(match, size, measure_of(match)),
            p99_ratios=ratios(match, size, "p99_s"),
            bandwidth_ratios=ratios(match, size, "bandwidth_gb_s"),
        )
        for size in sorted(sizes)
    ]


def as_json(match: Match) -> dict[str, Any]:
    return {
        "operation": match.operation,
        "ranks": match.place.ranks,
        "hosts": list(match.place.hosts[: match.place.ranks]),
        "rounds": len(match.valid),
        "void_rounds": len(match.rounds) - len(match.valid),
        "absent": match.absent,
        "core_distances_us": [each.distances_us for each in match.rounds],
        "loads": [each.load_before for each in match.rounds],
        "sizes": [
            {
                "bytes": cell.size,
                "best_peer": cell.best_peer,
                "ratio": cell.ratio,
                measure_of(match): cell.time,
                "p99_s": cell.p99,
                "bandwidth_gb_s": cell.bandwidth,
                "peak_bytes": cell.peak,
                "cpu_s": cell.cpu,
                "wire_bytes": cell.wire,
                "ratios": cell.ratios,
                "p99_ratios": cell.p99_ratios,
                "bandwidth_ratios": cell.bandwidth_ratios,
            }
            for cell in cells(match)
        ],
        "by_round": [each.rows for each in match.valid],
    }
