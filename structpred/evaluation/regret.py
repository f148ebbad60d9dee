"""What decisions lose against the best ones, and how much of that hangs on ties."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from structpred.core.oracle import Labels, Oracle, Shape
from structpred.core.types import ArrayLike, Floats, Integers
from structpred.task.regret import Numbers, PartScores, Regrets, packed_labels, regrets, true_scores

#: an output is best at the predicted scores if it lacks so little, relative to the largest of them
_TIED = 1e-10
#: shares of the true scores that are added to the predicted ones, relative to their sizes
_SHARES = 10.0 ** -np.arange(3, 13)


class TieRegrets(NamedTuple):
    """The regrets if ties between decisions are broken by the true scores: for the best of them, and for the worst."""

    optimistic: Regrets
    pessimistic: Regrets


def evaluate_regret(
    oracle: Oracle, decisions: Sequence[ArrayLike], shapes: Sequence[Shape], *, costs: Numbers | None = None,
    values: Numbers | None = None,
) -> Regrets:  # fmt: skip
    """The regret of each decision: by how much the best decision is better at the true costs or values.

    Parameters
    ----------
    oracle : Oracle
        Finds the best decisions.
    decisions : list of labels
        One output of the oracle for each instance, such as `DecisionModel.predict` gives.
    shapes : list of shapes
        One for each instance.
    costs, values : array (n, p), or a list of arrays
        The true costs of the parts, which are minimised, or their values, which are maximised: one of them.

    Returns
    -------
    Regrets
        ``regrets`` (n,), ``mean``, and ``normalised``: their sum over the sum of |what the best decisions are worth|.

    Raises
    ------
    DataError
        For costs or values that do not fit the shapes, or are not finite.
    ParameterError
        Unless one of costs and values is given.

    References
    ----------
    Elmachtoub and Grigas (2022), Smart "predict, then optimize": definition 1, and section 6 (normalised).

    Examples
    --------
    >>> from structpred.oracles.shortest_path import ShortestPathOracle
    >>> costs = [[1.0, 5.0, 1.0, 1.0]]  # of a grid of 2 x 2: the path 0, 2 costs 2, the path 1, 3 costs 6
    >>> evaluate_regret(ShortestPathOracle(), [[1, 3]], [(2, 2)], costs=costs).normalised
    2.0
    """
    return regrets(true_scores(oracle, shapes, costs, values), packed_labels(decisions))


def tie_regrets(
    oracle: Oracle, predicted: Numbers, shapes: Sequence[Shape], *, costs: Numbers | None = None, values: Numbers | None = None
) -> TieRegrets:
    """The regret of the best and of the worst decision among those that are best at the predicted costs or values.

    predicted: of the same kind as what is given, costs or values. Where the two differ, predictions leave a choice to the
    solver; constant predictions, for example, have an optimistic regret of 0. A small share of the true scores is added to the
    predicted ones, the larger the better, and made smaller where that changes more than ties. Raises what `evaluate_regret`
    raises.

    Elmachtoub and Grigas (2022), equation 3: the pessimistic one is their unambiguous SPO loss.

    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> found = tie_regrets(MulticlassOracle(), [[0.0, 0.0, 1.0]], [(3,)], costs=[[1.0, 4.0, 2.0]])
    >>> found.optimistic.mean, found.pessimistic.mean
    (0.0, 3.0)
    """
    truth = true_scores(oracle, shapes, costs, values)
    given = true_scores(oracle, shapes, predicted, None) if values is None else true_scores(oracle, shapes, None, predicted)
    return TieRegrets(regrets(truth, _tilted(given, truth, 1.0)), regrets(truth, _tilted(given, truth, -1.0)))


def _tilted(predicted: PartScores, truth: PartScores, direction: float) -> tuple[Labels, Integers]:
    """Of the outputs that are best at the predicted scores, those that are best for direction * the true ones."""
    best, size, true_size = predicted.values(*predicted.best()), _largest(predicted), _largest(truth)
    slack, scale = _TIED * np.maximum(size, np.abs(best)), np.where(size > 0.0, size, 1.0) / np.maximum(true_size, 1e-300)
    steps, each = np.zeros(len(best), np.int64), np.diff(predicted.offsets)
    while True:
        share = np.repeat(direction * scale * _SHARES[steps], each)
        found = predicted._replace(scores=predicted.scores + share * truth.scores).best()
        more = (best - predicted.values(*found) > slack) & (steps < len(_SHARES) - 1)
        if not more.any():
            return found
        steps += more


def _largest(scores: PartScores) -> Floats:
    return np.array([np.abs(own).max(initial=0.0) for own in scores.split()])
