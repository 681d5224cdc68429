#!/usr/bin/env python3
"""all_reduce and steps of DistributedDataParallel through PyTorch, over Hocket and over Gloo in turns.

Needs a Python that has torch and the package `hocket` (docs/guide/pytorch.md). Takes half a minute a
round on 2 ranks. Ctrl-C ends it with nothing printed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "comparison"))

import plots
from place import Place
from results import cells, medians
from rounds import Match, Round
from sizes import show_size
from table import show_ratio, show_time

BACKENDS = ("Hocket", "gloo")
Result = dict[str, dict[int, dict[str, float]]]


def run(backend: str, size: int) -> Result:
    """By what was measured and its bytes: p50_s and p99_s."""
    rank = Path(__file__).with_name("rank.py")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen(
            [sys.executable, str(rank), backend.lower(), f"{folder}/store", str(each), str(size)],
            env=environment, stdout=subprocess.PIPE if each == 0 else None) for each in range(size)]
        told = ranks[0].communicate()[0]
        if any(each.wait() for each in ranks):
            sys.exit(f"compare: {backend} failed on {size} ranks")
    result: Result = {}
    for row in json.loads(told):
        result.setdefault(row["what"], {})[row["bytes"]] = row
    return result


def compare(size: int, rounds: int) -> list[Match]:
    matches: dict[str, Match] = {}
    for i in range(rounds):
        results: dict[str, Result] = {}
        for backend in BACKENDS if i % 2 == 0 else BACKENDS[::-1]:
            print(f"\r{size} ranks, round {i + 1} of {rounds}, {backend}  ", end="", file=sys.stderr)
            results[backend] = run(backend, size)
        for what in results["Hocket"]:
            match = matches.setdefault(what, Match(what, Place(size)))
            match.rounds.append(Round({backend: results[backend][what] for backend in BACKENDS}))
    print(file=sys.stderr)
    return list(matches.values())


def show(match: Match) -> list[str]:
    rows = []
    for cell in cells(match):
        p99 = medians(match, cell.size, "p99_s")
        rows.append([f"{match.operation}, {show_size(cell.size)}",
                     *(show_time(cell.time[each]) for each in BACKENDS), show_ratio(cell.ratios["gloo"]),
                     *(show_time(p99[each]) for each in BACKENDS), show_ratio(cell.p99_ratios["gloo"])])
    return [f"| {' | '.join(row)} |" for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rounds", type=int, default=5, help="the medians of so many are told")
    parser.add_argument("--plots", type=Path, help="a folder for drawings of all_reduce")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    document = []
    for size in options.ranks:
        matches = compare(size, options.rounds)
        document += [{"what": match.operation, "ranks": size, "bytes": cell.size, "p50_s": cell.time,
                      "p99_s": cell.p99, "ratio": cell.ratios["gloo"],
                      "p99_ratio": cell.p99_ratios["gloo"]} for match in matches for cell in cells(match)]
        for match in matches if options.plots else ():
            if len(cells(match)) > 1:
                options.plots.mkdir(parents=True, exist_ok=True)
                name = match.operation.replace(" ", "-")
                (options.plots / f"{name}-{size}.svg").write_text(plots.draw(match))
        if not options.json:
            print(f"{size} ranks: medians of {options.rounds} rounds, and Hocket's time through Gloo's\n")
            print("| | Hocket p50 | Gloo p50 | ratio | Hocket p99 | Gloo p99 | ratio |\n|" + "---|" * 7)
            print("\n".join(line for match in matches for line in show(match)) + "\n", flush=True)
    if options.json:
        print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
