#!/usr/bin/env python3
"""Collective operations: worlds of real processes, each with the choice of algorithms that it
is given; and worlds of which one rank does something else than the others."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest
from collections import defaultdict
from pathlib import Path

import netlab
import surroundings
from surroundings import free_port

HOCKET, PROGRAM = "", ""  # the first arguments
ALL = False  # the whole product
BRIEF = False  # for programs that are slow
WAIT_S = 120  # for what takes seconds, on a machine that is busy
SOON_S = 20  # for what must not wait for a time-out of its own
TRANSPORT: dict[str, str] = {}  # the variable, where one is asked for


def environment(**variables: object) -> dict[str, str]:
    return surroundings.environment(**TRANSPORT, **variables)


def algorithms() -> dict[str, list[str]]:
    """By operation."""
    listed = subprocess.run([HOCKET, "plan", "list", "--json"], env=environment(), timeout=WAIT_S,
                            capture_output=True, text=True, check=True).stdout
    found = defaultdict(list)
    for each in json.loads(listed):
        found[each["operation"]].append(each["algorithm"])
    return found


def choices() -> list[str]:
    """Values of HOCKET_ALGORITHM in which each algorithm is chosen once."""
    found = algorithms()
    return [",".join(f"{operation}={names[i % len(names)]}" for operation, names in found.items())
            for i in range(max(map(len, found.values())))]


def descendants(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text("ascii").split()):
            found += [child, *descendants(child)]
    return found


def where_they_are(job: subprocess.Popen[str]) -> str:
    """What the threads of a job that hangs are doing, as far as there is a debugger to tell."""
    if not shutil.which("gdb"):
        return "install gdb to see where"
    text = ""
    for pid in descendants(job.pid):
        command = ["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all backtrace 25"]
        told = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=WAIT_S, check=False).stdout
        text += f"--- process {pid}\n{told}"
    return text


class Jobs(unittest.TestCase):
    maxDiff = None  # what the ranks printed, whole

    def world(self, size: int, *arguments: str, through: tuple[str, ...] = (),
              **variables: str) -> None:
        command = [HOCKET, "run", "-n", str(size), "--", *through, PROGRAM, *arguments]
        # No rank dies here, but a busy machine may stall them all for seconds.
        patient = environment(HOCKET_FAILURE_TIMEOUT="20s", **variables)
        with subprocess.Popen(command, env=patient, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) as job:
            self.ended_well(job, f"{variables} {' '.join(command)}")

    def ended_well(self, job: subprocess.Popen[str], what: str) -> None:
        try:
            text, _ = job.communicate(timeout=3000 if ALL else WAIT_S)
        except subprocess.TimeoutExpired:
            where = where_they_are(job)
            job.send_signal(signal.SIGTERM)  # the launcher ends its ranks
            text, _ = job.communicate(timeout=WAIT_S)
            self.fail(f"it hangs: {what}\n{text}\n{where}")
        self.assertEqual((job.returncode, text), (0, ""), what)


class Matrix(Jobs):
    def test_the_algorithms_that_are_chosen_by_themselves(self) -> None:
        for size in (1, 2, 3, 4, 5, 7, 8):
            with self.subTest(size):
                has_time = size in (1, 2, 5) and not BRIEF
                self.world(size, "all" if ALL else "more" if has_time else "some")

    def test_every_algorithm(self) -> None:
        for choice in choices():
            for size in (1, 2, 3, 4, 5, 7, 8) if ALL else (3,) if BRIEF else (3, 8):
                with self.subTest(choice, size=size):
                    self.world(size, "more" if ALL else "some", HOCKET_ALGORITHM=choice)

    def test_every_algorithm_that_knows_hosts(self) -> None:
        """Two hosts, as two launchers tell."""
        for choice in [each for each in choices() if "two_level" in each]:
            for ranks in (1, 2, 3, 4) if ALL else (2,):
                with self.subTest(choice, ranks=ranks):
                    self.two_hosts(ranks, choice)

    def two_hosts(self, ranks: int, choice: str) -> None:
        master = f"127.0.0.1:{free_port()}"
        jobs = [subprocess.Popen(
            [HOCKET, "run", "--nnodes", "2", "--node-rank", node, "--master", master,
             "-n", str(ranks), "--", PROGRAM, "more" if ALL else "some"],
            env=environment(HOCKET_ALGORITHM=choice), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True) for node in ("0", "1")]
        try:
            for job in jobs:
                self.ended_well(job, f"{ranks} ranks on each of two hosts: {choice}")
        finally:
            for job in jobs:
                job.terminate()
                job.communicate(timeout=WAIT_S)

    def test_communicators_from_others(self) -> None:
        for size in (1, 2, 5):
            with self.subTest(size):
                self.world(size, "groups")

    def test_many_communicators_at_once(self) -> None:
        for size in (2, 3, 4) if ALL else (3,):
            with self.subTest(size):
                self.world(size, "crowd")

    def test_many_vectors_in_one_operation(self) -> None:
        for size in (1, 2, 5):
            with self.subTest(size):
                self.world(size, "batches")
        if not BRIEF:
            self.world(3, "too_large")

    def test_wrong_arguments_are_refused(self) -> None:
        for size in (1, 3):
            with self.subTest(size):
                self.world(size, "mistakes")

    def test_several_streams(self) -> None:
        self.world(3, "some", HOCKET_TCP_STREAMS="3")

    def test_two_networks(self) -> None:
        """As if each rank were a host of its own."""
        rails = 'HOCKET_TCP_INTERFACES="127.0.0.$((RANK + 1)),127.0.1.$((RANK + 1))" exec "$@"'
        for size, part in ((2, "more"), (3, "groups"), (3, "crowd"), (5, "some")):
            with self.subTest(size, part=part):
                self.world(size, part, through=("sh", "-c", rails, "sh"))


class Rank:
    """A rank without a launcher, which would end the others when one fails."""

    def __init__(self, part: str, rank: int, size: int, port: int, variables: dict) -> None:
        self.rank = rank
        self.child = subprocess.Popen(
            [PROGRAM, part], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=environment(RANK=rank, WORLD_SIZE=size, MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
                            **variables))
        self.text = ""

    def line(self, pattern: str) -> re.Match[str]:
        assert self.child.stdout
        for line in self.child.stdout:
            self.text += line
            if found := re.match(pattern, line):
                return found
        raise AssertionError(f"rank {self.rank} ends without {pattern}: {self.text}")

    def end(self, timeout: float) -> int:
        rest, _ = self.child.communicate(timeout=timeout)
        self.text += rest
        return self.child.returncode

    def outcomes(self) -> list[dict[str, str]]:
        return [dict(re.findall(r"(\w+)=(\S*)", line)) for line in self.text.splitlines()
                if line.startswith("outcome: ")]


class Hosts(Jobs):
    """Emulated hosts, each with a network of its own. Ranks of one host share memory, if TRANSPORT lets them."""

    def test_hosts_of_several_ranks(self) -> None:
        netlab.skip_where_there_can_be_none()
        hosts = [(1, 1, 1, 2, 2, 2), (1, 2, 1, 2, 2, 1), (1, 1, 1, 2, 3, 3), (1, 2, 2, 2, 2), (1, 1, 1, 2, 2, 3, 4, 4),
                 (1, 2, 3, 1, 2)]
        for of_ranks in hosts[:3 if BRIEF else None]:
            with self.subTest(of_ranks):
                self.hosts(of_ranks)

    def hosts(self, of_ranks: tuple[int, ...]) -> None:
        """Runs a rank on each of these hosts."""
        variables = " ".join(f"{name}={text}" for name, text in TRANSPORT.items())
        starts = [f'"$NETLAB_RSH" h{host} env RANK={rank} WORLD_SIZE={len(of_ranks)} MASTER_ADDR=10.77.0.1 '
                  f"MASTER_PORT=29500 HOCKET_SECRET=hush {variables} {Path(PROGRAM).absolute()} {'all' if ALL else 'some'} & pids=\"$pids $!\""
                  for rank, host in enumerate(of_ranks)]
        ends = "failed=0; for pid in $pids; do wait $pid || failed=1; done; exit $failed"
        command = [netlab.NETLAB, "run", "--hosts", str(max(of_ranks)), "--rate", "none", "--", "sh", "-c",
                   "\n".join(["exec 2>&1", *starts, ends])]
        with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True) as job:
            self.ended_well(job, f"ranks of the hosts {of_ranks}")


class Troubles(unittest.TestCase):
    def start(self, part: str, size: int, **variables: str) -> list[Rank]:
        port = free_port()
        ranks = [Rank(part, rank, size, port, variables) for rank in range(size)]
        for each in ranks:
            self.addCleanup(each.child.communicate)
            self.addCleanup(each.child.kill)
        return ranks

    def check(self, ranks: list[Rank], codes: set[str], *, but: int = -1) -> None:
        """All but one fail for such a reason, and soon; and nothing else is wrong."""
        for each in ranks:
            try:
                status = each.end(WAIT_S)
            except subprocess.TimeoutExpired:
                self.fail(f"rank {each.rank} hangs: {each.text}")
            if each.rank == but:
                continue
            self.assertEqual(status, 0, each.text)
            self.assertTrue(each.outcomes(), each.text)
            for outcome in each.outcomes():
                self.assertIn(outcome["code"], codes, each.text)
                self.assertEqual(outcome["rank"], str(each.rank), each.text)
                self.assertNotEqual(outcome["peer"], "-1", each.text)
                self.assertLess(float(outcome["seconds"]), SOON_S, each.text)
        self.assertEqual(len(set(self.told(ranks))), 1, [each.text for each in ranks])

    def names(self, ranks: list[Rank], rank: int, code: str) -> None:
        """Somebody tells which rank it was."""
        self.assertIn((code, str(rank)), self.told(ranks))

    def all_name(self, ranks: list[Rank], rank: int, code: str) -> None:
        """Whoever had to do with it, and whoever had not."""
        self.assertEqual(set(self.told(ranks)), {(code, str(rank))})

    @staticmethod
    def told(ranks: list[Rank]) -> list[tuple[str, str | None]]:
        return [(outcome["code"], outcome.get("peer")) for each in ranks
                for outcome in each.outcomes()]

    def test_another_count(self) -> None:
        for size in (2, 3, 5):
            with self.subTest(size):
                ranks = self.start("another_count", size)
                self.check(ranks, {"mismatch", "timeout"})

    def test_the_algorithm_is_the_one_that_was_asked_for(self) -> None:
        for name in algorithms()["all_reduce"]:
            with self.subTest(name):
                ranks = self.start("another_count", 3, HOCKET_ALGORITHM=f"all_reduce={name}")
                self.check(ranks, {"mismatch", "timeout"})
                self.assertIn(f"all_reduce by {name} failed", ranks[0].text)

    def test_another_operation(self) -> None:
        for size in (2, 4):
            with self.subTest(size):
                ranks = self.start("another_operation", size)
                self.check(ranks, {"mismatch", "timeout"})

    def test_a_rank_that_comes_too_late(self) -> None:
        for part in ("late", "late_to_many"):
            for size in (2, 4):
                with self.subTest(part, size=size):
                    ranks = self.start(part, size)
                    # What came before the others gave up may be enough for the late one.
                    self.check(ranks, {"timeout", "peer_lost"}, but=size - 1)
                    self.assertEqual(ranks[-1].child.returncode, 0, ranks[-1].text)
                    self.names(ranks, size - 1, "timeout")

    def test_a_rank_that_leaves_the_communicator(self) -> None:
        for size in (2, 3):
            with self.subTest(size):
                ranks = self.start("go_away", size)
                self.check(ranks, {"peer_lost"}, but=size - 1)
                self.assertEqual(ranks[-1].child.returncode, 0, ranks[-1].text)
                self.all_name(ranks, size - 1, "peer_lost")

    def test_a_rank_that_ends_in_the_middle(self) -> None:
        for part in ("die", "leave"):
            for size in (2, 4):
                with self.subTest(part, size=size):
                    ranks = self.start(part, size)
                    self.check(ranks, {"peer_lost"}, but=size - 1)
                    self.assertEqual(ranks[-1].child.returncode, 0, ranks[-1].text)
                    self.all_name(ranks, size - 1, "peer_lost")

    def test_a_rank_that_is_killed(self) -> None:
        for part, victim, size in (("work_for_ever", 2, 4), ("work_for_ever", 0, 3),
                                   ("work_for_ever", 1, 2), ("wait_for_ever", 3, 4)):
            with self.subTest(part, victim=victim):
                ranks = self.start(part, size)
                for each in ranks:
                    each.line("ready: ")
                time.sleep(0.3)
                ranks[victim].child.kill()
                self.check(ranks, {"peer_lost"}, but=victim)
                self.all_name(ranks, victim, "peer_lost")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("hocket")
    parser.add_argument("program")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--brief", action="store_true")
    parser.add_argument("--transport")
    parser.add_argument("--netlab", type=Path)
    parser.add_argument("cases", nargs="*")
    options = parser.parse_intermixed_args()
    HOCKET, PROGRAM, ALL, BRIEF = options.hocket, options.program, options.all, options.brief
    if options.netlab:
        netlab.NETLAB = str(options.netlab)
    if options.transport:
        TRANSPORT = {"HOCKET_TRANSPORT": options.transport}
    unittest.main(verbosity=2, argv=[sys.argv[0], *options.cases])
