#!/usr/bin/env python3
"""_core.pyi, from which editors and type checkers know the package, has what the module has.

usage: stub_test.py FOLDER    in FOLDER is the package `hocket`
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from pythons import python_with  # noqa: E402

FOLDER = sys.argv.pop(1)
sys.path.insert(0, FOLDER)

from hocket import _core  # noqa: E402

STUB = ast.parse((Path(FOLDER) / "hocket/_core.pyi").read_text())
PROGRAM = """
import hocket
world = hocket.join()
memory: hocket.Buffer = hocket.allocate(world, 8)
world.all_reduce(memory, op="max")
count: int = world.recv(memory).count
work = world.start(hocket.broadcast(memory, root=1))
hocket.wait_all([work])
"""
WRONG = 'world.all_reduce(memory, op="wrong")'
# Of tuples. What an exception has is set when it is raised.
UNLISTED = {"n_fields", "n_sequence_fields", "n_unnamed_fields"}


def signature(function: ast.FunctionDef) -> str:
    """As documentation has it: without types, and without self."""
    arguments = function.args
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        each.annotation = None
    if arguments.args and arguments.args[0].arg in ("self", "cls"):
        del arguments.args[0]
    return f"{function.name}({ast.unparse(arguments)})"


def is_property(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(each) == "property" for each in function.decorator_list)


def documented(thing: Any) -> str:
    return (thing.__doc__ or "").partition("\n")[0]


class Stub(unittest.TestCase):
    def test_names(self) -> None:
        named = {each.name for each in STUB.body if isinstance(each, ast.ClassDef | ast.FunctionDef)}
        self.assertEqual({each for each in named if not each.startswith("_")},
                         {each for each in vars(_core) if not each.startswith("_")})

    def test_functions(self) -> None:
        for function in STUB.body:
            if isinstance(function, ast.FunctionDef) and function.args.vararg is None:
                self.assertEqual(documented(getattr(_core, function.name)), signature(function))

    def test_classes(self) -> None:
        for each in STUB.body:
            kind = getattr(_core, each.name, None) if isinstance(each, ast.ClassDef) else None
            if kind is None or issubclass(kind, BaseException):
                continue
            fields = {item.target.id for item in each.body if isinstance(item, ast.AnnAssign)}
            functions = {item.name: item for item in each.body if isinstance(item, ast.FunctionDef)}
            self.assertEqual({name for name in (*fields, *functions) if not name.startswith("_")},
                             {name for name in vars(kind) if not name.startswith("_")} - UNLISTED, each.name)
            for name, function in functions.items():
                if not name.startswith("_") and not is_property(function):
                    self.assertEqual(documented(getattr(kind, name)), signature(function), each.name)

    def test_exceptions(self) -> None:
        for each in STUB.body:
            kind = getattr(_core, each.name, None) if isinstance(each, ast.ClassDef) else None
            if kind is not None and issubclass(kind, BaseException):
                self.assertEqual([base.__name__ for base in kind.__bases__],
                                 [ast.unparse(base) for base in each.bases])

    def test_a_type_checker_takes_it(self) -> None:
        python = python_with("mypy")
        if python is None:
            self.skipTest("no Python has mypy, which tools/setup --for frameworks installs")
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "program.py").write_text(PROGRAM + WRONG)
            for version in ("3.11", "3.13"):
                done = subprocess.run(
                    [python, "-m", "mypy", "--strict", "--python-version", version, "program.py"],
                    cwd=folder, env={**os.environ, "MYPYPATH": FOLDER}, capture_output=True, text=True,
                    check=False)
                wrong = [line.partition(": ")[0] for line in done.stdout.splitlines() if ": error: " in line]
                self.assertEqual(wrong, [f"program.py:{PROGRAM.count(chr(10)) + 1}"],
                                 done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
