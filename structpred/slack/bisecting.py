"""Bisecting search over lam (Choi, Meshi & Srebro 2016, section 4.3): a baseline that needs no range to begin with.

With z = (h, g) found at lam, the best h lies between h and lam g, and the best g between g and h / lam (Lemma 3). h falls
and g grows with lam (Lemma 4), so one side of lam can be discarded. Steps are fourfold until there is a range, then geometric
means.
"""

import numpy as np

from structpred.slack.ledger import LAM_MAX, Ledger, is_tangent, same_point
from structpred.slack.problem import Candidate

STEP, CLOSE = 4.0, 1.001


def bisecting_search(ledger: Ledger) -> float:
    """Returns the upper bound that the lines give."""
    low, high, lam = 0.0, np.inf, ledger.lam0
    ends: list[Candidate | None] = [None, None]
    H, G = (0.0, np.inf), (0.0, np.inf)
    while ledger.open() and high > CLOSE * low and not same_point(*ends):
        z = ledger.plain(lam)
        if is_tangent(z, lam):
            break
        if z.phi > 0.0:
            H, G = _meet(H, z.h, lam * z.g), _meet(G, z.g, z.h / lam)
            if H[0] > H[1] or G[0] > G[1]:  # closed ranges hold the best point: it takes rounding to come here
                break
        if z.h > lam * z.g:
            low, ends[0] = lam, z
        else:
            high, ends[1] = lam, z
        lam = low * STEP if high == np.inf else high / STEP if low == 0.0 else np.sqrt(low) * np.sqrt(high)
        if not 1.0 / LAM_MAX <= lam <= LAM_MAX:
            break
    return ledger.ceiling


def _meet(kept: tuple[float, float], a: float, b: float) -> tuple[float, float]:
    return max(kept[0], min(a, b)), min(kept[1], max(a, b))
