"""HTML and SVG as text in which nothing that is data can become markup."""

import html
import json
import unicodedata
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

# Zero-width (non-)joiners are part of how some scripts are written; all else that is not seen is shown by its number.
_SEEN = ("\u200c", "\u200d", "\n")
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


class Html(str):
    """Markup: what `tag` and `text` return. Any other string is data and is escaped wherever it is put into markup."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Itself: notebooks show the picture or the table, not its source."""
        return scrolling(self)


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

    The others are set to the left, explicitly, because notebooks set all to the right.

    >>> table(["a"], [["<"]], numbers=1)
    '<table><tr><th class="number">a</th></tr><tr><td class="number">&lt;</td></tr></table>'
    """
    right = [k < numbers for k in range(len(head))] if isinstance(numbers, int) else numbers
    looks = [{"class_": "number"} if figure else {"class_": "name", "style": "text-align:left"} for figure in right]
    lines = [tag("tr", *(tag("td", cell, **look) for cell, look in zip(row, looks, strict=True))) for row in rows]
    return tag("table", tag("tr", *(tag("th", cell, **look) for cell, look in zip(head, looks, strict=True))), *lines)


def preformatted(data: str) -> Html:
    """Plain text, such as a table of aligned columns, as it is; notebooks by themselves set it in letters of all widths."""
    return tag("pre", data, style="font-family:monospace;line-height:1.3;white-space:pre;overflow-x:auto")


class Shown:
    """A dataclass of a result, with a `table` in plain text, which is what `print` and notebooks show."""

    def table(self) -> str:
        """The result as plain text."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)  # type: ignore[call-overload]

    def to_json(self) -> str:
        """`to_dict` as one line of JSON."""
        return json.dumps(self.to_dict())

    def __str__(self) -> str:
        """The table."""
        return self.table()

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        return preformatted(self.table())


def scrolling(*parts: Any) -> Html:
    """Parts one after the other, for a notebook: what is wider than the page scrolls and is not cut."""
    return tag("div", *parts, style="max-width:100%;overflow-x:auto")


def _number(value: Any) -> Any:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value
