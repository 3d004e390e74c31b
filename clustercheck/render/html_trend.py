"""How a value went from night to night, as a line to be drawn."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from clustercheck.changes import Point

# The units of the drawing; the page gives it its size.
WIDTH, HEIGHT = 120, 24

# More points than so many are drawn by the lowest and highest of those that stand together.
POINTS = 60


@dataclass(frozen=True)
class Trend:
    """A line. path: for SVG; x, y: its last point; told: the same in words."""

    path: str
    x: int
    y: int
    told: str


def trend(points: Sequence[Point], most: int = POINTS) -> Trend | None:
    """The line through the points that have the last one's unit; None where it would say nothing:
    with one point only, or where all are equal."""
    unit = points[-1][2] if points else ""
    kept = [(when, number) for when, number, of in points if of == unit and math.isfinite(number)]
    numbers = [number for _, number in kept]
    if len(kept) < 2 or min(numbers) == max(numbers):
        return None
    drawn = _thinned(kept, most)
    low, high = min(numbers), max(numbers)
    first, whole = kept[0][0], (kept[-1][0] - kept[0][0]).total_seconds()
    places = [
        (
            round(WIDTH * (when - first).total_seconds() / whole) if whole else 0,
            round(HEIGHT * (high - number) / (high - low)),
        )
        for when, number in drawn
    ]
    unit = f" {unit}" if unit else ""
    last = numbers[-1]
    told = f"{_short(last)}{unit}; in {len(kept)} runs {_short(low)} to {_short(high)}{unit}"
    return Trend(_path(places), *places[-1], told)


def _short(number: float) -> str:
    """Three digits that count, and large numbers whole: "0.0123", "4.07", "1,234"."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def _thinned(points: list[tuple[datetime, float]], most: int) -> list[tuple[datetime, float]]:
    if len(points) <= most:
        return points
    size = math.ceil(2 * (len(points) - 1) / most)
    found = []
    for start in range(0, len(points) - 1, size):
        part = points[start : min(start + size, len(points) - 1)]
        ends = {min(part, key=lambda p: p[1]), max(part, key=lambda p: p[1])}
        found += sorted(ends)
    return [*found, points[-1]]


def _path(places: list[tuple[int, int]]) -> str:
    """In steps from point to point, which takes half the room of whole places."""
    x, y = places[0]
    words = [f"M{x} {y}l"]
    for to_x, to_y in places[1:]:
        words.append(f"{to_x - x} {to_y - y} ")
        x, y = to_x, to_y
    return "".join(words).rstrip().replace(" -", "-")
