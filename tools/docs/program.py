"""What the program `hocket` says, asked once for each question."""

from __future__ import annotations

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

Bounds = dict[tuple[str, str], dict[str, int]]  # by operation and algorithm


class Program:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.ask = cache(self._ask)

    def run(self, *words: str) -> str:
        ran = subprocess.run(
            [str(self.path), *words], capture_output=True, text=True, timeout=300, check=False
        )
        if ran.returncode != 0:
            raise SystemExit(f"hocket {' '.join(words)}: {ran.stderr.strip()}")
        return ran.stdout

    def _ask(self, *words: str) -> Any:
        return json.loads(self.run(*words, "--json"))

    def ask_all(self, questions: list[tuple[str, ...]]) -> list[Any]:
        """Several at once; the answers in the order of the questions."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(lambda words: self.ask(*words), questions))

    def catalog(self) -> list[dict[str, Any]]:
        """Rows with the bounds of some world: whether they are exact is the same in each."""
        rows: list[dict[str, Any]] = self.ask(*bounds_question(8, 4, 2))
        return rows

    def bounds(self, n: int, p: int, h: int) -> Bounds:
        rows = self.ask(*bounds_question(n, p, h))
        return {(row["operation"], row["algorithm"]): row["bound"] for row in rows}


def bounds_question(n: int, p: int, h: int) -> tuple[str, ...]:
    return ("plan", "list", "-n", str(n), "--pieces", str(p), "--ranks-per-host", str(h))
