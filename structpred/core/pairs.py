"""Compiled code for a feature map and an oracle that were written for each other, registered here.

The core asks, a layer above features and oracles answers: neither of the two has to know the other.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from structpred.core.costs import GridCosts
    from structpred.core.steps import Fused, Visits


class Pair(Protocol):
    """Scoring and decoding in one compiled call; the results are those of the plain calls, for any number of threads."""

    def decode(self, w: Any, n_jobs: int) -> "tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]":
        """(flat labels, label offsets): the best output of every instance."""
        ...

    def steps(
        self,
        labels: "Sequence[npt.NDArray[np.int64]]",
        costs: "GridCosts",
        token_weights: "Sequence[npt.NDArray[np.float64]] | None",
        rows: "Sequence[npt.NDArray[np.int64]] | None",
    ) -> "Fused":
        """Training steps towards `labels`; `costs` is the grid of label costs that all instances share.

        rows: which row of costs holds at each position; None: that of the true label.
        """
        ...


Finder = Callable[[Any, Any], Pair | None]
_finders: list[Finder] = []


def register(finder: Finder) -> None:
    """Ask `finder` for every feature map and oracle that meet from now on: it gives their Pair, or None."""
    _finders.append(finder)


def find(features: object, oracle: object) -> Pair | None:
    """The pair of these two objects; None where none was written."""
    return next((pair for finder in _finders if (pair := finder(features, oracle)) is not None), None)


VisitFinder = Callable[[Any], "Visits | None"]
_visit_finders: list[VisitFinder] = []


def register_visits(finder: VisitFinder) -> None:
    """Ask `finder` for all BlockSteps and PartSteps from now on: it gives their visits of many instances (`Visits`), or None."""
    _visit_finders.append(finder)


def find_visits(steps: Any) -> "Visits | None":
    """The visits of these steps; None where none were written for their features and oracle."""
    return next((visit for finder in _visit_finders if (visit := finder(steps)) is not None), None)
