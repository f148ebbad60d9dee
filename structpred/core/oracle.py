"""What an inference oracle is. An oracle sees part scores only, never weights and never inputs.

For one instance an output is a set of parts. With p parts it has scores theta (float64, length p) and an output
y has part counts mu(y) (length p, whole numbers >= 0), so that score(y) = theta . mu(y).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from structpred.core.types import Floats, Integers

#: The shape of an instance: any hashable value, of one kind an oracle. Its sizes, and whatever else the oracle must know of the
#: instance: (5, 3), a string, nested tuples, a frozen dataclass with capacities. (Typed as Any, so that an oracle may narrow it.)
Shape = Any
Labels = Integers
Scores = Floats

#: Optional methods: the name, the call, and what it promises. A method is there and right, or missing.
OPTIONAL: dict[str, str] = {
    "argmax_batch": "(scores, offsets, shapes) -> (labels, label_offsets): argmax for a whole batch in one call, which "
    "several threads may make at once",
    "parts_batch": "(labels, label_offsets, shapes) -> (parts, part_offsets): parts for a whole batch in one call, for "
    "outputs that argmax_batch gave; several threads may make it at once",
    "argmax_bound": "(scores, shape) -> (labels, bound): an inexact argmax with a number that no output's score exceeds",
    "argmax_bound_batch": "(scores, offsets, shapes) -> (labels, label_offsets, bounds): argmax_bound for a whole batch in one "
    "call; several threads may make it at once",
    "argmax_bound_from": "(scores, offsets, shapes, starts) -> (labels, label_offsets, bounds, states): argmax_bound_batch that "
    "begins at the states, flat float64 arrays, of earlier calls for these instances, None for none; bounds hold for any numbers",
    "argmax_constrained": "(scores, shape, A, b) -> labels | None: the best output with A mu(y) <= b, None if there is none; "
    "A is a dense (rows, p) float64 array, the comparison is made as float64 computes it",
    "argmax_constrained_bound": "(scores, shape, A, b) -> (labels | None, bound): argmax_constrained whose proof may be cut "
    "short: the labels, if any, satisfy A mu(y) <= b; no output that does so scores above `bound`; (None, -inf): proven that "
    "there is none",
    "argmax_relaxed": "(scores, shape) -> mu: the best point of a polytope that holds all mu(y), float64, fractions allowed; the "
    "polytope depends on the shape alone",
    "argmax_relaxed_constrained": "(scores, shape, A, b) -> mu | None: the best point with A mu <= b of the polytope of "
    "argmax_relaxed, float64; None if there is none",
    "argmax_per_loss": "(scores, costs, shape) -> (values, best, labels): costs are whole numbers; values are all numbers that "
    "costs . mu(y) takes, ascending, best[k] the largest score among the outputs with values[k], labels[k] one that has it",
    "argmax_product": "(scores, costs, offsets, shape) -> labels: exactly maximises max(0, offsets[0] + scores . mu(y)) "
    "* (offsets[1] + costs . mu(y)); the second factor is >= 0 for every output",
    "marginals": "(scores, shape) -> (log_z, mu): log of the sum of exp(score) over all outputs, and the expected part counts",
    "marginals_batch": "(scores, offsets, shapes) -> (log_zs, mu): marginals for a batch in one call, mu flat as the scores; "
    "several threads may make it at once",
    "kbest": "(scores, shape, k) -> list of labels: the k best outputs, all different, best first, fewer if there are fewer",
    "project": "(point, shape) -> mu: the nearest point (Euclidean) of the convex hull of all mu(y); training "
    "finds it by argmax alone where this is missing",
    "project_batch": "(points, offsets, shapes) -> mu: project for a whole batch in one call, mu flat as the points",
    "clique_parts": "(shape) -> (ends, parts): variable k of the flat clique marginals x counts for parts[ends[k]:ends[k + 1]], "
    "so that the part counts are mu = A x with this 0/1 matrix A",
    "project_cliques": "(points, offsets, shapes, start=None, n_jobs=1) -> (x, multipliers): the nearest clique marginals (of a "
    "relaxation, if inexact) of a "
    "batch, flat as the points; `start`: the multipliers of an earlier call with these shapes; n_jobs threads",
    "polytope": "(shape) -> (A, lower, upper): rows lower <= A mu <= upper that hold for all mu(y), the ones of argmax_relaxed",
    "point": "(labels, shape) -> mu: float64, for outputs that are points of a convex set, with amounts of parts and not sets of "
    "them: the amounts that the labels stand for; ValueError for labels that stand for no such point. `parts` then refuses all",
    "enumerate": "(shape) -> iterable of labels: every output, each once; for small shapes",
    "label_grid": "(shape) -> (n_positions, n_labels): parts t * n_labels + l, in front, say that labels[t] is l",
}


class Oracle(ABC):
    """The parent of every oracle: three methods and a few example shapes make a structure trainable.

    `shape` is any hashable value, to which an oracle gives its own meaning (a chain: number of positions, number of labels).
    The optional methods are in OPTIONAL. `structpred.check_oracle` tests an oracle.

    Attributes
    ----------
    exact : bool
        False: argmax may miss the maximum. No certificate is then called a proof, unless the oracle also has `argmax_bound`.
    tolerance : float
        No output scores more than s + tolerance * (1 + abs(s)), where s is the score of argmax's (solvers that stop at a gap).
        Training takes that for the bound, as if it came from `argmax_bound`, so certificates stay true.
    expensive : bool
        Whether a call of argmax takes many times longer than scoring the parts: it is worthwhile to remember outputs.
    only_shape : hashable or None
        The shape of an oracle that has one alone: models and losses then need not be given shapes.
    output : str
        What errors call an output, such as "tree".

    Examples
    --------
    >>> import numpy as np
    >>> class Choice(Oracle):
    ...     def n_parts(self, shape): return shape[0]
    ...     def argmax(self, scores, shape): return np.array([int(scores.argmax())])
    ...     def parts(self, labels, shape): return labels
    ...     @staticmethod
    ...     def example_shapes(): return [(2,), (5,)]
    >>> Choice().argmax(np.array([0.0, 3.0]), (2,)).tolist()
    [1]
    """

    exact: bool = True
    tolerance: float = 0.0
    expensive: bool = False
    only_shape: Shape = None
    #: what errors call an output
    output: str = "output"

    @abstractmethod
    def n_parts(self, shape: Shape) -> int:
        """The number of parts p of an instance of this shape."""

    @abstractmethod
    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The output with the largest score; scores has length p and must not be changed; labels are int64, 1-d."""

    @abstractmethod
    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """The indices in [0, p) of the parts that are on in `labels`; an index that comes twice counts twice.

        Raises ValueError for labels that are not an output of this shape: nothing else keeps them from being trained as truth.
        """

    @staticmethod
    @abstractmethod
    def example_shapes() -> Iterable[Shape]:
        """A few small shapes, for the contract checks (at most some thousands of outputs each)."""


def capabilities(oracle: object) -> frozenset[str]:
    """The names of the methods that an oracle has: the three obligatory ones and those of OPTIONAL.

    >>> sorted(capabilities(object()))
    []
    """
    return frozenset(name for name in ("argmax", *OPTIONAL) if callable(getattr(oracle, name, None)))
