"""Binary search over lam (Choi, Meshi & Srebro 2016, section 4.1 and appendix A): a baseline.

F(mu) = 1/4 max_{h > 0} (h / mu + mu g)^2 >= Phi is convex in mu = sqrt(lam), and its subgradient has the sign of lam g - h
(Lemma 1). The range of lam must be given; here 2^-20..2^20 times lam0, halved geometrically.
"""

from structpred.slack.ledger import Ledger, is_tangent, same_point
from structpred.slack.problem import Candidate

#: half the range of lam, and the ratio of its ends at which the search ends
RANGE, CLOSE = 2.0**20, 1.001


def binary_search(ledger: Ledger) -> float:
    """Returns the upper bound that the lines give."""
    low, high = ledger.lam0 / RANGE, ledger.lam0 * RANGE
    at_low: Candidate | None = None
    at_high: Candidate | None = None
    while ledger.open() and high > CLOSE * low and not same_point(at_low, at_high):
        lam = (low * high) ** 0.5
        z = ledger.plain(lam)
        if is_tangent(z, lam):
            break
        if z.h > lam * z.g:
            low, at_low = lam, z
        else:
            high, at_high = lam, z
    return ledger.ceiling
