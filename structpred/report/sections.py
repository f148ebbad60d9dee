"""The parts of the report page; each takes plain figures and gives markup, empty where there is nothing to show."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.markup import Html, join, tag, text
from structpred.evaluation import Evaluation
from structpred.evaluation.chunks import ChunkCounts
from structpred.report.contents import Example, Weights
from structpred.report.drawings import Curve, chart, diverging, heat_map, sequential, weight_image
from structpred.report.example_views import sentence_view, word_view
from structpred.report.figures import BLUE, GREEN, ORANGE

Floats = npt.NDArray[np.float64]
_NOTHING = Html("")
_MOST_LABELS = 60
_MOST_CONFUSIONS = 12
_MINUS = "\N{MINUS SIGN}"
_GAP = "how much better this labelling is than the best one with another label there. It is not a probability."
_SURENESS = {  # by what is known of each decision, and whether the tokens are pictures
    ("probability", False): "The bar under a label is its probability.",
    ("score gap", False): f"The bar under a label is its score gap: {_GAP}",
    ("probability", True): "Below each letter: the true one, the one read, and the likeliest ones, the darker the more probable.",
    ("score gap", True): f"Below each letter: the true one, the one read, and the score gap: {_GAP}",
}


def facts(pairs: Sequence[tuple[str, str]], certificate: str, proven: bool) -> Html:
    """The certificate, and what the model file says of itself."""
    rows = [tag("tr", tag("th", name), tag("td", words)) for name, words in pairs]
    callout = tag("p", tag("b", "Certificate: "), certificate, class_="callout" if proven else "callout unproven")
    return join(callout, tag("table", *rows))


def training(history: Sequence[Mapping[str, Any]]) -> Html:
    """Primal and dual against time, and the gap as a share of the primal against passes; held-out scores if there are any."""
    charts = []
    for keys, x, below, beside, log in (
        (("primal", "dual"), "seconds", "time (s)", "objective", False),
        (("share",), "passes", "passes over the data", "gap, % of the primal", True),
        (("dev_score",), "passes", "passes over the data", "held-out score, %", False),
    ):
        curves = []
        for key, colour in zip(keys, (ORANGE, BLUE) if len(keys) > 1 else (GREEN,), strict=True):
            points = [(float(row[x]), v) for row in history if row.get(x) is not None and (v := _figure(row, key)) is not None]
            points = [(a, b) for a, b in points if b > 0 or not log]
            if len(points) > 1:
                curves.append(Curve(key, [a for a, _ in points], [b for _, b in points], colour, key == "dual"))
        mark = (1.0, "1 %") if log else None
        if curves:
            charts.append(
                tag(
                    "div",
                    chart(_cropped(curves), below, beside, log=log, mark=mark, from_zero="dev_score" not in keys),
                    class_="wide",
                )
            )
    if not charts:
        words = "There is no curve to draw: objectives were computed fewer than two times (see check_every)."
        return tag("p", words, class_="note") if history else _NOTHING
    return tag("div", *charts, class_="pair")


def _figure(row: Mapping[str, Any], key: str) -> float | None:
    if key == "share":
        gap, primal = row.get("gap"), row.get("primal")
        return None if gap is None or not primal else 100 * float(gap) / abs(float(primal))
    value = row.get(key)
    return None if value is None else (100 if key == "dev_score" else 1) * float(value)


def _cropped(curves: list[Curve]) -> list[Curve]:
    """Without early values so large that they would press the rest flat: those above three times the last of the first curve."""
    limit = 3 * abs(curves[0].y[-1])
    if curves[0].name != "primal" or max(curves[0].y) <= limit:
        return curves
    kept = []
    for c in curves:
        points = [(x, y) for x, y in zip(c.x, c.y, strict=True) if abs(y) <= limit]
        kept.append(Curve(c.name, [x for x, _ in points], [y for _, y in points], c.colour, c.dashed) if points else c)
    return kept


def scores(result: "Evaluation | None", data: str | None) -> Html:
    """Accuracies, and phrase scores by type."""
    if result is None:
        return _NOTHING
    figures = [("tokens right", result.token_accuracy), ("sequences wholly right", result.sequence_accuracy)]
    if result.f1 is not None:
        figures.append(("F1 of phrases", result.f1))
    big = [tag("div", tag("b", _percent(share)), name) for name, share in figures]
    size = f"{data}: {result.n_sequences} sequences, {result.n_tokens} tokens, {result.n_errors} of them wrong."
    parts = [tag("p", size, class_="note"), tag("div", *big, class_="big")]
    if result.f1 is not None and result.f1_strict is not None:
        total = ChunkCounts(result.n_gold_phrases, result.n_predicted_phrases, result.n_correct_phrases)
        heads = [tag("th", "phrases")] + [
            tag("th", h, class_="number") for h in ("gold", "found", "correct", "precision", "recall", "F1")
        ]
        rows = [_counts(name or "(no type)", counts) for name, counts in result.per_type.items()]
        parts.append(tag("table", tag("tr", *heads), *rows, _counts("all", total)))
        note = f"Phrases as {result.scheme} counts them; F1 under strict {result.strict_scheme}: {_percent(result.f1_strict)}."
        parts.append(tag("p", note, class_="note"))
    return join(*parts)


def _counts(name: str, counts: ChunkCounts) -> Html:
    cells = [str(counts.n_gold), str(counts.n_predicted), str(counts.n_correct)]
    cells += [_percent(share) for share in (counts.precision, counts.recall, counts.f1)]
    return tag("tr", tag("td", name), *(tag("td", cell, class_="number") for cell in cells))


def confusions(table: tuple[Sequence[str], npt.NDArray[np.int64]] | None) -> Html:
    """The confusion matrix as a heat map, and the most frequent confusions in words."""
    if table is None:
        return _NOTHING
    labels, counts = [str(label) for label in table[0]], np.asarray(table[1])
    wrong = counts - np.diag(np.diag(counts))
    worst = sorted(((int(n), i, j) for (i, j), n in np.ndenumerate(wrong) if n), reverse=True)[:_MOST_CONFUSIONS]
    total = max(int(wrong.sum()), 1)
    rows = [
        tag(
            "tr",
            tag("td", labels[i], class_="name"),
            tag("td", labels[j], class_="name"),
            _right(f"{n}"),
            _right(_percent(n / total)),
        )
        for n, i, j in worst
    ]
    heads = [tag("th", "gold"), tag("th", "predicted"), _right("tokens", "th"), _right("of all errors", "th")]
    listed = tag("div", tag("h3", "Most frequent"), tag("table", tag("tr", *heads), *rows)) if rows else _NOTHING
    chosen = _most_confused(wrong, len(labels))
    note = "" if len(chosen) == len(labels) else f" Shown are the {len(chosen)} of {len(labels)} labels with most errors."
    words = f"Colour: share of the gold label's tokens. At the end of a row: the share that is right.{note}"
    return join(tag("p", words, class_="note"), tag("div", _confusion_map(labels, counts, chosen), class_="wide"), listed)


def _most_confused(wrong: npt.NDArray[Any], n: int) -> list[int]:
    if n <= _MOST_LABELS:
        return list(range(n))
    errors = wrong.sum(0) + wrong.sum(1)
    return sorted(np.argsort(-errors, kind="stable")[:_MOST_LABELS].tolist())


def _confusion_map(labels: list[str], counts: npt.NDArray[Any], chosen: list[int]) -> Html:
    sums = counts.sum(axis=1)
    share = counts / np.maximum(sums, 1)[:, None]
    colours = [[sequential(share[i, j]) for j in chosen] for i in chosen]
    numbers = [[_brief(int(counts[i, j])) for j in chosen] for i in chosen]
    titles = [[f"{labels[i]} taken for {labels[j]}: {counts[i, j]} ({_percent(share[i, j])})" for j in chosen] for i in chosen]
    ends = [_percent(share[i, i]) if sums[i] else "\N{EN DASH}" for i in chosen]
    names = [labels[i] for i in chosen]
    return heat_map(names, names, colours, numbers, titles, beside="gold", above="predicted", ends=ends)


def transitions(labels: Sequence[str], weights: Floats, start: Floats, stop: Floats) -> Html:
    """Transition weights as a heat map, with the start above the first row and the stop next to the last column."""
    if not len(labels):
        return _NOTHING
    strength = np.abs(np.where(np.isfinite(weights), weights, 0)).sum(0) + np.abs(np.where(np.isfinite(weights), weights, 0)).sum(
        1
    )
    chosen = sorted(np.argsort(-strength, kind="stable")[:_MOST_LABELS].tolist())
    names = [str(labels[k]) for k in chosen]
    table = np.vstack([np.append(start[chosen], np.nan), np.column_stack([weights[np.ix_(chosen, chosen)], stop[chosen]])])
    scale = float(np.abs(table[np.isfinite(table)]).max(initial=0)) or 1.0
    rows, columns = ["(start)", *names], [*names, "(stop)"]
    colours = [[_transition_colour(w, scale) for w in row] for row in table.tolist()]
    numbers = [[_signed(w) for w in row] for row in table.tolist()]
    titles = [[f"{a} \N{RIGHTWARDS ARROW} {b}: {_long(table[i, j])}" for j, b in enumerate(columns)] for i, a in enumerate(rows)]
    picture = heat_map(rows, columns, colours, numbers, titles, beside="label before", above="label after")
    dark = " Dark cells are forbidden." if np.isneginf(table).any() else ""
    few = (
        "" if len(chosen) == len(labels) else f" Shown are the {len(chosen)} of {len(labels)} labels with the strongest weights."
    )
    return join(
        tag("p", f"Blue raises the score of a sequence, red lowers it.{dark}{few}", class_="note"),
        tag("div", picture, class_="wide"),
    )


def _transition_colour(weight: float, scale: float) -> str:
    if np.isnan(weight):
        return "#ffffff"
    return "#444444" if np.isneginf(weight) else diverging(weight / scale)


def _long(weight: float) -> str:
    return "forbidden" if np.isneginf(weight) else "" if np.isnan(weight) else f"{weight:+.4f}".replace("-", _MINUS)


def weights(tables: "Sequence[Weights]") -> Html:
    """For each label its strongest features, folded up."""
    parts = []
    for k, table in enumerate(tables):
        sides = []
        for heading, side in (("for it", table.positive), ("against it", table.negative)):
            rows = [tag("tr", tag("td", name, class_="name"), _right(_long(w))) for name, w in side]
            sides.append(tag("div", tag("h3", heading), tag("table", *rows)))
        parts.append(tag("details", tag("summary", table.label), tag("div", *sides, class_="pair"), open="" if k == 0 else None))
    return join(*parts)


def templates(pictures: "Sequence[tuple[str, Floats]]") -> Html:
    """For each label the weights of the pixels, as a picture."""
    if not pictures:
        return _NOTHING
    scale = max(float(np.abs(weights).max(initial=0)) for _, weights in pictures) or 1.0
    drawn = [tag("div", weight_image(weights / scale), tag("span", label)) for label, weights in pictures]
    note = tag("p", "Blue: ink here supports the label; red: opposes it.", class_="note")
    return join(note, tag("div", *drawn, class_="templates"))


def examples(found: "Sequence[Example]", sureness: str) -> Html:
    """Sequences with their errors marked."""
    if not found:
        return _NOTHING
    parts = []
    if words := [word_view(e, sureness) for e in found if e.images is not None]:
        parts += [tag("p", _SURENESS[sureness, True], class_="note"), tag("div", *words, class_="words")]
    if sentences := [sentence_view(e, sureness) for e in found if e.images is None]:
        note = f"Wrong labels are red, with the gold label in green below. {_SURENESS[sureness, False]}"
        parts += [tag("p", note, class_="note"), *sentences]
    return join(*parts)


def _right(words: str, name: str = "td") -> Html:
    return tag(name, text(words), class_="number")


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _signed(weight: float) -> str:
    if not np.isfinite(weight):
        return ""
    words = f"{weight:.1f}"
    return "0.0" if words == "-0.0" else words.replace("-", _MINUS)


def _brief(n: int) -> str:
    """At most four characters; nothing for zero."""
    if n < 1000:
        return str(n) if n else ""
    return f"{n / 1000:.1f}k" if n < 9950 else f"{n / 1000:.0f}k"
