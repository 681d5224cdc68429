"""Sizes as people write them."""

from __future__ import annotations

UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def numbers(words: str) -> tuple[int, ...]:
    """Of "8,4K,2M"."""
    units = {name[0]: unit for unit, name in UNITS}
    return tuple(int(word[:-1]) * units[word[-1]] if word[-1] in units else int(word)
                 for word in words.split(","))


def show_size(size: int) -> str:
    for unit, name in UNITS:
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"
