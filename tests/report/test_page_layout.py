"""Report pages in a real browser, from the width of a telephone on: nothing is cut, and what scrolls shows it."""

from pathlib import Path

import pytest
from browser import browser, needs_browser, overflowing, silent_boxes
from page_contents import LONG, NASTY, PAGES

from structpred.models import ChainLabeler
from structpred.report.page import html_page
from structpred.text.markup import tag

pytestmark = [needs_browser, pytest.mark.slow]


@pytest.mark.parametrize("kind", PAGES)
def test_nothing_is_cut_at_any_width(kind: str, tmp_path: Path) -> None:
    """At 320, 768 and 1280 px the page fits its window, whatever the data are: long and hostile texts break or scroll."""
    path = tmp_path / f"{kind}.html"
    path.write_text(PAGES[kind]([*LONG, *NASTY]), encoding="utf-8")
    for width in (320, 768, 1280):
        assert overflowing(path, width) == [], width
        assert silent_boxes(path, width) == [], width


def test_a_phone_shows_the_features_of_an_explanation(tmp_path: Path) -> None:
    """At 375 px what adds to a score stands beside how much it adds; the rest scrolls, which a shade shows."""
    model = ChainLabeler(max_iter=3).fit([[{"word": "a"}, {"word": "b"}]] * 4, [["FIRST", "SECOND"]] * 4)
    why = model.explain([{"word": "a"}, {"word": "b"}], against="runner-up")
    box = tag("div", why.html(), class_="wide", tabindex=0)
    (tmp_path / "a.html").write_text(html_page("Why", [("Explanation", box)]), encoding="utf-8")
    assert overflowing(tmp_path / "a.html", 375) == silent_boxes(tmp_path / "a.html", 375) == []
    code = "[...document.querySelectorAll('th')].map(th => [th.textContent, th.getBoundingClientRect().right])"
    right = dict(browser().evaluate_at(375, code))
    assert list(right)[:2] == ["adds", "feature"]
    assert right["feature"] < 375 < right["weight"]


@pytest.mark.parametrize(
    ("body", "offence"),
    [
        ('<p style="width: 400px">wide</p>', "the page is"),
        ('<p style="overflow: hidden; width: 50px; white-space: nowrap">a text that does not fit</p>', "a text"),
        ('<section style="width: 200px"><b style="display: block; width: 250px">b</b></section>', "50 px wider than its parent"),
        ('<svg width="50" height="20"><text y="15">a long line of words</text></svg>', "cut off by its drawing"),
        ('<details><summary>s</summary><p style="width: 400px">folded</p></details>', "outside the window"),
        ('<div style="overflow: auto"><p style="overflow: hidden; width: 90px"><i>' + "w" * 40 + "</i></p></div>", "wider than"),
    ],
)
def test_offenders_are_found(body: str, offence: str, tmp_path: Path) -> None:
    """Each way to lose something is found by the measurement itself."""
    (tmp_path / "a.html").write_text(f"<!DOCTYPE html><body>{body}", encoding="utf-8")
    assert any(offence in line for line in overflowing(tmp_path / "a.html", 320))


def test_each_width_is_measured(tmp_path: Path) -> None:
    """A page that only a narrow and a wide window cut, in whichever order the windows come."""
    style = "<style>p { width: 400px } @media (min-width: 1000px) { p { width: 1400px } }</style>"
    (tmp_path / "a.html").write_text(f"<!DOCTYPE html><body>{style}<p>wide", encoding="utf-8")
    at = {width: overflowing(tmp_path / "a.html", width) for width in (320, 900, 1280)}
    assert at[320]
    assert not at[900]
    assert at[1280]
    for widths in ((320, 900, 1280), (1280, 900, 320)):
        assert overflowing(tmp_path / "a.html", *widths) == [line for width in widths for line in at[width]]


def test_boxes_that_scroll_are_no_offence_but_must_show_it(tmp_path: Path) -> None:
    """What is reached by scrolling is not cut; a box without a bar, a shade or the keyboard is named."""
    style = "<style>::-webkit-scrollbar { display: none }</style>"
    box = '<div style="overflow-x: auto" tabindex="0"><p style="width: 900px">wide</p></div>'
    (tmp_path / "a.html").write_text(f"<!DOCTYPE html><body>{style}{box}", encoding="utf-8")
    assert overflowing(tmp_path / "a.html", 320) == []
    assert silent_boxes(tmp_path / "a.html", 320) == ["div: nothing shows that it scrolls"]
