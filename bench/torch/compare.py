#!/usr/bin/env python3
"""all_reduce and a step of DistributedDataParallel through PyTorch, over Hocket and over Gloo in turns.

Needs a Python that has torch and the package `hocket` (docs/guide/pytorch.md).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BACKENDS = ("hocket", "gloo")


def run(backend: str, size: int) -> dict[str, dict[str, float]]:
    rank = Path(__file__).with_name("rank.py")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen(
            [sys.executable, str(rank), backend, f"{folder}/store", str(each), str(size)],
            env=environment, stdout=subprocess.PIPE if each == 0 else None) for each in range(size)]
        told = ranks[0].communicate()[0]
        if any(each.wait() for each in ranks):
            sys.exit(f"compare: {backend} failed on {size} ranks")
    return json.loads(told)


def median_of(rounds: list[dict[str, dict[str, float]]], what: str, which: str) -> float:
    return statistics.median(each[what][which] for each in rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rounds", type=int, default=5, help="the medians of so many are told")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    document = {}
    for size in options.ranks:
        rounds = {backend: [] for backend in BACKENDS}
        for i in range(options.rounds):
            for backend in BACKENDS if i % 2 == 0 else BACKENDS[::-1]:
                print(f"\r{size} ranks, round {i + 1} of {options.rounds}, {backend}  ", end="",
                      file=sys.stderr)
                rounds[backend].append(run(backend, size))
        print(file=sys.stderr)
        rows = {what: {backend: {which: round(median_of(rounds[backend], what, which), 1)
                                 for which in ("p50", "p99")} for backend in BACKENDS}
                for what in rounds["hocket"][0]}
        document[size] = rows
        if options.json:
            continue
        print(f"{size} ranks, microseconds\n")
        print("| | Hocket p50 | Gloo p50 | ratio | Hocket p99 | Gloo p99 |\n|---|---|---|---|---|---|")
        for what, row in rows.items():
            ours, theirs = row["hocket"], row["gloo"]
            print(f"| {what} | {ours['p50']} | {theirs['p50']} | {ours['p50'] / theirs['p50']:.2f} | "
                  f"{ours['p99']} | {theirs['p99']} |")
        print()
    if options.json:
        print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
