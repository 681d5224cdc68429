"""The links of Markdown pages: which lead nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

LINK = re.compile(r"\]\(([^()\s]+)\)")
HEADING = re.compile(r"(?m)^#+ +(.*?) *$")
CODE = re.compile(r"(?ms)^```.*?^```|`[^`\n]*`")


def anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub names them."""
    found: set[str] = set()
    for heading in HEADING.findall(re.sub(r"(?ms)^```.*?^```", "", page.read_text("utf-8"))):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        repeated = sum(1 for each in found if re.fullmatch(re.escape(name) + r"(-\d+)?", each))
        found.add(f"{name}-{repeated}" if repeated else name)
    return found


def dangling(pages: Iterable[Path], root: Path) -> list[str]:
    """Links to a file or heading that is not there, or to what is outside of root."""
    wrong = []
    for page in pages:
        for link in LINK.findall(CODE.sub("", page.read_text("utf-8"))):
            path, _, anchor = link.partition("#")
            if ":" in path:
                continue
            target = (page.parent / path).resolve() if path else page.resolve()
            is_there = target.exists() and target.is_relative_to(root.resolve())
            if not is_there or (anchor and anchor not in anchors(target)):
                wrong.append(f"{page.relative_to(root)}: {link}")
    return wrong
