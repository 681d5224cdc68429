"""Which files have changed since the last commit that a whole nightly run has passed.

That commit stands in tests/nightly.json, which `tools/check --nightly` writes when it has passed.
"""

from __future__ import annotations

import json
import subprocess
from datetime import datetime, timezone
from pathlib import Path

RECORD = "tests/nightly.json"


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
    try:
        commit = json.loads((root / RECORD).read_text("utf-8"))["commit"]
    except (OSError, ValueError, KeyError):
        return None, f"{RECORD} names no commit, so every file counts as changed"
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
    """The commit that is checked out; None where files differ from it."""
    status = git(root, "status", "--porcelain")
    head = git(root, "rev-parse", "HEAD")
    return head.strip() if head and status == "" else None


def record(root: Path, commit: str, seconds: float, counts: dict[str, int]) -> None:
    """Writes down that a nightly run of this commit has passed."""
    said = {
        "commit": commit,
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "minutes": round(seconds / 60),
        **counts,
    }
    (root / RECORD).write_text(json.dumps(said, indent=2) + "\n", "utf-8")
