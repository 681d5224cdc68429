#!/usr/bin/env python3
"""Checks what a shared library exports: the C ABI hocket_*, the C++ API hocket::v1::*, no more.

A symbol that slips out (a header library's, a template of the standard library) can meet its twin
from another library in one process, and then one of the two runs the other's code.
"""

from __future__ import annotations

import re
import subprocess
import sys

from tree import Finding, arguments, report

SYMBOL = re.compile(r"(?P<name>.+?)(@\S*)? (?P<type>[A-Za-z])(\s+[0-9a-f]+)*\s*")

# Mangled names say what a symbol belongs to; demangled ones may begin with a return type.
# TV vtable, TT VTT, TI typeinfo, TS its name, TC, GV guard variable, Th/Tv/Tc thunks.
C_ABI = re.compile(r"hocket_\w+")
CPP_API = re.compile(r"_Z(T[VTISC]P?K?|G[VR]|Th\w*?_|Tv\w*?_|Tc\w*?_)?Z?N[KVRO]*6hocket2v1\w+")
VERSION_NODE = re.compile(r"(?i)hocket_?[\w.]*")  # the version script's own names, of type A



def exported(nm: str, library: str, *flags: str) -> list[tuple[str, str]]:
    """(type, name) of each exported symbol, in the library's own order."""
    command = [nm, "--dynamic", "--defined-only", "--no-sort", "--format=posix", *flags, library]
    listing = subprocess.run(command, capture_output=True, text=True, check=False)
    if listing.returncode != 0:
        sys.exit(f"symbols: {library} cannot be read: {listing.stderr.strip()}")
    lines = (SYMBOL.fullmatch(line) for line in listing.stdout.splitlines())
    return [(match["type"], match["name"]) for match in lines if match]


def is_ours(kind: str, name: str) -> bool:
    if kind == "A":
        return bool(VERSION_NODE.fullmatch(name))
    return bool(C_ABI.fullmatch(name) or CPP_API.fullmatch(name))


def hint(name: str) -> str:
    script = "see that the linker's version script is used and names only ours"
    if not name.startswith("_Z"):
        return f"make it static, or begin it with hocket_; {script}"
    if re.match(r"_Z\w*?N[KVRO]*6hocket", name):
        return f"leave the export macro off it, or move it into hocket::v1; {script}"
    return script


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--nm", default="nm", help="the nm to ask (%(default)s)")
    parser.add_argument("library", metavar="LIB.so")
    options = parser.parse_args()
    symbols = exported(options.nm, options.library)
    readable = exported(options.nm, options.library, "--demangle")
    findings = [
        Finding(options.library, 0, "foreign-symbol", shown[:150], hint(name))
        for (kind, name), (_, shown) in zip(symbols, readable)
        if not is_ours(kind, name)
    ]
    in_c = sum(1 for _, name in symbols if C_ABI.fullmatch(name))
    summary = f"{len(symbols)} exported, {in_c} of them C; all are ours"
    return report("symbols", findings, summary)


if __name__ == "__main__":
    sys.exit(main())
