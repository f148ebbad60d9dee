"""Search by lists of the k best outputs: none that is not listed has a larger h + lam g than the last one that is.

Hull search comes first. What it leaves open lies between its lines and the hyperbola of the best output found, where few outputs
are. A list settles the outputs in it, and lowers the line of its lam, for all others, to the value of the last one. The next list
is computed at the ray of that one. Lists grow until the lines allow nothing better, or until they are as long as they may be.
"""

from structpred.slack.hull import SETTLED, hull_search
from structpred.slack.ledger import LAM_MAX, Ledger, top_level
from structpred.slack.problem import Candidate

#: the lengths of the lists, and how many are computed of each length
LENGTHS, TRIES = (8, 16, 32, 64), 3


def kbest_search(ledger: Ledger) -> float:
    """Exact where the lists grow long enough; an upper bound of Phi always."""
    upper = hull_search(ledger)
    lines = dict(ledger.lines)
    for k in LENGTHS:
        lam = min(lines, key=lambda at: _largest(at, lines[at]), default=ledger.lam0)
        for _ in range(TRIES):
            if upper <= ledger.floor * (1.0 + SETTLED) or not ledger.may_ask():
                return upper
            listed = ledger.kbest(lam, k)
            if len(listed) < k:
                return ledger.best.phi  # there is no other output
            lines[lam] = min(listed[-1].value(lam), lines.get(lam, float("inf")))
            unlisted = min(_largest(at, K) for at, K in lines.items())
            unlisted = min(unlisted, top_level(list(lines.items()), ledger.problem.loss_unit)[1])
            upper = max(ledger.best.phi, unlisted)
            lam = min(max(_next(listed[-1], lam), 1.0 / LAM_MAX), LAM_MAX)
    return upper


def _largest(lam: float, K: float) -> float:
    """The largest Phi below the line h + lam g = K."""
    return max(K, 0.0) ** 2 / (4.0 * lam)


def _next(last: Candidate, lam: float) -> float:
    """Where the bound of a list that ends with `last` falls (Lemma 1: towards its ray; h <= 0 asks for less weight on g)."""
    if last.phi > 0.0:
        return last.h / last.g
    return lam / 4.0 if last.g > 0.0 else lam * 4.0
