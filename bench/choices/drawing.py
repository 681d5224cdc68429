"""The two questions as fields of color: sizes below each other, hosts side by side."""

from __future__ import annotations

from collections.abc import Callable

from measured import WITH, WITHOUT, Cell
from plots import text
from sizes import show_size

BOX_WIDTH, BOX_HEIGHT, LEFT, TOP, GAP = 46, 22, 70, 64, 40


def color(badness: float) -> str:
    """From green to red, where 1 is what must not be passed."""
    part = min(max(badness, 0), 2) / 2
    red, green = round(134 + 110 * min(2 * part, 1)), round(239 - 150 * max(2 * part - 1, 0))
    return f"rgb({red},{green},150)"


def field(cells: list[Cell], left: float, title: str, show: Callable[[Cell], str],
          badness: Callable[[Cell], float]) -> list[str]:
    hosts = sorted({cell.ranks for cell in cells})
    sizes = sorted({cell.size for cell in cells})
    parts = [text(left, TOP - 34, title, 'font-weight="bold"')]
    for i, count in enumerate(hosts):
        parts.append(text(left + (i + 0.5) * BOX_WIDTH, TOP - 8, str(count), 'text-anchor="middle"'))
    for cell in cells:
        x = left + hosts.index(cell.ranks) * BOX_WIDTH
        y = TOP + sizes.index(cell.size) * BOX_HEIGHT
        parts.append(f'<rect x="{x}" y="{y}" width="{BOX_WIDTH - 2}" height="{BOX_HEIGHT - 2}"'
                     f' fill="{color(badness(cell))}"/>')
        parts.append(text(x + BOX_WIDTH / 2 - 1, y + BOX_HEIGHT / 2 + 3, show(cell),
                          'text-anchor="middle"'))
    return parts


def draw(cells: list[Cell], good: float, close: float) -> str:
    sizes = sorted({cell.size for cell in cells})
    width = len({cell.ranks for cell in cells}) * BOX_WIDTH + GAP
    parts = []
    for i, size in enumerate(sizes):
        parts.append(text(LEFT - 8, TOP + (i + 0.5) * BOX_HEIGHT + 3, show_size(size),
                          'text-anchor="end"'))
    for i, who in enumerate((WITHOUT, WITH)):
        parts += field(cells, LEFT + i * width, f"regret {who}",
                       lambda cell, who=who: f"{round(100 * cell.regret(who))} %",
                       lambda cell, who=who: cell.regret(who) / good)
    parts += field(cells, LEFT + 2 * width, "foretold through measured",
                   lambda cell: f"{cell.foretold:.2f}",
                   lambda cell: abs(cell.foretold - 1) / close)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + 3 * width}'
        f' {TOP + len(sizes) * BOX_HEIGHT + 20}" font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>", ""])
