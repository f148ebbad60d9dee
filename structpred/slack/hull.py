"""Hull search: the best point of the convex hull of all (h, g), by plain queries alone.

log h + log g is concave, so the largest product over a convex set has no local maxima: keep the points found, take the best
point r on the segments between them, ask at lam = h_r / g_r, where the hyperbola of r has that slope, and stop when the line
found touches the hyperbola: K^2 / (4 lam) <= Phi(r). On a relaxation r is itself a point of the polytope, so this is the
exact maximum. For whole outputs it is the smallest bound, and finds the best output, that plain queries can give.
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
    best, lam, factor, aimed = _best_of(points), ledger.lam0, 4.0, False
    for _ in range(MAX_STEPS):
        if not ledger.open() or ledger.ceiling <= best.phi * (1.0 + SETTLED):
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
    return ledger.ceiling


def _best_of(points: list[Candidate]) -> Candidate:
    return max(points, key=lambda p: p.phi)


def _mixed(ledger: Ledger, a: Candidate, b: Candidate) -> Candidate:
    phi, t, h, g = best_mix(a, b)
    if t in (0.0, 1.0) or not phi > 0.0:
        return a if t == 1.0 else b
    return Candidate(h, g, ledger.problem.mix(t, a.label, b.label) if ledger.problem.relaxed else None, np.inf)
