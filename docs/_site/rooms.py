"""The picture of docs/architecture.md: the packages in rows, and what each may import, from the table of tests/test_layers.py."""

import html
import sys
from collections.abc import Mapping, Set
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "images" / "rooms.svg"
WIDTH, ROW, BOX, LETTER = 860, 64, 30, 7.5  # pixels: of the picture, a row, a box's height, a letter


def draw(may_import: Mapping[str, Set[str]]) -> str:
    """An SVG: a box for each package, above all that it may import; lines where no other line says it."""
    rows: dict[int, list[str]] = {}
    for name in may_import:
        rows.setdefault(_row(name, may_import), []).append(name)
    places: dict[str, tuple[float, int]] = {}
    parts = []
    for row in sorted(rows):  # from the ground up: each package stands above the middle of what it imports
        middles = {name: _middle([places[other][0] for other in _next_below(name, may_import)]) for name in rows[row]}
        for k, name in enumerate(sorted(rows[row], key=lambda name: (middles[name], name))):
            places[name] = ((k + 0.5) * WIDTH / len(rows[row]), (max(rows) - row) * ROW + 16)
    for name, (x, y) in places.items():
        for other in sorted(_next_below(name, may_import)):
            x_other, y_other = places[other]
            parts.append(f'<line x1="{x:.0f}" y1="{y + BOX}" x2="{x_other:.0f}" y2="{y_other}" stroke="#9aa5c4"/>')
    for name, (x, y) in places.items():
        text = name or "import structpred"
        wide = LETTER * len(text) + 20
        parts.append(
            f'<rect x="{x - wide / 2:.0f}" y="{y}" width="{wide:.0f}" height="{BOX}" rx="5" fill="#e8eaf6" stroke="#3f51b5"/>'
            f'<text x="{x:.0f}" y="{y + 20}" text-anchor="middle">{html.escape(text)}</text>'
        )
    height = (max(rows) + 1) * ROW
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="monospace" font-size="12.5">'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{height}" fill="white"/>', *parts, "</svg>\n"])


def _middle(numbers: list[float]) -> float:
    """The mean; the middle of the picture where there are none."""
    return sum(numbers) / len(numbers) if numbers else WIDTH / 2


def _row(name: str, may_import: Mapping[str, Set[str]]) -> int:
    """How many packages stand below one, each below the next."""
    return 1 + max((_row(other, may_import) for other in may_import[name]), default=-1)


def _next_below(name: str, may_import: Mapping[str, Set[str]]) -> set[str]:
    """What a package may import, without what one of these may import."""
    return {other for other in may_import[name] if not any(other in may_import[between] for between in may_import[name])}


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    from test_layers import MAY_IMPORT

    PICTURE.write_text(draw(MAY_IMPORT), encoding="utf-8")
