"""The rule of `marginals`: log_z and the expected part counts, compared with all outputs; the part at fault is named."""

import numpy as np

from structpred.contracts.engine import Examiner, Space, tolerance
from structpred.contracts.scores import RANDOM, Answer
from structpred.core.oracle import Scores
from structpred.core.types import Floats

_RULE = "marginals"
#: from this size of scores on exp() overflows or cancels where the largest score is not taken out first
_LARGE = 300.0


def examine_marginals(examiner: Examiner, space: Space, answer: Answer, where: str) -> None:
    """Compare log_z and mu with sums over all outputs, and mu with the slopes of log_z."""
    theta = answer.theta
    found = examiner.call("marginals", where, theta, space.shape)
    pair = isinstance(found, tuple) and len(found) == 2
    examiner.insist(_RULE, pair, where, "marginals to give (log_z, mu)", found, "see the signature")
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
    if answer.kind == RANDOM:
        _slopes(examiner, space, theta, mu, where)


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


def _slopes(examiner: Examiner, space: Space, theta: Scores, mu: Floats, where: str) -> None:
    """mu is the gradient of log_z: central differences at a few parts."""
    for j in examiner.rng.permutation(space.n_parts)[:4]:
        step = np.zeros(space.n_parts)
        step[j] = 1e-5
        up = examiner.call("marginals", where, theta + step, space.shape)[0]
        down = examiner.call("marginals", where, theta - step, space.shape)[0]
        slope = float(up - down) / 2e-5
        cause = "log_z and mu belong to different distributions"
        ok = abs(slope - mu[j]) <= 1e-5 * max(1.0, abs(slope))
        examiner.expect(_RULE, ok, where, f"mu[{j}] = d log_z / d theta[{j}] = {slope:.6g}", mu[j], cause)
