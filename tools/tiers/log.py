"""The log that `meson test` writes: a line of JSON for each test that has ended."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable
from pathlib import Path

OUTCOMES = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}  # all others: failed


def results(log: Path) -> list[dict]:
    """What the tests gave; of a test run that was cut off, what it had written."""
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    complete = []
    for line in lines:
        try:
            complete.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return complete


def bare_name(result: dict) -> str:
    """The name without the project, and without the suites that Meson puts before it."""
    return result["name"].split(" / ")[-1].removeprefix("hocket:")


def outcome(result: dict) -> str:
    """passed, skipped or failed."""
    return OUTCOMES.get(result["result"], "failed")


def done(logs: Iterable[Path]) -> set[str]:
    """The names of tests that need not run again: they passed, or were skipped."""
    return {bare_name(result) for log in logs for result in results(log) if outcome(result) != "failed"}


def seconds(log: Path, names: Container[str] | None = None) -> float:
    """From the beginning of the first test to the end of the last one, of those so named or of all."""
    ran = [each for each in results(log) if names is None or bare_name(each) in names]
    spans = [(each["starttime"], each["starttime"] + each["duration"]) for each in ran]
    return max(end for _, end in spans) - min(start for start, _ in spans) if spans else 0.0
