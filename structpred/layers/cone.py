"""Cone-aligned estimation: the angle between scores and the cone of scores for which gold is best."""

import numpy as np

from structpred.core.oracle import Oracle
from structpred.core.types import Floats
from structpred.errors import ConvergenceError, ParameterError
from structpred.layers.loss import Given, Loss, Terms
from structpred.layers.record import Scores
from structpred.runtime.settings import checked_positive, checked_whole


class ConeAlignment(Loss):
    """1 - |p| / |theta|, p the projection of theta on N = {t : t . (mu(y) - g) <= 0 for all y} (after CaVE, Tang & Khalil 2024).

    N is the normal cone of the hull at g, whatever the structure; the published loss takes the binding rows of a relaxation, a
    cone inside N. In [0, 1]: 0 where gold is best, the cosine's distance from 1 elsewhere. Where p = 0 it is 1, with the gradient
    0.

    By Moreau p = theta - D a with a >= 0 by non-negative least squares. The columns of D are mu(y) - g for the outputs that are
    best at p so far, until none has a positive product. A few calls of `argmax` an instance, for all instances together.

    Parameters
    ----------
    oracle : Oracle
    tol : float
        No output beats gold at p by more than tol times the terms that cancel in this.
    max_rounds : int
        Calls of `argmax` an instance, at most: ConvergenceError, naming the samples, if they do not suffice.

    Examples
    --------
    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> oracle = MulticlassOracle()
    >>> ConeAlignment(oracle)(Scores.of(oracle, [(2,)]), [0.0, 1.0], gold=[[0]]).values.round(3).tolist()
    [0.293]
    """

    name = "cone"

    def __init__(self, oracle: Oracle, *, tol: float = 1e-9, max_rounds: int = 1000) -> None:
        super().__init__(oracle)
        self.tol, self.max_rounds = checked_positive(tol, "tol"), checked_whole(max_rounds, "max_rounds")

    def terms(self, batch: Scores, theta: Floats, given: Given) -> Terms:
        """The projection, then the cosine and its derivative."""
        if batch.mask is not None:
            raise ParameterError("ConeAlignment takes no fixed scores: with them the scores for which gold is best are no cone")
        point = self.project(batch, theta, given.target)
        size, length = np.sqrt(batch.dots(theta, theta)), np.sqrt(batch.dots(point, point))
        flat = length <= 1e-12 * size  # theta = 0 included
        size, safe = np.where(flat, 1.0, size), np.where(flat, 1.0, length)
        gradient = theta * batch.spread(safe / size**3) - point * batch.spread(1.0 / (safe * size))
        gradient[batch.spread(flat)] = 0.0
        gap = np.zeros(len(batch)) if self.oracle.exact and not self.oracle.tolerance else np.full(len(batch), np.inf)
        return Terms(np.where(flat, 1.0, 1.0 - length / size), gradient, gap)

    def project(self, batch: Scores, theta: Floats, gold: Floats) -> Floats:
        """The nearest scores, flat, for which the points gold are best."""
        from scipy.optimize import nnls

        point, columns = theta.copy(), [np.empty((len(own), 0)) for own in batch.split(theta)]
        open_rows = np.arange(len(batch), dtype=np.int64)
        for _ in range(self.max_rounds):
            some, places = batch.take(open_rows)
            rays = some.counts(some.best(point[places])) - gold[places]
            products = some.dots(point[places], rays)
            limits = self.tol * some.dots(np.abs(theta[places]), np.abs(rays))
            beaten = np.flatnonzero(products > limits)
            if not len(beaten):
                return point
            for k in beaten.tolist():
                i, ray = int(open_rows[k]), rays[some.offsets[k] : some.offsets[k + 1]]
                own = slice(batch.offsets[i], batch.offsets[i + 1])
                columns[i] = np.column_stack((columns[i], ray))
                point[own] = theta[own] - columns[i] @ nnls(columns[i], theta[own])[0]
            open_rows = open_rows[beaten]
        raise ConvergenceError(
            f"ConeAlignment: samples {open_rows[:5].tolist()} ({len(open_rows)} in all) need more than {self.max_rounds} "
            "outputs; raise max_rounds or tol"
        )
