"""The rules of `marginals`, log_z and the expected part counts, and of clique marginals; the part at fault is named."""

import numpy as np

from structpred.contracts.engine import Examiner, Space, place, tolerance
from structpred.contracts.maximum import HUGE, RANDOM, TIES, Answer
from structpred.core.oracle import Scores
from structpred.core.types import Floats

_RULE = "marginals"
#: from this size of scores on exp() overflows or cancels where the largest score is not taken out first
_LARGE = 300.0


def examine_marginals(examiner: Examiner, space: Space, answer: Answer, where: str) -> None:
    """Compare log_z and mu with sums over all outputs, and mu with the slopes of log_z."""
    theta = answer.theta
    found = examiner.pair(_RULE, "marginals", where, theta, space.shape, gives="(log_z, mu)")
    log_z = float(found[0])
    examiner.finite(log_z, where, _RULE)
    mu = examiner.numbers(found[1], space.n_parts, where, _RULE)
    if space.complete:
        _compare(examiner, space, theta, (log_z, mu), where)
    else:
        best = float(space.scores(theta).max())
        cause = _overflow(theta) or "outputs are left out of the sum, or scores are scaled or negated"
        examiner.expect(
            _RULE, log_z >= best - tolerance(best), where, f"log_z of at least the best score {best:.9g}", log_z, cause
        )
    if "label_grid" in examiner.has:
        n_positions, n_labels = examiner.call("label_grid", where, space.shape)
        sums = mu[: n_positions * n_labels].reshape(n_positions, n_labels).sum(axis=1)
        ok = np.abs(sums - 1.0).max(initial=0.0) <= 1e-9
        cause = "counts that are not divided by their sum, or read off at other parts"
        examiner.expect(_RULE, ok, where, "marginals of a position to add up to 1", sums, cause)
    if answer.kind == RANDOM:  # mu is the gradient of log_z: central differences at a few parts
        for j in examiner.rng.permutation(space.n_parts)[:4]:
            step = np.zeros(space.n_parts)
            step[j] = 1e-5
            up = examiner.call("marginals", where, theta + step, space.shape)[0]
            down = examiner.call("marginals", where, theta - step, space.shape)[0]
            slope = float(up - down) / 2e-5
            cause = "log_z and mu belong to different distributions"
            ok = abs(slope - mu[j]) <= 1e-5 * max(1.0, abs(slope))
            examiner.expect(_RULE, ok, where, f"mu[{j}] = d log_z / d theta[{j}] = {slope:.6g}", mu[j], cause)


def _compare(examiner: Examiner, space: Space, theta: Scores, found: tuple[float, Floats], where: str) -> None:
    log_z, mu = found
    true_log_z, true_mu = _exactly(space, theta)
    near = 1e-9 if np.abs(theta).max(initial=0.0) < 1e3 else 1e-6  # float64 leaves 1e-10 of a difference at 1e6
    error = float(np.abs(mu - true_mu).max(initial=0.0))
    right_z, right_mu = abs(log_z - true_log_z) <= tolerance(true_log_z), error <= near
    examiner.checked[_RULE] += 2
    if right_z and right_mu:
        return
    if right_z:
        cause = "log_z is right, so the inside (forward) pass is; the outside (backward) pass is wrong"
        if np.abs(np.sort(mu) - np.sort(true_mu)).max(initial=0.0) <= near:
            cause = "log_z is right, and so are the counts, but at the wrong parts (transposed?)"
        examiner.expect(_RULE, False, where, "the expected part counts over all outputs", f"off by {error:.3g}", cause)
        return
    cause = _overflow(theta) or _wrong_sum(space, theta, log_z, right_mu)
    examiner.expect(_RULE, False, where, f"log_z = {true_log_z:.12g}", log_z, cause)


def _wrong_sum(space: Space, theta: Scores, log_z: float, right_mu: bool) -> str:
    """What log_z may be the sum of."""
    for what, other in (("negated", -theta), ("doubled", 2.0 * theta), ("halved", theta / 2.0)):
        if abs(_exactly(space, other)[0] - log_z) <= tolerance(log_z):
            return f"log_z belongs to the {what} scores"
    if right_mu:
        ratio = np.exp(log_z - _exactly(space, theta)[0])
        times = "counted twice" if abs(ratio - 2.0) < 1e-6 else f"counted {ratio:.3g} times"
        return f"the expected counts are right, but every output is {times} in log_z (a constant factor)"
    return "the sum is over other outputs than enumerate lists: some are missed, or counted twice"


def _exactly(space: Space, theta: Scores) -> tuple[float, Floats]:
    scores = space.scores(theta)
    best = float(scores.max())
    shares = np.exp(scores - best)
    return best + float(np.log(shares.sum())), space.counts.T @ (shares / shares.sum())


def _overflow(theta: Scores) -> str | None:
    """The likely cause where scores are large and smaller ones, tried before, were right."""
    if np.abs(theta).max(initial=0.0) < _LARGE:
        return None
    return "a sum that overflows or cancels: take the largest score out first (log-sum-exp)"


#: a point so far out that its projection lies on the face of the best outputs, to |x|^2 / 1e5
_FAR = 1e5


def examine_cliques(examiner: Examiner, space: Space, answer: Answer) -> None:
    """One score vector, led back to the cliques: its projection, twice, from its own multipliers, and next to another point."""
    if answer.kind not in (RANDOM, TIES, HUGE):
        return
    where, rule = f"{place(space.shape)}, {answer.kind}", "project_cliques"
    counts = _counts(examiner, space, place(space.shape))
    theta = answer.theta / max(1.0, float(np.abs(answer.theta).max()))
    point = theta @ counts
    x, multipliers = _projected(examiner, space, point, where)
    examiner.expect(rule, x.min() >= -1e-9, where, "clique marginals >= 0", x, "a sign, or no projection at all")
    best, _ = _projected(examiner, space, _FAR * point, where)
    gap, size = float((point - x) @ (best - x)), max(1.0, float(np.abs(point - x) @ (best + x)))
    cause = "too few iterations, or the nearest point of another set"
    examiner.expect(rule, gap <= 1e-8 * size, where, "<point - x, z - x> <= 0 for other clique marginals z", f"{gap:.3g}", cause)
    again, _ = _projected(examiner, space, x, where)
    cause = "an answer that is not among the clique marginals, or that moves what is"
    examiner.expect(rule, np.abs(again - x).max() <= 1e-7, where, "the projection of x to be x", again - x, cause)
    warm, _ = _projected(examiner, space, point, where, multipliers)
    cause = "`start` in place of the answer, or multipliers of another order"
    examiner.expect(rule, np.abs(warm - x).max() <= 1e-7, where, "the same from its own multipliers", warm - x, cause)
    if space.complete:  # the far point's part counts lie in the hull of the outputs, and reach the best score
        mu = counts @ best
        if examiner.oracle.exact and (residual := space.outside_hull(mu)) is not None:
            cause = "cliques that need not agree, or clique_parts that count other parts"
            expected = "part counts in the hull of all outputs"
            examiner.expect("project_cliques", residual <= 1e-6, where, expected, f"distance {residual:.3g}", cause)
        value, top = float(theta @ mu), float((space.counts @ theta).max())
        room = 2.0 * float(mu.sum()) ** 2 / _FAR
        close = value >= top - room and (value <= top + room or not examiner.oracle.exact)  # a relaxation may hold more
        cause = "a set of marginals that is too small, or clique_parts that count other parts"
        examiner.expect("project_cliques", close, where, f"the best score {top:.6g} far out", f"{value:.6g}", cause)


def _counts(examiner: Examiner, space: Space, where: str) -> Floats:
    """The 0/1 matrix A, (n_parts, n_variables)."""
    rule, cause = "clique_parts", "offsets that do not start at 0 or end at len(parts), or a part that is not one of this shape"
    examiner.insist(rule, rule in examiner.has, where, "clique_parts next to project_cliques", "no such method", "it is missing")
    found = examiner.pair(rule, rule, where, space.shape, gives="(ends, parts)")
    ends, parts = (examiner.labels(one, where, rule) for one in found)
    ok = len(ends) > 1 and ends[0] == 0 and ends[-1] == len(parts) and (np.diff(ends) >= 0).all()
    ok = ok and (not len(parts) or (parts.min() >= 0 and parts.max() < space.n_parts))
    examiner.insist(rule, ok, where, f"ascending ends from 0, parts in [0, {space.n_parts})", ends, cause)
    counts = np.zeros((space.n_parts, len(ends) - 1))
    np.add.at(counts, (parts, np.repeat(np.arange(len(ends) - 1), np.diff(ends))), 1.0)
    return counts


def _projected(examiner: Examiner, space: Space, point: Floats, where: str, start: Floats | None = None) -> tuple[Floats, Floats]:
    """Of a batch of the point and its half: as one by one to the last bit; the answer for the point."""
    rule, both, n = "project_cliques", np.concatenate((point, 0.5 * point)), len(point)
    one = examiner.pair(rule, rule, where, point, np.array([0, n]), [space.shape], start, gives="(x, multipliers)")
    x = examiner.numbers(one[0], n, where, rule)
    if start is None:
        half = examiner.call(rule, where, 0.5 * point, np.array([0, n]), [space.shape])
        found = examiner.call(rule, where, both, np.array([0, n, 2 * n]), [space.shape] * 2, None, 2)
        for one_by_one, batch in zip(zip(one, half, strict=True), found, strict=True):
            same = np.array_equal(np.concatenate(one_by_one), batch)
            cause = "offsets, or scratch that threads share"
            examiner.expect(rule, same, where, "a batch on two threads to be its loop, bit for bit", batch, cause)
    return x, np.asarray(one[1], dtype=np.float64)
