"""How good the choice of algorithms is, and how well it is foretold, on the hosts of tools/netlab:
bench/report choices."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(1, str(ROOT / "bench" / "comparison"))

import drawing
from machine import conditions
from measured import Lab, chosen_rules, measure
from page import CLOSE, GOOD, page
from place import lab_of_environment
from sizes import numbers


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/choices", description=__doc__)
    parser.add_argument("--hosts", type=numbers, default=(2, 3, 4, 5, 6, 7, 8), help="such as 2,4,8")
    parser.add_argument("--sizes", type=numbers, help="such as 8,4K,2M",
                        default=numbers("1K,4K,16K,64K,512K,4M,32M,256M"))
    parser.add_argument("--rounds", type=int, default=3, help="in which all take their turn")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="the build folder")
    parser.add_argument("--out", type=Path, default=ROOT / "build", help="the folder for the page")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    hosts, rsh = lab_of_environment()
    if len(hosts) < max(options.hosts):
        raise SystemExit("choices: to be run inside tools/netlab, with so many hosts"
                         f" ({max(options.hosts)})")
    folder = options.out / "choices"
    folder.mkdir(parents=True, exist_ok=True)
    lab = Lab(hosts, rsh, options.build.resolve())
    found = conditions(options.build)
    cells, rules = [], []
    for count in options.hosts:
        print(f"{count} hosts", flush=True)
        cells += measure(lab, count, options.sizes, options.rounds, folder / f"{count}-hosts.txt")
        rules += chosen_rules(cells[-len(options.sizes):])
    (folder / "rules.txt").write_text("\n".join(["hocket-tuning 1", *rules, ""]), encoding="ascii")
    (folder / "all.json").write_text(json.dumps(
        {"conditions": found, "cells": [asdict(cell) for cell in cells]}, indent=1) + "\n",
        encoding="utf-8")
    (folder / "choices.svg").write_text(drawing.draw(cells, GOOD, CLOSE), encoding="utf-8")
    text = page(cells, found, "choices/choices.svg")
    (options.out / "choices.md").write_text(text, encoding="utf-8")
    print(f"\n{options.out / 'choices.md'}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"choices: {error}\n{error.stderr}")
