#!/usr/bin/env python3
"""tools/netlab: what a lab is made of, who can reach whom, and that nothing of it is left."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import unittest
import uuid
from pathlib import Path

import netlab
from launcher import SOON, wait_until
from netlab import TRAFFIC, Case, Process, ran

HOCKET = ""  # the programs: the arguments
BENCH = ""
SETTINGS = Path("/proc/sys/net/ipv4")


def allowed() -> str:
    """Which congestion controls the machine allows everybody."""
    return (SETTINGS / "tcp_allowed_congestion_control").read_text("ascii")


def setUpModule() -> None:
    netlab.skip_where_there_can_be_none()


class Commands(Case):
    def test_the_exit_status_is_the_commands(self) -> None:
        for script, status in (("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 128 + signal.SIGKILL)):
            with self.subTest(script=script):
                self.assertEqual(ran("run", "--", "sh", "-c", script).returncode, status)

    def test_a_command_that_is_not_there(self) -> None:
        done = ran("run", "--", "nonexistent-program")
        self.assertEqual(done.returncode, 127)
        self.assertIn("nonexistent-program can't be started: No such file", done.stderr)

    def test_streams_are_the_commands(self) -> None:
        done = ran("run", "--hosts", "2", "--", "sh", "-c", "cat; echo trouble >&2; pwd", input="words\n")
        self.assertEqual(done.stdout, f"words\n{os.getcwd()}\n")
        first, second = done.stderr.splitlines()
        self.assertRegex(first, r"^netlab: lab\d+: 2 hosts h1…h2, 1 rail of 1gbit \(burst 256kb, "
                                r"queue 20ms\), cubic$")
        self.assertEqual(second, "trouble")

    def test_two_labs_at_once(self) -> None:
        lab = self.start("up")
        name = lab.said()
        self.assertEqual(self.in_lab("$NETLAB_RSH h2 echo '$NETLAB'", "--name", "other"), "other\n")
        self.assertEqual(ran("exec", "--lab", name, "h2", "hostname").stdout, "h2\n")

    def test_burst_and_queue_follow_the_rate(self) -> None:
        for rate, limits in (("200mbit", "burst 128kb, queue 40ms"), ("1gbit", "burst 256kb, queue 20ms"),
                             ("10gbit", "burst 2.4375mb, queue 20ms")):
            with self.subTest(rate=rate):
                self.assertIn(limits, ran("run", "--rate", rate, "--", "true").stderr)
        own = ran("run", "--burst", "64kb", "--queue", "5ms", "--", "true").stderr
        self.assertIn("burst 64kb, queue 5ms", own)

    def test_signals_reach_the_command(self) -> None:
        lab = self.start("run", "--", "sh", "-c", "trap 'echo got it; exit 9' TERM; echo ready; "
                            "while :; do sleep 0.1; done")
        self.assertEqual(lab.said(), "ready")
        lab.process.terminate()
        self.assertEqual(lab.said(), "got it")
        self.assertEqual(lab.process.wait(SOON), 9)

    def test_what_is_refused(self) -> None:
        for words, text in (
            (["--hosts", "0"], "from 1 to 254"),
            (["--rate", "fast"], "a number and one of kbit, mbit, gbit"),
            (["--loss", "2"], "a share such as 0.1%"),
            (["--oversubscription", "2"], "give --hosts-per-leaf too"),
            (["--congestion", "nonesuch"], "no congestion control 'nonesuch': it has "),
            (["--name", "a/b"], "a-z, 0-9 and -"),
        ):
            with self.subTest(words=words):
                done = ran("run", *words, "--", "echo", "started")
                self.assertEqual((done.returncode, done.stdout), (125, ""))
                self.assertIn(text, done.stderr)
        self.assertIn("which command?", ran("run").stderr)

    def test_who_can_not_make_one_is_told_why(self) -> None:
        with_python = str(Path(sys.executable).parent)
        done = subprocess.run([sys.executable, netlab.NETLAB, "run", "--", "true"], capture_output=True,
                              text=True, check=False, env={"PATH": with_python + "/nowhere"})
        self.assertEqual(done.returncode, 125)
        self.assertIn("ip is not here: install iproute2", done.stderr)
        # As nobody, who may not read the folder that we are in.
        source = f"import os, sys; sys.path.insert(0, {str(Path(netlab.NETLAB).parent / 'lab')!r}); " \
            "import command; os.setuid(65534); sys.exit(command.main(['run', '--', 'true']))"
        done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr),
                         (125, "netlab: it must be run by root: it makes namespaces\n"))

    def test_congestion_control_is_the_labs_alone(self) -> None:
        ours = (allowed(), (SETTINGS / "tcp_congestion_control").read_text("ascii"))
        for name in (SETTINGS / "tcp_available_congestion_control").read_text("ascii").split():
            with self.subTest(name=name):
                lab = self.start("up", "--rails", "2", "--congestion", name)
                of_lab = ["exec", "--lab", lab.said(), "h1", "--", *TRAFFIC.split()]
                listener = self.start(*of_lab, "tell_control")
                self.assertEqual(listener.said(), "ready")
                for host in ("h1", "h2"):
                    of_lab[3] = host
                    said = ran(*of_lab, "control", "10.77.0.1", "10.77.1.1").stdout
                    self.assertEqual(said.split(), [name] * 4, host)
                of_lab[3] = "h1"
                self.assertEqual(ran(*of_lab, "control", "127.0.0.1", "127.0.0.5").stdout.split(), [name] * 4)
                listener.end()
                lab.end()
        self.assertEqual((allowed(), (SETTINGS / "tcp_congestion_control").read_text("ascii")), ours)


class Hosts(Case):
    """An open lab of three hosts with two rails."""

    netlab: Process

    @classmethod
    def setUpClass(cls) -> None:
        cls.netlab = Process("up", "--hosts", "3", "--rails", "2", "--name", f"test{os.getpid()}",
                             "--rate", "200mbit")
        cls.name = cls.netlab.said()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.netlab.end()
        assert cls.netlab.process.returncode == 0

    def lab(self, command: str, *words: str) -> str:
        done = ran(command, "--lab", self.name, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def at(self, host: str, script: str) -> str:
        return self.lab("exec", host, "--", "sh", "-c", script)

    def echo(self, host: str) -> None:
        echo = self.start("exec", "--lab", self.name, host, "--", *TRAFFIC.split(), "echo")
        self.assertEqual(echo.said(), "ready")

    def answers(self, host: str, address: str, count: int = 3) -> int:
        return int(self.at(host, f"{TRAFFIC} ask {address} {count}").split()[0])

    def test_each_has_its_name_and_knows_the_others(self) -> None:
        self.assertEqual(self.name, f"test{os.getpid()}")
        for host in ("h1", "h2", "h3"):
            self.assertEqual(self.at(host, "hostname; cat /proc/sys/kernel/hostname"), f"{host}\n{host}")
            self.assertEqual(self.at(host, "getent hosts h1 h2 h3 | tr -s ' '").split(),
                             ["10.77.0.1", "h1", "10.77.0.2", "h2", "10.77.0.3", "h3"])
        self.assertEqual(self.at("h2", "echo $NETLAB $NETLAB_HOSTS"), f"{self.name} h1,h2,h3")

    def test_each_is_a_machine_of_its_own(self) -> None:
        self.assertEqual(self.at("h1", "ls /sys/class/net").split(), ["eth0", "eth1", "lo"])
        self.at("h1", "touch /dev/shm/of-h1")
        self.assertEqual(self.at("h2", "ls /dev/shm"), "")
        self.assertEqual(self.at("h1", "ls /dev/shm"), "of-h1")
        self.assertIn(self.name, self.at("h3", "cat /proc/1/cmdline"))  # not the machine's first
        self.assertNotIn("10.77.0.1", Path("/etc/hosts").read_text("utf-8"))

    def test_all_reach_all_on_each_rail(self) -> None:
        for host in ("h1", "h2", "h3"):
            self.echo(host)
        for rail in (0, 1):
            for source in (1, 2, 3):
                for target in (1, 2, 3):
                    with self.subTest(rail=rail, source=source, target=target):
                        self.assertEqual(self.answers(f"h{source}", f"10.77.{rail}.{target}"), 3)

    def test_a_rail_fails_silently_and_heals(self) -> None:
        self.echo("h1")
        self.echo("h2")
        self.lab("cut", "h2", "0")
        self.assertEqual((self.answers("h1", "10.77.0.2"), self.answers("h2", "10.77.0.1")), (0, 0))
        self.assertEqual((self.answers("h1", "10.77.1.2"), self.answers("h2", "10.77.1.1")), (3, 3))
        self.assertEqual(self.at("h2", "cat /sys/class/net/eth0/operstate"), "up")
        self.lab("heal", "h2", "0")
        wait_until(lambda: self.answers("h1", "10.77.0.2", 1) == 1, "the rail has healed")
        self.lab("cut", "h2")
        self.assertEqual(self.answers("h1", "10.77.1.2"), 0)
        self.lab("heal", "h2")
        wait_until(lambda: self.answers("h2", "10.77.1.1", 1) == 1, "both rails have healed")

    def test_a_rail_is_cut_from_inside(self) -> None:
        self.echo("h3")
        inside = f"{netlab.NETLAB} cut h3 1 && {TRAFFIC} ask 10.77.1.3 2; {netlab.NETLAB} heal h3 1"
        self.assertEqual(self.at("h1", inside).split()[0], "0")
        wait_until(lambda: self.answers("h1", "10.77.1.3", 1) == 1, "the rail has healed")

    def test_hosts_and_rails_that_are_not_there(self) -> None:
        for words, text in (
            (["exec", "--lab", self.name, "h4", "--", "true"], "has no host 'h4': it has h1, h2, h3, switch"),
            (["exec", "--lab", "nonesuch", "h1", "--", "true"], "no lab is called nonesuch; there is "),
            (["cut", "--lab", self.name, "h1", "2"], "h1 has no rail 2: it has 0 to 1"),
            (["up", "--name", self.name], f"there is a lab {self.name} already"),
        ):
            with self.subTest(words=words):
                done = ran(*words)
                self.assertEqual(done.returncode, 125)
                self.assertIn(text, done.stderr)

    def test_the_remote_shell(self) -> None:
        there = self.at("h1", "SECRET=1 $NETLAB_RSH -x -p 22 root@h3 'hostname; echo $HOME' '${SECRET-none}; "
                              "pwd; exit 3'; echo $?").split()
        home = str(Path("~root").expanduser())
        self.assertEqual(there, ["h3", home, "none", home, "3"])
        unknown = self.at("h1", "$NETLAB_RSH h9 true 2>&1; echo $?")
        self.assertIn("has no host 'h9'", unknown)
        self.assertTrue(unknown.endswith("\n255"), unknown)


class Ends(Case):
    SCRIPT = "setsid sleep 600 & $NETLAB_RSH h2 'sleep 600' & echo ready; exec sleep 600"

    def setUp(self) -> None:
        self.networks: set[str] = set()  # of the labs of a test, as in net:[4026531840]
        self.name = f"ends-{uuid.uuid4().hex[:12]}"
        self.allowed = allowed()

    def held(self) -> list[str]:
        """Where the networks are still held: by a process, what it has open, or a mount."""
        found = []
        for space in Path("/proc").glob("[0-9]*/ns/net"):
            try:
                found += [str(space)] if os.readlink(space) in self.networks else []
            except OSError:  # it has just gone
                continue
        mounts = Path("/proc/self/mountinfo").read_text("utf-8").splitlines()
        return found + [line for line in mounts if any(each in line for each in self.networks)]

    def assert_gone(self, lab: Process) -> None:
        wait_until(lambda: lab.running() == [], "no process of the lab runs")
        wait_until(lambda: self.held() == [], "no network of the lab is held")
        self.assertEqual(allowed(), self.allowed)
        for ours in ("h1r0", "rail0"):
            self.assertNotIn(ours, os.listdir("/sys/class/net"))
        named = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
        self.assertNotIn(self.name, "\n".join([named.stdout, *os.listdir("/tmp"), *os.listdir("/run")]))

    def started(self) -> Process:
        lab = self.start("run", "--name", self.name, "--hosts", "3", "--", "sh", "-c", self.SCRIPT)
        self.assertEqual(lab.said(), "ready")
        self.remember(lab)
        self.assertEqual(len(self.networks), 4)  # the switch's and the hosts'
        self.assertGreaterEqual(len(self.held()), 4)
        return lab

    def remember(self, lab: Process) -> None:
        ours = os.readlink("/proc/self/ns/net")
        self.networks = {os.readlink(f"/proc/{pid}/ns/net") for pid in lab.running()} - {ours}

    def test_nothing_is_left_by_the_end_of_the_command(self) -> None:
        lab = self.start("run", "--name", self.name, "--", "sh", "-c", "setsid sleep 600 & exit 3")
        self.assertEqual(lab.process.wait(SOON), 3)
        self.assertEqual(lab.running(), [])
        self.assert_gone(lab)

    def test_nothing_is_left_by_kill_9(self) -> None:
        lab = self.started()
        lab.process.kill()
        lab.process.wait(SOON)
        self.assert_gone(lab)

    def test_nothing_is_left_by_kill_9_of_the_first_process(self) -> None:
        lab = self.started()
        (first,) = [pid for pid in lab.running() if self.is_first_of_a_lab(pid)]
        os.kill(first, signal.SIGKILL)
        self.assertEqual(lab.process.wait(SOON), 128 + signal.SIGKILL)
        self.assert_gone(lab)

    def is_first_of_a_lab(self, pid: int) -> bool:
        (numbers,) = [line.split()[1:] for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
                      if line.startswith("NSpid:")]
        return len(numbers) > 1 and numbers[-1] == "1"

    def test_nothing_is_left_by_kill_9_while_it_is_made(self) -> None:
        for delay in (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6):
            with self.subTest(delay=delay):
                lab = Process("up", "--name", self.name, "--hosts", "3")
                time.sleep(delay)
                lab.process.kill()
                lab.process.communicate(timeout=SOON)
                self.assert_gone(lab)

    def test_an_open_lab_ends_with_an_interrupt_and_what_runs_in_it(self) -> None:
        lab = self.start("up", "--name", self.name)
        self.assertEqual(lab.said(), self.name)
        guest = self.start("exec", "--lab", self.name, "h2", "--", "sh", "-c", "echo ready; exec sleep 600")
        self.assertEqual(guest.said(), "ready")
        self.remember(lab)
        lab.process.send_signal(signal.SIGINT)
        self.assertEqual(lab.process.wait(SOON), 0)
        self.assertEqual(guest.process.wait(SOON), 128 + signal.SIGKILL)
        self.assert_gone(lab)
        self.assert_gone(guest)


class Launchers(Case):
    def test_hocket_run(self) -> None:
        command = f"{HOCKET} run --hosts $NETLAB_HOSTS -n 1 --rsh $NETLAB_RSH --no-tag-output -- {BENCH} " \
            "all_reduce -b 8 -e 1M -f 64 -n 3 -w 1"
        said = self.in_lab(command, "--hosts", "3")
        self.assertRegex(said, r"3 ranks on 3 hosts, transport (shm,)?tcp\n")
        self.assertIn("# Out of bounds values : 0 OK", said)

    def test_mpi(self) -> None:
        for name, words in (
            ("mpirun.openmpi", "--oversubscribe --host h1:2,h2:2 --mca plm_rsh_agent $NETLAB_RSH -np 4"),
            ("mpiexec.mpich", "-launcher ssh -launcher-exec $NETLAB_RSH -hosts h1,h2 -n 4"),
        ):
            with self.subTest(launcher=name):
                if not shutil.which(name):
                    self.skipTest(f"{name} is not here")
                root = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
                said = self.in_lab(f"{root} {name} {words} hostname")
                self.assertEqual(sorted(said.split()), ["h1", "h1", "h2", "h2"])


if __name__ == "__main__":
    netlab.NETLAB, HOCKET, BENCH = sys.argv[1:4]
    del sys.argv[1:4]
    unittest.main(verbosity=2)  # with the reasons of what is skipped
