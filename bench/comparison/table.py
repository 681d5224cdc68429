"""The comparison as Markdown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from peers import LIMITS, OPERATIONS, Peer
from results import OURS, Cell, cells, measure_in_words
from rounds import Match
from sizes import show_size


def show_time(seconds: float) -> str:
    micro = seconds * 1e6
    if micro < 100:
        return f"{micro:.3g} µs"
    if micro < 10_000:
        return f"{micro:.0f} µs"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def show_ratio(ratio: float | None, is_better_above: bool = False) -> str:
    """Where we lose, one sees it."""
    if ratio is None:
        return ""
    loses = ratio < 1 if is_better_above else ratio > 1
    return f"🔴 **{ratio:.2f}**" if loses else f"{ratio:.2f}"


def row(values: list[str]) -> str:
    return f"| {' | '.join(values)} |"


def names_in(match: Match, found: list[Cell]) -> list[str]:
    everyone = {name for cell in found for name in cell.time}
    order = [name for each in match.valid[:1] for name in each.rows]
    rest = sorted(everyone - {OURS}, key=lambda name: (order.index(name) if name in order else 99, name))
    return [OURS, *rest]


def times(match: Match) -> list[str]:
    found = cells(match)
    names = names_in(match, found)
    lines = [row(["size", *names, "best peer", "ratio", "p99 ratio"]), "|---" * (len(names) + 4) + "|"]
    for cell in found:
        best = cell.best_peer
        shown = [show_time(cell.time[name]) if name in cell.time else "" for name in names]
        lines.append(row([show_size(cell.size), *shown, best or "", show_ratio(cell.ratio),
                          show_ratio(cell.p99_ratios.get(best) if best else None)]))
    return lines


def streams(match: Match) -> list[str]:
    """GB a second, of sendrecv."""
    found = [cell for cell in cells(match) if cell.bandwidth]
    if not found:
        return []
    names = names_in(match, found)
    lines = ["", "Streams of many messages at once, GB/s (a ratio above 1 is a gain):", "",
             row(["size", *names, "best peer", "ratio"]), "|---" * (len(names) + 3) + "|"]
    for cell in found:
        others = {name: value for name, value in cell.bandwidth.items()
                  if name != OURS and name not in LIMITS}
        best = max(others, key=lambda name: others[name]) if others else ""
        shown = [f"{cell.bandwidth[name]:.3g}" if name in cell.bandwidth else "" for name in names]
        ratio = cell.bandwidth_ratios.get(best)
        lines.append(row([show_size(cell.size), *shown, best, show_ratio(ratio, True)]))
    return lines


def extra(match: Match, title: str, of: Callable[[Cell], dict[str, float]],
          show: Callable[[float], str]) -> list[str]:
    """Something else by size and name, where it was measured."""
    found = [cell for cell in cells(match) if of(cell)]
    if not found:
        return []
    names = names_in(match, found)
    lines = ["", f"{title}:", "", row(["size", *names]), "|---" * (len(names) + 1) + "|"]
    lines += [row([show_size(cell.size), *(show(of(cell)[name]) if name in of(cell) else ""
                                           for name in names)]) for cell in found]
    return lines


def peaks(match: Match) -> list[str]:
    return extra(match, "Peak memory of the largest process, MiB", lambda cell: cell.peak,
                 lambda value: f"{value / (1 << 20):.1f}")


def costs(match: Match) -> list[str]:
    """Where each rank has a host of its own."""
    if not match.place.hosts:
        return []
    return [*extra(match, "Processor time of a call, of the rank that needs most",
                   lambda cell: cell.cpu, show_time),
            *extra(match, "Bytes that the host sends which sends most, with headers, a call",
                   lambda cell: cell.wire, lambda value: f"{value:,.0f}")]


def section(match: Match, plot: str) -> list[str]:
    where = "hosts of an emulated cluster, a rank each" if match.place.hosts else "ranks"
    lines = [f"### {match.operation}, {match.place.ranks} {where}", ""]
    if not match.valid:
        return [*lines, "No round is valid: the processors moved in each.", ""]
    lines += [f"{measure_in_words(match)}, median of {len(match.valid)} rounds"
              f" ({len(match.rounds) - len(match.valid)} void).", "", *times(match)]
    lines += [*streams(match), *peaks(match), *costs(match)]
    lines += ["", *(f"{name}: {why}." for name, why in match.absent.items())]
    return [*lines, f"![{match.operation}, {match.place.ranks} ranks]({plot})", ""]


def losses(matches: list[Match]) -> list[str]:
    """Every cell in which a peer is faster."""
    lines = []
    for match in matches:
        for cell in cells(match):
            if cell.best_peer and cell.ratio is None:
                lines.append(f"- {match.operation}, {match.place.ranks} ranks, "
                             f"{show_size(cell.size)}: Hocket gave no result")
            elif cell.ratio is not None and cell.ratio > 1:
                lines.append(f"- {match.operation}, {match.place.ranks} ranks, "
                             f"{show_size(cell.size)}: {cell.ratio:.2f} of {cell.best_peer}'s time")
    return lines


def who(everyone: list[Peer], versions: dict[str, str]) -> list[str]:
    lines = [row(["who", "how", "version"]), "|---|---|---|"]
    for peer in everyone:
        version = versions.get(peer.name, "") if peer.is_here else f"not here: {peer.absence}"
        lines.append(row([peer.name, peer.how, version]))
    return lines


def page(matches: list[Match], everyone: list[Peer], conditions: dict[str, Any],
         plots: dict[int, str], command: str) -> str:
    """By operation, and then by ranks; plots by the place of their match."""
    versions = conditions["versions"]
    lost = losses(matches)
    cells_in_all = sum(1 for match in matches for cell in cells(match) if cell.best_peer)
    lines = [
        "# Hocket beside its peers",
        "",
        f"Written by `{command}`. All take turns in each round; a *ratio* is Hocket's time through that"
        " of the fastest peer of the row, the median of the ratios of the rounds, so that less than 1 is"
        " faster. f32, sum, out of place but for broadcast, one call after the other, checked.",
        "",
        f"{conditions['processor']}, {conditions['processors']} processors, Linux"
        f" {conditions['kernel']}, congestion control `{conditions['congestion_control']}` for all,"
        f" huge pages: {conditions['huge_pages']}; {conditions['compiler']}; load at the beginning"
        f" {conditions['load']:.2f}.",
        "",
        *who(everyone, versions),
        "",
        f"**{cells_in_all - len(lost)} of {cells_in_all} cells are ours.**"
        + (" The others:" if lost else ""),
        "",
        *lost,
        "",
    ]
    order = sorted(range(len(matches)), key=lambda i: (OPERATIONS.index(matches[i].operation),
                                                       matches[i].place.ranks))
    for i in order:
        lines += section(matches[i], plots[i])
    return "\n".join(lines).rstrip() + "\n"
