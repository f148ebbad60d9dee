"""A model and how it does, as one HTML page that needs nothing from outside; all data in it are text, never markup."""

import os
from collections.abc import Sequence

from structpred.report import sections
from structpred.report.contents import About, Contents
from structpred.storage.atomic import write_atomic
from structpred.text.markup import Html, join, tag

#: How pages look, from 320 px on: a rule for each kind of box of layout.py.
#: No dark mode: drawings have fixed colours on white, and browsers that darken pages by themselves are asked not to.
_STYLE = """
:root { color-scheme: only light; }
* { box-sizing: border-box; }
body { margin: 0; background: #f4f5f7; color: #1d2430; font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif;
  overflow-wrap: anywhere; }
main { max-width: 1240px; margin: 0 auto; padding: 24px 20px 60px; }
h1 { font-size: 24px; margin: 8px 0; }
h2 { font-size: 18px; margin: 0 0 12px; }
h3 { font-size: 14px; margin: 14px 0 4px; }
nav { display: flex; flex-wrap: wrap; gap: 4px 18px; }
nav a { color: #084890; }
section { background: #fff; border: 1px solid #e1e4ea; border-radius: 8px; padding: 18px 22px; margin-top: 18px; }
svg { display: block; }
svg.chart { width: 100%; max-width: 540px; height: auto; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 300px), 1fr)); gap: 14px 34px; }
/* What does not fit scrolls. A shade on a side shows that there is more: the first two layers scroll along and cover it. */
.wide { overflow-x: auto; max-width: 100%; padding-bottom: 2px;
  background: linear-gradient(to right, #fff 40%, #fff0) 0 0, linear-gradient(to left, #fff 40%, #fff0) 100% 0,
    linear-gradient(to right, #1d243040, #1d243000) 0 0, linear-gradient(to left, #1d243040, #1d243000) 100% 0;
  background-repeat: no-repeat; background-size: 30px 100%, 30px 100%, 12px 100%, 12px 100%;
  background-attachment: local, local, scroll, scroll; }
.wide > svg { mix-blend-mode: multiply; } /* the shade is seen through what is white in a drawing */
.wide::-webkit-scrollbar { height: 9px; } .wide > div { overflow: visible !important; } /* no box that scrolls in another */
.wide::-webkit-scrollbar-track { background: #eef0f3; border-radius: 5px; }
.wide::-webkit-scrollbar-thumb { background: #9aa3b2; border-radius: 5px; }
.wide:focus-visible { outline: 2px solid #084890; outline-offset: 2px; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: 14px 34px; }
.pair > * { min-width: 0; }
.row, .beside { display: flex; flex-wrap: wrap; align-items: flex-start; gap: 14px 34px; }
.row > *, .beside > * { min-width: 0; max-width: 100%; }
.beside > :last-child { flex: 1 1 340px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; overflow-wrap: normal; }
th, td { text-align: left; padding: 3px 14px 3px 0; vertical-align: top; border-bottom: 1px solid #eef0f3; }
th:last-child, td:last-child { padding-right: 0; }
th { font-weight: 600; color: #4a5362; }
td.number, th.number { text-align: right; white-space: nowrap; }
td.name { font-family: ui-monospace, monospace; font-size: 13px; overflow-wrap: anywhere; min-width: 7em; }
.prose td.name { font-family: inherit; font-size: inherit; }
.facts { columns: 2 400px; column-gap: 34px; margin: 0; }
.facts div { display: grid; grid-template-columns: 8.5em minmax(0, 1fr); gap: 12px; padding: 3px 0; break-inside: avoid;
  border-bottom: 1px solid #eef0f3; }
.facts dt { font-weight: 600; color: #4a5362; }
.facts dd { margin: 0; }
.callout { border-left: 4px solid #8a94a6; background: #f4f5f7; padding: 8px 12px; margin: 0 0 14px; align-self: start; }
.callout.proven { border-color: #009e73; background: #eefaf5; }
.callout p { margin: 0; }
.big { display: flex; flex-wrap: wrap; gap: 12px 32px; margin: 0 0 12px; }
.big b { display: block; font-size: 24px; font-weight: 600; }
.note { color: #5b6472; font-size: 13px; margin: 4px 0 10px; }
.sentence { margin: 12px 0 4px; line-height: 1.25; }
.where { color: #5b6472; font-size: 12px; margin-right: 8px; }
.token { display: inline-block; max-width: 100%; text-align: center; margin: 2px 5px 6px 0; padding: 1px 4px;
  vertical-align: top; }
.token .label { display: block; font-size: 11px; color: #5b6472; }
.token.wrong { border-radius: 4px; background: #fdecea; outline: 1px solid #c8102e; }
.token.wrong .label { color: #c8102e; font-weight: 600; }
.token .gold { display: block; font-size: 11px; color: #00704f; }
.sure { display: block; height: 3px; margin-top: 1px; border-radius: 2px; }
.words { display: flex; flex-wrap: wrap; gap: 18px 30px; }
.words > * { min-width: 0; }
.word table { border-spacing: 1px; border-collapse: separate; width: auto; }
.word td, .word th { padding: 1px 0; text-align: center; border: 0; min-width: 28px; font-size: 13px; }
.word th { font-weight: 400; color: #5b6472; font-size: 11px; text-align: right; padding-right: 6px; vertical-align: middle; }
.word td.wrong { color: #c8102e; font-weight: 700; outline: 1px solid #c8102e; outline-offset: -1px; }
.templates { display: flex; flex-wrap: wrap; gap: 10px 14px; }
.templates div { text-align: center; font-size: 13px; max-width: 100%; }
.templates span { display: block; }
.templates svg { margin: 0 auto; }
details { margin: 4px 0; }
summary { cursor: pointer; font-weight: 600; }
@media (max-width: 600px) {
  main { padding: 12px 8px 40px; }
  section { padding: 14px 12px; }
  svg.chart text { font-size: 14px; } /* it shrinks with the drawing */
  .facts div { grid-template-columns: minmax(0, 1fr); gap: 0; }
}
@media print { body { background: #fff; } section { break-inside: avoid; border: 0; } .wide { background: none; } }
"""


def write_page(contents: Contents, path: str | os.PathLike[str]) -> None:
    """Write the page as one UTF-8 file, atomically."""
    write_atomic(path, page(contents).encode())


def page(contents: Contents) -> str:
    """The page as text."""
    return model_page(
        contents,
        ("Scores", sections.scores(contents.evaluation, contents.data)),
        ("Probabilities of phrases", sections.reliability(contents.calibration)),
        ("Confusions", sections.confusions(contents.confusion)),
        ("Examples", sections.examples(contents.examples, contents.sureness)),
        ("Transitions", sections.transitions(contents.labels, contents.transitions, contents.start, contents.stop)),
        ("Strongest features", sections.weights(contents.weights) if not contents.templates else Html("")),
        ("Weights of the pixels", sections.templates(contents.templates)),
    )


def model_page(about: About, scores: tuple[str, Html], *others: tuple[str, Html]) -> str:
    """The page of a model: what it is, how it does on data, its training, and other parts, each with its heading."""
    parts = [("Model", sections.facts(about.facts)), scores, ("Training", sections.training(about.stages)), *others]
    return html_page(about.title, parts)


def html_page(title: str, parts: Sequence[tuple[str, Html]]) -> str:
    """A page of its own with a title and parts (heading, content); empty ones are left out."""
    shown = [(name, body) for name, body in parts if body]
    links = [tag("a", name, href=f"#part{k}") for k, (name, _) in enumerate(shown)]
    body = [tag("section", tag("h2", name), content, id=f"part{k}") for k, (name, content) in enumerate(shown)]
    head = join(
        Html('<meta charset="utf-8">'),
        # Nothing is loaded and nothing runs, even if a browser or an editor of the page should make a mistake.
        Html("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("title", title),
        tag("style", Html(_STYLE)),
    )
    main = tag("main", tag("h1", title), tag("nav", *links), *body)
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{main}</body></html>\n'
