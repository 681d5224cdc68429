"""Which files have changed since the last commit that a whole nightly run has passed.

That commit stands in tests/nightly.json, into which `tools/check --nightly` writes each part that has
passed: so one clone can run some parts, and another the others.
"""

from __future__ import annotations

import json
import subprocess
from datetime import datetime, timezone
from pathlib import Path

from table import VARIANTS

RECORD = "tests/nightly.json"
PARTS = (*VARIANTS, "demo")  # of a whole nightly run


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
    commit, parts = read_record(root)
    if not commit:
        return None, f"{RECORD} names no commit, so every file counts as changed"
    if missing := ", ".join(part for part in PARTS if part not in parts):
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
    recorded = read_record(root)[0]
    is_same = recorded and git(root, "diff", "--name-only", recorded, "HEAD", *others) == ""
    return recorded if is_same else head.strip()


def read_record(root: Path) -> tuple[str, dict[str, dict]]:
    """The commit, empty where the record names none, and its parts that have passed."""
    try:
        said = json.loads((root / RECORD).read_text("utf-8"))
        return said["commit"], said["parts"]
    except (OSError, ValueError, KeyError, TypeError):
        return "", {}


def passed_parts(root: Path, commit: str) -> dict[str, dict]:
    recorded, parts = read_record(root)
    return parts if recorded == commit else {}


def record(root: Path, commit: str, part: str, seconds: float, counts: dict[str, int]) -> None:
    """Writes down that a part of the nightly run of this commit has passed."""
    parts = passed_parts(root, commit)
    parts[part] = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "minutes": round(seconds / 60),
        **counts,
    }
    said = {"commit": commit, "parts": parts}
    (root / RECORD).write_text(json.dumps(said, indent=2) + "\n", "utf-8")
