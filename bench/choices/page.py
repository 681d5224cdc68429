"""What was measured as Markdown."""

from __future__ import annotations

from collections.abc import Callable

from measured import OPERATION, WITH, WITHOUT, Cell
from sizes import show_size
from table import row, show_time

CLOSE = 0.15
GOOD = 0.10


def grid(cells: list[Cell], show: Callable[[Cell], str]) -> list[str]:
    """Sizes below each other, hosts side by side."""
    hosts = sorted({cell.ranks for cell in cells})
    by_place = {(cell.size, cell.ranks): cell for cell in cells}
    lines = [row(["size", *(f"{count} hosts" for count in hosts)]), "|---" * (len(hosts) + 1) + "|"]
    for size in sorted({cell.size for cell in cells}):
        lines.append(row([show_size(size), *(show(by_place[size, count]) for count in hosts)]))
    return lines


def marked(text: str, is_good: bool) -> str:
    return text if is_good else f"🔴 **{text}**"


def regret(cell: Cell, who: str) -> str:
    return marked(f"{round(100 * cell.regret(who))} %", cell.regret(who) <= GOOD)


def fastest(cell: Cell) -> str:
    algorithm, seconds = cell.fastest
    return f"{algorithm.removesuffix('/1')}, {show_time(seconds)}"


def foretold(cell: Cell) -> str:
    return marked(f"{cell.foretold:.2f}", abs(cell.foretold - 1) <= CLOSE)


def summary(cells: list[Cell]) -> list[str]:
    lines = []
    for who in (WITHOUT, WITH):
        bad = [cell for cell in cells if cell.regret(who) > GOOD]
        worst = max(cells, key=lambda cell: cell.regret(who))
        lines.append(f"- What is chosen {who} takes at most {100 * GOOD:.0f} % longer than the fastest"
                     f" algorithm in {len(cells) - len(bad)} of {len(cells)} cells; at worst"
                     f" {round(100 * worst.regret(who))} % ({show_size(worst.size)},"
                     f" {worst.ranks} hosts).")
    close = sum(abs(cell.foretold - 1) <= CLOSE for cell in cells)
    everyone = [each for cell in cells for each in cell.candidates]
    near = sum(abs(each.ratio - 1) <= CLOSE for each in everyone)
    lines.append(f"- The simulator is within {100 * CLOSE:.0f} % of the fastest algorithm's time in {close} of"
                 f" {len(cells)} cells, and of what every algorithm took in {near} of"
                 f" {len(everyone)}.")
    return lines


def page(cells: list[Cell], found: dict[str, object], drawing: str) -> str:
    return "\n".join([
        "# The choice of algorithms, measured", "",
        f"By `bench/report choices`: {OPERATION} on an emulated cluster ([netlab](netlab.md): links of"
        f" 1 Gbit/s, cubic), Hocket {found['versions']['Hocket']}, {found['processors']} processors"
        f" ({found['processor']}) that all hosts share.", "",
        "For each number of hosts `hocket-bench tune` measured all algorithms and wrote a file."
        " Then what is chosen without and with that file took turns with the two algorithms that"
        " were fastest at each size. Times are medians of all rounds of an algorithm, whoever"
        " had it (but of what is chosen without the file only its own); what takes more than half a"
        " second is measured once. The simulator's numbers are fitted to what tune measured, and to what"
        " the two fastest took in turns.", "",
        *summary(cells), "",
        f"![Regret, and what is foretold through what is measured]({drawing})", "",
        "## With the tuning file: how much longer than the fastest algorithm", "",
        *grid(cells, lambda cell: regret(cell, WITH)), "",
        "## Without a tuning file", "",
        *grid(cells, lambda cell: regret(cell, WITHOUT)), "",
        "## The fastest algorithm", "",
        *grid(cells, fastest), "",
        "## What the simulator says of the fastest, through what that took in turns", "",
        *grid(cells, foretold), ""])
