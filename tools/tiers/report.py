"""Sums up what `meson test` did in some build folders: the tests that failed or were skipped, in whole
or in part, with the reason that they printed; the suites that took longer than planned; and totals.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator

from folder import FUZZ, Folder
from log import bare_name, outcome, results
from table import Table, Test

SKIPPED = re.compile(r"^\s*skipped: |\.\.\. skipped '")  # ours and Catch2's; Python's unittest

# Machines are noisy: a suite is reported when it takes clearly more than its budget.
SLOWER_MAX = 1.5
SLOWER_S = 10.0


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


def tally(folder: Folder, names: Container[str]) -> Counter[str]:
    """How many of these tests of a folder passed, failed and were skipped when they ran last, and how many
    failed before that."""
    ran = [result for log in folder.logs for result in results(log) if bare_name(result) in names]
    last = {bare_name(result): outcome(result) for result in ran}
    return Counter(last.values()) + Counter({"failed at first": len(ran) - len(last)})


def print_outcomes(folders: Iterable[Folder], broken: Iterable[str]) -> Counter[str]:
    """Prints what failed or was skipped. Returns how many tests passed, failed and were skipped, and how
    many failed before they ran again.

    A folder in which no test ran, and each line of `broken`, counts as one failure.
    """
    counts: Counter[str] = Counter(passed=0, failed=0, skipped=0)
    for folder in folders:
        last: dict[str, dict] = {}  # what each test gave when it ran last
        for log in folder.logs:
            of_log = results(log)
            if not of_log:
                counts["failed"] += 1
                print(f"failed: no test ran in {folder.name}")
            for result in of_log:
                name = bare_name(result)
                if name in last:
                    counts["failed at first"] += 1
                    print(f"failed at first: {name} in {folder.name}: {reason(last[name])}")
                last[name] = result
        for name, result in last.items():
            came = outcome(result)
            counts[came] += 1
            if came == "passed":
                for part in skipped_parts(result):
                    print(f"skipped in part: {name} in {folder.name}: {part}")
            else:
                print(f"{came}: {name} in {folder.name}: {reason(result)}")
    for line in broken:
        counts["failed"] += 1
        print(f"failed: {line}")
    return counts


def over_budget(table: Table, folder: Folder) -> Iterator[str]:
    """A line for each row of the table whose tests took clearly longer than their budget."""
    suites = {test.name: test.suite for test in folder.tests()}
    spent: Counter[int] = Counter()  # by the row's place in the table
    for log in folder.logs:
        for result in results(log):
            name = bare_name(result)
            row = table.row(Test(suites.get(name, ""), name))
            if row and row.suite != FUZZ:  # which runs for as long as it is told
                spent[table.rows.index(row)] += result.get("duration", 0)
    for index, seconds in spent.items():
        row = table.rows[index]
        place = row.places.get(folder.variant)
        if place and seconds > place.seconds * SLOWER_MAX + SLOWER_S:
            tests = "" if row.patterns == ("*",) else f" ({', '.join(row.patterns)})"
            yield (f"slow: {row.suite}{tests} took {seconds:.0f} s in {folder.name}, "
                   f"and its budget is {place.seconds:.0f} s")


def left_out(table: Table, tier: str, folder: Folder, ran: Iterable[Test]) -> str:
    """The suites of a folder of which tests are left to a later tier, each with their number."""
    chosen = set(ran)
    later = Counter(
        test.suite
        for test in folder.tests()
        if test not in chosen and table.runs("nightly", folder.variant, test)
    )
    return ", ".join(f"{suite} {count}" for suite, count in sorted(later.items()))


def minutes(seconds: float) -> str:
    """12:05 for 725 s."""
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02d}"
