"""Single outputs on the report page: sentences with labels below their words, words as letter images, others as lists."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from structpred.report.contents import Example
from structpred.report.drawings import brightness, letter_images, sequential
from structpred.report.layout import data_table, scrolling, two_lists
from structpred.text.markup import Html, join, tag

_MOST_CANDIDATES = 4
_LEAST_SHARE = 0.01
_MOST_LABELS = 100


def sentence_view(example: Example, sureness: str) -> Html:
    """A sentence: each token with its label, the gold label where they differ, and a bar for how sure the decision was."""
    tokens = []
    for t, (token, gold, label) in enumerate(zip(example.tokens, example.gold, example.predicted, strict=True)):
        wrong = gold != label
        below = [tag("span", label, class_="label")]
        if len(example.sure):
            sure = example.sure[t]
            style = f"width:{max(4, 100 * _share(sure, sureness)):.0f}%;background:#5b8fc7"
            below.append(tag("span", class_="sure", style=style, title=f"{sureness} {sure:.3g}"))
        if wrong:
            below.append(tag("span", gold, class_="gold"))
        # <bdi>: a word that is written from right to left changes the direction of nothing around it.
        tokens.append(tag("span", tag("bdi", token), *below, class_="token wrong" if wrong else "token"))
    return tag("div", tag("span", example.where, class_="where"), *tokens, class_="sentence")


def word_view(example: Example, sureness: str) -> Html:
    """A word: letter images, the truth, what was read, and for each letter the likeliest ones or the score gap."""
    assert example.images is not None
    pictures = [tag("td", drawing) for drawing in letter_images(example.images)]
    truth = [tag("td", letter) for letter in example.gold]
    read = [
        tag("td", letter, class_="wrong" if letter != gold else None)
        for letter, gold in zip(example.predicted, example.gold, strict=True)
    ]
    rows = [tag("tr", tag("th", ""), *pictures), tag("tr", tag("th", "true"), *truth), tag("tr", tag("th", "read"), *read)]
    if example.candidates:
        # row k: the k-th likeliest letter at each position, as dark as it is probable; what is below one per cent is left out
        for k in range(_MOST_CANDIDATES):
            cells = []
            for candidates in example.candidates:
                label, share = candidates[k] if k < len(candidates) else ("", 0.0)
                shown = share >= _LEAST_SHARE
                cells.append(_shaded(label, share, f"{label}: {100 * share:.1f} %") if shown else tag("td", ""))
            if k == 0 or any(k < len(c) and c[k][1] >= _LEAST_SHARE for c in example.candidates):
                rows.append(tag("tr", tag("th", f"{k + 1}."), *cells))
    elif len(example.sure):
        cells = [
            _shaded(f"{value:.1f}" if math.isfinite(value) else "\N{INFINITY}", _share(value, sureness)) for value in example.sure
        ]
        rows.append(tag("tr", tag("th", "gap"), *cells))
    return tag("div", scrolling(tag("table", *rows), "letters"), tag("span", example.where, class_="where"), class_="word")


def _shaded(words: str, share: float, title: str | None = None) -> Html:
    colour = sequential(share, 0.7)
    ink = "#ffffff" if brightness(colour) < 0.55 else "#222222"
    return tag("td", words, style=f"background:{colour};color:{ink}", title=title)


def _share(value: float, sureness: str) -> float:
    """A length in [0, 1]: a probability as it is; a gap of 1, the margin that training asks for, as one half."""
    if not math.isfinite(value):
        return 1.0
    return value if sureness == "probability" else 1 - 2.0**-value


@dataclass(frozen=True)
class Output:
    """A wrong output. where: its place in the data. gold, predicted: labels. n_wrong: how many of them differ.

    excess: by how much the score of what is predicted is above that of the truth. why: what the features add to that difference,
    (name, what it adds), the strongest first.
    """

    where: str
    gold: Sequence[str]
    predicted: Sequence[str]
    n_wrong: int
    excess: float
    why: Sequence[tuple[str, float]]


def worst_outputs(outputs: Sequence[Output]) -> Html:
    """Each output folded up: its labels, true and predicted, and what spoke for and against the prediction."""
    parts = []
    for k, one in enumerate(outputs):
        of, sides = max(len(one.gold), len(one.predicted)), [[pair for pair in one.why if sign * pair[1] > 0] for sign in (1, -1)]
        heading = f"{one.where}: {one.n_wrong} of {of} labels wrong, preferred to the truth by {one.excess:.4g}"
        rows = [["true", _shown(one.gold)], ["predicted", _shown(one.predicted)]]
        labels = data_table(["", "labels"], rows, numbers=[False, False], name="labels")
        why = two_lists(("for the prediction", sides[0]), ("for the truth", sides[1]), figure="adds")
        parts.append(tag("details", tag("summary", heading), labels, why, open="" if k == 0 else None))
    note = "Labels as the oracle returns them. Below: what features add to the score of the prediction, less that of the truth."
    return join(tag("p", note, class_="note"), *parts) if parts else Html("")


def _shown(labels: Sequence[str]) -> str:
    more = "" if len(labels) <= _MOST_LABELS else f" and {len(labels) - _MOST_LABELS} more"
    return " ".join(labels[:_MOST_LABELS]) + more
