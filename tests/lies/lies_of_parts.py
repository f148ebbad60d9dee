"""Part losses and regularisers that lie."""

from itertools import count
from typing import Any

import numpy as np
from lies_runs import plant
from lies_world import Differences, Rich, World

from structpred.core.costs import PartCosts
from structpred.core.regulariser import DualMap
from structpred.objectives.regularisers.group_lasso import GroupLasso
from structpred.objectives.regularisers.l1 import L1
from structpred.objectives.regularisers.l2 import L2

SOME = ("bcfw", "n_slack", "one_slack", "sgd", "bmrm")


class Changed(Differences):
    """Changes the costs."""

    def changed(self, constant: float, costs: Any, labels: Any, shape: Any) -> Any:
        return constant, costs

    def costs(self, labels: Any, shape: Any, oracle: Any) -> Any:
        return PartCosts(*self.changed(*super().costs(labels, shape, oracle), labels, shape))


@plant("part losses", "loss", *SOME)
class Similarity(Changed):
    """Larger is better: a similarity taken for a loss."""

    def changed(self, constant: float, costs: Any, labels: Any, shape: Any) -> Any:
        return -constant, -costs


@plant("part losses", "loss", *SOME)
class NegativeForOne(Changed):
    """The loss of instance 17 is negative for some outputs."""

    def changed(self, constant: float, costs: Any, labels: Any, shape: Any) -> Any:
        return constant, costs - 2.0 * (shape[1] == 17)


@plant("part losses", "loss", *SOME)
class NaNForOne(Changed):
    """The loss of instance 17 is no number."""

    def changed(self, constant: float, costs: Any, labels: Any, shape: Any) -> Any:
        return constant, np.full(len(costs), np.nan) if shape[1] == 17 else costs


@plant("part losses", "loss", *SOME)
class InfiniteForOne(Changed):
    """The loss of instance 17 is infinite for one item."""

    def changed(self, constant: float, costs: Any, labels: Any, shape: Any) -> Any:
        return constant, costs + np.array([0.0, np.inf if shape[1] == 17 else 0.0, 0.0, 0.0, 0.0])


@plant("part losses", "loss", *SOME)
class TruthCosts(Changed):
    """The true output costs a half."""

    def changed(self, constant: float, costs: Any, labels: Any, shape: Any) -> Any:
        return constant + 0.5, costs


@plant("part losses", "loss", *SOME)
class Stateful(Changed):
    """The costs grow with each call."""

    def __init__(self) -> None:
        self.calls = count()

    def changed(self, constant: float, costs: Any, labels: Any, shape: Any) -> Any:
        more = 1.0 + 0.01 * next(self.calls)
        return more * constant, more * costs


@plant("part losses", "loss", *SOME)
class Random(Changed):
    """The costs of parts that are not true are drawn by lot at each call."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def changed(self, constant: float, costs: Any, labels: Any, shape: Any) -> Any:
        return constant, np.where(costs > 0.0, self.rng.uniform(0.5, 1.5, len(costs)), costs)


@plant("part losses", "loss", *SOME)
class OfAnotherOutput(Changed):
    """The costs are those of the true output shifted by one item."""

    def changed(self, constant: float, costs: Any, labels: Any, shape: Any) -> Any:
        return constant, np.roll(costs, 1)


@plant("part losses", "loss", *SOME)
class PlainTuple(Differences):
    """The answer is a plain tuple."""

    def costs(self, labels: Any, shape: Any, oracle: Any) -> Any:
        return tuple(super().costs(labels, shape, oracle))


@plant("part losses", "loss", *SOME)
class TooShort(Changed):
    """One part has no cost."""

    def changed(self, constant: float, costs: Any, labels: Any, shape: Any) -> Any:
        return constant, costs[:-1]


@plant("part losses", "loss", *SOME)
class WritesIntoTheTruth(Differences):
    """The costs are right, and then the true labels are overwritten."""

    def costs(self, labels: Any, shape: Any, oracle: Any) -> Any:
        found = super().costs(labels, shape, oracle)
        labels[:] = 0
        return found


@plant("part losses", "loss", *SOME)
class RetiredName(Differences):
    """Written for an earlier release: part_costs says something else than costs."""

    def part_costs(self, labels: Any, shape: Any, oracle: Any) -> Any:
        return 2.0 * np.ones(shape[0])


# regularisers

L2_WORLD, L1_WORLD, GROUPS = World(), World("margin", "l1"), World("margin", "group_lasso")


@plant("regularisers", "regulariser", "bcfw", "one_slack", "sgd", world=L2_WORLD)
class ValueHalved(L2):
    """r(w) is half of what prox and bound belong to."""

    def value(self, w: Any) -> float:
        return 0.5 * super().value(w)


@plant("regularisers", "regulariser", "bcfw", "one_slack", "sgd", world=L2_WORLD)
class ValueOfTheFirstHalf(L2):
    """r(w) leaves the second half of the weights out."""

    def value(self, w: Any) -> float:
        return super().value(w[: len(w) // 2])


@plant("regularisers", "regulariser", "bcfw", "sgd", "proximal", world=L2_WORLD)
class ProudBound(L2):
    """The bound subtracts half of the conjugate."""

    def bound(self, loss: float, lam: float, u: Any) -> float:
        return loss - 0.25 * lam * sum(float(x @ x) for x in u)


@plant("regularisers", "regulariser", "bcfw", "sgd", "proximal", world=L2_WORLD)
class BoundWithoutConjugate(L2):
    """The bound is the loss alone."""

    def bound(self, loss: float, lam: float, u: Any) -> float:
        return loss


@plant("regularisers", "regulariser", "bcfw", "ls_bmrm", "proximal", world=L1_WORLD)
class MapOfAnother(L1):
    """The dual map is that of a weaker l1 norm, value and prox are right."""

    def __init__(self) -> None:
        super().__init__(0.5)

    def value(self, w: Any) -> float:
        return 0.5 * float(w @ w) + 0.5 * float(np.abs(w).sum())

    def prox(self, w: Any, step: float) -> Any:
        return L1(0.5).prox(w, step)

    def dual_map(self) -> DualMap:
        return DualMap.alike(1.0, -0.9, 0.9)


@plant("regularisers", "regulariser", "bcfw", "ls_bmrm", "proximal", world=L1_WORLD)
class ValueWithoutNorm(L1):
    """The value leaves the l1 norm out."""

    def __init__(self) -> None:
        super().__init__(0.5)

    def value(self, w: Any) -> float:
        return 0.5 * float(w @ w)


@plant("regularisers", "regulariser", "proximal", world=L1_WORLD)
class ProxWithoutStep(L1):
    """The prox takes the step to be 1."""

    def __init__(self) -> None:
        super().__init__(0.5)

    def prox(self, w: Any, step: float) -> Any:
        return super().prox(w, 1.0)


@plant("regularisers", "regulariser", "proximal", "online_mkl", world=GROUPS)
class ReachesTooNear(GroupLasso):
    """`reach` is half of what it should be."""

    def reach(self, value: float) -> float:
        return 0.5 * super().reach(value)


@plant("regularisers", "regulariser", "proximal", world=GROUPS)
class GroupsTooCheap(GroupLasso):
    """The value counts norms at four fifths."""

    def value(self, w: Any) -> float:
        return 0.8 * super().value(w)


@plant("regularisers", "regulariser", "lbfgs", world=World("log"), oracle=Rich)
class GradientDoubled(L2):
    """The gradient is doubled."""

    def gradient(self, w: Any) -> Any:
        return self.value(w), 2.0 * w


@plant("regularisers", "regulariser", "lbfgs", "sgd", "proximal", world=World("log"), oracle=Rich)
class TooConvex(L2):
    """It claims four times the strong convexity that it has."""

    strong_convexity = 4.0


@plant("regularisers", "regulariser", "n_slack", "pragam", "ls_bmrm")
class NormHalved(L2):
    """squared_norm, of which r is half, is half as large."""

    def squared_norm(self, w: Any) -> float:
        return 0.5 * super().squared_norm(w)


@plant("regularisers", "regulariser", "bcfw", "n_slack", "one_slack")
class GetsCheaper(L2):
    """Each call of `value` gives a little less."""

    def __init__(self) -> None:
        self.calls = count()

    def value(self, w: Any) -> float:
        return super().value(w) * 0.9 ** next(self.calls)

    def fingerprint(self) -> str:
        return "cheaper"
