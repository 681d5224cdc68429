#!/usr/bin/env python3
"""The tables of tests/tiers.md hold together, and so do the rules that read them."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/tiers"))
sys.path.insert(0, str(ROOT / "tools/tidy"))

import log  # noqa: E402
import report  # noqa: E402
import touched  # noqa: E402
import tree  # noqa: E402
from check import FOLDERS, Plan, Spent, plan_of, run_added, run_tests  # noqa: E402
from folder import Folder  # noqa: E402
from table import TIERS, VARIANTS, TableError, Test, fits, read_table  # noqa: E402

BUILD = Path()  # the argument
PAGE = ROOT / "tests/tiers.md"

SMALL = """
| tier | minutes |
|---|---|
| check | 1 |

| suite | tests | gcc | clang | address | thread |
|---|---|---|---|---|---|
| `unit` | `engine`, `store *` | check 5 | nightly 5 | ci 10 | ci 30 |
| `unit` | `*` | ci 20 | nightly 20 | nightly 40 | – |

| changed files | also run |
|---|---|
| `lib/wire/*`, `lib/store/*` | address: fuzz, unit; gcc: docs |
| `*.md` | – |
"""


class Parts(unittest.TestCase):
    """What is chosen, and whether it counts as a part of a commit's nightly run."""

    def commit_of(self, **chosen: object) -> str:
        usual = {"tier": None, "sanitize": None, "compiler": "", "suite": []}
        with mock.patch("touched.clean_commit", return_value="c0ffee"):
            return plan_of(argparse.Namespace(**{**usual, **chosen}), read_table(PAGE)).commit

    def test_a_whole_folder_is_one(self) -> None:
        for chosen in ({"sanitize": "address"}, {"sanitize": "thread"}, {"compiler": "clang"},
                       {"compiler": "gcc"}, {"tier": "nightly"}):
            self.assertEqual(self.commit_of(**chosen), "c0ffee", chosen)

    def test_less_is_none(self) -> None:
        for chosen in ({"suite": ["unit"]}, {"sanitize": "address", "suite": ["unit"]},
                       {"sanitize": "address", "compiler": "gcc"}, {}):
            self.assertEqual(self.commit_of(**chosen), "", chosen)


class Tables(unittest.TestCase):
    """The page itself, against the tree and against the tests of this build folder."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.table = read_table(PAGE)
        intro = json.loads((BUILD / "meson-info/intro-tests.json").read_text("utf-8"))
        cls.tests = [Test(each["suite"][0].split(":")[-1], each["name"]) for each in intro]

    def test_each_test_has_a_row_and_a_tier(self) -> None:
        for test in self.tests:
            with self.subTest(test=test):
                row = self.table.row(test)
                self.assertIsNotNone(row, "tests/tiers.md needs a row for it")
                self.assertTrue(row.places, "tests/tiers.md runs it in no build")

    def test_names_are_unique(self) -> None:
        """Meson can't run one of two tests with the same name, whatever their suites are."""
        names = [test.name for test in self.tests]
        self.assertEqual(sorted(set(names)), sorted(names))

    def test_the_nightly_run_has_each_test(self) -> None:
        """Of the folders that this build may be: by g++ without sanitizers there are most."""
        for test in self.tests:
            variants = [v for v in VARIANTS if self.table.runs("nightly", v, test)]
            self.assertTrue(set(variants) & set(FOLDERS["nightly"]), test)

    def test_what_the_tables_name_exists(self) -> None:
        """As a word of the tests' Meson files: this build folder may lack some of them."""
        meson = "".join(file.read_text("utf-8") for file in ROOT.glob("tests/**/meson.build"))
        names = {row.suite for row in self.table.rows}
        names |= {name for rule in self.table.rules for _, name in rule.adds}
        self.assertEqual([name for name in sorted(names) if f"'{name}'" not in meson], [])

    def test_each_tier_has_a_limit_and_is_within_the_next(self) -> None:
        self.assertEqual(tuple(self.table.limits), TIERS)
        for smaller, larger in zip(TIERS, TIERS[1:]):
            self.assertLess(self.table.limits[smaller], self.table.limits[larger])
            self.assertLessEqual(set(FOLDERS[smaller]), set(FOLDERS[larger]))

    def test_each_file_is_in_a_rule(self) -> None:
        patterns = [pattern for rule in self.table.rules for pattern in rule.patterns]
        names = tree.files(ROOT)
        self.assertEqual([name for name in names if not fits(name, patterns)], [])

    def test_each_pattern_of_a_rule_fits_a_file(self) -> None:
        names = tree.files(ROOT)
        for rule in self.table.rules:
            for pattern in set(rule.patterns) - {touched.RECORD}:
                self.assertTrue(any(fits(name, [pattern]) for name in names), pattern)

    def test_what_a_rule_adds_can_run(self) -> None:
        tests = {test.name: test for test in self.tests}
        for rule in self.table.rules:
            for variant, name in rule.adds:
                if test := tests.get(name):
                    runs = self.table.runs("nightly", variant, test)
                else:  # a suite, or a test that this build lacks
                    runs = any(variant in row.places for row in self.table.rows
                               if row.suite == name or fits(name, row.patterns))
                self.assertTrue(runs, f"tests/tiers.md never runs '{name}' in the build '{variant}'")

    def test_changes_bring_their_suites(self) -> None:
        for file, pair in {
            "lib/plan/builders/ring.hpp": ("address", "plan"),
            "tools/proof/verify.cpp": ("gcc", "proof"),
            "transports/verbs/port.cpp": ("gcc", "rdma"),
            "transports/common/link.cpp": ("gcc", "rdma"),
            "lib/device/device_side.cpp": ("gcc", "device"),
            "transports/nccl/nccl.cpp": ("gcc", "device"),
            "tools/lab/plan.py": ("gcc", "netlab rates"),
            "meson.build": ("gcc", "subproject"),
            "bench/tune.cpp": ("gcc", "choices"),
            "lib/comm/group.cpp": ("thread", "collectives"),
        }.items():
            with self.subTest(file=file):
                self.assertIn(pair, self.table.added([file]))
        self.assertEqual(self.table.added(["README.md"]), ())


class Reading(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.page = Path(folder.name) / "tiers.md"
        self.page.write_text(SMALL, "utf-8")
        self.table = read_table(self.page)

    def test_the_first_row_that_fits_decides(self) -> None:
        engine, other = Test("unit", "engine"), Test("unit", "bytes")
        self.assertEqual(self.table.row(engine).places["gcc"].seconds, 5)
        self.assertEqual(self.table.row(other).places["gcc"].seconds, 20)
        self.assertEqual(self.table.row(Test("unit", "store Tcp")), self.table.row(engine))

    def test_a_tier_has_what_the_one_before_has(self) -> None:
        engine, other = Test("unit", "engine"), Test("unit", "bytes")
        for tier, variant, test, runs in [
            ("check", "gcc", engine, True), ("ci", "gcc", engine, True), ("nightly", "gcc", engine, True),
            ("check", "gcc", other, False), ("ci", "gcc", other, True),
            ("ci", "address", other, False), ("nightly", "address", other, True),
            ("nightly", "thread", other, False), ("check", "gcc", Test("new", "test"), True),
        ]:
            with self.subTest(tier=tier, variant=variant, test=test):
                self.assertEqual(self.table.runs(tier, variant, test), runs)

    def test_a_change_adds_suites(self) -> None:
        wire = (("address", "fuzz"), ("address", "unit"), ("gcc", "docs"))
        self.assertEqual(self.table.added(["lib/wire/frame.cpp", "README.md"]), wire)
        self.assertEqual(self.table.added(["docs/wire.md"]), ())
        self.assertEqual(self.table.added(None), wire, "unknown: as if all had changed")

    def test_mistakes_are_refused(self) -> None:
        for right, wrong, said in [
            ("check 5", "sometimes 5", r"tiers.md:8: 'sometimes' is none of check, ci, nightly"),
            ("check 5", "check", r"tiers.md:8: '' is not a number"),
            ("| gcc |", "| icc |", r"'icc' is none of gcc, clang, address, thread"),
            ("gcc: docs", "docs", r"tiers.md:13: 'docs' is not of the form"),
            ("| check | 1 |", "| check | 1 | 2 |", r"tiers.md:4: 3 cells under 2 headers"),
            ("| changed files", "| files", r"it needs three tables"),
        ]:
            with self.subTest(wrong=wrong):
                self.page.write_text(SMALL.replace(right, wrong, 1), "utf-8")
                self.assertRaisesRegex(TableError, said, read_table, self.page)


class Choosing(unittest.TestCase):
    """What runs in a folder."""

    def folder(self, variant: str) -> Folder:
        folder = Folder(ROOT, variant)
        names = [("unit", "engine"), ("unit", "bytes"), ("docs", "algorithms")]
        folder.intro["tests"] = [{"suite": [f"hocket:{suite}"], "name": name} for suite, name in names]
        return folder

    def setUp(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (page := Path(folder) / "tiers.md").write_text(SMALL, "utf-8")
            self.table = read_table(page)

    def names(self, plan: Plan) -> list[str]:
        return [test.name for test in plan.chosen(plan.folders[0])]

    def test_by_tier_and_by_suite(self) -> None:
        address = [self.folder("address")]
        self.assertEqual(self.names(Plan(self.table, "ci", address, [])), ["engine", "algorithms"])
        self.assertEqual(self.names(Plan(self.table, "check", address, ["unit"])), ["engine", "bytes"])

    def added(self, minutes_left: float, *added: tuple[str, str]) -> tuple[list[str], str]:
        """The names of what ran for changed files in a run with so much time, and what was printed."""
        folder = self.folder("address")
        folder.ran = [Test("unit", "engine"), Test("docs", "algorithms")]
        folder.build = lambda tests: True
        folder.test = lambda tests, fuzz_s: folder.ran.extend(tests)
        plan = Plan(self.table, "ci", [folder], [], added)
        self.table.limits["ci"] = 20
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            self.assertEqual(run_added(plan, Spent(60 * (20 - minutes_left))), [])
        return [test.name for test in folder.ran[2:]], printed.getvalue()

    def test_a_change_adds_what_there_is_time_for(self) -> None:
        self.assertEqual(self.added(2, ("address", "unit")), (["bytes"], ""))
        self.assertEqual(self.added(2, ("address", "unit"), ("address", "bytes")), (["bytes"], ""))
        self.assertEqual(self.added(2, ("gcc", "unit"), ("address", "engine")), ([], ""))
        names, printed = self.added(1.1, ("address", "unit"))
        self.assertEqual(names, [])
        self.assertIn("concern changed files: unit (address)", printed)

    def test_what_is_left_out_is_told(self) -> None:
        address = self.folder("address")
        ran = Plan(self.table, "ci", [address], []).chosen(address)
        self.assertEqual(report.left_out(self.table, "ci", address, ran), "unit 1")


class Reports(unittest.TestCase):
    def test_a_suite_that_is_slow_is_reported(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            (page := Path(name) / "tiers.md").write_text(SMALL, "utf-8")
            folder = Folder(ROOT, "gcc")
            folder.intro["tests"] = [{"suite": ["hocket:unit"], "name": "engine"}]
            folder.logs = [log := Path(name) / "testlog.json"]
            for seconds, lines in [(6, []), (60, [
                "slow: unit (engine, store *) took 60 s in build, and its budget is 5 s",
            ])]:
                log.write_text(json.dumps({"name": "hocket:unit / engine", "duration": seconds}) + "\n", "utf-8")
                self.assertEqual(list(report.over_budget(read_table(page), folder)), lines)

    def test_times_are_summed_up(self) -> None:
        spent = Spent(12.4)
        spent.parts |= {"build": 400.0, "tests": 249.6}
        self.assertEqual(spent.line("tools/check"),
                         "tools/check took 11 min 02 s: packages 0:12, build 6:40, tests 4:10")


class Nightly(unittest.TestCase):
    """A run that was cut off, or in which tests failed, goes on where it ended."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write(Folder(self.root, "thread", commit="abc"), 1, engine="OK", bytes="FAIL", gpu="SKIP")

    def write(self, folder: Folder, second: int, **results: str) -> None:
        logs = folder.path / "meson-logs"
        logs.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps({"name": f"hocket:unit / {name}", "result": result, "starttime": 100 + 10 * i,
                             "duration": 15}) for i, (name, result) in enumerate(results.items())]
        (logs / f"nightly-abc-{second}-testlog.json").write_text("\n".join(lines) + "\n{half a line", "utf-8")

    def counts(self, folder: Folder) -> dict[str, int]:
        with contextlib.redirect_stdout(io.StringIO()):
            return dict(report.print_outcomes([folder], []))

    def test_it_goes_on(self) -> None:
        folder = Folder(self.root, "thread", commit="abc")
        self.assertEqual(folder.done, {"engine", "gpu"})
        self.assertEqual([log.seconds(each) for each in folder.logs], [35])
        self.assertEqual(self.counts(folder), {"passed": 1, "failed": 1, "skipped": 1})

    def test_each_test_counts_once(self) -> None:
        self.write(Folder(self.root, "thread", commit="abc"), 2, bytes="OK", store="OK")
        folder = Folder(self.root, "thread", commit="abc")
        self.assertEqual(self.counts(folder), {"passed": 3, "failed": 0, "skipped": 1, "failed at first": 1})
        names = {"engine", "bytes", "gpu", "store"}
        self.assertEqual(report.tally(folder, names), {"passed": 3, "skipped": 1, "failed at first": 1})
        self.assertEqual(report.tally(folder, {"bytes"}), {"passed": 1, "failed at first": 1})
        self.assertEqual([log.seconds(each, {"bytes"}) for each in folder.logs], [15, 15])

    def test_another_run_begins_anew(self) -> None:
        self.assertEqual(Folder(self.root, "thread", commit="abd").done, set())
        self.assertEqual(Folder(self.root, "thread").done, set())
        Folder(self.root, "thread", commit="abc").forget()
        self.assertEqual(Folder(self.root, "thread", commit="abc").done, set())

    def test_it_leaves_out_what_is_done(self) -> None:
        folder = Folder(self.root, "thread", commit="abc")
        folder.intro["tests"] = [{"suite": ["hocket:unit"], "name": name} for name in ("engine", "bytes")]
        plan = Plan(read_table(PAGE), "nightly", [folder], [])
        self.assertEqual([test.name for test in plan.chosen(folder)], ["bytes"])

    def test_it_leaves_out_suites_that_passed_elsewhere(self) -> None:
        folder = Folder(self.root, "thread", commit="abc")
        folder.intro["tests"] = [{"suite": ["hocket:unit"], "name": "bytes"},
                                 {"suite": ["hocket:conformance"], "name": "store Tcp"}]
        record = touched.Record("abc", begun={"thread": {"unit": {"passed": 2}}, "gcc": {"conformance": {}}})
        plan = Plan(read_table(PAGE), "nightly", [folder], [], record=record)
        self.assertEqual([test.name for test in plan.chosen(folder)], ["store Tcp"])
        self.assertEqual(list(plan.suites_of(folder).items()),
                         [("unit", {"bytes"}), ("conformance", {"store Tcp"})])

    def run_suites(self, came: dict[str, str], record: touched.Record,
                   variant: str = "gcc") -> tuple[list[str], touched.Record]:
        """A run of the suites of a new build: the names of the tests that ran, and what is noted then."""
        folder = Folder(self.root, variant, commit="abc")
        folder.intro["tests"] = [{"suite": ["hocket:unit"], "name": "bytes"},
                                 {"suite": ["hocket:docs"], "name": "links"}]
        if variant == "clang":
            folder.intro["tests"] += [{"suite": ["hocket:integration"], "name": name}
                                      for name in ("groups", "netlab rates")]
        ran: list[str] = []

        def run(tests: list[Test], _fuzz_s: int) -> None:
            ran.extend(test.name for test in tests)
            self.write(folder, 10 + len(ran), **{test.name: came[test.name] for test in tests if test.name in came})
            folder.logs = folder._nightly_logs()

        folder.test = run
        plan = Plan(read_table(PAGE), "nightly", [folder], [], commit="abc", record=record)
        with mock.patch("check.ROOT", self.root), mock.patch("touched.clean_commit", return_value="abc"):
            run_tests(plan, folder)
        return ran, touched.record_of(self.root, "abc")

    def test_each_suite_is_noted_and_then_the_build(self) -> None:
        (self.root / "tests").mkdir()
        ran, record = self.run_suites({"bytes": "OK", "links": "FAIL"}, touched.Record())
        self.assertEqual((ran, record.parts), (["bytes", "links"], {}))
        self.assertEqual(record.begun, {"gcc": {"unit": {"minutes": 0.2, "passed": 1}}})
        folder = Folder(self.root, "gcc", commit="abc")
        folder.forget()  # as in another clone
        ran, record = self.run_suites({"links": "OK"}, record)
        self.assertEqual((ran, record.begun), (["links"], {}))
        self.assertEqual(record.parts["gcc"]["passed"], 2)

    def test_a_build_is_whole_without_what_it_never_runs(self) -> None:
        (self.root / "tests").mkdir()
        came = {"bytes": "OK", "links": "OK", "groups": "OK"}
        ran, record = self.run_suites(came, touched.Record(), "clang")  # which never runs `netlab rates`
        self.assertEqual(sorted(ran), sorted(came))
        self.assertEqual((record.parts["clang"]["passed"], record.begun), (3, {}))

    def test_a_suite_whose_tests_have_not_run_is_not_noted(self) -> None:
        (self.root / "tests").mkdir()
        _, record = self.run_suites({}, touched.Record())
        self.assertEqual((record.parts, record.begun), ({}, {}))


class Changes(unittest.TestCase):
    """Which files have changed since the recorded nightly run."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.git("init", "-q", "-b", "main")
        self.commit("lib/a.cpp", "tests/b.cpp")

    def git(self, *words: str) -> str:
        command = ("git", "-C", self.root, "-c", "user.name=a", "-c", "user.email=a@example.org", *words)
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def write(self, *names: str) -> None:
        for name in names:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            with (self.root / name).open("a", encoding="utf-8") as file:
                file.write("a line\n")

    def commit(self, *names: str) -> None:
        self.write(*names)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "a change")

    def record(self, *parts: str) -> None:
        commit = touched.clean_commit(self.root)
        self.assertIsNotNone(commit)
        for part in parts:
            touched.note_suite(self.root, commit, part, "unit", 7265, {"passed": 3, "skipped": 1})
            touched.note_part(self.root, commit, part)

    def changed(self) -> list[str] | None:
        return touched.changed_since_nightly(self.root)[0]

    def test_without_a_record_all_have_changed(self) -> None:
        self.assertIsNone(self.changed())
        self.write(touched.RECORD)  # which is no JSON
        self.assertIsNone(self.changed())

    def test_since_the_recorded_commit(self) -> None:
        self.record(*touched.PARTS)
        self.commit("lib/c d.cpp")
        self.assertEqual(self.changed(), ["lib/c d.cpp", touched.RECORD])
        self.write("lib/a.cpp", "lib/new.cpp")
        (self.root / "tests/b.cpp").unlink()
        self.assertEqual(self.changed(), ["lib/a.cpp", "lib/c d.cpp", "lib/new.cpp", "tests/b.cpp", touched.RECORD])

    def test_a_run_in_parts(self) -> None:
        commit = touched.clean_commit(self.root)
        self.record("gcc", "clang")
        self.assertIsNone(self.changed())
        self.assertRegex(touched.changed_since_nightly(self.root)[1], r"\(missing: address, thread, demo\)")
        self.commit()
        self.assertEqual(touched.clean_commit(self.root), commit, "another clone goes on with that")
        self.assertEqual(list(touched.record_of(self.root, commit).parts), ["gcc", "clang"])
        self.record("address", "thread", "demo")
        self.assertEqual(self.changed(), [touched.RECORD])
        self.write("lib/new.cpp")
        self.assertIsNone(touched.clean_commit(self.root), "a file is there that the commit does not have")
        self.commit()
        later = touched.clean_commit(self.root)
        self.assertNotEqual(later, commit)
        self.assertEqual(touched.record_of(self.root, later), touched.Record(later))

    def test_in_a_clone_without_that_commit_all_have_changed(self) -> None:
        for part in touched.PARTS:
            touched.note_part(self.root, "0123456789" * 4, part, 60)
        self.assertIsNone(self.changed())
        self.assertRegex(touched.changed_since_nightly(self.root)[1], "commit 012345678901 .* not in this clone")


if __name__ == "__main__":
    BUILD = Path(sys.argv.pop(1))
    unittest.main(verbosity=2)
