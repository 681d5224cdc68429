#!/usr/bin/env python3
"""docs/errors.md lists all messages of the library and `hocket run`, no others; the scanner works."""

from __future__ import annotations

import sys
import unittest
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/docs"))

from messages import Page, Source, Text

PAGE = ROOT / "docs/errors.md"
HEADING = "## All messages"
FOLDERS = ("lib", "transports", "devices", "tools/run")

# Only tests and the simulator use these.
UNSEEN = ("transports/sim/", "/conformance.cpp")

# What is no message: names of things, of which messages are made, and keys.
NAMES = {
    "pid … on …": "a process",
    "torchrun or env://": "a launcher",
    "Open MPI": "a launcher",
    "MPICH or Intel MPI": "a launcher",
    "PyTorch's TCPStore": "a protocol",
    "all joined": "a key of the store",
    "start_many, …": "an operation",
    "the URL": "what says which rank this is",
    "the program": "what says which rank this is",
    "the program's store": "a store, before what went wrong with it",
    "… and … more": "the rest of a list",
    "(it was in no operation)": "the rest of a sentence",
    "… of …, driver for CUDA ….…, runtime ….…": "a device, for `hocket info`",
    "0 (no limit)": "a bandwidth, for `hocket sim`",
    "ssh -o BatchMode=yes -o ConnectTimeout=10": "the remote shell of `hocket run`",
    "exec … run --agent": "a command for the remote shell",
    "(made up)": "a job's name, for `hocket run --dry-run`",
    "(not shown)": "a secret, for `hocket run --dry-run`",
    "hocket run: …": "the name of the program, before what went wrong",
    "ranks … and …": "several ranks, before what they did",
    "failed first": "what a rank did, in the middle of a sentence",
    "it was closed on this side": "how the launcher wakes its own threads, which tell nobody",
}

CODE = r"""
#include "base/status.hpp"  // "a comment is no message"
constexpr std::string_view own_hint = "what to do";
Status refused(std::string what, std::string_view hint) {
  return Status(StatusCode::aborted, std::move(what)).with_hint(std::string(hint));
}
Status f(int rank) {
  if (rank == 1) return refused(fmt::format("rank {} has \"{}\" "
                                            "twice", rank, 'x'), "ask again later");
  log::line(log::Level::info, "all is well");
  log::line(log::Level::warning, "all is lost");
  const std::string what = "can't open " + file + " of the job";
  complain(fmt::format("hocket run: {} is gone\n  so is {}", rank, b));
  const char* const label = "hocket log of something";
  return Status(StatusCode::not_found, "nothing is here").with_hint(b ? "look there" : "or here");
}
"""
MESSAGES = [
    Text(8, 'rank … has "…" twice'),
    Text(11, "all is lost"),
    Text(12, "can't open …"),
    Text(13, "hocket run: … is gone"),
    Text(13, "so is …"),
    Text(15, "nothing is here"),
]


def sources() -> Iterator[tuple[str, Source]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in (".cpp", ".hpp", ".cu") and not any(each in name for each in UNSEEN):
                yield name, Source(path.read_text("utf-8"))


def literals() -> set[str]:
    return {text.strip() for _, source in sources() for _, text in source.literals()}


class Messages(unittest.TestCase):
    def test_the_page_has_all(self) -> None:
        page = Page.read(PAGE.read_text("utf-8"), HEADING)
        missing = [f"{name}:{each.line}: {each.text}"
                   for name, source in sources() for each in source.messages()
                   if each.text not in NAMES and not page.has(each.text)]
        self.assertFalse(missing, f"not in {PAGE.name}:\n" + "\n".join(missing))

    def test_the_page_has_no_others(self) -> None:
        page = Page.read(PAGE.read_text("utf-8"), HEADING)
        gone = sorted(page.listed - literals())
        self.assertFalse(gone, f"in {PAGE.name}, but in no source:\n" + "\n".join(gone))

    def test_no_name_is_gone(self) -> None:
        self.assertFalse(NAMES.keys() - literals())

    def test_what_is_a_message(self) -> None:
        self.assertEqual(list(Source(CODE).messages()), MESSAGES)

    def test_what_is_on_a_page(self) -> None:
        examples = "| `rank 1 is lost: cut` | why |\n"
        listed = "| `a b`, ``c `d` `` | `e f` |\n"
        page = Page.read(f"{examples}\n## All\n\n{listed}", "## All")
        self.assertEqual(page.listed, {"a b", "c `d`"})
        self.assertTrue(page.has("rank … is lost: …"))
        self.assertFalse(page.has("rank … is late"))
        self.assertFalse(page.has("e f"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
