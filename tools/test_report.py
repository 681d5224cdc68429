#!/usr/bin/env python3
"""Sums up what `meson test` did in some build folders: the tests that failed or were skipped, in whole
or in part, with the reason that they printed, and last of all the totals.

A folder given with --broken did not build, or its test run ended early: that is one failure, and so is
a folder in which no test ran.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path

SKIPPED = re.compile(r"^\s*skipped: |\.\.\. skipped '")  # ours and Catch2's; Python's unittest
OUTCOMES = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}  # all others: failed


def results(folder: Path) -> list[dict]:
    """What the tests of a folder gave; of a test run that was cut off, what it had written."""
    log = folder / "meson-logs/testlog.json"
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    complete = []
    for line in lines:
        try:
            complete.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return complete


def reason(result: dict) -> str:
    """The last line that a skipped test printed; for one that failed, how it ended."""
    if result["result"] == "SKIP":
        printed = (result.get("stdout", "") + "\n" + result.get("stderr", "")).split("\n")
        return next((line.strip() for line in reversed(printed) if line.strip()), "it did not say why")
    status = result.get("returncode", 0)
    return {"FAIL": f"exit status {status}"}.get(result["result"], result["result"].lower())


def skipped_parts(result: dict) -> list[str]:
    """What a test that passed left out: the lines in which it said so."""
    printed = result.get("stdout", "") + "\n" + result.get("stderr", "")
    return sorted({line.strip() for line in printed.split("\n") if SKIPPED.search(line)})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broken", type=Path, action="append", default=[], metavar="FOLDER")
    parser.add_argument("folders", type=Path, nargs="*", metavar="FOLDER")
    options = parser.parse_args()
    counts: Counter[str] = Counter(passed=0, failed=0, skipped=0)
    for folder in options.folders:
        of_folder = results(folder)
        if not of_folder:
            counts["failed"] += 1
            print(f"failed: no test ran in {folder}")
        for result in of_folder:
            outcome = OUTCOMES.get(result["result"], "failed")
            counts[outcome] += 1
            name = result["name"].removeprefix("hocket:")
            if outcome == "passed":
                for part in skipped_parts(result):
                    print(f"skipped in part: {name} in {folder}: {part}")
            else:
                print(f"{outcome}: {name} in {folder}: {reason(result)}")
    for folder in options.broken:
        counts["failed"] += 1
        print(f"failed: {folder} could not be built, or its tests were cut off")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
