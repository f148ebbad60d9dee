"""Training on the report page: what is certified and what that means, and the curves of objective, gap and held-out score."""

from collections.abc import Mapping, Sequence
from typing import Any

from structpred.core.result import Certificate
from structpred.report.contents import Stage
from structpred.report.drawings import Curve, chart
from structpred.report.figures import BLUE, GREEN, ORANGE
from structpred.report.layout import columns
from structpred.text.markup import Html, join, tag

_NEAR = 0.1  # a larger gap, as a share of the primal, is a proof, too, but of little


def training(stages: Sequence[Stage]) -> Html:
    """Certificate and curves of each stage, several side by side."""
    parts = [_stage(stage) for stage in stages]
    return columns(*(tag("div", part) for part in parts)) if len(parts) > 1 else join(*parts)


def _stage(stage: Stage) -> Html:
    told, charts = _certificate(stage.certificate), _charts(stage.history)
    heading = tag("h3", stage.name) if stage.name else ""
    if not charts:
        words = "There is no curve to draw: objectives were computed fewer than two times (see check_every)."
        return join(heading, told, tag("p", words, class_="note") if stage.history else "")
    if len(charts) == 1:
        return join(heading, columns(told, *charts))
    return join(heading, told, tag("div", *charts, class_="charts"))


def _certificate(certificate: Certificate) -> Html:
    """What is certified in words, and the bounds."""
    near = certificate.certifies and (certificate.relative_gap or 0.0) <= _NEAR
    words = f"Certificate: {certificate}"
    if certificate.gap is None:
        words = "" if certificate.primal is None else f"Objective at these weights: {certificate.primal:.6g}"
    bounds = tag("p", words, class_="note") if words else ""
    return tag("div", tag("p", certificate.meaning()), bounds, class_="callout proven" if near else "callout")


def _charts(history: Sequence[Mapping[str, Any]]) -> list[Html]:
    """Primal and dual against time, the gap as a share of the primal against passes, held-out scores if there are any."""
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
            charts.append(chart(_cropped(curves), below, beside, log=log, mark=mark, from_zero="dev_score" not in keys))
    return charts


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
