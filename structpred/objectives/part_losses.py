"""Losses that decompose over parts: loss(y_i, y) = constant + costs . mu(y)."""

import numpy as np
import numpy.typing as npt

from structpred.core.oracle import Labels, Oracle, Shape
from structpred.errors import ParameterError

Floats = npt.NDArray[np.float64]


class LabelCosts:
    """A cost for each pair (true label, predicted label), summed over the positions of the oracle's label grid.

    `costs` is (n_labels, n_labels), finite, >= 0, with a zero diagonal; position t is weighed by token_weights[t] where
    there are such. Raises ParameterError otherwise, and for oracles without a label grid.

    >>> import numpy as np
    >>> LabelCosts([[0, 2], [1, 0]]).label_costs(2).tolist()
    [[0.0, 2.0], [1.0, 0.0]]
    """

    def __init__(self, costs: npt.ArrayLike) -> None:
        self.costs = np.ascontiguousarray(costs, dtype=np.float64)
        if self.costs.ndim != 2 or self.costs.shape[0] != self.costs.shape[1]:
            raise ParameterError(f"label costs must be a square matrix, got shape {self.costs.shape}")
        if not np.isfinite(self.costs).all() or (self.costs < 0).any() or np.diag(self.costs).any():
            raise ParameterError("label costs must be finite, >= 0, and zero on the diagonal (the truth costs nothing)")

    def label_costs(self, n_labels: int) -> Floats:
        """The matrix itself, if it is of the right size."""
        if len(self.costs) != n_labels:
            raise ParameterError(f"label costs are {self.costs.shape}, but there are {n_labels} labels")
        return self.costs

    def part_costs(self, labels: Labels, shape: Shape, oracle: Oracle, token_weights: Floats | None) -> tuple[float, Floats]:
        """Costs on the label grid, zero on all other parts; the constant is zero."""
        grid = getattr(oracle, "label_grid", None)
        if grid is None:
            raise ParameterError(
                f"label costs need positions and labels, and {type(oracle).__name__} has no label_grid(shape); add it, "
                "or give a loss of your own with part_costs"
            )
        n_positions, n_labels = grid(shape)
        costs = np.zeros(oracle.n_parts(shape))
        on_grid = costs[: n_positions * n_labels].reshape(n_positions, n_labels)
        on_grid[:] = self.label_costs(n_labels)[labels]
        if token_weights is not None:
            on_grid *= token_weights[:, None]
        return 0.0, costs


class Hamming:
    """The number of positions with a wrong label, each weighed by token_weights[t] where there are such.

    For an oracle without a label grid it is the number of true parts that the output misses, repeats counted: the same
    number wherever every output has equally many parts (matchings, trees). Token weights then raise ParameterError.
    """

    #: what a wrong label costs, whichever it is: compiled steps ask for it where the number of labels is no constant
    uniform_cost = 1.0

    def label_costs(self, n_labels: int) -> Floats:
        """One for every wrong label."""
        return 1.0 - np.eye(n_labels)

    def part_costs(self, labels: Labels, shape: Shape, oracle: Oracle, token_weights: Floats | None) -> tuple[float, Floats]:
        """On a grid: the cost of wrong labels. Else: the number of true parts, less one for each part that is met."""
        grid = getattr(oracle, "label_grid", None)
        if grid is not None:
            return LabelCosts(self.label_costs(grid(shape)[1])).part_costs(labels, shape, oracle, token_weights)
        if token_weights is not None:
            raise ParameterError(f"token weights need positions, and {type(oracle).__name__} has no label_grid(shape)")
        parts = oracle.parts(labels, shape)
        costs = np.zeros(oracle.n_parts(shape))
        costs[parts] = -1.0
        return float(len(parts)), costs
