"""HTML and SVG as text in which nothing that is data can become markup."""

import html
import unicodedata
from collections.abc import Sequence
from typing import Any

# Zero-width (non-)joiners are part of how some scripts are written; all else that is not seen is shown by its number.
_SEEN = ("\u200c", "\u200d", "\n")
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


class Html(str):
    """Markup: what `tag` and `text` return. Any other string is data and is escaped wherever it is put into markup."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Itself: notebooks show the picture or the table, not its source."""
        return str(self)


def visible(data: Any) -> str:
    """Data as text in which controls, direction marks and other invisible characters are shown as U+202E and the like.

    >>> visible("a\\u202eb")
    'a\u27e8U+202E\u27e9b'
    """
    plain = str(data)
    if plain.isascii() and plain.isprintable():
        return plain
    return "".join(
        c
        if c in _SEEN or unicodedata.category(c) not in _UNSEEN
        else f"\N{MATHEMATICAL LEFT ANGLE BRACKET}U+{ord(c):04X}\N{MATHEMATICAL RIGHT ANGLE BRACKET}"
        for c in plain
    )


def text(data: Any) -> Html:
    """Data made safe: as the content of an element and inside quotes; markup stays as it is.

    >>> text("<b>"), text(Html("<b>"))
    ('&lt;b&gt;', '<b>')
    """
    return data if isinstance(data, Html) else Html(html.escape(visible(data), quote=True))


def join(*parts: Any) -> Html:
    """Parts one after the other, data escaped."""
    return Html("".join(map(text, parts)))


def tag(name: str, *children: Any, **attributes: Any) -> Html:
    """An element. In the names of attributes _ stands for -, one at the end is dropped; an attribute that is None is left out.

    Numbers are written with at most two decimals. Names are ours, never data.

    >>> tag("p", "1 < 2 ", tag("b", "&"), class_="note", data_x=None, width=1.0)
    '<p class="note" width="1">1 &lt; 2 <b>&amp;</b></p>'
    """
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    written = "".join(f' {key}="{text(_number(value))}"' for key, value in given.items())
    return Html(f"<{name}{written}>{join(*children)}</{name}>")


def table(head: Sequence[Any], rows: Sequence[Sequence[Any]], *, numbers: int | Sequence[bool] = 0) -> Html:
    """A table; the first `numbers` columns, or those that are True, hold figures, which are set to the right.

    >>> table(["a"], [["<"]], numbers=1)
    '<table><tr><th class="number">a</th></tr><tr><td class="number">&lt;</td></tr></table>'
    """
    right = [k < numbers for k in range(len(head))] if isinstance(numbers, int) else numbers
    kinds = ["number" if figure else "name" for figure in right]
    lines = [tag("tr", *(tag("td", cell, class_=kind) for cell, kind in zip(row, kinds, strict=True))) for row in rows]
    return tag("table", tag("tr", *(tag("th", cell, class_=kind) for cell, kind in zip(head, kinds, strict=True))), *lines)


def preformatted(data: str) -> Html:
    """Plain text, such as a table of aligned columns, as it is."""
    return tag("pre", data)


def _number(value: Any) -> Any:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value
