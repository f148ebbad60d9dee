"""All outputs of the shapes that have few, as `enumerate` lists them: once a task, as part counts.

`enumerate` may build all outputs before it returns the first, so it is asked only where the oracle itself says that this is
feasible: for shapes with no more parts than the largest of its example_shapes (as for the check that true labels are outputs).
"""

from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from structpred.core.oracle import Labels, Shape, capabilities
from structpred.core.own_code import blamed
from structpred.core.packing import checked_labels
from structpred.task.task import Task

#: the most outputs of one shape
MAX_OUTPUTS = 4096
#: the most labels and parts, in all outputs of all shapes of a task together
MAX_ENTRIES = 1 << 22


class Listing(NamedTuple):
    """All outputs of one shape. counts: CSR (n_outputs, n_parts), mu(y) in its rows. flat: the labels of all, cut at offsets."""

    counts: Any
    flat: Labels
    offsets: npt.NDArray[np.int64]

    def labels(self, k: int) -> Labels:
        """Output number k."""
        return self.flat[self.offsets[k] : self.offsets[k + 1]].copy()


_LISTINGS: WeakKeyDictionary[Task, Mapping[Shape, Listing]] = WeakKeyDictionary()


def listings(task: Task) -> Mapping[Shape, Listing]:
    """The listings of a task, made at the first call. What is listed depends on the task alone, not on what is asked first.

    Raises OracleError where `enumerate` fails, or gives what `parts` refuses.
    """
    if task not in _LISTINGS:
        _LISTINGS[task] = _list_shapes(task) if "enumerate" in capabilities(task.oracle) else {}
    return _LISTINGS[task]


def _list_shapes(task: Task) -> dict[Shape, Listing]:
    from scipy import sparse

    oracle = task.oracle
    largest = max((oracle.n_parts(shape) for shape in oracle.example_shapes()), default=0)
    first: dict[Shape, int] = {}
    for i, shape in enumerate(task.shapes):
        first.setdefault(shape, i)
    found: dict[Shape, Listing] = {}
    left = MAX_ENTRIES
    for shape, i in first.items():
        outputs = _outputs(task, i) if oracle.n_parts(shape) <= largest else None
        if outputs is None:
            continue
        parts = [task.parts_found(i, y) for y in outputs]
        ends, indptr = (np.cumsum([0, *map(len, rows)], dtype=np.int64) for rows in (outputs, parts))
        indices = np.concatenate([*parts, np.empty(0, np.int64)])
        counts = sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(len(parts), task.features.n_parts(i)))
        flat = np.concatenate([*outputs, np.empty(0, np.int64)])
        left -= len(flat) + int(counts.nnz)
        if left < 0:
            break
        found[shape] = Listing(counts, flat, ends)
    return found


def _outputs(task: Task, i: int) -> list[Labels] | None:
    """The outputs of sample i's shape; None if there are more than MAX_OUTPUTS."""
    oracle: Any = task.oracle
    try:
        outputs = [np.array(y) for y in islice(oracle.enumerate(task.shapes[i]), MAX_OUTPUTS + 1)]
    except Exception as error:
        raise blamed(error, i, oracle, "enumerate") from error
    return None if len(outputs) > MAX_OUTPUTS else [checked_labels(y, oracle) for y in outputs]
