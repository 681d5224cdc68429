"""An algorithm: what the program says of it, and what algorithms.toml does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from formula import Formula
from program import Program

FORMULAS = ("rounds", "hops", "sent", "line", "inside", "reduced")
KEYS = {*FORMULAS, "idea", "at_most", "skewed", "from", "draw"}


class Wrong(Exception):
    """What was written is not so."""


@dataclass(frozen=True)
class Entry:
    row: dict[str, Any]  # of the catalog
    words: dict[str, Any]
    formulas: dict[str, Formula] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(self.row["algorithm"])

    @property
    def operation(self) -> str:
        return str(self.row["operation"])

    def is_at_most(self, key: str) -> bool:
        return key in self.words.get("at_most", ())


def check_words(words: dict[str, Any], known: set[tuple[str, str]]) -> None:
    for operation, algorithms in words.items():
        if operation == "operations":
            continue
        for algorithm, about in algorithms.items():
            where = f"[{operation}.{algorithm}] of algorithms.toml"
            if (operation, algorithm) not in known:
                raise Wrong(f"{where} is about no algorithm of the catalog")
            if unknown := sorted(about.keys() - KEYS):
                raise Wrong(f"{where} has {unknown[0]}, which means nothing")
            if about.keys() & set(FORMULAS) and not {"rounds", "sent"} <= about.keys():
                raise Wrong(f"{where} needs both rounds and sent")


def read_entries(program: Program, words: dict[str, Any]) -> list[Entry]:
    """In the order of the catalog."""
    rows = program.catalog()
    check_words(words, {(row["operation"], row["algorithm"]) for row in rows})
    entries = []
    for row in rows:
        about = words.get(row["operation"], {}).get(row["algorithm"], {})
        formulas = {key: Formula(about[key]) for key in FORMULAS if key in about}
        if formulas:
            formulas.setdefault("hops", formulas["rounds"])
            formulas.setdefault("line", formulas["sent"])
        entries.append(Entry(row, about, formulas))
    return entries
