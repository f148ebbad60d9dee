"""Tables as plain text, for terminals and for `print`."""

from collections.abc import Sequence


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: int = 0) -> list[str]:
    """Lines of a table; the first `numbers` columns are set to the right, the others to the left.

    >>> aligned(("adds", "feature"), [("+1.5", "a"), ("-10.25", "b")], numbers=1)
    ['  adds  feature', '  +1.5  a', '-10.25  b']
    """
    widths = [max(len(row[j]) for row in (head, *rows)) for j in range(len(head))]
    looks = [f"{'>' if j < numbers else '<'}{width}" for j, width in enumerate(widths)]
    return ["  ".join(map(format, row, looks)).rstrip() for row in (head, *rows)]


def columns(left: Sequence[tuple[str, float]], right: Sequence[tuple[str, float]]) -> list[str]:
    """Two lists of names with weights, side by side."""
    none = ("", 0.0)
    lines = []
    for k in range(max(len(left), len(right))):
        (one, w), (other, v) = (side[k] if k < len(side) else none for side in (left, right))
        first = f"{w:+9.4f}  {cut(one, 38):<38}" if one else " " * 49
        lines.append(f"{first} {v:+9.4f}  {cut(other, 60)}".rstrip() if other else first.rstrip())
    return lines


def cut(text: str, width: int) -> str:
    """Text on one line, without what could act on a terminal."""
    plain = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
    return plain if len(plain) <= width else plain[: width - 3] + "..."
