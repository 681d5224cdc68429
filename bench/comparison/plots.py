"""One drawing of a match: times against sizes, and below that the ratio to each peer."""

from __future__ import annotations

import math
from html import escape

from results import OURS, cells, measure_in_words
from rounds import Match
from sizes import show_size
from table import names_in, show_time

WIDTH, LEFT, RIGHT = 860, 70, 190
TIMES_TOP, TIMES_HEIGHT = 50, 260
RATIOS_TOP, RATIOS_HEIGHT = 360, 150
HEIGHT = 560
COLORS = ("#c2410c", "#1d4ed8", "#60a5fa", "#0f766e", "#7c3aed", "#a78bfa", "#4b5563", "#059669",
          "#86efac", "#9ca3af")
RATIO_MIN, RATIO_MAX = 0.1, 2.0


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>'


def text(x: float, y: float, words: str, style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(words)}</text>'


class Scale:
    """Logarithmic, from values to places."""

    def __init__(self, low: float, high: float, begin: float, end: float) -> None:
        self.low, self.high = math.log10(low), math.log10(high)
        self.begin, self.end = begin, end

    def __call__(self, value: float) -> float:
        part = (math.log10(value) - self.low) / ((self.high - self.low) or 1)
        return self.begin + (self.end - self.begin) * min(max(part, 0), 1)


def curve(points: list[tuple[float, float]], color: str, is_ours: bool) -> list[str]:
    if not points:
        return []
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    width = 3 if is_ours else 1.5
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{width:.1f}" fill="{color}"/>' for x, y in points]
    return [f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width}"/>', *dots]


def draw_times(match: Match, xs: list[float], colors: dict[str, str]) -> list[str]:
    found = cells(match)
    values = [time for cell in found for time in cell.time.values()]
    y = Scale(min(values), max(values) * 1.1, TIMES_TOP + TIMES_HEIGHT, TIMES_TOP)
    parts = [text(LEFT, TIMES_TOP - 8, f"time, {measure_in_words(match)}")]
    decade = 10.0 ** math.floor(math.log10(min(values)))
    while decade <= max(values):
        if decade >= min(values):
            parts.append(line(LEFT, y(decade), WIDTH - RIGHT, y(decade), 'stroke="#e5e7eb"'))
            parts.append(text(LEFT - 6, y(decade) + 4, show_time(decade), 'text-anchor="end"'))
        decade *= 10
    for name, color in colors.items():
        points = [(x, y(cell.time[name])) for x, cell in zip(xs, found) if name in cell.time]
        parts += curve(points, color, name == OURS)
    return parts


def draw_ratios(match: Match, xs: list[float], colors: dict[str, str]) -> list[str]:
    y = Scale(RATIO_MIN, RATIO_MAX, RATIOS_TOP + RATIOS_HEIGHT, RATIOS_TOP)
    parts = [text(LEFT, RATIOS_TOP - 8, "Hocket's time through theirs: below 1 it is faster"),
             f'<rect x="{LEFT}" y="{RATIOS_TOP}" width="{WIDTH - RIGHT - LEFT}"'
             f' height="{y(1) - RATIOS_TOP:.1f}" fill="#fee2e2"/>']
    for value in (0.1, 0.2, 0.5, 1.0, 2.0):
        style = 'stroke="#111827"' if value == 1 else 'stroke="#e5e7eb"'
        parts.append(line(LEFT, y(value), WIDTH - RIGHT, y(value), style))
        parts.append(text(LEFT - 6, y(value) + 4, f"{value:g}", 'text-anchor="end"'))
    for name, color in colors.items():
        points = [(x, y(cell.ratios[name])) for x, cell in zip(xs, cells(match))
                  if name in cell.ratios]
        parts += curve(points, color, False)
    return parts


def draw(match: Match) -> str:
    found = cells(match)
    names = names_in(match, found)
    colors = dict(zip(names, COLORS))
    step = (WIDTH - RIGHT - LEFT - 40) / max(len(found) - 1, 1)
    xs = [LEFT + 20 + step * i for i in range(len(found))]
    parts = [text(LEFT, 24, f"{match.operation}, {match.place.ranks} ranks",
                  'font-size="16" font-weight="bold"')]
    if found:
        parts += draw_times(match, xs, colors) + draw_ratios(match, xs, colors)
    for x, cell in zip(xs, found):
        parts.append(text(x, RATIOS_TOP + RATIOS_HEIGHT + 18, show_size(cell.size),
                          'text-anchor="middle"'))
    for i, (name, color) in enumerate(colors.items()):
        top = TIMES_TOP + 18 * i
        parts.append(line(WIDTH - RIGHT + 14, top, WIDTH - RIGHT + 34, top,
                          f'stroke="{color}" stroke-width="{3 if name == OURS else 1.5}"'))
        parts.append(text(WIDTH - RIGHT + 40, top + 4, name))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', *parts, "</svg>", ""])
