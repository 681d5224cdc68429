"""Runs one tier of checks, or a part of one: builds the folders that it needs, runs their tests, and
says what came of it and how long it took. `tools/check --help` explains the options."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import log
import report
import touched
from folder import Folder
from table import VARIANTS, Table, Test, read_table

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests/tiers.md"
# For how many seconds all fuzz targets run together, by tier.
FUZZ_S = {"check": 60, "ci": 30, "nightly": 600}
# The seconds that CI reserves for the demo, its last part.
DEMO_S = 60

# The folders of each tier, in this order. The last part of CI and of the nightly run is the demo.
FOLDERS = {"check": ("gcc",), "ci": ("gcc", "address", "thread"), "nightly": VARIANTS}


@dataclass
class Plan:
    """What is to run: the folders, and for each of them a choice among its tests."""

    table: Table
    tier: str
    folders: list[Folder]
    suites: list[str]  # only these; empty for those that the tier has
    added: tuple[tuple[str, str], ...] = ()  # (variant, suite or test): for what changed, while there is time
    commit: str = ""  # of a nightly run whose parts are to be written down
    record: touched.Record = field(default_factory=touched.Record)  # what was written down before

    def chosen(self, folder: Folder) -> list[Test]:
        def is_chosen(test: Test) -> bool:
            if self.suites:
                return test.suite in self.suites
            return self.table.runs(self.tier, folder.variant, test)

        return [test for test in folder.tests() if is_chosen(test) and not self.is_done(folder, test)]

    def is_done(self, folder: Folder, test: Test) -> bool:
        """In this run or, as a part of its suite, written down by another."""
        return test.name in folder.done or test.suite in self.record.begun.get(folder.variant, {})

    def may_record(self) -> bool:
        """Of a nightly run, as long as the files are those of its commit."""
        return bool(self.commit) and self.commit == touched.clean_commit(ROOT)

    def suites_of(self, folder: Folder) -> dict[str, set[str]]:
        """The names of the nightly run's tests, by suite, in the order of the table."""
        names: dict[str, set[str]] = {}
        for test in folder.tests():
            if self.table.runs("nightly", folder.variant, test):
                names.setdefault(test.suite, set()).add(test.name)
        return {suite: names[suite] for suite in sorted(names, key=self.table.place_of)}

    def not_yet_run(self, folder: Folder, name: str) -> list[Test]:
        """What is named so, a suite or a test, and has not run."""

        def is_left(test: Test) -> bool:
            is_named = name in (test.suite, test.name)
            return is_named and test not in folder.ran and self.table.runs("nightly", folder.variant, test)

        return [test for test in folder.tests() if is_left(test)]

    def prepare(self, folder: Folder) -> bool:
        """Sets the folder up and builds it."""
        return folder.configure() and folder.build(self.chosen(folder))


class Spent:
    """Where the time went, by the names of parts, in the order in which they began."""

    def __init__(self, packages_s: float) -> None:
        self.parts = {"packages": packages_s}

    @contextmanager
    def on(self, part: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self.parts[part] = self.parts.get(part, 0) + time.monotonic() - started

    def total(self) -> float:
        return sum(self.parts.values())

    def line(self, command: str) -> str:
        whole = round(self.total())
        parts = ", ".join(f"{part} {report.minutes(seconds)}" for part, seconds in self.parts.items())
        return f"{command} took {whole // 60} min {whole % 60:02d} s: {parts}"


class Background:
    """Prepares a folder while tests run, with the processor time that they leave: most tests wait."""

    def __init__(self, plan: Plan, folder: Folder) -> None:
        self.output = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self.process = multiprocessing.get_context("fork").Process(target=self._work, args=(plan, folder))
        self.process.start()

    def _work(self, plan: Plan, folder: Folder) -> None:
        os.setsid()  # a group of processes that end() can end
        try:
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        except OSError:
            pass  # then it takes its share of the processors
        for descriptor in (sys.stdout.fileno(), sys.stderr.fileno()):
            os.dup2(self.output.fileno(), descriptor)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # who starts us ends us
        sys.exit(0 if plan.prepare(folder) else 1)

    def is_prepared(self) -> bool:
        """Waits for the end, and prints what was printed."""
        self.process.join()
        self.output.seek(0)
        sys.stdout.write(self.output.read())
        return self.process.exitcode == 0

    def end(self) -> None:
        if self.process.is_alive():
            try:
                os.killpg(self.process.pid, signal.SIGTERM)
            except ProcessLookupError:
                self.process.terminate()  # it has no group yet
            self.process.join()


def run(plan: Plan, spent: Spent) -> list[str]:
    """Builds and tests each folder. Returns a line for each one that did not build or was cut off.

    The nightly run does one thing at a time, so that what it measures is measured in quiet; otherwise
    a folder is built while the tests of the one before it run.
    """
    broken = []
    waiting: Background | None = None
    try:
        for folder, following in zip(plan.folders, [*plan.folders[1:], None]):
            with spent.on("build"):
                started = time.monotonic()
                is_ready = waiting.is_prepared() if waiting else plan.prepare(folder)
                folder.build_s = time.monotonic() - started
            waiting = None
            folder.intro.clear()
            if following and plan.tier != "nightly":
                waiting = Background(plan, following)
            if not is_ready:
                broken.append(f"{folder.name} could not be built")
                continue
            with spent.on("tests"):
                run_tests(plan, folder)
            if folder.is_broken:
                broken.append(f"the tests in {folder.name} were cut off")
    finally:
        if waiting:
            waiting.end()
    return broken


def run_tests(plan: Plan, folder: Folder) -> None:
    """Runs what is chosen; of a commit's nightly run a suite at a time, to write down at once that it has
    passed: the rest may be cut off."""
    chosen = plan.chosen(folder)
    if not plan.commit:
        folder.test(chosen, FUZZ_S[plan.tier])
        return
    suites = plan.suites_of(folder)
    is_whole = bool(suites)
    for suite, names in suites.items():
        if tests := [each for each in chosen if each.suite == suite]:
            folder.test(tests, FUZZ_S[plan.tier])
        if folder.is_broken:
            return
        if suite in plan.record.begun.get(folder.variant, {}):
            continue
        counts = report.tally(folder, names)
        have_ended = counts["passed"] + counts["skipped"] == len(names)
        if not have_ended or not plan.may_record():
            is_whole = False
        else:
            seconds = sum(log.seconds(each, names) for each in folder.logs)
            touched.note_suite(ROOT, plan.commit, folder.variant, suite, seconds, counts)
    if is_whole:
        touched.note_part(ROOT, plan.commit, folder.variant, folder.build_s or 0)


def run_added(plan: Plan, spent: Spent) -> list[str]:
    """Runs the suites that the changed files add, each only if the tier's time limit allows it. Returns a
    line for each that could not be built or was cut off."""
    broken, skipped = [], []
    limit_s = 60 * plan.table.limits[plan.tier] - DEMO_S
    tested = {folder.variant: folder for folder in plan.folders if folder.ran}
    for variant, name in plan.added:
        folder = tested.get(variant)
        if not folder or not (tests := plan.not_yet_run(folder, name)):
            continue
        if spent.total() + plan.table.wall_seconds(variant, tests) > limit_s:
            skipped.append(f"{name} ({variant})")
            continue
        with spent.on("build"):
            is_ready = folder.build(tests)
        with spent.on("tests"):
            if is_ready:
                folder.test(tests, 0)
        if not is_ready or folder.is_broken:
            broken.append(f"{name}, for what has changed, in {folder.name}")
    if skipped:
        print(f"skipped for lack of time, although they concern changed files: {', '.join(skipped)}")
    return broken


def print_list(plan: Plan) -> int:
    for folder in plan.folders:
        if not folder.configure():
            return 1
        for test in plan.chosen(folder):
            print(f"{folder.name}: {test.suite} / {test.name}")
    return 0


def print_notes(plan: Plan) -> None:
    """What took longer than planned, what is left to a later tier, and what each folder took."""
    for folder in plan.folders:
        if folder.test_s is None:
            continue
        for line in report.over_budget(plan.table, folder):
            print(line)
    for folder in plan.folders:
        if folder.test_s is None:
            continue
        took = f"{folder.name}: waited {report.minutes(folder.build_s or 0)} for its build"
        print(f"{took}, ran {len(folder.ran)} tests in {report.minutes(folder.test_s)}")
        later = report.left_out(plan.table, plan.tier, folder, folder.ran)
        if later and not plan.suites:
            print(f"{folder.name}: not in this run, but in that of --nightly: {later}")
    absent = [variant for variant in VARIANTS if variant not in {f.variant for f in plan.folders}]
    if absent and not plan.suites:
        print(f"not in this run, but in that of --nightly: the builds {', '.join(absent)}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools/check")
    tier = parser.add_mutually_exclusive_group()
    tier.add_argument("--ci", dest="tier", action="store_const", const="ci")
    tier.add_argument("--nightly", dest="tier", action="store_const", const="nightly")
    parser.add_argument("--sanitize", choices=("address", "thread"))
    parser.add_argument("--compiler", choices=("gcc", "clang"), default="")
    parser.add_argument("--suite", action="append", default=[])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--packages-s", type=float, default=0.0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.tier and (options.sanitize or options.compiler or options.suite):
        parser.error("--ci and --nightly run all that belongs to them, and take no other choice")
    return options


def plan_of(options: argparse.Namespace, table: Table) -> Plan:
    if not options.tier and (options.sanitize or options.compiler or options.suite):
        # All that the table has for one folder, which is a part of a nightly run; or some suites of it.
        variant = options.sanitize or ("clang" if options.compiler == "clang" else "gcc")
        if options.suite == ["fuzz"]:
            variant = "address"
        usual = "clang" if variant in ("address", "clang") else "gcc"
        is_part = not options.suite and options.compiler in ("", usual)
        commit = (touched.clean_commit(ROOT) or "") if is_part else ""
        folder = Folder(ROOT, variant, options.compiler, commit=commit)
        record = touched.record_of(ROOT, commit)
        return Plan(table, "nightly", [folder], options.suite, commit=commit, record=record)
    tier = options.tier or "check"
    # A commit's nightly run that was cut off, or in which tests failed, goes on where it ended.
    commit = (touched.clean_commit(ROOT) or "") if tier == "nightly" else ""
    record = touched.record_of(ROOT, commit)
    folders = [
        Folder(ROOT, variant, commit=commit, is_quick=tier == "ci")
        for variant in FOLDERS[tier]
        if variant not in record.parts
    ]
    plan = Plan(table, tier, folders, [], commit=commit, record=record)
    if tier == "ci":
        changed, said = touched.changed_since_nightly(ROOT)
        plan.added = table.added(changed)
        added = ", ".join(f"{name} ({variant})" for variant, name in plan.added)
        print(f"{said}; while there is time, they add: {added or 'nothing'}")
    if record.parts:
        print(f"of the nightly run of this commit these parts have passed: {', '.join(record.parts)}")
    for variant, suites in record.begun.items():
        print(f"of the build {variant} these suites have passed: {', '.join(suites)}")
    if done := sum(len(folder.done) for folder in folders):
        print(f"goes on with the nightly run of this commit, in which {done} tests are done")
    return plan


def print_record(plan: Plan) -> None:
    """What tests/nightly.json says now."""
    passed = touched.record_of(ROOT, plan.commit).parts
    if not plan.commit:
        print(f"{touched.RECORD} is as it was: it can only name a commit whose files were all checked")
    elif missing := ", ".join(part for part in touched.PARTS if part not in passed):
        print(f"{touched.RECORD} names what has passed; {missing} are missing: start it again")
    else:
        for folder in plan.folders:
            folder.forget()
        print(f"{touched.RECORD} now names this commit; commit that file")


def main() -> int:
    options = parse()
    plan = plan_of(options, read_table(TABLE))
    if options.list:
        return print_list(plan)
    spent = Spent(options.packages_s)
    if earlier_s := sum(log.seconds(each) for folder in plan.folders for each in folder.logs):
        spent.parts["tests before it went on"] = earlier_s
    broken = run(plan, spent) + run_added(plan, spent)
    if options.tier and "demo" not in plan.record.parts:
        with spent.on("demo"):
            if subprocess.run(["tools/demo"], cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode:
                broken.append("tools/demo")
        if "tools/demo" not in broken and plan.may_record():
            touched.note_part(ROOT, plan.commit, "demo", spent.parts["demo"])
    print()
    counts = report.print_outcomes(plan.folders, broken)
    print_notes(plan)
    command = " ".join(["tools/check", *([f"--{options.tier}"] if options.tier else [])])
    print(spent.line(command))
    if (limit_s := 60 * plan.table.limits.get(plan.tier, 0)) and spent.total() > limit_s:
        print(f"slow: {command} is to take at most {limit_s / 60:.0f} min on two quiet processors")
    if options.tier == "nightly" or plan.commit:
        print_record(plan)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
