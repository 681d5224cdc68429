#!/usr/bin/env python3
"""Writes docs/algorithms.md and its drawings: what each algorithm does, costs, and where it wins.

Everything comes from the program (`hocket plan`, `hocket sim`) but the words and formulas in
introduction.md and algorithms.toml, and each of these formulas is compared with what the program
says. An algorithm without an entry there has its bounds at some sizes instead.
"""

from __future__ import annotations

import argparse
import filecmp
import sys
import tempfile
import textwrap
import tomllib
from pathlib import Path
from typing import Any

from entry import Entry, Wrong, read_entries
from formula import ATOM, CONDITIONS, NAMES, Formula, times
from program import Program
from truth import Skews, check
from winners import NETWORKS, Tables, tables, where

ROOT = Path(__file__).resolve().parents[2]
WORDS = Path(__file__).with_name("algorithms.toml")
INTRODUCTION = Path(__file__).with_name("introduction.md")
COMMAND = "tools/docs/algorithms.py build/tools/hocket"
BOUND_SIZES = (4, 7, 64)  # shown where there is no formula

Cases = list[dict[str, bool]]


def cases(*formulas: Formula | None) -> Cases:
    """The conditions that the formulas ask about, true and false."""
    found: Cases = [{}]
    for name in sorted(set().union(*(each.conditions() for each in formulas if each))):
        found = [{**case, name: holds} for case in found for holds in (True, False)]
    return found


def condition(case: dict[str, bool]) -> str:
    return " and ".join(CONDITIONS[name][0 if holds else 1] for name, holds in case.items())


def shown(formula: Formula) -> str:
    """For a table: one line, or one for each case."""
    lines = [(formula.show(**case)[0], condition(case)) for case in cases(formula)]
    if len(lines) == 2:
        return f"{lines[0][0]}, if {lines[0][1]}<br>else {lines[1][0]}"
    return "<br>".join(text + (f", if {when}" if when else "") for text, when in lines)


def paragraph(text: str) -> list[str]:
    return [*textwrap.wrap(text, 110, break_long_words=False, break_on_hyphens=False), ""]


def cost(entry: Entry, case: dict[str, bool]) -> str:
    """T = …, in one case."""
    symbols = {"rounds": "α", "line": "β", "inside": "β′", "reduced": "γ"}
    terms = []
    for key, symbol in symbols.items():
        if key not in entry.formulas or (key == "line" and entry.operation == "barrier"):
            continue
        factor = entry.formulas[key].show(**case)
        unit = symbol if key == "rounds" else f"m·{symbol}"
        terms.append(times(factor, (unit, ATOM))[0])
    bound = entry.row["bound"]
    is_at_most = bool(entry.words.get("at_most")) or not bound["rounds_are_exact"]
    return f"T {'≤' if is_at_most else '='} " + " + ".join(terms)


def bounds_shown(program: Program, entry: Entry, key: str) -> str:
    """Where there is no formula."""
    texts = []
    for n in BOUND_SIZES:
        bound = program.bounds(n, 1, 1)[entry.operation, entry.name]
        value = bound["blocks_sent"] / bound["blocks"] if key == "sent" else bound[key]
        texts.append(f"{value:.4g} (n = {n})")
    return ", ".join(texts)


def cell(program: Program, entry: Entry, key: str) -> str:
    if key == "sent" and entry.operation == "barrier":
        return "0"
    if key == "hops" and entry.formulas and key not in entry.words:
        return ""
    if key not in entry.formulas:
        return bounds_shown(program, entry, key)
    is_exact = key != "rounds" or entry.row["bound"]["rounds_are_exact"]
    sign = "" if is_exact and not entry.is_at_most(key) else "at most "
    return sign + shown(entry.formulas[key])


def overview(program: Program, entries: list[Entry]) -> list[str]:
    lines = [
        "| algorithm | rounds | hops, if fewer | sends, times m | uneven chunks | knows hosts |",
        "|---|---|---|---|---|---|",
    ]
    for entry in entries:
        cells = [cell(program, entry, key) for key in ("rounds", "hops", "sent")]
        cells += ["yes" if entry.row[key] else "" for key in ("allows_uneven", "knows_hosts")]
        lines.append(f"| [{entry.name}](#{anchor(entry)}) | " + " | ".join(cells) + " |")
    return lines


def anchor(entry: Entry) -> str:
    return f"{entry.operation}-{entry.name}"


def world(entry: Entry) -> list[str]:
    """Of the drawing, as words of the command."""
    draw = {"ranks": 6, **entry.words.get("draw", {})}
    if entry.row["takes_pieces"]:
        draw.setdefault("pieces", 4)
    if entry.row["knows_hosts"]:
        draw.setdefault("ranks_per_host", 3)
    words = ["-n", str(draw["ranks"])]
    for key in ("pieces", "ranks_per_host"):
        words += [f"--{key.replace('_', '-')}", str(draw[key])] if key in draw else []
    return words


def costs(program: Program, entry: Entry, skew: float) -> list[str]:
    if not entry.formulas:
        return [
            f"- Rounds: {bounds_shown(program, entry, 'rounds')}",
            f"- Sends, times m: {bounds_shown(program, entry, 'sent')}",
        ]
    lines = []
    parts = (entry.formulas.get(key) for key in ("rounds", "line", "inside", "reduced"))
    for case in cases(*parts):
        when = f", if {condition(case)}" if case else ""
        lines.append(f"- Cost{when}: `{cost(entry, case)}`")
    if skew > 1.01:
        lines.append(
            f"- Ranks get out of step: the bytes took up to {skew:.1f} times as long in simulations"
        )
    return lines


def section(program: Program, entry: Entry, won: str, skew: float) -> list[str]:
    show = " ".join(["hocket plan show", entry.operation, entry.name, *world(entry)])
    summary = entry.row["summary"]
    lines = [f'<a id="{anchor(entry)}"></a>', f"#### {entry.operation}: {entry.name}", ""]
    lines += paragraph(f"{summary[0].upper()}{summary[1:]}.")
    lines += paragraph(entry.words["idea"]) if "idea" in entry.words else []
    lines += [f"![{show}](algorithms/{anchor(entry)}.svg)", "", f"`{show}`", ""]
    lines += costs(program, entry, skew)
    return [*lines, f"- Wins: {won or 'in none of the cells above'}", ""]


def page(program: Program, entries: list[Entry], words: dict[str, Any], skews: Skews) -> str:
    networks = "\n".join(f"- *{each.name}*: {each.summary}" for each in NETWORKS)
    names = "\n".join(f"| {name} | {meaning} |" for name, meaning in NAMES.items())
    head = INTRODUCTION.read_text("utf-8")
    lines = [head.format(command=COMMAND, names=names, networks=networks)]
    for operation in dict.fromkeys(entry.operation for entry in entries):
        those = [entry for entry in entries if entry.operation == operation]
        lines += [f"## {operation}", ""]
        if operation in words.get("operations", {}):
            lines += paragraph(words["operations"][operation])
        lines += [*overview(program, those), ""]
        results: Tables = tables(program, operation, [entry.row for entry in those])
        lines += results.lines
        for entry in those:
            won = where(results, entry.name) if len(those) > 1 else "there is no other"
            lines += section(program, entry, won, skews.get((operation, entry.name), 1.0))
    return "\n".join(lines).rstrip() + "\n"


def write(program: Program, output: Path, words_file: Path) -> None:
    """The page and its drawings; drawings of what is no more are removed."""
    words = tomllib.loads(words_file.read_text("utf-8"))
    entries = read_entries(program, words)
    text = page(program, entries, words, check(program, entries))
    folder = output / "algorithms"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    (output / "algorithms.md").write_text(text, "utf-8")
    for entry in entries:
        drawing = str(folder / f"{anchor(entry)}.svg")
        program.run("plan", "show", entry.operation, entry.name, *world(entry), "--svg", drawing)


def differences(one: Path, other: Path) -> list[str]:
    """Files of either that are not the same in both."""
    names = {"algorithms.md"}
    names |= {f"algorithms/{path.name}" for path in (one / "algorithms").glob("*")}
    names |= {f"algorithms/{path.name}" for path in (other / "algorithms").glob("*")}
    same, *_ = filecmp.cmpfiles(one, other, names, shallow=False)
    return sorted(names.difference(same))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=Path, help="hocket, as it was built")
    parser.add_argument("--output", type=Path, default=ROOT / "docs", help="(%(default)s)")
    parser.add_argument("--words", type=Path, default=WORDS, help="(%(default)s)")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if it would")
    options = parser.parse_args()
    try:
        program = Program(options.program)
        if not options.check:
            write(program, options.output, options.words)
            return 0
        with tempfile.TemporaryDirectory() as folder:
            write(program, Path(folder), options.words)
            changed = differences(Path(folder), options.output)
    except Wrong as wrong:
        print(f"algorithms: {wrong}", file=sys.stderr)
        return 1
    if changed:
        files = ", ".join(f"docs/{each}" for each in changed[:3]) + (", …" if changed[3:] else "")
        print(f"algorithms: not as the program would write them: {files}\n    fix: {COMMAND}")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
