#!/usr/bin/env python3
"""`hocket trace` finds what keeps a job from going on: who, in which operation, and who waits in which
step. It looks at jobs that run, and at the records of those that have ended.

    trace_test.py HOCKET TRACED-PROGRAM [SEED]
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

from surroundings import environment

HOCKET = TRACED = ""
SEED = random.randrange(1 << 30)
FAULTS = 100
FOR_EVER = 1 << 30  # calls
PATIENCE_S = 30
NO_FALSE_DEATH = "20s"  # a rank that is killed is noticed without it, and a busy machine may stall for seconds


def trace(*words: object) -> dict:
    ran = subprocess.run([HOCKET, "trace", "--json", *map(str, words)], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        return {"worlds": []}
    return json.loads(ran.stdout)


class Job:
    """Ranks that were started by the launcher, and the records that they keep."""

    def __init__(self, ranks: int, *words: object, **variables: object) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="hocket-trace-test-")
        self.process = subprocess.Popen(
            [HOCKET, "run", "-n", str(ranks), "--", TRACED, *map(str, words)], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=environment(**{"HOCKET_TRACE": self.folder.name, "HOCKET_FAILURE_TIMEOUT": NO_FALSE_DEATH,
                               **variables}))

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=PATIENCE_S)
        self.folder.cleanup()

    def wait(self) -> str:
        return self.process.communicate(timeout=PATIENCE_S)[0]

    def world(self) -> dict:
        """What the records in the folder say."""
        return trace(self.folder.name)["worlds"][0]

    def kill(self, victim: int, dice: random.Random) -> None:
        """Once all ranks have begun, and some time has passed."""
        ranks: list[dict] = []
        while not ranks or any(rank["operations"] == 0 for rank in ranks):
            worlds = trace(self.folder.name)["worlds"]
            ranks = worlds[0]["ranks"] if worlds and not worlds[0]["missing"] else []
        time.sleep(dice.random() / 20)
        os.kill(ranks[victim]["pid"], signal.SIGKILL)

    def until(self, sentence: str) -> list[str]:
        """The verdict, once one of its sentences fits."""
        end = time.monotonic() + PATIENCE_S
        verdict: list[str] = []
        while time.monotonic() < end:
            worlds = trace(self.folder.name)["worlds"]
            verdict = worlds[0]["verdict"] if worlds else []
            if any(re.search(sentence, each) for each in verdict):
                return verdict
            time.sleep(0.02)
        raise AssertionError(f"no sentence is {sentence!r}: {verdict}")


def expected(fault: str, victim: int, call: int) -> str:
    """The first sentence of the verdict."""
    name = ["all_reduce", "all_gather", "all_reduce", "barrier", "all_reduce"]
    before = rf"{name[(call - 1) % 5]}\(.*\) #{call}"
    missed = rf"{name[call % 5]}\(.*\) #{call + 1}"
    waits = rf"Rank \d+ wait(s|ed) for it in step \d+ of {missed}"
    # They may learn of its death while they still wait for one another.
    held_up = rf"Ranks? .* (was|were) in {missed}, which it never entered"
    who = rf"^Rank {victim} \(pid \d+ on .*\)"
    return {
        "kill at any moment": rf"{who} ended without leaving the world.* #\d+.*\. (Rank \d+ waited for it in step"
                              r" \d+ of|Ranks? .* (was|were) in) .* #\d+[.,]",
        "kill, and nobody waits": rf"{who} ended without leaving the world while it ran .* #\d+\.$",
        "kill": rf"{who} ended without leaving the world\. Its last operation, {before}, was done\. .*({waits}|{held_up})",
        "stop": rf"{who} is stopped by .*\. Its last operation was {before}\. {waits}",
        "late": rf"{who} has not entered {missed}, which .* ago\. Its last recorded operation, {before}, .*\. {waits}",
        "leave": rf"{who} never entered {missed}, which .* before it failed\. It has left the world\. {waits}",
        "other": rf"^(.*; )?[Rr]ank {victim} called all_reduce\(max, f32, 256 elements\) #{call + 1}[;.]",
    }[fault]


class Faults(unittest.TestCase):
    found = 0

    def check(self, fault: str, dice: random.Random) -> None:
        ranks = dice.choice([3, 4, 5])
        victim, calls = dice.randrange(ranks), dice.randrange(2, 60)
        what = f"{fault} of rank {victim} of {ranks} after {calls} calls"
        with self.subTest(what):
            is_any = fault == "kill at any moment"
            with Job(ranks, fault, victim, FOR_EVER if is_any else calls) as job:
                if is_any:
                    job.kill(victim, dice)
                if fault in ("late", "stop"):
                    world = {"verdict": job.until(expected(fault, victim, calls))}
                else:
                    job.wait()
                    world = job.world()
                    others = [rank for rank in world["ranks"] if rank["rank"] != victim]
                    if is_any and all(rank["state"] == "done" for rank in others):
                        fault = "kill, and nobody waits"
                self.assertRegex(world["verdict"][0], expected(fault, victim, calls), world)
            self.found += 1

    def test_each_is_found(self) -> None:
        print(f"seed {SEED}", flush=True)
        dice = random.Random(SEED)
        kinds = ["kill at any moment", "kill", "stop", "late", "leave", "other"]
        for number in range(FAULTS):
            self.check(kinds[number % len(kinds)], dice)
        print(f"{self.found} of {FAULTS} faults", flush=True)

    def test_a_message_that_was_never_sent(self) -> None:
        with Job(3, "silent", 1, 4) as job:
            verdict = job.until(r"^Rank 2 has been in recv\(up to \d+ bytes, tag 7\) from rank 1 for")
            self.assertIn("rank 1", verdict[0])


class Looking(unittest.TestCase):
    def test_a_running_job_is_found_and_dumped(self) -> None:
        with Job(3, "late", 2, 5) as job, tempfile.TemporaryDirectory() as folder:
            job.until(r"^Rank 2 .* has not entered")
            files = subprocess.run([HOCKET, "trace", "dump", "-o", folder], check=True, text=True,
                                   capture_output=True).stdout.split()
            self.assertGreaterEqual(len(files), 3)
            pids = {rank["pid"] for rank in job.world()["ranks"]}
            worlds = [world for world in trace(*files)["worlds"] if {rank["pid"] for rank in world["ranks"]} == pids]
            self.assertEqual(len(worlds), 1, "others may run beside it")
            self.assertRegex(worlds[0]["verdict"][0], r"^Rank 2 .* has not entered")
            ranks = worlds[0]["ranks"]
            self.assertEqual([rank["process"] for rank in ranks], ["running"] * 3)
            self.assertEqual([rank["operations"] for rank in ranks], [6, 6, 5])
            live = [world for world in trace()["worlds"] if {rank["pid"] for rank in world["ranks"]} == pids]
            self.assertEqual(len(live), 1, "found without being told where to look")

    def test_what_has_gone_well(self) -> None:
        with Job(2, "none", 0, 7) as job:
            job.wait()
            world = job.world()
        self.assertEqual(world["verdict"], ["All ranks have left the world, and all their operations were done."])
        self.assertEqual([rank["operations"] for rank in world["ranks"]], [9, 9])

    def test_a_timeline(self) -> None:
        with Job(2, "none", 0, 7) as job, tempfile.NamedTemporaryFile() as file:
            job.wait()
            trace(job.folder.name, "--perfetto", file.name)
            events = [each for each in json.load(file)["traceEvents"] if each["ph"] == "X"]
        self.assertEqual(len(events), 18)
        self.assertEqual({each["pid"] for each in events}, {0, 1})
        for each in events:
            self.assertLess(each["dur"], PATIENCE_S * 1e6)
            self.assertEqual(each["args"]["state"], "done")
            self.assertAlmostEqual(each["ts"] / 1e6, time.time(), delta=PATIENCE_S)

    @staticmethod
    def metrics_of(pid: int) -> dict[str, float]:
        """The samples of a rank, without its labels."""
        text = subprocess.run([HOCKET, "trace", "metrics"], check=True, text=True, capture_output=True).stdout
        return {line.split("{")[0] + re.sub(r".*?(,operation=.*)?}.*", r"\1", line): float(line.split()[-1])
                for line in text.splitlines() if f'pid="{pid}"' in line}

    def test_metrics(self) -> None:
        with Job(3, "late", 2, 5) as job:
            job.until(r"^Rank 2 .* has not entered")
            pid = job.world()["ranks"][0]["pid"]
            ours = self.metrics_of(pid)
            while ours["hocket_stalled_operation_age_seconds"] == 0:  # it is looked for now and then
                ours = self.metrics_of(pid)
        self.assertEqual(ours["hocket_up"], 1)
        self.assertEqual(ours['hocket_operations_total,operation="all_reduce"'], 3)
        self.assertEqual(ours['hocket_operation_bytes_total,operation="all_reduce"'], 3 * 1024)
        self.assertEqual(ours["hocket_operations_open"], 1)

    def test_metrics_over_http_and_in_a_file(self) -> None:
        with Job(3, "late", 2, 5) as job, tempfile.TemporaryDirectory() as folder:
            job.until(r"^Rank 2 .* has not entered")
            label = f'pid="{job.world()["ranks"][0]["pid"]}"'
            server = subprocess.Popen([HOCKET, "trace", "metrics", "--listen", "127.0.0.1:0"], text=True,
                                      stdout=subprocess.PIPE)
            file = Path(folder) / "hocket.prom"
            writer = subprocess.Popen([HOCKET, "trace", "metrics", "--write", str(file), "--interval", "50ms"])
            try:
                url = server.stdout.readline().split()[-1]
                with socket.create_connection(url.split("/")[2].split(":")) as slow:
                    slow.sendall(b"GET /metr")  # holds nobody up for long
                    self.assertIn(label, urllib.request.urlopen(url, timeout=PATIENCE_S).read().decode())
                with self.assertRaises(urllib.error.HTTPError):
                    urllib.request.urlopen(url + "/other", timeout=PATIENCE_S)
                end = time.monotonic() + PATIENCE_S
                while not file.exists() and time.monotonic() < end:
                    time.sleep(0.02)
                self.assertIn(label, file.read_text("utf-8"))
            finally:
                for each in (server, writer):
                    each.kill()
                    each.communicate()

    def test_what_can_not_be_read(self) -> None:
        with tempfile.NamedTemporaryFile(suffix="hocket-trace") as file:
            ran = subprocess.run([HOCKET, "trace", file.name], capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("holds no records of this version of Hocket", ran.stderr)

    def test_a_folder_that_can_not_be_used(self) -> None:
        ran = subprocess.run([HOCKET, "run", "-n", "2", "--", TRACED, "none", "0", "7"], text=True,
                             capture_output=True, check=False, env=environment(HOCKET_TRACE="/dev/null/folder"))
        self.assertEqual(ran.returncode, 0, "a program runs without records")
        self.assertIn("operations are recorded in memory only", ran.stderr)

    def test_without_records(self) -> None:
        with Job(3, "late", 2, 5, HOCKET_TRACE="off") as job:
            time.sleep(0.5)
            self.assertEqual(list(Path(job.folder.name).iterdir()), [])
            self.assertEqual(trace(job.folder.name), {"worlds": []})

    def test_a_job_that_gets_on_is_left_in_peace(self) -> None:
        with Job(3, "none", 0, FOR_EVER) as job:
            looks = 0
            while looks < 50:
                worlds = trace(job.folder.name)["worlds"]
                if not worlds or worlds[0]["missing"]:
                    continue
                looks += 1
                # A rank that gets no processor for a moment is late.
                self.assertRegex(worlds[0]["verdict"][0], "^(Operations are under way|No recorded operation"
                                 r"|Rank .* has not entered .* called \d{2,3}ms ago|In .* waits for )", worlds)


class Warnings(unittest.TestCase):
    def test_an_operation_that_waits_for_long_is_reported_once(self) -> None:
        with Job(3, "late", 2, 5, HOCKET_STALL_WARNING="200ms") as job:
            job.until(r"^Rank 2 .* has not entered")
            time.sleep(1.5)
            job.process.send_signal(signal.SIGTERM)
            said = job.wait()
        # Soon after the limit: a rank that gets no processor for a moment is late.
        warning = (r"rank 0: all_reduce\(sum, f32, 256 elements\) #6 has waited for rank 2 in step \d+, "
                   r"[2-4]\d\dms after it")
        self.assertEqual(len(re.findall(warning, said)), 1, said)
        told = (r"rank 2: rank [01] called all_reduce\(sum, f32, 256 elements\) #6 \d+ms ago and waits for this rank, "
                "which has not begun it")
        self.assertEqual(len(re.findall(told, said)), 1, said)

    def test_without_a_limit_nobody_is_warned(self) -> None:
        with Job(3, "late", 2, 5, HOCKET_STALL_WARNING="0") as job:
            job.until(r"^Rank 2 .* has not entered")
            time.sleep(0.5)
            job.process.send_signal(signal.SIGTERM)
            self.assertNotRegex(job.wait(), "has waited for|waits for this rank")


class Launcher(unittest.TestCase):
    def run_job(self, *words: str, **variables: object) -> str:
        """What `hocket run` says of a job that failed."""
        ran = subprocess.run([HOCKET, "run", "-n", "3", "--no-tag-output", *words], text=True, capture_output=True,
                             check=False, env=environment(**variables))
        self.assertNotEqual(ran.returncode, 0)
        return ran.stderr

    def test_it_says_what_the_records_show(self) -> None:
        said = self.run_job("sh", "-c", f'echo "records in $HOCKET_TRACE." >&2; exec {TRACED} kill 1 5')
        self.assertRegex(said, r"hocket run: the records show: Rank 1 .* ended without leaving the world\.")
        folder = re.search(r"records in (/.+)\.$", said, re.MULTILINE)
        self.assertIsNotNone(folder, said)
        self.assertFalse(Path(folder[1]).exists(), "the folder is removed")

    def test_it_keeps_silent_where_the_records_show_nothing(self) -> None:
        self.assertNotIn("records show", self.run_job("sh", "-c", "exit 3"))
        self.assertNotIn("records show", self.run_job(TRACED, "kill", "1", "5", HOCKET_TRACE="off"))

    def test_each_attempt_has_its_own(self) -> None:
        said = self.run_job("--max-restarts", "1", "sh", "-c",
                            f'[ "$HOCKET_ATTEMPT" = 1 ] && exit 3; exec {TRACED} kill 1 5')
        self.assertEqual(said.count("the records show: Rank 1"), 1, said)

    def test_a_launcher_in_a_launcher(self) -> None:
        said = self.run_job("sh", "-c", f'[ "$RANK" = 0 ] || exit 0; exec {HOCKET} run -n 2 {TRACED} kill 1 5')
        outer = [line for line in said.splitlines() if line.startswith("hocket run: the records show: Rank 1")]
        self.assertEqual(len(outer), 1, said)


if __name__ == "__main__":
    HOCKET, TRACED = sys.argv[1:3]
    SEED = next((int(word) for word in sys.argv[3:] if word.isdigit()), SEED)
    names = [word for word in sys.argv[3:] if not word.isdigit()]
    unittest.main(argv=[sys.argv[0], *names], verbosity=2)
