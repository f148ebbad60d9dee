"""Trainers, surrogates and losses of scores that lie."""

from itertools import count
from typing import Any

import numpy as np
from lies_runs import plant
from lies_world import AtMostTwo, Ramp, Rich, World

from structpred.layers.fenchel_young import SoftMarginCRF
from structpred.layers.loss import Terms
from structpred.layers.perturbed import PerturbedLoss
from structpred.layers.sparsemap import SparseMAPLoss
from structpred.layers.surrogates import LossSurrogate
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.slack.surrogate import SlackRescaling
from structpred.task.steps import Step
from structpred.trainers.bcfw import BCFW
from structpred.trainers.lbfgs import LBFGS
from structpred.trainers.n_slack import NSlackCuttingPlane
from structpred.trainers.sgd import SGD


def trainer(name: str, **others: Any) -> Any:
    """Planted in the place of the trainer `name`, whose passes it gets."""
    return plant("own trainers", "trainer", name, **others)


class OwnBCFW(BCFW):
    """Changes the bounds."""

    name = ""

    def changed(self, primal: float, dual: float) -> tuple[float | None, float | None]:
        return primal, dual

    def objective(self, problem: Any, state: Any) -> Any:
        return self.changed(*super().objective(problem, state))


@trainer("bcfw")
class DualIsPrimal(OwnBCFW):
    """The dual is said to be the primal."""

    def changed(self, primal: float, dual: float) -> Any:
        return primal, primal


@trainer("bcfw")
class DualTooHigh(OwnBCFW):
    """The dual is too high by two hundredths."""

    def changed(self, primal: float, dual: float) -> Any:
        return primal, min(1.02 * dual, primal)


@trainer("bcfw")
class PrimalHalved(OwnBCFW):
    """The primal is said to be half of what it is, and so is the dual."""

    def changed(self, primal: float, dual: float) -> Any:
        return 0.5 * primal, 0.5 * dual


@trainer("bcfw")
class PrimalOffByLittle(OwnBCFW):
    """The primal is too low by 1e-4 of it."""

    def changed(self, primal: float, dual: float) -> Any:
        return primal * (1.0 - 1e-4), dual


@trainer("bcfw")
class DualIsNaN(OwnBCFW):
    """The dual is no number."""

    def changed(self, primal: float, dual: float) -> Any:
        return primal, float("nan")


@trainer("bcfw")
class DualTooHighOnce(OwnBCFW):
    """The first dual of the run is too high, all others are right."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = False

    def changed(self, primal: float, dual: float) -> Any:
        first, self.seen = not self.seen, True
        return primal, 1.55 if first else dual


@trainer("bcfw")
class ReturnsOthers(BCFW):
    """`weights` are not those that it judged: half of them."""

    name = ""
    last_objective = None  # type: ignore[assignment]

    def weights(self, problem: Any, state: Any) -> Any:
        return 0.5 * super().weights(problem, state)

    def objective(self, problem: Any, state: Any) -> Any:
        return problem.primal(BCFW.weights(self, problem, state)), self._dual(problem, state)


@trainer("n_slack")
class ReturnsZero(NSlackCuttingPlane):
    """The weights that are returned are zero, the bounds those of the solution."""

    name = ""
    last_objective = None  # type: ignore[assignment]

    def weights(self, problem: Any, state: Any) -> Any:
        return 0.0 * super().weights(problem, state)

    def objective(self, problem: Any, state: Any) -> Any:
        return problem.primal(NSlackCuttingPlane.weights(self, problem, state)), super().objective(problem, state)[1]


@trainer("sgd")
class PrimalOfFewer(SGD):
    """The primal is that of the first half of the instances."""

    name = ""
    last_objective = None  # type: ignore[assignment]

    def objective(self, problem: Any, state: Any) -> Any:
        w = self.weights(problem, state)
        half = problem.surrogate.values(problem.task, w)[:20]
        return problem.lam * problem.regulariser.value(w) + 0.9 * float(half.mean()), None


@trainer("lbfgs", world=World("log"), oracle=Rich)
class BestEverSeen(LBFGS):
    """The primal is the smallest that was seen less a little: of other weights than those returned."""

    name = ""
    last_objective = None  # type: ignore[assignment]

    def objective(self, problem: Any, state: Any) -> Any:
        primal, dual = super().objective(problem, state)
        return primal, None if dual is None else primal - 0.01 * (primal - dual) + 1e-3


# surrogates


def surrogate(*trainers: str, **others: Any) -> Any:
    """Planted in the place of the surrogate."""

    def planted(kind: Any) -> Any:
        def made(oracle: Any) -> Any:
            return kind()

        made.__name__, made.__doc__ = kind.__name__, kind.__doc__
        plant("own surrogates", "surrogate", *trainers, **others)(made)
        return kind

    return planted


@surrogate("bcfw", "sgd", "proximal", "one_slack", "bmrm")
class ValuesHalved(MarginRescaling):
    """`values` are half of what `term` says."""

    def values(self, task: Any, w: Any) -> Any:
        return 0.5 * super().values(task, w)


@surrogate("bcfw", "sgd", "proximal", "one_slack", "bmrm", "corrective", "n_slack")
class OffsetTooLarge(MarginRescaling):
    """The offset of a piece is too large by a fifth."""

    def offset(self, step: Step) -> float:
        return 1.2 * super().offset(step)


@surrogate("bcfw", "sgd", "proximal", "one_slack", "bmrm", world=Ramp())
class RampSaidToBeConvex(MarginRescaling):
    """Losses above 2 count as 2: a ramp, which is said to be convex."""

    def term(self, task: Any, w: Any, i: int, scale: Any = 1.0) -> Step:
        step = super().term(task, w, i, scale)
        return step if step.violation <= 2.0 else step._replace(
            difference=step.difference._replace(values=0.0 * step.difference.values), loss=2.0, violation=2.0, bound=2.0
        )  # fmt: skip

    def values(self, task: Any, w: Any) -> Any:
        return np.minimum(super().values(task, w), 2.0)

    def terms(self, task: Any, w: Any, rows: Any, shares: Any = None) -> Any:
        from structpred.task.steps import summed

        return summed((len(task), task.dim), rows, shares, lambda i: self.term(task, w, i), self.offset)


@surrogate("bcfw", "n_slack", "one_slack", world=World("slack"))
class BoundForgotten(SlackRescaling):
    """Slack rescaling whose searches are cut at one query, and whose values are what was found."""

    def __init__(self) -> None:
        super().__init__("hull", max_queries=1)

    def values(self, task: Any, w: Any) -> Any:
        return np.array([self.search(task, w, i).phi for i in range(len(task))])


@surrogate("lbfgs", "oeg", "bmrm", world=World("log"), oracle=Rich)
class GradientOfHalf(LogLoss):
    """`gradient` gives half of the values, and half of the gradient, `term` all of both."""

    def gradient(self, task: Any, w: Any, shares: Any) -> Any:
        values, gradient = super().gradient(task, w, shares)
        return 0.5 * values, 0.5 * gradient


@surrogate("bcfw", "n_slack", "one_slack", "sgd")
class FewerPieces(MarginRescaling):
    """`values` leaves out every instance that is right."""

    def values(self, task: Any, w: Any) -> Any:
        found = super().values(task, w)
        return np.where(found > 0.5, found, 0.0)


@surrogate("bcfw", "n_slack", "bmrm", "sgd")
class PiecesAbove(MarginRescaling):
    """The pieces lie above the values, by a tenth."""

    def term(self, task: Any, w: Any, i: int, scale: Any = 1.0) -> Step:
        step = super().term(task, w, i, scale)
        return step._replace(loss=step.loss + 0.1, violation=step.violation + 0.1, bound=step.bound + 0.1)


# losses of scores


class Scored:
    """Plants a loss of scores under lbfgs and a bundle method, judged by the honest one of a kind."""

    def __init__(self, kind: str, oracle: Any = AtMostTwo) -> None:
        self.world, self.oracle = World(kind), oracle

    def __call__(self, loss: Any) -> Any:
        def made(oracle: Any) -> Any:
            return LossSurrogate(loss(oracle))

        made.__name__, made.__doc__ = loss.__name__, loss.__doc__
        plant("score losses", "surrogate", "lbfgs", "bmrm", world=self.world, oracle=self.oracle)(made)
        return loss


class ColdSparseMAP(SparseMAPLoss):
    """SparseMAP that starts cold; its terms may be changed."""

    name = ""

    def __init__(self, oracle: Any) -> None:
        super().__init__(oracle, warm=False)

    def changed(self, found: Terms) -> Terms:
        return found

    def terms(self, batch: Any, theta: Any, given: Any) -> Terms:
        return self.changed(super().terms(batch, theta, given))


@Scored("sparsemap")
class SparseMAPHalved(ColdSparseMAP):
    """The loss is half of what its gradient belongs to."""

    def changed(self, found: Terms) -> Terms:
        return found._replace(values=0.5 * found.values)


@Scored("sparsemap")
class GradientOfScoresDoubled(ColdSparseMAP):
    """The gradient is doubled."""

    def changed(self, found: Terms) -> Terms:
        return found._replace(gradient=2.0 * found.gradient)


@Scored("sparsemap")
class Capped(ColdSparseMAP):
    """Losses above .5 count as .5: not convex."""

    def changed(self, found: Terms) -> Terms:
        return found._replace(values=np.minimum(found.values, 0.5))


@Scored("sparsemap")
class NegativeLoss(ColdSparseMAP):
    """The loss is lower by a tenth, and so below zero at times."""

    def changed(self, found: Terms) -> Terms:
        return found._replace(values=found.values - 0.1)


@Scored("sparsemap")
class NaNLoss(ColdSparseMAP):
    """The loss of one instance of forty is no number."""

    def changed(self, found: Terms) -> Terms:
        values = found.values.copy()
        values[len(values) // 2] = np.nan
        return found._replace(values=values)


@Scored("perturbed")
class NewNoise(PerturbedLoss):
    """The noise is another one at each call, so that it is no one function."""

    name = ""

    def __init__(self, oracle: Any) -> None:
        super().__init__(oracle, samples=4)
        self.calls = count(1)

    def terms(self, batch: Any, theta: Any, given: Any) -> Terms:
        return super().terms(batch, theta, given._replace(step=next(self.calls)))


@Scored("soft_margin", Rich)
class SoftMarginWithoutCosts(SoftMarginCRF):
    """Values leave the costs out, gradients do not."""

    name = ""

    def terms(self, batch: Any, theta: Any, given: Any) -> Terms:
        without = super().terms(batch, theta, given._replace(costs=np.zeros(len(theta))))
        return super().terms(batch, theta, given)._replace(values=without.values)


def under(kind: str, *trainers: str) -> Any:
    """An oracle that lies, under a loss of scores of ours."""
    return plant("score losses", "oracle", *trainers, world=World(kind))


@under("perturbed", "lbfgs", "bmrm")
class MinimisesUnderNoise(AtMostTwo):
    """Scores are taken for costs, under noise."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        return super().argmax(-scores, shape)


@under("perturbed", "lbfgs")
@under("sparsemap", "lbfgs", "bmrm")
class PrunesUnderLosses(AtMostTwo):
    """An item whose score is the smallest but one is never chosen."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        found = super().argmax(scores, shape)
        return found[scores[found] >= np.sort(scores)[-2] + 0.05 * (shape[1] % 4 == 1)] if len(found) else found


@under("soft_margin", "lbfgs", "bmrm")
class MarginalsOfMax(Rich):
    """log_z and mu are the largest score and the best output, under the soft margin."""

    marginals_batch = None  # type: ignore[assignment]

    def marginals(self, scores: Any, shape: Any) -> Any:
        found = self.argmax(scores, shape)
        return float(scores[found].sum()), np.bincount(found, minlength=shape[0]).astype(float)
