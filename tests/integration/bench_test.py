#!/usr/bin/env python3
"""`hocket-bench`'s collectives: worlds of its own and of a launcher, every format, every refusal."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCH = ""  # the programs: the arguments
HOCKET = ""
PATIENCE = 240  # seconds, for a machine that has much else to do
KINDS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "gather", "scatter",
         "all_to_all", "barrier", "scan", "exscan")
QUICK = ("-n", "2", "-w", "1")
ROW = re.compile(r" +(\d+) +(\d+) +(\w+) +(\w+) +(-?\d+) +([\d.]+) +([\d.]+) +([\d.]+)"
                 r" +([\d.]+) +([\d.]+) +(\d+|N/A)$")


def environment(**variables: str) -> dict[str, str]:
    """These HOCKET_* variables and no others, nor those of a launcher."""
    launchers = ("HOCKET_", "RANK", "WORLD_SIZE", "LOCAL_", "OMPI_", "PMI_", "SLURM_")
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(launchers)}
    return {**inherited, **variables}


def run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=environment(**variables), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=PATIENCE, check=False)


class Case(unittest.TestCase):
    def bench(self, *words: str, **variables: str) -> str:
        ran = run(BENCH, *words, **variables)
        self.assertEqual(ran.returncode, 0, ran.stderr + ran.stdout)
        return ran.stdout

    def rows(self, *words: str, **variables: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.bench(*words, "--csv", *QUICK, **variables))))

    def document(self, *words: str, **variables: str) -> dict:
        return json.loads(self.bench(*words, "--json", *QUICK, **variables))


class Formats(Case):
    def test_table(self) -> None:
        said = self.bench("all_reduce", "--ranks", "4", "-b", "8", "-e", "32K", "-f", "16", *QUICK)
        lines = said.splitlines()
        self.assertRegex(lines[0], r"^# hocket-bench \S+ all_reduce: 4 ranks on 1 host, transport [\w,]+$")
        (head,) = [line for line in lines if "busbw" in line]
        self.assertEqual(head.split(), ["#", "size", "count", "type", "redop", "root", "time", "p50",
                                        "p99", "algbw", "busbw", "#wrong"])
        rows = [ROW.match(line) for line in lines if not line.startswith("#")]
        self.assertEqual([row[1] for row in rows if row], ["8", "128", "2048", "32768"])
        for row in rows:
            assert row
            self.assertEqual(int(row[2]) * 4, int(row[1]))
            self.assertEqual((row[3], row[4], row[5], row[11]), ("f32", "sum", "-1", "0"))
            self.assertGreater(float(row[6]), 0)
            self.assertLessEqual(float(row[7]), float(row[8]))
            speed = int(row[1]) / float(row[6]) * 1e-3
            self.assertAlmostEqual(float(row[9]), speed, delta=0.001 + speed / 100)
            self.assertAlmostEqual(float(row[10]), speed * 1.5, delta=0.001 + speed / 50)
        self.assertEqual(lines[-2], "# Out of bounds values : 0 OK")
        self.assertRegex(lines[-1], r"^# Avg bus bandwidth    : \d+\.\d{4}$")

    def test_json_is_one_document(self) -> None:
        found = self.document("reduce", "--ranks", "3", "-b", "1K", "-e", "4K", "-d", "bf16",
                              "-o", "max", "-r", "2")
        self.assertEqual((found["benchmark"], found["ranks"], found["wrong"]), ("reduce", 3, 0))
        self.assertTrue(found["transport"])
        self.assertEqual(found["conditions"]["hosts"], 1)
        self.assertEqual([row["bytes"] for row in found["rows"]], [1024, 4096])
        for row in found["rows"]:
            self.assertEqual((row["dtype"], row["op"], row["root"]), ("bf16", "max", 2))
            self.assertEqual((row["iterations"], row["wrong"]), (2, 0))
            self.assertGreaterEqual(row["p99_s"], row["p50_s"])

    def test_csv(self) -> None:
        rows = self.rows("all_gather", "--ranks", "2", "-b", "8", "-e", "512", "-f", "8")
        self.assertEqual([row["bytes"] for row in rows], ["8", "64", "512"])
        self.assertEqual([row["count"] for row in rows], ["1", "8", "64"])
        self.assertEqual({row["redop"] for row in rows}, {"none"})

    def test_osu(self) -> None:
        said = self.bench("all_gather", "--ranks", "2", "-b", "8", "-e", "64", "-f", "8",
                          "--format", "osu", *QUICK)
        lines = [line for line in said.splitlines() if not line.startswith("#")]
        self.assertEqual([line.split()[0] for line in lines], ["4", "32"])
        self.assertIn("# Size       Avg Latency(us)\n", said)

    def test_progress_is_for_stderr_and_who_asks(self) -> None:
        words = ("broadcast", "--ranks", "2", "-b", "64", "-e", "64", "--json", *QUICK)
        self.assertEqual(run(BENCH, *words, HOCKET_LOG_LEVEL="error").stderr, "")
        loud = run(BENCH, *words, "--progress")
        self.assertIn("broadcast of f32, 64 …\n", loud.stderr)
        json.loads(loud.stdout)


class Results(Case):
    def assert_right(self, rows: list[dict[str, str]], *words: str) -> None:
        self.assertTrue(rows)
        for row in rows:
            self.assertEqual(row["wrong"], "0", (words, row))

    def test_every_collective_at_odd_sizes(self) -> None:
        for kind in KINDS:
            for place in ([], ["--in-place"]):
                if place and kind in ("all_to_all", "barrier"):
                    continue
                words = (kind, "--ranks", "3", "-b", "1", "-e", "1100003", "-f", "101", "-r", "1", *place)
                with self.subTest(words):
                    rows = self.rows(*words)
                    self.assert_right(rows, *words)
                    self.assertEqual(len(rows), 1 if kind == "barrier" else 4)

    def test_every_type_and_op(self) -> None:
        words = ("all_reduce", "--ranks", "3", "-b", "3001", "-e", "3001", "-d", "all", "-o", "all")
        rows = self.rows(*words)
        self.assert_right(rows, *words)
        self.assertEqual(len({row["type"] for row in rows}), 17)
        self.assertGreater(len(rows), 100)

    def test_started_and_prepared_calls(self) -> None:
        for kind in KINDS:
            for how in (["--async"], ["--prepared"], ["--async", "--prepared"]):
                words = (kind, "--ranks", "2", "-b", "5", "-e", "100K", "-f", "100", *how)
                with self.subTest(words):
                    self.assert_right(self.rows(*words), *words)

    def test_a_world_of_one(self) -> None:
        for kind in KINDS:
            self.assert_right(self.rows(kind, "--ranks", "1", "-b", "0", "-e", "64"), kind)

    def test_a_step_in_place_of_a_factor(self) -> None:
        rows = self.rows("all_reduce", "--ranks", "2", "-b", "1000", "-e", "2000", "-i", "400")
        self.assertEqual([row["bytes"] for row in rows], ["1000", "1400", "1800"])

    def test_without_checks_nothing_is_claimed(self) -> None:
        said = self.bench("all_reduce", "--ranks", "2", "-b", "8", "-e", "8", "-c", "0", *QUICK)
        self.assertIn("N/A", said)
        self.assertNotIn("Out of bounds", said)

    def test_calls_are_chosen_by_time(self) -> None:
        (row,) = json.loads(self.bench("barrier", "--ranks", "2", "--json"))["rows"]
        self.assertGreater(row["iterations"], 5)


class Overlap(Case):
    def test_what_is_hidden(self) -> None:
        words = ("overlap", "--ranks", "2", "-b", "4K", "-e", "64K", "-n", "5")
        found = json.loads(self.bench(*words, "--json"))
        self.assertEqual([row["bytes"] for row in found["rows"]], [4096, 16384, 65536])
        for row in found["rows"]:
            self.assertEqual(row["wrong"], 0)
            self.assertGreater(min(row["operation_s"], row["work_s"], row["both_s"]), 0)
            self.assertTrue(0 <= row["hidden"] <= 1, row)
        lines = [line for line in self.bench(*words).splitlines() if not line.startswith("#")]
        self.assertEqual([line.split()[0] for line in lines], ["4096", "16384", "65536"])


class Sendrecv(Case):
    def test_pairs(self) -> None:
        words = ("sendrecv", "--ranks", "3", "-b", "0", "-e", "256K", "-f", "512", "-n", "5")
        found = json.loads(self.bench(*words, "--json"))
        self.assertEqual([row["bytes"] for row in found["rows"]], [0, 1, 512, 262144])
        for row in found["rows"]:
            self.assertEqual((row["pairs"], row["window"], row["wrong"]), (1, 64, 0))
            self.assertTrue(0 < row["p50_s"] <= row["p99_s"], row)
            self.assertAlmostEqual(row["messages_per_s"] * row["bytes"] / 1e9, row["bandwidth_gb_s"])
            self.assertGreater(row["messages_per_s"], 0)
        lines = [line for line in self.bench(*words).splitlines() if not line.startswith("#")]
        self.assertEqual([line.split()[0] for line in lines], ["0", "1", "512", "262144"])

    def test_one_rank_has_nobody(self) -> None:
        ran = run(BENCH, "sendrecv", "--ranks", "1")
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("two ranks", ran.stderr)


class Worlds(Case):
    def test_ranks_of_a_launcher(self) -> None:
        ran = run(HOCKET, "run", "-n", "3", "--no-tag-output", "--", BENCH, "all_reduce",
                  "-b", "8", "-e", "8", "--json", *QUICK)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(json.loads(ran.stdout)["ranks"], 3)

    def test_the_transport_is_named(self) -> None:
        found = self.document("barrier", "--ranks", "2", "--transport", "tcp")
        self.assertEqual(found["transport"], "tcp")
        ran = run(BENCH, "barrier", "--ranks", "2", "--transport", "pigeon")
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("pigeon", ran.stderr)

    def test_the_rules_for_algorithms_are_told(self) -> None:
        found = self.document("all_reduce", "--ranks", "3", "-e", "8", HOCKET_ALGORITHM="all_reduce=ring")
        self.assertEqual(found["conditions"]["algorithm"], "all_reduce=ring")


class Refusals(Case):
    def refused(self, *words: str) -> str:
        ran = run(BENCH, *words)
        self.assertEqual((ran.returncode, ran.stdout), (2, ""), ran.stderr)
        self.assertRegex(ran.stderr, r"hint: `hocket-bench.* --help`")
        return ran.stderr

    def test_a_wrong_flag_is_refused_with_the_nearest(self) -> None:
        self.assertIn("did you mean --json?", self.refused("all_reduce", "--jsn"))
        self.assertIn("did you mean --iters?", self.refused("broadcast", "--itres", "5"))

    def test_a_wrong_command_is_refused_with_the_nearest(self) -> None:
        self.assertIn("did you mean all_reduce?", self.refused("allreduce"))

    def test_what_makes_no_sense_is_refused(self) -> None:
        for words, told in (
            (("all_reduce", "-d", "f33"), "f33"),
            (("all_reduce", "-o", "summ"), "summ"),
            (("all_reduce", "-o", "custom"), "custom"),
            (("all_reduce", "-d", "c64", "-o", "min"), "min is not defined for c64"),
            (("scan", "-o", "average"), "average is not defined for f32 in scan"),
            (("all_reduce", "-b", "9q"), "9q"),
            (("all_reduce", "-b", "64", "-e", "8"), "more than --end 8"),
            (("all_reduce", "-f", "1"), "--factor"),
            (("all_reduce", "-f", "2", "-i", "8"), "--step"),
            (("all_to_all", "--in-place"), "never in place"),
            (("reduce", "--ranks", "2", "-r", "2"), "2 is none of 2 ranks"),
            (("all_reduce", "--format", "xml"), "xml"),
            ((), "subcommand"),
        ):
            with self.subTest(words):
                self.assertIn(told, self.refused(*words))

    def test_a_rank_that_fails_to_begin_is_told_to_all(self) -> None:
        """Without a launcher that would end the others."""
        for wrong in ({"HOCKET_TCP_INTERFACES": "wlan9"}, {"HOCKET_TUNING_FILE": "/nowhere"}):
            for failing in range(3):
                with self.subTest(failing=failing, **wrong):
                    with socket.socket() as probe:
                        probe.bind(("127.0.0.1", 0))
                        port = str(probe.getsockname()[1])
                    ranks = [subprocess.Popen(
                        [BENCH, "barrier", *QUICK], stdout=subprocess.DEVNULL,
                        stderr=subprocess.PIPE, text=True, env=environment(
                            RANK=str(rank), WORLD_SIZE="3", MASTER_ADDR="127.0.0.1",
                            MASTER_PORT=port, **(wrong if rank == failing else {})))
                        for rank in range(3)]
                    try:
                        told = [rank.communicate(timeout=60)[1] for rank in ranks]
                    finally:
                        for each in ranks:
                            each.kill()
                    for rank, text in enumerate(told):
                        self.assertEqual(ranks[rank].returncode, 1, text)
                        self.assertIn(*wrong.values(), text)
                        if rank != failing:
                            self.assertIn(f"rank {failing} (pid ", text)

    def test_ranks_of_a_launcher_are_as_many_as_it_says(self) -> None:
        ran = run(HOCKET, "run", "-n", "2", "--", BENCH, "all_reduce", "--ranks", "3", *QUICK)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("the launcher's has 2 ranks", ran.stderr)


class Tune(Case):
    def test_it_writes_a_file_that_ranks_and_explain_read(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = f"{folder}/tuning.txt"
            said = self.bench("tune", "--ranks", "3", "--operations", "all_reduce", "--sizes",
                              "1K,16K", "--rounds", "1", "--out", file)
            self.assertRegex(said, r"all_reduce, 3 ranks on 1 hosts: medians, in")
            self.assertRegex(said, r"\n +1K +[\d.]+ +[\d.]+  [\w/]+ +[\d.]+\n")
            ran = run(HOCKET, "plan", "explain", "all_reduce", "--bytes", "1K", "-n", "3", "--json",
                      HOCKET_TUNING_FILE=file)
            found = json.loads(ran.stdout)["candidates"]
            measured = [each for each in found if each["measured_seconds"]]
            self.assertEqual({each["algorithm"] for each in measured},
                             {each["algorithm"] for each in found}, ran.stdout)
            self.assertIn(("double_tree", 1),
                          [(each["algorithm"], each["pieces"]) for each in measured], ran.stdout)
            self.bench("all_reduce", *QUICK, "--ranks", "3", "-e", "1K", HOCKET_TUNING_FILE=file)
            self.check_again(file, f"{folder}/again.txt")

    def check_again(self, file: str, out: str) -> None:
        """Without measuring; and what does not fit is refused."""
        again = ("tune", "--operations", "all_reduce", "--out", out, "--again")
        self.bench(*again, file, "--ranks", "3")
        lines, lines_again = (
            [line for line in Path(each).read_text("ascii").splitlines() if "measured" in line]
            for each in (file, out))
        self.assertTrue(lines)
        self.assertEqual(lines_again, lines)
        ran = run(BENCH, *again, file, "--ranks", "2")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("is of 2 ranks", ran.stderr)
        ran = run(BENCH, *again, f"{file}s", "--ranks", "3")
        self.assertEqual(ran.returncode, 1)
        self.assertIn(f"{file}s can't be read", ran.stderr)

    def test_refusals(self) -> None:
        for words in (("--operations", "all_reduced"), ("--sizes", "many"),
                      ("--launch", "false")):
            ran = run(BENCH, "tune", "--rounds", "1", "--out", "/dev/null", *words)
            self.assertNotEqual(ran.returncode, 0, words)


if __name__ == "__main__":
    BENCH, HOCKET = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main(verbosity=2)
