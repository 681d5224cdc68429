#!/usr/bin/env python3
"""Shows that each tidy check can fail: small trees with one fault, and the finding it gives."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADER = "#pragma once\n"

# A tree with nothing to find, though forbidden words stand in its comments and literals.
GOOD = {
    "include/hocket/types.hpp": HEADER + "\n#include <cstdint>\n",
    "lib/base/clock.hpp": HEADER + "\n#include <chrono>\n",
    "lib/base/clock.cpp": '#include "base/clock.hpp"\n\n'
    "auto now() { return std::chrono::steady_clock::now(); }\n",
    "lib/plan/ring.hpp": HEADER + '\n#include "hocket/types.hpp"\n',
    "lib/plan/ring.cpp": '#include "plan/ring.hpp"\n\n'
    '// std::function\n/*\n#include <thread>\n*/\nconst char* text = "std::future, rand()";\n',
    "lib/link/lane.cpp": '#include <asio.hpp>\n\n#include "base/clock.hpp"\n',
    "transports/tcp/conformance.cpp": "#include <catch2/catch.hpp>\n\n"
    '#include "tests/support/world.hpp"\n',
    "tests/support/world.hpp": HEADER + '\n#include "base/clock.hpp"\n',
}

# What is laid over the good tree, and the only findings it may give.
LAYERS = [
    ("lib/plan/bad.cpp", '\n#include "engine/work.hpp"\n', "2: arrow"),
    ("lib/base/bad.cpp", '#include "plan/ring.hpp"\n', "1: arrow"),
    ("lib/base/bad.cpp", '#include "hocket/transport.hpp"\n', "1: arrow"),
    ("lib/engine/bad.cpp", '#include "wire/hello.hpp"\n', "1: arrow"),
    ("lib/comm/bad.cpp", '#include "transports/tcp/lane.hpp"\n', "1: arrow"),
    ("transports/shm/bad.cpp", '#include "plan/ring.hpp"\n', "1: arrow"),
    ("examples/bad.cpp", '#include "base/clock.hpp"\n', "1: arrow"),
    ("lib/plan/bad.cpp", "#include <mutex>\n", "1: pure"),
    ("lib/plan/bad.cpp", '#include "base/clock.hpp"\n', "1: pure"),
    ("lib/engine/bad.cpp", "#include <asio/ip/tcp.hpp>\n", "1: third-party"),
    ("include/hocket/bad.hpp", "#include <fmt/format.h>\n", "1: third-party"),
    ("include/hocket/bad.hpp", "#include <unistd.h>\n", "1: unknown"),
    ("lib/base/bad.cpp", "#include <boost/any.hpp>\n", "1: unknown"),
    ("lib/base/bad.cpp", '#include "clock.hpp"\n', "1: spelling"),
    ("lib/base/posix/bad.cpp", "", "1: folder"),
    ("lib/misc/bad.cpp", "", "1: room"),
]
STYLE = [
    ("lib/base/bad.cpp", "int a;\n\tint b;\n", "2: tab"),
    ("docs/bad.md", "word \n", "1: trailing-space"),
    ("docs/bad.md", "word", "1: final-newline"),
    ("tools/bad.py", "# TO" "DO\n", "1: unfinished"),
    ("docs/bad.md", "see /ho" "me/ann/x\n", "1: machine-path"),
    ("lib/base/bad.cpp", "int a;  // NO" "LINT\n", "1: opt-out"),
    ("lib/engine/bad.cpp", "\nstd::function<void()> f;\n", "2: callback"),
    ("lib/engine/bad.cpp", "std::shared_ptr<int> p;\n", "1: shared-owner"),
    ("lib/engine/bad.cpp", "auto t = std::chrono::steady_clock::now();\n", "1: clock"),
    ("tests/unit/bad_test.cpp", "std::random_device device;\n", "1: random"),
    ("lib/engine/bad.cpp", "int x = rand();\n", "1: random"),
    ("lib/comm/bad.cpp", 'auto x = std::getenv("X");\n', "1: environment"),
    ("lib/wire/bad.cpp", "std::chrono::steady_clock::time_point t;\n", "1: pure"),
    ("lib/base/bad.hpp", "int a();\n", "1: pragma-once"),
    ("lib/base/clock.cpp", '#include <chrono>\n\n#include "base/clock.hpp"\n', "1: own-header"),
    ("lib/base/BadName.cpp", "int a;\n", "1: file-name"),
]
FORMAT = [("lib/base/bad.cpp", "int  a;\n", "1: format")]
SIZES = [
    ({"tests/bad.cpp": "int a;\n" * 801}, ["tests/bad.cpp:1: file-size"]),
    ({f"lib/base/a{n}.cpp": "// a\n" * 151 for n in range(9)}, [".:1: file-median"]),
    ({f"lib/base/a{n}.cpp": "// a\n" * 401 for n in range(2)}, [".:1: file-p90"]),
    (
        {"tools/bad.py": "def f(): pass\n" * 120 + "def g():\n" + "    f()\n" * 80},
        ["tools/bad.py:121: function-size"],
    ),
    (
        {"tools/bad.py": ("def f():\n" + "    g()\n" * 30) * 4},
        [".:1: function-p90"],
    ),
    ({f"lib/base/a{n}.cpp": "int a;\n" for n in range(24)}, ["lib/base:1: room-size"]),
    (
        {f"include/hocket/a{n}.hpp": "int a;\n" * 140 for n in range(15)},
        ["tests:1: too-few-tests"],
    ),
]


def needs(program: str) -> Callable[[Callable], Callable]:
    return unittest.skipUnless(shutil.which(program), f"{program} is not here")


class Tidy(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="hocket-tidy-")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.lay(GOOD)

    def lay(self, texts: dict[str, str]) -> None:
        for path, text in texts.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)

    def run_check(self, check: str, *arguments: str) -> tuple[list[str], str]:
        script = str(ROOT / "tools" / "tidy" / f"{check}.py")
        command = [sys.executable, "-B", script, "--root", str(self.root), *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        found = re.findall(r"^(\S+:\d+: [\w.-]+): ", ran.stdout, re.MULTILINE)
        self.assertEqual(ran.returncode, 1 if found else 0, ran.stdout + ran.stderr)
        return found, ran.stdout

    def expect(self, check: str, cases: list[tuple[dict[str, str], list[str]]]) -> None:
        self.assertEqual(self.run_check(check)[0], [], "the good tree")
        for texts, expected in cases:
            with self.subTest(expected=expected):
                self.lay(texts)
                found, said = self.run_check(check)
                self.assertEqual(found, expected, said)
                for path in texts:
                    (self.root / path).unlink()
                self.lay(GOOD)

    def expect_lines(self, check: str, cases: list[tuple[str, str, str]]) -> None:
        self.expect(check, [({path: text}, [f"{path}:{at}"]) for path, text, at in cases])

    def test_layers(self) -> None:
        self.expect_lines("layers", LAYERS)

    def test_style(self) -> None:
        self.expect_lines("style", STYLE)

    def test_style_asks_git_which_files_are_ours(self) -> None:
        self.lay({".gitignore": "ignored/\n", "ignored/a.md": "word \n", "new.md": "word \n"})
        subprocess.run(["git", "init", "--quiet", str(self.root)], check=True)
        self.assertEqual(self.run_check("style")[0], ["new.md:1: trailing-space"])

    @needs("ctags")
    def test_sizes(self) -> None:
        self.expect("sizes", SIZES)

    @needs("clang-format")
    def test_format(self) -> None:
        self.lay({".clang-format": (ROOT / ".clang-format").read_text()})
        self.expect_lines("format", FORMAT)
        self.lay({path: text for path, text, _ in FORMAT})
        self.assertEqual(self.run_check("format", "--fix")[0], [])
        self.assertEqual(self.run_check("format")[0], [])

    @needs("c++")
    def test_symbols(self) -> None:
        ours = "extern \"C\" int hocket_f() { return 1; }\nnamespace hocket::inline v1 {\n"
        ours += "struct A { virtual ~A(); };\nA::~A() {}\n}\n"
        cases = [
            (ours, []),
            (ours + "extern \"C\" int stray() { return 1; }\n", ["stray"]),
            (ours + "namespace hocket { int f() { return 1; } }\n", ["hocket::f()"]),
            (ours + "template <class T> T g() { return 1; }\nint x = g<int>();\n", ["g", "x"]),
        ]
        for text, expected in cases:
            with self.subTest(expected=expected):
                self.lay({"a.cpp": text})
                library = str(self.root / "a.so")
                command = ["c++", "-std=c++20", "-shared", "-fPIC", "-o", library, "a.cpp"]
                subprocess.run(command, cwd=self.root, check=True)
                said = self.run_check("symbols", library)[1]
                found = re.findall(r"foreign-symbol: (?:int )?([\w:]+(?:\(\)$)?)", said, re.M)
                self.assertEqual(found, expected, said)

    def lay_build(self, *flags: str) -> Path:
        """A build folder whose one source is lib/base/count.cpp, compiled with these flags."""
        build = self.root / "build"
        build.mkdir()
        source = "../lib/base/count.cpp"
        words = f"g++ -std=c++20 {' '.join(flags)} -I../lib -c {source} -o a.o"
        entry = {"directory": str(build), "command": words, "file": source}
        (build / "compile_commands.json").write_text(json.dumps([entry]))
        return build

    @needs("g++")
    def test_alone(self) -> None:
        header, source = "lib/base/count.hpp", "lib/base/count.cpp"
        include = "#include <vector>\n"
        good = {header: HEADER + include + "std::vector<int> count();\n"}
        good[source] = '#include "base/count.hpp"\nstd::vector<int> count() { return {1}; }\n'
        self.lay(good | {"lib/all.hpp": include})
        build = self.lay_build("-include all.hpp")  # as a precompiled header is given
        self.assertEqual(self.run_check("alone", str(build))[0], [])
        self.lay({header: good[header].replace(include, "")})
        found = self.run_check("alone", str(build))[0]
        self.assertEqual(found, [f"{source}:1: alone", f"{header}:1: alone"])
        self.lay({source: include + good[source]})
        self.assertEqual(self.run_check("alone", str(build))[0], [f"{header}:1: alone"])

    @needs("clang-tidy")
    def test_lint(self) -> None:
        header, source = "lib/base/count.hpp", "lib/base/count.cpp"
        good = {header: HEADER + "int count();\n"}
        good[source] = '#include "base/count.hpp"\nint count() { return 1; }\n'
        self.lay(good | {".clang-tidy": (ROOT / ".clang-tidy").read_text()})
        # A precompiled header of g++ is nothing that clang can read.
        build = self.lay_build("-fno-gnu-unique -Wlogical-op -include precompiled.hpp")

        def lint() -> tuple[list[str], str]:
            found, said = self.run_check("lint", str(build))
            return found, re.findall(r"\d+ of them", said)[0]

        self.assertEqual(lint(), ([], "1 of them"))
        self.assertEqual(lint(), ([], "0 of them"), "what passed is remembered")
        naming = "readability-identifier-naming"
        self.lay({header: HEADER + "int count();\nint Other();\n"})
        self.assertEqual(lint(), ([f"{header}:3: {naming}"], "1 of them"), "a header counts")
        self.assertEqual(lint(), ([f"{header}:3: {naming}"], "1 of them"), "a fault stays one")
        self.lay(good)
        self.assertEqual(lint(), ([], "1 of them"))
        self.lay({source: good[source] + "Missing broken();\n"})
        self.assertEqual(lint(), ([f"{source}:3: clang-diagnostic-error"], "1 of them"))

        divides = "inline int part(int of) { return 9 / of; }\n"
        call = "int count() { return part(0); }\n"
        self.lay({"lib/base/part.hpp": HEADER + divides, source: '#include "base/part.hpp"\n' + call})
        self.assertEqual(lint()[0], ["lib/base/part.hpp:2: clang-analyzer-core.DivideZero"])
        with tempfile.TemporaryDirectory() as library:
            (Path(library) / "part.hpp").write_text(HEADER + divides)
            self.lay({source: f'#include "{library}/part.hpp"\n' + call})
            self.assertEqual(lint()[0], [], "what the analyzer finds in libraries is not ours")


if __name__ == "__main__":
    unittest.main(verbosity=2)  # with the reasons of what is skipped
