"""A build folder: how it is set up, what is built in it, and how its tests are run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from log import done, results
from table import Test

FUZZ = "fuzz"  # the suite whose tests run for as long as they are told


@dataclass
class Folder:
    """One way to compile the tree. Times are in seconds, and None until that has been done."""

    root: Path
    variant: str
    compiler: str = ""  # gcc or clang; empty for the usual one of the variant
    commit: str = ""  # of a nightly run, which remembers what is done: it may go on when it was cut off
    is_quick: bool = False  # without those checks of undefined behaviour that compile slowest
    build_s: float | None = None
    test_s: float | None = None
    logs: list[Path] = field(default_factory=list)  # of the test runs, in their order
    done: set[str] = field(default_factory=set)  # the names of tests that need not run again
    ran: list[Test] = field(default_factory=list)  # now, whatever came of them
    is_broken: bool = False
    intro: dict[str, list] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Clang builds our kernels with the address sanitizer in a third of the time of g++.
        usual = "clang" if self.variant in ("clang", "address") else "gcc"
        self.compiler = self.compiler or usual
        name = {"gcc": "build", "clang": "build-clang", "address": "build-asan", "thread": "build-tsan"}
        suffix = "-quick" if self.is_quick and self.variant == "address" else ""
        suffix += "" if self.compiler == usual else f"-{self.compiler}"
        self.name = name[self.variant] + suffix
        self.path = self.root / self.name
        self.logs = [log for log in self._nightly_logs() if results(log)]
        self.done = done(self.logs)

    @property
    def is_sanitized(self) -> bool:
        return self.variant in ("address", "thread")

    def options(self) -> list[str]:
        """Meson's options, as NAME=VALUE."""
        common = ["buildtype=debugoptimized", "debug=false", "werror=true", "default_library=both"]
        common += ["tests=enabled"]
        # Several sources in one, which takes half of the compiler's time. Clang's folder shows that each
        # also compiles by itself.
        if self.variant == "clang":
            common += ["unity=off"]
        else:
            common += ["unity=on", "unity_size=40"]
            # Units this large compile faster without precompiled headers. The thread folder keeps them:
            # its unit tests are compiled one source at a time.
            common += [] if self.variant == "thread" else ["b_pch=false"]
        # Of what a debugger wants only the lines: more takes a third of the compiler's time.
        if not self.is_sanitized:
            return [*common, "b_sanitize=none", "cpp_args=-g1"]
        # Sanitizers build in half of the time with less optimization, without the benchmarks, and
        # without the two checks that take the compiler longest: of an object's dynamic type, and of
        # its size. Nor does clang check the types of functions: callbacks of C and of C++ have enums
        # of the same values, and are called alike.
        common += ["b_lundef=false", "optimization=1", "bench=disabled"]
        left_out = "vptr,object-size"
        left_out += ",function" if self.compiler == "clang" else ""
        if self.is_quick and self.variant == "address":
            left_out += ",null,alignment,pointer-overflow,return"
        common += [f"cpp_args=-g1 -fno-sanitize={left_out}"]
        if self.variant == "thread":
            return [*common, "b_sanitize=thread", "cuda=disabled"]  # the one build without CUDA
        fuzz = "enabled" if self.compiler == "clang" else "disabled"
        return [*common, "b_sanitize=address,undefined", f"fuzz={fuzz}"]

    def configure(self) -> bool:
        """Sets the folder up, or changes its options to these."""
        command = ["tools/build.sh", "configure", self.name, self.compiler, *self.options()]
        return subprocess.run(command, cwd=self.root, check=False).returncode == 0

    def tests(self) -> list[Test]:
        """The tests of the folder, in the order in which Meson begins them."""
        found = self._introspect("tests")
        return [Test(each["suite"][0].split(":")[-1], each["name"]) for each in found]

    def forget(self) -> None:
        """The nightly run is over: the next one runs all tests again."""
        for log in self._nightly_logs():
            log.unlink()

    def _nightly_logs(self) -> list[Path]:
        return sorted(self.path.glob(f"meson-logs/nightly-{self.commit}-*.json")) if self.commit else []

    def build(self, tests: Iterable[Test]) -> bool:
        """Builds what these tests need; without a sanitizer, everything there is."""
        targets = self._targets_of(tests) if self.is_sanitized else []
        if self.is_sanitized and not targets:
            return True
        command = ["tools/build.sh", "build", self.name, *targets]
        return subprocess.run(command, cwd=self.root, check=False).returncode == 0

    def test(self, tests: list[Test], fuzz_seconds: int) -> None:
        """Runs these tests; what came of them is in `logs`."""
        fuzzed = [test for test in tests if test.suite == FUZZ]
        others = [test for test in tests if test.suite != FUZZ]
        suites = {test.suite for test in tests}
        of_suite = f" of {suites.pop()}" if len(suites) == 1 else ""
        print(f"testing {self.name}: {len(tests)} tests{of_suite}", flush=True)
        started = time.monotonic()
        if others:
            self._run(others, "testlog", ["--timeout-multiplier", "10"] if self.is_sanitized else [])
        if fuzzed:
            each = max(1, fuzz_seconds // len(fuzzed))
            longer = ["--timeout-multiplier", str(each // 60 + 2)]  # of 60 s
            self._run(fuzzed, "fuzzlog", [*longer, f"--test-args=-max_total_time={each}"])
        self.test_s = (self.test_s or 0) + time.monotonic() - started
        self.ran += tests

    def _run(self, tests: list[Test], log: str, more: list[str]) -> None:
        if self.commit:
            log = f"nightly-{self.commit}-{time.time_ns()}-{log}"
        elif self.ran:
            log += f"-{len(self.ran)}"
        path = self.path / "meson-logs" / f"{log}.json"
        path.unlink(missing_ok=True)
        self.logs.append(path)
        # A suite that is named is run though it is not among those that run by default.
        suites = [word for suite in {test.suite for test in tests} for word in ("--suite", suite)]
        command = ["meson", "test", "-C", self.name, "--no-rebuild", "--print-errorlogs", "--logbase", log]
        # One more than processors, because many tests wait for most of their time.
        command += ["--num-processes", str((os.cpu_count() or 1) + 1), *more, *suites, *(test.name for test in tests)]
        # Meson exits with the number of failed tests, and with more when it was killed itself.
        if run_quietly(command, self.root) not in range(125):
            self.is_broken = True

    def _targets_of(self, tests: Iterable[Test]) -> list[str]:
        wanted = set(tests)
        needed = {
            depends
            for each, test in zip(self._introspect("tests"), self.tests())
            if test in wanted
            for depends in each["depends"]
        }
        return sorted(
            os.path.relpath(name, self.path)
            for target in self._introspect("targets")
            if target["id"] in needed
            for name in target["filename"]
        )

    def _introspect(self, what: str) -> list:
        if what not in self.intro:
            text = (self.path / f"meson-info/intro-{what}.json").read_text("utf-8")
            self.intro[what] = json.loads(text)
        return self.intro[what]


def run_quietly(command: list[str], folder: Path) -> int:
    """Runs a command, on a terminal in full view; elsewhere what it prints is seen when it fails."""
    if sys.stdout.isatty():
        return subprocess.run(command, cwd=folder, check=False).returncode
    ran = subprocess.run([*command, "--quiet"], cwd=folder, check=False, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
    if ran.returncode != 0:
        print(ran.stdout, file=sys.stderr, flush=True)
    return ran.returncode
