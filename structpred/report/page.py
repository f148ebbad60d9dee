"""A model and how it does, as one HTML page that needs nothing from outside; all data in it are text, never markup."""

import os
from collections.abc import Sequence
from importlib.resources import files

from structpred.report import sections
from structpred.report.contents import About, Contents
from structpred.storage.atomic import write_atomic
from structpred.text.markup import Html, join, tag


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
        tag("style", Html(files(__package__).joinpath("page.css").read_text(encoding="utf-8"))),
    )
    main = tag("main", tag("h1", title), tag("nav", *links), *body)
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{main}</body></html>\n'
