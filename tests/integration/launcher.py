"""A launcher under test: a job that runs, whose processes can all be found, and how to wait for it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import unittest
import uuid
from collections.abc import Callable
from pathlib import Path

HOCKET = ""  # the program: set by the test that is run
PATIENCE = 60  # seconds, for what takes a moment on a machine that has nothing else to do
SOON = 20  # seconds, for what must not wait for the grace time or a sleep of the ranks

# A shell starts what runs in the background with these ignored, and the launcher keeps to that.
for number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)


def bearing(mark: str) -> list[int]:
    """The processes that have this in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:  # it has just gone
            continue
    return found


class Job:
    """A launcher that runs. Everything it starts bears a mark by which it can be found."""

    def __init__(self, *arguments: str, stdin: int | None = subprocess.DEVNULL,
                 stdout: int | None = subprocess.PIPE, stderr: int | None = subprocess.PIPE,
                 **variables: str) -> None:
        self.mark = f"RUN_TEST_MARK={uuid.uuid4().hex}"
        inherited = {name: text for name, text in os.environ.items() if "HOCKET" not in name}
        name, text = self.mark.split("=")
        self.process = subprocess.Popen([HOCKET, "run", *arguments], stdin=stdin, stdout=stdout,
                                        stderr=stderr, process_group=0,
                                        env={**inherited, **variables, name: text})

    def finish(self, timeout: float = PATIENCE) -> tuple[int, bytes, bytes]:
        try:
            stdout, stderr = self.process.communicate(timeout=timeout)
        finally:
            self.clean()
        return self.process.returncode, stdout or b"", stderr or b""

    def running(self) -> list[int]:
        """The processes of the job, the launcher's two included."""
        return bearing(self.mark)

    def worker(self) -> int:
        """The launcher's child that does the work."""
        pid = self.process.pid
        (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
        return int(child)

    def clean(self) -> None:
        for pid in self.running():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def wait_until(holds: Callable[[], bool], what: str, timeout: float = SOON) -> None:
    end = time.monotonic() + timeout
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout} s: {what}")
        time.sleep(0.02)


class Case(unittest.TestCase):
    def job(self, *arguments: str, **options: object) -> Job:
        job = Job(*arguments, **options)  # type: ignore[arg-type]
        self.addCleanup(job.clean)
        self.addCleanup(job.process.wait, SOON)
        self.addCleanup(job.process.kill)
        for stream in (job.process.stdout, job.process.stderr):
            if stream:
                self.addCleanup(stream.close)
        return job

    def ran(self, *arguments: str, **options: object) -> tuple[int, bytes, bytes]:
        job = self.job(*arguments, **options)
        result = job.finish()
        return result

    def started(self, *arguments: str, ranks: int, **options: object) -> Job:
        """A job of which so many ranks have said something."""
        job = self.job("-n", str(ranks), *arguments, **options)
        assert job.process.stdout
        for _ in range(ranks):
            self.assertTrue(job.process.stdout.readline())
        return job

    def assert_gone(self, job: Job, timeout: float = SOON) -> None:
        wait_until(lambda: job.running() == [], "nothing of the job runs", timeout)
