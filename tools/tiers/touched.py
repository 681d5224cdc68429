"""Which files have changed since the last commit that a whole nightly run has passed.

That commit stands in tests/nightly.json, into which `tools/check --nightly` writes what has passed:
each part, and of a part that has begun each suite. So one clone can go on where another was cut off.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from table import VARIANTS

RECORD = "tests/nightly.json"
PARTS = (*VARIANTS, "demo")  # of a whole nightly run


@dataclass
class Record:
    """What has passed of the nightly run of a commit; the commit is empty where nothing has."""

    commit: str = ""
    parts: dict[str, dict] = field(default_factory=dict)
    begun: dict[str, dict[str, dict]] = field(default_factory=dict)  # of each other build, its suites


def git(root: Path, *words: str) -> str | None:
    """What git printed; None when it failed or is not there."""
    try:
        ran = subprocess.run(("git", "-C", str(root), *words), capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return ran.stdout if ran.returncode == 0 else None


def changed_since_nightly(root: Path) -> tuple[list[str] | None, str]:
    """The files that differ from the recorded commit, committed or not, and a line that says so.

    None where that can't be known: then every file must be taken for changed.
    """
    record = read_record(root)
    commit = record.commit
    if not commit:
        return None, f"{RECORD} names no commit, so every file counts as changed"
    if missing := ", ".join(part for part in PARTS if part not in record.parts):
        why = f"the nightly run of commit {commit[:12]} has not passed whole (missing: {missing})"
        return None, f"{why}, so every file counts as changed"
    if git(root, "cat-file", "-e", f"{commit}^{{commit}}") is None:
        why = f"commit {commit[:12]} of {RECORD} is not in this clone"
        return None, f"{why}, so every file counts as changed"
    differing = git(root, "diff", "--name-only", "--no-renames", "-z", commit)
    untracked = git(root, "ls-files", "--others", "--exclude-standard", "-z")
    if differing is None or untracked is None:
        return None, f"git can't compare with commit {commit[:12]}, so every file counts as changed"
    files = sorted({name for name in (differing + untracked).split("\0") if name})
    return files, f"{len(files)} files have changed since the nightly run of commit {commit[:12]}"


def clean_commit(root: Path) -> str | None:
    """The commit that is checked out; None where files differ from it. The record does not count: where
    only that differs from the recorded commit, it is the recorded one."""
    others = ("--", ".", f":(exclude){RECORD}")
    status = git(root, "status", "--porcelain", *others)
    head = git(root, "rev-parse", "HEAD")
    if not head or status != "":
        return None
    recorded = read_record(root).commit
    is_same = recorded and git(root, "diff", "--name-only", recorded, "HEAD", *others) == ""
    return recorded if is_same else head.strip()


def read_record(root: Path) -> Record:
    try:
        said = json.loads((root / RECORD).read_text("utf-8"))
        return Record(said["commit"], said["parts"], said.get("begun", {}))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Record()


def record_of(root: Path, commit: str) -> Record:
    """What is written down of this commit."""
    found = read_record(root)
    return found if found.commit == commit else Record(commit)


def note_suite(root: Path, commit: str, variant: str, suite: str, seconds: float, counts: dict[str, int]) -> None:
    """Writes down that a suite has passed in a build, of which others may be left."""
    record = record_of(root, commit)
    record.begun.setdefault(variant, {})[suite] = {"minutes": round(seconds / 60, 1), **counts}
    _write(root, record)


def note_part(root: Path, commit: str, part: str, seconds: float = 0.0) -> None:
    """Writes down that a part has passed, with the sums of its suites. `seconds`: time besides the suites,
    such as compiling."""
    record = record_of(root, commit)
    sums: Counter[str] = Counter()
    for counts in record.begun.pop(part, {}).values():
        sums.update(counts)
    minutes = round(sums.pop("minutes", 0) + seconds / 60)
    date = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    record.parts[part] = {"date": date, "minutes": minutes, **sums}
    _write(root, record)


def _write(root: Path, record: Record) -> None:
    said = {name: value for name, value in asdict(record).items() if value}
    (root / RECORD).write_text(json.dumps({"parts": {}, **said}, indent=2) + "\n", "utf-8")
