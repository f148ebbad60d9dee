"""The expected cost of a perturbed decision, for any function of outputs."""

from collections.abc import Callable

import numpy as np

from structpred.core.oracle import Labels, Oracle
from structpred.core.own_code import raised
from structpred.core.types import Floats
from structpred.errors import DataError, LossError, ParameterError
from structpred.layers.loss import Given, Loss, Terms
from structpred.layers.perturbed import Noise, mean_of, score_function
from structpred.layers.record import Scores


class ExpectedCost(Loss):
    """1/m sum_k f(y_k), y_k best at theta + sigma z_k, for any cost f of an output (Dalle et al. 2022).

    The gradient is the score-function estimate 1/m sum_k z_k f(y_k) / sigma with pairs z, -z, or the mean of the other samples,
    as baseline: unbiased for the derivative of the expected cost, though not the derivative of this mean, which is constant in
    pieces.

    Parameters
    ----------
    oracle : Oracle
    cost : callable
        cost(labels, id) -> float, asked once for each different output of an instance; `id` is that given with ids=, else the
        instance's place in the batch.
    samples, sigma, seed, antithetic
        As for `PerturbedLoss`.

    Raises
    ------
    DataError
        Where a cost is not finite, naming the sample; LossError where `cost` raises.

    Examples
    --------
    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> oracle = MulticlassOracle()
    >>> loss = ExpectedCost(oracle, lambda labels, i: float(labels[0]), samples=1000)
    >>> loss(Scores.of(oracle, [(2,)]), [0.0, 0.0]).values.round(1).tolist()
    [0.5]
    """

    name = "expected_cost"
    takes = ()
    nonnegative = False

    def __init__(
        self, oracle: Oracle, cost: Callable[[Labels, int], float], *, samples: int = 10, sigma: float = 1.0, seed: int = 0,
        antithetic: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(oracle)
        if not callable(cost):
            raise ParameterError(f"cost must be a function of (labels, id), got {cost!r}")
        self.cost, self.noise = cost, Noise(samples, sigma, seed, bool(antithetic), multiplicative=False)

    def terms(self, batch: Scores, theta: Floats, given: Given) -> Terms:
        """The mean cost, and the estimate of its derivative."""
        found = self.noise.perturb(batch, theta, given.ids, given.step)
        known: dict[tuple[int, bytes], float] = {}
        costs = np.empty(len(found.best.outputs))
        for j, labels in enumerate(found.best.outputs):
            i = j % len(given.ids)
            key = (i, labels.tobytes())
            if key not in known:
                try:
                    known[key] = float(self.cost(labels.copy(), int(given.ids[i])))
                except Exception as error:
                    raise LossError(f"sample {i}: cost raised {raised(error)}") from error
                if not np.isfinite(known[key]):
                    problem = f"the cost of the output {labels[:20].tolist()} is {known[key]}; costs must be finite"
                    raise DataError(f"sample {i}: {problem}")
            costs[j] = known[key]
        gradient = score_function(batch, self.noise, given.ids, given.step, costs) / self.noise.sigma
        return Terms(mean_of(costs, len(batch)), gradient, np.zeros(len(batch)), flips=found.flip_rate)
