#!/usr/bin/env python3
"""Runs the commands of docs/guide/launching.md, adapted to one host.

usage: launching_test.py HOCKET JOIN PACKAGE    the program, a program that joins, a folder with `hocket`
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from slurm_test import PROGRAMS, SEARCHED, Cluster, free_ports

HOCKET, JOIN, PACKAGE = (Path(each).resolve() for each in sys.argv[1:4])
del sys.argv[1:4]
PAGE = Path(__file__).resolve().parents[2] / "docs/guide/launching.md"
WAIT_S = 120
TRAIN = """
import os, hocket, numpy
world = hocket.join()
values = numpy.ones(3)
world.all_reduce(values)
assert (values == world.size).all()
print(f"rank={world.rank} size={world.size}", flush=True)
"""


def commands(section: str, place: int = 0) -> list[str]:
    """The lines of a block below a heading."""
    text = PAGE.read_text().split(f"\n## {section}\n")[1].split("\n## ")[0]
    return re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[place].splitlines()


class Launching(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = Path(directory.name)
        (self.folder / "program").symlink_to(JOIN)
        (self.folder / "train.py").write_text(TRAIN)
        (self.folder / "hosts").write_text("localhost\n")
        self.script("hocket", f'exec {shlex.quote(str(HOCKET))} "$@"')
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("HOCKET_")},
            "PATH": f"{self.folder}:{os.environ['PATH']}", "PYTHONPATH": str(PACKAGE),
            "HOCKET_SECRET": "of this test", "HOCKET_STORE_TIMEOUT": "60s", "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}

    def script(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def start(self, command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(["sh", "-c", command], cwd=self.folder, env=self.environment, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def check(self, ranks: list[subprocess.Popen[str]], size: int) -> None:
        try:
            said = [rank.communicate(timeout=WAIT_S)[0] for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
        text = "".join(said)
        self.assertEqual([rank.returncode for rank in ranks], [0] * len(ranks), text)
        found = re.findall(r"rank=(\d+) size=(\d+)", text)
        self.assertEqual(sorted(found), [(str(rank), str(size)) for rank in range(size)], text)

    def run_all(self, lines: list[str], size: int, *changes: tuple[str, str]) -> None:
        for line in lines:
            with self.subTest(line):
                command = line
                for old, new in changes:
                    command = command.replace(old, new)
                self.check([self.start(command)], size)

    def together(self, section: str, *changes: tuple[str, str]) -> None:
        lines = commands(section)
        for old, new in changes:
            lines = [line.replace(old, new) for line in lines]
        self.check([self.start(line) for line in lines], len(lines))

    def test_hocket_run(self) -> None:
        self.script("shell", 'shift; exec sh -c "$*"')
        one, hosts = commands("hocket run")
        self.run_all([one], 4)
        self.run_all([hosts], 8, ("node1:4,node2:4", "localhost:4,127.0.0.1:4"),
                     ("run ", f"run --rsh {self.folder}/shell --master 127.0.0.1:0 "))

    def test_torchrun(self) -> None:
        find = "import sys, torch; sys.exit(torch.__version__.startswith('1.'))"
        python = next((each for each in (sys.executable, "/usr/bin/python3")
                       if subprocess.run([each, "-c", find], capture_output=True, check=False)
                       .returncode == 0), None)
        if python is None:
            self.skipTest("no Python here has torch 2; torchrun of 1.13 does not run on Python 3.11")
        self.script("torchrun", f'exec {python} -m torch.distributed.run "$@"')
        self.script("python3", f'exec {python} "$@"')
        self.run_all(commands("torchrun"), 4, ("node1:29500", f"127.0.0.1:{free_ports(1)[0]}"))

    def test_open_mpi(self) -> None:
        self.mpirun("mpirun.openmpi")
        (self.folder / "hosts").write_text("localhost slots=4\n")
        self.run_all(commands("mpirun", 0), 4, ("node1:4,node2:4", "localhost:4"),
                     ("MASTER_ADDR=node1", f"MASTER_ADDR=localhost -x MASTER_PORT={free_ports(1)[0]}"))

    def test_mpich(self) -> None:
        self.mpirun("mpirun.mpich")
        self.run_all(commands("mpirun", 1), 4, ("node1,node2", "localhost"),
                     ("MASTER_ADDR node1", f"MASTER_ADDR localhost -genv MASTER_PORT {free_ports(1)[0]}"))

    def mpirun(self, name: str) -> None:
        path = shutil.which(name)
        if path is None:
            self.skipTest(f"{name} is not installed")
        self.script("mpirun", f'exec {path} "$@"')

    def test_slurm(self) -> None:
        missing = [name for name in PROGRAMS if shutil.which(name, path=SEARCHED) is None]
        if missing:
            self.skipTest(f"{', '.join(missing)} of Slurm are not installed")
        with tempfile.TemporaryDirectory() as directory:
            cluster = Cluster(Path(directory))
            try:
                cluster.start()
                self.environment |= {"SLURM_CONF": cluster.environment["SLURM_CONF"]}
                self.run_all(commands("Slurm"), 4, ("srun", "srun --overcommit"),
                             ("-N 2 --ntasks-per-node=4", "-N 1 -n 4"))  # more than this host has
            finally:
                cluster.close()

    def test_a_file(self) -> None:
        (self.folder / "meeting").touch()  # an empty one will do
        del self.environment["HOCKET_SECRET"]
        self.together("A file that all hosts see", ("/shared/meeting", f"{self.folder}/meeting"))

    def test_by_hand(self) -> None:
        self.together("By hand", ("MASTER_ADDR=node1", "MASTER_ADDR=localhost"),
                      ("29500", str(free_ports(1)[0])))

    def test_kubernetes(self) -> None:
        try:
            import yaml
        except ImportError:
            self.skipTest("python3-yaml is not installed")
        text = re.search(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)[1]
        service, job = yaml.safe_load_all(text)
        spec = job["spec"]
        container = spec["template"]["spec"]["containers"][0]
        told = {each["name"]: each.get("value") for each in container["env"]}
        name = job["metadata"]["name"]
        self.assertEqual(told["WORLD_SIZE"], str(spec["completions"]))
        self.assertEqual(spec["parallelism"], spec["completions"])
        self.assertEqual(spec["completionMode"], "Indexed")
        # The name that Kubernetes gives to the pod of index 0, and the service that resolves it.
        self.assertEqual(spec["template"]["spec"]["subdomain"], service["metadata"]["name"])
        self.assertEqual(told["MASTER_ADDR"], f"{name}-0.{service['metadata']['name']}")
        self.assertEqual(service["spec"], {"clusterIP": "None", "selector": {"job-name": name}})
        port = free_ports(1)[0]
        ranks = [f"JOB_COMPLETION_INDEX={rank} WORLD_SIZE={told['WORLD_SIZE']} MASTER_ADDR=localhost "
                 f"MASTER_PORT={port} {container['command'][0]}" for rank in range(spec["completions"])]
        self.check([self.start(rank) for rank in ranks], len(ranks))


if __name__ == "__main__":
    unittest.main(verbosity=2)
