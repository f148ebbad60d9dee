"""The search of Sarawagi & Gupta (2008), for n-slack cutting planes: a baseline that needs a threshold xi > 0.

An output violates its constraint iff h - xi / g > 0. Since -xi / g = min_lam (lam g - 2 sqrt(xi lam)),

    max_y h - xi / g  <=  min_lam F'(lam),   F'(lam) = max_y (h + lam g) - 2 sqrt(xi lam)

(Choi, Meshi & Srebro 2016, eqs. 13-15); F' is convex, and is minimised by golden section over lam in [xi / gmax^2, xi / gmin^2].
The maximum is over the truth, too, whose h = 1 and g = 0 keep F' > 0 up to lam = 1 / (4 xi): the range ends no earlier.
"""

import numpy as np

from structpred.errors import ParameterError
from structpred.slack.ledger import LAM_MAX, Ledger

GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
#: the smallest positive loss that is looked for, as a share of the largest; the ratio of ends at which the search ends
SMALLEST, CLOSE = 1e-3, 1.01


def sarawagi_search(ledger: Ledger) -> float:
    """Returns the upper bound that the lines give. Raises ParameterError without a positive threshold."""
    xi = ledger.goal.threshold
    if xi is None or xi <= 0.0:
        raise ParameterError(
            f"slack search 'sarawagi' needs a threshold > 0, the slack of a sample plus the precision of n_slack; got {xi}"
        )
    largest = ledger.plain(LAM_MAX).g
    if not largest > 0.0:
        return ledger.ceiling
    low, high = np.log(xi / largest**2), np.log(max(xi / (SMALLEST * largest) ** 2, 0.25 / xi))
    a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_a = _value(ledger, a, xi)
    at_b = _value(ledger, b, xi)
    while ledger.open() and high - low > np.log(CLOSE):
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - GOLDEN * (high - low)
            at_a = _value(ledger, a, xi)
        else:
            low, a, at_a = a, b, at_b
            b = low + GOLDEN * (high - low)
            at_b = _value(ledger, b, xi)
    return ledger.ceiling


def _value(ledger: Ledger, log_lam: float, xi: float) -> float:
    """F'(lam), inf where the budget is spent."""
    if not ledger.may_ask():
        return np.inf
    lam = float(np.exp(log_lam))
    return ledger.plain(lam).value(lam) - 2.0 * float(np.sqrt(xi * lam))
