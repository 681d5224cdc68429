"""tools/netlab under test: labs that run, and whether this machine can have any."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import unittest
import uuid
from pathlib import Path

from launcher import SOON, bearing

NETLAB = ""  # the program: set by the test that is run
TRAFFIC = f"{sys.executable} {Path(__file__).with_name('netlab_traffic.py')}"
TCP_SHARE = (0.85, 1.02)  # of a link's rate; with headers of 66 bytes in frames of 1514 it is 0.956
PROBE = ("ip link add name a type veth peer name b && tc qdisc add dev a root tbf rate 1gbit "
         "burst 256kb latency 20ms && tc qdisc add dev a clsact && ip link add name c type bridge")

# A lab changes nothing of the machine. Were one to leave a setting changed, a later run would take that
# for the machine's own; so under test /proc/sys is read-only for netlab, as it is in many containers.
ON_A_MACHINE_THAT_STAYS_AS_IT_IS = (
    "unshare", "--mount", "sh", "-c",
    "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec \"$@\"", "sh")


def skip_where_there_can_be_none() -> None:
    if os.geteuid() != 0:
        raise unittest.SkipTest("netlab must be run by root")
    for name in ("ip", "tc", "unshare"):
        if not shutil.which(name):
            raise unittest.SkipTest(f"{name} is not here")
    spaces = ("--net", "--mount", "--pid", "--uts", "--ipc")
    probe = subprocess.run(["unshare", *spaces, "--fork", "sh", "-c", PROBE], capture_output=True,
                           text=True, timeout=SOON, check=False)
    if probe.returncode != 0:
        raise unittest.SkipTest(f"the kernel refuses a network of its own: {probe.stderr.strip()}")


def ran(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [*ON_A_MACHINE_THAT_STAYS_AS_IT_IS, NETLAB, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)  # type: ignore[call-overload,no-any-return]


class Process:
    """A netlab that runs. Everything it starts bears a mark by which it can be found."""

    def __init__(self, *words: str) -> None:
        self.mark = f"NETLAB_TEST_MARK={uuid.uuid4().hex}"
        name, text = self.mark.split("=")
        self.process = subprocess.Popen(
            [*ON_A_MACHINE_THAT_STAYS_AS_IT_IS, NETLAB, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            stderr=subprocess.PIPE, env={**os.environ, name: text}, process_group=0)

    def said(self) -> str:
        """Its next line."""
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def running(self) -> list[int]:
        return bearing(self.mark)

    def end(self) -> str:
        """What it wrote to stderr."""
        self.process.terminate()
        return self.process.communicate(timeout=SOON)[1]


class Case(unittest.TestCase):
    def start(self, *words: str) -> Process:
        netlab = Process(*words)
        self.addCleanup(netlab.end)
        return netlab

    def in_lab(self, script: str, *options: str) -> str:
        """What a script in the first host of a lab says."""
        done = ran("run", *options, "--", "sh", "-c", script)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        return done.stdout

    def assert_rate(self, measured: str | float, rate: float) -> None:
        low, high = TCP_SHARE
        self.assertGreater(float(measured), low * rate)
        self.assertLess(float(measured), high * rate)
