#!/usr/bin/env python3
"""`hocket run` on several hosts: through a remote shell, and under a scheduler (--nnodes).

The remote shell is a script that runs the command here; where the test may make network
namespaces, it runs it in one for each host.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import launcher
from launcher import SOON, Case, Job, wait_until
from surroundings import environment, free_port

LOCAL = "127.0.0.1:0"
JOIN = ""  # a program that joins a world and ends
SHELL = r"""#!/bin/sh
host=$1; shift
[ -d "$HOSTS/down-$host" ] && { echo "no route to $host" >&2; exit 255; }
[ -d "$HOSTS/deaf-$host" ] && exec sleep 600
[ -d "$HOSTS/old-$host" ] && { echo "hocket agent 0"; exec cat > /dev/null; }
[ -d "$HOSTS/chatty-$host" ] && { yes "noise of $host" >&2 & }
echo "Welcome to $host"
printf '\033]0;%s\007' "$host"
exec sh -c "$*"
"""


class Hosts(Case):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.shell = self.folder / "shell"
        self.shell.write_text(SHELL, "ascii")
        self.shell.chmod(0o755)

    def on_hosts(self, hosts: str, *arguments: str, **options: object) -> Job:
        return self.job("--hosts", hosts, "--rsh", str(self.shell), "--master", LOCAL, *arguments,
                        HOSTS=str(self.folder), **options)

    def test_ranks_are_laid_out_host_by_host(self) -> None:
        program = "import json, os; print(json.dumps(dict(os.environ)))"
        job = self.on_hosts("a:2,b:2", "--no-tag-output", sys.executable, "-c", program)
        status, stdout, _ = job.finish()
        self.assertEqual(status, 0)
        ranks = sorted((json.loads(line) for line in stdout.splitlines()),
                       key=lambda each: int(each["RANK"]))
        places = [tuple(int(each[name]) for name in ("RANK", "LOCAL_RANK", "GROUP_RANK"))
                  for each in ranks]
        self.assertEqual(places, [(0, 0, 0), (1, 1, 0), (2, 0, 1), (3, 1, 1)])
        for name in ("HOCKET_STORE", "HOCKET_SECRET", "HOCKET_JOB", "MASTER_PORT"):
            self.assertEqual(len({each[name] for each in ranks}), 1, name)
        self.assertRegex(ranks[0]["HOCKET_STORE"], r"^127\.0\.0\.1:[1-9]\d*$")
        self.assertEqual((ranks[3]["WORLD_SIZE"], ranks[3]["LOCAL_WORLD_SIZE"],
                          ranks[3]["GROUP_WORLD_SIZE"]), ("4", "2", "2"))

    def test_the_secret_is_on_no_command_line(self) -> None:
        job = self.on_hosts("a,b", "-n", "1", "sh", "-c", "echo $HOCKET_SECRET; exec sleep 600")
        assert job.process.stdout
        secret = job.process.stdout.readline().split()[1]
        for pid in job.running():
            self.assertNotIn(secret, Path(f"/proc/{pid}/cmdline").read_bytes())

    def test_words_folder_and_variables_arrive_as_they_are(self) -> None:
        folder = self.folder / "it's a $folder"
        folder.mkdir()
        words = ["a b", "'", '"$HOME"', "*", "", "\\", "ü", b"\xff\xfe".decode("utf-8", "surrogateescape")]
        program = "import os, sys; print(ascii((sys.argv[1:], os.getcwd(), os.environ['NEW'])))"
        here = os.getcwd()
        os.chdir(folder)
        try:
            launched = str(Path(here, launcher.HOCKET))
            launcher.HOCKET, before = launched, launcher.HOCKET
            job = self.on_hosts("a", "-n", "1", "--no-tag-output", "-x", "NEW=it's \n new", "--",
                                sys.executable, "-c", program, *words)
            launcher.HOCKET = before
        finally:
            os.chdir(here)
        status, stdout, stderr = job.finish()
        self.assertEqual((status, stderr), (0, b""))
        self.assertEqual(stdout.decode("ascii").strip(),
                         ascii((words, str(folder), "it's \n new")))

    def test_stdin_reaches_rank_0(self) -> None:
        job = self.on_hosts("a:2,b:2", "--no-tag-output", "wc", "-c", stdin=subprocess.PIPE)
        stdout, _ = job.process.communicate(bytes(1_000_000), timeout=launcher.PATIENCE)
        self.assertEqual((job.process.returncode, sorted(stdout.split())),
                         (0, [b"0", b"0", b"0", b"1000000"]))

    def test_nothing_is_lost_of_much_output(self) -> None:
        job = self.on_hosts("a:2,b:2", "--no-tag-output", "head", "-c", "5000000", "/dev/zero")
        time.sleep(0.5)
        status, stdout, _ = job.finish()
        self.assertEqual((status, len(stdout)), (0, 20_000_000))

    def test_the_first_failure_is_named_with_its_host(self) -> None:
        job = self.on_hosts("a:2,b:2", "sh", "-c",
                            "[ $RANK = 2 ] && { echo why >&2; exit 6; }; exec sleep 600")
        status, _, stderr = job.finish(SOON)
        self.assertEqual(status, 6)
        self.assertRegex(stderr, rb"rank 2 failed first, on b \(pid \d+\), after .*: exit status 6")
        self.assertIn(b"  | why\n", stderr)
        self.assertEqual(job.running(), [])

    def test_restarts(self) -> None:
        job = self.on_hosts("a:2,b:2", "--max-restarts", "2", "sh", "-c",
                            "[ $HOCKET_ATTEMPT$RANK = 03 ] && exit 6; "
                            "[ $HOCKET_ATTEMPT = 0 ] && exec sleep 600; echo fine")
        status, stdout, _ = job.finish(SOON)
        self.assertEqual((status, stdout.count(b"fine")), (0, 4))

    def test_a_missing_program_is_named_with_the_host(self) -> None:
        status, _, stderr = self.on_hosts("a,b", "-n", "1", "nonexistent-program").finish(SOON)
        self.assertEqual(status, 127)
        self.assertRegex(stderr, rb"on [ab]: nonexistent-program can't be started: No such file")

    def test_hosts_that_do_not_answer_are_all_named_and_nothing_starts(self) -> None:
        for name in ("down-b", "down-c"):
            (self.folder / name).mkdir()
        status, stdout, stderr = self.on_hosts("a:1,b:1,c:1", "echo", "started").finish(SOON)
        self.assertEqual((status, stdout), (1, b""))
        for host in (b"b", b"c"):
            self.assertRegex(stderr, host + rb": .*exit status 255; it said: no route to " + host)
        self.assertNotIn(b"  a: ", stderr)

    def test_a_host_that_says_nothing_is_given_up(self) -> None:
        (self.folder / "deaf-b").mkdir()
        job = self.on_hosts("a:1,b:1", "--timeout", "1s", "echo", "started")
        status, stdout, stderr = job.finish(SOON)
        self.assertEqual((status, stdout), (1, b""))
        self.assertIn(b"b: no answer within", stderr)
        self.assertEqual(job.running(), [])

    def agents(self, job: Job) -> list[int]:
        """Both processes of all agents."""
        found = []
        for pid in job.running():
            if Path(f"/proc/{pid}/cmdline").read_bytes().endswith(b"\0run\0--agent\0"):
                found.append(pid)
        return found

    def test_a_host_that_is_lost_while_another_is_awaited(self) -> None:
        (self.folder / "deaf-b").mkdir()
        job = self.on_hosts("a:1,b:1", "--timeout", "4s", "echo", "started")
        wait_until(lambda: len(self.agents(job)) == 2, "the agent of a has started")
        time.sleep(1)
        for pid in self.agents(job):
            os.kill(pid, signal.SIGKILL)
        status, stdout, stderr = job.finish(SOON)
        self.assertEqual((status, stdout), (1, b""))
        self.assertRegex(stderr, rb"  a: the connection has ended; .* has ended: killed by SIGKILL")
        self.assertIn(b"  b: no answer within", stderr)

    def test_an_agent_of_another_version_is_told(self) -> None:
        (self.folder / "old-b").mkdir()
        job = self.on_hosts("a:1,b:1", "echo", "started")
        status, stdout, stderr = job.finish(SOON)
        self.assertEqual((status, stdout), (1, b""))
        self.assertIn(b'b: it is another version: it greets as "hocket agent 0"', stderr)

    def test_a_second_interrupt_waits_for_no_agent_that_hangs(self) -> None:
        job = self.stubborn()
        for pid in self.agents(job):
            os.kill(pid, signal.SIGSTOP)
        job.process.send_signal(signal.SIGINT)
        time.sleep(1)
        job.process.send_signal(signal.SIGINT)
        self.assertEqual(job.finish(SOON)[0], 128 + signal.SIGINT)
        self.assertEqual(job.running(), [])

    def test_a_chatty_shell_is_read_no_faster_than_it_is_shown(self) -> None:
        (self.folder / "chatty-a").mkdir()
        job = self.on_hosts("a:1,b:1", "sh", "-c", "echo ready; exec sleep 600")
        assert job.process.stdout
        for _ in range(2):
            job.process.stdout.readline()
        time.sleep(1)
        status = Path(f"/proc/{job.worker()}/status").read_text("ascii")
        resident = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert resident
        self.assertLess(int(resident[1]), 100_000)

    def test_a_working_folder_that_is_gone(self) -> None:
        gone = self.folder / "gone"
        gone.mkdir()
        script = f"cd {gone}; rmdir {gone}; exec {Path(launcher.HOCKET).absolute()} run --hosts a:1 true"
        ran = subprocess.run(["sh", "-c", script], capture_output=True, timeout=SOON, check=False)
        self.assertEqual(ran.returncode, 1)
        self.assertIn(b"the working folder has no name", ran.stderr)

    def test_an_interrupt_while_waiting_for_hosts(self) -> None:
        (self.folder / "deaf-a").mkdir()
        job = self.on_hosts("a:1", "echo", "started")
        wait_until(lambda: len(job.running()) == 3, "the remote shell has started")
        job.process.send_signal(signal.SIGINT)
        self.assertEqual(job.finish(SOON)[0], 128 + signal.SIGINT)
        self.assertEqual(job.running(), [])

    def test_signals_reach_the_ranks(self) -> None:
        job = self.on_hosts("a:1,b:1", "sh", "-c",
                            "trap 'echo got it; exit 0' TERM; echo ready; while :; do sleep 0.1; done")
        assert job.process.stdout
        for _ in range(2):
            job.process.stdout.readline()
        job.process.send_signal(signal.SIGTERM)
        status, stdout, _ = job.finish(SOON)
        self.assertEqual((status, stdout.count(b"got it")), (128 + signal.SIGTERM, 2))

    def stubborn(self) -> Job:
        job = self.on_hosts("a:1,b:1", "--grace", "1s", "sh", "-c",
                            "setsid sleep 600 & trap '' TERM; echo ready; while :; do sleep 1; done")
        assert job.process.stdout
        for _ in range(2):
            job.process.stdout.readline()
        return job

    def test_nothing_is_left_after_kill_of_the_head(self) -> None:
        job = self.stubborn()
        job.process.kill()
        launcher.wait_until(lambda: job.running() == [], "nothing of the job runs")

    def test_nothing_is_left_after_kill_of_the_heads_worker(self) -> None:
        job = self.stubborn()
        os.kill(job.worker(), signal.SIGKILL)
        self.assertEqual(job.finish(SOON)[0], 128 + signal.SIGKILL)
        self.assert_gone(job)

    def test_a_lost_agent_ends_the_job(self) -> None:
        job = self.stubborn()
        children = Path(f"/proc/{job.worker()}/task/{job.worker()}/children").read_text("ascii")
        for pid in children.split()[1:]:
            os.kill(int(pid), signal.SIGKILL)
        status, _, stderr = job.finish(SOON)
        self.assertEqual(status, 1)
        self.assertIn(b"hocket run: b is lost: ", stderr)
        self.assert_gone(job)

    def test_bad_lists_are_refused(self) -> None:
        file = self.folder / "hosts"
        for arguments, told in (
                (["--hosts", "a:2,b:3"], b"the slots don't divide evenly: a has 2, b has 3"),
                (["--hosts", "a:2,b:2", "-n", "3"], b"a has 2 slots, too few for 3 ranks"),
                (["--hosts", "a:x"], b'"a:x" is no host'),
                (["--hosts", "a,,b"], b'"" is no host'),
                (["--hosts", "a", "--hostfile", str(file)], b"both name the hosts"),
                (["--hosts", "a", "--nnodes", "2"], b"exclude each other"),
                (["--hostfile", str(file)], b"can't be read"),
                (["--nnodes", "2"], b"needs --master"),
                (["--nnodes", "2", "--master", "a:0"], b"has no port that all nodes know"),
                (["--nnodes", "1000000", "-n", "4000", "--master", "a:1"], b"are too many"),
                (["--hosts", ""], b"--hosts: its value is empty"),
                (["--hostfile", ""], b"--hostfile: its value is empty"),
                (["--hosts", "a", "--rsh", ""], b"--rsh: its value is empty"),
                (["--nnodes", "2", "--node-rank", "2", "--master", "a:1"], b"no node 2 among 2")):
            with self.subTest(arguments):
                status, stdout, stderr = self.ran(*arguments, "true")
                self.assertEqual((status, stdout), (2, b""))
                self.assertIn(told, stderr)
                self.assertIn(b"hint: ", stderr)

    def test_files_of_open_mpi_and_mpich(self) -> None:
        file = self.folder / "hosts"
        for text in ("a slots=2 max_slots=4\n\n# comment\nuser@b slots=2 # more\n",
                     "a:2\nuser@b:2", "a\na\nuser@b\r\nuser@b", "fe80::1 slots=2\nuser@b:2",
                     "user@[fe80::1]:2\nuser@b slots=2"):
            file.write_text(text, "ascii")
            status, stdout, _ = self.ran("--hostfile", str(file), "--dry-run", "true")
            self.assertEqual(status, 0)
            self.assertEqual(stdout.count(b"\n  rank "), 4)
            self.assertIn(b"\nuser@b\n", stdout)
        status, stdout, _ = self.ran("--hosts", "a:2, user@[fe80::1]:2 ", "--dry-run", "true")
        self.assertEqual((status, stdout.count(b"\nuser@fe80::1\n")), (0, 1))
        file.write_text("a max_slots=4\n", "ascii")
        status, _, stderr = self.ran("--hostfile", str(file), "-n", "9", "true")
        self.assertEqual(status, 2)
        self.assertIn(b"a has 4 slots, too few for 9 ranks", stderr)
        file.write_text("a slots=2\nb slots=none\n", "ascii")
        status, _, stderr = self.ran("--hostfile", str(file), "true")
        self.assertEqual(status, 2)
        self.assertIn(b'hosts:2: "slots=none" is no host', stderr)

    def test_a_dry_run_starts_nothing_and_shows_no_secret(self) -> None:
        status, stdout, _ = self.ran("--hosts", "a:1,b:1", "-x", "NEW=named", "--dry-run", "prog",
                                     "it's", HOCKET_SECRET="hush")
        self.assertEqual(status, 0)
        for shown in (b"\na\n", b"\nb\n", b"rank 1: prog 'it'\\''s'", b"    RANK=1\n", b"    NEW=named\n",
                      b"started by: ssh ", b"HOCKET_SECRET=(not shown)"):
            self.assertIn(shown, b"\n" + stdout)
        self.assertNotIn(b"hush", stdout)


class Nodes(Case):
    """A launcher for each node, as a scheduler starts them."""

    def node(self, node: int, master: str, *arguments: str, nodes: int = 2) -> Job:
        return self.job("--nnodes", str(nodes), "--node-rank", str(node), "--master", master,
                        *arguments)

    def nodes(self, *arguments: str, nodes: int = 2) -> list[Job]:
        master = f"127.0.0.1:{free_port()}"
        return [self.node(node, master, *arguments, nodes=nodes) for node in range(nodes)]

    def test_they_form_one_world(self) -> None:
        jobs = self.nodes("-n", "2", "--no-tag-output", "sh", "-c",
                          "echo $RANK $GROUP_RANK $WORLD_SIZE $HOCKET_STORE $MASTER_PORT", nodes=3)
        ends = [job.finish() for job in jobs]
        self.assertEqual([status for status, *_ in ends], [0, 0, 0])
        lines = sorted(line.split() for _, stdout, _ in ends for line in stdout.splitlines())
        self.assertEqual([line[:3] for line in lines],
                         [[str(rank).encode(), str(rank // 2).encode(), b"6"] for rank in range(6)])
        self.assertEqual(len({tuple(line[3:]) for line in lines}), 1)

    def test_a_job_hears_nothing_of_the_one_before_it_at_the_same_place(self) -> None:
        master = f"127.0.0.1:{free_port()}"
        script = f"""for job in $(seq 100); do
                       {launcher.HOCKET} run --nnodes 2 --node-rank $0 --master {master} {JOIN} || exit
                     done"""
        shells = [subprocess.Popen(["sh", "-c", script, str(node)], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT) for node in range(2)]
        def end(shell: subprocess.Popen) -> bytes:
            try:
                return shell.communicate(timeout=launcher.PATIENCE)[0]
            except subprocess.TimeoutExpired:
                shell.kill()
                return b"killed: " + shell.communicate()[0]

        with ThreadPoolExecutor() as threads:
            told = list(threads.map(end, shells))
        self.assertEqual([shell.returncode for shell in shells], [0, 0],
                         [text[-2000:] for text in told])

    def test_a_store_that_ends_is_not_that_of_this_job(self) -> None:
        """The launcher of node 1 meets that of an earlier job, which is about to end."""
        port = free_port()
        master = f"127.0.0.1:{port}"
        at = ("--at", master, "--job", master)
        earlier = subprocess.Popen([launcher.HOCKET, "store", "serve", *at], stdout=subprocess.PIPE,
                                   env=environment())
        self.addCleanup(earlier.stdout.close)
        self.addCleanup(earlier.wait)
        self.addCleanup(earlier.kill)
        earlier.stdout.readline()
        subprocess.run([launcher.HOCKET, "store", "set", *at, "launch/node/1", "{}"], check=True,
                       env=environment(), timeout=SOON)
        node_1 = self.node(1, master, "echo", "$RANK")
        time.sleep(0.5)  # so that it most probably waits for its place there
        earlier.kill()
        earlier.wait()
        node_0 = self.node(0, master, "echo", "$RANK")
        ends = [job.finish(SOON) for job in (node_0, node_1)]
        self.assertEqual([status for status, *_ in ends], [0, 0], ends)

    def test_a_failure_anywhere_ends_all(self) -> None:
        for rank in (0, 3):
            jobs = self.nodes("-n", "2", "sh", "-c", f"[ $RANK = {rank} ] && exit 5; exec sleep 600")
            for job in jobs:
                status, _, stderr = job.finish(SOON)
                self.assertEqual(status, 5)
                self.assertIn(f"rank {rank} failed first, on ".encode(), stderr)
                self.assertEqual(job.running(), [])

    def test_restarts_are_in_step(self) -> None:
        program = "[ $HOCKET_ATTEMPT$RANK = 01 ] && exit 5; [ $HOCKET_ATTEMPT = 0 ] && " \
                  "exec sleep 600; echo $RANK in $HOCKET_ATTEMPT"
        jobs = self.nodes("--max-restarts", "1", "sh", "-c", program)
        for rank, job in enumerate(jobs):
            status, stdout, stderr = job.finish(SOON)
            self.assertEqual((status, stdout), (0, f"[{rank}] {rank} in 1\n".encode()))
            self.assertIn(b"restart 1 of at most 1", stderr)

    def test_the_end_of_one_launcher_ends_all(self) -> None:
        for node, number in ((0, signal.SIGTERM), (1, signal.SIGINT), (1, signal.SIGKILL),
                             (0, signal.SIGKILL)):
            with self.subTest(node=node, number=number):
                jobs = self.nodes("sh", "-c", "echo ready; exec sleep 600")
                for job in jobs:
                    assert job.process.stdout
                    job.process.stdout.readline()
                jobs[node].process.send_signal(number)
                status, _, stderr = jobs[1 - node].finish(SOON)
                self.assertNotEqual(status, 0)
                self.assertIn(b"its launcher ", stderr)
                self.assert_gone(jobs[node])

    def test_who_is_missing_is_said_in_time(self) -> None:
        job = self.node(0, f"127.0.0.1:{free_port()}", "--timeout", "3s", "true")
        status, _, stderr = job.finish(SOON)
        self.assertEqual(status, 1)
        self.assertIn(b"no launcher has come for node 1 of 2", stderr)

    def test_one_alone_can_be_interrupted(self) -> None:
        job = self.job("--nnodes", "2", "--node-rank", "1", "--master",
                       f"127.0.0.1:{free_port()}", "true")
        wait_until(lambda: len(job.running()) == 2, "the worker has started")
        time.sleep(0.5)
        job.process.send_signal(signal.SIGINT)
        self.assertEqual(job.finish(SOON)[0], 128 + signal.SIGINT)

    def test_two_for_node_0(self) -> None:
        master = f"127.0.0.1:{free_port()}"
        common = ["--nnodes", "2", "--master", master, "--timeout", "5s"]
        first = self.job(*common, "--node-rank", "0", "true")
        second = self.job(*common, "--node-rank", "0", "true")
        ends = [job.finish(SOON) for job in (first, second)]
        self.assertTrue(any(b"already" in stderr or b"taken" in stderr or b"in use" in stderr
                            for _, _, stderr in ends), ends)

    def store(self, *arguments: str) -> bytes:
        """What the store at the master says."""
        done = subprocess.run([launcher.HOCKET, "store", "--at", self.master, "--job", self.master,
                               *arguments], timeout=SOON, check=True, capture_output=True)
        return done.stdout

    def one_of_three(self, node: int, *options: str) -> Job:
        return self.node(node, self.master, *options, "--no-tag-output", "echo", "fine", nodes=3)

    def two_of_three(self, *options: str) -> list[Job]:
        """Nodes 0 and 1, which have come."""
        self.master = f"127.0.0.1:{free_port()}"
        jobs = [self.one_of_three(node, *options) for node in (0, 1)]
        self.store("wait", "launch/node/1")
        return jobs

    def assert_fine(self, *jobs: Job) -> None:
        ends = [job.finish(SOON) for job in jobs]
        self.assertEqual([(status, stdout) for status, stdout, _ in ends],
                         [(0, b"fine\n")] * len(jobs), ends)

    def test_a_launcher_that_left_can_come_again(self) -> None:
        zero, one = self.two_of_three()
        one.process.terminate()
        self.assertEqual(one.finish(SOON)[0], 128 + signal.SIGTERM)
        self.assert_fine(zero, self.one_of_three(1), self.one_of_three(2))

    def test_another_comes_for_one_that_was_killed(self) -> None:
        zero, one = self.two_of_three()
        before = self.store("get", "launch/node/1")
        one.clean()
        one = self.one_of_three(1)

        def is_replaced() -> bool:
            keys = self.store("keys", "launch/node/")
            return b"node/1" in keys and self.store("get", "launch/node/1") != before

        wait_until(is_replaced, "the place is free, and taken")
        self.assert_fine(zero, one, self.one_of_three(2))

    def test_a_place_is_not_taken_from_the_living(self) -> None:
        zero, one = self.two_of_three()
        status, _, stderr = self.one_of_three(1).finish(SOON)
        self.assertEqual(status, 1)
        self.assertIn(b"another launcher came as node 1 before", stderr)
        self.assert_fine(zero, one, self.one_of_three(2))

    def test_nodes_that_disagree_are_told_at_once(self) -> None:
        for flag, zeros, ones in (("-n", "1", "2"), ("--nnodes", "3", "2"), ("--nnodes", "2", "3"),
                                  ("--max-restarts", "0", "1")):
            with self.subTest(flag=flag, zeros=zeros, ones=ones):
                master = f"127.0.0.1:{free_port()}"
                jobs = []
                for node, value in enumerate((zeros, ones)):
                    words = {"--nnodes": "2", "--node-rank": str(node), flag: value}
                    jobs.append(self.job(*sum(words.items(), ()), "--master", master, "true"))
                for job in jobs:
                    status, _, stderr = job.finish(SOON)
                    self.assertEqual(status, 1)
                    self.assertIn(f"node 1 has {flag} {ones}, node 0 has {zeros}".encode(), stderr)

    def test_all_say_who_is_missing_when_the_time_is_over(self) -> None:
        start = time.monotonic()
        for job in self.two_of_three("--timeout", "6s"):
            status, _, stderr = job.finish(SOON)
            self.assertEqual(status, 1)
            self.assertIn(b"no launcher has come for node 2 of 3", stderr)
        self.assertLess(time.monotonic() - start, 9)

    def stop(self, job: Job) -> None:
        for pid in job.running():
            os.kill(pid, signal.SIGSTOP)

    def test_the_user_need_not_wait_for_a_node_that_hangs(self) -> None:
        for hanging in (0, 1):
            with self.subTest(hanging=hanging):
                jobs = self.nodes("--grace", "1s", "sh", "-c",
                                  "trap '' INT; echo ready; while :; do sleep 0.1; done")
                for job in jobs:
                    assert job.process.stdout
                    job.process.stdout.readline()
                self.stop(jobs[hanging])
                job = jobs[1 - hanging]
                job.process.send_signal(signal.SIGINT)
                wait_until(lambda job=job: len(job.running()) <= 2, "the ranks are killed", 8)
                self.assertIsNone(job.process.poll())
                job.process.send_signal(signal.SIGINT)
                self.assertEqual(job.finish(8)[0], 128 + signal.SIGINT)

    def test_a_lost_output_is_the_same_failure_everywhere(self) -> None:
        jobs = self.nodes("sh", "-c", "while echo line; do sleep 0.1; done")
        for job in jobs:
            assert job.process.stdout
            job.process.stdout.readline()
        assert jobs[1].process.stdout
        jobs[1].process.stdout.close()
        (status, _, stderr), (its_status, *_) = (job.finish(SOON) for job in jobs)
        self.assertEqual((status, its_status), (128 + signal.SIGPIPE, 128 + signal.SIGPIPE))
        self.assertIn(b"its output was closed", stderr)

    def test_a_loopback_address_is_listened_on_alone(self) -> None:
        port = free_port()
        program = ("import os, socket; host, port = os.environ['HOCKET_STORE'].split(':'); "
                   "socket.create_connection((host, int(port)), 10); "
                   "print(socket.socket().connect_ex(('127.0.0.1', int(port))) != 0)")
        jobs = [self.job("--nnodes", "2", "--node-rank", str(node), "--master", f"127.0.0.2:{port}",
                         "--no-tag-output", sys.executable, "-c", program) for node in (0, 1)]
        for job in jobs:
            status, stdout, _ = job.finish(SOON)
            self.assertEqual((status, stdout), (0, b"True\n"))

    def test_a_secret_is_needed_beyond_loopback(self) -> None:
        status, _, stderr = self.ran("--nnodes", "2", "--master", "192.0.2.1:1", "true")
        self.assertEqual(status, 1)
        self.assertIn(b"HOCKET_SECRET is not set", stderr)


class Namespaces(Case):
    """Two hosts with a network of their own each."""

    def ip(self, *arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True, timeout=SOON, capture_output=True)

    def setUp(self) -> None:
        self.names = [f"hocket-{os.getpid()}-{end}" for end in "ab"]
        try:
            for name in self.names:
                self.ip("netns", "add", name)
                self.addCleanup(self.ip, "netns", "delete", name)
            a, b = self.names
            self.ip("link", "add", "link0", "netns", a, "type", "veth", "peer", "link0", "netns", b)
            for number, name in enumerate(self.names, 1):
                self.ip("-n", name, "address", "add", f"10.213.77.{number}/24", "dev", "link0")
                self.ip("-n", name, "link", "set", "link0", "up")
                self.ip("-n", name, "link", "set", "lo", "up")
        except (OSError, subprocess.CalledProcessError) as error:
            self.skipTest(f"no network namespaces here: {error}")

    def test_a_job_spans_both(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            shell = Path(folder, "shell")
            shell.write_text('#!/bin/sh\nhost=$1; shift\nexec ip netns exec "$host" sh -c "$*"\n',
                             "ascii")
            shell.chmod(0o755)
            program = ("import os, socket; host, port = os.environ['HOCKET_STORE'].split(':'); "
                       "at = socket.create_connection((host, int(port)), 10); "
                       "print(at.getsockname()[0], host)")
            status, stdout, _ = self.ran(
                "--hosts", ",".join(self.names), "-n", "1", "--rsh", str(shell), "--master",
                "10.213.77.1:0", "--no-tag-output", sys.executable, "-c", program)
        self.assertEqual(status, 0)
        self.assertEqual(sorted(stdout.splitlines()),
                         [b"10.213.77.1 10.213.77.1", b"10.213.77.2 10.213.77.1"])


if __name__ == "__main__":
    launcher.HOCKET = sys.argv.pop(1)
    JOIN = sys.argv.pop(1)
    unittest.main(verbosity=2)  # with the reasons of what is skipped
