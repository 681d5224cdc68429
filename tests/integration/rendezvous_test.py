#!/usr/bin/env python3
"""Worlds of real processes: how they form, and for each way to fail the message and the time."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from surroundings import environment, free_port

JOIN = ""  # the programs: the arguments
CAPI = ""
WAIT_S = 60  # for what should take no time, on a machine that is busy


def has_ipv6() -> bool:
    try:
        free_port("::1")
    except OSError:
        return False
    return True


class Process:
    def __init__(self, *command: str, **variables: object) -> None:
        self.started = time.monotonic()
        # Without a buffer: what that read ahead of a line would be lost to `end`.
        self.child = subprocess.Popen(
            command, env=environment(**variables), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, bufsize=0)

    def line(self) -> str:
        """The next that it writes, "" at its end."""
        assert self.child.stdout
        return self.child.stdout.readline().decode()

    def end(self) -> tuple[int, str, float]:
        """Its status, what it wrote after the lines taken, and how long it ran."""
        try:
            text, _ = self.child.communicate(timeout=WAIT_S)
        except subprocess.TimeoutExpired:
            self.child.kill()
            text, _ = self.child.communicate()
            raise AssertionError(
                f"still running after {WAIT_S} s: {text.decode()}") from None
        return self.child.returncode, text.decode(), time.monotonic() - self.started

    def kill(self) -> None:
        if self.child.poll() is None:
            self.child.kill()
        self.child.communicate()


class Worlds(unittest.TestCase):
    def setUp(self) -> None:
        self.port = free_port()
        self.processes: list[Process] = []
        self.directory = tempfile.TemporaryDirectory()

    def tearDown(self) -> None:
        for process in self.processes:
            process.kill()
        self.directory.cleanup()

    def start(self, *command: str, **variables: object) -> Process:
        self.processes.append(Process(*command, **variables))
        return self.processes[-1]

    def rank(self, rank: int, size: int, **variables: object) -> Process:
        named = {"RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1",
                 "MASTER_PORT": self.port, "HOCKET_STORE_TIMEOUT": "30s"}
        return self.start(JOIN, **{**named, **variables})

    def in_file(self, name: str, rank: int, size: int, program: str = "", job: str = "",
                timeout: str = "30s", **variables: object) -> Process:
        url = f"file://{self.directory.name}/{name}?rank={rank}&size={size}&timeout={timeout}"
        return self.start(program or JOIN, HOCKET_RENDEZVOUS=url + (f"&job={job}" if job else ""),
                          **variables)

    def wait_for_rank(self, name: str, rank: int) -> None:
        """Until it stands in the file."""
        file, key = Path(self.directory.name, name), f"entry/0/rank/{rank}".encode()
        deadline = time.monotonic() + WAIT_S
        while not file.exists() or key not in file.read_bytes():
            self.assertLess(time.monotonic(), deadline, f"rank {rank} did not come")
            time.sleep(0.01)

    def joined(self, process: Process) -> dict[str, str]:
        status, text, _ = process.end()
        self.assertEqual(status, 0, text)
        line = next(line for line in text.splitlines() if line.startswith("rank="))
        return dict(re.findall(r"(\w+)=(\S*)", line))

    def refused(self, process: Process, code: str, *parts: str, within_s: float = 15) -> str:
        status, text, took = process.end()
        self.assertEqual(status, 1, text)
        self.assertRegex(text, rf"(?m)^{code}: ")
        for part in parts:
            self.assertIn(part, text)
        self.assertLess(took, within_s, text)
        return text


class Forms(Worlds):
    def test_by_the_variables_of_torch_in_any_order(self) -> None:
        started = [self.rank(rank, 4) for rank in (3, 1)]
        time.sleep(0.5)
        started += [self.rank(rank, 4) for rank in (0, 2)]
        worlds = [self.joined(each) for each in started]
        self.assertEqual([int(each["rank"]) for each in worlds], [3, 1, 0, 2])
        for each in worlds:
            self.assertEqual((each["size"], each["local_size"]), ("4", "4"))
            self.assertEqual(each["local_rank"], each["rank"])
            self.assertEqual(each["address"], "127.0.0.1")

    def test_by_url_with_a_secret_and_a_job(self) -> None:
        url = f"tcp://localhost:{self.port}?size=3&job=nightly&timeout=30s&rank="
        started = [self.start(JOIN, f"{url}{rank}", HOCKET_SECRET="hush") for rank in range(3)]
        for each in started:
            self.assertEqual(self.joined(each)["job"], "nightly")

    @unittest.skipUnless(has_ipv6(), "this machine has no IPv6")
    def test_over_ipv6(self) -> None:
        self.port = free_port("::1")
        started = [self.rank(rank, 2, MASTER_ADDR="::1") for rank in range(2)]
        for each in started:
            self.assertEqual(self.joined(each)["address"], "::1")

    def test_in_a_file(self) -> None:
        url = f"file://{self.directory.name}/store?size=3&rank="
        for each in [self.start(JOIN, f"{url}{rank}") for rank in (1, 2, 0)]:
            self.assertEqual(self.joined(each)["local_size"], "3")

    def test_of_ranks_that_end_as_soon_as_they_joined(self) -> None:
        for _ in range(10):
            started = [self.start(JOIN, "--leave", RANK=rank, WORLD_SIZE=4, MASTER_ADDR="127.0.0.1",
                                  MASTER_PORT=self.port) for rank in range(4)]
            self.assertEqual({self.joined(each)["size"] for each in started}, {"4"})
            self.port = free_port()

    def test_with_the_url_of_the_master_and_the_ranks_of_a_launcher(self) -> None:
        started = [
            self.start(JOIN, HOCKET_RENDEZVOUS=f"tcp://127.0.0.1:{self.port}", SLURM_PROCID=rank,
                       SLURM_NTASKS=2, SLURM_STEP_ID=0, SLURM_JOB_ID=7,
                       SLURM_STEP_NODELIST="nowhere[1-2]")
            for rank in range(2)
        ]
        for each in started:
            self.assertEqual(self.joined(each)["job"], "slurm-7.0")

    def test_of_one_at_a_port_that_it_picks_and_tells(self) -> None:
        process = self.start(JOIN, "tcp://127.0.0.1:0?rank=0&size=1", HOCKET_LOG_LEVEL="info")
        status, text, _ = process.end()
        self.assertEqual(status, 0, text)
        self.assertRegex(text, r"info: rank 0 serves the store at 127\.0\.0\.1:[1-9]\d+\n")

    def test_while_launchers_disagree_which_is_logged(self) -> None:
        _, text, _ = self.rank(0, 1, PMI_RANK=1, PMI_SIZE=2, MPI_LOCALRANKID=1).end()
        self.assertIn("warning: torchrun or env:// says rank 0 of 1, but MPICH or Intel MPI says "
                      "rank 1 of 2; the first is believed\n", text)

    def test_of_the_interface_that_is_wished_for(self) -> None:
        _, text, _ = self.rank(0, 1, HOCKET_INTERFACE="=lo", HOCKET_LOG_LEVEL="info").end()
        self.assertIn("other ranks reach this one at 127.0.0.1 (interface lo, "
                      "HOCKET_INTERFACE==lo)", text)


class Fails(Worlds):
    def test_ranks_that_are_missing_are_named(self) -> None:
        started = [self.rank(rank, 6, HOCKET_STORE_TIMEOUT="3s") for rank in (0, 1, 4)]
        for each in started:
            self.refused(each, "timeout", "3 of 6 ranks are missing: 2, 3, 5;", "hint: ")

    def test_a_master_that_is_missing_is_named(self) -> None:
        text = self.refused(self.rank(1, 2, HOCKET_STORE_TIMEOUT="1s"), "timeout",
                            f"rank 1 of 2 can't join the store of rank 0 at 127.0.0.1:{self.port}",
                            "check that rank 0 runs")
        self.assertNotIn("internal", text)

    def test_a_master_that_is_stopped_is_not_waited_for_long(self) -> None:
        master = self.rank(0, 3, HOCKET_STORE_TIMEOUT="4s", HOCKET_LOG_LEVEL="info")
        time.sleep(0.5)
        other = self.rank(1, 3, HOCKET_STORE_TIMEOUT="4s")
        time.sleep(0.5)
        master.child.send_signal(signal.SIGSTOP)
        self.refused(other, "timeout", "the store does not answer", "rank 1", within_s=10)

    def test_more_ranks_than_rank_0_may_have_files(self) -> None:
        limited = f"ulimit -n 128 && exec {JOIN}"
        master = self.start("bash", "-c", limited, RANK=0, WORLD_SIZE=1000,
                            MASTER_ADDR="127.0.0.1", MASTER_PORT=self.port)
        self.refused(master, "limit exceeded", "can't serve a store to 1000 ranks", "ulimit")

    def test_a_rank_that_comes_twice_is_refused_everywhere(self) -> None:
        started = [self.rank(rank, 4) for rank in (0, 1, 2)]
        time.sleep(1)
        started.append(self.rank(2, 4))
        texts = [self.refused(each, "already exists", "two processes are rank 2: pid ")
                 for each in started]
        pids = {re.search(r"pid \d+ on \S+ and pid \d+ on ", text)[0] for text in texts}
        self.assertEqual(len(pids), 1, pids)

    def test_a_rank_of_another_size_is_refused_everywhere(self) -> None:
        started = [self.rank(0, 3), self.rank(1, 3)]
        time.sleep(1)
        started.append(self.rank(2, 5))
        for each in started:
            self.refused(each, "mismatch", "ranks disagree on the size of the world: 3 for rank ",
                         "but 5 for rank 2 (pid ")

    def test_a_second_master_finds_the_port_busy(self) -> None:
        first = self.rank(0, 2)
        time.sleep(1)
        self.refused(self.rank(0, 2), "already exists", f"127.0.0.1:{self.port}", "hint: ")
        self.joined(self.rank(1, 2))
        self.joined(first)

    def test_another_job_on_the_port_is_refused(self) -> None:
        started = [self.rank(rank, 3, HOCKET_JOB="red") for rank in (0, 1)]
        self.refused(self.rank(2, 3, HOCKET_JOB="blue"), "mismatch", "job")
        for each in [*started, self.rank(2, 3, HOCKET_JOB="red")]:
            self.joined(each)

    def test_a_wrong_secret_is_refused_and_shown_to_nobody(self) -> None:
        master = self.rank(0, 2, HOCKET_SECRET="correct-horse")
        for secret in ({"HOCKET_SECRET": "wrong-horse"}, {}):
            text = self.refused(self.rank(1, 2, **secret, HOCKET_LOG_LEVEL="debug"),
                                "permission denied", str(self.port))
            self.assertNotIn("horse", text)
        self.joined(self.rank(1, 2, HOCKET_SECRET="correct-horse"))
        self.joined(master)

    def test_a_secret_file_that_others_may_read_is_refused(self) -> None:
        path = Path(self.directory.name, "secret")
        path.write_text("hush\n", encoding="utf-8")
        path.chmod(0o644)
        text = self.refused(self.rank(0, 1, HOCKET_SECRET_FILE=path), "permission denied",
                            "HOCKET_SECRET_FILE", "chmod")
        self.assertNotIn("hush", text)
        path.chmod(0o600)
        self.joined(self.rank(0, 1, HOCKET_SECRET_FILE=path))

    def test_the_world_is_not_served_without_a_secret(self) -> None:
        name = socket.gethostname()
        process = self.start(JOIN, f"tcp://{name}:{self.port}?rank=0&size=1")
        self.refused(process, "permission denied", "hint: ")
        self.joined(self.start(JOIN, f"tcp://{name}:{self.port}?rank=0&size=1",
                               HOCKET_ALLOW_WITHOUT_SECRET=1))

    def test_an_interface_that_is_not_there_is_told_to_all(self) -> None:
        started = [self.rank(0, 2), self.rank(1, 2, HOCKET_INTERFACE="wlan9")]
        for each in started:
            self.refused(each, "not found", "rank 1 (pid ", 'HOCKET_INTERFACE="wlan9"',
                         "lo 127.0.0.1/8")

    def test_a_file_of_another_job_or_run_is_refused(self) -> None:
        url = f"file://{self.directory.name}/store?size=1&rank=0&job="
        self.joined(self.start(JOIN, url + "red"))
        self.refused(self.start(JOIN, url + "blue"), "mismatch", "job")
        waiting = self.in_file("other", 0, 2, job="red")
        self.wait_for_rank("other", 0)
        for each in (self.in_file("other", 0, 2, job="red"), waiting):
            self.refused(each, "already exists", "two processes are rank 0", "or its file")

    def test_what_a_start_left_in_its_file_does_not_spoil_the_next(self) -> None:
        self.refused(self.in_file("s", 1, 2, timeout="1s"), "timeout", "1 of 2 ranks is missing: 0;")
        for each in [self.in_file("s", rank, 2) for rank in range(2)]:
            self.joined(each)
        killed = [self.in_file("k", rank, 3) for rank in range(2)]
        for rank in range(2):
            self.wait_for_rank("k", rank)
        for each in killed:
            each.child.kill()
            each.child.wait()
        for _ in range(2):
            for each in [self.in_file("k", rank, 2) for rank in range(2)]:
                self.assertEqual(self.joined(each)["local_size"], "2")

    def test_a_fault_is_told_to_who_comes_later_to_a_file(self) -> None:
        wrong = self.in_file("s", 0, 2, HOCKET_INTERFACE="wlan9")
        self.wait_for_rank("s", 0)
        for each in (self.in_file("s", 1, 2), wrong):
            self.refused(each, "not found", "rank 0 (pid ", 'HOCKET_INTERFACE="wlan9"')

    def test_ranks_that_meet_in_a_file_need_no_secret(self) -> None:
        started = [self.in_file("s", rank, 2, program=CAPI) for rank in range(2)]
        for each in started:
            status, text, _ = each.end()
            self.assertEqual(status, 0, text)

    def test_ranks_that_are_missing_from_a_file_are_named(self) -> None:
        self.refused(self.start(JOIN, f"file://{self.directory.name}/s?size=2&rank=1&timeout=2s"),
                     "timeout", "1 of 2 ranks is missing: 0;")

    def test_port_0_is_for_rank_0(self) -> None:
        self.refused(self.start(JOIN, "tcp://127.0.0.1:0?rank=1&size=2"), "invalid argument",
                     "rank 0 alone may pick a free port")

    def test_no_launcher_and_no_master(self) -> None:
        self.refused(self.start(JOIN), "not found", "nothing says which rank", "hocket run")
        self.refused(self.start(JOIN, RANK="0", WORLD_SIZE="2"), "invalid argument",
                     "MASTER_ADDR")

    def test_a_url_that_is_wrong(self) -> None:
        self.refused(self.start(JOIN, "tcp://a:1?rnk=0"), "invalid argument", "did you mean rank?")


class TellsEveryone(Worlds):
    """A rank that can't come ends the start of all others at once: they wait a minute otherwise."""

    # Of what should take 2 s at most, on a machine that is busy.
    SOON_S = 10

    def waiting(self, *ranks: int, size: int, **variables: object) -> list[Process]:
        started = [self.rank(rank, size, HOCKET_STORE_TIMEOUT="60s", HOCKET_LOG_LEVEL="info",
                             **variables) for rank in ranks]
        for each in started:
            while "other ranks reach this one at" not in (line := each.line()):
                self.assertNotEqual(line, "", "it has ended")
        time.sleep(0.3)  # from that line to the store
        return started

    def told(self, waiting: list[Process], code: str, *parts: str) -> list[str]:
        begin = time.monotonic()
        texts = [self.refused(each, code, *parts, within_s=WAIT_S) for each in waiting]
        self.assertLess(time.monotonic() - begin, self.SOON_S, texts)
        return texts

    def test_of_a_rank_with_another_secret(self) -> None:
        for secret, why in (({"HOCKET_SECRET": "other"}, "does not prove that it knows our secret"),
                            ({}, "the client has no secret")):
            waiting = self.waiting(0, 1, 3, size=4, HOCKET_SECRET="hush")
            self.refused(self.rank(2, 4, **secret), "permission denied")
            texts = self.told(waiting, "permission denied", why, "HOCKET_SECRET")
            for text in texts:
                self.assertRegex(text, r"rank 2 at 127\.0\.0\.1:\d+ was refused by the store")
            self.port = free_port()

    def test_of_a_rank_with_another_secret_that_comes_before_them(self) -> None:
        first = self.waiting(0, size=3, HOCKET_SECRET="hush")
        self.refused(self.rank(2, 3, HOCKET_SECRET="other"), "permission denied")
        first += self.waiting(1, size=3, HOCKET_SECRET="hush")
        self.told(first, "permission denied", "rank 2 at 127.0.0.1:", "was refused")

    def test_of_a_rank_with_another_secret_or_no_key_of_tls(self) -> None:
        for ours, other in (("psk", {"HOCKET_SECRET": "other", "HOCKET_TLS": "psk"}),
                            ("psk", {"HOCKET_SECRET": "hush"}),
                            ("off", {"HOCKET_SECRET": "hush", "HOCKET_TLS": "psk"})):
            waiting = self.waiting(0, 1, size=3, HOCKET_SECRET="hush", HOCKET_TLS=ours)
            status, text, _ = self.rank(2, 3, **other).end()
            if "built without TLS" in text:
                self.skipTest("this build has no TLS")
            self.assertEqual(status, 1, text)
            code = "protocol error" if other["HOCKET_SECRET"] == "hush" else "permission denied"
            self.told(waiting, code, " at 127.0.0.1:", "was refused by the store")
            self.port = free_port()

    def test_of_a_rank_that_dies_while_it_waits(self) -> None:
        waiting = self.waiting(0, 1, size=4)
        victim, = self.waiting(2, size=4)
        victim.child.kill()
        self.told(waiting, "peer lost", f"rank 2 (pid {victim.child.pid} on ", "is lost")

    def test_of_the_death_of_rank_0(self) -> None:
        waiting = self.waiting(0, 1, 2, size=4)
        waiting[0].child.kill()
        self.told(waiting[1:], "peer lost", "rank 0")

    def test_but_not_a_world_that_runs(self) -> None:
        ranks = self.waiting(0, 1, size=3, HOCKET_SECRET="hush")
        ranks.append(self.start(JOIN, "--linger", RANK=2, WORLD_SIZE=3, MASTER_ADDR="127.0.0.1",
                                MASTER_PORT=self.port, HOCKET_SECRET="hush"))
        time.sleep(1)
        for rank in range(1, 4):
            self.refused(self.rank(rank, 4, HOCKET_SECRET="other"), "permission denied")
        for each in ranks:
            self.joined(each)

    def test_but_not_of_a_rank_that_comes_after_all(self) -> None:
        waiting = self.waiting(0, 1, size=3, HOCKET_SECRET="hush", HOCKET_JOB="red")
        self.refused(self.rank(2, 3, HOCKET_SECRET="other", HOCKET_JOB="red"), "permission denied")
        for each in [*waiting, self.rank(2, 3, HOCKET_SECRET="hush", HOCKET_JOB="red")]:
            self.joined(each)

    def test_but_not_of_one_that_does_not_know_the_name_of_the_job(self) -> None:
        waiting = self.waiting(0, 1, size=3, HOCKET_SECRET="hush", HOCKET_JOB="red")
        for job in ({}, {"HOCKET_JOB": "blue"}):
            self.refused(self.rank(2, 3, HOCKET_SECRET="other", **job), "mismatch")
        time.sleep(3)  # more than a rank that was refused is given to come after all
        for each in [*waiting, self.rank(2, 3, HOCKET_SECRET="hush", HOCKET_JOB="red")]:
            self.joined(each)



class Launchers(Worlds):
    """Without MASTER_ADDR: the ranks of one host find each other by themselves."""

    def launch(self, *command: str, **variables: object) -> list[dict[str, str]]:
        runtime = Path(self.directory.name, "runtime")
        runtime.mkdir(mode=0o700, exist_ok=True)
        process = self.start(*command, XDG_RUNTIME_DIR=runtime, HOCKET_STORE_TIMEOUT="30s",
                             **variables)
        status, text, _ = process.end()
        self.assertEqual(status, 0, text)
        self.assertEqual(list(runtime.glob("hocket/*")), [], "files are left behind")
        return [dict(re.findall(r"(\w+)=(\S*)", line)) for line in text.splitlines()
                if line.startswith("rank=")]

    def check(self, worlds: list[dict[str, str]], size: int, launcher: str) -> None:
        self.assertEqual(sorted(int(each["rank"]) for each in worlds), list(range(size)))
        for each in worlds:
            self.assertEqual(each["size"], str(size))
            self.assertEqual(each["local_rank"], each["rank"])
            self.assertEqual(each["by"], launcher.split()[0])

    @contextmanager
    def program(self, name: str) -> Iterator[str]:
        path = shutil.which(name)
        if path is None:
            self.skipTest(f"{name} is not installed")
        yield path

    def test_open_mpi(self) -> None:
        with self.program("mpirun.openmpi") as mpirun:
            command = [mpirun, "--allow-run-as-root", "--oversubscribe", "-n", "4"]
            self.check(self.launch(*command, JOIN), 4, "Open MPI")
            self.check(self.launch(*command, "-x", "MASTER_ADDR=127.0.0.1", "-x",
                                   f"MASTER_PORT={self.port}", JOIN), 4, "Open MPI")

    def test_mpich(self) -> None:
        with self.program("mpirun.mpich") as mpirun:
            self.check(self.launch(mpirun, "-n", "4", JOIN), 4, "MPICH")
            self.check(self.launch(mpirun, "-n", "4", "sh", "-c", f"'{JOIN}'; exit $?"), 4, "MPICH")

    def test_two_launches_at_once_do_not_meet(self) -> None:
        with self.program("mpirun.mpich") as mpirun:
            runtime = Path(self.directory.name, "runtime")
            runtime.mkdir(mode=0o700)
            both = [self.start(mpirun, "-n", "2", JOIN, XDG_RUNTIME_DIR=runtime) for _ in range(2)]
            for each in both:
                status, text, _ = each.end()
                self.assertEqual((status, text.count("size=2")), (0, 4), text)


    def test_a_file_left_by_a_rank_0_that_was_killed_misleads_nobody(self) -> None:
        runtime = Path(self.directory.name, "runtime")
        runtime.mkdir(mode=0o700)
        named = {"OMPI_COMM_WORLD_SIZE": 2, "OMPI_COMM_WORLD_LOCAL_SIZE": 2,
                 "PMIX_NAMESPACE": "again", "XDG_RUNTIME_DIR": runtime,
                 "HOCKET_STORE_TIMEOUT": "20s"}
        killed = self.start(JOIN, **named, OMPI_COMM_WORLD_RANK=0, OMPI_COMM_WORLD_LOCAL_RANK=0)
        end = time.monotonic() + WAIT_S
        while not list(runtime.rglob("*again*")) and time.monotonic() < end:
            time.sleep(0.01)
        killed.child.kill()
        second = self.start(JOIN, **named, OMPI_COMM_WORLD_RANK=1, OMPI_COMM_WORLD_LOCAL_RANK=1)
        time.sleep(0.3)
        first = self.start(JOIN, **named, OMPI_COMM_WORLD_RANK=0, OMPI_COMM_WORLD_LOCAL_RANK=0)
        self.assertEqual({self.joined(each)["rank"] for each in (first, second)}, {"0", "1"})


class Hosts(Worlds):
    """Two hosts: network namespaces with a cable between them."""

    ADDRESSES = ("10.99.0.1", "10.99.0.2")

    def setUp(self) -> None:
        super().setUp()
        self.hosts = [f"hocket-{os.getpid()}-{host}" for host in range(2)]
        if os.geteuid() != 0 or shutil.which("ip") is None:
            self.skipTest("network namespaces need root and `ip`")
        try:
            for host in self.hosts:
                self.ip("netns", "add", host)
                self.addCleanup(self.ip, "netns", "del", host)
            self.ip("link", "add", "cable", "netns", self.hosts[0], "type", "veth",
                    "peer", "name", "cable", "netns", self.hosts[1])
        except subprocess.CalledProcessError as error:
            self.skipTest(f"no network namespaces here: {error.stderr.strip()}")
        for host, address in zip(self.hosts, self.ADDRESSES):
            self.ip("-n", host, "address", "add", f"{address}/24", "dev", "cable")
            self.ip("-n", host, "link", "set", "cable", "up")
            self.ip("-n", host, "link", "set", "lo", "up")

    def ip(self, *arguments: str) -> None:
        subprocess.run(["ip", *arguments], capture_output=True, text=True, timeout=WAIT_S,
                       check=True)

    def on_host(self, host: int, **variables: object) -> Process:
        named = {"RANK": host, "WORLD_SIZE": 2, "MASTER_ADDR": self.ADDRESSES[0],
                 "MASTER_PORT": 29777, "HOCKET_STORE_TIMEOUT": "20s", "HOCKET_SECRET": "hush"}
        return self.start("ip", "netns", "exec", self.hosts[host], JOIN, **{**named, **variables})

    def test_who_waits_for_the_master_does_not_take_its_port(self) -> None:
        """A client's own end may be given the port that it connects to."""
        subprocess.run(["ip", "netns", "exec", self.hosts[0], "sh", "-c",
                        "echo 29776 29779 >/proc/sys/net/ipv4/ip_local_port_range"],
                       timeout=WAIT_S, check=True)
        ranks = [self.start("ip", "netns", "exec", self.hosts[0], JOIN, RANK=rank, WORLD_SIZE=2,
                            MASTER_ADDR="127.0.0.1", MASTER_PORT=29777,
                            HOCKET_STORE_TIMEOUT="20s") for rank in (1,)]
        time.sleep(2)
        ranks.append(self.start("ip", "netns", "exec", self.hosts[0], JOIN, RANK=0, WORLD_SIZE=2,
                                MASTER_ADDR="127.0.0.1", MASTER_PORT=29777,
                                HOCKET_STORE_TIMEOUT="20s"))
        self.assertEqual([self.joined(each)["rank"] for each in ranks], ["1", "0"])

    def test_each_rank_has_the_address_of_its_route(self) -> None:
        for host, each in enumerate([self.on_host(0), self.on_host(1)]):
            world = self.joined(each)
            self.assertEqual((world["address"], world["local_size"]), (self.ADDRESSES[host], "1"))

    def test_a_rank_with_a_loopback_address_is_told_to_all(self) -> None:
        for lonely in range(2):
            wishes = [{"HOCKET_INTERFACE": "lo"} if host == lonely else {} for host in range(2)]
            for each in [self.on_host(host, **wish) for host, wish in enumerate(wishes)]:
                self.refused(each, "invalid argument", "the ranks are on several hosts",
                             f"and rank {lonely} (pid ", "has only a loopback address")

    def test_other_hosts_are_not_served_without_a_secret(self) -> None:
        self.refused(self.on_host(0, HOCKET_SECRET=""), "permission denied", "HOCKET_SECRET")


if __name__ == "__main__":
    JOIN, CAPI = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main(verbosity=2)  # with the reasons of what is skipped
