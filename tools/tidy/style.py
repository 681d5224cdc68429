#!/usr/bin/env python3
"""Checks every text file line by line: whitespace, words, and calls kept out of a folder.

A rule is a row of the table below. It reads the whole text, or (code=True) C++ with comments and
literals left out. Patterns of files are those of the shell, and `*` also matches slashes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from posixpath import basename, dirname

from tree import CPP, HEADERS, SCRIPTS, Finding, among, arguments, blank, files, includes
from tree import line_finder, read, report

SOURCES = " ".join(f"*{suffix}" for suffix in (*CPP, *SCRIPTS)) + " *meson.build *meson_options.txt"
CPP_FILES = " ".join(f"*{suffix}" for suffix in CPP)
BELOW_COMM = (
    "lib/base/* lib/wire/* lib/store/* lib/reduce/* lib/plan/* tools/proof/* lib/choose/* "
    "lib/engine/* lib/device/* transports/* include/hocket/transport.hpp"
)
PURE = "lib/wire/* lib/reduce/* lib/plan/* tools/proof/* lib/choose/* tools/simulator/*"
UNFINISHED = "|".join(("TO" "DO", "FIX" "ME", "X" "XX", "HA" "CK"))


@dataclass(frozen=True)
class Rule:
    name: str
    pattern: str
    fix: str
    where: str = "*"
    but: str = ""
    code: bool = False


RULES = (
    Rule("tab", r"\t", "indent with spaces", but="*Makefile *.mk"),
    Rule("trailing-space", r"[ \t\r]+$", "delete it", but="*.patch *.diff"),
    Rule("unfinished", rf"\b({UNFINISHED})\b", "do it now, or open an issue", SOURCES),
    Rule("machine-path", r"(?<![\w.})*-])/(home|root|work)/\w", "name no developer's machine"),
    Rule("opt-out", r"NOLINT|clang-format off", "the checks have no exceptions", CPP_FILES),
    Rule(
        "callback",
        r"\bstd::(function|(shared_)?future|promise|async|packaged_task)\b",
        "below comm use a batch, a status or a template parameter",
        BELOW_COMM,
        code=True,
    ),
    Rule(
        "shared-owner",
        r"\b(std::(shared|weak)_ptr|(make|allocate)_shared|enable_shared_from_this)\b",
        "below comm give it one owner (only Asio's folders may share)",
        BELOW_COMM,
        but="lib/store/* transports/tcp/*",
        code=True,
    ),
    Rule(
        "clock",
        r"\w+_clock\s*::\s*now\b|\b(clock_gettime|gettimeofday|timespec_get|__rdtscp?)\b"
        r"|\btime\s*\(\s*(NULL|nullptr|0)\s*\)",
        "take the clock that is passed in (base/clock.hpp)",
        CPP_FILES,
        but="lib/base/* examples/* bench/peers/*",  # which see only the public headers, or none
        code=True,
    ),
    Rule(
        "random",
        r"\b(random_device|getrandom|getentropy|arc4random\w*|RAND_bytes)\b"
        r"|(?<![.>\w])s?rand\s*\(",
        "take the generator that is passed in (base/rng.hpp); a test seeds its own",
        CPP_FILES,
        but="lib/base/*",
        code=True,
    ),
    Rule(
        "environment",
        r"\b(secure_)?getenv\s*\(",
        "variables are read in one place, the registry in lib/base",
        CPP_FILES,
        but="lib/base/* tools/* bench/peers/*",
        code=True,
    ),
    Rule(
        "pure",
        r"\b((steady|system|high_resolution)_clock|thread_local)\b",
        "this room is pure: pass the value in",
        PURE,
        code=True,
    ),
)


def check_lines(path: str, text: str) -> Iterator[Finding]:
    line_of, lines = line_finder(text), text.split("\n")
    code = blank(text) if path.endswith(CPP) else ""
    for rule in RULES:
        if not among(path, rule.where) or among(path, rule.but):
            continue
        for match in re.finditer(rule.pattern, code if rule.code else text, re.MULTILINE):
            line = line_of(match.start())
            yield Finding(path, line, rule.name, lines[line - 1].strip()[:90], rule.fix)


def check_file(root: Path, path: str, text: str) -> Iterator[Finding]:
    """The rules that look at a file as a whole."""
    name = basename(path)
    if not text.endswith("\n"):
        last = text.count("\n") + 1
        yield Finding(path, last, "final-newline", "the last line has no end", "add one")
    if among(path, SOURCES) and not re.fullmatch(r"[a-z0-9_]+(-inl)?(\.[a-z0-9_]+)+", name):
        yield Finding(path, 0, "file-name", name, "rename it in snake_case")
    is_included = path.endswith(HEADERS) and "/precompiled/" not in path  # which compilers read alone
    if is_included and not re.search(r"^#pragma once$|HWY_TARGET_TOGGLE", text, re.M):
        yield Finding(path, 0, "pragma-once", "no include guard", "begin with #pragma once")
    if path.endswith((".cpp", ".c", ".cu")):
        yield from check_own_header(root, path, text)


def check_own_header(root: Path, path: str, text: str) -> Iterator[Finding]:
    stem = path.rsplit(".", 1)[0]
    own = [basename(stem + end) for end in HEADERS if (root / (stem + end)).is_file()]
    for line, spelled in list(includes(text))[:1]:
        if own and basename(spelled) not in own:
            fix = f'include "{basename(dirname(path))}/{own[0]}" before it'
            yield Finding(path, line, "own-header", f"{spelled} comes first", fix)


def main() -> int:
    root = arguments(__doc__).parse_args().root
    texts = {path: text for path in files(root) if (text := read(root, path))}
    findings = [found for path, text in texts.items() for found in check_lines(path, text)]
    findings += [found for path, text in texts.items() for found in check_file(root, path, text)]
    lines = sum(text.count("\n") for text in texts.values())
    return report("style", findings, f"{lines} lines in {len(texts)} files keep {len(RULES)} rules")


if __name__ == "__main__":
    sys.exit(main())
