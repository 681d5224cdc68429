#!/usr/bin/env python3
"""No link from a page leads nowhere. usage: links_test.py FOLDER-OF-THE-SOURCES"""

from __future__ import annotations

import sys
from pathlib import Path

from links import dangling


def pages(root: Path) -> list[Path]:
    return [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "transports").rglob("*.md")]


def main() -> None:
    root = Path(sys.argv[1])
    found = pages(root)
    if wrong := dangling(found, root):
        sys.exit("links that lead nowhere:\n" + "\n".join(wrong))
    print(f"the links of {len(found)} pages lead somewhere")


if __name__ == "__main__":
    main()
