"""A line chart as inline SVG."""

from __future__ import annotations

import math
from html import escape
from typing import Callable, NamedTuple, Sequence

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 900, 280, 70, 15, 12, 34
_MOST_POINTS = 1500


class Line(NamedTuple):
    """A line: its name, its class of style, and its points."""

    name: str
    style: str
    points: list[tuple[int, float]]


def chart(
    heading: str, title: str, lines: Sequence[Line], logarithmic: bool, steps: tuple[int, int] | None = None
) -> str:
    """Return a heading and the chart with a key below it, nothing without points.

    Args:
        heading: above the chart.
        title: for readers of screens.
        lines: of the chart.
        logarithmic: True for a logarithmic vertical axis; all values must then be positive.
        steps: the first and the last one of the horizontal axis; those of the points without it.
    """
    points = [point for line in lines for point in line.points]
    if not points:
        return ""
    scale: Callable[[float], float] = math.log10 if logarithmic else float
    left, right = steps or (min(x for x, _ in points), max(x for x, _ in points))
    low, high = min(scale(y) for _, y in points), max(scale(y) for _, y in points)
    if logarithmic:
        low, high = math.floor(low), math.ceil(high)  # whole powers of ten, four equal parts
        high += -(high - low) % 4
    if high == low:
        low, high = low - 0.5, high + 0.5

    def x_of(value: float) -> float:
        return _LEFT + (value - left) / max(right - left, 1) * (_WIDTH - _LEFT - _RIGHT)

    def y_of(value: float) -> float:
        return _HEIGHT - _BOTTOM - (scale(value) - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    parts = [f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">']
    for number in range(5):
        level = low + (high - low) * number / 4
        y = _HEIGHT - _BOTTOM - number / 4 * (_HEIGHT - _TOP - _BOTTOM)
        text = f"{10**level:.0e}" if logarithmic else f"{level:.3g}" if abs(level) >= 1e5 else f"{level:.4g}"
        parts.append(f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    for step, anchor in ((left, "start"), ((left + right) // 2, "middle"), (right, "end")):
        parts.append(f'<text x="{x_of(step):.1f}" y="{_HEIGHT - 12}" text-anchor="{anchor}">step {step}</text>')
    for line in lines:
        shown = line.points[:: max(1, len(line.points) // _MOST_POINTS)]
        if len(shown) == 1:
            shown = shown * 2
        path = " L".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in shown)
        if path:
            parts.append(f'<path class="{line.style}" d="M{path}"/>')
    key = " ".join(f'<span class="key {line.style}">&#9644; {escape(line.name)}</span>' for line in lines)
    return f"<h2>{escape(heading)}</h2>\n{''.join(parts)}</svg>\n<p>{key}</p>\n"
