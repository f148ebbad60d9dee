"""The parts of the report page; each takes plain figures and gives markup, empty where there is nothing to show."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from structpred.core.types import AnyArray, Floats, Integers
from structpred.evaluation import Calibration, Evaluation
from structpred.evaluation.calibration import COLUMNS
from structpred.evaluation.chunks import ChunkCounts
from structpred.report.contents import Example, Stage, Weights
from structpred.report.drawings import Curve, chart, diverging, heat_map, sequential, weight_image
from structpred.report.example_views import sentence_view, word_view
from structpred.report.figures import BLUE, GREEN, GREY, ORANGE, brief, signed, written
from structpred.report.layout import beside, columns, counts_table, data_table, headline, percent, scrolling, titled, two_lists
from structpred.text.markup import Html, join, tag

_NOTHING = Html("")
_MOST_LABELS = 60
_MOST_CONFUSIONS = 12
_NEAR = 0.1  # a larger gap, as a share of the primal, is a proof, too, but of little
#: from the names of row and column, the count and the share of a cell to a few words
Tip = Callable[[str, str, int, float], str]
_GAP = "how much better this labelling is than the best one with another label there. It is not a probability."
_SURENESS = {  # by what is known of each decision, and whether the tokens are pictures
    ("probability", False): "The bar under a label is its probability.",
    ("score gap", False): f"The bar under a label is its score gap: {_GAP}",
    ("probability", True): "Below each letter: the true one, the one read, and the likeliest ones, the darker the more probable.",
    ("score gap", True): f"Below each letter: the true one, the one read, and the score gap: {_GAP}",
}


def facts(pairs: Sequence[tuple[str, str]]) -> Html:
    """What the model file says of itself."""
    rows = [tag("div", tag("dt", name), tag("dd", words)) for name, words in pairs]
    return tag("dl", *rows, class_="facts") if rows else _NOTHING


def scores(result: "Evaluation | None", data: str | None) -> Html:
    """Accuracies; scores of phrases by type where there are any, and of labels."""
    if result is None:
        return _NOTHING
    figures = [("tokens right", percent(result.token_accuracy)), ("sequences wholly right", percent(result.sequence_accuracy))]
    if result.f1 is not None:
        figures.append(("F1 of phrases", percent(result.f1)))
    size = f"{data}: {result.n_sequences} sequences, {result.n_tokens} tokens, {result.n_errors} of them wrong."
    parts = [headline(size, figures)]
    if result.f1 is not None:
        total = ChunkCounts(result.n_gold_phrases, result.n_predicted_phrases, result.n_correct_phrases)
        rows = [(name or "(no type)", *counts.row) for name, counts in result.per_type.items()]
        note = f"Phrases as {result.scheme} counts them; F1 under strict {result.strict_scheme}: {percent(result.f1_strict)}."
        parts += [counts_table("phrases", [*rows, ("all", *total.row)]), tag("p", note, class_="note")]
    return join(*parts, counts_table("labels", [(str(label), *counts.row) for label, counts in result.per_label.items()]))


def reliability(found: Calibration | None) -> Html:
    """The share of phrases that is right against their probability, as a curve and as a table."""
    if found is None or not (bins := found.bins()):
        return _NOTHING
    curve, line = Curve("right", [b[2:4] for b in bins], BLUE), Curve("ideal", [(0, 0), (1, 1)], GREY, True)
    rows = [[low, n, *map(percent, shares)] for low, n, *shares in bins]
    picture = chart([curve, line], "probability of a phrase", "share that is right")
    note = tag("p", f"Expected calibration error: {found.error:.4f}.", class_="note")
    return join(note, columns(picture, data_table(COLUMNS, rows, numbers=[True] * 6, name="reliability")))


def confusions(table: tuple[Sequence[str], Integers] | None) -> Html:
    """The confusion matrix as a heat map, and the most frequent confusions in words."""
    if table is None:
        return _NOTHING
    labels, counts = [str(label) for label in table[0]], np.asarray(table[1])
    wrong = counts - np.diag(np.diag(counts))
    worst = sorted(((int(n), i, j) for (i, j), n in np.ndenumerate(wrong) if n), reverse=True)[:_MOST_CONFUSIONS]
    total = max(int(wrong.sum()), 1)
    rows = [[labels[i], labels[j], n, percent(n / total)] for n, i, j in worst]
    head = ["gold", "predicted", "tokens", "of all errors"]
    listed = data_table(head, rows, numbers=[False, False, True, True], name="most frequent confusions")
    chosen = _strongest_of(wrong.sum(0) + wrong.sum(1))
    note = "" if len(chosen) == len(labels) else f" Shown are the {len(chosen)} of {len(labels)} labels with most errors."
    words = f"Colour: share of the gold label's tokens. At the end of a row: the share that is right.{note}"
    sums = counts.sum(axis=1)
    share = counts / np.maximum(sums, 1)[:, None]
    ends = [percent(share[i, i]) if sums[i] else "\N{EN DASH}" for i in chosen]
    picked, names = np.ix_(chosen, chosen), [labels[i] for i in chosen]
    drawn = counts_map(names, counts[picked], share[picked], _taken, beside="gold", above="predicted", ends=ends)
    picture = scrolling(drawn, "confusion matrix")
    return join(tag("p", words, class_="note"), beside(picture, titled("Most frequent", listed)) if rows else picture)


def _strongest_of(amounts: AnyArray) -> list[int]:
    """The labels that a map has room for, in their order."""
    return sorted(np.argsort(-amounts, kind="stable")[:_MOST_LABELS].tolist())


def _taken(label: str, other: str, n: int, share: float) -> str:
    return f"{label} taken for {other}: {n} ({percent(share)})"


def counts_map(names: Sequence[str], counts: AnyArray, shares: AnyArray, tip: Tip, *, power: float = 0.4, **sides: Any) -> Html:
    """Counts as a heat map, coloured by shares (see `sequential`); tip: what is said of a cell. sides: as `heat_map` has them."""

    def look(i: int, j: int) -> tuple[str, str, str]:
        n, share = counts[i, j].item(), shares[i, j].item()
        return sequential(share, power), brief(n), tip(names[i], names[j], n, share)

    return heat_map(names, names, look, **sides)


def transitions(labels: Sequence[str], weights: Floats, start: Floats, stop: Floats) -> Html:
    """Transition weights as a heat map, with the start above the first row and the stop next to the last column."""
    if not len(labels):
        return _NOTHING
    strength = np.abs(np.where(np.isfinite(weights), weights, 0))
    chosen = _strongest_of(strength.sum(0) + strength.sum(1))
    names = [str(labels[k]) for k in chosen]
    table = np.vstack([np.append(start[chosen], np.nan), np.column_stack([weights[np.ix_(chosen, chosen)], stop[chosen]])])
    scale = float(np.abs(table[np.isfinite(table)]).max(initial=0)) or 1.0
    rows, after = ["(start)", *names], [*names, "(stop)"]

    def look(i: int, j: int) -> tuple[str, str, str]:
        w = table[i, j].item()
        colour = "#ffffff" if np.isnan(w) else "#444444" if np.isneginf(w) else diverging(w / scale)
        return colour, signed(w), f"{rows[i]} \N{RIGHTWARDS ARROW} {after[j]}: {written(w)}"

    picture = heat_map(rows, after, look, beside="label before", above="label after")
    dark = " Dark cells are forbidden." if np.isneginf(table).any() else ""
    few = (
        "" if len(chosen) == len(labels) else f" Shown are the {len(chosen)} of {len(labels)} labels with the strongest weights."
    )
    known = [(float(w), i, j) for (i, j), w in np.ndenumerate(table) if np.isfinite(w) and w]
    ordered = sorted(known, key=lambda one: (-abs(one[0]), one[1:]))[:_MOST_CONFUSIONS]
    listed = [[rows[i], after[j], written(w)] for w, i, j in sorted(ordered, reverse=True)]
    head = ["label before", "label after", "weight"]
    strongest = data_table(head, listed, numbers=[False, False, True], name="strongest transitions")
    return join(
        tag("p", f"Blue raises the score of a sequence, red lowers it.{dark}{few}", class_="note"),
        beside(scrolling(picture, "transition weights"), titled("Strongest", strongest)),
    )


def weights(tables: "Sequence[Weights]") -> Html:
    """For each label its strongest features, folded up."""
    parts = []
    for k, one in enumerate(tables):
        body = two_lists(("for it", one.positive), ("against it", one.negative))
        parts.append(tag("details", tag("summary", one.label), body, open="" if k == 0 else None))
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


def training(stages: Sequence[Stage]) -> Html:
    """Certificate and curves of each stage, several side by side."""
    parts = [_stage(stage) for stage in stages]
    return columns(*(tag("div", part) for part in parts)) if len(parts) > 1 else join(*parts)


def _stage(stage: Stage) -> Html:
    known, charts = stage.certificate, _charts(stage.history)
    near = known.certifies and (known.relative_gap or 0.0) <= _NEAR
    bounds = f"Certificate: {known}"
    if known.gap is None:
        bounds = "" if known.primal is None else f"Objective at these weights: {known.primal:.6g}"
    lines = tag("p", known.meaning()), tag("p", bounds, class_="note") if bounds else ""
    certificate = tag("div", *lines, class_="callout proven" if near else "callout")
    heading = tag("h3", stage.name) if stage.name else ""
    if not charts:
        words = "There is no curve to draw: objectives were computed fewer than two times (see check_every)."
        return join(heading, certificate, tag("p", words, class_="note") if stage.history else "")
    if len(charts) == 1:
        return join(heading, columns(certificate, *charts))
    return join(heading, certificate, tag("div", *charts, class_="charts"))


def _charts(history: Sequence[Mapping[str, Any]]) -> list[Html]:
    """Primal and dual against time, the gap as a share of the primal against passes, held-out scores if there are any."""
    charts = []
    for keys, x, below, left, log in (
        (("primal", "dual"), "seconds", "time (s)", "objective", False),
        (("share",), "passes", "passes over the data", "gap, % of the primal", True),
        (("dev_score",), "passes", "passes over the data", "held-out score, %", False),
    ):
        curves = []
        for key, colour in zip(keys, (ORANGE, BLUE) if len(keys) > 1 else (GREEN,), strict=True):
            points = [(float(row[x]), v) for row in history if row.get(x) is not None and (v := _measured(row, key)) is not None]
            points = [(a, b) for a, b in points if b > 0 or not log]
            if len(points) > 1:
                curves.append(Curve(key, points, colour, key == "dual"))
        mark = (1.0, "1 %") if log else None
        if curves:
            charts.append(chart(_cropped(curves), below, left, log=log, mark=mark, from_zero="dev_score" not in keys))
    return charts


def _measured(row: Mapping[str, Any], key: str) -> float | None:
    if key == "share":
        gap, primal = row.get("gap"), row.get("primal")
        return None if gap is None or not primal else 100 * float(gap) / abs(float(primal))
    value = row.get(key)
    return None if value is None else (100 if key == "dev_score" else 1) * float(value)


def _cropped(curves: list[Curve]) -> list[Curve]:
    """Without early values so large that they would press the rest flat: those above three times the last of the first curve."""
    limit = 3 * abs(curves[0].points[-1][1])
    if curves[0].name != "primal" or max(y for _, y in curves[0].points) <= limit:
        return curves
    kept = [[(x, y) for x, y in c.points if abs(y) <= limit] for c in curves]
    return [c._replace(points=points or c.points) for c, points in zip(curves, kept, strict=True)]
