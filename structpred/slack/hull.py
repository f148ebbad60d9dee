"""Hull search: the best point of the convex hull of all (h, g), by plain queries alone.

log h + log g is concave, so the largest product over a convex set has no local maxima: keep the points found, take the best
point r on the segments between them, ask at lam = h_r / g_r, where the hyperbola of r has that slope, and stop when the line
found touches the hyperbola: K^2 / (4 lam) <= Phi(r). On a relaxation r is itself a point of the polytope, so this is the
exact maximum. For whole outputs it finds the best output that plain queries can give.

Where losses are multiples of a unit, the hull matters at these levels only, and between the truth (1, 0) and the next level there
is nothing: then the search continues until the hull is known at the level that allows most.
"""

import numpy as np

from structpred.slack.ledger import LAM_MAX, Ledger
from structpred.slack.problem import Candidate

#: Phi of the hull is settled to this relative accuracy
SETTLED = 1e-12
#: a polytope has finitely many vertices; this many steps mean that rounding is all that is left
MAX_STEPS = 500


def best_mix(a: Candidate, b: Candidate) -> tuple[float, float, float, float]:
    """(phi, t, h, g) of the best point t a + (1 - t) b: a parabola in t, its top in closed form.

    >>> best_mix(Candidate(4.0, 0.0, None), Candidate(0.0, 4.0, None))
    (4.0, 0.5, 2.0, 2.0)
    """
    dh, dg = a.h - b.h, a.g - b.g
    tops = [0.0, 1.0]
    if dh * dg < 0.0:
        tops.append(min(max(-(b.h * dg + b.g * dh) / (2.0 * dh * dg), 0.0), 1.0))
    points = [(b.h + t * dh, b.g + t * dg, t) for t in tops]
    return max((h * g if h > 0.0 and g > 0.0 else 0.0, t, h, g) for h, g, t in points)


def hull_search(ledger: Ledger) -> float:
    """Ask until the hull is settled; returns the upper bound of Phi that the lines give."""
    points = [ledger.problem.truth] + ([ledger.incumbent] if ledger.incumbent is not None else [])
    best, lam, factor, aimed = max(points, key=lambda p: p.phi), ledger.lam0, 4.0, False
    for _ in range(MAX_STEPS):
        if not ledger.open() or ledger.smooth <= best.phi * (1.0 + SETTLED):
            break
        known = max(p.value(lam) for p in points)
        z = ledger.plain(lam)
        if aimed and z.value(lam) <= known * (1.0 + SETTLED):
            break  # nothing above the hull of what is known; an inexact oracle's bound may stay above it
        best = max([best, *(_mixed(ledger, z, p) for p in points)], key=lambda p: p.phi)
        points.append(z)
        if ledger.problem.relaxed:
            ledger.offer(best)
        if best.phi > 0.0:
            lam, aimed = min(max(best.h / best.g, 1.0 / LAM_MAX), LAM_MAX), True
        elif lam >= LAM_MAX:
            break  # no output has a loss and a positive h: the bound is next to nothing
        else:
            lam, factor = min(lam * factor, LAM_MAX), factor * factor
    if ledger.problem.loss_unit > 0.0:  # at the slope of the hull at the level that allows most, until its bound cannot fall
        asked = {lam for lam, _ in ledger.lines}
        for _ in range(MAX_STEPS):
            if not ledger.open() or ledger.ceiling <= ledger.best.phi * (1.0 + SETTLED):
                break
            slope = slope_at(points, ledger.top_level()[0])
            lam = 4.0 * max(asked) if slope is None else slope
            if not 1.0 / LAM_MAX <= lam <= LAM_MAX or lam in asked:
                break
            asked.add(lam)
            points.append(ledger.plain(lam))
    return ledger.ceiling


def slope_at(points: list[Candidate], g: float) -> float | None:
    """-dh / dg of the upper hull of the points where it has the loss g; 0 at a point of its own, None beyond the largest loss.

    >>> slope_at([Candidate(1.0, 0.0, None), Candidate(-1.0, 1.0, None), Candidate(-2.0, 4.0, None)], 2.0)
    0.75
    """
    left, right = [p for p in points if p.g <= g], [p for p in points if p.g > g]
    if not right or not left:
        return None
    top, slope = max((p.h, 0.0) if p.g == g else (-np.inf, 0.0) for p in left)
    for a in left:
        for b in right:
            rate = (a.h - b.h) / (b.g - a.g)
            top, slope = max((top, slope), (a.h - rate * (g - a.g), rate))
    return slope


def _mixed(ledger: Ledger, a: Candidate, b: Candidate) -> Candidate:
    phi, t, h, g = best_mix(a, b)
    if t in (0.0, 1.0) or not phi > 0.0:
        return a if t == 1.0 else b
    return Candidate(h, g, ledger.problem.mix(t, a.label, b.label) if ledger.problem.relaxed else None, np.inf)
