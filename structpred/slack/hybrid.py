"""Hull search first, then angular search only at the slopes where all lines of the hull search stay above the best output."""

from structpred.slack.angular import Angle, largest_phi, live_slopes, search_angle
from structpred.slack.hull import hull_search
from structpred.slack.ledger import Ledger


def hybrid_search(ledger: Ledger) -> float:
    """Exact where the constrained oracle is, which is asked only where plain queries leave something open; an upper bound."""
    upper = hull_search(ledger)
    floor = ledger.floor
    if upper <= floor or not ledger.may_ask():
        return upper
    lines = tuple(ledger.lines)
    slopes = [live_slopes(lam, K, floor) for lam, K in lines]
    low, high = max(first for first, _ in slopes), min(last for _, last in slopes)
    # beyond the ends the lines fall: what they allow there is what they allow at the ends (the floor, up to rounding)
    outside = max(largest_phi(lines, end, end) if 0.0 < end < float("inf") else 0.0 for end in (low, high))
    if not low < high:
        return max(floor, outside)
    root = Angle(low, high, low > 0.0, lines, largest_phi(lines, low, high))
    best = min(lines, key=lambda line: line[1] ** 2 / line[0])
    return max(outside, search_angle(ledger, root, best[0]))
