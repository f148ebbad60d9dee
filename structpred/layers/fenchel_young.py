"""Fenchel-Young losses: the perceptron, the hinge, the CRF, and whatever else comes from a convex function of the hull."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from structpred.core.costs import Cost, TaskCosts
from structpred.core.oracle import Oracle
from structpred.core.requirements import Needs
from structpred.core.types import ArrayLike, Floats
from structpred.layers.loss import Given, Loss, Terms
from structpred.layers.record import Outputs, Scores
from structpred.layers.soft import covariances
from structpred.runtime.settings import checked_nonnegative, checked_positive
from structpred.task.task_checks import true_parts


class Conjugate(NamedTuple):
    """Omega*(theta) = max_mu theta . mu - Omega(mu) of each instance (n,), its maximiser mu (flat), and gaps (n,).

    The exact value is at most values + gap. decisions: the best outputs at theta, if at hand. curvature: flat numbers times the
    derivative of mu, if it is known.
    """

    values: Floats
    mu: Floats
    gap: Floats
    decisions: Outputs | None = None
    curvature: Callable[[Floats], Floats] | None = None


class Smoothing(ABC):
    """A convex function Omega of points of the hull: what a Fenchel-Young loss is made from."""

    requires: Needs = ("argmax",)

    @abstractmethod
    def conjugate(self, batch: Scores, scores: Floats, given: Given) -> Conjugate:
        """Omega* and its gradient at full scores."""

    def omega(self, batch: Scores, point: Floats) -> Floats:
        """Omega of each instance's point, (n,); 0 unless a child says otherwise."""
        return np.zeros(len(batch))


class Hard(Smoothing):
    """Omega = 0: the maximum itself."""

    def conjugate(self, batch: Scores, scores: Floats, given: Given) -> Conjugate:
        """The best output."""
        best = batch.best(scores)
        return Conjugate(best.values, batch.counts(best), best.gaps, best.outputs)


class Entropy(Smoothing):
    """Omega = -t H, the entropy of the distribution over outputs: Omega* = t log Z(theta / t). Needs `marginals`.

    Omega of an output is 0. For a dense gold point the constant -t H(gold) is left out of the value, which is then too large.
    """

    requires = ("marginals",)

    def __init__(self, temperature: float = 1.0) -> None:
        self.temperature = checked_positive(temperature, "temperature")

    def conjugate(self, batch: Scores, scores: Floats, given: Given) -> Conjugate:
        """The log partition function and the marginals."""
        log_z, mu = batch.marginals(scores / self.temperature)
        curvature = covariances(batch, scores, self.temperature)
        return Conjugate(self.temperature * log_z, mu, np.zeros(len(batch)), curvature=curvature)


class FenchelYoung(Loss):
    """L(theta) = Omega*(v) + Omega(g) - v . g  with  v = s theta + w ell  (Blondel, Martins & Niculae 2020).

    ell are part costs of a structured loss. Convex, >= 0, and for w = 0 zero if and only if g maximises v . mu - Omega(mu). The
    gradient is s (mu(v) - g). With costs it is the imitation loss of Dalle et al. (2022).

    Parameters
    ----------
    oracle : Oracle
    smoothing : Smoothing
        Omega; `Hard()` if not given.
    cost_weight : float
        w >= 0; above 0 the call needs costs=.
    scale : float
        s > 0.
    """

    name = "fenchel_young"

    def __init__(
        self, oracle: Oracle, smoothing: Smoothing | None = None, *, cost_weight: float = 0.0, scale: float = 1.0
    ) -> None:
        self.smoothing = Hard() if smoothing is None else smoothing
        self.requires, self.smooth = self.smoothing.requires, not isinstance(self.smoothing, Hard)
        super().__init__(oracle)
        self.cost_weight, self.scale = checked_nonnegative(cost_weight, "cost_weight"), checked_positive(scale, "scale")
        self.takes = ("gold", "costs") if self.cost_weight else ("gold",)

    def terms(self, batch: Scores, theta: Floats, given: Given) -> Terms:
        """Omega* and its gradient, less what gold gives."""
        scores = self.scale * theta
        if given.costs is not None and self.cost_weight:
            scores += self.cost_weight * given.costs
        found = self.smoothing.conjugate(batch, scores, given)
        values = found.values + self.smoothing.omega(batch, given.target) - batch.dots(scores, given.target)
        plain = found.decisions if self.scale == 1.0 and not self.cost_weight else None
        curvature = None if (bend := found.curvature) is None else lambda v: self.scale**2 * bend(v)
        return Terms(values, self.scale * (found.mu - given.target), found.gap, scores, plain, curvature=curvature)


class Perceptron(FenchelYoung):
    """max_y theta . (mu(y) - g): zero where gold is best (Collins 2002). One `argmax` an instance.

    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> oracle = MulticlassOracle()
    >>> Perceptron(oracle)(Scores.of(oracle, [(3,)]), [0.0, 2.0, 1.0], gold=[[0]]).values.tolist()
    [2.0]
    """

    name = "perceptron"

    def __init__(self, oracle: Oracle) -> None:
        super().__init__(oracle)


class Hinge(FenchelYoung):
    """max_y (theta + w ell) . (mu(y) - g), the margin-rescaled hinge (Taskar et al. 2003; Tsochantaridis et al. 2005, eq. 7).

    It needs costs=, from `part_costs` for example. One `argmax` an instance.
    """

    name = "hinge"

    def __init__(self, oracle: Oracle, *, cost_weight: float = 1.0) -> None:
        super().__init__(oracle, cost_weight=checked_positive(cost_weight, "cost_weight"))


class CRF(FenchelYoung):
    """t log Z(theta / t) - theta . g: for t = 1 the negative log-likelihood of gold (Lafferty et al. 2001). Needs `marginals`.

    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> oracle = MulticlassOracle()
    >>> CRF(oracle)(Scores.of(oracle, [(4,)]), [1.0, 1.0, 1.0, 1.0], gold=[[2]]).gradient.tolist()
    [0.25, 0.25, -0.75, 0.25]
    """

    name = "crf"
    requires = ("marginals",)

    def __init__(self, oracle: Oracle, *, temperature: float = 1.0) -> None:
        super().__init__(oracle, Entropy(temperature))


class SoftMarginCRF(FenchelYoung):
    """The same at theta + w ell (Gimpel & Smith 2010), so that expensive outputs get less mass. Needs `marginals` and costs=."""

    name = "soft_margin_crf"
    requires = ("marginals",)

    def __init__(self, oracle: Oracle, *, temperature: float = 1.0, cost_weight: float = 1.0) -> None:
        super().__init__(oracle, Entropy(temperature), cost_weight=checked_positive(cost_weight, "cost_weight"))


def part_costs(batch: Scores, loss: Cost, gold: Sequence[ArrayLike]) -> Floats:
    """The part costs of a structured loss, flat, for one gold output an instance: what `Hinge` takes as costs=.

    Raises LossError, naming the sample, for a loss that breaks the rules of losses, DataError for gold that is no output.

    >>> from structpred.objectives.part_losses import Hamming
    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> part_costs(Scores.of(MulticlassOracle(), [(3,)]), Hamming(), [[1]]).tolist()
    [1.0, 0.0, 1.0]
    """
    labels = [np.atleast_1d(np.asarray(own, dtype=np.int64)) for own in gold]
    sizes = np.diff(batch.offsets)
    parts = true_parts(batch.oracle, labels, batch.shapes, sizes)
    known = TaskCosts(loss, batch.oracle, labels, batch.shapes, parts, sizes.tolist(), None)
    return known.block(0, len(labels))[1]
