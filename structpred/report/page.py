"""A model and how it does, as one HTML page that needs nothing from outside; all data in it are text, never markup."""

import os
from collections.abc import Sequence

from structpred.core.markup import Html, join, tag
from structpred.report import sections
from structpred.report.contents import Contents, Example, Weights
from structpred.storage.atomic import write_atomic

__all__ = ["Contents", "Example", "Weights", "html_page", "page", "write_page"]


def write_page(contents: Contents, path: str | os.PathLike[str]) -> None:
    """Write the page as one UTF-8 file, atomically."""
    write_atomic(path, page(contents).encode())


def page(contents: Contents) -> str:
    """The page as text."""
    parts = [
        ("Model", sections.facts(contents.facts, contents.certificate, contents.proven)),
        ("Training", sections.training(contents.history)),
        ("Scores", sections.scores(contents.evaluation, contents.data)),
        ("Confusions", sections.confusions(contents.confusion)),
        ("Examples", sections.examples(contents.examples, contents.sureness)),
        ("Transitions", sections.transitions(contents.labels, contents.transitions, contents.start, contents.stop)),
        ("Strongest features", sections.weights(contents.weights) if not contents.templates else Html("")),
        ("Weights of the pixels", sections.templates(contents.templates)),
    ]
    return html_page(contents.title, parts)


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


_STYLE = """
body { margin: 0; background: #f4f5f7; color: #1d2430; font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 24px 20px 60px; }
h1 { font-size: 24px; margin: 8px 0; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 0 0 12px; }
h3 { font-size: 14px; margin: 14px 0 4px; }
nav a { margin-right: 16px; color: #084890; }
section { background: #fff; border: 1px solid #e1e4ea; border-radius: 8px; padding: 18px 22px; margin-top: 18px; }
.wide { overflow-x: auto; }
.pair { display: flex; flex-wrap: wrap; gap: 18px; }
.pair > * { flex: 1 1 420px; min-width: 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 3px 14px 3px 0; vertical-align: top; border-bottom: 1px solid #eef0f3; }
th { font-weight: 600; color: #4a5362; }
td.number, th.number { text-align: right; white-space: nowrap; }
td.name { font-family: ui-monospace, monospace; font-size: 13px; overflow-wrap: anywhere; }
.callout { border-left: 4px solid #009e73; background: #eefaf5; padding: 8px 12px; margin: 0 0 14px; }
.callout.unproven { border-color: #e69f00; background: #fff8e8; }
.big { display: flex; flex-wrap: wrap; gap: 28px; margin: 0 0 12px; }
.big div b { display: block; font-size: 24px; font-weight: 600; }
.note { color: #5b6472; font-size: 13px; margin: 4px 0 10px; }
.sentence { margin: 12px 0 4px; line-height: 1.25; }
.where { color: #5b6472; font-size: 12px; margin-right: 8px; }
.token { display: inline-block; text-align: center; margin: 2px 5px 6px 0; padding: 1px 4px; vertical-align: top; }
.token.wrong { border-radius: 4px; }
.token .label { display: block; font-size: 11px; color: #5b6472; }
.token.wrong { background: #fdecea; outline: 1px solid #c8102e; }
.token.wrong .label { color: #c8102e; font-weight: 600; }
.token .gold { display: block; font-size: 11px; color: #00704f; }
.sure { display: block; height: 3px; margin-top: 1px; border-radius: 2px; }
.words { display: flex; flex-wrap: wrap; gap: 18px 30px; }
.word table { border-spacing: 1px; border-collapse: separate; }
.word td, .word th { padding: 1px 0; text-align: center; border: 0; min-width: 28px; font-size: 13px; }
.word th { font-weight: 400; color: #5b6472; font-size: 11px; text-align: right; padding-right: 6px; vertical-align: middle; }
.templates { display: flex; flex-wrap: wrap; gap: 10px 14px; }
.templates div { text-align: center; font-size: 13px; }
.templates svg, .templates span { display: block; }
.word td.wrong { color: #c8102e; font-weight: 700; outline: 1px solid #c8102e; }
details { margin: 4px 0; } summary { cursor: pointer; font-weight: 600; overflow-wrap: anywhere; }
@media print { body { background: #fff; } section { break-inside: avoid; border: 0; } }
"""
