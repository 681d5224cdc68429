#!/usr/bin/env python3
"""A world under Slurm's own srun: a cluster of this one host, set up here and taken down again."""

from __future__ import annotations

import os
import random
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

JOIN = ""  # the program: the first argument
WAIT_S = 60
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun")
SEARCHED = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"

CONFIGURATION = """
ClusterName=hocket
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
MpiDefault=none
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:4
"""


def free_ports(count: int) -> list[int]:
    """Below those that the system hands out by itself: others may get one of these meanwhile."""
    ports: list[int] = []
    while len(ports) < count:
        port = random.randrange(20000, 32000)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        ports.append(port)
    return ports


class Cluster:
    """Its daemons run until it is closed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.daemons: list[subprocess.Popen[bytes]] = []
        folder.chmod(0o755)  # munged wants its socket to be in reach of everybody
        for name in ("state", "spool"):
            (folder / name).mkdir()
        key = folder / "key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
        (folder / "slurm.conf").write_text(CONFIGURATION.format(
            host=socket.gethostname().split(".")[0], folder=folder, ports=free_ports(2),
            cores=os.cpu_count()))
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}

    def start(self) -> None:
        self.daemon("munged", "-F", *(f"--{kind}={self.folder / name}" for kind, name in (
            ("key-file", "key"), ("socket", "munge"), ("pid-file", "munged.pid"),
            ("seed-file", "seed"), ("log-file", "munged.log"))))
        self.await_ready("munged", lambda: (self.folder / "munge").exists())
        self.daemon("slurmctld", "-D")
        self.daemon("slurmd", "-D")
        self.await_ready("the node", lambda: "idle" in self.ask("sinfo", "-h", "-o", "%T"))

    def daemon(self, name: str, *arguments: str) -> None:
        with open(self.folder / f"{name}.out", "wb") as output:
            self.daemons.append(subprocess.Popen(
                [shutil.which(name, path=SEARCHED), *arguments], env=self.environment,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT))

    def ask(self, *command: str) -> str:
        ran = subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, timeout=WAIT_S, check=False)
        return ran.stdout

    def await_ready(self, what: str, is_ready) -> None:
        end = time.monotonic() + WAIT_S
        while not is_ready():
            if time.monotonic() > end:
                raise AssertionError(f"{what} is not ready after {WAIT_S} s:\n{self.said()}")
            time.sleep(0.1)

    def said(self) -> str:
        return "\n".join(f"{path.name}: {path.read_text(errors='replace')[-2000:]}"
                         for path in sorted(self.folder.glob("*.out")))

    def close(self) -> None:
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in reversed(self.daemons):
            try:
                daemon.wait(timeout=10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.cluster = Cluster(Path(cls.directory.name))
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()

    def srun(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["srun", *arguments], env={**self.cluster.environment, **variables},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=WAIT_S, check=False)

    def test_all_ranks_join_one_world(self) -> None:
        for count in (1, 2, 5):
            ran = self.srun("-n", str(count), "--overcommit", JOIN, HOCKET_STORE_TIMEOUT="30s")
            self.assertEqual(ran.returncode, 0, ran.stdout + self.cluster.said())
            lines = [dict(re.findall(r"(\w+)=(\S*)", line)) for line in ran.stdout.splitlines()
                     if line.startswith("rank=")]
            self.assertEqual(sorted(int(line["rank"]) for line in lines), list(range(count)))
            self.assertEqual({(line["size"], line["local_size"], line["by"]) for line in lines},
                             {(str(count), str(count), "Slurm")})

    def test_two_jobs_at_once_do_not_meet(self) -> None:
        command = ["srun", "-n", "2", "--overcommit", JOIN]
        both = [subprocess.Popen(command, env=self.cluster.environment, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                for _ in range(2)]
        for each in both:
            text, _ = each.communicate(timeout=WAIT_S)
            self.assertEqual(each.returncode, 0, text)
            self.assertEqual(set(re.findall(r"rank=. size=.", text)),
                             {"rank=0 size=2", "rank=1 size=2"})


def why_no_slurm() -> str:
    """Empty where it can be set up."""
    missing = [name for name in PROGRAMS if not shutil.which(name, path=SEARCHED)]
    if missing:
        return (f"no {', '.join(missing)}: on Debian, "
                "apt-get install munge slurmctld slurmd slurm-client")
    return "" if os.geteuid() == 0 else "only root may run Slurm's daemons"


if __name__ == "__main__":
    if why := why_no_slurm():
        print(f"skipped: {why}")
        sys.exit(77)
    JOIN = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)  # with the reasons of what is skipped
